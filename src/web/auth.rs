//! Users and passwords.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;
use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::State;
use super::host::Ends;
use super::layers::Refused;
use super::problem::Problem;
use crate::config::Users;

/// How many verified passwords are remembered.
const MOST_REMEMBERED: usize = 128;

/// How many requests of one address may wait for their password to be verified.
const MOST_WAITING_OF_ONE: usize = 16;

/// How many requests may wait for that in all.
const MOST_WAITING: usize = 64;

/// How long one may wait for that.
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// Users and passwords longer than this together are not looked at, in bytes.
const LONGEST: usize = 1024;

/// Verifies passwords, a few at a time, and remembers those that were right.
#[derive(Debug)]
pub(super) struct Gate {
    /// Of this process alone: what is remembered is of no use to anyone else.
    key: hmac::Key,
    /// A digest of user, hash and password each; a user whose hash is changed is not remembered.
    remembered: Mutex<HashSet<[u8; 32]>>,
    /// One core may be kept busy, but not all of them.
    slots: Arc<Semaphore>,
    waiting: Mutex<HashMap<Option<IpAddr>, usize>>,
}

/// What a request says of who asks.
struct Credentials {
    user: String,
    password: Vec<u8>,
}

/// What comes of a user and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Right,
    Wrong,
    /// Too many others are being verified.
    Busy,
}

/// Counts a request that waits, until it is dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    peer: Option<IpAddr>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.gate.waiting.lock();
        if let Some(count) = waiting.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.peer);
            }
        }
    }
}

impl Gate {
    /// # Panics
    /// When the system has no random numbers.
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).expect("the system has random numbers");
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
            remembered: Mutex::default(),
            slots: Arc::new(Semaphore::new((cores / 2).max(1))),
            waiting: Mutex::default(),
        }
    }

    async fn verify(&self, users: &Arc<Users>, credentials: Credentials, peer: Option<IpAddr>) -> Verdict {
        let digest = self.digest(users, &credentials);
        if self.remembered.lock().contains(&digest) {
            return Verdict::Right;
        }
        let Some(_waiting) = self.wait(peer) else { return Verdict::Busy };
        let slot = tokio::time::timeout(WAIT_LIMIT, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else { return Verdict::Busy };
        // A browser asks for a page and all that is on it at once: the first of these was verified for all.
        if self.remembered.lock().contains(&digest) {
            return Verdict::Right;
        }
        let users = Arc::clone(users);
        let verified = tokio::task::spawn_blocking(move || {
            // The thread works on when nobody waits for it any more, and so keeps its slot itself.
            let _slot = slot;
            users.verify(&credentials.user, &credentials.password)
        });
        if !verified.await.unwrap_or(false) {
            return Verdict::Wrong;
        }
        let mut remembered = self.remembered.lock();
        if remembered.len() >= MOST_REMEMBERED {
            // Any one: its user is verified once more.
            let one = remembered.iter().next().copied();
            one.map(|one| remembered.remove(&one));
        }
        remembered.insert(digest);
        Verdict::Right
    }

    fn wait(&self, peer: Option<IpAddr>) -> Option<Waiting<'_>> {
        let mut waiting = self.waiting.lock();
        let of_one = waiting.get(&peer).copied().unwrap_or(0);
        if of_one >= MOST_WAITING_OF_ONE || waiting.values().sum::<usize>() >= MOST_WAITING {
            return None;
        }
        waiting.insert(peer, of_one + 1);
        drop(waiting);
        Some(Waiting { gate: self, peer })
    }

    fn digest(&self, users: &Users, credentials: &Credentials) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        // With their lengths, or another part could begin where one ends.
        let hash = users.hash(&credentials.user).unwrap_or_default();
        for part in [credentials.user.as_bytes(), hash.as_bytes(), &credentials.password] {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

impl Credentials {
    /// Reads `Authorization: Basic` (RFC 7617); `None` for anything else.
    fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = BASE64_STANDARD.decode(encoded.trim()).ok().filter(|decoded| decoded.len() <= LONGEST)?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        Some(Self { user, password: decoded[colon + 1..].to_vec() })
    }
}

/// Lets those in who have a password, where the web configuration names any; the probes are for everyone.
pub(super) async fn check(FromState(state): FromState<State>, request: Request, next: Next) -> Response {
    let Some(users) = state.web_file().map(|file| Arc::clone(file.users())).filter(|users| !users.is_empty()) else {
        return next.run(request).await;
    };
    // By the route that was found, so that no way of writing an address can look like a probe and be a page.
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = route.and_then(|route| route.strip_prefix(state.shared.config.web.route_prefix.as_str()));
    if matches!(route, Some("/-/healthy" | "/-/ready")) {
        return next.run(request).await;
    }
    let verdict = match Credentials::read(request.headers()) {
        Some(credentials) => {
            let peer = request.extensions().get::<Ends>().map(|ends| ends.peer);
            state.shared.gate.verify(&users, credentials, peer).await
        }
        None => Verdict::Wrong,
    };
    let (problem, name, value) = match verdict {
        Verdict::Right => return next.run(request).await,
        Verdict::Wrong => (
            Problem::new(StatusCode::UNAUTHORIZED, "This server wants a user and a password that it knows."),
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"queuekeeper\", charset=\"UTF-8\""),
        ),
        Verdict::Busy => (
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many passwords are being verified. Try again in a moment.",
            ),
            header::RETRY_AFTER,
            HeaderValue::from_static("5"),
        ),
    };
    let mut response = problem.into_response();
    response.headers_mut().insert(name, value);
    response.extensions_mut().insert(Refused);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<(String, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Credentials::read(&headers).map(|credentials| (credentials.user, credentials.password))
    }

    #[test]
    fn only_a_user_and_a_password_are_taken_for_such() {
        let basic = |text: &[u8]| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert_eq!(read(&["bAsIc YWxpY2U6YTpi"]), Some(("alice".to_owned(), b"a:b".to_vec())));
        assert_eq!(read(&[&basic(b":")]), Some((String::new(), Vec::new())));
        assert_eq!(read(&[&basic("jörg:ß".as_bytes())]), Some(("jörg".to_owned(), "ß".into())));
        let long = basic(&[b':'; LONGEST + 1]);
        for values in [
            &[][..],
            &["Basic"],
            &["Basic "],
            &["Bearer YWxpY2U6YTpi"],
            &["Basic YWxpY2U6YTpi", "Basic YWxpY2U6YTpi"],
            &["Basic YWxpY2U6YTp"],
            &["Basic YWxpY2U6YTpi!"],
            &["Basic YWxpY2U="],
            &[&basic(b"\xff:a")],
            &[&long],
        ] {
            assert_eq!(read(values), None, "{values:?}");
        }
    }

    #[tokio::test]
    async fn of_one_address_only_so_many_wait() {
        let gate = Gate::new();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|address| Some(address.parse().unwrap()));
        let held: Vec<_> = (0..MOST_WAITING_OF_ONE).map(|_| gate.wait(one).unwrap()).collect();
        assert!(gate.wait(one).is_none());
        assert!(gate.wait(other).is_some());
        drop(held);
        assert!(gate.wait(one).is_some() && gate.waiting.lock().is_empty());
    }
}
