//! Each row of the table of duplication, carried out.

use std::time::Duration;

use queuekeeper_catalogue::tasks::{Decided, Decision, TaskKind, TaskOutcome, TaskState};
use queuekeeper_mill::worker::Processed;
use queuekeeper_store::Digests;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement, Subject};
use uuid::Uuid;

use super::world::{item, main, on_all, replica};

fn done() -> Processed {
    TaskOutcome::Done.into()
}

fn text(text: &str, content_type: &str) -> (String, String) {
    (text.to_owned(), content_type.to_owned())
}

fn failure(processed: &Processed) -> &str {
    match &processed.outcome {
        TaskOutcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

on_all! {
    async fn a_copy_appears_follows_its_source_and_is_looked_at_without_being_written_again(world: World) {
        let a = item("a");
        world.put(&main(), true, &a, "one", "text/plain").await;
        // The space is made with the first item, or by a task of its own.
        assert_eq!(world.duplicate(Some("a")).await, done());
        assert_eq!(world.text(&replica(), &a).await, Some(text("one", "text/plain")));
        let recorded = world.catalogue.copy(&replica(), &a).await.unwrap().unwrap();
        assert_eq!(recorded.digests.iter().count(), 2, "{:?}", recorded.digests);

        let events = || async { world.catalogue.events_after(0, 1000).await.unwrap().len() };
        let before = events().await;
        assert_eq!(world.duplicate(Some("a")).await, done());
        assert_eq!(events().await, before);

        let kind = |kind: &str| queuekeeper_store::store::UserProperties {
            content_type: Some(kind.to_owned()),
            ..Default::default()
        };
        world.stores[&main()].set_properties(&a, &kind("text/html"), None).await.unwrap();
        assert_eq!(world.duplicate(Some("a")).await, done());
        assert_eq!(world.text(&replica(), &a).await, Some(text("one", "text/html")));

        // What is written over is kept aside.
        world.put(&main(), true, &a, "two", "text/plain").await;
        assert_eq!(world.duplicate(Some("a")).await, done());
        assert_eq!(world.text(&replica(), &a).await, Some(text("two", "text/plain")));
        let kept = world.catalogue.asides(&replica(), &a, None, 10).await.unwrap();
        assert_eq!((kept.len(), kept[0].reason.as_str()), (1, "overwrite"));
        let aside = queuekeeper_store::Item::new("x-queuekeeper-aside".parse().unwrap(), kept[0].kept_as.parse().unwrap());
        assert_eq!(world.text(&replica(), &aside).await, Some(text("one", "text/html")));
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn a_deletion_follows_after_its_time_and_the_brake_holds_what_is_too_much(world: World) {
        let mut world = world;
        assert_eq!(world.duplicate(None).await, done());
        for key in ["a", "b", "c"] {
            world.put(&main(), true, &item(key), key, "text/plain").await;
            assert_eq!(world.duplicate(Some(key)).await, done());
            world.stores[&main()].delete(&item(key), None).await.unwrap();
        }
        world.duplicator.delete_after = Duration::from_hours(1);
        let TaskOutcome::PutOff(wait) = world.duplicate(Some("a")).await.outcome else { panic!("deleted too early") };
        assert!(wait > Duration::from_mins(59) && wait <= Duration::from_hours(1), "{wait:?}");
        world.duplicator.delete_after = Duration::ZERO;
        for key in ["a", "b"] {
            assert_eq!(world.duplicate(Some(key)).await, done());
            assert_eq!(world.text(&replica(), &item(key)).await, None);
            assert_eq!(world.catalogue.asides(&replica(), &item(key), None, 10).await.unwrap()[0].reason, "delete");
        }
        assert!(matches!(world.duplicate(Some("c")).await.outcome, TaskOutcome::Held(_)));
        // An overwrite is as much destroyed as a deletion.
        world.put(&main(), true, &item("d"), "one", "text/plain").await;
        assert_eq!(world.duplicate(Some("d")).await, done());
        world.put(&main(), true, &item("d"), "encrypted", "text/plain").await;
        let TaskOutcome::Held(why) = world.duplicate(Some("d")).await.outcome else { panic!("written over") };
        assert!(why.contains("2 items of account1.theses in replica") && why.contains("the limit being 2"), "{why}");
        assert_eq!(world.text(&replica(), &item("d")).await, Some(text("one", "text/plain")));
        assert_eq!(world.text(&replica(), &item("c")).await, Some(text("c", "text/plain")));

        let held = world.catalogue.held_tasks("account1", &replica(), 0, 10).await.unwrap();
        assert_eq!(held.len(), 2);
        let decide = async |id, what| {
            let decision = Decision { what, of: &TaskState::ALL, user: "ada", reason: "it is right" };
            world.catalogue.decide_task(id, &decision).await.unwrap()
        };
        assert!(decide(held[0].id, Decided::Retry).await && decide(held[1].id, Decided::Drop).await);
        assert_eq!(world.process().await, done());
        assert_eq!(world.text(&replica(), &item("c")).await, None);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn what_the_source_lost_or_somebody_changed_is_never_carried_to_the_copy(world: World) {
        assert_eq!(world.duplicate(None).await, done());
        for key in ["lost", "changed", "rotten"] {
            world.put(&main(), true, &item(key), "one", "text/plain").await;
            assert_eq!(world.duplicate(Some(key)).await, done());
        }
        world.bare[&main()].delete(&item("lost"), None).await.unwrap();
        world.put(&main(), false, &item("changed"), "two", "text/plain").await;
        for (key, why) in [("lost", "has lost"), ("changed", "differs from its record")] {
            let processed = world.duplicate(Some(key)).await;
            assert!(failure(&processed).contains(why), "{processed:?}");
            // The source is to be checked.
            let check = &processed.follow_ups[0].subject;
            assert_eq!((check.kind, check.destination.as_ref()), (TaskKind::Bit, Some(&main())));
            assert_eq!(world.text(&replica(), &item(key)).await, Some(text("one", "text/plain")));
        }
        // While a change is under way, the store may have it before its record says so: nothing is wrong then.
        let under_way = Intent {
            id: Uuid::now_v7(),
            holder: Uuid::now_v7(),
            user: "depositor".to_owned(),
            subject: Subject { store: main(), space: item("changed").space, key: Some(item("changed").key) },
            change: Change::Update,
            seen: None,
            size: None,
            digests: Digests::default(),
            source: None,
            upload: None,
            properties: None,
        };
        world.catalogue.begin(&under_way, Duration::from_mins(1)).await.unwrap();
        let processed = world.duplicate(Some("changed")).await;
        assert!(matches!(processed.outcome, TaskOutcome::PutOff(_)) && processed.follow_ups.is_empty(), "{processed:?}");
        world.catalogue.settle(&under_way, &Settlement::NotDone).await.unwrap();
        assert!(failure(&world.duplicate(Some("changed")).await).contains("differs from its record"));

        // Bytes that rot in place: the store does not see it before they are read.
        world.bare[&replica()].delete(&item("rotten"), None).await.unwrap();
        world.rot("rotten");
        let processed = world.duplicate(Some("rotten")).await;
        assert!(!failure(&processed).is_empty());
        assert_eq!(processed.follow_ups.len(), 1, "{processed:?}");
        assert_eq!(world.text(&replica(), &item("rotten")).await, None);

        // Nobody knows what is foreign; it stays.
        world.put(&replica(), false, &item("foreign"), "mine", "text/plain").await;
        assert_eq!(world.duplicate(Some("foreign")).await, done());
        assert_eq!(world.text(&replica(), &item("foreign")).await, Some(text("mine", "text/plain")));
        // Nothing that is known says whether they are the same: both are read.
        for store in [main(), replica()] {
            world.put(&store, false, &item("old"), "the same", "text/plain").await;
        }
        assert_eq!(world.duplicate(Some("old")).await, done());
        assert_eq!(world.catalogue.asides(&replica(), &item("old"), None, 10).await.unwrap(), []);
    }
}
