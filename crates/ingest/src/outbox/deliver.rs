//! The tasks that deliver.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use queuekeeper_catalogue::outbox::{Attempt, DueMessage};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tracing::{info, warn};

use super::{Callback, DeliveryFailure, FAILED_CALLBACK, KINDS};
use crate::blocking::blocking;
use crate::daemon::Daemon;
use crate::mail::settings::{Route, SmtpServer};
use crate::mail::smtp::SmtpFailure;
use crate::mail::{MAIL, Settled, folder, read_settled, refusals, write_settled};
use crate::metrics::Delivered;
use crate::step::{Services, now};

/// How many callbacks are delivered at a time.
const CALLBACKS_AT_ONCE: u32 = 8;

/// How long a process has callbacks to itself, and an attempt to deliver one may take.
const CALLBACK_LEASE: Duration = Duration::from_mins(5);
const CALLBACK_LIMIT: Duration = Duration::from_mins(2);

/// The daemons that write mails.
const SENDERS: [Daemon; 3] = [Daemon::Batch, Daemon::Report, Daemon::UpdateReport];

/// The longest pause while the mail server is away: when it is back, one attempt shows it for all mails.
const LONGEST_AWAY: Duration = Duration::from_mins(5);

/// How often it is written down how an attempt ended, before the message is delivered again.
const WRITING: u32 = 5;
const WRITING_PAUSE: Duration = Duration::from_secs(1);

/// Delivers what the outbox holds, until `stopping` is true and what was begun has ended.
pub(crate) async fn run(services: &Services, stopping: &watch::Receiver<bool>) {
    tokio::join!(
        mails(services, stopping.clone()),
        callbacks(services, stopping.clone()),
        count(services, stopping.clone())
    );
}

/// One mail after the other. While the server is away, one of them is tried from time to time.
async fn mails(services: &Services, mut stopping: watch::Receiver<bool>) {
    let (settings, look_again) = (&services.settings.mail, services.settings.look_again);
    if settings.route == Route::None {
        if SENDERS.into_iter().any(|daemon| services.settings.runs(daemon)) {
            warn!(
                "neither a mail server nor a directory for mails is configured; mails wait for a process that has one"
            );
        }
        return;
    }
    let mut failed = 0;
    while !*stopping.borrow() {
        match services.catalogue.take_messages(MAIL, 1, settings.lease).await {
            Ok(mut taken) => match taken.pop() {
                Some(due) if mail(services, &due, failed).await => {
                    failed += 1;
                    wait(&mut stopping, settings.pause(failed).min(LONGEST_AWAY), None).await;
                }
                Some(_) => failed = 0,
                None => wait(&mut stopping, look_again, Some(&services.posted.mail)).await,
            },
            Err(error) => {
                warn!(%error, "cannot look for mails to be delivered");
                wait(&mut stopping, look_again, None).await;
            }
        }
    }
}

/// Delivers a mail; the answer is whether the way out is blocked for all.
async fn mail(services: &Services, due: &DueMessage, failed_before: u32) -> bool {
    let settings = &services.settings.mail;
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
    let is_to_nobody = matches!(settings.route, Route::Smtp(_)) && !settled.values().any(Option::is_none);
    let note = refusals(&settled);
    let is_too_old = now().duration_since(due.created).unsigned_abs() > settings.refused_within;
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
    services.waiting_mail.tried(why.as_deref().filter(|_| after.is_some()).unwrap_or_default());
    let kept = write_settled(&settled);
    let attempt = match (after, &why) {
        (Some(after), why) => {
            Attempt::Later { why: why.as_deref().unwrap_or_default(), settled: kept.as_deref(), after }
        }
        (None, why) if is_to_nobody => Attempt::GivenUp { why: why.as_deref().unwrap_or("it has no recipient") },
        (None, why) => Attempt::Delivered { note: why.as_deref() },
    };
    end(services, MAIL, due, attempt).await;
    is_blocked
}

async fn to_directory(directory: PathBuf, due: &DueMessage) -> Result<(), SmtpFailure> {
    let (name, content, at) = (due.message.name.clone(), due.message.content.clone(), directory.display().to_string());
    let written = blocking(move || folder::deliver(&directory, &name, &content)).await;
    let failed = |why: String| SmtpFailure { why: format!("cannot write a mail to {at}: {why}"), is_away: true };
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.sentence())),
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

/// Callbacks on which no state depends, some at a time.
async fn callbacks(services: &Services, mut stopping: watch::Receiver<bool>) {
    let look_again = services.settings.look_again;
    while !*stopping.borrow() {
        match services.catalogue.take_messages(FAILED_CALLBACK, CALLBACKS_AT_ONCE, CALLBACK_LEASE).await {
            Ok(taken) if taken.is_empty() => wait(&mut stopping, look_again, Some(&services.posted.callback)).await,
            Ok(taken) => drop(join_all(taken.iter().map(|due| callback(services, due))).await),
            Err(error) => {
                warn!(%error, "cannot look for callbacks to be delivered");
                wait(&mut stopping, look_again, None).await;
            }
        }
    }
}

async fn callback(services: &Services, due: &DueMessage) {
    let settings = &services.settings;
    let temporary = |why: String| DeliveryFailure { why, is_final: false, after: None };
    let fetcher = services.profile(&due.message.profile).and_then(|profile| services.fetcher(&profile));
    let outcome = match fetcher {
        Ok(fetcher) => timeout(CALLBACK_LIMIT, Callback { fetcher }.deliver(&due.message))
            .await
            .unwrap_or_else(|_| Err(temporary("callback: it takes too long".to_owned()))),
        Err(error) => Err(temporary(error.sentence())),
    };
    let is_too_old = now().duration_since(due.created).unsigned_abs() > settings.retry_within;
    let attempt = match &outcome {
        Ok(()) => Attempt::Delivered { note: None },
        Err(failure) if failure.is_final || is_too_old => Attempt::GivenUp { why: &failure.why },
        Err(failure) => {
            let after = settings.pause(due.attempts.saturating_sub(1)).max(failure.after.unwrap_or_default());
            Attempt::Later { why: &failure.why, settled: None, after }
        }
    };
    end(services, FAILED_CALLBACK, due, attempt).await;
}

/// Writes down how an attempt ended: once for all if it was the last.
async fn end(services: &Services, kind: &'static str, due: &DueMessage, attempt: Attempt<'_>) {
    let (name, attempts) = (&due.message.name, due.attempts);
    let outcome = match attempt {
        Attempt::Delivered { note: None } => {
            info!(%name, kind, attempts, "a message was delivered");
            Delivered::Done
        }
        Attempt::Delivered { note: Some(why) } => {
            warn!(%name, kind, attempts, why, "a message was delivered, but not to all");
            Delivered::Done
        }
        Attempt::Later { why, after, .. } => {
            info!(%name, kind, attempts, why, ?after, "a message is delivered later");
            Delivered::Delayed
        }
        Attempt::GivenUp { why } => {
            warn!(%name, kind, attempts, why, "a message cannot be delivered");
            Delivered::GivenUp
        }
    };
    services.metrics.delivered(kind, outcome);
    for _ in 0..WRITING {
        match services.catalogue.message_tried(due.id, attempt).await {
            Ok(()) => return,
            Err(error) => warn!(%name, %error, "cannot write down how a delivery ended"),
        }
        tokio::time::sleep(WRITING_PAUSE).await;
    }
}

/// Counts what waits, from time to time.
async fn count(services: &Services, mut stopping: watch::Receiver<bool>) {
    while !*stopping.borrow() {
        match services.catalogue.waiting_messages().await {
            Ok(waiting) => {
                for kind in KINDS {
                    let found = waiting.iter().find(|waiting| waiting.kind == kind);
                    let (count, age) = found.map_or((0, Duration::ZERO), |found| (found.count, found.age));
                    services.metrics.messages(kind, (count, age));
                    if kind == MAIL {
                        services.waiting_mail.counted(count, age, services.settings.mail.noted_after);
                    }
                }
            }
            Err(error) => warn!(%error, "cannot count the messages that wait"),
        }
        wait(&mut stopping, services.settings.look_again, None).await;
    }
}

async fn wait(stopping: &mut watch::Receiver<bool>, longest: Duration, posted: Option<&Notify>) {
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
