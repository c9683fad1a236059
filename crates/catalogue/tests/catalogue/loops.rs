//! The loops of producers.

use std::time::Duration;

use queuekeeper_catalogue::loops::{Advance, Morsel};
use queuekeeper_catalogue::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject};
use queuekeeper_store::Key;
use uuid::Uuid;

use super::support::{LEASE, on_both};

const PRODUCER: &str = "duplication";

fn morsel(space: &str) -> Morsel {
    Morsel {
        account: "account".to_owned(),
        space: space.parse().unwrap(),
        source: "main".parse().unwrap(),
        destination: "replica".parse().unwrap(),
        marker: None,
        error: None,
        items: 10,
        scanned: 0,
    }
}

fn task(key: &str) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Duplicate,
        account: "account".to_owned(),
        space: "a".parse().unwrap(),
        key: Key::new(key.as_bytes()).ok(),
        destination: Some("replica".parse().unwrap()),
    };
    NewTask { queue: TaskQueue::DuplicationLow, subject, source: Some("main".parse().unwrap()) }
}

on_both! {
    async fn one_leads_and_what_it_saves_is_found_by_the_next_one(world: World) {
        let catalogue = &world.catalogue;
        let [one, other] = [(); 2].map(|()| Uuid::now_v7());
        let first = catalogue.lead(PRODUCER, one, LEASE).await.unwrap().unwrap();
        assert_eq!((first.epoch, first.number, first.is_due, first.started), (1, 0, true, None));
        assert_eq!(catalogue.lead(PRODUCER, other, LEASE).await.unwrap(), None);
        assert!(catalogue.begin_loop(&first, &[morsel("b"), morsel("a")], LEASE).await.unwrap());
        let again = catalogue.lead(PRODUCER, one, LEASE).await.unwrap().unwrap();
        assert_eq!((again.epoch, again.number, again.is_due, again.started.is_some()), (1, 1, false, true));
        assert_eq!(catalogue.morsels(PRODUCER).await.unwrap(), [morsel("a"), morsel("b")]);
        assert!(catalogue.advance(&again, &morsel("a"), &Advance::To("k".parse().unwrap(), 2), vec![task("j"), task("k")]).await.unwrap());
        assert!(catalogue.advance(&again, &morsel("b"), &Advance::Failed("it is\naway".to_owned()), vec![]).await.unwrap());

        // Another one leads once the lease has ended; the first one writes nothing any more.
        world.tamper("UPDATE loops SET lease_end = 0").await;
        assert!(!catalogue.advance(&again, &morsel("a"), &Advance::Done(4), vec![task("z")]).await.unwrap());
        let second = catalogue.lead(PRODUCER, other, LEASE).await.unwrap().unwrap();
        assert_eq!((second.epoch, second.number, second.is_due), (2, 1, false));
        assert_eq!(catalogue.lead(PRODUCER, one, LEASE).await.unwrap(), None);
        assert!(!catalogue.advance(&again, &morsel("a"), &Advance::Done(4), vec![task("z")]).await.unwrap());
        assert!(!catalogue.begin_loop(&again, &[], LEASE).await.unwrap());
        let left = catalogue.morsels(PRODUCER).await.unwrap();
        let marked = Morsel { marker: Some("k".parse().unwrap()), scanned: 2, ..morsel("a") };
        assert_eq!(left, [marked.clone(), Morsel { error: Some("it is away".to_owned()), ..morsel("b") }]);
        assert_eq!(world.number("SELECT COUNT(*) FROM tasks").await, 2);

        assert!(catalogue.advance(&second, &left[1], &Advance::To("c".parse().unwrap(), 3), vec![]).await.unwrap());
        assert!(catalogue.advance(&second, &marked, &Advance::Done(4), vec![]).await.unwrap());
        assert_eq!(catalogue.morsels(PRODUCER).await.unwrap(), [Morsel { marker: Some("c".parse().unwrap()), scanned: 3, ..morsel("b") }]);
        // How far the loop is counts what was looked at in morsels that are done, too, and nothing that was not
        // written.
        let state = catalogue.loop_state(PRODUCER).await.unwrap().unwrap();
        assert_eq!((state.number, state.is_led, state.morsels, state.items, state.scanned), (1, true, 2, 20, 9));
        assert_eq!(state.ended, None);
        assert!(catalogue.advance(&second, &morsel("b"), &Advance::Done(1), vec![]).await.unwrap());
        assert!(catalogue.loop_state(PRODUCER).await.unwrap().unwrap().ended.is_some());
        // The next loop is due after its time.
        assert!(catalogue.begin_loop(&second, &[morsel("a")], Duration::ZERO).await.unwrap());
        let third = catalogue.lead(PRODUCER, other, LEASE).await.unwrap().unwrap();
        assert_eq!((third.epoch, third.number, third.is_due), (2, 2, true));
        assert_eq!(catalogue.morsels(PRODUCER).await.unwrap(), [morsel("a")]);
        assert_eq!(catalogue.morsels("bit").await.unwrap(), []);
    }

    async fn the_next_loop_is_due_when_it_is_requested_and_soon_after_a_policy_was_changed(world: World) {
        let catalogue = &world.catalogue;
        let holder = Uuid::now_v7();
        let lead = async || catalogue.lead(PRODUCER, holder, LEASE).await.unwrap().unwrap();
        let day = Duration::from_hours(24);
        assert!(catalogue.begin_loop(&lead().await, &[], day).await.unwrap());
        let next = async || catalogue.loop_state(PRODUCER).await.unwrap().unwrap().next.unwrap();
        let planned = next().await;
        // The policy of another one was recorded meanwhile: this one is not in force.
        assert!(!catalogue.record_policy("one", Some(7), "ada", "why", "{}").await.unwrap());
        assert_eq!(next().await, planned);
        assert!(catalogue.record_policy("one", None, "ada", "why", "{}").await.unwrap());
        let soon = next().await;
        assert!(planned.duration_since(soon) > jiff::SignedDuration::from_hours(23), "{soon} {planned}");
        assert!(!lead().await.is_due);
        catalogue.request_loop("bit").await.unwrap();
        assert!(!lead().await.is_due);
        catalogue.request_loop(PRODUCER).await.unwrap();
        assert!(lead().await.is_due);
        // One that is due already is not put off.
        let due = next().await;
        assert!(catalogue.record_policy("two", None, "ada", "why", "{}").await.unwrap());
        assert_eq!(next().await, due);
    }
}
