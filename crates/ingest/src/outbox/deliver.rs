//! The tasks that deliver.

use std::time::Duration;

use futures::future::join_all;
use queuekeeper_catalogue::outbox::{Attempt, DueMessage};
use queuekeeper_mail::MAIL;
use queuekeeper_mail::delivery::{Delivery, end, wait};
use queuekeeper_mail::settings::Route;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use super::{Callback, DeliveryFailure, FAILED_CALLBACK, KINDS};
use crate::clock::now;
use crate::daemon::Daemon;
use crate::services::Services;

/// How many callbacks are delivered at a time.
const CALLBACKS_AT_ONCE: u32 = 8;

/// How long a process has callbacks to itself, and an attempt to deliver one may take.
const CALLBACK_LEASE: Duration = Duration::from_mins(5);
const CALLBACK_LIMIT: Duration = Duration::from_mins(2);

/// Delivers what the outbox holds, until `stopping` is true and what was begun has ended.
pub(crate) async fn run(services: &Services, stopping: &watch::Receiver<bool>) {
    tokio::join!(
        mails(services, stopping.clone()),
        callbacks(services, stopping.clone()),
        count(services, stopping.clone())
    );
}

/// One mail after the other.
async fn mails(services: &Services, stopping: watch::Receiver<bool>) {
    let settings = &services.settings.mail;
    if settings.route == Route::None && Daemon::of_mails().any(|daemon| services.settings.runs(daemon)) {
        warn!("neither a mail server nor a directory for mails is configured; mails wait for a process that has one");
    }
    let delivery = Delivery {
        catalogue: &services.catalogue,
        settings,
        look_again: services.settings.look_again,
        posted: &services.posted.mail,
        metrics: &services.metrics.outbox,
        tried: &|why| services.waiting_mail.tried(why),
    };
    delivery.run(stopping).await;
}

/// Callbacks on which no state depends, some at a time.
async fn callbacks(services: &Services, mut stopping: watch::Receiver<bool>) {
    let look_again = services.settings.look_again;
    while !*stopping.borrow() {
        match services.catalogue.take_messages(FAILED_CALLBACK, CALLBACKS_AT_ONCE, CALLBACK_LEASE).await {
            Ok(taken) if taken.is_empty() => wait(&mut stopping, look_again, Some(&services.posted.callback)).await,
            Ok(taken) => drop(join_all(taken.iter().map(|due| callback(services, due))).await),
            Err(error) => {
                warn!(%error, "cannot look for due callbacks");
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
    end(&services.catalogue, &services.metrics.outbox, FAILED_CALLBACK, due, attempt).await;
}

/// Counts what waits, from time to time.
async fn count(services: &Services, mut stopping: watch::Receiver<bool>) {
    while !*stopping.borrow() {
        match services.catalogue.waiting_messages().await {
            Ok(waiting) => {
                for kind in KINDS {
                    let found = waiting.iter().find(|waiting| waiting.kind == kind);
                    let (count, age) = found.map_or((0, Duration::ZERO), |found| (found.count, found.age));
                    services.metrics.outbox.messages(kind, (count, age));
                    if kind == MAIL {
                        services.waiting_mail.counted(count, age, services.settings.mail.noted_after);
                    }
                }
            }
            Err(error) => warn!(%error, "cannot count the waiting messages"),
        }
        wait(&mut stopping, services.settings.look_again, None).await;
    }
}
