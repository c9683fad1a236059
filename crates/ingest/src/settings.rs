//! What an operator sets for the daemons.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use url::Url;

use crate::access::AccessSettings;
use crate::cleanup::CleanupSettings;
use crate::daemon::Daemon;
use crate::fetch;
use crate::parts;
use crate::space::Rules;
use queuekeeper_mail::settings::MailSettings;

/// How many workers daemons have: at least and at most.
pub type WorkerBounds = BTreeMap<Daemon, RangeInclusive<usize>>;

/// What an operator sets for the daemons of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many workers each daemon has that runs here; at least, where there is more for it in `most_workers`.
    pub workers: BTreeMap<Daemon, usize>,
    /// Up to how many workers some daemons get while jobs wait for one.
    pub most_workers: BTreeMap<Daemon, usize>,
    /// How often their number is set anew.
    pub adjust_workers: Duration,
    /// The rule of the working storage.
    pub space: Rules,
    /// How many files of a job are fetched at a time (`--download.connections`).
    pub connections: usize,
    /// How fetching behaves.
    pub fetch: fetch::Settings,
    /// For how long a job is tried in its state before it fails.
    pub retry_within: Duration,
    /// The pause after the first failed attempt; each is twice the one before.
    pub retry_first: Duration,
    /// The longest of these pauses.
    pub retry_most: Duration,
    /// How long a stop waits for what is under way.
    pub shutdown: Duration,
    /// How often folders are listed where no watch reports a change.
    pub look_again: Duration,
    /// The name of the program in the messages of versions.
    pub agent: String,
    /// Whether Java's daemons read the folders: they cannot list more than about 50,000 children.
    pub java_readers: bool,
    /// How many jobs a batch has at most ([`parts::MOST_JOBS`]). A deposit that was begun with one number is not ended
    /// with another.
    pub most_jobs: u64,
    /// How many children a folder has that is read by Java when no more jobs are created.
    pub most_children: i32,
    /// How mail leaves.
    pub mail: MailSettings,
    /// What is cleaned up, and when.
    pub cleanup: CleanupSettings,
    /// The URL by which other programs read the working storage, with a slash at the end: manifests of versions have it
    /// in place of `file:` URLs.
    pub working_url: Option<Url>,
    /// Where access requests are delivered to; without it they are not taken.
    pub access: Option<AccessSettings>,
}

impl Settings {
    /// The default number of files of a job that are fetched at a time.
    pub const CONNECTIONS: u16 = 4;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: Daemon::ALL.into_iter().map(|daemon| (daemon, daemon.spec().workers)).collect(),
            most_workers: BTreeMap::new(),
            adjust_workers: Duration::from_secs(5),
            space: Rules::default(),
            connections: Self::CONNECTIONS.into(),
            fetch: fetch::Settings::default(),
            retry_within: Duration::from_hours(24),
            retry_first: Duration::from_secs(15),
            retry_most: Duration::from_mins(15),
            shutdown: Duration::from_secs(30),
            look_again: Duration::from_secs(15),
            agent: concat!("queuekeeper ", env!("CARGO_PKG_VERSION")).to_owned(),
            java_readers: true,
            most_jobs: parts::MOST_JOBS,
            most_children: 45_000,
            mail: MailSettings::default(),
            cleanup: CleanupSettings::default(),
            working_url: None,
            access: None,
        }
    }
}

impl Settings {
    /// Whether a daemon runs here.
    #[must_use]
    pub fn runs(&self, daemon: Daemon) -> bool {
        self.workers_of(daemon) > 0
    }

    /// How many workers a daemon has here; 0 for one that does not run.
    #[must_use]
    pub fn workers_of(&self, daemon: Daemon) -> usize {
        let has_use = daemon != Daemon::Access || self.access.is_some();
        self.workers.get(&daemon).copied().filter(|_| has_use).unwrap_or(0)
    }

    /// How many workers each daemon has that runs here, when the process begins.
    #[must_use]
    pub fn worker_bounds(&self) -> WorkerBounds {
        let running = self.workers.iter().filter(|(daemon, _)| self.runs(**daemon));
        let bounds = running.map(|(daemon, least)| {
            let most = self.most_workers.get(daemon).copied().unwrap_or_default();
            (*daemon, *least..=most.max(*least))
        });
        bounds.collect()
    }

    /// How long a job waits after an attempt, of which `failed` have failed before.
    #[must_use]
    pub fn pause(&self, failed: u32) -> Duration {
        self.retry_first.saturating_mul(1u32 << failed.min(16)).min(self.retry_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = Settings::default();
        assert_eq!([0, 1, 2, 30].map(|failed| settings.pause(failed).as_secs()), [15, 30, 60, 900]);
        let idle: Vec<_> = Daemon::ALL.into_iter().filter(|daemon| !settings.runs(*daemon)).collect();
        assert_eq!(idle, [Daemon::Access], "there is nowhere to deliver to");
    }
}
