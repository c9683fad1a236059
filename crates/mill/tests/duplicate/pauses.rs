//! What is paused is left alone by workers and producers, and goes on by itself.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_catalogue::tasks::{TaskOutcome, TaskQueue, TaskState};
use queuekeeper_mill::asides::{Asides, Removed};
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::producer::{PRODUCER, Step};
use queuekeeper_mill::stats::StorageStats;
use queuekeeper_mill::why::CopyTasks;
use queuekeeper_mill::worker::{Times, Workers};
use queuekeeper_store::StoreName;
use queuekeeper_testkit::wait::eventually;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::loops::{process, producer};
use super::world::{World, item, main, on_all, replica};

const MINUTE: Duration = Duration::from_mins(1);

/// How long what workers do may take: an attempt that fails is followed by the next one after a minute.
const LIMIT: Duration = Duration::from_mins(3);

fn in_replica() -> PauseScope {
    PauseScope::AccountIn("account1".to_owned(), replica())
}

/// Why the copy of an item waits, by its tasks, and whether a pause would stop one.
async fn why(world: &World, key: &str) -> (Option<String>, Option<String>) {
    let (tasks, pauses) = (world.open_tasks(&[key]).await, world.catalogue.pauses().await.unwrap());
    let (account, key) = (&world.duplicator.accounts["account1"], item(key).key);
    let (source, destination) = (&main(), &replica());
    let waiting = CopyTasks { account, key: &key, source, destination, tasks: &tasks, pauses: &pauses };
    (waiting.why(Timestamp::now()), waiting.paused())
}

on_all! {
    async fn workers_that_run_begin_nothing_that_is_paused_and_go_on_once_it_is_resumed(world: World) {
        let catalogue = &world.catalogue;
        let wake = Arc::new(Notify::new());
        let workers = Workers {
            catalogue: catalogue.clone(),
            processors: vec![Arc::new(world.duplicator.clone())],
            queues: vec![TaskQueue::DuplicationHigh],
            accounts: vec!["account1".to_owned()],
            number: 2,
            name: "worker-1".to_owned(),
            // They look again only when they are woken.
            times: Times { shortest_wait: MINUTE * 10, longest_wait: MINUTE * 10, ..Times::default() },
            wake: Arc::clone(&wake),
            metrics: queuekeeper_mill::metrics::MillMetrics::default(),
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(workers.run(stop.clone()));
        let mut notifications = catalogue.notifications();
        let waking = tokio::spawn(async move {
            loop {
                notifications.next().await;
                wake.notify_one();
            }
        });
        let copied = async |key: &str| world.text(&replica(), &item(key)).await.is_some();
        world.put(&main(), true, &item("a"), "one", "text/plain").await;
        world.request(Some("a"), replica()).await;
        eventually(LIMIT, "it is copied", async || copied("a").await).await;
        eventually(LIMIT, "its task is done", async || world.open_tasks(&["a"]).await.is_empty()).await;

        assert!(catalogue.pause(&in_replica(), "ada", "the rack moves").await.unwrap());
        world.put(&main(), true, &item("b"), "two", "text/plain").await;
        world.request(Some("b"), replica()).await;
        let is_set_aside = async || world.open_tasks(&["b"]).await[0].state == TaskState::Paused;
        eventually(LIMIT, "it is set aside", is_set_aside).await;
        let since = catalogue.pauses().await.unwrap()[0].since.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        let expected = format!("waits because ada paused account1 in replica at {since}: the rack moves");
        assert_eq!(why(&world, "b").await, (Some(expected.clone()), Some(expected.clone())));
        // Where nothing is to be done, nothing waits.
        assert_eq!(why(&world, "a").await, (None, Some(expected)));
        let open = &world.open_tasks(&["b"]).await[0];
        assert_eq!((open.attempts, open.task.errors.len(), copied("b").await), (0, 0, false));

        assert!(catalogue.resume(&in_replica()).await.unwrap().is_some());
        eventually(LIMIT, "it is copied", async || copied("b").await).await;
        eventually(LIMIT, "its task is done", async || world.open_tasks(&["b"]).await.is_empty()).await;
        stop.cancel();
        running.await.unwrap();
        waking.abort();
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn producers_ask_for_nothing_of_what_is_paused_and_ask_no_store_for_it(world: World) {
        let mut world = world;
        let near: StoreName = "near".parse().unwrap();
        world.add_directory(&near).await;
        world.limit(&near, &StoreLimits::default(), Timestamp::now);
        let producer = producer(&world);
        world.put(&main(), true, &item("a"), "one", "text/plain").await;
        assert_eq!(producer.step().await.unwrap(), Step::Advanced);
        world.catalogue.pause(&in_replica(), "ada", "the rack moves").await.unwrap();
        assert_eq!(producer.step().await.unwrap(), Step::Paused(1));
        let left = world.catalogue.morsels(PRODUCER).await.unwrap();
        assert_eq!((left.len(), &left[0].error), (1, &None));
        // A store that is paused may be away: nothing looks.
        let top = world.bare[&main()].directory().map(ToOwned::to_owned);
        if let Some(top) = &top {
            std::fs::rename(top, top.with_extension("away")).unwrap();
        }
        world.catalogue.pause(&PauseScope::Store(main()), "ada", "maintenance").await.unwrap();
        let stats = StorageStats {
            catalogue: world.catalogue.clone(),
            accounts: world.duplicator.accounts.clone(),
            stores: world.duplicator.stores.clone(),
            clock: Timestamp::now,
        };
        // Of the third store, which has no space.
        assert_eq!(stats.produce(Uuid::now_v7(), MINUTE).await, Ok(Some(0)));
        if let Some(top) = &top {
            std::fs::rename(top.with_extension("away"), top).unwrap();
        }
        for scope in [in_replica(), PauseScope::Store(main())] {
            assert!(world.catalogue.resume(&scope).await.unwrap().is_some());
        }
        assert_eq!(producer.step().await.unwrap(), Step::Advanced);
        let keys: Vec<_> = process(&world).await.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["", "a"]);
    }

    async fn nothing_is_read_from_a_store_that_is_paused_in_place_of_the_source(world: World) {
        let mut world = world;
        let near: StoreName = "near".parse().unwrap();
        world.add_directory(&near).await;
        let read_from = Some(near.clone());
        world.limit(&main(), &StoreLimits { read_from, ..StoreLimits::default() }, Timestamp::now);
        world.put(&main(), true, &item("a"), "content", "text/plain").await;
        world.request(Some("a"), near.clone()).await;
        assert_eq!(world.process().await.outcome, TaskOutcome::Done);
        // Damage that leaves size and time would be found by whoever reads it.
        let path = world.bare[&near].directory().unwrap().join("account1.theses/a");
        let modified = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "damaged").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        world.catalogue.pause(&PauseScope::Store(near), "ada", "it is slow").await.unwrap();
        assert_eq!(world.duplicate(Some("a")).await.outcome, TaskOutcome::Done);
        assert_eq!(world.text(&replica(), &item("a")).await.unwrap().0, "content");
    }

    async fn what_is_kept_aside_in_a_store_that_is_paused_stays_until_a_later_day(world: World) {
        let catalogue = &world.catalogue;
        for text in ["one", "two"] {
            world.put(&main(), true, &item("a"), text, "text/plain").await;
            assert_eq!(world.duplicate(Some("a")).await.outcome, TaskOutcome::Done);
        }
        let (accounts, stores) = (world.duplicator.accounts.clone(), world.stores.clone());
        let asides = Asides { catalogue: catalogue.clone(), accounts, stores };
        catalogue.pause(&in_replica(), "ada", "the rack moves").await.unwrap();
        assert_eq!(asides.remove(Uuid::now_v7(), MINUTE).await, Ok(Some(Removed::default())));
        let kept = catalogue.asides(&replica(), &item("a"), None, 9).await.unwrap();
        assert_eq!((kept.len(), kept[0].ended), (1, None));
    }
}
