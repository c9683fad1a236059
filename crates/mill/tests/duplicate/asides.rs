//! What was put aside is kept for its time, and then removed by itself.

use std::time::Duration;

use queuekeeper_catalogue::asides::{Aside, AsideEnd};
use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_mill::asides::{Asides, PRODUCER, Removed};
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_store::Item;
use uuid::Uuid;

use super::world::{item, main, on_all, replica};

const LEASE: Duration = Duration::from_mins(1);

on_all! {
    async fn what_is_aside_is_removed_when_its_time_is_over_and_nothing_else_in_that_space(world: World) {
        let mut world = world;
        world.duplicator.limit = BrakeLimit { items: 10, percent: 0 };
        for (key, hours) in [("begun", 0), ("changed", 0), ("gone", 0), ("kept", 1)] {
            world.duplicator.delete_after = Duration::from_hours(hours);
            for text in ["one", "two"] {
                world.put(&main(), true, &item(key), text, "text/plain").await;
                assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
            }
        }
        let catalogue = &world.catalogue;
        let aside = async |key: &str| {
            let found: [Aside; 1] =
                catalogue.asides(&replica(), &item(key), None, 9).await.unwrap().try_into().unwrap();
            let [found] = found;
            let lies = Item::new(ASIDE.parse().unwrap(), found.kept_as.parse().unwrap());
            (found, lies)
        };
        // One was begun by a process that died, one never arrived, one is no longer what was put there, one is no
        // concern of ours.
        assert!(catalogue.leave_aside(aside("begun").await.0.id).await.unwrap());
        let replica_itself = &world.bare[&replica()];
        replica_itself.delete(&aside("gone").await.1, None).await.unwrap();
        replica_itself.delete(&aside("changed").await.1, None).await.unwrap();
        world.put(&replica(), false, &aside("changed").await.1, "theirs", "text/plain").await;
        let foreign = Item::new(ASIDE.parse().unwrap(), "mine".parse().unwrap());
        world.put(&replica(), false, &foreign, "mine", "text/plain").await;

        let asides = Asides { catalogue: catalogue.clone(), accounts: world.duplicator.accounts.clone(), stores: world.stores.clone() };
        let first = Uuid::now_v7();
        let removed = asides.remove(first, LEASE).await.unwrap();
        assert_eq!(removed, Some(Removed { removed: 1, absent: 1, failed: 1, foreign: 1 }));
        let (kept, lies) = aside("kept").await;
        assert_eq!((kept.ended, world.text(&replica(), &lies).await.unwrap().0.as_str()), (None, "one"));
        let (changed, lies) = aside("changed").await;
        assert_eq!((changed.ended, world.text(&replica(), &lies).await.unwrap().0.as_str()), (None, "theirs"));
        assert_eq!(world.text(&replica(), &foreign).await.unwrap().0, "mine");
        assert_eq!(aside("gone").await.0.ended.unwrap().1, AsideEnd::Absent);
        let (removed, lies) = aside("begun").await;
        assert_eq!((removed.ended.unwrap().1, world.text(&replica(), &lies).await), (AsideEnd::Removed, None));
        let events = catalogue.events(&Events::Item(replica(), lies), None, 9).await.unwrap();
        assert_eq!(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["delete", "copy"]);
        // The copies themselves are untouched.
        assert_eq!(world.text(&replica(), &item("begun")).await.unwrap().0, "two");

        assert_eq!(asides.remove(first, LEASE).await, Ok(None));
        catalogue.resign(PRODUCER, first).await.unwrap();
        assert_eq!(asides.remove(Uuid::now_v7(), LEASE).await, Ok(None));
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}
