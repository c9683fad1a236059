//! Withdrawing a deposit by way of a server.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::receipt::check_id;
use super::{RETRY_LIMIT, Server, SubmitFailure, TIMEOUT, said, state};
use crate::cli::exit::{CommandError, FAILED, REFUSED, UNKNOWN};
use crate::cli::output::Spinner;
use crate::cli::submit::SubmitArgs;

/// What follows on a deposit's id where it is withdrawn.
const WITHDRAW: &str = "/withdraw";

/// How often a withdrawal that takes a while is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl SubmitArgs {
    /// Withdraws a deposit by way of a server, and waits until that is done.
    ///
    /// # Errors
    /// When it is refused, or not known to be done.
    pub(in crate::cli::submit) async fn send_withdrawal(&self, server: &Server, id: &str) -> anyhow::Result<()> {
        check_id("--withdraw", id)?;
        let mut view = server.withdraw(id, self.reason.as_deref()).await?;
        if state(&view) != "withdrawn" {
            view = server.follow_withdrawal(id).await?;
        }
        let (id, batch) = (said(&view["id"]), said(&view["batch"]));
        let value = json!({"id": id, "batch": view["batch"], "state": "withdrawn"});
        self.output.show(&value, |screen| screen.say(&format!("{batch} ({id}) is withdrawn")))
    }
}

impl Server {
    /// Withdraws a deposit. Withdrawn again, it is withdrawn.
    async fn withdraw(&self, id: &str, reason: Option<&str>) -> Result<Value, CommandError> {
        let ask = async || {
            let request = self.request(Method::POST, &format!("/{id}{WITHDRAW}")).timeout(TIMEOUT);
            let request = match reason {
                Some(reason) => {
                    let body = json!({"reason": reason}).to_string();
                    request.header("content-type", "application/json").body(body)
                }
                None => request,
            };
            match self.answer(request.send().await).await {
                // It may be one whose jobs have left Pending, and soon more of them will have.
                Err(SubmitFailure::Conflict(why)) => Err(SubmitFailure::Final(CommandError::new(REFUSED, why))),
                answered => answered,
            }
        };
        self.insist_on(ask, |why| unknown(id, why)).await
    }

    /// Waits until a withdrawal that was begun is at its end.
    async fn follow_withdrawal(&self, id: &str) -> Result<Value, CommandError> {
        let _spinner = Spinner::start("withdrawing");
        let began = tokio::time::Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let view = self.insist_on(async || self.find(id).await, |why| unknown(id, why)).await?;
            match (state(&view), view["withdrawing_since"].is_string()) {
                ("withdrawn", _) => return Ok(view),
                (state, false) if began.elapsed() > LOOK * 4 => {
                    let why =
                        view["withdrawal_refused"].as_str().map_or_else(|| format!("it is {state}"), str::to_owned);
                    return Err(CommandError::new(FAILED, format!("{id} was not withdrawn: {why}")));
                }
                _ if began.elapsed() > RETRY_LIMIT => {
                    return Err(unknown(id, "it is still being withdrawn"));
                }
                _ => {}
            }
        }
    }
}

/// That it was not seen how a withdrawal ended.
fn unknown(id: &str, why: &str) -> CommandError {
    CommandError::new(UNKNOWN, format!("{why}; it is unknown whether {id} was withdrawn: run the same command again"))
}
