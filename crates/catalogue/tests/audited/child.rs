//! The process that is killed.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::audit::{AuditSink, Begun, Intent, Settlement, SinkError};
use queuekeeper_store::store::{Condition, Put, UserProperties};
use queuekeeper_store::{Store, StoreName};
use rustix::process::{Signal, getpid, kill_process};
use tokio::process::Command;

use super::setup::{AuditedCatalogue, chunks, item, spaces};

/// What the child is to do: `QUEUEKEEPER_TEST_KILLED=STEP TOP URL`, with 0 for no end.
const VARIABLE: &str = "QUEUEKEEPER_TEST_KILLED";

/// A catalogue beside which the process dies, before or after a call.
struct Mortal {
    catalogue: Catalogue,
    steps_left: AtomicU64,
}

impl Mortal {
    fn step(&self) {
        if self.steps_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
    }

    async fn between<T>(&self, call: impl Future<Output = T>) -> T {
        self.step();
        let result = call.await;
        self.step();
        result
    }
}

#[async_trait]
impl AuditSink for Mortal {
    async fn begin(&self, intent: &Intent, lease: Duration) -> Result<Begun, SinkError> {
        self.between(self.catalogue.begin(intent, lease)).await
    }

    async fn extend(&self, intent: &Intent, lease: Duration) -> Result<(), SinkError> {
        self.between(self.catalogue.extend(intent, lease)).await
    }

    async fn settle(&self, intent: &Intent, settlement: &Settlement) -> Result<(), SinkError> {
        self.between(self.catalogue.settle(intent, settlement)).await
    }

    async fn take_left(&self, store: &StoreName, lease: Duration) -> Result<Option<Intent>, SinkError> {
        self.between(self.catalogue.take_left(store, lease)).await
    }
}

/// One change of each kind.
async fn change_everything(store: &impl Store) {
    let [space, empty] = spaces();
    store.create_space(&space).await.unwrap();
    store.create_space(&empty).await.unwrap();
    store.put(&item("a"), chunks(1), Put::default()).await.unwrap();
    store.put(&item("a"), chunks(2), Put::default()).await.unwrap();
    store.put(&item("b"), chunks(3), Put::default()).await.unwrap();
    store.copy(&item("a"), None, &item("c"), &Condition::None).await.unwrap();
    let user = UserProperties { content_type: Some("text/plain".to_owned()), ..UserProperties::default() };
    store.set_properties(&item("c"), &user, None).await.unwrap();
    store.delete(&item("b"), None).await.unwrap();
    store.delete_space(&empty).await.unwrap();
}

/// Changes without end.
async fn change_for_ever(store: &impl Store) {
    store.create_space(&spaces()[0]).await.unwrap();
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    // Not the contents of the child before.
    let first = usize::try_from(before % 100_000).unwrap();
    for number in first.. {
        let key = item(["a", "b", "c"][number % 3]);
        match number % 7 {
            0 => drop(store.delete(&key, None).await.unwrap()),
            1 => drop(store.copy(&key, None, &item("d"), &Condition::None).await),
            _ => drop(store.put(&key, chunks(number), Put::default()).await.unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by another test, in a process of its own"]
async fn child() {
    let Ok(task) = std::env::var(VARIABLE) else { return };
    let [step, top, url] = task.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let steps: u64 = step.parse().unwrap();
    let place = AuditedCatalogue::open(top.into(), url.to_owned()).await;
    let steps_left = AtomicU64::new(if steps == 0 { u64::MAX } else { steps });
    let mortal = Mortal { catalogue: place.catalogue().await, steps_left };
    let store = place.audited(std::sync::Arc::new(mortal));
    match steps {
        0 => change_for_ever(&store).await,
        _ => change_everything(&store).await,
    }
}

fn command(place: &AuditedCatalogue, step: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "audited::child::child", "--ignored", "--quiet"]).kill_on_drop(true);
    command.env(VARIABLE, format!("{step} {} {}", place.top.display(), place.url));
    command.stdout(std::process::Stdio::null());
    command
}

/// Runs a child that makes one change of each kind, until it dies at this step of its audit log, or ends.
pub(super) async fn run_to_step(place: &AuditedCatalogue, step: u64) -> ExitStatus {
    command(place, step).status().await.unwrap()
}

/// Runs a child that changes things, and kills it when it has done so for a while.
pub(super) async fn run_for(place: &AuditedCatalogue, time: Duration) {
    let before = place.events().await.len();
    let mut child = command(place, 0).spawn().unwrap();
    while place.events().await.len() < before + 3 {
        assert_eq!(child.try_wait().unwrap(), None, "the child has ended by itself");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(time).await;
    child.start_kill().unwrap();
    let status = child.wait().await.unwrap();
    assert!(!status.success() && status.code().is_none(), "{status}");
}
