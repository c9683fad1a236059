//! What spaces have is counted once a day.

use std::time::Duration;

use queuekeeper_catalogue::tasks::{EndedTask, TaskKind, TaskOutcome, TaskQueue, Tasks};
use queuekeeper_mill::stats::{Noop, PRODUCER, StorageStats, noop};
use queuekeeper_mill::worker::{Lease, Processor};
use uuid::Uuid;

use super::world::{item, main, on_all, replica};

const LEASE: Duration = Duration::from_mins(1);

on_all! {
    async fn spaces_are_counted_once_a_day_and_their_figures_are_read_again(world: World) {
        let catalogue = &world.catalogue;
        let stats = StorageStats {
            catalogue: catalogue.clone(),
            accounts: world.duplicator.accounts.clone(),
            stores: world.duplicator.stores.clone(),
            clock: jiff::Timestamp::now,
        };
        world.stores[&replica()].create_space(&item("a").space).await.unwrap();
        // Also what was changed past the program.
        world.put(&main(), true, &item("a"), "one", "text/plain").await;
        world.put(&main(), false, &item("b"), "three", "text/plain").await;
        let process = async || {
            let kinds = [TaskKind::StorageStats, TaskKind::Noop];
            let tasks = Tasks { queue: TaskQueue::DuplicationLow, account: "account1", kinds: &kinds, limit: 10 };
            let taken = catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap();
            let mut ended = Vec::new();
            for task in taken {
                let processor: &dyn Processor = if task.subject.kind == TaskKind::Noop { &Noop } else { &stats };
                let outcome = processor.process(&task, &Lease::unlimited()).await.outcome;
                assert_eq!(outcome, TaskOutcome::Done);
                ended.push(EndedTask { task, outcome, follow_ups: Vec::new(), checked: None });
            }
            catalogue.end_tasks(&ended).await.unwrap().len()
        };
        let first = Uuid::now_v7();
        assert_eq!(stats.produce(first, LEASE).await, Ok(Some(2)));
        assert_eq!(process().await, 2);
        let found = catalogue.space_stats("account1", 10).await.unwrap();
        let found: Vec<_> = found.iter().map(|of| (of.store.clone(), of.space.as_str(), of.items, of.bytes)).collect();
        assert_eq!(found, [(main(), "theses", 2, 8), (replica(), "theses", 0, 0)]);
        // Whoever asks next.
        assert_eq!(stats.produce(first, LEASE).await, Ok(None));
        catalogue.resign(PRODUCER, first).await.unwrap();
        assert_eq!(stats.produce(Uuid::now_v7(), LEASE).await, Ok(None));
        // Counted again on the same day, the new figure is the one.
        let subject = ("account1", main(), "theses".parse().unwrap());
        catalogue.record_space_stats(subject.0, &subject.1, &subject.2, (5, 50)).await.unwrap();
        let found = catalogue.space_stats("account1", 10).await.unwrap();
        assert_eq!((found.len(), found[0].items, found[0].bytes), (2, 5, 50));

        let account = world.duplicator.accounts.values().next().unwrap();
        catalogue.put_tasks(&[noop(account).unwrap()]).await.unwrap();
        assert_eq!(process().await, 1);
        assert_eq!(process().await, 0);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}
