use zookeeper_client::Stat;

use super::*;
use crate::mirror::read::Found;

fn stat(at_ms: i64) -> Stat {
    Stat {
        czxid: at_ms,
        mzxid: at_ms,
        pzxid: at_ms,
        ctime: at_ms,
        mtime: at_ms,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 0,
        num_children: 0,
    }
}

/// An image of these znodes: the path of each, its value, and when it was written. One without a value is closed to us.
fn image(znodes: &[(&str, Option<&str>, i64)]) -> Image {
    let mut image = Image::default();
    for (path, data, at_ms) in znodes {
        let found = match data {
            Some(data) => Found::Node { data: data.as_bytes().to_vec(), stat: stat(*at_ms) },
            None => Found::Denied,
        };
        image.apply(Path::parse(path), &found);
    }
    image.finish();
    image
}

/// A hundred seconds after 1970, and a half.
fn now() -> Timestamp {
    Timestamp::from_millisecond(100_500).unwrap()
}

#[test]
fn a_sample_has_the_jobs_of_each_state_and_the_age_of_the_oldest() {
    let (pending, failed) = (Some(r#"{"status":"Pending"}"#), Some(r#"{"status":"Failed","message":"404"}"#));
    let image = image(&[
        ("/jobs/jid0000000001/status", pending, 40_000),
        ("/jobs/jid0000000002/status", pending, 70_000),
        ("/jobs/jid0000000002/lock", Some(""), 75_000),
        ("/jobs/jid0000000003/status", pending, 90_000),
        // Longer ago than there are seconds.
        ("/jobs/jid0000000004/status", failed, -9_000_000_000_000_000),
        // Since when is not known.
        ("/jobs/jid0000000005/status", None, 0),
        ("/batches/bid0000000001/status", Some(r#"{"status":"Processing"}"#), 50_000),
        ("/batches/bid0000000002/status", Some(r#"{"status":"Completed"}"#), 50_000),
    ]);
    let Sample { figures, batches } = image.sample(now(), Offset::default(), 10);
    let of = |state| {
        let at = index(state);
        (figures.jobs[at], figures.locked[at], figures.oldest[at])
    };
    assert_eq!(of(Some(JobState::Pending)), (3, 1, 60));
    assert_eq!(of(Some(JobState::Failed)), (1, 0, u32::MAX - 1));
    assert_eq!(of(Some(JobState::Storing)), (0, 0, u32::MAX));
    assert_eq!(of(None), (1, 0, u32::MAX));
    assert_eq!((figures.batches_in_progress, batches.len()), (1, 1));
    assert_eq!(image.sample(now(), Offset::default(), 0).batches.len(), 0);
}

#[test]
fn what_the_jobs_tell_of_the_past_is_the_last_that_any_of_them_tells() {
    let status = |state: &str| format!(r#"{{"status":"{state}"}}"#);
    let [storing, downloading, failed] = ["Storing", "Downloading", "Failed"].map(status);
    let image = image(&[
        ("/jobs/jid0000000001/status", Some(&storing), 40_000),
        ("/jobs/jid0000000002/status", Some(&downloading), 70_000),
        ("/jobs/jid0000000003/status", Some(&failed), 80_000),
        ("/jobs/jid0000000004/status", None, 0),
    ]);
    let left = image.inferred_left();
    // A job that is in a state has left those before it.
    assert_eq!(*left.get(Some(JobState::Pending)), Some(70_000));
    assert_eq!(*left.get(Some(JobState::Provisioning)), Some(70_000));
    assert_eq!(*left.get(Some(JobState::Processing)), Some(40_000));
    assert_eq!((*left.get(Some(JobState::Storing)), *left.get(Some(JobState::Failed))), (None, None));
    assert_eq!(image.latest_ms(), Some(80_000));
}

#[test]
fn the_latest_instant_is_that_of_any_item() {
    let status = Some(r#"{"status":"Pending"}"#);
    for (path, expected) in [
        ("/jobs/jid0000000001/status", Some(5_000)),
        ("/batches/bid0000000001/status", Some(5_000)),
        ("/access/large/qid0000000001/status", Some(5_000)),
        ("/locks/storage/ark", None),
    ] {
        assert_eq!(image(&[(path, status, 5_000)]).latest_ms(), expected, "{path}");
        assert_eq!(image(&[(path, None, 5_000)]).latest_ms(), None, "{path}, of which nothing is known");
    }
}

#[test]
fn failures_are_counted_by_cause_and_those_of_operators_apart() {
    let failed = |message: &str| format!(r#"{{"status":"Failed","message":"{message}"}}"#);
    let [first, second] =
        ["HTTP 404 for https://deposit.example.edu", "By alice with queuekeeper: a court order"].map(failed);
    let image = image(&[
        ("/jobs/jid0000000001/status", Some(&first), 1_000),
        ("/jobs/jid0000000002/status", Some(&first), 1_000),
        ("/jobs/jid0000000003/status", Some(&second), 1_000),
        ("/jobs/jid0000000004/status", Some(r#"{"status":"Held","message":"404"}"#), 1_000),
    ]);
    let by_cause = image.summary(now(), Offset::default(), None).failed_by_cause;
    assert_eq!((by_cause.iter().sum::<u64>(), by_cause[FailureCause::Operator as usize]), (3, 1), "{by_cause:?}");
    assert_eq!(by_cause.iter().max(), Some(&2));
}

#[test]
fn what_is_not_readable_is_counted_wherever_it_is() {
    let whole = [
        ("/", Some(""), 1),
        ("/jobs/jid0000000001/status", Some("["), 1),
        ("/batches/bid0000000001/status", Some("["), 1),
        ("/batches/bid0000000001/submission", None, 1),
        ("/access/small/qid0000000001/status", Some("["), 1),
        ("/locks/storage/ark", None, 1),
        ("/batch-uuids/bid-1", None, 1),
        ("/jobs/states", None, 1),
        ("/junk", Some(""), 1),
    ];
    for count in 1..=whole.len() {
        let image = image(&whole[..count]);
        assert_eq!(image.unreadable(), i64::try_from(count - 1).unwrap(), "{:?}", whole[count - 1]);
    }
}

#[test]
fn the_names_of_unknown_states_are_reported_wherever_they_are() {
    let odd = |name: &str| format!(r#"{{"status":"{name}"}}"#);
    let [job, batch, request] = ["Teleporting", "Dreaming", "Asleep"].map(odd);
    let image = image(&[
        ("/jobs/states/odd", Some(""), 1),
        ("/jobs/states/pending", Some(""), 1),
        ("/jobs/jid0000000001/status", Some(&job), 1),
        ("/batches/bid0000000001/status", Some(&batch), 1),
        ("/access/small/qid0000000001/status", Some(&request), 1),
    ]);
    let names: Vec<_> = image.unknown_states().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["Asleep", "Dreaming", "Teleporting", "odd"]);
}
