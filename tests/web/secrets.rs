//! What has to be kept secret is planted everywhere that the program takes it, and looked for everywhere that it
//! speaks.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};

use queuekeeper::actions::Role;
use queuekeeper::config::{ConfigFile, Secret, TokenLine, WebFile};
use queuekeeper_zookeeper::PrivateServer;
use queuekeeper_zookeeper::server::Options;
use reqwest::{Client, Method};

use super::command_line::queuekeeper;
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::wait::eventually;

/// What a password is hashed with in this test: cheap, since strength is not what is tried.
const COST: u32 = 4;

/// How much of a secret is as bad as all of it, in bytes.
const PART: usize = 16;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What must not be seen again, each with what it is.
struct Planted(Vec<(&'static str, String)>);

impl Planted {
    /// Looks for each of them, and for any part that is long enough to be of use.
    #[track_caller]
    fn are_not_in(&self, place: &str, text: &str) {
        for (what, secret) in &self.0 {
            for start in 0..=secret.len().saturating_sub(PART) {
                let part = &secret[start..secret.len().min(start + PART)];
                assert!(!text.contains(part), "{what} is in {place}: {text}");
            }
        }
    }
}

/// A text as it stands below a key of a file.
fn indented(text: &str) -> String {
    format!("    {}\n", text.trim_end().replace('\n', "\n    "))
}

/// The lines of a private key.
fn lines(pem: &str) -> impl Iterator<Item = &str> {
    pem.lines().filter(|line| line.len() >= PART && !line.starts_with('-'))
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_a_log_an_answer_a_metric_the_audit_trail_or_a_dump() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let (operator, alertmanager, foreign) = (Secret::make(), Secret::make(), Secret::make());
    let line = |name, role, secret: &Secret| TokenLine::new(name, role, None, secret).unwrap().to_string();
    let tokens = [line("ci", Role::Operator, &operator), line("alertmanager", Role::Alertmanager, &alertmanager)];
    write(home.path(), "tokens.yml", &tokens.join("\n"));
    let hash = bcrypt::hash("correct-horse-battery", COST).unwrap();
    let web = write(home.path(), "web.yml", &format!("basic_auth_users: {{alice: {hash}}}\n"));
    let config = write(home.path(), "config.yml", "users: {alice: admin}\ntokens_file: tokens.yml\n");
    let auth = write(home.path(), "auth", "digest:keeper:zookeeper-s3cret\n");
    let hashes = tokens.iter().map(|line| line.split("sha256: \"").nth(1).unwrap().split('"').next().unwrap());
    let mut planted = Planted(vec![
        ("a password", "correct-horse-battery".to_owned()),
        ("a password that is wrong", "wrong-horse-battery".to_owned()),
        ("the hash of a password", hash.clone()),
        ("a token", operator.reveal().to_owned()),
        ("Alertmanager's token", alertmanager.reveal().to_owned()),
        ("a token that nobody knows", foreign.reveal().to_owned()),
        ("credentials for ZooKeeper", "zookeeper-s3cret".to_owned()),
    ]);
    planted.0.extend(hashes.map(|hash| ("the hash of a token", hash.to_owned())));
    let key = std::fs::read_to_string(Authority::new(home.path(), "ca").certify("server").key_file).unwrap();
    planted.0.extend(lines(&key).map(|line| ("a private key", line.to_owned())));
    assert!(planted.0.len() > 10, "the key has lines");

    let audit = home.path().join("audit.jsonl");
    let mut child =
        queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.level=trace", "--log.format=json"])
            .args(["--zookeeper", &server.connect_string(), "--zookeeper.auth-file", &auth])
            .args(["--web.config.file", &web, "--config.file", &config, "--audit.file", audit.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let base = loop {
        let before = said.len();
        assert_ne!(log.read_line(&mut said).unwrap(), 0, "it listens before it ends: {said}");
        if let Some((_, rest)) = said[before..].split_once("\"address\":\"") {
            break format!("http://{}", rest.split('"').next().unwrap());
        }
    };
    let mut served = Ended(child);
    // It is read all the time, so that the program never waits for us.
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        log.read_to_string(&mut rest).map(|_| rest)
    });

    let http = Client::new();
    eventually(super::world::LIMIT, "it is ready", async || {
        http.get(format!("{base}/-/ready")).send().await.is_ok_and(|answer| answer.status().is_success())
    })
    .await;
    ask(&http, &base, &planted, &operator, &alertmanager, &foreign).await;
    planted.are_not_in("the audit trail", &std::fs::read_to_string(&audit).unwrap());
    assert!(std::fs::read_to_string(&audit).unwrap().contains("to look for secrets"), "actions were given");

    let address = server.connect_string();
    let home_path = home.path().to_owned();
    let planted = tokio::task::spawn_blocking(move || {
        elsewhere(&planted, &home_path, &address, &tokens[0], &hash);
        in_wrong_files(&planted, &home_path);
        on_a_command_line(&planted, &home_path, &foreign);
        with_a_key_in_the_file(&planted, &home_path);
        planted
    });
    let planted = planted.await.unwrap();

    served.0.kill().unwrap();
    let log = said + &rest.join().unwrap().unwrap();
    assert!(log.contains("handled a request"), "it is the whole log: {log}");
    planted.are_not_in("the log", &log);
}

/// Requests all pages that show much, with every role and without credentials, and requests actions.
async fn ask(http: &Client, base: &str, planted: &Planted, operator: &Secret, alertmanager: &Secret, foreign: &Secret) {
    let action = r#"{"action": "pause", "on": "queue:ingest", "reason": "to look for secrets"}"#;
    let alerts = r#"{"version": "4", "alerts": []}"#;
    let bearer = |secret: &Secret| format!("Bearer {}", secret.reveal());
    let basic = |password: &str| {
        use base64::Engine as _;
        format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(format!("alice:{password}")))
    };
    let askers = [
        bearer(operator),
        bearer(alertmanager),
        bearer(foreign),
        basic("correct-horse-battery"),
        basic("wrong-horse-battery"),
        format!("Basic {}", operator.reveal()),
        format!("Nonsense {}", foreign.reveal()),
    ];
    for (number, asker) in askers.iter().enumerate() {
        // Who is not known waits longer each time.
        let every = if [0, 1, 3].contains(&number) { 1 } else { 4 };
        let requests = [
            (Method::GET, "/", ""),
            (Method::GET, "/metrics", ""),
            (Method::GET, "/api/v1/identity", ""),
            (Method::GET, "/api/v1/status", ""),
            (Method::GET, "/rules", ""),
            (Method::GET, "/audit", ""),
            (Method::GET, "/tree", ""),
            (Method::GET, "/tree/queuekeeper", ""),
            (Method::GET, "/api/v1/audit", ""),
            (Method::GET, "/-/ready", ""),
            (Method::GET, "/events?page=nothing", ""),
            (Method::GET, "/nothing", ""),
            (Method::POST, "/api/v1/actions", action),
            (Method::POST, "/api/v1/actions", "{"),
            (Method::POST, "/api/v1/alerts", alerts),
            (Method::POST, "/api/v1/alerts", "{\"version\": 4}"),
        ];
        for (method, path, body) in requests.into_iter().step_by(every) {
            let request = http.request(method.clone(), format!("{base}{path}")).header("authorization", asker);
            let request = request.header("content-type", "application/json").header("accept", "text/html");
            let answer = request.body(body.to_owned()).send().await.unwrap();
            let headers = format!("{:?}", answer.headers());
            let place = format!("the answer to {method} {path}: {}", answer.status());
            planted.are_not_in(&place, &(headers + &answer.text().await.unwrap()));
        }
    }
}

/// Looks where no server speaks: in a dump, and in what is said of files that are wrong.
#[track_caller]
fn elsewhere(planted: &Planted, home: &Path, server: &str, token: &str, hash: &str) {
    let file = |name: &str| home.join(name).to_str().unwrap().to_owned();
    let (auth, config) = (file("auth"), file("config.yml"));
    let dump = queuekeeper(&["dump", "--zookeeper", server, "--zookeeper.auth-file", &auth]).output();
    let dump = dump.unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    for text in [&dump.stdout, &dump.stderr] {
        planted.are_not_in("a dump", &String::from_utf8_lossy(text));
    }
    // Files that are wrong are reported by their lines, and not by what is in them.
    for (name, flag, text) in [
        ("web.yml", "--web.config.file", format!("basic_auth_users: {{alice: \"{hash} \"}}\n")),
        ("tokens.yml", "--config.file", token.replace("role: operator", "role: nothing")),
        ("auth", "--zookeeper.auth-file", "digest zookeeper-s3cret\n".to_owned()),
    ] {
        let path = write(home, name, &text);
        let named = if name == "tokens.yml" { &config } else { &path };
        let refused = queuekeeper(&["serve", flag, named]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
        planted.are_not_in(name, &String::from_utf8_lossy(&refused.stderr));
    }
}

/// Damages files that are right in every way that a slip of the hand does, and looks at what is said of them.
#[track_caller]
fn in_wrong_files(planted: &Planted, home: &Path) {
    let key = std::fs::read_to_string(home.join("server-key.pem")).unwrap();
    let key = indented(&key);
    let hash = &planted.0.iter().find(|(what, _)| *what == "the hash of a password").unwrap().1;
    let web = format!(
        "tls_server_config:\n  cert_file: server.pem\n  key: |\n{key}basic_auth_users:\n  alice: {hash}\n\
         http_server_config:\n  http2: false\n"
    );
    let sums = planted.0.iter().filter(|(what, _)| *what == "the hash of a token");
    let tokens: Vec<_> =
        sums.enumerate().map(|(n, (_, sum))| format!("token{n}:\n  role: viewer\n  sha256: {sum}\n")).collect();
    let tokens = tokens.concat();
    let config = home.join("damaged.yml");
    std::fs::write(&config, "tokens_file: damaged-file.yml\n").unwrap();
    let path = home.join("damaged-file.yml");
    let read = |is_web: bool, text: &str| {
        std::fs::write(&path, text).unwrap();
        let read = if is_web { WebFile::read(&path).map(drop) } else { ConfigFile::read(&config).map(drop) };
        read.err().map(|error| error.to_string())
    };
    let mut refused = 0;
    for (is_web, right) in [(true, &web), (false, &tokens)] {
        assert_eq!(read(is_web, right), None);
        let lines: Vec<&str> = right.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let middle = line.len() / 2;
            let damages = [
                String::new(),
                format!("{line}\n{line}"),
                format!("  {line}"),
                line.trim_start().to_owned(),
                line.replace(':', ""),
                line.replace(": ", ": ["),
                line.replace(": ", ": \""),
                line.replace(": ", ": *"),
                line.replace(": ", ": !!int "),
                line.replace(": ", ": {"),
                line.replacen(' ', "\t", 1),
                format!("{}: {}", &line[..middle], &line[middle..]),
                format!("{}\n{}", &line[..middle], &line[middle..]),
                format!("? {line}"),
                format!("- {line}"),
                format!("{line}\u{0}"),
            ];
            for damage in damages {
                let mut all = lines.clone();
                all[number] = &damage;
                if let Some(error) = read(is_web, &all.join("\n")) {
                    refused += 1;
                    planted.are_not_in(&format!("what is said of {damage:?}"), &error);
                }
            }
            if let Some(error) = read(is_web, &lines[..number].join("\n")) {
                planted.are_not_in("what is said of half a file", &error);
            }
        }
    }
    assert!(refused > 100, "{refused}");
    // The key is no key any more, and what it belongs to needs one.
    let broken: String = std::fs::read_to_string(home.join("server-key.pem")).unwrap().replace("END", "ENDE");
    let broken = write(home, "broken-key.pem", &broken);
    let certificate = home.join("server.pem");
    let flags = ["serve", "--zookeeper.tls-key-file", &broken, "--zookeeper.tls-cert-file"];
    let said = queuekeeper(&flags).arg(&certificate).output().unwrap();
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    planted.are_not_in("what is said of a key", &String::from_utf8_lossy(&said.stderr));
}

/// Secrets where none is expected: one that is put there appears in no log.
#[track_caller]
fn on_a_command_line(planted: &Planted, home: &Path, token: &Secret) {
    let url = "https://alice:correct-horse-battery@queue.example/";
    let servers = "keeper:correct-horse-battery@127.0.0.1:1";
    let folder = home.join("files");
    let folder = folder.to_str().unwrap();
    for arguments in [
        &["serve", "--web.external-url", url][..],
        &["dashboards", folder, "--url", url],
        &["serve", "--zookeeper", servers],
        &["serve", "--web.listen-address", servers],
        &["jobs", "--zookeeper", servers],
        &["serve", "--zookeeper.auth-file", "digest:keeper:correct-horse-battery"],
        &["token", token.reveal(), "--role", "viewer"],
    ] {
        let said = queuekeeper(arguments).output().unwrap();
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {said:?}");
        planted.are_not_in("what is said of a flag", &String::from_utf8_lossy(&said.stderr));
        planted.are_not_in("what is said of a flag", &String::from_utf8_lossy(&said.stdout));
    }
    let mut help = queuekeeper(&["serve", "--help"]);
    for name in ["WEB_EXTERNAL_URL", "ZOOKEEPER", "ZOOKEEPER_ACL", "WEB_LISTEN_ADDRESS", "ZOOKEEPER_AUTH_FILE"] {
        help.env(format!("QUEUEKEEPER_{name}"), url);
    }
    planted.are_not_in("the help", &String::from_utf8_lossy(&help.output().unwrap().stdout));
    let said = queuekeeper(&["serve"]).env("QUEUEKEEPER_WEB_EXTERNAL_URL", url).output().unwrap();
    planted.are_not_in("what is said of a variable", &String::from_utf8_lossy(&said.stderr));
}

/// Serves with a key that stands in the web configuration itself, and reads the log up to where it listens.
#[track_caller]
fn with_a_key_in_the_file(planted: &Planted, home: &Path) {
    let key = std::fs::read_to_string(home.join("server-key.pem")).unwrap();
    let key = indented(&key);
    let web = write(home, "inline.yml", &format!("tls_server_config:\n  cert_file: server.pem\n  key: |\n{key}"));
    let checked = queuekeeper(&["check-web-config", &web]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    planted.are_not_in("what is said of a file that is right", &format!("{checked:?}"));
    let mut serve = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.level=trace"]);
    serve.args(["--zookeeper", "127.0.0.1:1", "--web.config.file", &web]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut served = Ended(serve.spawn().unwrap());
    let mut log = BufReader::new(served.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("listening") {
        assert_ne!(log.read_line(&mut said).unwrap(), 0, "it listens before it ends: {said}");
    }
    served.0.kill().unwrap();
    log.read_to_string(&mut said).unwrap();
    planted.are_not_in("the log of a server with TLS", &said);
}
