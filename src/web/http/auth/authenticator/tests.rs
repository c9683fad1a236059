//! How requests are authenticated.

use queuekeeper_testkit::wait::eventually_some;

use super::*;
use crate::config::WebFile;

fn authenticator() -> Authenticator {
    Authenticator::register(&mut Registry::default())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn the_waiting_requests_of_one_address_are_limited() {
    let authenticator = authenticator();
    let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| Some(address(text)));
    let held: Vec<_> = (0..MAX_WAITING_PER_ADDRESS).map(|_| authenticator.wait(one).unwrap()).collect();
    assert!(authenticator.wait(one).is_none());
    assert!(authenticator.wait(other).is_some());
    drop(held);
    assert!(authenticator.wait(one).is_some() && authenticator.waiting.lock().is_empty());
    // An IPv6 network counts as one address and does not use up the limit of all.
    let held: Vec<_> =
        (0..MAX_WAITING).map(|n| authenticator.wait(Some(address(&format!("2001:db8::{n:x}"))))).collect();
    assert_eq!(held.iter().flatten().count(), MAX_WAITING_PER_ADDRESS);
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_delayed_and_counted() {
    let authenticator = authenticator();
    let peer = Some(address("192.0.2.1"));
    let (tokens, known) = (Tokens::default(), authenticator.metrics.clone());
    let guess = async || {
        let started = Instant::now();
        assert!(matches!(authenticator.verify_token(&tokens, b"guess", peer).await, LoginOutcome::Rejected));
        started.elapsed()
    };
    let mut total = Duration::ZERO;
    for _ in 0..9 {
        total += guess().await;
    }
    // On the paused clock nothing else takes time.
    let expected = Duration::from_millis(100 + 200 + 400 + 800 + 1600 + 3200);
    assert!(total >= expected && total < expected + Duration::from_millis(50), "{total:?}");
    assert_eq!((known.token.rejected.get(), known.throttled.get()), (9, 6));

    // More at once than may wait are refused, and those that wait end within the longest wait.
    let started = Instant::now();
    let many = (0..MAX_WAITING_PER_ADDRESS + 3).map(|_| authenticator.verify_token(&tokens, b"guess", peer));
    let outcomes = futures::future::join_all(many).await;
    assert_eq!(outcomes.iter().filter(|outcome| matches!(outcome, LoginOutcome::Busy)).count(), 3);
    assert!(started.elapsed() <= Duration::from_millis(5050));
    assert_eq!((known.token.busy.get(), known.token.accepted.get(), known.password.rejected.get()), (3, 0, 0));
}

#[tokio::test]
async fn a_login_waits_for_one_guess_of_another_address_and_not_for_all() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let users = format!("basic_auth_users: {{alice: {}}}", bcrypt::hash("secret", 8).unwrap());
    std::fs::write(file.path(), users).unwrap();
    let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
    let attempt = async || {
        let (authenticator, began) = (authenticator(), Instant::now());
        let ended = Mutex::new(Vec::new());
        let log_in = async |password: &str, peer: &str| {
            let login = Login { user: "alice".to_owned(), password: password.into() };
            let outcome = authenticator.verify_password(&users, login, Some(address(peer))).await;
            ended.lock().push(outcome == LoginOutcome::Accepted("alice".to_owned()));
        };
        let guesses =
            (0..MAX_WAITING_PER_ADDRESS).map(|n| log_in(if n % 2 == 0 { "guess" } else { "other" }, "192.0.2.1"));
        tokio::join!(futures::future::join_all(guesses), log_in("secret", "192.0.2.2"));
        let ended = ended.into_inner();
        assert_eq!(ended.len(), MAX_WAITING_PER_ADDRESS + 1);
        let before = ended.iter().position(|is_right| *is_right);
        // None is right where the one guess that comes first takes a busy machine as long as a login may wait.
        assert!(before.is_some() || began.elapsed() >= WAIT_LIMIT, "{ended:?}");
        Some((before?, ended))
    };
    // One guess holds each slot when it comes, and one more may stand in the line before it.
    let (before, ended) = eventually_some(Duration::from_mins(1), "the right login gets its turn", attempt).await;
    let slots = std::thread::available_parallelism().map_or(1, NonZero::get) / 2;
    assert!(before <= slots.max(1) + 1, "{before}: {ended:?}");
}

#[tokio::test]
async fn a_verified_password_resets_the_delay_and_a_cached_one_does_not() {
    let authenticator = authenticator();
    let (alice, peer) = ("alice", Some(address("192.0.2.1")));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("basic_auth_users: {{alice: {}}}", bcrypt::hash("secret", 4).unwrap()))
        .unwrap();
    let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
    let login = |password: &str| Login { user: alice.to_owned(), password: password.into() };
    for _ in 0..3 {
        assert_eq!(authenticator.verify_password(&users, login("guess"), peer).await, LoginOutcome::Rejected);
    }
    assert!(!authenticator.throttle.delay(peer).is_zero());
    assert_eq!(
        authenticator.verify_password(&users, login("secret"), peer).await,
        LoginOutcome::Accepted(alice.to_owned())
    );
    assert!(authenticator.throttle.delay(peer).is_zero());
    for _ in 0..3 {
        authenticator.throttle.failed(peer);
    }
    assert_eq!(
        authenticator.verify_password(&users, login("secret"), peer).await,
        LoginOutcome::Accepted(alice.to_owned())
    );
    assert!(!authenticator.throttle.delay(peer).is_zero(), "the login was cached, and nothing was verified");

    // Bytes that bcrypt ignores do not make another password.
    let long = "x".repeat(MAX_PASSWORD);
    std::fs::write(file.path(), format!("basic_auth_users: {{alice: {}}}", bcrypt::hash(&long, 4).unwrap())).unwrap();
    let users = Arc::clone(WebFile::read(file.path()).unwrap().users());
    assert_eq!(
        authenticator.verify_password(&users, login(&long), peer).await,
        LoginOutcome::Accepted(alice.to_owned())
    );
    for _ in 0..3 {
        authenticator.throttle.failed(peer);
    }
    assert_eq!(
        authenticator.verify_password(&users, login(&format!("{long}y")), peer).await,
        LoginOutcome::Accepted(alice.to_owned())
    );
    assert!(!authenticator.throttle.delay(peer).is_zero(), "it is the same password, and nothing was verified");
}
