//! Equal changes of many jobs as one.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::BatchChange;
use queuekeeper_queue::id::JobId;

/// Equal changes that are farther apart are two.
const GAP: SignedDuration = SignedDuration::from_mins(10);

/// How many of the jobs are named.
const EXAMPLES: usize = 10;

/// A change of a job.
#[derive(Clone, Debug)]
pub(super) struct JobChange {
    pub(super) job: JobId,
    pub(super) change: BatchChange,
}

/// What equal changes have in common.
type Key = (Option<&'static str>, &'static str, Option<String>, Option<String>, Option<String>);

/// Equal changes, one soon after another.
struct Run {
    jobs: BTreeSet<JobId>,
    first: Timestamp,
    last: BatchChange,
}

/// Puts changes together that are equal but for the job and the daemon, and follow each other soon; the oldest first.
pub(super) fn fold(mut changes: Vec<JobChange>) -> Vec<BatchChange> {
    changes.sort_by_key(|change| (change.change.at, change.job));
    let mut runs: Vec<Run> = Vec::new();
    let mut latest: HashMap<Key, usize> = HashMap::new();
    for JobChange { job, change } in changes {
        let hold = change.hold.as_ref().map(|hold| hold.collection.clone());
        let key = (change.from, change.to, change.actor.clone(), change.reason.clone(), hold);
        let open = latest.get(&key).and_then(|at| runs.get_mut(*at));
        if let Some(run) = open.filter(|run| change.at.duration_since(run.last.at) <= GAP) {
            let is_same = run.last.session == change.session;
            let (session, address) = if is_same { (change.session, change.address.clone()) } else { (None, None) };
            run.jobs.insert(job);
            run.last = BatchChange { session, address, ..change };
        } else {
            latest.insert(key, runs.len());
            runs.push(Run { jobs: BTreeSet::from([job]), first: change.at, last: change });
        }
    }
    let mut folded: Vec<_> = runs.into_iter().map(Run::folded).collect();
    folded.sort_by_key(|change| change.at);
    folded
}

impl Run {
    fn folded(self) -> BatchChange {
        let Self { jobs, first, last } = self;
        let is_one = jobs.len() == 1;
        BatchChange {
            first_at: (!is_one).then_some(first),
            jobs: jobs.len() as u64,
            job: jobs.first().filter(|_| is_one).map(ToString::to_string),
            examples: jobs.iter().take(EXAMPLES).map(ToString::to_string).collect(),
            ..last
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(second: i64, job: u32, to: &'static str, actor: Option<&str>) -> JobChange {
        let change = BatchChange {
            at: Timestamp::from_second(1_795_255_200 + second).unwrap(),
            first_at: None,
            jobs: 0,
            job: None,
            from: Some("pending"),
            to,
            actor: actor.map(str::to_owned),
            reason: actor.map(|_| "a test".to_owned()),
            hold: None,
            session: None,
            address: None,
            examples: Vec::new(),
        };
        JobChange { job: JobId::new(job), change }
    }

    #[test]
    fn equal_changes_of_many_jobs_are_one_until_there_is_a_gap() {
        let minute = 60;
        let mut changes: Vec<_> = (0..26).map(|job| change(job.into(), job, "held", None)).collect();
        // Another state and another actor in between are others, and so is the same an hour later.
        changes.push(change(5, 40, "estimating", None));
        changes.push(change(6, 41, "held", Some("anna")));
        changes.push(change(60 * minute, 42, "held", None));
        // The same job twice is one job.
        changes.push(change(26, 3, "held", None));
        changes.reverse();
        let folded = fold(changes);
        let found: Vec<_> = folded.iter().map(|change| (change.jobs, change.to, change.actor.as_deref())).collect();
        let expected = [(1, "estimating", None), (1, "held", Some("anna")), (26, "held", None), (1, "held", None)];
        assert_eq!(found, expected);
        let many = &folded[2];
        assert_eq!((many.at.duration_since(many.first_at.unwrap()).as_secs(), &many.job), (26, &None));
        assert_eq!(many.examples.len(), EXAMPLES);
        assert_eq!((folded[1].job.as_deref(), folded[1].first_at), (Some("jid0000000041"), None));
    }
}
