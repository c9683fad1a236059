//! Sending the mails that wait in the outbox.
//!
//! Rows are taken under a lease, so that any number of processes share the outbox. Where a process ends between sending
//! a mail and writing that down, the mail is sent again with the same content and `Message-ID`.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::outbox::{Attempt, DueMessage};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::metrics::{Delivered, OutboxMetrics};
use crate::settings::{MailSettings, Route, SmtpServer};
use crate::smtp::SmtpFailure;
use crate::{MAIL, Settled, folder, read_settled, refusals, write_settled};

/// The longest pause while the mail server is away: when it is back, one attempt shows it for all mails.
const LONGEST_AWAY: Duration = Duration::from_mins(5);

/// How often it is written down how an attempt ended, before the message is delivered again.
const WRITING: u32 = 5;
const WRITING_PAUSE: Duration = Duration::from_secs(1);

/// Who sends mails.
pub struct Delivery<'a> {
    /// Where they wait.
    pub catalogue: &'a Catalogue,
    /// How they leave.
    pub settings: &'a MailSettings,
    /// How often it is seen whether any are due.
    pub look_again: Duration,
    /// Notified when one was written in this process.
    pub posted: &'a Notify,
    /// What is counted.
    pub metrics: &'a OutboxMetrics,
    /// Learns of each attempt why the mail is tried again; nothing where it is not.
    pub tried: &'a (dyn Fn(&str) + Send + Sync),
}

impl Delivery<'_> {
    /// Sends one mail after the other, until `stopping` is true and what was begun has ended. While the server is away,
    /// one of them is tried from time to time.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        if self.settings.route == Route::None {
            return;
        }
        let mut failed = 0;
        while !*stopping.borrow() {
            match self.catalogue.take_messages(MAIL, 1, self.settings.lease).await {
                Ok(mut taken) => match taken.pop() {
                    Some(due) if self.deliver(&due, failed).await => {
                        failed += 1;
                        wait(&mut stopping, self.settings.pause(failed).min(LONGEST_AWAY), None).await;
                    }
                    Some(_) => failed = 0,
                    None => wait(&mut stopping, self.look_again, Some(self.posted)).await,
                },
                Err(error) => {
                    warn!(%error, "cannot look for due mails");
                    wait(&mut stopping, self.look_again, None).await;
                }
            }
        }
    }

    /// Delivers a mail; the answer is whether the way out is blocked for all.
    async fn deliver(&self, due: &DueMessage, failed_before: u32) -> bool {
        let settings = self.settings;
        let mut settled = read_settled(due.message.settled.as_deref());
        let outcome = match &settings.route {
            Route::None => return true,
            Route::Directory(directory) => to_directory(directory.clone(), due).await,
            Route::Smtp(server) => {
                let sent = to_server(server, &settings.from, due, &mut settled);
                match timeout(settings.lease / 2, sent).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(SmtpFailure { why: "the mail server takes too long".to_owned(), is_away: false }),
                }
            }
        };
        let has_no_recipient = matches!(settings.route, Route::Smtp(_)) && !settled.values().any(Option::is_none);
        let note = refusals(&settled);
        let is_too_old = Timestamp::now().duration_since(due.created).unsigned_abs() > settings.refused_within;
        let is_blocked = outcome.as_ref().is_err_and(|failure| failure.is_away);
        let (why, after) = match outcome {
            Ok(()) => (note.clone(), None),
            Err(SmtpFailure { why, is_away }) => {
                let why = note.iter().cloned().chain([why]).collect::<Vec<_>>().join("; ");
                let pause = if is_away {
                    settings.pause(failed_before + 1).min(LONGEST_AWAY)
                } else {
                    settings.pause(due.attempts)
                };
                (Some(why), (is_away || !is_too_old).then_some(pause))
            }
        };
        (self.tried)(why.as_deref().filter(|_| after.is_some()).unwrap_or_default());
        let kept = write_settled(&settled);
        let attempt = match (after, &why) {
            (Some(after), why) => {
                Attempt::Later { why: why.as_deref().unwrap_or_default(), settled: kept.as_deref(), after }
            }
            (None, why) if has_no_recipient => {
                Attempt::GivenUp { why: why.as_deref().unwrap_or("it has no recipient") }
            }
            (None, why) => Attempt::Delivered { note: why.as_deref() },
        };
        end(self.catalogue, self.metrics, MAIL, due, attempt).await;
        is_blocked
    }
}

async fn to_directory(directory: PathBuf, due: &DueMessage) -> Result<(), SmtpFailure> {
    let (name, content, at) = (due.message.name.clone(), due.message.content.clone(), directory.display().to_string());
    let written = spawn_blocking(move || folder::deliver(&directory, &name, &content)).await;
    let failed = |why: String| SmtpFailure { why: format!("cannot write a mail to {at}: {why}"), is_away: true };
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn to_server(
    server: &SmtpServer,
    from: &str,
    due: &DueMessage,
    settled: &mut Settled,
) -> Result<(), SmtpFailure> {
    let to: Vec<&str> = due.message.recipient.split(", ").filter(|to| !to.is_empty()).collect();
    server.deliver(from, &to, &due.message.content, settled).await
}

/// Writes down how an attempt to deliver a message ended: once for all if it was the last.
pub async fn end(
    catalogue: &Catalogue,
    metrics: &OutboxMetrics,
    kind: &'static str,
    due: &DueMessage,
    attempt: Attempt<'_>,
) {
    let (name, attempts) = (&due.message.name, due.attempts);
    let outcome = match attempt {
        Attempt::Delivered { note: None } => {
            info!(%name, kind, attempts, "delivered a message");
            Delivered::Done
        }
        Attempt::Delivered { note: Some(why) } => {
            warn!(%name, kind, attempts, why, "delivered a message, but not to all recipients");
            Delivered::Done
        }
        Attempt::Later { why, after, .. } => {
            info!(%name, kind, attempts, why, ?after, "cannot deliver a message; will retry later");
            Delivered::Delayed
        }
        Attempt::GivenUp { why } => {
            warn!(%name, kind, attempts, why, "cannot deliver a message");
            Delivered::GivenUp
        }
    };
    metrics.delivered(kind, outcome);
    for _ in 0..WRITING {
        match catalogue.message_tried(due.id, attempt).await {
            Ok(()) => return,
            Err(error) => warn!(%name, %error, "cannot record the outcome of a delivery"),
        }
        tokio::time::sleep(WRITING_PAUSE).await;
    }
}

/// Waits for a time, for what was posted, or until `stopping` is true.
pub async fn wait(stopping: &mut watch::Receiver<bool>, longest: Duration, posted: Option<&Notify>) {
    let posted = async {
        match posted {
            Some(posted) => posted.notified().await,
            None => std::future::pending().await,
        }
    };
    let stopped = async {
        // Where the sender is gone, the whole process is ending.
        if stopping.wait_for(|stopping| *stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = posted => {}
        () = stopped => {}
        () = tokio::time::sleep(longest) => {}
    }
}
