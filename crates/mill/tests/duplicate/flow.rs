//! From a change to its copy: the log is followed, and workers do the rest.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::tasks::{TaskKind, TaskOutcome, TaskQueue, Tasks};
use queuekeeper_mill::audit::{Auditor, FOLLOWER};
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::{Policies, Policy, read_policy};
use queuekeeper_mill::producer::{PRODUCER, Producer, Step};
use queuekeeper_mill::worker::{Lease, Processor as _, Times, Workers};
use queuekeeper_store::{Audited, Store as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::loops;
use super::world::{item, main, on_all, replica};

fn policy() -> Policy {
    read_policy(br#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#).unwrap()
}

on_all! {
    async fn what_is_written_changed_and_deleted_is_so_in_the_copy_and_each_event_is_followed_once(world: World) {
        let policies = Policies::default();
        policies.set("account1", policy());
        let auditor = || Auditor {
            accounts: world.duplicator.accounts.clone(),
            policies: policies.clone(),
        };
        let follower = auditor();
        let follow = || world.catalogue.follow_audit(FOLLOWER, 1000, |event| follower.task(event).into_iter().collect());
        // It begins with what comes after its first look. Until then all that has happened waits for one.
        let unfollowed = || world.catalogue.unfollowed(FOLLOWER);
        assert_eq!(unfollowed().await.unwrap(), 1);
        assert_eq!(follow().await.unwrap().events, 0);
        assert_eq!(unfollowed().await.unwrap(), 0);
        for key in ["a", "b", "c"] {
            world.put(&main(), true, &item(key), "one", "text/plain").await;
        }
        world.put(&main(), true, &item("b"), "two", "text/plain").await;
        world.stores[&main()].delete(&item("c"), None).await.unwrap();
        assert_eq!(unfollowed().await.unwrap(), 5);
        let followed = follow().await.unwrap();
        assert_eq!((followed.events, followed.tasks), (5, 3));
        assert_eq!(unfollowed().await.unwrap(), 0);
        assert_eq!(follow().await.unwrap().events, 0);

        let (catalogue, wake, stop) = (world.catalogue.clone(), Arc::new(Notify::new()), CancellationToken::new());
        let times =
            Times { shortest_wait: Duration::from_millis(10), longest_wait: Duration::from_millis(10), ..Times::default() };
        let workers = Workers {
            catalogue: catalogue.clone(),
            processors: vec![Arc::new(auditor()), Arc::new(world.duplicator.clone())],
            queues: vec![TaskQueue::Audit, TaskQueue::DuplicationHigh],
            accounts: vec!["account1".to_owned()],
            number: 3,
            name: "worker-1".to_owned(),
            times,
            wake,
            metrics: MillMetrics::default(),
        };
        let run = tokio::spawn(workers.run(stop.clone()));
        let empty = async {
            loop {
                let figures = catalogue.task_figures().await.unwrap();
                if figures.iter().all(|of| of.waiting + of.dead + of.held == 0) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // An attempt that fails is followed by the next one after a minute.
        let ended = tokio::time::timeout(Duration::from_mins(3), empty).await;
        let left = world.open_tasks(&["a", "b", "c"]).await;
        assert!(ended.is_ok(), "tasks are left: {left:#?}");
        stop.cancel();
        run.await.unwrap();
        for (key, text) in [("a", Some("one")), ("b", Some("two")), ("c", None)] {
            assert_eq!(world.text(&replica(), &item(key)).await.map(|(text, _)| text).as_deref(), text, "{key}");
        }
        // What the mill did leads to nothing.
        let followed = follow().await.unwrap();
        assert_eq!((followed.events > 0, followed.tasks), (true, 0));
        // What an operator does whose login is its name leads to a look.
        let bare = &world.bare[&replica()];
        let capabilities = bare.probe().await.unwrap();
        let operator = Audited::new(Arc::clone(bare), &capabilities, Arc::new(catalogue.clone()), "mill");
        operator.delete(&item("a"), None).await.unwrap();
        assert_eq!(follow().await.unwrap().tasks, 1);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn while_its_policy_is_not_known_an_event_waits_and_no_loop_begins(world: World) {
        let policies = Policies::default();
        let auditor = Auditor { accounts: world.duplicator.accounts.clone(), policies: policies.clone() };
        let follow = || world.catalogue.follow_audit(FOLLOWER, 1000, |event| auditor.task(event).into_iter().collect());
        assert_eq!(follow().await.unwrap().events, 0);
        // What the mill wrote, too: other copies may be made of it.
        world.put(&main(), true, &item("a"), "one", "text/plain").await;
        assert_eq!(follow().await.unwrap().tasks, 1);
        let tasks = Tasks { queue: TaskQueue::Audit, account: "account1", kinds: &[TaskKind::Audit], limit: 10 };
        let task = world.catalogue.take_tasks(&tasks, "worker-1", Duration::from_mins(5)).await.unwrap().remove(0);
        let waits = async || {
            let processed = auditor.process(&task, &Lease::unlimited()).await;
            matches!(processed.outcome, TaskOutcome::PutOff(_)) && processed.follow_ups.is_empty()
        };
        let producer = Producer { policies: policies.clone(), ..loops::producer(&world) };
        assert!(waits().await);
        let error = producer.step().await.unwrap_err();
        assert!(error.contains("account1"), "{error}");
        assert_eq!(world.catalogue.loop_state(PRODUCER).await.unwrap().unwrap().started, None);

        // A file that cannot be read stops its account only: a loop passes it by.
        policies.set_unreadable("account1");
        assert!(waits().await);
        assert_eq!(producer.step().await, Ok(Step::Idle));
        assert!(world.catalogue.loop_state(PRODUCER).await.unwrap().unwrap().started.is_some());

        policies.set("account1", policy());
        policies.set_unreadable("account1");
        let processed = auditor.process(&task, &Lease::unlimited()).await;
        assert_eq!((processed.outcome, processed.follow_ups.len()), (TaskOutcome::Done, 1));
    }
}
