//! Writes to a tree, as daemons make them, and how they are sent.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::json;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

use super::grammar::{Machine, OUTCOMES};

/// How many writes are on their way at once.
const IN_FLIGHT: usize = 48;

/// One write.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create(String, Vec<u8>),
    /// Ephemeral, as the daemons' locks.
    Lock(String),
    Set(String, Vec<u8>),
    Delete(String),
    /// All or nothing.
    Multi(Vec<Write>),
}

fn mode(is_lock: bool) -> CreateOptions<'static> {
    let mode = if is_lock { CreateMode::Ephemeral } else { CreateMode::Persistent };
    mode.with_acls(Acls::anyone_all())
}

impl Write {
    /// Sends it at once; what it is answered about missing and existing znodes does not matter here.
    fn send<'a>(&self, client: &'a Client) -> BoxFuture<'a, ()> {
        let done = |done: Result<(), Error>| match done {
            Ok(()) | Err(Error::NoNode | Error::NodeExists | Error::NotEmpty | Error::NoChildrenForEphemerals) => {}
            Err(error) => panic!("a write failed: {error}"),
        };
        match self {
            Self::Create(path, data) => {
                // The client's future borrows its path; a transaction of one does not.
                let mut multi = client.new_multi_writer();
                multi.add_create(path, data, &mode(false)).unwrap();
                multi.commit().map(|_| ()).boxed()
            }
            Self::Lock(path) => {
                let mut multi = client.new_multi_writer();
                multi.add_create(path, b"", &mode(true)).unwrap();
                multi.commit().map(|_| ()).boxed()
            }
            Self::Set(path, data) => client.set_data(path, data, None).map(move |set| done(set.map(drop))).boxed(),
            Self::Delete(path) => client.delete(path, None).map(done).boxed(),
            Self::Multi(writes) => {
                let mut multi = client.new_multi_writer();
                for write in writes {
                    match write {
                        Self::Create(path, data) => multi.add_create(path, data, &mode(false)).unwrap(),
                        Self::Lock(path) => multi.add_create(path, b"", &mode(true)).unwrap(),
                        Self::Set(path, data) => multi.add_set_data(path, data, None).unwrap(),
                        Self::Delete(path) => multi.add_delete(path, None).unwrap(),
                        Self::Multi(_) => unreachable!("transactions are not nested"),
                    }
                }
                multi.commit().map(|_| ()).boxed()
            }
        }
    }
}

/// Sends writes in order, many at once.
pub(crate) async fn play(client: &Client, writes: &[Write]) {
    for chunk in writes.chunks(IN_FLIGHT) {
        join_all(chunk.iter().map(|write| write.send(client))).await;
    }
}

/// Deletes all below a path, and it too.
pub(crate) async fn delete_all(client: &Client, path: &str) {
    let Ok(children) = client.list_children(path).await else { return };
    for child in children {
        Box::pin(delete_all(client, &format!("{path}/{child}"))).await;
    }
    Write::Delete(path.to_owned()).send(client).await;
}

/// The folders that the daemons make when they first start.
pub(crate) fn folders() -> Vec<Write> {
    let mut paths: Vec<String> = ["/batch-uuids", "/batches", "/jobs", "/jobs/states", "/access", "/locks"]
        .into_iter()
        .chain(["/access/small", "/access/large", "/locks/queue", "/locks/storage", "/locks/inventory"])
        .chain(["/locks/collections", "/locks/localid", "/locks/queue/localid"])
        .map(str::to_owned)
        .collect();
    paths.extend(Machine::Job.states().iter().map(|(_, label)| format!("/jobs/states/{label}")));
    paths.into_iter().map(|path| Write::Create(path, Vec::new())).collect()
}

/// A job as the daemons create it, pending, in one transaction. Its batch's folders must be there.
pub(crate) fn new_job(number: u32, batch: &str, priority: u32) -> Write {
    let job = format!("/jobs/jid{number:010}");
    let create = |name: &str, data: Vec<u8>| Write::Create(format!("{job}/{name}"), data);
    Write::Multi(vec![
        Write::Create(job.clone(), Vec::new()),
        create("bid", batch.into()),
        create("configuration", br#"{"profile":"merritt_demo_content","filename":"f.zip"}"#.to_vec()),
        create("status", status("Pending", 0)),
        create("priority", format!("{priority:02}").into()),
        create("space_needed", b"0".to_vec()),
        Write::Create(format!("/jobs/states/pending/{priority:02}-jid{number:010}"), Vec::new()),
        Write::Create(format!("/batches/{batch}/states/batch-processing/jid{number:010}"), Vec::new()),
    ])
}

/// A batch with its folders of references.
pub(crate) fn new_batch(batch: &str) -> Vec<Write> {
    let batch = format!("/batches/{batch}");
    let mut writes = vec![
        Write::Create(batch.clone(), Vec::new()),
        Write::Create(format!("{batch}/status"), status("Processing", 0)),
        Write::Create(format!("{batch}/states"), Vec::new()),
    ];
    writes.extend(OUTCOMES.map(|folder| Write::Create(format!("{batch}/states/{folder}"), Vec::new())));
    writes
}

/// A status as the daemons write it.
pub(crate) fn status(state: &str, retries: u32) -> Vec<u8> {
    json!({"status": state, "last_successful_status": null, "last_modified": "2026-03-02 10:17:05 -0800",
           "retry_count": retries, "message": "Success"})
    .to_string()
    .into_bytes()
}
