//! Checks on request, by workers.

use queuekeeper_catalogue::bit::{NewRequestedCheck, RequestedCheck, RequestedCheckState};
use queuekeeper_catalogue::tasks::{TaskKind, TaskOutcome};
use queuekeeper_store::audit::Change;
use queuekeeper_store::error::Operation;
use queuekeeper_store::noted::NotedChange;
use queuekeeper_store::store::{EntityTag, Written};
use queuekeeper_store::{Digests, Key};
use queuekeeper_testkit::faulty::{Fault, Rule};

use super::world::Bit;
use crate::duplicate::world::{World, item, main, on_all, replica, space};

/// Keys as depositors write them.
const KEYS: [&str; 5] = ["a", "b/c d", "b/ü%20\"<i>", "b\\t", "z"];

async fn ask(world: &World, key: Option<&str>) -> bool {
    let (store, space, key) = (main(), "theses".parse().unwrap(), key.map(|key| item(key).key));
    let (account, user, reason) = ("account1", "ada", "the disk was moved");
    let new = NewRequestedCheck {
        account,
        store: &store,
        space: &space,
        key: key.as_ref(),
        user,
        reason,
        items: 5,
        bytes: 35,
    };
    world.catalogue.request_check(&new).await.unwrap()
}

async fn requested(world: &World, key: Option<&str>) -> RequestedCheck {
    let (space, key) = ("theses".parse().unwrap(), key.map(|key| item(key).key));
    world.catalogue.requested_check("account1", &main(), &space, key.as_ref()).await.unwrap().unwrap()
}

/// Has all of it done; how many tasks that took.
async fn settle(bit: &Bit) -> usize {
    let mut done = 0;
    while bit.process(TaskKind::Check).await.is_some() {
        done += 1;
    }
    done
}

on_all! {
    async fn a_space_is_read_whatever_its_policy_says_and_what_is_wrong_is_counted(world: World) {
        let bit = Bit::new(&world, "provider");
        for key in KEYS {
            world.put(&main(), true, &item(key), "content", "text/plain").await;
        }
        assert!(ask(&world, None).await);
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.items, check.proven, check.is_listed), (RequestedCheckState::UnderWay, 5, 0, false));
        assert_eq!((check.user.as_str(), check.reason.as_str()), ("ada", "the disk was moved"));
        assert!(!ask(&world, None).await, "the same is under way");
        assert_eq!(settle(&bit).await, 1);
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.proven_bytes, check.wrong), (RequestedCheckState::Ended, 5, 35, 0));
        assert_eq!(bit.faults.calls(Operation::Get), 5);
        let proven = world.catalogue.copy(&main(), &item("b\\t")).await.unwrap().unwrap().proven;
        assert_eq!(proven.map(|(_, proof)| proof).as_deref(), Some("read"));

        world.rot("a");
        world.bare[&main()].delete(&item("z"), None).await.unwrap();
        world.put(&main(), false, &item("foreign"), "content", "text/plain").await;
        assert!(ask(&world, None).await, "what has ended is done anew");
        bit.process(TaskKind::Check).await.unwrap();
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.wrong, check.pending), (RequestedCheckState::UnderWay, 3, 0, 3));
        // One of them is requested by itself, too, and is in both.
        assert!(ask(&world, Some("z")).await);
        settle(&bit).await;
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.wrong, check.pending), (RequestedCheckState::Ended, 3, 3, 0));
        let check = requested(&world, Some("z")).await;
        assert_eq!((check.state, check.proven, check.wrong), (RequestedCheckState::Ended, 0, 1));
        assert_eq!(bit.errors().await.len(), 3);

        // It is right again.
        world.rot("a");
        assert!(ask(&world, Some("a")).await);
        settle(&bit).await;
        assert_eq!((requested(&world, Some("a")).await.proven, bit.errors().await.len()), (1, 2));
        assert!(ask(&world, Some("none")).await);
        settle(&bit).await;
        assert_eq!((requested(&world, Some("none")).await.gone, bit.errors().await.len()), (1, 2));
        let all = world.catalogue.requested_checks("account1", None, 10).await.unwrap();
        let keys: Vec<_> = all.iter().map(|check| check.key.as_ref().map(Key::to_string).unwrap_or_default()).collect();
        assert_eq!(keys, ["none", "a", "z", ""]);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }

    async fn a_large_space_is_gone_through_page_by_page_and_goes_on_where_it_was(world: World) {
        let bit = Bit::new(&world, "read");
        for key in ["a", "z"] {
            world.put(&main(), true, &item(key), "content", "text/plain").await;
        }
        // A page has so many keys that are recorded of any store.
        let change = |number: usize| NotedChange {
            space: space(),
            key: Some(Key::new(format!("m{number:04}").into_bytes()).unwrap()),
            change: Change::Add,
            seen: None,
            after: Some(Written { size: 7, etag: EntityTag("tag".to_owned()), digests: Digests::default() }),
        };
        let changes: Vec<_> = (0..1000).map(change).collect();
        world.catalogue.record_changes(&replica(), "ingest", &changes).await.unwrap();
        ask(&world, None).await;
        // A worker is killed before it writes down what it did.
        let given_back = bit.process_as(TaskKind::Check, TaskOutcome::GivenBack).await;
        assert!(given_back.checked.unwrap().requested.unwrap().rest.is_some());
        assert_eq!((requested(&world, None).await.marker, requested(&world, None).await.proven), (None, 0));
        bit.process(TaskKind::Check).await.unwrap();
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.is_listed), (RequestedCheckState::UnderWay, 1, false));
        assert_eq!(check.marker, Some(Key::new(*b"m0998").unwrap()));
        assert!(!ask(&world, None).await);
        assert_eq!(requested(&world, None).await.marker, check.marker, "it goes on as it is");
        let other = Bit::new(&world, "read");
        settle(&other).await;
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.is_listed), (RequestedCheckState::Ended, 2, true));
        assert_eq!(other.faults.calls(Operation::Get), 1);
    }

    async fn a_check_that_cannot_be_made_stops_and_is_no_success(world: World) {
        let bit = Bit::new(&world, "read");
        world.put(&main(), true, &item("a"), "content", "text/plain").await;
        ask(&world, None).await;
        bit.faults.add(Rule::new(Fault::BreakAt(0)).on(Operation::List));
        for _attempt in 0..3 {
            let failed = bit.process(TaskKind::Check).await.unwrap();
            assert!(matches!(failed.outcome, TaskOutcome::Failed(_)), "{failed:?}");
            world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'waiting'".to_owned()).await;
        }
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.is_listed), (RequestedCheckState::Stopped, 0, false));
        bit.faults.clear();
        assert!(ask(&world, None).await);
        assert_eq!(settle(&bit).await, 1);
        assert_eq!(requested(&world, None).await.state, RequestedCheckState::Ended);

        // The same of one item, which a page leaves to a task of its own.
        world.rot("a");
        ask(&world, None).await;
        bit.process(TaskKind::Check).await.unwrap();
        bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Head));
        for _attempt in 0..3 {
            bit.process(TaskKind::Check).await.unwrap();
            world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'waiting'".to_owned()).await;
        }
        let check = requested(&world, None).await;
        assert_eq!((check.state, check.proven, check.wrong, check.pending), (RequestedCheckState::Stopped, 0, 0, 1));
    }
}
