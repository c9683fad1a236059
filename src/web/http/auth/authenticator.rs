//! Verification of passwords and tokens, and delays after failures.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::credentials::Login;
use super::metrics::LoginMetrics;
use super::throttle::LoginThrottle;
use crate::config::{Presented, Token, Tokens, Users};
use crate::web::http::address::network;

/// How many verified logins are cached.
const MAX_CACHED: usize = 128;

/// How much of a password bcrypt uses, in bytes.
const MAX_PASSWORD: usize = 72;

/// How many requests of one address may wait for verification.
const MAX_WAITING_PER_ADDRESS: usize = 16;

/// How many requests may wait for verification in all.
const MAX_WAITING: usize = 64;

/// How long a request may wait for verification, after its delay.
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// Failures are logged at most this often, so that no client can fill the log.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Verifies passwords, a few at a time, and caches the successful ones; and tokens, which are cheap to verify.
#[derive(Debug)]
pub(in crate::web) struct Authenticator {
    /// Random, for this process only: the cached digests are useless elsewhere.
    key: hmac::Key,
    /// A digest of user, hash and password of each verified login; one whose hash has changed does not match.
    verified: Mutex<HashSet<[u8; 32]>>,
    /// Half of the cores at most, so that logins cannot occupy all of them.
    slots: Arc<Semaphore>,
    waiting: Mutex<HashMap<Option<IpAddr>, Queue>>,
    throttle: LoginThrottle,
    metrics: LoginMetrics,
    logged: Mutex<Option<Instant>>,
}

/// The outcome of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoginOutcome<T> {
    Accepted(T),
    Rejected,
    /// A token that was valid until then.
    Expired(Timestamp),
    /// Too many others wait.
    Busy,
}

impl<T> LoginOutcome<T> {
    /// Converts the value of an accepted login.
    pub(super) fn map<U>(self, then: impl FnOnce(T) -> U) -> LoginOutcome<U> {
        match self {
            Self::Accepted(known) => LoginOutcome::Accepted(then(known)),
            Self::Rejected => LoginOutcome::Rejected,
            Self::Expired(at) => LoginOutcome::Expired(at),
            Self::Busy => LoginOutcome::Busy,
        }
    }
}

/// The waiting requests of one address.
#[derive(Debug)]
struct Queue {
    count: usize,
    /// One of them at a time queues for a slot, so that a request waits for at most one of each other address.
    turn: Arc<Semaphore>,
}

/// A waiting request, counted until it is dropped.
struct Waiting<'a> {
    authenticator: &'a Authenticator,
    peer: Option<IpAddr>,
    turn: Arc<Semaphore>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.authenticator.waiting.lock();
        if let Some(queue) = waiting.get_mut(&self.peer) {
            queue.count -= 1;
            if queue.count == 0 {
                waiting.remove(&self.peer);
            }
        }
    }
}

impl Authenticator {
    /// # Panics
    /// When the system has no random numbers.
    pub(in crate::web) fn register(registry: &mut Registry) -> Self {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).expect("the system has random numbers");
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            verified: Mutex::default(),
            slots: Arc::new(Semaphore::new((cores / 2).max(1))),
            waiting: Mutex::default(),
            throttle: LoginThrottle::default(),
            metrics: LoginMetrics::register(registry),
            logged: Mutex::new(None),
        }
    }

    /// Verifies a password; the name of its user.
    pub(super) async fn verify_password(
        &self,
        users: &Arc<Users>,
        login: Login,
        peer: Option<IpAddr>,
    ) -> LoginOutcome<String> {
        let name = login.user.clone();
        let counters = &self.metrics.password;
        match self.is_password(users, login, peer).await {
            Some(true) => {
                counters.accepted.inc();
                LoginOutcome::Accepted(name)
            }
            Some(false) => {
                counters.rejected.inc();
                self.failed(peer, "password");
                LoginOutcome::Rejected
            }
            None => {
                counters.busy.inc();
                LoginOutcome::Busy
            }
        }
    }

    /// Verifies a token. A valid one is never delayed, since it cannot be guessed; and it does not reset the delay of
    /// its address.
    pub(super) async fn verify_token<'a>(
        &self,
        tokens: &'a Tokens,
        presented: &[u8],
        peer: Option<IpAddr>,
    ) -> LoginOutcome<&'a Token> {
        let counters = &self.metrics.token;
        match tokens.find(presented, Timestamp::now()) {
            Presented::Valid(token) => {
                counters.accepted.inc();
                LoginOutcome::Accepted(token)
            }
            // It was not guessed.
            Presented::Expired(_, at) => {
                self.metrics.expired.inc();
                LoginOutcome::Expired(at)
            }
            Presented::Unknown => {
                let Some(_waiting) = self.wait(peer) else {
                    counters.busy.inc();
                    return LoginOutcome::Busy;
                };
                self.delay(peer).await;
                counters.rejected.inc();
                self.failed(peer, "token");
                LoginOutcome::Rejected
            }
        }
    }

    /// `None` where too many others wait.
    async fn is_password(&self, users: &Arc<Users>, login: Login, peer: Option<IpAddr>) -> Option<bool> {
        let digest = self.digest(users, &login);
        if self.verified.lock().contains(&digest) {
            return Some(true);
        }
        let waiting = self.wait(peer)?;
        self.delay(peer).await;
        let slot = async {
            let turn = Arc::clone(&waiting.turn).acquire_owned().await.ok()?;
            Some((turn, Arc::clone(&self.slots).acquire_owned().await.ok()?))
        };
        let slot = tokio::time::timeout(WAIT_LIMIT, slot).await.ok()??;
        // A browser loads a page and its assets at once: the first of these requests was verified for all.
        if self.verified.lock().contains(&digest) {
            return Some(true);
        }
        let users = Arc::clone(users);
        let verified = tokio::task::spawn_blocking(move || {
            // The thread continues when its request is dropped, and so holds the slot itself.
            let _slot = slot;
            users.verify(&login.user, &login.password)
        });
        if !verified.await.unwrap_or(false) {
            return Some(false);
        }
        // Only after verification: a cached login must not reset the delay of an address that guesses in between.
        self.throttle.reset(peer);
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_CACHED {
            // Any one: its next login is verified again.
            let one = verified.iter().next().copied();
            one.map(|one| verified.remove(&one));
        }
        verified.insert(digest);
        Some(true)
    }

    /// Sleeps for the delay of that address.
    async fn delay(&self, peer: Option<IpAddr>) {
        let wait = self.throttle.delay(peer);
        if !wait.is_zero() {
            self.metrics.throttled.inc();
            tokio::time::sleep(wait).await;
        }
    }

    /// The user name is not logged: sometimes it is the password, typed into the wrong field.
    fn failed(&self, peer: Option<IpAddr>, method: &'static str) {
        self.throttle.failed(peer);
        let mut logged = self.logged.lock();
        if !self.throttle.delay(peer).is_zero() && logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            let peer = peer.map(tracing::field::display);
            tracing::warn!(peer, method, "throttling logins after repeated failures");
        }
    }

    fn wait(&self, peer: Option<IpAddr>) -> Option<Waiting<'_>> {
        let peer = peer.map(network);
        let mut waiting = self.waiting.lock();
        let of_one = waiting.get(&peer).map_or(0, |queue| queue.count);
        if of_one >= MAX_WAITING_PER_ADDRESS || waiting.values().map(|queue| queue.count).sum::<usize>() >= MAX_WAITING
        {
            return None;
        }
        let queue = waiting.entry(peer).or_insert_with(|| Queue { count: 0, turn: Arc::new(Semaphore::new(1)) });
        queue.count += 1;
        let turn = Arc::clone(&queue.turn);
        drop(waiting);
        Some(Waiting { authenticator: self, peer, turn })
    }

    fn digest(&self, users: &Users, login: &Login) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        // With their lengths, or another part could begin where one ends.
        let hash = users.hash(&login.user).unwrap_or_default();
        // bcrypt ignores the rest: otherwise one long password could be cached, and reset the delay, any number of
        // times.
        let password = &login.password[..login.password.len().min(MAX_PASSWORD)];
        for part in [login.user.as_bytes(), hash.as_bytes(), password] {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

#[cfg(test)]
mod tests;
