//! What was granted of the volumes of working storage, and where the files of jobs are.

use jiff::Timestamp;

use super::super::Image;
use super::Own;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::record::{DaemonNote, GrantNote, GrantsNote};
use queuekeeper_queue::state::{JobState, State as _};

/// What was granted of all volumes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// How many jobs have a grant.
    pub jobs: u64,
    /// How many bytes they were granted.
    pub bytes: u64,
    /// When the oldest of these grants was given, by the clock of the daemon's host.
    pub since: Option<Timestamp>,
}

/// What a job was granted of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The job, as the grant names it.
    pub job: JobId,
    /// Its state; `None` where that is not known, or there is no such job.
    pub state: Option<JobState>,
    /// The UUID of the volume.
    pub volume: String,
    /// How many bytes it was granted.
    pub bytes: u64,
    /// How many it has written, as far as the process says that works on it, or the job itself; `None` where neither
    /// does.
    pub written: Option<u64>,
    /// How many bytes it needs beyond that, and waits for.
    pub extension: Option<u64>,
    /// Since when, by the clock of the daemon's host.
    pub since: Timestamp,
}

/// Whether a grant lets its job write anything. A failed job may keep one that says where its files are.
fn is_held(grant: &GrantNote) -> bool {
    grant.bytes > 0 || grant.extension.is_some()
}

impl Own {
    /// What was granted of all volumes; `None` where no process grants anything.
    pub(in crate::mirror::image) fn granted(&self) -> Option<Granted> {
        if self.spaces.is_empty() {
            return None;
        }
        // A failed job may keep one of no bytes, which says where its files are.
        let grants = self.spaces.values().flat_map(|note| note.grants.values());
        let grants = grants.filter(|grant| is_held(grant));
        let mut granted = Granted::default();
        for grant in grants {
            granted.jobs += 1;
            granted.bytes = granted.bytes.saturating_add(grant.bytes);
            let since = Timestamp::from_millisecond(grant.since).ok();
            granted.since = [granted.since, since].into_iter().flatten().min();
        }
        Some(granted)
    }

    /// The volume with the files of a job, where processes of ours take jobs of the state and none of these sees it. Of
    /// several grants the last one counts, as it does for them.
    pub(in crate::mirror::image) fn unseen_volume(&self, job: JobId, state: JobState) -> Option<&str> {
        let job = job.to_string();
        let grants = self.spaces.iter().filter_map(|(volume, note)| Some((note.grants.get(&job)?.since, &**volume)));
        let (_, volume) = grants.max()?;
        let takes = |note: &&DaemonNote| note.workers.get(state.label()).is_some_and(|workers| *workers > 0);
        let is_seen = self.daemons.values().filter(takes).any(|note| note.volume == volume);
        (self.workers(state) > 0 && !is_seen).then_some(volume)
    }
}

impl Image {
    /// The grants, those first whose jobs wait for more, and of the others the oldest, at most `most`; and how many
    /// there are.
    pub(in crate::mirror) fn grants(&self, most: usize) -> (Vec<Grant>, usize) {
        let volumes = self.own.spaces.iter();
        let all = volumes.flat_map(|(volume, GrantsNote { grants })| std::iter::repeat(&**volume).zip(grants));
        let held = all.filter(|(_, (_, grant))| is_held(grant));
        let mut held: Vec<(_, JobId, _)> =
            held.filter_map(|(volume, (job, grant))| Some((volume, job.parse().ok()?, *grant))).collect();
        held.sort_unstable_by_key(|(_, job, grant)| (grant.extension.is_none(), grant.since, *job));
        let total = held.len();
        let grant = |(volume, job, grant): (&str, JobId, GrantNote)| Grant {
            job,
            state: self.jobs.get(job).and_then(|row| row.standing.state),
            volume: volume.to_owned(),
            bytes: grant.bytes,
            written: self.written(job),
            extension: grant.extension,
            since: Timestamp::from_millisecond(grant.since).unwrap_or_default(),
        };
        (held.into_iter().take(most).map(grant).collect(), total)
    }

    fn written(&self, job: JobId) -> Option<u64> {
        let row = self.jobs.get(job)?;
        if let Some(progress) = self.progress(job) {
            let fetching = progress.fetching.iter().map(|file| file.bytes);
            return Some(fetching.fold(progress.bytes, u64::saturating_add));
        }
        let is_downloaded = row.standing.state.is_some_and(JobState::is_downloaded);
        Some(row.standing.space_needed_bytes).filter(|_| is_downloaded)
    }
}
