//! What is found is what a plain filter and sort finds, whatever the query and however the jobs came to be.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use zookeeper_client::Stat;

use super::*;
use crate::mirror::clock::Offset;
use crate::mirror::failures::{FailureGroup, FailureKey, pattern};
use crate::mirror::find::Direction;
use crate::mirror::image::tests::{empty, new_stat};
use crate::mirror::lists::{FailureOrder, PageRequest};
use crate::mirror::read::Found;
use crate::mirror::text::TextColumn;
use queuekeeper_queue::fault::{Fault, Limits};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::state::JobState;

const TEXTS: [&str; 7] = ["", "Éa.zip", "rbn_000123.ZIP", "<script>", "100%_\\", "ark:/99999/fk4", "\u{202e}x;y"];
const MESSAGES: [&str; 6] =
    ["Success", "404 for https://x/1", "404 for https://x/22", "no 7", "No 8", "jid0000000003 failed"];
const STATES: [&str; 6] = ["Pending", "Failed", "failed", "Failed", "Completed", "Teleporting"];

/// What a change writes, or takes away.
fn any_change() -> impl Strategy<Value = (JobNode, Option<String>)> {
    let texts = || select(TEXTS.to_vec());
    let status = (select(STATES.to_vec()), select(MESSAGES.to_vec()), 0u32..4, any::<bool>());
    let status = status.prop_map(|(state, message, retries, is_early)| {
        let last = if is_early { r#""Pending""# } else { "null" };
        let json = format!(
            r#"{{"status":"{state}","message":"{message}","retry_count":{retries},"last_successful_status":{last}}}"#
        );
        (JobNode::Status, json)
    });
    let configuration = (texts(), texts(), texts(), select(vec!["", "a", "B"])).prop_map(|(file, title, ark, profile)| {
        let json = serde_json::json!({
            "filename": file, "title": title, "objectID": ark, "localID": title, "profile": profile, "submitter": file,
        });
        (JobNode::Configuration, json.to_string())
    });
    let identifiers = (texts(), texts(), select(vec![JobNode::Identifiers, JobNode::Identifier]));
    let identifiers = identifiers.prop_map(|(ark, local_id, node)| {
        (node, serde_json::json!({"primary_id": ark, "local_id": [local_id]}).to_string())
    });
    let bid = select(vec!["bid0000000000", "bid0000000007", "junk"]).prop_map(|bid| (JobNode::Bid, bid.to_owned()));
    let priority = select(vec!["5", "05", "0", "104"]).prop_map(|value| (JobNode::Priority, value.to_owned()));
    let space =
        select(vec!["0", "7", "9223372036854775807"]).prop_map(|value| (JobNode::SpaceNeeded, value.to_owned()));
    let lock = Just((JobNode::Lock, String::new()));
    let node =
        prop_oneof![5 => status, 3 => configuration, 1 => identifiers, 1 => bid, 1 => priority, 1 => space, 1 => lock];
    (node, 0u8..6).prop_map(|((node, data), gone)| (node, (gone > 0).then_some(data)))
}

fn any_query() -> impl Strategy<Value = JobQuery> {
    let state = select(vec![None, Some(JobState::Pending), Some(JobState::Failed), Some(JobState::Completed)]);
    let where_ = (
        vec(state, 0..3),
        option::weighted(0.2, select(vec!["", "a", "B", "nowhere"])),
        option::weighted(0.2, select(vec![0, 7, 9]).prop_map(BatchId::new)),
        option::weighted(0.2, (0u64..200).prop_map(Duration::from_secs)),
        option::weighted(0.2, 0u32..4),
        option::weighted(0.2, any::<bool>()),
        option::weighted(0.2, select(Fault::ALL.to_vec())),
        option::weighted(0.2, (select(MESSAGES.to_vec()), any::<bool>())),
    );
    let needles =
        select(vec!["é", "ZIP", "jid00", "0000001", "%_\\", "script>", "ark:", "SUCCESS", "x;y", "zipark", "\n."]);
    let text = option::weighted(0.4, needles);
    let order = (select(JobOrder::ALL.to_vec()), select(Direction::ALL.to_vec()), 1usize..6);
    (where_, text, order).prop_map(|(where_, text, (sort, direction, limit))| {
        let (states, collection, batch, min_age, min_retries, locked, fault, group) = where_;
        let group =
            group.map(|(message, is_early)| FailureKey::of(is_early.then_some(JobState::Pending), &pattern(message)));
        let text = text.and_then(|text| SearchText::new(text).unwrap());
        let collection = collection.map(str::to_owned);
        let cursor = None;
        JobQuery {
            states,
            collection,
            batch,
            min_age,
            min_retries,
            locked,
            fault,
            group,
            text,
            sort,
            direction,
            limit,
            cursor,
        }
    })
}

fn fault_query(now_ms: i64, limits: &Limits) -> FaultQuery<'_> {
    FaultQuery { now_ms, offset: Offset::default(), limits, space: None }
}

fn millis(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millisecond)
}

/// Whether a job is wanted, by what readers see of it.
fn is_wanted(image: &Image, job: &Job, query: &JobQuery, fault_query: FaultQuery<'_>) -> bool {
    let row = image.jobs.get(job.id).unwrap();
    let own = (0..TextColumn::FIELDS).map(|field| row.text.field(field).into_owned());
    let mut texts = own.chain([job.message.to_string(), job.submitter.to_string()]);
    let faults = || image.faults_of(&Path::Job(job.id), fault_query);
    let failure =
        || (job.state == Some(JobState::Failed)).then(|| FailureKey::of(job.last_successful, &pattern(&job.message)));
    let age = || job.entered.map(|entered| fault_query.now_ms - entered.as_millisecond());
    (query.states.is_empty() || query.states.contains(&job.state))
        && query.collection.as_ref().is_none_or(|collection| *collection == *job.collection)
        && query.batch.is_none_or(|batch| job.batch == Some(batch))
        && query.min_age.is_none_or(|min| age().is_some_and(|age| age >= i64::try_from(min.as_millis()).unwrap()))
        && query.min_retries.is_none_or(|min| job.retry_count.unwrap_or(0) >= min)
        && query.locked.is_none_or(|locked| job.lock.is_some() == locked)
        && query.fault.is_none_or(|fault| faults().iter().any(|found| found.fault == fault))
        && query.group.is_none_or(|group| failure() == Some(group))
        && query
            .text
            .as_ref()
            .is_none_or(|needle| texts.any(|text| text.to_lowercase().contains(&needle.as_str().to_lowercase())))
}

fn expected(image: &Image, jobs: &[Job], query: &JobQuery, fault_query: FaultQuery<'_>) -> Vec<Job> {
    let mut jobs: Vec<_> = jobs.iter().filter(|job| is_wanted(image, job, query, fault_query)).cloned().collect();
    jobs.sort_by_key(|job| {
        let is_final = job.state.is_some_and(JobState::is_final);
        // The unfinished ones stay on top when all else is turned round.
        let is_second = query.sort == JobOrder::Unfinished && is_final == (query.direction == Direction::Ascending);
        let value = match query.sort {
            JobOrder::Unfinished | JobOrder::Entered => i128::from(millis(job.entered).unwrap_or(i64::MAX)),
            JobOrder::Id => 0,
            JobOrder::Priority => job.priority.map_or(1000, |priority| priority.number().into()),
            JobOrder::SpaceNeeded => job.space_needed_bytes.into(),
            JobOrder::Retries => job.retry_count.unwrap_or(0).into(),
            JobOrder::Batch => job.batch.map_or(i128::MAX, |batch| batch.number().into()),
        };
        (is_second, value, job.id)
    });
    if query.direction == Direction::Descending {
        jobs.reverse();
    }
    jobs
}

fn groups(image: &Image) -> BTreeMap<FailureKey, Vec<Job>> {
    let mut groups: BTreeMap<_, Vec<Job>> = BTreeMap::new();
    for job in image.jobs(0..image.job_slots(), Offset::default()) {
        if job.state == Some(JobState::Failed) {
            groups.entry(FailureKey::of(job.last_successful, &pattern(&job.message))).or_default().push(job);
        }
    }
    groups
}

fn check_group(group: &FailureGroup, jobs: &[Job]) -> Result<(), TestCaseError> {
    prop_assert_eq!(group.count, jobs.len() as u64);
    prop_assert_eq!(group.resumed, jobs.iter().filter(|job| job.retry_count > Some(0)).count() as u64);
    let times = || jobs.iter().filter_map(|job| job.entered);
    prop_assert_eq!((group.oldest, group.newest), (times().min(), times().max()));
    prop_assert!(
        jobs.iter().all(|job| pattern(&job.message) == group.pattern && job.last_successful == group.last_successful)
    );
    prop_assert!(jobs.iter().any(|job| job.message == group.message && group.jobs.first() == Some(&job.id)));
    prop_assert_eq!(group.jobs.len(), jobs.len().min(5));
    let batches: BTreeSet<_> = jobs.iter().filter_map(|job| job.batch).collect();
    prop_assert_eq!(group.batch_count, batches.len() as u64);
    for (batch, count) in &group.batches {
        prop_assert_eq!(*count, jobs.iter().filter(|job| job.batch == Some(*batch)).count() as u64);
    }
    let collections: BTreeSet<_> = jobs.iter().map(|job| &job.collection).collect();
    prop_assert_eq!(group.collection_count, collections.len() as u64);
    for (collection, count) in &group.collections {
        prop_assert_eq!(*count, jobs.iter().filter(|job| job.collection == *collection).count() as u64);
    }
    Ok(())
}

/// Compares all pages of a query, and the way back from each, with what is expected of all jobs. Gives what is expected.
fn check_pages(
    image: &Image,
    jobs: &[Job],
    query: &JobQuery,
    matches: Option<&TextMatches>,
    fault_query: FaultQuery<'_>,
) -> Result<Vec<Job>, TestCaseError> {
    let expected = expected(image, jobs, query, fault_query);
    let counts = image.count_by_state(query, matches, fault_query, fault_query.now_ms);
    let of_any_state = JobQuery { states: Vec::new(), ..query.clone() };
    let wanted: Vec<_> = jobs.iter().filter(|job| is_wanted(image, job, &of_any_state, fault_query)).collect();
    for state in JobState::ALL.iter().copied().map(Some).chain([None]) {
        prop_assert_eq!(*counts.get(state), wanted.iter().filter(|job| job.state == state).count());
    }
    let (mut query, mut seen) = (query.clone(), Vec::new());
    loop {
        let page = image.find_jobs(&query, matches, fault_query, fault_query.now_ms);
        prop_assert_eq!((page.total, page.before), (expected.len(), seen.len()));
        prop_assert!(page.items.len() <= query.limit);
        prop_assert_eq!(page.previous.is_some(), !seen.is_empty());
        if let Some(previous) = page.previous {
            let back = JobQuery { cursor: Some(previous.parse().unwrap()), ..query.clone() };
            let back = image.find_jobs(&back, matches, fault_query, fault_query.now_ms);
            prop_assert_eq!(&back.items, &seen[seen.len() - query.limit..]);
            prop_assert_eq!((back.total, back.before), (expected.len(), seen.len() - query.limit));
        }
        seen.extend(page.items);
        let Some(next) = page.next else { break };
        query.cursor = Some(next.parse().unwrap());
    }
    prop_assert_eq!(&seen, &expected);
    Ok(expected)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_query_finds_what_a_plain_filter_and_sort_finds(
        changes in vec((0u32..12, any_change()), 0..150),
        queries in vec(any_query(), 1..12),
        walked in 0usize..150,
    ) {
        let mut image = empty();
        if walked > 0 {
            image = Image::default();
        }
        let limits = Limits::default();
        let mut queries = queries.iter().cycle();
        let changed = changes.len();
        for (at, (job, (node, data))) in (1..).zip(changes) {
            let stat = Stat { version: i32::try_from(at).unwrap(), ..new_stat(at) };
            let found = data.map_or(Found::Nothing, |data| Found::Node { data: data.into_bytes(), stat });
            image.apply(Path::JobNode(JobId::new(job), node), &found);
            if usize::try_from(at).unwrap() == walked {
                image.finish();
                image.evaluate_all(None, 0, at * 1000, &limits);
            }
            if usize::try_from(at).unwrap() < walked || at % 5 != 0 && usize::try_from(at).unwrap() != changed {
                continue;
            }
            while image.evaluate(at * 1000, &limits, 100) {}
            let fault_query = fault_query(at * 1000 + 5_000, &limits);
            let query = queries.next().unwrap();
            let matches = query.text.as_ref().map(|text| image.search(text));
            let jobs = image.jobs(0..image.job_slots(), Offset::default());
            check_pages(&image, &jobs, query, matches.as_ref(), fault_query)?;

            let expected = groups(&image);
            let order = FailureOrder::ALL[usize::try_from(at).unwrap() % 3];
            let (mut part, mut seen, mut ranks) = (PageRequest { after: None, size: 2 }, BTreeSet::new(), Vec::new());
            loop {
                let page = image.failures(order, &part, Offset::default()).unwrap();
                prop_assert_eq!((page.total, page.before), (expected.len() as u64, seen.len() as u64));
                for group in &page.items {
                    check_group(group, &expected[&group.key])?;
                    prop_assert!(seen.insert(group.key));
                    let latest = |at: Option<Timestamp>| at.map_or(i64::MAX, |at| -at.as_millisecond());
                    ranks.push(match order {
                        FailureOrder::Largest => -i64::try_from(group.count).unwrap(),
                        FailureOrder::Newest => latest(group.newest),
                        FailureOrder::Oldest => millis(group.oldest).unwrap_or(i64::MAX),
                    });
                    prop_assert_eq!(image.failure(group.key, Offset::default()), Some(group.clone()));
                    prop_assert_eq!(image.failure_of(group.jobs[0], Offset::default()), Some(group.clone()));
                }
                let Some(next) = page.next else { break };
                part.after = Some(next.to_string().parse().unwrap());
            }
            prop_assert_eq!(seen.len(), expected.len());
            prop_assert!(ranks.is_sorted());
        }
        // Nothing is left of jobs that are gone.
        for job in 0..12 {
            for node in JobNode::ALL {
                image.apply(Path::JobNode(JobId::new(job), *node), &Found::Nothing);
            }
        }
        let all = PageRequest { after: None, size: 10 };
        prop_assert_eq!(image.failures(FailureOrder::Largest, &all, Offset::default()).unwrap().total, 0);
        prop_assert_eq!(image.jobs.texts.len(), 0);
    }
    #[test]
    fn many_jobs_that_are_much_alike_are_found_as_a_plain_filter_and_sort_finds_them(
        changes in vec((0u32..250, any_change()), 300..700),
        queries in vec(any_query(), 12),
        cursors in vec((any::<bool>(), any::<bool>(), 0u128..1_000 << 32), 4),
        walked in 0usize..600,
        at_once in 1i64..200,
    ) {
        let mut image = if walked > 0 { Image::default() } else { empty() };
        let limits = Limits::default();
        let end = changes.len();
        for (at, (job, (node, data))) in (1..).zip(changes) {
            // Many changes of one instant: what they are sorted by is alike, and the ids decide.
            let ms = i64::try_from(at).unwrap() / at_once;
            let stat = Stat { version: i32::try_from(at).unwrap(), ..new_stat(ms) };
            let found = data.map_or(Found::Nothing, |data| Found::Node { data: data.into_bytes(), stat });
            image.apply(Path::JobNode(JobId::new(job), node), &found);
            if at == walked || at == end && walked > end {
                image.finish();
                image.evaluate_all(None, 0, ms * 1000, &limits);
            }
        }
        let now_ms = i64::try_from(end).unwrap() / at_once * 1000;
        while image.evaluate(now_ms, &limits, 1000) {}
        let fault_query = fault_query(now_ms + 5_000, &limits);
        let jobs = image.jobs(0..image.job_slots(), Offset::default());
        for query in queries {
            let matches = query.text.as_ref().map(|text| image.search(text));
            let matches = matches.as_ref();
            let query = JobQuery { limit: query.limit * 20, ..query };
            let all = check_pages(&image, &jobs, &query, matches, fault_query)?;
            // From a place where no job stands, too.
            for (is_back, is_second, at) in cursors.iter().copied() {
                let at = match query.sort {
                    JobOrder::Unfinished if is_second => super::select::SECOND | ((1 << 95) + at * 300),
                    JobOrder::Unfinished | JobOrder::Entered => (1 << 95) + at * 300,
                    JobOrder::Id | JobOrder::Priority | JobOrder::SpaceNeeded | JobOrder::Retries | JobOrder::Batch => at,
                };
                let at = if query.direction == Direction::Descending { at ^ super::select::TURNED } else { at };
                let cursor = Some(JobCursor { sort: query.sort, direction: query.direction, is_back, at });
                let page = image.find_jobs(&JobQuery { cursor, ..query.clone() }, matches, fault_query, fault_query.now_ms);
                prop_assert_eq!(page.total, all.len());
                prop_assert_eq!(&page.items[..], &all[page.before..page.before + page.items.len()]);
                let rest = if is_back { page.before } else { all.len() - page.before - page.items.len() };
                prop_assert!(page.items.len() == query.limit || rest == 0);
            }
        }
    }
}
