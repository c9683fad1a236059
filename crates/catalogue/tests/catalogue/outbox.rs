//! Messages and deposits.

use std::time::Duration;

use queuekeeper_catalogue::ErrorKind;
use queuekeeper_catalogue::deposits::NewDeposit;
use queuekeeper_catalogue::outbox::{Attempt, NewMessage};
use uuid::Uuid;

use super::support::{LEASE, on_both};

fn message(name: &str) -> NewMessage {
    NewMessage {
        name: name.to_owned(),
        kind: "mail".to_owned(),
        subject: Uuid::now_v7(),
        batch: "bid-1".to_owned(),
        profile: "demo".to_owned(),
        recipient: "keeper@example.edu".to_owned(),
        content: "Subject: a report\r\n\r\nAll is well.".to_owned(),
        settled: None,
    }
}

fn deposit(depositor: &str, key: Option<&str>) -> NewDeposit {
    NewDeposit {
        batch: Uuid::now_v7(),
        depositor: depositor.to_owned(),
        idempotency_key: key.map(str::to_owned),
        profile: "profile".to_owned(),
        objects: 3,
        bytes: 1 << 40,
    }
}

on_both! {
    async fn a_message_is_written_once_and_due_until_it_is_delivered(world: World) {
        let (catalogue, first) = (&world.catalogue, message("JOB/COMPLETED/0"));
        assert!(catalogue.queue_message(&first).await.unwrap());
        let other_content = NewMessage { content: "other".to_owned(), ..first.clone() };
        assert!(!catalogue.queue_message(&other_content).await.unwrap());
        let taken = catalogue.take_messages("mail", 10, Duration::ZERO).await.unwrap();
        assert_eq!((taken.len(), &taken[0].message, taken[0].attempts), (1, &first, 1));
        // The lease has ended: it is due again, and leased for longer this time.
        let again = catalogue.take_messages("mail", 10, LEASE).await.unwrap();
        assert_eq!((again.len(), again[0].attempts), (1, 2));
        assert_eq!(catalogue.take_messages("mail", 10, LEASE).await.unwrap(), []);
        let id = again[0].id;
        let later = |why, settled| Attempt::Later { why, settled, after: Duration::ZERO };
        catalogue.message_tried(id, later("connection refused", Some("{}"))).await.unwrap();
        catalogue.message_tried(id, later("busy", None)).await.unwrap();
        // Those of another kind are another sender's.
        assert_eq!(catalogue.take_messages("callback", 10, LEASE).await.unwrap(), []);
        let taken = catalogue.take_messages("mail", 10, Duration::ZERO).await.unwrap();
        assert_eq!((taken[0].attempts, taken[0].message.settled.as_deref()), (3, Some("{}")));
        assert_eq!(catalogue.waiting_messages().await.unwrap()[0].count, 1);
        catalogue.message_tried(id, Attempt::Delivered { note: Some("one refused it") }).await.unwrap();
        catalogue.message_tried(id, later("late", None)).await.unwrap();
        catalogue.message_tried(id, Attempt::GivenUp { why: "late" }).await.unwrap();
        assert_eq!(catalogue.take_messages("mail", 10, LEASE).await.unwrap(), []);
        let known = catalogue.message(&first.name).await.unwrap().unwrap();
        assert_eq!((known.is_delivered, known.has_ended, known.error.as_deref()), (true, true, Some("one refused it")));
        assert_eq!(catalogue.waiting_messages().await.unwrap(), []);
    }

    async fn a_message_that_was_given_up_is_never_due_and_one_that_has_ended_can_be_removed(world: World) {
        let catalogue = &world.catalogue;
        for name in ["a", "b", "c"] {
            catalogue.queue_message(&message(name)).await.unwrap();
        }
        let taken = catalogue.take_messages("mail", 2, Duration::ZERO).await.unwrap();
        catalogue.message_tried(taken[0].id, Attempt::GivenUp { why: "no such user" }).await.unwrap();
        catalogue.message_tried(taken[1].id, Attempt::Delivered { note: None }).await.unwrap();
        let known = catalogue.message("a").await.unwrap().unwrap();
        assert_eq!((known.is_delivered, known.has_ended, known.error.as_deref()), (false, true, Some("no such user")));
        let due = catalogue.take_messages("mail", 10, LEASE).await.unwrap();
        assert_eq!(due.iter().map(|due| due.message.name.as_str()).collect::<Vec<_>>(), ["c"]);

        assert_eq!(catalogue.ended_messages(LEASE, None, 10).await.unwrap(), []);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (mut ended, mut last) = (Vec::new(), None);
        while let Some(next) = catalogue.ended_messages(Duration::ZERO, last.as_ref(), 1).await.unwrap().pop() {
            ended.push(next.id);
            last = Some(next);
        }
        ended.sort_unstable();
        assert_eq!((ended, last.unwrap().batch.as_str()), (vec![taken[0].id, taken[1].id], "bid-1"));
        for id in [taken[0].id, due[0].id] {
            catalogue.remove_message(id).await.unwrap();
        }
        assert!(catalogue.message("a").await.unwrap().is_none() && catalogue.message("c").await.unwrap().is_some());

        assert_eq!(catalogue.unended_messages("mail", LEASE, None, 10).await.unwrap(), []);
        let waiting = catalogue.unended_messages("mail", Duration::ZERO, None, 10).await.unwrap();
        assert_eq!(waiting.iter().map(|message| message.id).collect::<Vec<_>>(), [due[0].id]);
        assert_eq!(catalogue.unended_messages("mail", Duration::ZERO, waiting.last(), 10).await.unwrap(), []);
    }

    async fn many_that_take_messages_at_once_get_each_once(world: World) {
        for number in 0..40 {
            world.catalogue.queue_message(&message(&number.to_string())).await.unwrap();
        }
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let catalogue = world.catalogue.clone();
            tasks.spawn(async move { catalogue.take_messages("mail", 7, LEASE).await.unwrap() });
        }
        let mut ids = tasks.join_all().await.concat().iter().map(|taken| taken.id).collect::<Vec<_>>();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 40);
    }

    async fn a_deposit_that_is_sent_again_is_the_same_batch(world: World) {
        let (catalogue, first) = (&world.catalogue, deposit("ada", Some("key")));
        assert_eq!(catalogue.record_deposit(&first).await.unwrap(), first.batch);
        for again in [first.clone(), deposit("ada", Some("key")), NewDeposit { batch: first.batch, ..deposit("ada", None) }] {
            assert_eq!(catalogue.record_deposit(&again).await.unwrap(), first.batch);
        }
        for other in [deposit("ada", None), deposit("bob", Some("key")), deposit("ada", None)] {
            assert_eq!(catalogue.record_deposit(&other).await.unwrap(), other.batch);
        }
        let stolen = NewDeposit { depositor: "eve".to_owned(), ..first.clone() };
        let error = catalogue.record_deposit(&stolen).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Refused(_)), "{error}");
        catalogue.deposit_ended(first.batch, "Failed").await.unwrap();
        catalogue.deposit_ended(first.batch, "Completed").await.unwrap();
        let (mut listed, mut before) = (Vec::new(), None);
        while let Some(deposit) = catalogue.deposits("ada", before.as_ref(), 1).await.unwrap().pop() {
            before = Some(deposit.clone());
            listed.push(deposit);
        }
        assert_eq!((listed.len(), &listed[2].deposit), (3, &first));
        assert_eq!(listed[2].outcome.as_ref().map(|(outcome, _)| outcome.as_str()), Some("Completed"));
    }

    async fn the_further_batches_of_a_deposit_are_its_depositors_and_no_deposits_of_their_own(world: World) {
        let (catalogue, first) = (&world.catalogue, deposit("ada", Some("key")));
        let [second, third] = [(); 2].map(|()| Uuid::new_v4());
        // Of one that another program made, nothing is recorded.
        catalogue.record_part(first.batch, 2, second, 5).await.unwrap();
        assert_eq!(catalogue.deposit(second).await.unwrap(), None);
        catalogue.record_deposit(&first).await.unwrap();
        for (part, batch) in [(3, third), (2, second), (2, second)] {
            catalogue.record_part(first.batch, part, batch, 5).await.unwrap();
        }
        catalogue.deposit_ended(third, "Completed").await.unwrap();
        let received = catalogue.deposit(first.batch).await.unwrap().unwrap().received;
        for parts in [catalogue.parts(first.batch).await.unwrap(), catalogue.parts_since("ada", received).await.unwrap()] {
            let mut parts: Vec<_> = parts.iter().map(|part| (part.part_of, part.deposit.batch, part.outcome.is_some())).collect();
            parts.sort_unstable();
            assert_eq!(parts, [(Some((first.batch, 2)), second, false), (Some((first.batch, 3)), third, true)]);
        }
        let part = catalogue.deposit(second).await.unwrap().unwrap();
        assert_eq!((&*part.deposit.depositor, part.deposit.objects, part.received), ("ada", 5, received));
        assert_eq!(catalogue.parts(second).await.unwrap(), []);
        let sent = catalogue.deposited_since("ada", received).await.unwrap();
        assert_eq!((sent.deposits, sent.bytes), (1, first.bytes));
        assert_eq!(catalogue.deposits("ada", None, 10).await.unwrap().len(), 1);
    }
}
