//! What a server answers to a deposit: its receipt, and how its batch ended.

use std::time::Duration;

use queuekeeper_ingest::kind::DepositType;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{BatchState, State as _};
use reqwest::Method;
use serde_json::Value;

use super::super::SubmitArgs;
use super::super::ended::{Ended, Part, Warned};
use super::{Server, SubmitFailure, TIMEOUT, said, state};
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, REFUSED};
use crate::cli::output::Bar;

/// How often the deposit is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(500);

/// What follows on a deposit's id where its failed rows are submitted again.
const FAILED_ROWS: &str = "/failed";

impl SubmitArgs {
    /// Submits the failed rows of a deposit again by way of a server, and waits for their report where that is
    /// requested.
    ///
    /// # Errors
    /// When that is refused, or a job of them failed.
    pub(in crate::cli::submit) async fn send_failed(&self, server: &Server, id: &str) -> anyhow::Result<()> {
        check_id("--failed-of", id)?;
        let view = server.submit_failed(id).await?;
        let id = view["id"].as_str().unwrap_or_default();
        let batch = view["batch"].as_str().and_then(|batch| batch.parse().ok());
        let batch = batch.ok_or_else(|| CommandError::new(FAILED, format!("{id} has no batch; {}", said(&view))))?;
        self.receive(server, (batch, id, None)).await
    }

    /// Prints the receipt of a batch, and how it ended where that is waited for.
    pub(super) async fn receive(
        &self,
        server: &Server,
        (batch, id, kind): (BatchId, &str, Option<DepositType>),
    ) -> anyhow::Result<()> {
        if !self.wait {
            return self.print(batch, id, kind, None);
        }
        let view = server.follow(id).await?;
        let mut jobs = server.jobs(id, &view).await?;
        let mut warned = Warned::default();
        warned.add_batch(&view);
        let parts: Vec<_> = view["parts"].as_array().into_iter().flatten().map(part).collect();
        for part in parts.iter().filter(|part| part.id != id) {
            let view = server.insist(async || server.find(&part.id).await).await?;
            jobs.extend(server.jobs(&part.id, &view).await?);
            warned.add_batch(&view);
        }
        let jobs = || jobs.iter();
        let of = |name: &str| view[name].as_u64().unwrap_or(0);
        let state = name(state(&view));
        let arks = jobs().filter(|job| job["state"] == "completed").filter_map(|job| job["ark"].as_str());
        let ended = Ended {
            state,
            completed: of("completed"),
            failed: of("failed"),
            parts,
            arks: arks.map(ToOwned::to_owned).collect(),
            warned,
        };
        self.print(batch, id, kind, Some(&ended))?;
        if view["state"] != "failed" {
            return Ok(());
        }
        let failed = jobs().find(|job| job["state"] == "failed");
        let why = match (failed, ended.failed) {
            (None, 0) => match view["outcome"].as_str() {
                Some(outcome) => format!("{batch} failed: {outcome}"),
                None => format!("{batch} failed"),
            },
            (None, more) => format!("{more} jobs failed"),
            (Some(job), 1) => format!("{} failed: {}", said(&job["job"]), said(&job["message"])),
            (Some(job), more) => {
                format!("{more} jobs failed, the first, {}: {}", said(&job["job"]), said(&job["message"]))
            }
        };
        Err(CommandError::new(FAILED, why).into())
    }
}

/// The name of a state by its label; empty for another word.
fn name(label: &str) -> String {
    BatchState::ALL.iter().find(|one| one.label() == label).map(ToString::to_string).unwrap_or_default()
}

/// A part of a deposit as a server shows it.
fn part(view: &Value) -> Part {
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    Part { number: view["part"].as_u64().unwrap_or(0), batch: text("batch"), id: text("id"), state: name(state(view)) }
}

/// Refuses what is no id of a deposit, which would be another path of the server.
pub(super) fn check_id(flag: &'static str, id: &str) -> Result<(), UsageError> {
    let is_plain = id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_plain { Ok(()) } else { Err(UsageError::flag(flag, "the id of a deposit is bid- and a UUID")) }
}

impl Server {
    /// Submits the failed rows of a deposit again.
    async fn submit_failed(&self, id: &str) -> Result<Value, CommandError> {
        self.insist(async || {
            let request = self.request(Method::POST, &format!("/{id}{FAILED_ROWS}")).timeout(TIMEOUT);
            match self.answer(request.send().await).await {
                // Nothing else is under way that would end.
                Err(SubmitFailure::Conflict(why)) => Err(SubmitFailure::Final(CommandError::new(REFUSED, why))),
                answered => answered,
            }
        })
        .await
    }

    /// All jobs of a deposit, of which a view has the first ones.
    async fn jobs(&self, id: &str, view: &Value) -> Result<Vec<Value>, CommandError> {
        let listed = |view: &Value| view["jobs"].as_array().cloned().unwrap_or_default();
        let (mut jobs, mut next) = (listed(view), view["next"].as_str().map(ToOwned::to_owned));
        while let Some(cursor) = next {
            // A cursor is made of letters, digits and such as need no escape.
            let path = format!("{id}?cursor={cursor}");
            let page = self.insist(async || self.find(&path).await).await?;
            jobs.extend(listed(&page));
            next = page["next"].as_str().filter(|next| *next != cursor).map(ToOwned::to_owned);
        }
        Ok(jobs)
    }

    /// Waits until the batch is reported.
    async fn follow(&self, id: &str) -> Result<Value, CommandError> {
        let bar = Bar::start("waiting for the report".to_owned(), 0);
        loop {
            let view = self.insist(async || self.find(id).await).await?;
            match state(&view) {
                "completed" | "failed" => return Ok(view),
                state @ ("deleted" | "withdrawn" | "removed" | "refused") => {
                    let outcome = view["outcome"].as_str().map(|outcome| format!(" ({outcome})")).unwrap_or_default();
                    return Err(CommandError::new(FAILED, format!("{id} was {state}{outcome} while waiting for it")));
                }
                _ => {}
            }
            let of = |name: &str| view[name].as_u64().unwrap_or(0);
            let done = of("completed") + of("failed");
            bar.set(done, done + of("processing"));
            tokio::time::sleep(LOOK).await;
        }
    }
}
