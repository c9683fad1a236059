//! Changes in a bucket of S3 through the audited store, stopped at each request and at each write of the audit log.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_store::audited::{Audited, Resolved, Timing};
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::store::{Chunks, Put, UserProperties};
use queuekeeper_store::{Item, Key, SpaceName, Store, StoreFamilies};
use queuekeeper_testkit::s3::{Effect, Fault, Point, S3Server, Settings};

use super::crash::{OPERATIONS, Operation};
use super::setup::{TIMING, assert_recorded, chunks, item, space};
use crate::support::sink::MemorySink;
use crate::support::steps::Steps;

const BUCKET: &str = "preservation";

/// Time is real here, and nothing is waited for that does not come: on a busy machine it may come late.
const PATIENT: Timing = Timing { wait_limit: Duration::from_mins(1), ..TIMING };

/// One that has parts, besides those of every store.
const IN_PARTS: (&str, Operation) =
    ("add in parts", |store| Box::pin(async { store.put(&item("new"), parts(), Put::default()).await.map(drop) }));

/// Content of two parts.
fn parts() -> Chunks {
    let piece = Bytes::from(vec![7; 1 << 20]);
    stream::iter((0..9).map(move |_| Ok(piece.clone()))).boxed()
}

/// Where a process is killed.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// Behind so many writes of the audit log, each of which counts before it and after it.
    Sink(usize),
    /// At the request with this number, of those that change something.
    Request(u64, Effect),
}

/// The instants of a request at which its client dies: just before the change, and before the answer; and a change that
/// is made when its client is gone. Before the request arrives is where the write of the audit log before it ends.
const EFFECTS: [Effect; 3] = [
    Effect::Stall(Point::Commit, None),
    Effect::Stall(Point::Answer, None),
    Effect::Late { limit: None, is_answered: true },
];

type View = (Vec<SpaceName>, Vec<(String, String, UserProperties)>);

struct Fixture {
    server: S3Server,
    sink: Arc<MemorySink>,
    steps: Steps,
    largest_copy: u64,
}

/// Copies that are made by one request.
const WHOLE: u64 = 5 << 30;

/// The size of the parts that others are made of, in bytes.
const COPIED_PART: u64 = 4;

impl Fixture {
    async fn filled(largest_copy: u64) -> Self {
        let settings = Settings { maximum_copy_bytes: largest_copy, ..Settings::default() };
        let minimum_part_bytes = settings.minimum_part_bytes.min(largest_copy);
        let server = S3Server::start(Settings { minimum_part_bytes, ..settings }).await.unwrap();
        server.create_bucket(BUCKET);
        let steps = Steps::default();
        let sink = Arc::new(MemorySink::new(steps.clone()));
        let fixture = Self { server, sink, steps, largest_copy };
        let audited = fixture.process().await;
        for space in [space(), "empty".parse().unwrap()] {
            audited.create_space(&space).await.unwrap();
        }
        for (key, content) in [("old", &b"old content"[..]), ("older", b"older content")] {
            audited.put(&item(key), chunks(content), Put::default()).await.unwrap();
        }
        fixture
    }

    fn config(&self) -> S3Config {
        let url = format!("s3://{BUCKET}/copies");
        let mut config = S3Config::new("replica".parse().unwrap(), url.parse().unwrap());
        config.endpoint = Some(self.server.endpoint());
        config.credentials = Credentials::Key(AccessKey::new(self.server.access_key(), self.server.secret_key()));
        config.largest_copy = self.largest_copy;
        config
    }

    async fn store(&self) -> S3Store {
        let config = self.config();
        let metrics = StoreFamilies::default().store(&config.name);
        S3Store::new(config, metrics).await.unwrap()
    }

    /// What a process of its own has of the store.
    async fn process(&self) -> Audited<S3Store> {
        let store = self.store().await;
        let capabilities = store.probe().await.unwrap();
        Audited::new(Arc::new(store), &capabilities, self.sink.clone(), "tester").with_timing(PATIENT)
    }

    /// What can be seen of the store.
    async fn view(&self) -> View {
        let store = self.store().await;
        let mut items = Vec::new();
        for listed in store.list(&space(), b"", None).try_collect::<Vec<_>>().await.unwrap() {
            let head = store.head(&Item::new(space(), listed.key.clone())).await.unwrap().unwrap();
            items.push((listed.key.to_string(), head.etag.0, head.user));
        }
        (store.spaces().await.unwrap(), items)
    }

    fn contents(&self) -> BTreeMap<Item, Bytes> {
        let prefix = format!("copies/{}/", space());
        let keys = self.server.keys(BUCKET);
        let items = keys.iter().filter_map(|key| Some((key, key.strip_prefix(&prefix)?)));
        let item = |key: &str| Item::new(space(), key.parse::<Key>().unwrap());
        items.map(|(full, key)| (item(key), self.server.content(BUCKET, full).unwrap().into())).collect()
    }

    /// Runs an operation in a process that is killed there; the answer is whether it ended before.
    async fn run(&self, operation: Operation, stop: Stop) -> bool {
        let audited = self.process().await;
        let has_ended = match stop {
            Stop::Sink(steps) => {
                self.steps.stop_after(steps);
                let ended = self.steps.run(operation(&audited)).await;
                self.steps.go_on();
                drop(audited);
                ended.map(Result::unwrap).is_some()
            }
            Stop::Request(nth, effect) => {
                let fault = self.server.inject(Fault::new(effect).on_writes().nth(nth));
                let has_ended = tokio::select! {
                    () = fault.reached(1) => false,
                    result = operation(&audited) => result.map(|()| true).unwrap(),
                };
                drop(audited);
                if matches!(effect, Effect::Late { .. }) {
                    fault.release();
                }
                has_ended
            }
        };
        // The server notices that its client is gone, and ends what it did for it.
        while self.server.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.server.clear_faults();
        has_ended
    }
}

/// Runs one case from a new server to its end; the answer is whether the operation ended, and whether something
/// changed.
async fn case(name: &str, operation: Operation, largest_copy: u64, stop: Stop) -> (bool, bool) {
    let context = format!("{name}, copies of {largest_copy} bytes, {stop:?}");
    let fixture = Fixture::filled(largest_copy).await;
    let (before, events) = (fixture.view().await, fixture.sink.events().len());
    let has_ended = fixture.run(operation, stop).await;

    let left = fixture.sink.open_intents();
    fixture.sink.end_leases();
    let resolved = fixture.process().await.resolve_left().await.unwrap();
    assert_eq!((resolved.failed, resolved.observed), (0, 0), "{context}");
    if left.is_empty() {
        assert_eq!(resolved, Resolved::default(), "{context}");
    }
    let has_changed = fixture.view().await != before;
    let new = fixture.sink.events().split_off(events);
    assert_eq!(new.len(), usize::from(has_changed), "{context}: {new:?}");
    assert_recorded(&fixture.sink, &fixture.contents(), &context);
    assert_eq!(fixture.sink.open_intents(), [], "{context}");
    // An upload that the intent does not name yet is left to a sweep.
    let is_named = left.iter().any(|intent| intent.upload.is_some());
    assert!(fixture.server.uploads(BUCKET) <= usize::from(!is_named && !left.is_empty()), "{context}");
    (has_ended, has_changed)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stopped_at_any_request_is_recorded_exactly_when_it_was_done() {
    let whole = OPERATIONS.into_iter().chain([IN_PARTS]).map(|(name, operation)| (name, operation, WHOLE));
    let copies = OPERATIONS.into_iter().filter(|(name, _)| name.starts_with("copy"));
    for (name, operation, largest_copy) in whole.chain(copies.map(|(name, copy)| (name, copy, COPIED_PART))) {
        for effect in EFFECTS.map(Some).into_iter().chain([None]) {
            let mut outcomes = Vec::new();
            for stop in 0.. {
                let stop = match effect {
                    Some(effect) => Stop::Request(stop + 1, effect),
                    None => Stop::Sink(usize::try_from(stop).unwrap()),
                };
                let (has_ended, has_changed) = case(name, operation, largest_copy, stop).await;
                outcomes.push(has_changed);
                if has_ended {
                    break;
                }
            }
            let (last, stopped) = outcomes.split_last().unwrap();
            assert!(*last && !stopped.is_empty() && outcomes.is_sorted(), "{name}, {effect:?}: {outcomes:?}");
            let is_done = matches!(effect, Some(Effect::Stall(Point::Answer, _) | Effect::Late { .. }));
            let is_not_done = matches!(effect, Some(Effect::Stall(Point::Commit, _)));
            let has_changed = stopped[stopped.len() - 1];
            assert!(!(is_done && !has_changed || is_not_done && has_changed), "{name}, {effect:?}: {outcomes:?}");
        }
    }
}
