//! What there is to say about a queue, one line a thing, so that two accounts of it can be compared and their
//! differences read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use jiff::Timestamp;
use queuekeeper::mirror::{AGE_LABELS, ItemFigures, LockKind, LockStat, MirrorStore, state_label};
use queuekeeper_queue::path::{AccessQueue, QueueName};
use queuekeeper_queue::state::State;

use super::grammar::OUTCOMES;

/// Everything about a queue: a name for each thing, and what is to say about it.
pub(crate) type Facts = BTreeMap<String, String>;

/// The thing in which two accounts differ, what is expected and what is said.
pub(crate) type Difference = (String, Option<String>, Option<String>);

/// Where two accounts differ.
pub(crate) fn differences(expected: &Facts, said: &Facts) -> Vec<Difference> {
    let things: std::collections::BTreeSet<_> = expected.keys().chain(said.keys()).collect();
    let differing = things.into_iter().filter(|thing| expected.get(*thing) != said.get(*thing));
    differing.map(|thing| (thing.clone(), expected.get(thing).cloned(), said.get(thing).cloned())).collect()
}

pub(crate) fn ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millisecond)
}

/// Says a thing only where it is not nothing.
pub(crate) fn say<T: Debug + Default + PartialEq>(facts: &mut Facts, thing: String, value: &T) {
    if *value != T::default() {
        facts.insert(thing, format!("{value:?}"));
    }
}

pub(crate) fn lock_text(lock: Option<LockStat>) -> Option<(i64, i64, i64)> {
    lock.map(|lock| (lock.session, lock.created_ms, lock.czxid))
}

/// What the store says, with ages as of `now` and jobs waiting for more than `space` bytes; `None` before the first
/// walk.
pub(crate) fn of_store(store: &MirrorStore, now: Timestamp, space: i64) -> Option<Facts> {
    let mut facts = Facts::new();
    let (jobs, end) = store.jobs(0..usize::MAX)?;
    assert!(end >= jobs.len());
    for job in jobs {
        assert_eq!(store.job(job.id).map(|job| job.id), Some(job.id), "a listed job is found by its id");
        let name = format!("job {}", job.id);
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts
        };
        let values = [
            ("state", format!("{:?}", job.state.map(State::label))),
            ("status text", job.status_text.to_string()),
            ("entered", format!("{:?}", ms(job.entered))),
            ("status version", job.status_version.to_string()),
            ("created", format!("{:?}", ms(job.created))),
            ("priority", format!("{:?}", job.priority.map(queuekeeper_queue::id::Priority::number))),
            ("lock", format!("{:?}", lock_text(job.lock))),
            ("retry count", format!("{:?}", job.retry_count)),
            ("last successful", format!("{:?}", job.last_successful.map(State::label))),
            ("message", job.message.to_string()),
            ("space", job.space_needed_bytes.to_string()),
            ("batch", format!("{:?}", job.batch.map(|batch| batch.to_string()))),
            ("collection", job.collection.to_string()),
            ("submitter", job.submitter.to_string()),
            ("submitted", format!("{:?}", ms(job.submitted))),
            ("filename", job.filename),
            ("title", job.title),
            ("ark", job.ark),
            ("local ids", job.local_ids),
            (
                "entries",
                sorted(job.entries.iter().map(|(folder, name)| format!("{folder}/{name}")).collect()).join(" "),
            ),
            (
                "references",
                sorted(job.references.iter().map(|(batch, outcome)| format!("{batch}/{}", outcome.folder())).collect())
                    .join(" "),
            ),
            (
                "unreadable",
                sorted(job.unreadable.iter().map(|node| node.map_or(".", |node| node.name()).to_owned()).collect())
                    .join(" "),
            ),
        ];
        facts.extend(values.map(|(field, value)| (format!("{name} {field}"), value)));
    }
    for batch in store.batches()? {
        let name = format!("batch {}", batch.id);
        let values = [
            ("state", format!("{:?}", batch.state.map(State::label))),
            ("status text", batch.status_text.to_string()),
            ("entered", format!("{:?}", ms(batch.entered))),
            ("status version", batch.status_version.to_string()),
            ("message", batch.message.to_string()),
            ("lock", format!("{:?}", lock_text(batch.lock))),
            ("uuid", batch.uuid.to_string()),
            ("collection", batch.collection.to_string()),
            ("submitter", batch.submitter.to_string()),
            ("filename", batch.filename.to_string()),
            ("title", batch.title.to_string()),
            ("is acquired", batch.is_acquired.to_string()),
        ];
        facts.extend(values.map(|(field, value)| (format!("{name} {field}"), value)));
        for (outcome, references) in OUTCOMES.iter().zip(batch.references) {
            facts.insert(format!("{name} {outcome}"), format!("{references:?}"));
        }
    }
    for request in store.requests()? {
        let name = format!("request {}/{}", request.queue.name(), request.id);
        let values = [
            ("state", format!("{:?}", request.state.map(State::label))),
            ("status text", request.status_text.to_string()),
            ("entered", format!("{:?}", ms(request.entered))),
            ("status version", request.status_version.to_string()),
            ("message", request.message.to_string()),
            ("lock", format!("{:?}", lock_text(request.lock))),
            ("token", request.token.to_string()),
            ("bytes", request.requested_bytes.to_string()),
        ];
        facts.extend(values.map(|(field, value)| (format!("{name} {field}"), value)));
    }
    for lock in store.locks()? {
        facts.insert(format!("lock {}", lock.path), format!("{} {:?}", lock.kind.label(), lock_text(lock.stat)));
    }
    for stray in store.strays()? {
        facts.insert(format!("stray {stray}"), "is there".to_owned());
    }
    for path in store.unexpected(usize::MAX)? {
        facts.insert(format!("unexpected {path}"), "is there".to_owned());
    }
    for collection in store.collections()? {
        for (state, jobs) in collection.jobs.iter() {
            say(&mut facts, format!("collection {:?} {}", collection.collection, state_label(state)), jobs);
        }
    }
    figures(&mut facts, store, now, space)?;
    Some(facts)
}

fn figures(facts: &mut Facts, store: &MirrorStore, now: Timestamp, space: i64) -> Option<()> {
    let summary = store.summary(now, Some(space))?;
    for (state, jobs) in summary.jobs.iter() {
        let name = format!("jobs {}", state_label(state));
        say(facts, format!("{name} count"), &jobs.count);
        say(facts, format!("{name} locked"), &jobs.locked);
        say(facts, format!("{name} retried"), &jobs.retried);
        say(facts, format!("{name} retries"), &jobs.retries);
        say(facts, format!("{name} by operator"), &jobs.by_operator);
        say(facts, format!("{name} space"), &jobs.space_needed_bytes);
        say(facts, format!("{name} oldest unlocked"), &ms(jobs.oldest_unlocked));
        say(facts, format!("{name} oldest locked"), &ms(jobs.oldest_locked));
        say(facts, format!("{name} oldest"), &ms(jobs.oldest()));
        say(facts, format!("{name} oldest lock"), &ms(jobs.oldest_lock));
        for (age, count) in AGE_LABELS.iter().zip(jobs.by_age) {
            say(facts, format!("{name} aged {age}"), &count);
        }
    }
    let mut items = |name: &str, figures: &ItemFigures| {
        say(facts, format!("{name} count"), &figures.count);
        say(facts, format!("{name} bytes"), &figures.requested_bytes);
        say(facts, format!("{name} oldest"), &ms(figures.oldest));
    };
    for (state, batches) in summary.batches.iter() {
        items(&format!("batches {}", state_label(state)), batches);
    }
    for queue in AccessQueue::ALL {
        for (state, requests) in summary.access(*queue).iter() {
            items(&format!("requests {} {}", queue.name(), state_label(state)), requests);
        }
    }
    say(facts, "most retries".to_owned(), &summary.retries_max);
    for (retries, jobs) in summary.by_retries.iter().enumerate() {
        say(facts, format!("retried {retries} times"), jobs);
    }
    say(facts, "waiting for space".to_owned(), &summary.waiting_for_space);
    for kind in LockKind::ALL {
        let locks = summary.locks(kind);
        say(facts, format!("locks {} count", kind.label()), &locks.count);
        say(facts, format!("locks {} oldest", kind.label()), &ms(locks.oldest));
        for (age, count) in AGE_LABELS.iter().zip(locks.by_age) {
            say(facts, format!("locks {} aged {age}", kind.label()), &count);
        }
    }
    for queue in QueueName::ALL {
        say(facts, format!("paused {}", queue.name()), &ms(summary.paused(*queue)));
    }
    say(facts, "collections held".to_owned(), &summary.collections_held);
    say(facts, "stores held".to_owned(), &summary.stores_held);
    say(facts, "held with collection".to_owned(), &summary.held_with_collection);
    say(facts, "lock sessions".to_owned(), &summary.lock_sessions);
    say(facts, "znodes".to_owned(), &summary.znodes);
    say(facts, "unreadable".to_owned(), &summary.unreadable);
    let paths: BTreeSet<_> = store.unreadable()?.into_iter().collect();
    // Where nothing came between.
    if store.summary(now, Some(space))?.unreadable == summary.unreadable {
        assert_eq!(paths.len() as u64, summary.unreadable.min(100), "each znode that is counted is named: {paths:?}");
    }
    facts.insert("unknown states".to_owned(), summary.unknown_states.join(" "));
    Some(())
}
