//! A healthy tree, changes of it, and how it is compared.

use std::collections::BTreeMap;

use queuekeeper_testkit::queue::{EPHEMERAL, PERSISTENT, World, base, data, job};

/// One change of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    Make(&'static str, &'static str),
    MakeEphemeral(&'static str),
    Set(&'static str, &'static str),
    Delete(&'static str),
    /// The znode and all below it is gone, in what is expected.
    Gone(&'static str),
}

use Do::{Delete, Gone, Make, MakeEphemeral, Set};

/// A batch with jobs in Pending, Storing and Failed, a deleted batch, and a request.
pub(super) fn healthy() -> Vec<(String, String)> {
    let mut nodes = base();
    nodes.extend([job(1, "Pending"), job(3, "Storing"), job(4, "Failed")].concat());
    for (path, data) in [
        ("/jobs/jid0000000003/identifiers", r#"{"primary_id":"ark:/1/3"}"#),
        ("/batch-uuids/uuid-1", "bid0000000001"),
        ("/batches/bid0000000001", ""),
        ("/batches/bid0000000001/submission", r#"{"batchID":"uuid-1"}"#),
        ("/batches/bid0000000001/status", r#"{"status":"Deleted"}"#),
        ("/batches/bid0000000001/states", ""),
        ("/batches/bid0000000001/states/batch-deleted", ""),
        ("/access/small/qid0000000000", ""),
        ("/access/small/qid0000000000/token", "{}"),
        ("/access/small/qid0000000000/status", r#"{"status":"Pending"}"#),
        ("/locks/inventory", ""),
        ("/locks/storage", ""),
    ] {
        nodes.push((path.to_owned(), data.to_owned()));
    }
    nodes
}

pub(super) async fn spoil(world: &World, changes: &[Do]) {
    for change in changes {
        match *change {
            Make(path, data) => drop(world.raw.create(path, data.as_bytes(), &PERSISTENT).await.unwrap()),
            MakeEphemeral(path) => drop(world.raw.create(path, b"", &EPHEMERAL).await.unwrap()),
            Set(path, data) => drop(world.raw.set_data(path, data.as_bytes(), None).await.unwrap()),
            Delete(path) => world.raw.delete(path, None).await.unwrap(),
            Gone(path) => panic!("{path}: only what is expected is gone"),
        }
    }
}

pub(super) fn expected(healthy: &BTreeMap<String, String>, changes: &[Do]) -> BTreeMap<String, String> {
    let mut tree = healthy.clone();
    for change in changes {
        match *change {
            Make(path, data) | Set(path, data) => drop(tree.insert(path.into(), timeless(path, data))),
            Gone(path) => tree.retain(|other, _| other != path && !other.starts_with(&format!("{path}/"))),
            MakeEphemeral(path) | Delete(path) => panic!("{path}: only the fault is made so"),
        }
    }
    tree
}

/// A status without the time at which it was written, and its keys in order.
pub(super) fn timeless(path: &str, data: &str) -> String {
    let status = serde_json::from_str::<BTreeMap<String, serde_json::Value>>(data).ok();
    let Some(mut status) = status.filter(|_| path.ends_with("/status")) else { return data.to_owned() };
    status.entry("last_modified".to_owned()).and_modify(|at| *at = "x".into());
    serde_json::to_string(&status).unwrap()
}

pub(super) async fn found(world: &World) -> BTreeMap<String, String> {
    let tree = data(&world.tree().await);
    tree.into_iter().map(|(path, data)| (path.clone(), timeless(&path, &data))).collect()
}
