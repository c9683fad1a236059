use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use queuekeeper::actions::Role;
use queuekeeper::config::{self, ConfigFile, Loopback, Secret, TokenLine, WebFile};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::{Answer, Server};
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(1);

const CONFIG: &str = "users: {alice: operator}\ntokens_file: tokens.yml\n";

/// The files of a server, and the tokens that it knows.
struct Files {
    directory: tempfile::TempDir,
    ci: Secret,
    boss: Secret,
    old: Secret,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let files = Self { directory, ci: Secret::make(), boss: Secret::make(), old: Secret::make() };
        files.write("web.yml", &web(&[("alice", "secret"), ("bob", "hunter2")]));
        files.write("config.yml", CONFIG);
        files.write("tokens.yml", &files.tokens());
        files
    }

    fn tokens(&self) -> String {
        let now = Timestamp::now();
        let (later, before) = (now + Duration::from_hours(1), now - Duration::from_secs(1));
        let line = |name, role, expires, secret| TokenLine::new(name, role, expires, secret).unwrap().to_string();
        [
            line("ci", Role::Operator, Some(later), &self.ci),
            line("boss", Role::Admin, None, &self.boss),
            line("old", Role::Admin, Some(before), &self.old),
        ]
        .join("\n")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn config(&self) -> ConfigFile {
        ConfigFile::read(&self.path("config.yml")).unwrap()
    }
}

fn web(users: &[(&str, &str)]) -> String {
    let lines = users.iter().map(|(name, password)| format!("  {name}: {}\n", bcrypt::hash(password, 4).unwrap()));
    format!("basic_auth_users:\n{}", lines.collect::<String>())
}

fn with_file(path: &Path) -> config::Web {
    config::Web { file: Some(WebFile::read(path).unwrap()), ..config::Web::default() }
}

fn basic(login: &str) -> String {
    format!("Authorization: Basic {}", BASE64_STANDARD.encode(login))
}

fn bearer(secret: &Secret) -> String {
    format!("Authorization: Bearer {}", secret.reveal())
}

async fn ask(server: &Server, headers: &[&str]) -> Answer {
    server.ask("GET /api/v1/identity HTTP/1.1", headers).await
}

/// Name, means and role of who asks, and whether he may operate and destroy.
async fn who(server: &Server, headers: &[&str]) -> Value {
    let answer = ask(server, headers).await;
    answer.has(&["http/1.1 200 ok", "content-type: application/json"]);
    let found: Value = serde_json::from_slice(&answer.body).unwrap();
    let is_all = found["may_operate"] == true && found["may_destroy"] == true;
    assert_eq!(found["refusal"].is_null(), is_all, "{found}");
    json!([found["name"], found["auth_method"], found["role"], found["may_operate"], found["may_destroy"]])
}

/// The value of a series.
async fn counted(server: &Server, series: &str) -> u64 {
    let metrics = server.ask("GET /metrics HTTP/1.1", &[&basic("bob:hunter2")]).await;
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{series} is not in: {}", metrics.text())).parse().unwrap()
}

#[tokio::test]
async fn each_is_known_for_who_he_is_and_nobody_else_comes_in() {
    let files = Files::new();
    let server = Server::under(with_file(&files.path("web.yml")), Some(files.config())).await;
    for (headers, expected) in [
        (basic("alice:secret"), json!(["alice", "password", "operator", true, false])),
        (basic("bob:hunter2"), json!(["bob", "password", "viewer", false, false])),
        (bearer(&files.ci), json!(["ci", "token", "operator", true, false])),
        (bearer(&files.boss), json!(["boss", "token", "admin", true, true])),
    ] {
        assert_eq!(who(&server, &[&headers]).await, expected, "{headers}");
    }
    let (basic_challenge, bearer_challenge) = (
        r#"www-authenticate: basic realm="queuekeeper", charset="utf-8""#,
        r#"www-authenticate: bearer realm="queuekeeper""#,
    );
    for (headers, reported) in [
        (&[][..], "user and a password, or a token"),
        (&[&basic("alice:guess")], "user and a password, or a token"),
        (&[&basic(&format!("ci:{}", files.ci.reveal()))], "user and a password, or a token"),
        (&[&bearer(&Secret::make())], "user and a password, or a token"),
        (&[&format!("Authorization: Bearer {}", "qk_")], "user and a password, or a token"),
        (&[&bearer(&files.ci), &bearer(&files.ci)], "user and a password, or a token"),
        (&[&bearer(&files.ci).replace("Bearer", "Token")], "user and a password, or a token"),
    ] {
        let headers: Vec<&str> = headers.iter().map(|header| header.as_str()).collect();
        let refused = ask(&server, &headers).await;
        refused.has(&["http/1.1 401 unauthorized", "content-type: application/problem+json"]);
        refused.has(&[basic_challenge, bearer_challenge]);
        assert!(refused.text().contains(reported), "{}", refused.text());
    }
    let expired = ask(&server, &[&bearer(&files.old)]).await;
    expired
        .has(&["http/1.1 401 unauthorized", r#"www-authenticate: bearer realm="queuekeeper", error="invalid_token""#]);
    assert!(expired.text().contains("expired at") && !expired.text().contains("old"), "{}", expired.text());

    for (labels, least) in [
        (r#"method="password",outcome="accepted""#, 2),
        (r#"method="password",outcome="rejected""#, 2),
        (r#"method="password",outcome="busy""#, 0),
        (r#"method="token",outcome="accepted""#, 2),
        (r#"method="token",outcome="rejected""#, 2),
        (r#"method="token",outcome="expired""#, 1),
    ] {
        let count = counted(&server, &format!("queuekeeper_http_logins_total{{{labels}}}")).await;
        // Asking for the figures is a login too.
        assert!(if labels.contains("accepted") { count >= least } else { count == least }, "{labels}: {count}");
    }
    assert_eq!(counted(&server, "queuekeeper_http_logins_throttled_total").await, 1, "the fourth guess waited");
    server.stop().await;
}

#[tokio::test]
async fn without_users_all_may_read_and_only_tokens_action() {
    let files = Files::new();
    files.write("config.yml", "tokens_file: tokens.yml\n");
    let server = Server::under(config::Web::default(), Some(files.config())).await;
    let nobody = json!([null, "anonymous", "viewer", false, false]);
    assert_eq!(who(&server, &[]).await, nobody);
    // Of a proxy, perhaps: no user here could have that password.
    assert_eq!(who(&server, &[&basic("alice:secret")]).await, nobody);
    assert_eq!(who(&server, &[&bearer(&files.boss)]).await, json!(["boss", "token", "admin", true, true]));
    let refused = ask(&server, &[&bearer(&Secret::make())]).await;
    refused
        .has(&["http/1.1 401 unauthorized", r#"www-authenticate: bearer realm="queuekeeper", error="invalid_token""#]);
    server.stop().await;

    // Without any user, credentials are no user's, and the answer says how to add one.
    let server = Server::start().await;
    assert_eq!(who(&server, &[&bearer(&files.boss)]).await, nobody);
    let text = ask(&server, &[]).await;
    assert!(text.text().contains("accepts no actions") && text.text().contains("--config.file"), "{}", text.text());
    server.stop().await;
}

#[tokio::test]
async fn changed_roles_and_tokens_count_at_once_and_a_broken_file_changes_nothing() {
    let files = Files::new();
    let server = Server::under(with_file(&files.path("web.yml")), Some(files.config())).await;
    let alice = basic("alice:secret");
    let role = async || who(&server, &[&alice]).await[2].clone();
    let is_used = async |value| counted(&server, "queuekeeper_config_last_reload_successful").await == value;
    assert!(role().await == "operator" && is_used(1).await);

    files.write("config.yml", &CONFIG.replace("operator", "admin"));
    eventually(LIMIT, "the new role counts", async || role().await == "admin").await;
    let tokens = files.tokens();
    files.write("tokens.yml", tokens.split_once('\n').unwrap().1);
    eventually(LIMIT, "a token that was taken out is none", async || {
        ask(&server, &[&bearer(&files.ci)]).await.code() == 401
    })
    .await;

    for (name, wrong) in [
        ("tokens.yml", "boss: {role: admin}\n"),
        ("tokens.yml", "[\n"),
        ("config.yml", "user: {}\n"),
        // As one that is just being written, or whose disk was full.
        ("config.yml", ""),
        ("config.yml", "# later\n"),
        ("tokens.yml", ""),
    ] {
        let right = std::fs::read_to_string(files.path(name)).unwrap();
        files.write(name, wrong);
        eventually(LIMIT, "the broken file is reported", async || is_used(0).await).await;
        assert_eq!(who(&server, &[&bearer(&files.boss)]).await[2], "admin", "{name}: {wrong}");
        assert_eq!(role().await, "admin");
        files.write(name, &right);
        eventually(LIMIT, "the right file is taken", async || is_used(1).await).await;
    }

    // A user who leaves is gone at once, and the role is logged until it is taken out too; that keeps no token valid.
    files.write("web.yml", &web(&[("bob", "hunter2")]));
    eventually(LIMIT, "who left is gone", async || ask(&server, &[&alice]).await.code() == 401).await;
    eventually(LIMIT, "the role of nobody is reported", async || is_used(0).await).await;
    files.write("tokens.yml", "{}");
    eventually(LIMIT, "a token is gone", async || ask(&server, &[&bearer(&files.boss)]).await.code() == 401).await;
    files.write("config.yml", "users: {bob: operator}\n");
    eventually(LIMIT, "all is well", async || is_used(1).await).await;
    assert_eq!(who(&server, &[&basic("bob:hunter2")]).await[2], "operator");
    server.stop().await;
}

/// A user's live page, read until something of it has come.
async fn follow(server: &Server, headers: &[&str]) -> TcpStream {
    let mut stream = server.connect().await;
    let lines =
        [&["GET /events?page= HTTP/1.1", "Host: localhost", "Connection: close"], headers].concat().join("\r\n");
    stream.write_all(format!("{lines}\r\n\r\n").as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200", "{headers:?}");
    stream
}

/// Reads a live page to its end.
async fn ends(mut stream: TcpStream, whose: &str) {
    let read = timeout(LIMIT, stream.read_to_end(&mut Vec::new())).await;
    assert!(read.is_ok(), "{whose}: the stream goes on");
}

#[tokio::test]
async fn a_live_page_ends_for_a_user_who_is_removed_demoted_or_expires_and_for_no_other() {
    let files = Files::new();
    let short = Secret::make();
    // Before that, all streams have to be there.
    let expires = Timestamp::now() + Duration::from_secs(30);
    let line = TokenLine::new("short", Role::Viewer, Some(expires), &short).unwrap();
    files.write("tokens.yml", &format!("{}\n{line}", files.tokens()));
    let staying = web(&[("bob", "hunter2")]);
    let and = |users: &[(&str, &str)]| format!("{staying}{}", web(users).split_once('\n').unwrap().1);
    files.write("web.yml", &and(&[("alice", "secret"), ("carol", "letmein")]));
    files.write("config.yml", "users: {alice: operator, carol: operator}\ntokens_file: tokens.yml\n");
    let server = Server::under(with_file(&files.path("web.yml")), Some(files.config())).await;
    let expiring = follow(&server, &[&bearer(&short)]).await;
    let mut staying = follow(&server, &[&basic("bob:hunter2")]).await;
    let [alice, carol, ci, boss] =
        [basic("alice:secret"), basic("carol:letmein"), bearer(&files.ci), bearer(&files.boss)];
    let [removed, changed, taken, demoted] = [
        follow(&server, &[&alice]).await,
        follow(&server, &[&carol]).await,
        follow(&server, &[&ci]).await,
        follow(&server, &[&boss]).await,
    ];

    // Alice is removed, Carol has another password; the token ci is gone, and boss may do less.
    files.write("web.yml", &and(&[("carol", "renewed")]));
    let tokens = std::fs::read_to_string(files.path("tokens.yml")).unwrap();
    let tokens = tokens.split_once('\n').unwrap().1.replacen("role: admin", "role: operator", 1);
    files.write("tokens.yml", &tokens);
    for (stream, whose) in [(removed, "alice"), (changed, "carol"), (taken, "ci"), (demoted, "boss")] {
        ends(stream, whose).await;
    }
    ends(expiring, "short").await;
    assert!(Timestamp::now() >= expires, "a token that is valid keeps its stream");
    // Users who may still read are not disturbed: keep-alives keep coming.
    let mut drained = Vec::new();
    while !String::from_utf8_lossy(&drained).contains("event: beat") {
        let read = timeout(LIMIT, staying.read_buf(&mut drained)).await.expect("the stream says something").unwrap();
        assert!(read > 0, "the stream goes on");
    }
    let beats = |text: &[u8]| String::from_utf8_lossy(text).matches("event: beat").count();
    let before = beats(&drained);
    while beats(&drained) < before + 2 {
        let read = timeout(LIMIT, staying.read_buf(&mut drained)).await.expect("the stream says something").unwrap();
        assert!(read > 0, "the stream goes on");
    }
    server.stop().await;
}

#[tokio::test]
async fn where_everyone_on_the_machine_is_trusted_every_page_says_so() {
    let notice = "Whoever is here may do <everything>.";
    let loopback = Some(Loopback { role: Role::Admin, notice });
    let server = Server::with(config::Web { loopback, ..config::Web::default() }).await;
    assert_eq!(who(&server, &[]).await, json!(["loopback", "loopback", "admin", true, true]));
    assert_eq!(who(&server, &["X-Forwarded-For: 192.0.2.1"]).await, json!([null, "anonymous", "viewer", false, false]));
    for path in ["/", "/api"] {
        let page = server.ask(&format!("GET {path} HTTP/1.1"), &["Accept: text/html"]).await;
        assert!(page.text().contains("Whoever is here may do &#60;everything&#62;."), "{path}: {}", page.text());
    }
    server.stop().await;
}
