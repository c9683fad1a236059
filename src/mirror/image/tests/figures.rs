//! The figures of an image are what a plain count of its items gives.

use std::collections::BTreeSet;

use super::*;
use crate::mirror::failures::FailureCause;
use crate::mirror::history::{Sample, index};
use crate::mirror::summary::{AGE_BOUNDS, ByAge, ByState, ItemFigures, JobFigures, LockFigures, Summary};
use crate::mirror::{Batch, Job, Lock, Request};
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{AccessQueue, LockFolder, QueueName};
use queuekeeper_queue::state::{AccessState, JobOutcome};

/// All items of an image, by our own clock, and what the tree holds.
struct Plain<'a> {
    jobs: Vec<Job>,
    batches: Vec<Batch>,
    requests: Vec<Request>,
    locks: Vec<Lock>,
    model: &'a Model,
    now: Timestamp,
    offset: Offset,
}

fn all<S: State>() -> impl Iterator<Item = Option<S>> {
    S::ALL.iter().copied().map(Some).chain([None])
}

impl<'a> Plain<'a> {
    fn of(image: &Image, model: &'a Model, now: Timestamp, offset: Offset) -> Self {
        let mut batches = image.batches(offset);
        batches.sort_by_key(|batch| (batch.entered.unwrap_or(Timestamp::MAX), batch.id));
        Self {
            jobs: image.jobs(0..image.job_slots(), offset),
            batches,
            requests: image.requests(offset),
            locks: image.locks(),
            model,
            now,
            offset,
        }
    }

    fn jobs_in(&self, state: Option<JobState>) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.state == state)
    }

    /// The first of some instants, which no clock that is ahead makes later than now.
    fn oldest(&self, instants: impl Iterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
        instants.flatten().min().map(|at| at.min(self.now))
    }

    /// What began at an unknown instant counts as young.
    fn by_age(&self, began: impl Iterator<Item = Option<Timestamp>>) -> ByAge {
        let mut bands = ByAge::default();
        for at in began {
            let age = at.map_or(0, |at| self.now.as_millisecond() - at.as_millisecond());
            let is_younger = |bound: &std::time::Duration| age < i64::try_from(bound.as_millis()).unwrap();
            bands[AGE_BOUNDS.iter().position(is_younger).unwrap_or(AGE_BOUNDS.len())] += 1;
        }
        bands
    }

    fn created(&self, lock: &Lock) -> Option<Timestamp> {
        lock.stat.map(|stat| self.offset.to_own(stat.created_ms))
    }

    fn job_figures(&self, state: Option<JobState>) -> JobFigures {
        let count = |is: &dyn Fn(&Job) -> bool| self.jobs_in(state).filter(|job| is(job)).count() as u64;
        let of = |is_locked| self.jobs_in(state).filter(move |job| job.lock.is_some() == is_locked);
        let locks = of(true).map(|job| job.lock.map(|lock| self.offset.to_own(lock.created_ms)));
        let space: u128 = self.jobs_in(state).map(|job| u128::from(job.space_needed_bytes)).sum();
        JobFigures {
            count: count(&|_| true),
            locked: count(&|job| job.lock.is_some()),
            retried: count(&|job| job.retry_count > Some(0)),
            retries: self.jobs_in(state).filter_map(|job| job.retry_count).map(u64::from).sum(),
            by_operator: count(&|job| job.is_by_operator),
            space_needed_bytes: u64::try_from(space).unwrap_or(u64::MAX),
            oldest_unlocked: self.oldest(of(false).map(|job| job.entered)),
            oldest_locked: self.oldest(of(true).map(|job| job.entered)),
            oldest_lock: self.oldest(locks),
            by_age: self.by_age(self.jobs_in(state).map(|job| job.entered)),
        }
    }

    fn batch_figures(&self, state: Option<BatchState>) -> ItemFigures {
        let batches = || self.batches.iter().filter(|batch| batch.state == state);
        let oldest = self.oldest(batches().map(|batch| batch.entered));
        ItemFigures { count: batches().count() as u64, requested_bytes: 0, oldest }
    }

    fn request_figures(&self, queue: AccessQueue, state: Option<AccessState>) -> ItemFigures {
        let requests = || self.requests.iter().filter(|request| request.queue == queue && request.state == state);
        ItemFigures {
            count: requests().count() as u64,
            requested_bytes: requests().map(|request| request.requested_bytes).sum(),
            oldest: self.oldest(requests().map(|request| request.entered)),
        }
    }

    fn lock_figures(&self, kind: LockKind) -> LockFigures {
        let locks = || self.locks.iter().filter(|lock| lock.kind == kind);
        LockFigures {
            count: locks().count() as u64,
            oldest: self.oldest(locks().map(|lock| self.created(lock))),
            by_age: self.by_age(locks().map(|lock| self.created(lock))),
        }
    }

    fn paused(&self, queue: QueueName) -> Option<Timestamp> {
        let lock = self.locks.iter().find(|lock| lock.path == Path::QueueLock(queue))?;
        Some(self.created(lock).unwrap_or(self.now).min(self.now))
    }

    fn failed_by_cause(&self) -> [u64; FailureCause::ALL.len()] {
        let mut failed = [0; FailureCause::ALL.len()];
        for job in self.jobs_in(Some(JobState::Failed)) {
            let cause = if job.is_by_operator { FailureCause::Operator } else { FailureCause::of(&job.message) };
            failed[cause as usize] += 1;
        }
        failed
    }

    /// Held jobs of held collections, but for those that an operator held.
    fn held_with_collection(&self) -> u64 {
        let is_held = |name: &str| self.model.contains_key(&Path::NamedLock(LockFolder::Collections, name.into()));
        let held = self.jobs_in(Some(JobState::Held)).filter(|job| !job.is_by_operator);
        held.filter(|job| !job.collection.is_empty() && is_held(&job.collection)).count() as u64
    }

    /// How many jobs a batch refers to in some folders.
    fn references(&self, batch: BatchId, outcomes: &[JobOutcome]) -> u32 {
        let is_of = |path: &&Path| matches!(path, Path::Reference(of, outcome, _) if *of == batch && outcomes.contains(outcome));
        u32::try_from(self.model.keys().filter(is_of).count()).unwrap()
    }

    /// The batches in progress, those first that are longest in their state.
    fn in_progress(&self) -> impl Iterator<Item = BatchId> {
        let is_in_progress = |batch: &&Batch| match batch.state {
            Some(BatchState::Processing | BatchState::Reporting | BatchState::UpdateReporting) => true,
            Some(BatchState::Failed) | None => self.references(batch.id, &[JobOutcome::Processing]) > 0,
            Some(_) => false,
        };
        self.batches.iter().filter(is_in_progress).map(|batch| batch.id)
    }

    fn check(&self, summary: &Summary, space: Option<i64>) {
        for state in all() {
            assert_eq!(*summary.jobs.get(state), self.job_figures(state), "{state:?}");
        }
        for state in all() {
            assert_eq!(*summary.batches.get(state), self.batch_figures(state), "{state:?}");
        }
        for queue in AccessQueue::ALL {
            for state in all() {
                assert_eq!(
                    *summary.access(*queue).get(state),
                    self.request_figures(*queue, state),
                    "{queue:?} {state:?}"
                );
            }
        }
        for kind in LockKind::ALL {
            assert_eq!(*summary.locks(kind), self.lock_figures(kind), "{kind:?}");
        }
        for queue in QueueName::ALL {
            assert_eq!(summary.paused(*queue), self.paused(*queue), "{queue:?}");
        }
        let retries = || self.jobs.iter().map(|job| job.retry_count.unwrap_or(0));
        let with = |least: u32, most: u32| retries().filter(|retries| (least..=most).contains(retries)).count() as u64;
        assert_eq!(summary.by_retries, [with(0, 0), with(1, 1), with(2, 2), with(3, u32::MAX)]);
        assert_eq!(summary.retries_max, u64::from(retries().max().unwrap_or(0)));
        let waits = |job: &&Job| space.is_some_and(|space| i128::from(job.space_needed_bytes) > i128::from(space));
        let waiting = self.jobs_in(Some(JobState::Provisioning)).filter(waits).count() as u64;
        assert_eq!(summary.waiting_for_space, waiting);
        assert_eq!(summary.collections_held, self.lock_figures(LockKind::Collection).count);
        assert_eq!(summary.held_with_collection, self.held_with_collection());
        let sessions: BTreeSet<_> = self.locks.iter().filter_map(|lock| lock.stat).map(|stat| stat.session).collect();
        assert_eq!(summary.lock_sessions, sessions.iter().filter(|session| **session != 0).count() as u64);
        assert_eq!(summary.failed_by_cause, self.failed_by_cause());
    }

    /// What the history keeps.
    fn check_sample(&self, image: &Image, limit: usize) {
        let Sample { figures, batches } = image.sample(self.now, self.offset, limit);
        for state in all() {
            let of = self.job_figures(state);
            let at = index(state);
            assert_eq!(
                (u64::from(figures.jobs[at]), u64::from(figures.locked[at])),
                (of.count, of.locked),
                "{state:?}"
            );
            let oldest = self.jobs_in(state).filter_map(|job| job.entered).min();
            let age = oldest.map(|at| self.now.duration_since(at).as_secs().max(0));
            assert_eq!(figures.oldest[at], age.map_or(u32::MAX, |age| age.try_into().unwrap()), "{state:?}");
        }
        let in_progress: Vec<_> = self.in_progress().collect();
        assert_eq!(figures.batches_in_progress as usize, in_progress.len());
        let ended = |batch| self.references(batch, &[JobOutcome::Failed, JobOutcome::Completed, JobOutcome::Deleted]);
        let expected: Vec<_> = in_progress.iter().take(limit).map(|batch| (*batch, ended(*batch))).collect();
        assert_eq!(batches, expected);
        let (listed, count) = image.batches_in_progress(limit, self.offset);
        assert!(listed.iter().map(|batch| batch.id).eq(expected.iter().map(|(batch, _)| *batch)));
        assert_eq!(count, in_progress.len());
        let without_jobs = self.batches.iter().filter(|batch| {
            batch.state == Some(BatchState::Failed) && self.references(batch.id, &JobOutcome::ALL) == 0
        });
        let (count, first) = image.failed_without_jobs(self.offset);
        assert_eq!((count, first.as_ref()), (without_jobs.clone().count() as u64, without_jobs.clone().next()));
    }

    fn check_instants(&self, image: &Image) {
        let entered = |state| self.jobs_in(Some(state)).filter_map(|job| job.entered).max();
        let left = image.inferred_left();
        for state in JobState::ALL {
            let expected = state.steps_to(JobState::Completed).into_iter().filter_map(entered).max();
            assert_eq!(left.get(Some(*state)).map(|at| self.offset.to_own(at)), expected, "{state}");
        }
        let jobs = JobState::ALL.iter().filter_map(|state| entered(*state));
        let others = self.batches.iter().map(|batch| batch.entered);
        let others = others.chain(self.requests.iter().map(|request| request.entered)).flatten();
        assert_eq!(image.latest_ms().map(|at| self.offset.to_own(at)), jobs.chain(others).max());
    }

    fn check_collections(&self, image: &Image) {
        let mut expected: BTreeMap<String, ByState<JobState, u64>> = BTreeMap::new();
        for job in &self.jobs {
            *expected.entry(job.collection.to_string()).or_default().get_mut(job.state) += 1;
        }
        let listed = image.collections().into_iter().map(|figures| (figures.collection.to_string(), figures.jobs));
        assert_eq!(listed.collect::<BTreeMap<_, _>>(), expected);
        let jobs: Vec<_> = self.jobs.iter().map(|job| job.id).collect();
        let is_held = |name: &str| self.model.contains_key(&Path::NamedLock(LockFolder::Collections, name.into()));
        let held = expected.iter().filter(|(name, _)| !name.is_empty() && is_held(name));
        let held: BTreeMap<String, u64> =
            held.map(|(name, jobs)| (name.clone(), jobs.iter().map(|(_, jobs)| *jobs).sum())).collect();
        let found = image.held_collections_of(&jobs);
        assert!(found.is_sorted_by_key(|(_, jobs)| std::cmp::Reverse(*jobs)));
        assert_eq!(found.into_iter().map(|(name, jobs)| (name.to_string(), jobs)).collect::<BTreeMap<_, _>>(), held);
    }

    fn check_znodes(&self, image: &Image, summary: &Summary) {
        let is_counted = |path: &&Path| match path {
            Path::Own(_) | Path::Foreign => false,
            // Below these nothing is looked at.
            Path::Unexpected(text) => !matches!(parent(text), Path::Entry(..) | Path::Reference(..)),
            _ => true,
        };
        assert_eq!(summary.znodes, self.model.keys().filter(is_counted).count() as u64);
        let unreadable = self.model.keys().filter(|path| image.is_unreadable(path)).count() as u64;
        assert_eq!(summary.unreadable, unreadable);
        assert_eq!(image.unreadable_paths(usize::MAX).len() as u64, unreadable);
        for (path, node) in self.model {
            let is_closed = *node == Node::Closed;
            match path {
                Path::Entry(..) | Path::Reference(..) | Path::Own(_) | Path::Foreign => {
                    assert!(!image.is_unreadable(path), "{path}");
                }
                Path::JobNode(..) | Path::BatchNode(..) | Path::RequestNode(..) => {
                    assert!(!is_closed || image.is_unreadable(path), "{path}");
                }
                Path::Unexpected(_) => {}
                _ => assert_eq!(image.is_unreadable(path), is_closed, "{path}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn figures_are_those_of_a_plain_count(
        changes in vec(any_change(), 0..150),
        // From before the first change until all of them lie in the last band; some are as old as a band's bound.
        now_s in select(vec![0, 60, 120, 160, 661, 3_700, 21_700, 86_500, 200_000]),
        offset_ms in select(vec![0, 30_000, -5_000]),
        space in option::of(select(vec![-1, 1_000, 1_048_576, i64::MAX])),
        limit in 0usize..4,
    ) {
        let mut image = empty();
        let mut model = Model::new();
        for (at, (path, fate)) in (1..).zip(changes) {
            change(&mut model, &path, fate, at);
            image.apply(path.clone(), &found(model.get(&path)));
            if at % 16 == 0 {
                image.set_marks(age_marks(at * 1000), at);
            }
        }
        let (now, offset) = (Timestamp::from_second(now_s).unwrap(), Offset::of_ms(offset_ms));
        let plain = Plain::of(&image, &model, now, offset);
        let summary = image.summary(now, offset, space);
        plain.check(&summary, space);
        plain.check_sample(&image, limit);
        plain.check_instants(&image);
        plain.check_collections(&image);
        plain.check_znodes(&image, &summary);
    }
}
