//! The pages of a list, one after the other, are what a plain look at everything gives.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use zookeeper_client::Stat;

use super::*;
use crate::mirror::image::{FaultQuery, Image};
use crate::mirror::lists::{BatchOrder, BatchQuery, FaultOrder, LockOrder, LockQuery, RequestOrder, RequestQuery};
use crate::mirror::page::{Page, PageRequest};
use crate::mirror::read::Found;
use crate::mirror::summary::{AGE_BOUNDS, LockKind};
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, State};

mod plain;

/// By the servers' clock, in milliseconds.
const NOW_MS: i64 = 500_000_000;

fn now() -> Timestamp {
    Timestamp::from_millisecond(NOW_MS).unwrap()
}

/// Few of each, so that they meet and tie: a path, what it holds, how long before now it was written (in milliseconds),
/// and by which session. What holds nothing is gone, and `None` for a session is one that is not readable.
fn any_znode() -> impl Strategy<Value = (String, Option<String>, i64, Option<i64>)> {
    let status = select(vec!["Pending", "Processing", "Completed", "Failed", "Odd", "Deleted"]);
    let status = status.prop_map(|status| format!(r#"{{"status":"{status}","retry_count":0}}"#));
    let submission =
        (select(vec!["a", "b", ""]), select(vec!["Robbins", "ÄRGER", "<b>"]), select(vec!["u-1", "u-2", ""])).prop_map(
            |(collection, title, uuid)| {
                format!(r#"{{"profile":"{collection}","title":"{title}","batchID":"{uuid}","filename":"f.checkm"}}"#)
            },
        );
    let number = 0u32..12;
    let batch = number.clone().prop_map(|number| format!("/batches/bid{number:010}"));
    let request = (select(vec!["small", "large"]), number.clone())
        .prop_map(|(queue, number)| format!("/access/{queue}/qid{number:010}"));
    let job = number.prop_map(|number| format!("/jobs/jid{number:010}"));
    let token = (0u64..4).prop_map(|bytes| format!(r#"{{"token":"T{bytes}","cloud-content-byte":{bytes}}}"#));
    let named = select(vec![
        "/locks/storage/ark_1",
        "/locks/storage/ark_2",
        "/locks/inventory/ark_1",
        "/locks/localid/x_o",
        "/locks/queue/localid/y_o",
        "/locks/queue/ingest",
        "/locks/collections/a",
        "/locks/collections/b",
    ]);
    let path = prop_oneof![
        2 => batch.clone().prop_map(|batch| (batch, String::new())),
        4 => (batch.clone(), status.clone()).prop_map(|(batch, status)| (batch + "/status", status)),
        4 => (batch.clone(), submission).prop_map(|(batch, submission)| (batch + "/submission", submission)),
        1 => batch.clone().prop_map(|batch| (batch + "/lock", String::new())),
        3 => (batch.clone(), select(vec!["batch-failed", "batch-completed"]), 0u32..9)
            .prop_map(|(batch, folder, job)| (format!("{batch}/states/{folder}/jid{job:010}"), String::new())),
        3 => (request.clone(), status.clone()).prop_map(|(request, status)| (request + "/status", status)),
        3 => (request.clone(), token).prop_map(|(request, token)| (request + "/token", token)),
        1 => request.prop_map(|request| (request + "/lock", String::new())),
        4 => (job.clone(), status).prop_map(|(job, status)| (job + "/status", status)),
        4 => (job.clone(), 0u32..4).prop_map(|(job, batch)| (job + "/bid", format!("bid{batch:010}"))),
        4 => job.prop_map(|job| (job + "/lock", String::new())),
        5 => named.prop_map(|path| (path.to_owned(), String::new())),
    ];
    let session = prop_oneof![9 => (0i64..4).prop_map(Some), 1 => Just(None)];
    // At the bounds of the bands, and a moment before and after them.
    let age = (prop_oneof![0i64..3, 0i64..140], -2i64..3).prop_map(|(hours, ms)| hours * 3_600_000 + ms);
    (path, option::weighted(0.85, Just(())), age, session)
        .prop_map(|((path, data), is_there, age, session)| (path, is_there.map(|()| data), age, session))
}

fn image(znodes: Vec<(String, Option<String>, i64, Option<i64>)>) -> Image {
    let mut image = Image::default();
    image.finish();
    image.evaluate_all(None, 0, 0, &Limits::default());
    for (path, data, age, session) in znodes {
        let at = NOW_MS - age;
        let stat = Stat {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ctime: at,
            mtime: at,
            version: 0,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: session.unwrap_or(0),
            data_length: 0,
            num_children: 0,
        };
        let found = match (data, session) {
            (None, _) => Found::Nothing,
            (Some(_), None) => Found::Denied,
            (Some(data), Some(_)) => Found::Node { data: data.into_bytes(), stat },
        };
        image.apply(Path::parse(&path), &found);
    }
    while image.evaluate(NOW_MS - 10_000, &Limits::default(), 100) {}
    image
}

/// Every item of a list, page by page.
fn all<T>(size: usize, page: impl Fn(&PageRequest) -> Page<T>) -> Vec<T> {
    let mut part = PageRequest { after: None, size };
    let mut items = Vec::new();
    loop {
        let Page { items: more, total, before, next } = page(&part);
        assert_eq!(before, items.len() as u64);
        assert!(more.len() == size || next.is_none());
        items.extend(more);
        let Some(next) = next else {
            assert_eq!(total, items.len() as u64);
            return items;
        };
        part.after = Some(next.to_string().parse().unwrap());
    }
}

fn is_aged(age: Option<usize>, began: Option<Timestamp>) -> bool {
    let Some(age) = age else { return true };
    let old = began.map_or(0, |at| NOW_MS - at.as_millisecond());
    let band = AGE_BOUNDS.iter().position(|bound| old < i64::try_from(bound.as_millis()).unwrap());
    band.unwrap_or(AGE_BOUNDS.len()) == age
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn batches_are_those_that_fit_in_their_order(
        znodes in vec(any_znode(), 0..120),
        state in option::of(select(vec![None, Some(BatchState::Failed), Some(BatchState::Pending)])),
        collection in option::of(select(vec!["a", "", "none"])),
        text in option::of(select(vec!["ärger", "ROB", "<B", "bid00000000", "U-1", "7", "f.ch"])),
        order in select(BatchOrder::ALL),
        size in 1usize..6,
    ) {
        let image = image(znodes);
        let filter = BatchQuery { state, collection: collection.map(Into::into), text: text.map(Into::into) };
        let listed = all(size, |part| image.batch_page(&filter, order, part, Offset::default()).unwrap());
        let mut plain = image.batches(Offset::default());
        plain.retain(|batch| {
            let fields = [&batch.id.to_string(), &*batch.uuid, &*batch.filename, &*batch.title, &*batch.submitter];
            let has_text = |text: &str| fields.iter().any(|field| field.to_lowercase().contains(&text.to_lowercase()));
            state.is_none_or(|state| batch.state == state)
                && collection.is_none_or(|collection| *batch.collection == *collection)
                && text.is_none_or(has_text)
        });
        // Without an instant a batch is taken for the youngest.
        let entered = |batch: &crate::mirror::Batch| batch.entered.unwrap_or(Timestamp::MAX);
        let is_done = |batch: &crate::mirror::Batch| batch.state.is_some_and(State::is_final);
        let jobs = |batch: &crate::mirror::Batch| batch.references.iter().flatten().sum::<u32>();
        plain.sort_by(|a, b| match order {
            BatchOrder::Newest => b.id.cmp(&a.id),
            BatchOrder::Oldest => a.id.cmp(&b.id),
            BatchOrder::Waiting => (is_done(a), entered(a)).cmp(&(is_done(b), entered(b))),
            BatchOrder::Changed => entered(b).cmp(&entered(a)),
            BatchOrder::Jobs => jobs(b).cmp(&jobs(a)),
            BatchOrder::Failed => b.references[1].unwrap_or(0).cmp(&a.references[1].unwrap_or(0)),
            BatchOrder::Collection => {
                (a.collection.is_empty(), &a.collection).cmp(&(b.collection.is_empty(), &b.collection))
            }
        }.then(a.id.cmp(&b.id)));
        // References are counted in folders that are not there, too; the oracle sees those that are.
        if order == BatchOrder::Jobs || order == BatchOrder::Failed {
            let mut ids: Vec<_> = listed.iter().map(|detail| detail.batch.id).collect();
            let mut plain: Vec<_> = plain.iter().map(|batch| batch.id).collect();
            ids.sort_unstable();
            plain.sort_unstable();
            prop_assert_eq!(ids, plain);
        } else {
            let ids: Vec<_> = listed.iter().map(|detail| detail.batch.id).collect();
            prop_assert_eq!(ids, plain.iter().map(|batch| batch.id).collect::<Vec<_>>());
        }
        for detail in &listed {
            for (state, count) in detail.jobs.iter() {
                let jobs = image.jobs(0..image.job_slots(), Offset::default());
                let of = jobs.iter().filter(|job| job.batch == Some(detail.batch.id) && job.state == state);
                prop_assert_eq!(of.count(), *count as usize);
            }
        }
        let mut collections = BTreeMap::<_, u32>::new();
        for batch in image.batches(Offset::default()) {
            *collections.entry(batch.collection).or_default() += 1;
        }
        prop_assert_eq!(image.batch_collections(), collections.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn requests_are_those_that_fit_in_their_order(
        znodes in vec(any_znode(), 0..120),
        queue in option::of(select(AccessQueue::ALL)),
        state in option::of(select(vec![None, Some(AccessState::Failed), Some(AccessState::Pending)])),
        age in option::of(0usize..6),
        text in option::of(select(vec!["t1", "QID", "11"])),
        order in select(RequestOrder::ALL),
        size in 1usize..6,
    ) {
        let image = image(znodes);
        let filter = RequestQuery { queue, state, age, text: text.map(Into::into) };
        let listed = all(size, |part| image.request_page(&filter, order, part, now(), Offset::default()).unwrap());
        let mut plain = image.requests(Offset::default());
        plain.retain(|request| {
            let fields = [request.id.to_string(), request.token.to_lowercase()];
            queue.is_none_or(|queue| request.queue == queue)
                && state.is_none_or(|state| request.state == state)
                && is_aged(age, request.entered)
                && text.is_none_or(|text| fields.iter().any(|field| field.contains(&text.to_lowercase())))
        });
        let entered = |request: &crate::mirror::Request| request.entered.unwrap_or(Timestamp::MAX);
        let is_done = |request: &crate::mirror::Request| request.state.is_some_and(State::is_final);
        plain.sort_by(|a, b| match order {
            RequestOrder::Waiting => (is_done(a), entered(a)).cmp(&(is_done(b), entered(b))),
            RequestOrder::Changed => entered(b).cmp(&entered(a)),
            RequestOrder::Newest => b.id.cmp(&a.id),
            RequestOrder::Oldest => a.id.cmp(&b.id),
            RequestOrder::Largest => b.requested_bytes.cmp(&a.requested_bytes),
            RequestOrder::Smallest => a.requested_bytes.cmp(&b.requested_bytes),
        }.then((a.queue, a.id).cmp(&(b.queue, b.id))));
        prop_assert_eq!(listed, plain);
    }

    #[test]
    fn locks_are_those_that_fit_in_their_order(
        znodes in vec(any_znode(), 0..200),
        kind in option::of(select(LockKind::ALL.to_vec())),
        age in option::of(0usize..6),
        session in option::of(0i64..4),
        order in select(LockOrder::ALL.to_vec()),
        size in 1usize..6,
    ) {
        let image = image(znodes);
        let filter = LockQuery { kind, age, session, order };
        let listed = all(size, |part| image.lock_page(filter, part, now(), Offset::default()).unwrap());
        let mut plain = image.locks();
        plain.retain(|lock| {
            kind.is_none_or(|kind| lock.kind == kind)
                && session.is_none_or(|session| lock.stat.is_some_and(|stat| stat.session == session))
                && is_aged(age, lock.stat.and_then(|stat| Timestamp::from_millisecond(stat.created_ms).ok()))
        });
        plain.sort_by_key(|lock| {
            let rank = match (order, lock.stat) {
                (LockOrder::Guards, _) => 0,
                (_, None) => i64::MAX,
                (LockOrder::Oldest, Some(stat)) => stat.created_ms,
                (LockOrder::Newest, Some(stat)) => -stat.created_ms,
                // Persistent locks behind those of sessions.
                (LockOrder::Session, Some(stat)) if stat.session == 0 => i64::MAX - 1,
                (LockOrder::Session, Some(stat)) => stat.session,
            };
            (rank, lock.kind, lock.path.clone())
        });
        let listed: Vec<_> = listed.into_iter().map(|lock| (lock.kind, lock.path, lock.stat)).collect();
        prop_assert_eq!(listed, plain.into_iter().map(|lock| (lock.kind, lock.path, lock.stat)).collect::<Vec<_>>());
        let mut sessions = BTreeMap::<_, u64>::new();
        for stat in image.locks().iter().filter_map(|lock| lock.stat) {
            *sessions.entry(stat.session).or_default() += 1;
        }
        let (counted, all) = image.sessions(usize::MAX);
        prop_assert_eq!(all, sessions.len());
        prop_assert!(counted.is_sorted_by_key(|of| std::cmp::Reverse(of.locks)));
        let counted: BTreeMap<_, _> = counted.into_iter().map(|of| (of.session, of.locks)).collect();
        prop_assert_eq!(counted, sessions);
    }

    #[test]
    fn faults_are_those_that_count_in_their_order(
        znodes in vec(any_znode(), 0..200),
        fault in option::of(select(Fault::ALL.to_vec())),
        order in select(FaultOrder::ALL),
        size in 1usize..6,
    ) {
        let image = image(znodes);
        let limits = Limits::default();
        let fault_query = FaultQuery { now_ms: NOW_MS, offset: Offset::default(), limits: &limits, space: None };
        let listed = all(size, |part| image.fault_page(fault, order, part, fault_query).unwrap());
        let kinds: Vec<_> = Fault::ALL.into_iter().filter(|kind| fault.is_none_or(|fault| fault == *kind)).collect();
        let plain: Vec<_> = kinds.into_iter().flat_map(|kind| image.faults(kind, usize::MAX, fault_query)).collect();
        // Of those that count from the same instant on the plain list knows no order.
        let sorted = |faults: &[crate::mirror::FoundFault]| {
            let mut faults: Vec<_> = faults.iter().map(|found| (found.fault, format!("{found:?}"))).collect();
            faults.sort();
            faults
        };
        prop_assert_eq!(sorted(&listed), sorted(&plain));
        let is_sorted = match order {
            FaultOrder::Kind => listed.is_sorted_by_key(|found| found.fault),
            FaultOrder::Oldest => listed.is_sorted_by_key(|found| found.since),
            FaultOrder::Newest => listed.is_sorted_by_key(|found| std::cmp::Reverse(found.since)),
        };
        prop_assert!(is_sorted);
    }
}

#[test]
fn a_batch_is_found_by_the_uuid_of_its_entry_or_of_its_submission() {
    let znode = |path: &str, data: &str| (path.to_owned(), Some(data.to_owned()), 1, Some(0));
    let image = image(vec![
        znode("/batches/bid0000000003/submission", r#"{"batchID":"u"}"#),
        znode("/batches/bid0000000004/submission", r#"{"batchID":"v"}"#),
        znode("/batches/bid0000000005/submission", r#"{"batchID":""}"#),
        znode("/batch-uuids/u", "bid0000000004"),
        znode("/batch-uuids/v", "bid0000000099"),
        znode("/batch-uuids/w", "nonsense"),
        znode("/batch-uuids/x", "bid0000000099"),
    ]);
    let found = ["u", "v", "w", "x", "", "y"].map(|uuid| image.batch_of_uuid(uuid).map(BatchId::number));
    assert_eq!(found, [Some(4), Some(4), None, None, None, None]);
}

#[test]
fn an_id_is_found_by_any_of_its_characters() {
    for (number, text, has) in [(42, "42", true), (42, "bid0000000042", true), (42, "420", false), (0, "d0", true)] {
        assert_eq!(has_digits(BatchId::PREFIX, number, text), has, "{text}");
    }
    assert!(has_digits(BatchId::PREFIX, u32::MAX, &BatchId::new(u32::MAX).to_string()));
}
