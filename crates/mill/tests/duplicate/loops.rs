//! The producer finds what is missing, and nothing else.

use std::time::Duration;

use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{EndedTask, TaskKind, TaskOutcome, TaskQueue, Tasks};
use queuekeeper_mill::policy::{Policies, read_policy};
use queuekeeper_mill::producer::{PRODUCER, Producer, Step};
use queuekeeper_mill::worker::{Lease, Processor as _};
use uuid::Uuid;

use super::world::{World, item, main, on_all, replica};

const LEASE: Duration = Duration::from_mins(5);

pub(super) fn producer(world: &World) -> Producer {
    let policy =
        read_policy(br#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}], "spacesToIgnore": ["tmp"]}"#);
    let policies = Policies::default();
    policies.set("account1", policy.unwrap());
    Producer {
        catalogue: world.catalogue.clone(),
        accounts: world.duplicator.accounts.clone(),
        policies,
        stores: world.duplicator.stores.clone(),
        frequency: Duration::ZERO,
        most_waiting: 10_000,
        part: 10,
        thorough_every: 0,
        holder: Uuid::now_v7(),
        lease: LEASE,
    }
}

/// The keys of all tasks that wait, each processed; the space has an empty one.
pub(super) async fn process(world: &World) -> Vec<(String, TaskOutcome)> {
    let mut processed = Vec::new();
    loop {
        let tasks =
            Tasks { queue: TaskQueue::DuplicationLow, account: "account1", kinds: &[TaskKind::Duplicate], limit: 100 };
        let taken = world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap();
        if taken.is_empty() {
            processed.sort_by(|one: &(String, _), other| one.0.cmp(&other.0));
            return processed;
        }
        for task in taken {
            let outcome = world.duplicator.process(&task, &Lease::unlimited()).await.outcome;
            let key = task.subject.key.as_ref().map_or_else(String::new, ToString::to_string);
            let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: None };
            assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
            processed.push((key, outcome));
        }
    }
}

/// One whole loop; the keys of its tasks.
pub(super) async fn run(world: &World, producer: &Producer) -> Vec<String> {
    assert_eq!(producer.step().await.unwrap(), Step::Advanced);
    assert_eq!(producer.step().await.unwrap(), Step::Advanced);
    assert_eq!(world.catalogue.morsels(PRODUCER).await.unwrap(), []);
    process(world).await.into_iter().map(|(key, _)| key).collect()
}

on_all! {
    async fn a_loop_asks_for_what_differs_and_the_next_one_for_nothing(world: World) {
        let mut world = world;
        world.duplicator.limit = BrakeLimit::default();
        let producer = producer(&world);
        for key in ["a", "b", "c", "z"] {
            world.put(&main(), true, &item(key), key, "text/plain").await;
        }
        world.stores[&main()].create_space(&"account1.tmp".parse().unwrap()).await.unwrap();
        world.stores[&main()].create_space(&"account2.theses".parse().unwrap()).await.unwrap();
        assert_eq!(run(&world, &producer).await, ["", "a", "b", "c", "z"]);
        for key in ["a", "b", "c", "z"] {
            assert_eq!(world.text(&replica(), &item(key)).await.map(|(text, _)| text).as_deref(), Some(key));
        }
        assert_eq!(run(&world, &producer).await, [""]);

        // Each thing that differs gets a task, and what is foreign none.
        world.put(&main(), true, &item("a"), "changed", "text/plain").await;
        world.put(&replica(), false, &item("b"), "changed there", "text/plain").await;
        world.bare[&replica()].delete(&item("c"), None).await.unwrap();
        world.put(&main(), false, &item("d"), "not recorded", "text/plain").await;
        world.put(&replica(), false, &item("foreign"), "mine", "text/plain").await;
        world.stores[&main()].delete(&item("z"), None).await.unwrap();
        assert_eq!(run(&world, &producer).await, ["", "a", "b", "c", "d", "z"]);
        for (key, text) in
            [("a", Some("changed")), ("c", Some("c")), ("d", Some("not recorded")), ("foreign", Some("mine"))]
        {
            assert_eq!(world.text(&replica(), &item(key)).await.map(|(text, _)| text).as_deref(), text, "{key}");
        }
        // What nobody recorded at the source is looked at each time.
        assert_eq!(run(&world, &producer).await, ["", "d"]);
        let thorough = Producer { thorough_every: 1, ..self::producer(&world) };
        assert_eq!(thorough.step().await.unwrap(), Step::Follows);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn a_morsel_goes_on_where_it_was_and_waits_while_the_queue_is_full_or_a_store_is_away(world: World) {
        let mut producer = producer(&world);
        for number in 0..15 {
            world.put(&main(), true, &item(&format!("{number:02}")), "x", "text/plain").await;
        }
        assert_eq!(producer.step().await.unwrap(), Step::Advanced);
        producer.most_waiting = 10;
        assert_eq!(producer.step().await.unwrap(), Step::Full);
        assert_eq!(producer.step().await.unwrap(), Step::Full);
        let left = world.catalogue.morsels(PRODUCER).await.unwrap();
        assert_eq!(left[0].marker.as_ref().map(ToString::to_string).as_deref(), Some("08"));
        assert_eq!(process(&world).await.len(), 10);
        // A listing that ends with an error leaves the morsel where it was.
        world.take_away();
        assert_eq!(producer.step().await.unwrap(), Step::Stuck(1));
        let stuck = world.catalogue.morsels(PRODUCER).await.unwrap();
        assert_eq!(stuck[0].marker, left[0].marker);
        assert!(stuck[0].error.as_ref().is_some_and(|error| error.contains("main")), "{stuck:?}");
        world.bring_back();
        assert_eq!(producer.step().await.unwrap(), Step::Advanced);
        assert_eq!(process(&world).await.len(), 6);
        assert_eq!(world.catalogue.morsels(PRODUCER).await.unwrap(), []);
    }
}
