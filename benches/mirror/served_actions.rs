//! A server that takes actions, and a client that requests them over HTTP.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use queuekeeper::actions::Role;
use queuekeeper::config::{Secret, TokenLine};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Reader, Served};
use crate::steps::REASON;

/// How long to wait for something that is under way.
const LIMIT: Duration = Duration::from_mins(5);

pub(crate) struct ActionServer {
    pub(crate) served: Served,
    token: Secret,
    /// Of the configuration and the audit file.
    pub(crate) directory: TempDir,
}

/// Who gives actions, with connections of their own.
pub(crate) struct Client {
    reader: Reader,
    token: String,
}

impl ActionServer {
    pub(crate) async fn start(zookeeper: &str) -> anyhow::Result<Self> {
        let (directory, token) = (tempfile::tempdir()?, Secret::make());
        let path = |name: &str| directory.path().join(name).into_os_string().into_string();
        let path = |name: &str| path(name).ok().context("a temporary path is text");
        let line = TokenLine::new("bench", Role::Operator, None, &token)?;
        std::fs::write(path("tokens.yml")?, line.to_string())?;
        std::fs::write(path("config.yml")?, "tokens_file: tokens.yml\n")?;
        let flags = ["--config.file", &path("config.yml")?, "--audit.file", &path("audit.jsonl")?];
        let served = Served::start(zookeeper, &flags).await?;
        Ok(Self { served, token, directory })
    }

    /// A client that requests actions.
    pub(crate) fn client(&self) -> Client {
        Client { reader: self.served.reader(), token: self.token.reveal().to_owned() }
    }

    /// Waits until the mirror has so many failed jobs.
    pub(crate) async fn sees_failed(&self, count: usize) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < LIMIT {
            let answer: Value = serde_json::from_str(&self.served.get("/api/v1/jobs?state=failed&limit=1").await?.1)?;
            if answer["total"] == count {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("the mirror has not {count} failed jobs after {LIMIT:?}")
    }
}

impl Client {
    /// Requests something, and gives how long the answer took.
    pub(crate) async fn action(&self, mut action: Value) -> anyhow::Result<Duration> {
        action["reason"] = REASON.into();
        let started = Instant::now();
        let answer = self.post("/api/v1/actions", &action, 200).await?;
        let took = started.elapsed();
        anyhow::ensure!(answer["outcome"] == "done", "{answer}");
        Ok(took)
    }

    /// Freezes the list of so many items, and gives its id and how long that took.
    pub(crate) async fn freeze(&self, list: &Value, count: usize) -> anyhow::Result<(String, Duration)> {
        let started = Instant::now();
        let frozen = self.post("/api/v1/lists", list, 201).await?;
        let took = started.elapsed();
        anyhow::ensure!(frozen["count"] == count, "{} of {count} are on the list", frozen["count"]);
        Ok((frozen["id"].as_str().context("a list has an id")?.to_owned(), took))
    }

    /// Carries out what a frozen list says, and gives how long it took until all of it was done.
    pub(crate) async fn execute(&self, id: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.post(&format!("/api/v1/lists/{id}/execute"), &json!({"reason": REASON}), 202).await?;
        let action = format!("/api/v1/actions/{id}");
        while started.elapsed() < LIMIT {
            let answer: Value = serde_json::from_str(&self.reader.get(&action).await?.1)?;
            if answer["outcome"] != "running" {
                anyhow::ensure!(answer["outcome"] == "done" && answer["done"] == answer["count"], "{answer}");
                return Ok(started.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::bail!("the action goes on for more than {LIMIT:?}")
    }

    async fn post(&self, path: &str, body: &Value, wanted: u16) -> anyhow::Result<Value> {
        let (code, answer) = self.reader.post(path, &self.token, body.to_string()).await?;
        anyhow::ensure!(code == wanted, "{path}: {code} {answer} to {body}");
        Ok(serde_json::from_str(&answer)?)
    }
}
