//! However its znodes came and went, an image says what one made from what is left says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use zookeeper_client::Stat;

use super::*;
use crate::mirror::Flow;
use crate::mirror::clock::Offset;
use crate::mirror::summary::CollectionFigures;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::path::{JobNode, RequestNode};
use queuekeeper_queue::state::{JobState, State};

mod figures;

/// A znode of the model.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Open { data: &'static [u8], stat: Stat },
    Closed,
}

type Model = BTreeMap<Path, Node>;

fn found(node: Option<&Node>) -> Found {
    match node {
        None => Found::Nothing,
        Some(Node::Closed) => Found::Denied,
        Some(Node::Open { data, stat }) => Found::Node { data: data.to_vec(), stat: *stat },
    }
}

/// Few of each, so that they meet.
fn any_path() -> impl Strategy<Value = Path> {
    let job = select(vec!["jid0000000000", "jid0000000001", "jid0000000002"]);
    let batch = select(vec!["bid0000000000", "bid0000000001"]);
    let item = job.clone().prop_map(|job| format!("/jobs/{job}"));
    // What the figures are counted from changes more often.
    let counted = vec![JobNode::Status, JobNode::Configuration, JobNode::SpaceNeeded];
    let node = prop_oneof![1 => select(JobNode::ALL), 1 => select(counted)];
    let node = (job.clone(), node).prop_map(|(job, node)| format!("/jobs/{job}/{}", node.name()));
    let entries = select(vec!["pending/05", "failed/05", "failed/00", "odd/05", "pending/100"]);
    let entry = (entries, job.clone()).prop_map(|(entry, job)| format!("/jobs/states/{entry}-{job}"));
    let folders = select(vec!["batch-processing", "batch-failed"]);
    let reference = (batch.clone(), folders.clone(), job)
        .prop_map(|(batch, folder, job)| format!("/batches/{batch}/states/{folder}/{job}"));
    let outcome = (batch.clone(), folders).prop_map(|(batch, folder)| format!("/batches/{batch}/states/{folder}"));
    let in_batch = (batch, select(vec!["", "/submission", "/status", "/status-report", "/lock", "/states"]))
        .prop_map(|(batch, node)| format!("/batches/{batch}{node}"));
    let request = (select(vec!["small", "large"]), select(vec!["", "/token", "/status", "/lock"]))
        .prop_map(|(queue, node)| format!("/access/{queue}/qid0000000001{node}"));
    let others = select(vec![
        "/",
        "/jobs",
        "/locks",
        "/jobs/states/odd",
        "/batch-uuids/u",
        "/locks/queue/ingest",
        "/locks/queue/accessLarge",
        "/locks/storage/a",
        "/locks/storage/b",
        "/locks/inventory/a",
        "/locks/collections/a",
        "/locks/collections/c",
        "/locks/queue/localid/x",
        "/junk",
        "/jobs/junk/below",
        "/jobs/states/pending/05-jid0000000000/below",
        "/queuekeeper/x",
    ]);
    let text = prop_oneof![
        1 => item, 8 => node, 2 => entry, 2 => reference, 1 => outcome, 2 => in_batch, 1 => request,
        2 => others.prop_map(str::to_owned),
    ];
    text.prop_map(|text| Path::parse(&text))
}

const STATUSES: [&str; 10] = [
    r#"{"status":"Pending","retry_count":0,"message":"Success"}"#,
    r#"{"status":"Provisioning","retry_count":2,"last_successful_status":"Estimating","message":"waits"}"#,
    r#"{"status":"failed","retry_count":3,"message":"no"}"#,
    r#"{"status":"Teleporting","retry_count":-1}"#,
    r#"{"status":"Completed"}"#,
    r#"{"status":"Reporting"}"#,
    r#"{"status":"Held","retry_count":1}"#,
    r#"{"status":"Held","message":"By alice with queuekeeper: why"}"#,
    r#"{"status":"Failed","message":"By alice with queuekeeper: why"}"#,
    r#"{"status":"Failed","retry_count":0,"message":"404 for http://x"}"#,
];

const CONFIGURATIONS: [&str; 2] = [
    r#"{"profile":"a","submitter":"s","filename":"one.zip","title":"One","objectID":"ark:/1","localID":"x;y"}"#,
    r#"{"profile":"b","submitter":"t","submissionDate":"2026-03-02T10:15:40-08:00","batchID":"u"}"#,
];

const SIZES: [&str; 3] = ["05", "1048576", "9223372036854775807"];

const OTHERS: [&str; 8] = [
    "",
    "[]",
    r#"{"primary_id":"ark:/99999/fk4","local_id":["l"]}"#,
    r#"{"primary":"ark:/99999/old","local_id":"m"}"#,
    r#"{"token":"t","cloud-content-byte":7}"#,
    "bid0000000000",
    "bid0000000001",
    "100",
];

/// What becomes of a znode.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Value(&'static str),
    Closed,
    Gone,
}

/// What a znode holds on a healthy tree, where it is one that the figures are counted from.
fn fitting(path: &Path) -> Option<&'static [&'static str]> {
    match path {
        Path::JobNode(_, JobNode::Status)
        | Path::BatchNode(_, BatchNode::Status)
        | Path::RequestNode(.., RequestNode::Status) => Some(&STATUSES),
        Path::JobNode(_, JobNode::Configuration) => Some(&CONFIGURATIONS),
        Path::JobNode(_, JobNode::SpaceNeeded) => Some(&SIZES),
        _ => None,
    }
}

/// A path, and what becomes of it. Most values fit.
fn any_change() -> impl Strategy<Value = (Path, Fate)> {
    let value = select([&STATUSES[..], &CONFIGURATIONS, &SIZES, &OTHERS].concat());
    let fate = prop_oneof![6 => value.prop_map(Fate::Value), 1 => Just(Fate::Closed), 3 => Just(Fate::Gone)];
    (any_path(), fate, option::weighted(0.8, any::<Index>())).prop_map(|(path, fate, at)| {
        let fitting = fitting(&path).zip(at).map(|(values, at)| Fate::Value(values[at.index(values.len())]));
        let fate = if let Fate::Value(_) = fate { fitting.unwrap_or(fate) } else { fate };
        (path, fate)
    })
}

/// A tree's next state, as its server would make it. `at` counts up with each change.
fn change(model: &mut Model, path: &Path, fate: Fate, at: i64) {
    let data = match fate {
        Fate::Gone => {
            model.remove(path);
            return;
        }
        Fate::Closed => {
            model.insert(path.clone(), Node::Closed);
            return;
        }
        Fate::Value(value) => value.as_bytes(),
    };
    let stat = match model.get(path) {
        Some(Node::Open { stat, .. }) => Stat { mzxid: at, mtime: at * 1000, version: stat.version + 1, ..*stat },
        Some(Node::Closed) | None => new_stat(at),
    };
    model.insert(path.clone(), Node::Open { data, stat });
}

pub(super) fn new_stat(at: i64) -> Stat {
    Stat {
        czxid: at,
        mzxid: at,
        pzxid: at,
        ctime: at * 1000,
        mtime: at * 1000,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: at % 3,
        data_length: 0,
        num_children: 0,
    }
}

pub(super) fn empty() -> Image {
    let mut image = Image::default();
    image.finish();
    image
}

/// An image as a walk makes it, from znodes in some order.
fn walked<'a>(model: impl Iterator<Item = (&'a Path, &'a Node)>) -> Image {
    let mut image = Image::default();
    for (path, node) in model {
        image.apply(path.clone(), &found(Some(node)));
    }
    image.finish();
    image
}

/// The unfinished jobs of the two collections that have the most, which are those that a count of all finds.
fn unfinished_of_largest(image: &Image) -> Vec<u64> {
    let unfinished = |figures: &CollectionFigures| {
        let states = figures.jobs.iter().filter(|(state, _)| !state.is_some_and(State::is_final));
        states.map(|(_, jobs)| *jobs).sum::<u64>()
    };
    let collections = image.collections();
    let named = collections.iter().filter(|figures| !figures.collection.is_empty());
    let found = image.largest_collections(2);
    assert_eq!(found.all, named.clone().count() as u64);
    let mut expected: Vec<_> = named.map(unfinished).filter(|jobs| *jobs > 0).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    expected.truncate(2);
    // Of several of one size any may be the second.
    assert_eq!(found.largest.iter().map(unfinished).collect::<Vec<_>>(), expected);
    let counted = found.largest.iter().map(|figures| &figures.jobs).chain([&found.rest]);
    assert_eq!(
        counted.flat_map(crate::mirror::ByState::iter).map(|(_, jobs)| *jobs).sum::<u64>(),
        image.jobs.len() as u64
    );
    expected
}

/// All that an image says, at several instants.
fn said(image: &Image) -> Vec<String> {
    let mut lines = Vec::new();
    for seconds in [0, 30, 70, 5_000, 200_000] {
        let now = Timestamp::from_second(seconds).unwrap();
        for space in [None, Some(1000)] {
            lines.push(format!("{:?}", image.summary(now, Offset::default(), space)));
            lines.push(format!("{:?}", image.batches_in_progress(usize::MAX, Offset::default())));
        }
    }
    let mut rest: Vec<String> =
        image.jobs(0..image.job_slots(), Offset::default()).iter().map(|job| format!("{job:?}")).collect();
    rest.extend(image.batches(Offset::default()).iter().map(|batch| format!("{batch:?}")));
    rest.extend(image.requests(Offset::default()).iter().map(|request| format!("{request:?}")));
    rest.extend(image.locks().iter().map(|lock| format!("{lock:?}")));
    rest.extend(image.strays().iter().map(|path| format!("stray {path}")));
    rest.extend(image.unexpected(100).iter().map(|path| format!("unexpected {path}")));
    rest.extend(image.collections().iter().map(|collection| format!("{collection:?}")));
    rest.push(format!("unfinished {:?}", unfinished_of_largest(image)));
    rest.extend(
        (0..2)
            .map(|batch| format!("of {batch}: {:?}", image.jobs.beside.of(queuekeeper_queue::id::BatchId::new(batch)))),
    );
    rest.push(format!("{:?} {:?}", image.sessions(100), image.batch_collections()));
    rest.push(format!("denied {:?}, root {}", image.denied_folder(), image.has_root()));
    rest.push(format!("{} shared texts", image.jobs.texts.len()));
    rest.sort();
    lines.extend(rest);
    lines
}

/// What a drift check of `image` reads, and the paths that it changes.
fn repair(image: &mut Image, walked: &Image, model: &Model) -> Vec<Path> {
    let mut paths = image.differing_rest(walked);
    paths.extend(image.differing_jobs(0..image.job_slots(), walked));
    paths.extend(walked.missing_jobs(0..walked.job_slots(), image));
    let changes = |path: &Path| image.apply(path.clone(), &found(model.get(path))) != Change::Nothing;
    paths.into_iter().filter(changes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_way_does_not_matter(changes in vec(any_change(), 0..150), turn in any::<usize>()) {
        let mut image = empty();
        let mut model = Model::new();
        let mut standing: BTreeMap<&str, i64> = BTreeMap::new();
        for (at, (path, fate)) in (1..).zip(changes) {
            let was_there = model.contains_key(&path);
            change(&mut model, &path, fate, at);
            let reported = image.apply(path.clone(), &found(model.get(&path)));
            let is_passed_over = match &path {
                Path::Own(_) | Path::Foreign => true,
                Path::Unexpected(text) => matches!(parent(text), Path::Entry(..)),
                _ => false,
            };
            let is_as_before = was_there == model.contains_key(&path);
            prop_assert!(is_passed_over || is_as_before || reported != Change::Nothing, "{} came or went", path);
            if let Change::Job { from, to, .. } | Change::OtherJob { from, to } = reported {
                *standing.entry(from.label()).or_default() -= 1;
                *standing.entry(to.label()).or_default() += 1;
            }
            if at % 16 == 0 {
                image.set_marks(age_marks(at * 1000), at);
            }
            // The same once more is nothing new.
            prop_assert_eq!(image.apply(path.clone(), &found(model.get(&path))), Change::Nothing);
        }
        // In another order: turned, and back to front.
        let split = turn % (model.len() + 1);
        let turned = walked(model.iter().skip(split).chain(model.iter().take(split)));
        let reversed = walked(model.iter().rev());
        prop_assert_eq!(said(&image), said(&turned));
        prop_assert_eq!(said(&image), said(&reversed));
        prop_assert_eq!(image.changes_since(&turned), []);
        prop_assert_eq!(repair(&mut image, &turned, &model), []);
        // What was counted on the way adds up to where the jobs are.
        let jobs = image.jobs.slice(0..image.job_slots());
        for seen in jobs.map(|row| row.seen().label()) {
            *standing.entry(seen).or_default() -= 1;
        }
        standing.remove("none");
        prop_assert!(standing.values().all(|jobs| *jobs == 0), "{:?}", standing);
        // Everything goes, and nothing is left of it.
        for path in model.keys() {
            image.apply(path.clone(), &Found::Nothing);
        }
        prop_assert_eq!(said(&image), said(&empty()));
    }

    #[test]
    fn a_drift_check_repairs_whatever_was_missed(heard in vec(any_change(), 0..80), missed in vec(any_change(), 0..12)) {
        let mut model = Model::new();
        for (at, (path, fate)) in (1..).zip(heard) {
            change(&mut model, &path, fate, at);
        }
        let mut image = walked(model.iter());
        let before = model.clone();
        for (at, (path, fate)) in (1000..).zip(missed) {
            change(&mut model, &path, fate, at);
        }
        let tree = walked(model.iter());
        let repaired = repair(&mut image, &tree, &model);
        prop_assert_eq!(said(&image), said(&tree));
        for path in repaired {
            prop_assert!(before.get(&path) != model.get(&path), "{} did not change", path);
        }
    }
}

#[test]
fn every_state_is_reached_by_a_status() {
    for state in JobState::ALL {
        let mut image = empty();
        let data = format!(r#"{{"status":"{state}"}}"#).into_bytes();
        image.apply(Path::parse("/jobs/jid0000000001/status"), &Found::Node { data, stat: new_stat(1) });
        let summary = image.summary(Timestamp::UNIX_EPOCH, Offset::default(), None);
        assert_eq!(summary.jobs.get(Some(*state)).count, 1, "{}", state.label());
    }
}

#[test]
fn a_job_that_was_locked_a_moment_ago_may_only_be_looked_at() {
    let mut image = empty();
    for (number, locked_at, space) in [(1, 100, "1000"), (2, 105, "200"), (3, 106, "30")] {
        let mut apply = |node: &str, data: &str, at: i64| {
            let found = Found::Node { data: data.into(), stat: new_stat(at) };
            image.apply(Path::parse(&format!("/jobs/jid000000000{number}/{node}")), &found);
        };
        apply("status", r#"{"status":"Provisioning"}"#, 1);
        apply("space_needed", space, 1);
        apply("lock", "", locked_at);
    }
    let at = |now_ms| {
        let query = FaultQuery { now_ms, offset: Offset::default(), limits: &Limits::default(), space: None };
        let state = image.state_situation(JobState::Provisioning, &Flow::default(), query);
        assert_eq!((state.jobs, state.locked), (3, 3));
        (state.looked_at, state.untaken(), state.space_needed_bytes)
    };
    assert_eq!(at(106_500), (2, 2, 230));
    assert_eq!(at(107_500), (1, 1, 30));
    assert_eq!(at(108_000), (0, 0, 0), "it holds them");
}
