//! A real mail server, which refuses what a test wants refused, and Python's parser of mails. The server is `aiosmtpd`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::certs::Certified;
use crate::process::Program;

const SCRIPT: &str = include_str!("smtp.py");

/// How long it may take to answer.
const LIMIT: Duration = Duration::from_mins(1);

/// How a server behaves.
#[derive(Clone, Debug, Default)]
pub struct SmtpOptions {
    /// Certificate and key, and whether TLS begins with the connection; else it has to be begun by `STARTTLS`.
    pub tls: Option<(PathBuf, PathBuf, bool)>,
    /// User and password, which are required then.
    pub login: Option<(&'static str, &'static str)>,
}

impl SmtpOptions {
    /// With this certificate.
    #[must_use]
    pub fn with_tls(mut self, certified: &Certified, is_implicit: bool) -> Self {
        self.tls = Some((certified.cert_file.clone(), certified.key_file.clone(), is_implicit));
        self
    }
}

/// A server, running or stopped.
#[derive(Debug)]
pub struct Smtp {
    options: SmtpOptions,
    port: u16,
    running: Option<(Program, ChildStdin, mpsc::Receiver<Value>)>,
    received: Arc<Mutex<Vec<Value>>>,
}

impl Smtp {
    /// Starts a server on a free port of the loopback interface.
    #[must_use]
    pub fn start(options: SmtpOptions) -> Self {
        let mut server = Self { options, port: 0, running: None, received: Arc::default() };
        server.restart();
        server
    }

    /// Its port, also while it is stopped.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The mails that it took: `from`, `to`, `tls`, `user`, and what the parser found: `headers`, `parts`, `defects`.
    #[must_use]
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().clone()
    }

    /// Lets commands fail: each that is named, so many times, with an answer. The answer `cut` to `DATA` takes the mail
    /// and ends the connection, to `BODY` ends it in the middle of the mail. Replaces what was ordered before.
    pub fn fail(&mut self, faults: &[(&str, u32, &str)]) {
        self.order(&json!({ "faults": faults }));
    }

    /// Refuses one recipient with an answer until something else is ordered.
    pub fn refuse(&mut self, recipient: &str, answer: &str) {
        self.order(&json!({ "refused": { recipient: answer } }));
    }

    fn order(&mut self, order: &Value) {
        let (_, orders, answers) = self.running.as_mut().expect("it is running");
        writeln!(orders, "{order}").unwrap();
        assert_eq!(answers.recv_timeout(LIMIT).unwrap(), json!({"done": true}));
    }

    /// Ends it. Connections are refused then.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Starts it again on its port, with what it has received, and without faults.
    pub fn restart(&mut self) {
        self.running = None;
        let mut options = json!({ "port": self.port });
        if let Some((cert, key, is_implicit)) = &self.options.tls {
            (options["cert"], options["key"], options["implicit"]) = (json!(cert), json!(key), json!(is_implicit));
        }
        if let Some((user, password)) = self.options.login {
            options["login"] = json!([user, password]);
        }
        let mut command = python();
        command.args(["-c", SCRIPT, "serve", &options.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (send, answers) = mpsc::channel();
        let received = Arc::clone(&self.received);
        // It ends with the server's output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let mut said: Value = serde_json::from_str(&line).unwrap();
                if said.get("mail").is_some() {
                    received.lock().push(said["mail"].take());
                } else if send.send(said).is_err() {
                    return;
                }
            }
        });
        let said = answers.recv_timeout(LIMIT).expect("the mail server does not start; run .ci/install");
        self.port = said["port"].as_u64().unwrap().try_into().unwrap();
        self.running = Some((Program(child), orders, answers));
    }
}

/// Reads a mail in a file by Python's parser: `headers`, `parts`, `defects`.
#[must_use]
pub fn parse(path: &Path) -> Value {
    let output = python().args(["-c", SCRIPT, "parse"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The values of a header of a mail, by its name in lower case.
#[must_use]
pub fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let headers = mail["headers"].as_array().unwrap().iter();
    headers.filter(|header| header[0] == name).map(|header| header[1].as_str().unwrap()).collect()
}

/// The text of the part of a type.
#[must_use]
pub fn part<'a>(mail: &'a Value, media_type: &str) -> &'a str {
    let found = mail["parts"].as_array().unwrap().iter().find(|part| part["type"] == media_type);
    found.unwrap_or_else(|| panic!("no {media_type} in {mail}"))["text"].as_str().unwrap()
}

fn python() -> Command {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python");
    assert!(python.exists(), "no {}; run .ci/install", python.display());
    Command::new(python)
}
