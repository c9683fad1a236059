use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use queuekeeper::config::{self, WebFile};

use super::harness::Server;
use queuekeeper_testkit::wait::eventually;

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

fn write_users(path: &Path, users: &[(&str, &str, u32)]) {
    let lines = users.iter().map(|(name, password, cost)| {
        let hash = bcrypt::hash(password, *cost).unwrap();
        format!("  {name}: {hash}\n")
    });
    std::fs::write(path, format!("basic_auth_users:\n{}", lines.collect::<String>())).unwrap();
}

async fn start(path: &Path) -> Server {
    Server::with(config::Web { file: Some(WebFile::read(path).unwrap()), ..config::Web::default() }).await
}

#[tokio::test]
async fn with_users_only_the_probes_are_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web.yml");
    write_users(&path, &[("alice", "secret", 5), ("bob", "b:o b", 4)]);
    let server = start(&path).await;
    for path in ["/-/healthy", "/-/ready"] {
        assert_ne!(server.ask(&format!("GET {path} HTTP/1.1"), &[]).await.code(), 401, "{path}");
    }
    for path in ["/", "/metrics", "/api/v1/status", "/nothing", "/static/a.css", "/-/healthy/", "/-/", "//-/healthy"] {
        let refused = server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
        refused.has(&["http/1.1 401 unauthorized", r#"www-authenticate: basic realm="queuekeeper", charset="utf-8""#]);
    }
    let refused = server.ask("GET /api/v1/status HTTP/1.1", &[]).await;
    refused.has(&["content-type: application/problem+json"]);
    let refused = server.ask("DELETE /metrics HTTP/1.1", &["Accept: text/html"]).await;
    refused.has(&["http/1.1 401 unauthorized", "content-type: text/html; charset=utf-8"]);
    for (user, password, code) in [
        ("alice", "secret", 200),
        ("alice", "secret", 200),
        ("bob", "b:o b", 200),
        ("alice", "b:o b", 401),
        ("bob", "b", 401),
        ("alice", "", 401),
        ("carol", "secret", 401),
        ("Alice", "secret", 401),
    ] {
        let answer = server.ask("GET /metrics HTTP/1.1", &[&basic(user, password)]).await;
        assert_eq!(answer.code(), code, "{user} {password}");
    }
    let twice = [basic("alice", "secret"), basic("bob", "b:o b")];
    assert_eq!(server.ask("GET / HTTP/1.1", &[&twice[0], &twice[1]]).await.code(), 401);
    let counted = server.ask("GET /metrics HTTP/1.1", &[&basic("alice", "secret")]).await;
    let series = r#"queuekeeper_http_requests_total{route="refused",method="GET",code="401"} "#;
    assert!(counted.text().lines().any(|line| line.starts_with(series)), "{}", counted.text());
    assert!(counted.text().contains("\nqueuekeeper_web_config_last_reload_successful 1\n"));
    server.stop().await;
}

#[tokio::test]
async fn a_password_is_verified_once_and_guessing_delays_no_other_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web.yml");
    write_users(&path, &[("alice", "secret", 10)]);
    let server = start(&path).await;
    let alice = basic("alice", "secret");
    assert_eq!(server.ask("GET /metrics HTTP/1.1", &[&alice]).await.code(), 200);

    // More guesses at once than may wait.
    let guess =
        async |n: usize| server.ask("GET /metrics HTTP/1.1", &[&basic("alice", &format!("guess{n}"))]).await.code();
    let guesses = futures::future::join_all((0..40).map(guess));
    let known = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        for _ in 0..10 {
            // Verified again, it would be refused as one more than may wait.
            assert_eq!(server.ask("GET /metrics HTTP/1.1", &[&alice]).await.code(), 200);
        }
    };
    let (guesses, ()) = tokio::join!(guesses, known);
    let codes = |code| guesses.iter().filter(|found| **found == code).count();
    assert_eq!(codes(401) + codes(503), 40);
    // The first is verified at once. On a busy machine, those behind it may wait for too long.
    assert!(codes(401) >= 1 && codes(503) >= 1, "{} were verified", codes(401));

    let started = Instant::now();
    for _ in 0..10 {
        assert_eq!(server.ask("GET /metrics HTTP/1.1", &[&alice]).await.code(), 200);
    }
    // After so many guesses the next one is delayed by 5 s, and so would each of these be.
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    server.stop().await;
}

#[tokio::test]
async fn changed_users_count_at_once_and_a_wrong_file_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("web.yml");
    write_users(&path, &[("alice", "old", 4)]);
    let server = start(&path).await;
    let limit = Duration::from_secs(20);
    let code =
        async |user: &str, password: &str| server.ask("GET /metrics HTTP/1.1", &[&basic(user, password)]).await.code();
    assert_eq!(code("alice", "old").await, 200);

    write_users(&path, &[("alice", "new", 4), ("bob", "b", 4)]);
    eventually(limit, "the new password counts", async || code("alice", "new").await == 200).await;
    assert_eq!((code("alice", "old").await, code("bob", "b").await), (401, 200), "what was verified is forgotten");

    // Each of these would let every user in, or none.
    for wrong in ["", "basic_auth_users:\n", "basic_auth_users: {alice: x}\n", "basic_auth_users: [\n"] {
        let reported = async |expected: &str| {
            let metrics = server.ask("GET /metrics HTTP/1.1", &[&basic("bob", "b")]).await;
            metrics.text().contains(&format!("\nqueuekeeper_web_config_last_reload_successful {expected}\n"))
        };
        std::fs::write(&path, wrong).unwrap();
        eventually(limit, "the wrong file is reported", async || reported("0").await).await;
        assert_eq!((code("alice", "new").await, code("alice", "").await), (200, 401), "{wrong}");
        write_users(&path, &[("alice", "new", 4), ("bob", "b", 4)]);
        eventually(limit, "the right file is taken", async || reported("1").await).await;
    }
    server.stop().await;
}
