//! Messages and deposits.

use std::time::Duration;

use queuekeeper_catalogue::ErrorKind;
use queuekeeper_catalogue::deposits::NewDeposit;
use queuekeeper_catalogue::outbox::NewMessage;
use uuid::Uuid;

use super::support::{LEASE, on_both};

fn message(name: &str) -> NewMessage {
    NewMessage {
        name: name.to_owned(),
        kind: "mail".to_owned(),
        subject: Uuid::now_v7(),
        recipient: "keeper@example.edu".to_owned(),
        content: "Subject: a report\r\n\r\nAll is well.".to_owned(),
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
        let taken = catalogue.take_messages(10, Duration::ZERO).await.unwrap();
        assert_eq!((taken.len(), &taken[0].message, taken[0].attempts), (1, &first, 1));
        // The lease has ended: it is due again, and leased for longer this time.
        let again = catalogue.take_messages(10, LEASE).await.unwrap();
        assert_eq!((again.len(), again[0].attempts), (1, 2));
        assert_eq!(catalogue.take_messages(10, LEASE).await.unwrap(), []);
        let id = again[0].id;
        catalogue.message_failed(id, "connection refused", Duration::ZERO).await.unwrap();
        assert_eq!(catalogue.take_messages(10, Duration::ZERO).await.unwrap()[0].attempts, 3);
        catalogue.message_delivered(id).await.unwrap();
        catalogue.message_failed(id, "late", Duration::ZERO).await.unwrap();
        assert_eq!(catalogue.take_messages(10, LEASE).await.unwrap(), []);
    }

    async fn many_that_take_messages_at_once_get_each_once(world: World) {
        for number in 0..40 {
            world.catalogue.queue_message(&message(&number.to_string())).await.unwrap();
        }
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let catalogue = world.catalogue.clone();
            tasks.spawn(async move { catalogue.take_messages(7, LEASE).await.unwrap() });
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
}
