//! The program with the least privileges that suffice by SECURITY.md, and what it logs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use queuekeeper_testkit::wait::eventually;
use serde_json::Value;

use super::command_line::queuekeeper;
use super::world::LIMIT;

const SECURITY: &str = include_str!("../../SECURITY.md");

/// The privileges of a part by the table of SECURITY.md: on znodes, and in the catalogue.
pub(crate) fn privileges(part: &str) -> (&'static str, &'static str) {
    let row = SECURITY.lines().find(|line| line.starts_with(&format!("| {part} |")));
    let row = row.unwrap_or_else(|| panic!("SECURITY.md has no row {part:?}"));
    let cells: Vec<_> = row.split('|').map(str::trim).collect();
    (cells[2], cells[3])
}

/// The program; it ends when this is dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) base: String,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Program {
    /// One that is ready, with the `config.yml` of a directory.
    pub(crate) async fn start(home: &Path, zookeeper: &str, more: &[&str]) -> Self {
        let mut child = queuekeeper(&["serve", "--web.listen-address=127.0.0.1:0", "--log.format=json"])
            .args(["--zookeeper", zookeeper])
            .args(["--audit.file".as_ref(), home.join("audit.jsonl").as_os_str()])
            .args(["--config.file".as_ref(), home.join("config.yml").as_os_str()])
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ends: {log:?}")).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            let address = line["fields"]["address"].as_str().map(str::to_owned);
            let is_listening = line["fields"]["message"] == "listening";
            log.lock().unwrap().push(line);
            if let (true, Some(address)) = (is_listening, address) {
                break address;
            }
        };
        // A pipe that is full would stop it.
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap_or(Value::String(line)));
            }
        });
        let program = Self { child, base: format!("http://{address}"), log };
        eventually(LIMIT, "it is ready", async || {
            let ready = reqwest::get(format!("{}/-/ready", program.base)).await;
            ready.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        program
    }

    /// What it has logged of failures, but for lines that have this text.
    pub(crate) fn failures(&self, but: &str) -> Vec<String> {
        let log = self.log.lock().unwrap();
        let is_failure =
            |line: &&Value| !["INFO", "DEBUG", "TRACE"].contains(&line["level"].as_str().unwrap_or("none"));
        log.iter().filter(is_failure).map(ToString::to_string).filter(|line| !line.contains(but)).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended_before = self.child.kill();
        let _ended_before = self.child.wait();
    }
}
