//! Verifying passwords and tokens, and the throttle with those that are wrong.

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
use super::logins::Logins;
use super::throttle::LoginThrottle;
use crate::config::{Presented, Token, Tokens, Users};
use crate::web::http::host::network;

/// How many verified passwords are remembered.
const MOST_REMEMBERED: usize = 128;

/// How much of a password bcrypt looks at, in bytes.
const LONGEST_PASSWORD: usize = 72;

/// How many requests of one address may wait for their password to be verified.
const MOST_WAITING_OF_ONE: usize = 16;

/// How many requests may wait for that in all.
const MOST_WAITING: usize = 64;

/// How long one may wait for that, once it is its turn.
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// Failures are logged no more often, so that nobody fills the log from outside.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Verifies passwords, a few at a time, and remembers those that were right; and tokens, which cost next to nothing.
#[derive(Debug)]
pub(in crate::web) struct Authenticator {
    /// Of this process alone: what is remembered is of no use to anyone else.
    key: hmac::Key,
    /// A digest of user, hash and password each; a user whose hash is changed is not remembered.
    remembered: Mutex<HashSet<[u8; 32]>>,
    /// One core may be kept busy, but not all of them.
    slots: Arc<Semaphore>,
    waiting: Mutex<HashMap<Option<IpAddr>, Queue>>,
    throttle: LoginThrottle,
    logins: Logins,
    logged: Mutex<Option<Instant>>,
}

/// What comes of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    Right(T),
    Wrong,
    /// A token that was right until then.
    Expired(Timestamp),
    /// Too many others wait.
    Busy,
}

impl<T> Verdict<T> {
    /// The same, of what somebody who is right turns out to be.
    pub(super) fn map<U>(self, then: impl FnOnce(T) -> U) -> Verdict<U> {
        match self {
            Self::Right(known) => Verdict::Right(then(known)),
            Self::Wrong => Verdict::Wrong,
            Self::Expired(at) => Verdict::Expired(at),
            Self::Busy => Verdict::Busy,
        }
    }
}

/// The requests of one address that wait.
#[derive(Debug)]
struct Queue {
    count: usize,
    /// One of them at a time stands in the line of all, so that nobody waits for more than one of each address.
    turn: Arc<Semaphore>,
}

/// Counts a request that waits, until it is dropped.
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
            remembered: Mutex::default(),
            slots: Arc::new(Semaphore::new((cores / 2).max(1))),
            waiting: Mutex::default(),
            throttle: LoginThrottle::default(),
            logins: Logins::register(registry),
            logged: Mutex::new(None),
        }
    }

    /// Whether that is a user's password; if so, his name.
    pub(super) async fn verify(&self, users: &Arc<Users>, login: Login, peer: Option<IpAddr>) -> Verdict<String> {
        let name = login.user.clone();
        let outcomes = &self.logins.password;
        match self.is_right(users, login, peer).await {
            Some(true) => {
                outcomes.right.inc();
                Verdict::Right(name)
            }
            Some(false) => {
                outcomes.wrong.inc();
                self.failed(peer, "password");
                Verdict::Wrong
            }
            None => {
                outcomes.busy.inc();
                Verdict::Busy
            }
        }
    }

    /// Whether that is a token; if so, which. One that is right waits for nobody: it cannot be guessed, and
    /// so it is no success that could make up for others' failures.
    pub(super) async fn recognise<'a>(
        &self,
        tokens: &'a Tokens,
        presented: &[u8],
        peer: Option<IpAddr>,
    ) -> Verdict<&'a Token> {
        let outcomes = &self.logins.token;
        match tokens.find(presented, Timestamp::now()) {
            Presented::Valid(token) => {
                outcomes.right.inc();
                Verdict::Right(token)
            }
            // Whoever has it did not guess it.
            Presented::Expired(_, at) => {
                self.logins.expired.inc();
                Verdict::Expired(at)
            }
            Presented::Unknown => {
                let Some(_waiting) = self.wait(peer) else {
                    outcomes.busy.inc();
                    return Verdict::Busy;
                };
                self.slow(peer).await;
                outcomes.wrong.inc();
                self.failed(peer, "token");
                Verdict::Wrong
            }
        }
    }

    /// `None` where too many others wait.
    async fn is_right(&self, users: &Arc<Users>, login: Login, peer: Option<IpAddr>) -> Option<bool> {
        let digest = self.digest(users, &login);
        if self.remembered.lock().contains(&digest) {
            return Some(true);
        }
        let waiting = self.wait(peer)?;
        self.slow(peer).await;
        let slot = async {
            let turn = Arc::clone(&waiting.turn).acquire_owned().await.ok()?;
            Some((turn, Arc::clone(&self.slots).acquire_owned().await.ok()?))
        };
        let slot = tokio::time::timeout(WAIT_LIMIT, slot).await.ok()??;
        // A browser asks for a page and all that is on it at once: the first of these was verified for all.
        if self.remembered.lock().contains(&digest) {
            return Some(true);
        }
        let users = Arc::clone(users);
        let verified = tokio::task::spawn_blocking(move || {
            // The thread works on when nobody waits for it any more, and so keeps its slot itself.
            let _slot = slot;
            users.verify(&login.user, &login.password)
        });
        if !verified.await.unwrap_or(false) {
            return Some(false);
        }
        // Only one that was verified: else whoever has a password of his own could guess others' between two logins.
        self.throttle.forgive(peer);
        let mut remembered = self.remembered.lock();
        if remembered.len() >= MOST_REMEMBERED {
            // Any one: its user is verified once more.
            let one = remembered.iter().next().copied();
            one.map(|one| remembered.remove(&one));
        }
        remembered.insert(digest);
        Some(true)
    }

    /// Waits as long as the failures of that address, or of all, make it.
    async fn slow(&self, peer: Option<IpAddr>) {
        let wait = self.throttle.wait(peer);
        if !wait.is_zero() {
            self.logins.slowed.inc();
            tokio::time::sleep(wait).await;
        }
    }

    /// The name is not told: now and then it is the password, in the wrong field.
    fn failed(&self, peer: Option<IpAddr>, what: &'static str) {
        self.throttle.failed(peer);
        let mut logged = self.logged.lock();
        if !self.throttle.wait(peer).is_zero() && logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            let peer = peer.map(tracing::field::display);
            tracing::warn!(peer, what, "logins fail again and again, and are slowed");
        }
    }

    fn wait(&self, peer: Option<IpAddr>) -> Option<Waiting<'_>> {
        let peer = peer.map(network);
        let mut waiting = self.waiting.lock();
        let of_one = waiting.get(&peer).map_or(0, |queue| queue.count);
        if of_one >= MOST_WAITING_OF_ONE || waiting.values().map(|queue| queue.count).sum::<usize>() >= MOST_WAITING {
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
        // More of it is not looked at when it is verified: whoever has one that long would else be remembered, and
        // forgiven, by as many as he likes.
        let password = &login.password[..login.password.len().min(LONGEST_PASSWORD)];
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
mod tests {
    use super::*;
    use crate::config::WebFile;

    fn authenticator() -> Authenticator {
        Authenticator::register(&mut Registry::default())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn of_one_address_only_so_many_wait() {
        let authenticator = authenticator();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| Some(address(text)));
        let held: Vec<_> = (0..MOST_WAITING_OF_ONE).map(|_| authenticator.wait(one).unwrap()).collect();
        assert!(authenticator.wait(one).is_none());
        assert!(authenticator.wait(other).is_some());
        drop(held);
        assert!(authenticator.wait(one).is_some() && authenticator.waiting.lock().is_empty());
        // Whoever has a network of IPv6 is one, too, and does not take the places of all.
        let held: Vec<_> =
            (0..MOST_WAITING).map(|n| authenticator.wait(Some(address(&format!("2001:db8::{n:x}"))))).collect();
        assert_eq!(held.iter().flatten().count(), MOST_WAITING_OF_ONE);
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_wait_and_count_whatever_they_guess_at() {
        let authenticator = authenticator();
        let peer = Some(address("192.0.2.1"));
        let (tokens, known) = (Tokens::default(), authenticator.logins.clone());
        let guess = async || {
            let started = Instant::now();
            assert!(matches!(authenticator.recognise(&tokens, b"guess", peer).await, Verdict::Wrong));
            started.elapsed()
        };
        let mut total = Duration::ZERO;
        for _ in 0..9 {
            total += guess().await;
        }
        // On the paused clock nothing else takes time.
        let expected = Duration::from_millis(100 + 200 + 400 + 800 + 1600 + 3200);
        assert!(total >= expected && total < expected + Duration::from_millis(50), "{total:?}");
        assert_eq!((known.token.wrong.get(), known.slowed.get()), (9, 6));

        // More at once than may wait are refused, and those that wait end within the longest wait.
        let started = Instant::now();
        let many = (0..MOST_WAITING_OF_ONE + 3).map(|_| authenticator.recognise(&tokens, b"guess", peer));
        let verdicts = futures::future::join_all(many).await;
        assert_eq!(verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Busy)).count(), 3);
        assert!(started.elapsed() <= Duration::from_millis(5050));
        assert_eq!((known.token.busy.get(), known.token.right.get(), known.password.wrong.get()), (3, 0, 0));
    }

    #[tokio::test]
    async fn a_first_login_waits_for_one_guess_of_another_address_and_not_for_all() {
        let authenticator = authenticator();
        let file = tempfile::NamedTempFile::new().unwrap();
        let users = format!("basic_auth_users: {{alice: {}}}", bcrypt::hash("secret", 8).unwrap());
        std::fs::write(file.path(), users).unwrap();
        let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
        let ended = Mutex::new(Vec::new());
        let log_in = async |password: &str, peer: &str| {
            let login = Login { user: "alice".to_owned(), password: password.into() };
            let verdict = authenticator.verify(&users, login, Some(address(peer))).await;
            ended.lock().push(verdict == Verdict::Right("alice".to_owned()));
        };
        let guesses = (0..MOST_WAITING_OF_ONE).map(|n| log_in(if n % 2 == 0 { "guess" } else { "other" }, "192.0.2.1"));
        tokio::join!(futures::future::join_all(guesses), log_in("secret", "192.0.2.2"));
        let ended = ended.into_inner();
        assert_eq!(ended.len(), MOST_WAITING_OF_ONE + 1);
        // One guess holds each slot when it comes, and one more may stand in the line before it.
        let before = ended.iter().position(|is_right| *is_right).unwrap();
        let slots = std::thread::available_parallelism().map_or(1, NonZero::get) / 2;
        assert!(before <= slots.max(1) + 1, "{before}: {ended:?}");
    }

    #[tokio::test]
    async fn a_password_that_was_verified_forgives_and_one_that_is_remembered_does_not() {
        let authenticator = authenticator();
        let (alice, peer) = ("alice", Some(address("192.0.2.1")));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("basic_auth_users: {{alice: {}}}", bcrypt::hash("secret", 4).unwrap()))
            .unwrap();
        let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
        let login = |password: &str| Login { user: alice.to_owned(), password: password.into() };
        for _ in 0..3 {
            assert_eq!(authenticator.verify(&users, login("guess"), peer).await, Verdict::Wrong);
        }
        assert!(!authenticator.throttle.wait(peer).is_zero());
        assert_eq!(authenticator.verify(&users, login("secret"), peer).await, Verdict::Right(alice.to_owned()));
        assert!(authenticator.throttle.wait(peer).is_zero());
        for _ in 0..3 {
            authenticator.throttle.failed(peer);
        }
        assert_eq!(authenticator.verify(&users, login("secret"), peer).await, Verdict::Right(alice.to_owned()));
        assert!(!authenticator.throttle.wait(peer).is_zero(), "the login was remembered, and nothing was verified");

        // What bcrypt does not look at makes no other password of it.
        let long = "x".repeat(LONGEST_PASSWORD);
        std::fs::write(file.path(), format!("basic_auth_users: {{alice: {}}}", bcrypt::hash(&long, 4).unwrap()))
            .unwrap();
        let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
        assert_eq!(authenticator.verify(&users, login(&long), peer).await, Verdict::Right(alice.to_owned()));
        for _ in 0..3 {
            authenticator.throttle.failed(peer);
        }
        assert_eq!(
            authenticator.verify(&users, login(&format!("{long}y")), peer).await,
            Verdict::Right(alice.to_owned())
        );
        assert!(!authenticator.throttle.wait(peer).is_zero(), "it is the same password, and nothing was verified");
    }
}
