//! One who sees to what waits for an operator, and for time: dead letters, and leases of processes that are gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{Decided, Decision, TaskState};
use queuekeeper_mill::users::MILL;
use queuekeeper_store::{Audited, Store};
use queuekeeper_testkit::postgres::Postgres;
use tokio::time::Instant;

use super::world::{self, Deployment};

/// The database.
pub(super) const DATABASE: &str = "chaos";

/// How long all may take until it is as it should be.
pub(super) const LIMIT: Duration = Duration::from_mins(4);

/// How many tasks there are, how many changes are under way, how many events nobody has followed.
/// That there is content which no record knows of waits for an operator.
const LEFT: &str =
    "SELECT (SELECT COUNT(*) FROM tasks WHERE key IS DISTINCT FROM 'foreign'), (SELECT COUNT(*) FROM intents),
    (SELECT COUNT(*) FROM audit_log WHERE seq > (SELECT COALESCE(MAX(seq), 0) FROM followers))";

pub(super) struct Operator {
    catalogue: Catalogue,
    /// The stores, to resolve what was left there.
    stores: Vec<Audited<dyn Store>>,
    /// The server, which a test kills.
    pub(super) server: Arc<Mutex<Postgres>>,
    /// Why tasks went to the dead letters, and how often.
    pub(super) dead: BTreeMap<String, usize>,
}

impl Operator {
    pub(super) async fn new(place: &Deployment, catalogue: Catalogue, server: Postgres) -> Self {
        let mut stores = Vec::new();
        for name in [world::MAIN, world::REPLICA, world::CLOUD] {
            stores.push(world::audited(place, name, &catalogue, MILL).await.unwrap());
        }
        Self { catalogue, stores, server: Arc::new(Mutex::new(server)), dead: BTreeMap::new() }
    }

    /// What the server's own client prints.
    pub(super) fn query(&self, sql: &str) -> String {
        tokio::task::block_in_place(|| self.server.lock().query(DATABASE, sql))
    }

    /// Ends the leases that processes have which are gone: all but these.
    pub(super) fn end_leases(&self, living: &[&str]) {
        let living = living.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        self.show(&format!("holder IS NOT NULL AND worker NOT IN ({living})"));
    }

    /// Makes tasks visible, but for those that a process is just writing: it locks several, in an order of its own.
    fn show(&self, which: &str) {
        let ids = format!("SELECT id FROM tasks WHERE {which} FOR UPDATE SKIP LOCKED");
        drop(self.query(&format!("UPDATE tasks SET visible = 0 WHERE id IN ({ids})")));
    }

    /// Ends the lead of loops, whether its process is gone or not, and has the next one begin.
    pub(super) fn end_lead(&self) {
        drop(self.query("UPDATE loops SET lease_end = 0, next_start = 0 WHERE producer = 'duplication'"));
    }

    /// Has the next loop of a producer begin.
    pub(super) fn end_lead_of(&self, producer: &str) {
        drop(self.query(&format!("UPDATE loops SET lease_end = 0, next_start = 0 WHERE producer = '{producer}'")));
    }

    /// Lets nothing wait for the next attempt or round, nor for a process that is gone.
    pub(super) async fn hurry(&mut self, living: &[&str]) {
        self.end_leases(living);
        self.show("state = 'waiting' AND holder IS NULL");
        for store in &self.stores {
            store.resolve_left().await.unwrap();
        }
        self.retry_dead_letters().await;
        // What waits hears that there may be something to do.
        self.catalogue.put_tasks(&[]).await.unwrap();
    }

    /// Ends the leases of tasks whose workers work on.
    pub(super) fn end_leases_of_all(&self) {
        self.show("holder IS NOT NULL");
    }

    /// Waits until nothing is left to be done.
    pub(super) async fn await_quiet(&mut self, living: &[&str], what: &str) {
        let deadline = Instant::now() + LIMIT;
        let mut quiet = 0;
        loop {
            self.hurry(living).await;
            let left = self.query(LEFT);
            // What a loop asks for is not seen before it does.
            quiet = if left.trim() == "0|0|0" { quiet + 1 } else { 0 };
            if quiet == 3 {
                return;
            }
            if Instant::now() > deadline {
                let tasks = self.query("SELECT kind, state, queue, encode(key, 'escape'), destination, attempts, worker, errors FROM tasks");
                panic!("{what}: there is still something to be done: {left}{tasks}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn retry_dead_letters(&mut self) {
        for letter in self.catalogue.dead_letters("account1", 0, 1000).await.unwrap() {
            let why = letter.errors.last().map(|error| error.error.clone()).unwrap_or_default();
            *self.dead.entry(why).or_default() += 1;
            let decision = Decision {
                what: Decided::Retry,
                of: &[TaskState::Dead],
                user: "operator",
                reason: "the database was away",
            };
            self.catalogue.decide_task(letter.id, &decision).await.unwrap();
        }
    }
}
