//! What an operator allows holds in every store, and what is left out stays what it is.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks};
use queuekeeper_mill::audit::Auditor;
use queuekeeper_mill::limits::{Hours, StoreLimits};
use queuekeeper_mill::producer::Producer;
use queuekeeper_mill::stats::StorageStats;
use queuekeeper_mill::why::CopyTasks;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::StoreName;

use super::loops::{producer, run};
use super::world::{World, item, main, on_all, replica};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Ten minutes before the store opens, on a Friday.
fn before() -> Timestamp {
    "2026-11-27T19:50:00Z".parse().unwrap()
}

fn within() -> Timestamp {
    "2026-11-27T20:00:00Z".parse().unwrap()
}

fn nights() -> StoreLimits {
    StoreLimits { hours: Some(Hours::new("UTC", &["Mon-Fri 20:00-06:00"]).unwrap()), ..StoreLimits::default() }
}

fn text_of(found: Option<(String, String)>) -> Option<String> {
    found.map(|(text, _)| text)
}

on_all! {
    async fn a_task_is_put_off_to_the_hours_of_the_store_that_it_reads_or_writes(world: World) {
        let mut world = world;
        world.put(&main(), true, &item("a"), "one", "text/plain").await;
        for store in [main(), replica()] {
            world.limit(&store, &nights(), before);
            let put_off = TaskOutcome::PutOff(Duration::from_mins(10));
            assert_eq!(world.duplicate(Some("a")).await.outcome, put_off, "{store}");
            assert_eq!(world.text(&replica(), &item("a")).await, None);
            let stats = StorageStats {
                catalogue: world.catalogue.clone(),
                accounts: world.duplicator.accounts.clone(),
                stores: world.duplicator.stores.clone(),
                clock: before,
            };
            let subject = TaskSubject {
                kind: TaskKind::StorageStats,
                account: "account1".to_owned(),
                space: "theses".parse().unwrap(),
                key: None,
                destination: Some(store.clone()),
            };
            world.request(Some(store.as_str()), replica()).await;
            let mut taken = world.take().await;
            taken.subject = subject;
            assert_eq!(stats.process(&taken, &Lease::unlimited()).await.outcome, put_off, "{store}");
            world.limit(&store, &StoreLimits::default(), before);
        }
        world.limit(&replica(), &nights(), within);
        world.request(Some("b"), replica()).await;
        world.put(&main(), true, &item("b"), "two", "text/plain").await;
        assert_eq!(world.process().await.outcome, TaskOutcome::Done);
        assert_eq!(text_of(world.text(&replica(), &item("b")).await).as_deref(), Some("two"));

        // What waits says so.
        let today = Timestamp::now().to_zoned(TimeZone::UTC).weekday();
        let day = DAYS[usize::try_from(today.wrapping_add(2).to_monday_zero_offset()).unwrap()];
        let hours = Some(Hours::new("UTC", &[format!("{day} 00:00-24:00")]).unwrap());
        world.limit(&replica(), &StoreLimits { hours, ..StoreLimits::default() }, Timestamp::now);
        world.request(Some("c"), replica()).await;
        let task = world.take().await;
        let outcome = world.duplicator.process(&task, &Lease::unlimited()).await.outcome;
        assert!(matches!(outcome, TaskOutcome::PutOff(_)), "{outcome:?}");
        let ended = EndedTask { task, outcome, follow_ups: Vec::new(), checked: None };
        assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        let (tasks, account, key) = (world.open_tasks(&["c"]).await, &world.duplicator.accounts["account1"], item("c").key);
        let (source, destination) = (&main(), &replica());
        let why = CopyTasks { account, key: &key, source, destination, tasks: &tasks, pauses: &[] }.why(Timestamp::now()).unwrap();
        assert!(why.starts_with("waits for the hours of replica, which begin at ") && why.ends_with(" 00:00:00 UTC"), "{why}");
    }

    async fn a_key_that_is_left_out_is_not_copied_by_events_nor_loops_and_what_is_there_of_it_stays(world: World) {
        let mut world = world;
        for (key, text) in [("a.tmp", "old"), ("deleted.tmp", "kept"), ("b", "one")] {
            world.put(&main(), true, &item(key), text, "text/plain").await;
            assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
        }
        let leave_out = vec!["*.tmp".parse().unwrap()];
        world.limit(&replica(), &StoreLimits { leave_out, ..StoreLimits::default() }, Timestamp::now);
        for key in ["a.tmp", "new.tmp", "b"] {
            world.put(&main(), true, &item(key), "new", "text/plain").await;
        }
        world.stores[&main()].delete(&item("deleted.tmp"), None).await.unwrap();

        let producer = producer(&world);
        let auditor = Auditor { accounts: producer.accounts.clone(), policies: producer.policies.clone() };
        for (key, copies) in [("a.tmp", 0), ("deleted.tmp", 0), ("b", 1)] {
            let subject = TaskSubject {
                kind: TaskKind::Audit,
                account: "account1".to_owned(),
                space: "theses".parse().unwrap(),
                key: Some(item(key).key),
                destination: Some(main()),
            };
            world.catalogue.put_tasks(&[NewTask { queue: TaskQueue::Audit, subject, source: None }]).await.unwrap();
            let tasks = Tasks { queue: TaskQueue::Audit, account: "account1", kinds: &[TaskKind::Audit], limit: 10 };
            let taken = world.catalogue.take_tasks(&tasks, "worker-1", Duration::from_mins(5)).await.unwrap();
            let processed = auditor.process(&taken[0], &Lease::unlimited()).await;
            assert_eq!(processed.follow_ups.len(), copies, "{key}");
        }
        let thorough = Producer { thorough_every: 1, ..producer };
        assert_eq!(run(&world, &thorough).await, ["", "b"]);
        // A task that was requested before does nothing to it, either.
        for key in ["a.tmp", "deleted.tmp", "new.tmp"] {
            assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
        }
        for (key, text) in [("a.tmp", Some("old")), ("deleted.tmp", Some("kept")), ("new.tmp", None), ("b", Some("new"))] {
            assert_eq!(text_of(world.text(&replica(), &item(key)).await).as_deref(), text, "{key}");
        }
        world.limit(&replica(), &StoreLimits::default(), Timestamp::now);
        assert_eq!(world.duplicate(Some("a.tmp")).await.outcome, TaskOutcome::Done);
        assert_eq!(text_of(world.text(&replica(), &item("a.tmp")).await).as_deref(), Some("new"));
    }

    async fn no_more_bytes_and_requests_a_second_are_spent_than_allowed_and_bytes_are_counted(world: World) {
        let mut world = world;
        let text = "x".repeat(50 << 10);
        for key in ["a", "b", "c"] {
            world.put(&main(), true, &item(key), &text, "text/plain").await;
        }
        let copy = async |world: &World| {
            let began = Instant::now();
            for key in ["a", "b", "c"] {
                assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
            }
            began.elapsed()
        };
        let bandwidth = Some("100KiB".parse().unwrap());
        let metrics = world.limit(&main(), &StoreLimits { bandwidth, ..StoreLimits::default() }, Timestamp::now);
        // What is read last is not paid for.
        assert!(copy(&world).await >= Duration::from_millis(950));
        let mut registry = prometheus_client::registry::Registry::default();
        metrics.register_in(&mut registry);
        let mut exposed = String::new();
        prometheus_client::encoding::text::encode(&mut exposed, &registry).unwrap();
        for direction in ["read", "written"] {
            let line = format!("mill_bytes_total{{direction=\"{direction}\"}} {}\n", 150 << 10);
            assert!(exposed.contains(&line), "{exposed}");
        }
        world.limit(&main(), &StoreLimits::default(), Timestamp::now);
        for key in ["a", "b", "c"] {
            world.stores[&replica()].delete(&item(key), None).await.unwrap();
        }
        // Each is looked at and written.
        let requests = NonZeroU64::new(10);
        world.limit(&replica(), &StoreLimits { requests, ..StoreLimits::default() }, Timestamp::now);
        assert!(copy(&world).await >= Duration::from_millis(490));
    }

    async fn another_copy_is_read_in_place_of_the_source_unless_it_is_not_the_same(world: World) {
        let mut world = world;
        let near: StoreName = "near".parse().unwrap();
        world.add_directory(&near).await;
        world.limit(&main(), &StoreLimits::default(), Timestamp::now);
        for key in ["a", "b"] {
            world.put(&main(), true, &item(key), "content", "text/plain").await;
            world.request(Some(key), near.clone()).await;
            assert_eq!(world.process().await.outcome, TaskOutcome::Done);
        }
        let read_from = Some(near.clone());
        world.limit(&main(), &StoreLimits { read_from, ..StoreLimits::default() }, Timestamp::now);
        // Damage that leaves size and time shows what is read.
        let path = world.bare[&near].directory().unwrap().join("account1.theses/a");
        let modified = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "damaged").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        world.request(Some("a"), replica()).await;
        let mut taken = world.take().await;
        let outcome = world.duplicator.process(&taken, &Lease::unlimited()).await.outcome;
        let TaskOutcome::Failed(why) = &outcome else { panic!("{outcome:?}") };
        assert!(why.contains("account1.theses/a differs from its record in near"), "{why}");
        assert_eq!(world.text(&replica(), &item("a")).await, None);
        taken.attempts = 2;
        assert_eq!(world.duplicator.process(&taken, &Lease::unlimited()).await.outcome, TaskOutcome::Done);
        assert_eq!(text_of(world.text(&replica(), &item("a")).await).as_deref(), Some("content"));
        // What it has not got any more is read from the source at once.
        world.bare[&near].delete(&item("b"), None).await.unwrap();
        assert_eq!(world.duplicate(Some("b")).await.outcome, TaskOutcome::Done);
        assert_eq!(text_of(world.text(&replica(), &item("b")).await).as_deref(), Some("content"));
    }
}
