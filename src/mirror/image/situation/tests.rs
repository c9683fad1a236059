//! What a diagnosis is made from is what a plain look at all jobs shows.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use zookeeper_client::Stat;

use super::*;
use crate::mirror::image::tests::{empty, new_stat};
use crate::mirror::read::Found;
use crate::mirror::{Batch, Job};
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::record::ExpansionNote;
use queuekeeper_queue::state::BatchState;

mod own;

/// By the servers' clock.
const NOW_MS: i64 = 500_000_000;

/// How far that is ahead of ours.
const AHEAD_MS: i64 = 7_000;

fn offset() -> Offset {
    Offset::of_ms(AHEAD_MS)
}

/// A job of the model. Ages are in milliseconds.
#[derive(Clone, Debug)]
struct Model {
    state: &'static str,
    message: &'static str,
    retries: u32,
    age: i64,
    /// Priority and folder of its entries.
    entries: Vec<(i32, &'static str)>,
    /// Session and age.
    lock: Option<(i64, i64)>,
    collection: &'static str,
    space: u64,
    batch: Option<u32>,
}

/// Few of each, so that they meet and tie.
fn any_job() -> impl Strategy<Value = Model> {
    let state = select(vec!["Pending", "Pending", "Provisioning", "Provisioning", "Storing", "Failed", "Held", "Held"]);
    let message = select(vec!["404 for a_1.zip", "404 for b_22.zip", "By alice with queuekeeper: why", "Success"]);
    let entry = (0i32..4, select(vec!["pending", "provisioning", "storing"]));
    let entries = prop_oneof![
        6 => (0i32..4).prop_map(|priority| vec![(priority, "")]),
        1 => entry.clone().prop_map(|entry| vec![entry]),
        1 => (0i32..4, entry).prop_map(|(priority, entry)| vec![(priority, ""), entry]),
        1 => Just(Vec::new()),
    ];
    let ages = vec![500, 1_999, 2_000, 2_001, 60_000, 3_600_000];
    let lock = option::of((0i64..4, select(ages.clone())));
    let space = select(vec![0, 10, 1_000, u64::MAX >> 1]);
    let collection = select(vec!["", "a", "b", "c"]);
    (state, message, 0u32..3, select(ages), entries, lock, (collection, space, option::of(0u32..3))).prop_map(
        |(state, message, retries, age, entries, lock, (collection, space, batch))| {
            let own = state.to_lowercase();
            let own =
                *["pending", "provisioning", "storing", "failed", "held"].iter().find(|name| **name == own).unwrap();
            let entries = entries.into_iter();
            let mut entries: Vec<_> =
                entries.map(|(priority, folder)| (priority, if folder.is_empty() { own } else { folder })).collect();
            entries.dedup_by_key(|(_, folder)| *folder);
            Model { state, message, retries, age, entries, lock, collection, space, batch }
        },
    )
}

fn put(image: &mut Image, path: &str, data: String, age: i64, session: i64) {
    let at = NOW_MS - age;
    let stat = Stat { ctime: at, mtime: at, ephemeral_owner: session, ..new_stat(1) };
    let path = Path::own(path).unwrap_or_else(|| Path::parse(path));
    image.apply(path, &Found::Node { data: data.into_bytes(), stat });
}

/// Names of locks beside those of jobs, and the session of each.
const LOCKS: [(&str, i64); 7] = [
    ("/locks/storage/a", 1),
    ("/locks/storage/b", 1),
    ("/locks/inventory/a", 1),
    ("/locks/inventory/b", 2),
    ("/batches/bid0000000000/lock", 1),
    ("/batches/bid0000000001/lock", 3),
    ("/access/small/qid0000000001/lock", 2),
];

fn image(jobs: &[Model], held: &BTreeSet<&str>, is_paused: bool) -> Image {
    let mut image = empty();
    for (number, job) in jobs.iter().enumerate() {
        let Model { state, message, retries, age, entries, lock, collection, space, batch } = job;
        let mut node = |node: &str, data: String, age: i64, session: i64| {
            put(&mut image, &format!("/jobs/jid{number:010}{node}"), data, age, session);
        };
        let status = format!(r#"{{"status":"{state}","message":"{message}","retry_count":{retries}}}"#);
        node("/status", status, *age, 0);
        node("/configuration", format!(r#"{{"profile":"{collection}"}}"#), *age, 0);
        node("/space_needed", space.to_string(), *age, 0);
        if let Some(batch) = batch {
            node("/bid", format!("bid{batch:010}"), *age, 0);
        }
        if let Some((session, age)) = lock {
            node("/lock", String::new(), *age, *session);
        }
        for (priority, folder) in entries {
            put(&mut image, &format!("/jobs/states/{folder}/{priority:02}-jid{number:010}"), String::new(), 0, 0);
        }
    }
    // Of a job that is gone.
    put(&mut image, "/jobs/states/pending/01-jid0000000099", String::new(), 0, 0);
    for (number, state) in ["Processing", "Completed"].iter().enumerate() {
        put(&mut image, &format!("/batches/bid{number:010}/status"), format!(r#"{{"status":"{state}"}}"#), 9_000, 0);
    }
    put(&mut image, "/batches/bid0000000000/states", String::new(), 9_000, 0);
    for folder in ["/batch-processing", "/batch-processing/jid0000000000", "/batch-failed"] {
        put(&mut image, &format!("/batches/bid0000000000/states{folder}"), String::new(), 9_000, 0);
    }
    for (path, session) in LOCKS {
        put(&mut image, path, String::new(), 8_000, session);
    }
    for name in held {
        put(&mut image, &format!("/locks/collections/{name}"), r#"{"who":"anna","why":"disks"}"#.to_owned(), 5_000, 0);
    }
    if is_paused {
        put(&mut image, "/locks/queue/ingest", r#"{"who":"ben"}"#.to_owned(), 4_000, 0);
    }
    let note = ExpansionNote { next: 900, rows: None, digest: String::new(), last: Some(JobId::new(0)) };
    put(&mut image, "/queuekeeper/expansions/bid0000000000", String::from_utf8(note.encode()).unwrap(), 0, 0);
    image.evaluate_all(None, 0, 0, &Limits::default());
    image.inherit(None, NOW_MS);
    image.note_unserved(NOW_MS);
    image
}

/// What a reader sees of an image.
struct Plain<'a> {
    image: &'a Image,
    jobs: Vec<Job>,
    held: BTreeSet<&'a str>,
    is_paused: bool,
    space: Option<i64>,
    limits: Limits,
}

fn ago(age: i64) -> Timestamp {
    Timestamp::from_millisecond(NOW_MS - AHEAD_MS - age).unwrap()
}

impl Plain<'_> {
    fn query(&self) -> FaultQuery<'_> {
        FaultQuery { now_ms: NOW_MS, offset: offset(), limits: &self.limits, space: self.space }
    }

    fn jobs_in(&self, state: JobState) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.state == Some(state))
    }

    fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    fn is_held(&self, job: &Job) -> bool {
        self.held.contains(&*job.collection)
    }

    /// The entries in a state in the order of work, with those of jobs that are not in it.
    fn entries(&self, state: JobState) -> Vec<EntryName> {
        let folder = StateFolder::from(state);
        let stray = EntryName { priority: 1, job: JobId::new(99) };
        let strays = (state == JobState::Pending).then_some(stray);
        let own = self.jobs.iter().flat_map(|job| &job.entries).filter(|(of, _)| *of == folder);
        let mut entries: Vec<_> = own.map(|(_, entry)| *entry).chain(strays).collect();
        entries.sort();
        entries
    }

    fn hold(&self, collection: &str) -> Option<PauseSituation> {
        let pause = || PauseSituation { since: Some(ago(5_000)), who: "anna".into(), why: "disks".into() };
        self.held.contains(collection).then(pause)
    }

    fn pause(&self) -> Option<PauseSituation> {
        self.is_paused.then(|| PauseSituation { since: Some(ago(4_000)), who: "ben".into(), why: "".into() })
    }

    /// Whose lock it is, and how much else the same session holds.
    fn check_holding(&self, holding: &Holding, session: i64, created_ms: i64, path: &Path) {
        assert_eq!((holding.session, holding.since), (session, offset().to_own(created_ms)));
        let jobs = self.jobs.iter().filter(|job| job.lock.is_some_and(|lock| lock.session == session));
        let jobs = jobs.map(|job| Path::JobNode(job.id, JobNode::Lock));
        let named = LOCKS.iter().filter(|(_, of)| *of == session).map(|(path, _)| Path::parse(path));
        let others: BTreeSet<_> = jobs.chain(named).filter(|other| other != path && session != 0).collect();
        assert_eq!(holding.others_count, others.len() as u64, "{path}");
        assert_eq!(holding.others.len(), others.len().min(NAMED), "{path}");
        assert!(holding.others.iter().all(|other| others.contains(other)), "{path}");
    }

    fn position(&self, job: &Job, state: JobState) -> Option<(Path, QueuePosition)> {
        let folder = StateFolder::from(state);
        let own = job.entries.iter().filter(|(of, _)| *of == folder).map(|(_, entry)| *entry).min()?;
        let entries = self.entries(state);
        let of = |entry: &&EntryName| self.job(entry.job).filter(|job| job.state == Some(state));
        let ahead: Vec<_> = entries.iter().filter(|entry| **entry < own && of(entry).is_some()).collect();
        let count = |is: &dyn Fn(&EntryName) -> bool| ahead.iter().filter(|entry| is(entry)).count() as u64;
        // A daemon passes over the entries of all jobs whose collection is held, wherever the jobs are.
        let before = entries.iter().take_while(|entry| entry.job != job.id).filter_map(|entry| self.job(entry.job));
        let held = before.filter(|job| self.is_held(job)).count() as u64;
        let place = QueuePosition {
            more_urgent: count(&|entry| entry.priority < own.priority),
            earlier: count(&|entry| entry.priority == own.priority),
            locked: count(&|entry| self.job(entry.job).is_some_and(|job| job.lock.is_some())),
            held_ahead: if state == JobState::Pending { held } else { 0 },
        };
        Some((Path::Entry(folder, own), place))
    }

    fn check_job(&self, job: &Job) {
        let flow = Flow::default();
        let found = self.image.job_situation(job.id, &flow, self.query()).unwrap();
        let state = job.state.unwrap();
        let is_alike = |other: &&Job| {
            other.id != job.id
                && !other.is_by_operator
                && (other.last_successful, pattern(&other.message)) == (job.last_successful, pattern(&job.message))
        };
        let is_failure = state == JobState::Failed && !job.is_by_operator;
        let alike = self.jobs_in(JobState::Failed).filter(|other| is_failure && is_alike(other)).count() as u64;
        assert_eq!(found.same_message, alike);
        assert_eq!((found.id, found.state, found.entered), (job.id, job.state, job.entered));
        assert_eq!((found.retries, found.space_needed_bytes), (job.retry_count.unwrap(), job.space_needed_bytes));
        assert_eq!((&found.message, &found.collection), (&job.message, &job.collection));
        assert_eq!(found.hold, self.hold(&job.collection));
        let path = Path::JobNode(job.id, JobNode::Lock);
        assert_eq!(found.lock.is_some(), job.lock.is_some());
        for (holding, lock) in found.lock.iter().zip(job.lock) {
            self.check_holding(holding, lock.session, lock.created_ms, &path);
            assert_eq!(self.image.lock_created(job.id, offset()), Some(holding.since));
        }
        assert_eq!(found.usual_lock, self.limits.job_lock.get(Some(state)));
        // Where a job has more than one entry in a folder, or one elsewhere, which of them its row has is not said.
        if self.jobs.iter().all(|job| job.entries.len() < 2) {
            assert_eq!(found.place, self.position(job, state), "{job:?}");
        }
        let context = job.batch.map(|id| BatchContext {
            id,
            exists: id.number() < 2,
            is_acquired: id.number() == 0,
            state: [BatchState::Processing, BatchState::Completed].get(id.number() as usize).copied(),
            entered: (id.number() < 2).then(|| ago(9_000)),
        });
        assert_eq!(found.batch, context);
        assert_eq!(found.in_state, Some(self.image.state_situation(state, &flow, self.query())));
        let is_last = job.id.number() == 0 && job.batch == Some(BatchId::new(0));
        assert_eq!(found.expansion, is_last.then_some(900));
        assert_eq!((found.retry, found.withdrawal, found.unseen_volume), (None, None, None));
    }

    fn check_state(&self, state: JobState) {
        let found = self.image.state_situation(state, &Flow::default(), self.query());
        let locked = || self.jobs_in(state).filter(|job| job.lock.is_some());
        let created = |job: &Job| job.lock.map_or(0, |lock| lock.created_ms);
        assert_eq!((found.jobs, found.locked), (self.jobs_in(state).count() as u64, locked().count() as u64));
        assert_eq!(found.oldest, self.jobs_in(state).filter_map(|job| job.entered).min());
        let taken = locked().map(created).max();
        assert_eq!(found.taken, taken.map(|at| offset().to_own(at)));
        assert_eq!(found.unserved, (taken.is_none() && state.is_worked_on()).then(|| ago(0)));
        assert_eq!((found.pause, found.usual), (self.pause(), self.limits.stuck.get(Some(state))));
        assert_eq!((found.workers, found.is_ours, found.granted), (0, false, None));
        let is_provisioning = state == JobState::Provisioning;
        let is_lately = |job: &&Job| created(job) > NOW_MS - LOOK_MS;
        let looked_at = locked().filter(is_lately).count() as u64;
        assert_eq!(found.looked_at, if is_provisioning { looked_at } else { 0 });
        let is_untaken = |job: &&Job| job.lock.is_none() || is_lately(job);
        let space: u128 = self.jobs_in(state).filter(is_untaken).map(|job| u128::from(job.space_needed_bytes)).sum();
        let space = u64::try_from(space).unwrap_or(u64::MAX);
        assert_eq!(found.space_needed_bytes, if is_provisioning { space } else { 0 });
        self.check_head(state, found.head.as_ref());
        self.check_pools(if is_provisioning { self.space } else { None }, &found.pools);
        let pending =
            |name: &str| self.jobs_in(JobState::Pending).filter(|job| *job.collection == *name).count() as u64;
        let most = self.held.iter().map(|name| pending(name)).max().filter(|jobs| *jobs > 0);
        assert_eq!(found.backlog.as_ref().map(|of| of.jobs), most.filter(|_| state == JobState::Pending));
        assert!(
            found.backlog.is_none_or(|of| self.held.contains(&*of.collection) && pending(&of.collection) == of.jobs)
        );
    }

    fn check_head(&self, state: JobState, found: Option<&QueueHead>) {
        let folder = StateFolder::from(state);
        let entries = self.entries(state);
        let mut jobs = entries.iter().filter_map(|entry| Some((*entry, self.job(entry.job)?)));
        let expected = jobs.find(|(_, job)| job.lock.is_none()).and_then(|(entry, job)| {
            let faults = self.image.faults_of(&Path::Job(job.id), self.query());
            let is_orphan = |fault| fault == Fault::OrphanEntry && job.state != Some(state);
            let stops = |fault: Fault| fault == Fault::UnloadableJob || is_orphan(fault);
            let fault = faults.into_iter().find(|found| stops(found.fault))?;
            let entry = Path::Entry(folder, entry);
            Some(QueueHead { entry, job: job.id, job_state: job.state, fault: fault.fault, since: fault.since })
        });
        assert_eq!(found, expected.as_ref(), "{state}");
    }

    fn check_pools(&self, space: Option<i64>, found: &[Pool]) {
        let is_kept_back =
            |job: &&Job| space.is_some_and(|space| i128::from(job.space_needed_bytes) > i128::from(space));
        let mut sessions: BTreeMap<i64, Vec<(i64, JobId)>> = BTreeMap::new();
        for job in self.jobs_in(JobState::Provisioning).filter(is_kept_back) {
            job.lock.inspect(|lock| sessions.entry(lock.session).or_default().push((lock.created_ms, job.id)));
        }
        for jobs in sessions.values_mut() {
            jobs.sort();
        }
        assert_eq!(found.len(), sessions.len());
        assert!(found.is_sorted_by_key(|pool| std::cmp::Reverse(pool.jobs)));
        for pool in found {
            let jobs = &sessions[&pool.session];
            assert_eq!((pool.jobs, pool.since), (jobs.len() as u64, offset().to_own(jobs[0].0)));
            let created = |job: &JobId| jobs.iter().find(|(_, of)| of == job).map(|(at, _)| *at);
            let first: Vec<_> = jobs.iter().take(NAMED).map(|(at, _)| Some(*at)).collect();
            assert_eq!(pool.items.iter().map(created).collect::<Vec<_>>(), first);
        }
    }

    fn check_batch(&self, batch: &Batch) {
        let states = self.image.worked_on(&Flow::default(), self.query());
        assert!(states.iter().all(|(state, known)| known.is_some() == state.is_some_and(State::is_worked_on)));
        let found = self.image.batch_situation(batch.id, None, &states, self.query()).unwrap();
        let jobs = |state| self.jobs_in(state).filter(|job| job.batch == Some(batch.id)).count() as u64;
        let first = JobState::ALL.iter().copied().find(|state| state.is_worked_on() && jobs(*state) > 0);
        let passed = std::iter::successors(first, |state| state.success()).filter(|state| state.is_worked_on());
        let passed: Vec<_> = passed.map(|state| (state, jobs(state))).collect();
        assert_eq!(found.states.iter().map(|(state, jobs)| (state.state, *jobs)).collect::<Vec<_>>(), passed);
        assert_eq!((found.id, found.state, found.entered), (batch.id, batch.state, batch.entered));
        assert_eq!((found.is_acquired, found.references), (batch.is_acquired, batch.references));
        assert_eq!((found.held, found.pause), (jobs(JobState::Held), self.pause()));
        assert_eq!(found.expansion, (batch.id.number() == 0).then_some(900));
        assert_eq!(found.lock.is_some(), batch.lock.is_some());
        for (holding, lock) in found.lock.iter().zip(batch.lock) {
            let path = Path::BatchNode(batch.id, BatchNode::Lock);
            self.check_holding(holding, lock.session, lock.created_ms, &path);
        }
        let mut holds = Vec::new();
        for job in self.jobs_in(JobState::Held).filter(|job| job.batch == Some(batch.id)) {
            let of_collection = || self.hold(&job.collection).map(|pause| (job.collection.to_string(), pause));
            let hold = if job.is_by_operator {
                Some((job.message.to_string(), PauseSituation::default()))
            } else {
                of_collection()
            };
            holds.extend(hold.filter(|hold| !holds.contains(hold)));
        }
        let text = |hold: JobHold| match hold {
            JobHold::ByOperator(message) => (message.to_string(), PauseSituation::default()),
            JobHold::OfCollection(collection, pause) => (collection.to_string(), pause),
        };
        let found: Vec<_> = self.image.holds_on(batch.id, offset()).into_iter().map(text).collect();
        assert_eq!(found.len(), holds.len());
        assert!(holds.iter().all(|hold| found.contains(hold)), "{found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_situation_is_what_a_plain_look_at_all_jobs_shows(
        jobs in vec(any_job(), 1..24),
        held in vec(select(vec!["a", "b"]), 0..3),
        is_paused in any::<bool>(),
        space in option::of(select(vec![-1, 10, 500, i64::MAX >> 1])),
    ) {
        let held = held.into_iter().collect();
        let image = image(&jobs, &held, is_paused);
        let views = image.jobs(0..image.job_slots(), offset());
        let plain = Plain { image: &image, jobs: views, held, is_paused, space, limits: Limits::default() };
        for job in &plain.jobs {
            plain.check_job(job);
        }
        for state in JobState::ALL {
            plain.check_state(*state);
        }
        let batches = image.batches(offset());
        prop_assert_eq!(batches.len(), 2);
        for batch in &batches {
            plain.check_batch(batch);
        }
        let none = [image.job_situation(JobId::new(99), &Flow::default(), plain.query()).is_none(),
            image.batch_situation(BatchId::new(2), None, &WorkedOn::default(), plain.query()).is_none(),
            image.hold("", offset()).is_none(), image.lock_created(JobId::new(99), offset()).is_none()];
        prop_assert_eq!(none, [true; 4]);
    }
}
