//! Stores that are held: nothing more is begun to be stored in them, or delivered.

use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{Error, Job};
use queuekeeper_store::StoreName;
use tokio::time::Instant;
use zookeeper_client::Client;

use super::arrivals;
use super::session::Session;
use crate::daemon::Daemon;
use crate::spec::JobSpec;

impl Session {
    /// Whether a job in Storing, or on its way there, waits because its store is held. What is wrong with its
    /// configuration is for its step to say.
    pub(super) fn waits_for_store(&self, job: &Job) -> bool {
        if self.holds.held.values().all(|held| !*held.borrow()) {
            return false;
        }
        let store = JobSpec::of(job).ok().and_then(|spec| self.services.profile(&spec.profile).ok());
        store.is_some_and(|profile| self.holds.is_held(&profile.store))
    }

    /// Whether a job of a list is to be taken: not one whose deposit is being withdrawn, and not one that waits for its
    /// store, which is remembered.
    pub(super) fn is_wanted(&self, state: JobState, job: &Job) -> bool {
        if state == JobState::Pending {
            return !job.batch().is_ok_and(|batch| self.restored.is_withdrawing(batch));
        }
        if state != JobState::Storing {
            return true;
        }
        // Locked first: what a release forgets then has this job, or the release is seen here.
        let (passed, since) = &mut *self.holds.passed.lock();
        if !self.waits_for_store(job) {
            return true;
        }
        since.get_or_insert_with(Instant::now);
        passed.insert(job.id);
        false
    }

    /// Whether a job is known to wait for its store. All are looked at again after some time: a profile may have
    /// another store by then.
    pub(super) fn is_passed(&self, job: JobId) -> bool {
        let (passed, since) = &mut *self.holds.passed.lock();
        if since.is_some_and(|since| since.elapsed() >= self.services.settings.look_again) {
            passed.clear();
            *since = None;
        }
        passed.contains(&job)
    }

    /// Counts the jobs that wait for their stores, where all of Storing was looked at.
    pub(super) fn count_passed(&self) {
        self.services.metrics.store_waiting(self.holds.passed.lock().0.len());
    }

    /// Looks which stores are held. What one daemon finds is news for the others: no watch repeats it.
    pub(crate) async fn look_at_holds(&self) -> Result<(), Error> {
        if self.holds.look(&self.queue).await? {
            self.holds_changed();
        }
        Ok(())
    }

    fn holds_changed(&self) {
        self.holds.forget_passed();
        let waiting = Daemon::ALL.into_iter().filter(|daemon| daemon.spec().waits_for_stores);
        waiting.for_each(|daemon| self.wake(daemon).notify_one());
    }

    /// Whether a store is held.
    pub(crate) fn is_store_held(&self, store: &StoreName) -> bool {
        self.holds.is_held(store)
    }

    /// Watches the holds on all stores, and wakes those who write to stores at each change, until it is dropped.
    pub(super) async fn watch_holds(&self, client: &Client) {
        let watches = self.holds.held.iter().filter_map(|(store, held)| {
            let path = Path::store_hold(store.as_str())?.to_string();
            Some(async move {
                arrivals::watch_existence(client, &path, held, || self.holds_changed()).await;
            })
        });
        futures::future::join_all(watches).await;
    }
}
