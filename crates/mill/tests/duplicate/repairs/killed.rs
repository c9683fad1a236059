//! Killed at any step, a repair ends as if it had run once.

use std::sync::Arc;

use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::stores::AccountStores;
use queuekeeper_mill::users::MILL;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::{Audited, Store as _};

use super::dying::Dying;
use super::{Stores, assert_repaired, end, events, has, item, main, on_all, put_both, repairer, start};

/// More steps than a repair has.
const MOST_STEPS: usize = 20;

on_all! {
    async fn it_ends_as_if_it_had_run_once(world: World) {
        let mut world = world;
        let bare = Arc::clone(&world.bare[&main()]);
        let (capabilities, sink) = (bare.probe().await.unwrap(), Arc::new(world.catalogue.clone()));
        let dying = Arc::new(Dying::new(bare));
        let audited = Audited::new(Arc::clone(&dying), &capabilities, sink, MILL);
        let audited = Arc::new(audited.with_owned([ASIDE.parse().unwrap()]));
        let mut stores: Stores = world.stores.clone();
        stores.insert(main(), Arc::clone(&audited) as Arc<dyn queuekeeper_store::Store>);
        let accounts = world.duplicator.accounts.clone();
        world.duplicator.stores =
            AccountStores::new(world.catalogue.clone(), &accounts, stores, MillMetrics::default());
        let repairer = repairer(&world);
        let mut killed = 0;
        for step in 1..MOST_STEPS {
            let key = &*format!("step-{step}");
            put_both(&world, key, "the content").await;
            world.rot(key);
            let damaged = has(&world, &main(), &item(key)).await.unwrap().0;
            let task = start(&world, key, None).await;
            dying.die_at(step);
            let lease = Lease::unlimited();
            let first = tokio::select! {
                processed = repairer.process(&task, &lease) => Some(processed),
                () = dying.died() => None,
            };
            dying.die_at(0);
            killed += usize::from(first.is_none());
            let processed = if let Some(processed) = &first {
                processed.clone()
            } else {
                // As a process does from time to time: what was left is resolved when its lease has ended.
                world.tamper("UPDATE intents SET lease_end = 0".to_owned()).await;
                assert_eq!(audited.resolve_changes().await, Ok(0), "{step}");
                assert!(!world.catalogue.is_changing(&main(), &item(key)).await.unwrap(), "{step}");
                repairer.process(&task, &lease).await
            };
            assert_eq!(processed.outcome, TaskOutcome::Done, "{step}");
            end(&world, task, &processed).await;
            assert_repaired(&world, key, "the content", &damaged).await;
            // What is written has the digests that the store says it had: whether it was written cannot be told then,
            // and it is observed, besides or instead.
            assert!((2..=3).contains(&events(&world, item(key)).await), "{step}");
            if first.is_some() {
                break;
            }
        }
        // Before and behind each of three changes: the space, what goes aside, the copy. The space is made once.
        assert!((4..MOST_STEPS - 1).contains(&killed), "{killed}");
    }
}
