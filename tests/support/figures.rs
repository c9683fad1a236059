//! A summary of a queue in which everything occurs, with figures that differ from each other.

use jiff::{SignedDuration, Timestamp};
use queuekeeper::mirror::{FaultFigures, Freshness, JobFigures, LockKind, Summary};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::state::{AccessState, BatchState, JobState};

/// The moment of the view: 2026-11-21 10:00:00 UTC.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_795_255_200).unwrap()
}

/// Some seconds before [`now`].
pub(crate) fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// An image that follows the tree.
pub(crate) fn live() -> Freshness {
    Freshness {
        session: Some("0x1000b12".to_owned()),
        problem: None,
        stale_since: None,
        was_synced: true,
        last_event: Some(ago(1)),
        last_walk: Some(ago(340)),
        last_walk_duration: Some(std::time::Duration::from_millis(1_250)),
        clock: queuekeeper::mirror::ServerClock { ahead_ms: Some(-250), is_measured: true, problem: None },
    }
}

/// An image whose connection was lost 72 s ago.
pub(crate) fn stale() -> Freshness {
    Freshness {
        session: None,
        problem: Some("the connection to ZooKeeper is lost".to_owned()),
        stale_since: Some(ago(72)),
        ..live()
    }
}

/// A queue in which everything occurs.
pub(crate) fn full() -> Summary {
    let mut summary = Summary {
        retries_max: 4,
        by_retries: [12_000, 30, 9, 7],
        waiting_for_space: 5,
        collections_held: 2,
        stores_held: 1,
        lock_sessions: 14,
        failed_by_cause: [9, 1, 6, 4, 2, 0, 1, 8, 7, 1, 0, 0, 2],
        znodes: 140_312,
        unreadable: 3,
        unknown_states: ["Teleporting".into(), "<b>\"&".into()].into(),
        paused: [Some(ago(7_200)), None, Some(ago(90_000))],
        ..Summary::default()
    };
    let jobs = [
        (JobState::Pending, 1_204, 0, 2_280, [200, 300, 704, 0, 0, 0]),
        (JobState::Estimating, 12, 5, 130, [9, 3, 0, 0, 0, 0]),
        (JobState::Provisioning, 311, 5, 11_530, [4, 20, 100, 187, 0, 0]),
        (JobState::Processing, 2, 2, 840, [0, 1, 1, 0, 0, 0]),
        (JobState::Storing, 3, 2, 560, [1, 2, 0, 0, 0, 0]),
        (JobState::Recording, 1, 1, 20, [1, 0, 0, 0, 0, 0]),
        (JobState::Completed, 8_930, 0, 400_000, [10, 30, 160, 1_000, 3_000, 4_730]),
        (JobState::Failed, 41, 0, 100_000, [0, 2, 10, 9, 10, 10]),
        (JobState::Held, 18, 0, 50_000, [0, 0, 0, 0, 18, 0]),
    ];
    for (state, count, locked, oldest, by_age) in jobs {
        *summary.jobs.get_mut(Some(state)) = JobFigures {
            count,
            locked,
            retried: count / 20,
            retries: count / 20 + count / 100,
            by_operator: if state == JobState::Held { 3 } else { 0 },
            space_needed_bytes: count * 21_474_836_480,
            oldest_unlocked: (count > locked).then(|| ago(oldest)),
            oldest_locked: (locked > 0).then(|| ago(oldest / 2)),
            oldest_lock: (locked > 0).then(|| ago(oldest / 4)),
            by_age,
        };
    }
    let other = summary.jobs.get_mut(None);
    (other.count, other.oldest_unlocked, other.by_age) = (4, Some(ago(300_000)), [0, 0, 0, 0, 0, 4]);
    for (state, count, oldest) in
        [(Some(BatchState::Reporting), 3, 5_000), (Some(BatchState::Completed), 420, 900_000), (None, 1, 60)]
    {
        let batches = summary.batches.get_mut(state);
        (batches.count, batches.oldest) = (count, Some(ago(oldest)));
    }
    for (state, count, bytes) in [(AccessState::Pending, 4, 3_000_000), (AccessState::Failed, 1, 5_000_000_000)] {
        let requests = summary.access_small.get_mut(Some(state));
        (requests.count, requests.requested_bytes, requests.oldest) = (count, bytes, Some(ago(45)));
    }
    let large = summary.access_large.get_mut(Some(AccessState::Processing));
    (large.count, large.requested_bytes, large.oldest) = (1, 6_817_104_930_406, Some(ago(4_000)));
    for (at, kind) in (0_u32..).zip(LockKind::ALL).filter(|(_, kind)| *kind != LockKind::Inventory) {
        let locks = &mut summary.locks[kind as usize];
        let count = u64::from(at) + 1;
        (locks.count, locks.oldest) = (count, Some(ago(100 * (i64::from(at) + 1))));
        locks.by_age[kind as usize % 6] = count;
    }
    for (fault, count, oldest) in [(Fault::OrphanEntry, 12, 9_000), (Fault::LeakedLock, 1, 200_000)] {
        summary.faults[fault as usize] = FaultFigures { count, since: Some(ago(oldest)) };
    }
    assert!(summary.paused(QueueName::AccessSmall).is_none());
    summary
}
