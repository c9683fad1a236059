//! Reloading of certificates, passwords, roles, tokens and rules.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};

use super::http::context::HttpContext;
use crate::alerts::Alerts;
use crate::config::{self, Config, ConfigFile, FileError, Validity};

/// How often the files are checked for changes.
const INTERVAL: Duration = Duration::from_secs(2);

type Successful = Gauge<u64, AtomicU64>;
type Seconds = Gauge<f64, AtomicU64>;

/// Reloads the files of the configuration when they change.
#[derive(Debug)]
pub(super) struct Reloader {
    metrics: ReloadMetrics,
    /// Notified after each reload.
    reloads: watch::Sender<()>,
    /// Ends the wait for the next check.
    requested: Notify,
}

/// `queuekeeper_*config_last_reload_successful`, of the files that there are.
#[derive(Debug)]
struct ReloadMetrics {
    web: Option<Successful>,
    config: Option<Successful>,
    /// `queuekeeper_web_certificate_not_after_timestamp_seconds`.
    not_after: Option<Seconds>,
}

impl ReloadMetrics {
    /// Registers the gauges, at 1: a server does not start with an invalid file.
    fn register(registry: &mut Registry, config: &Config) -> Self {
        let mut successful = |name, help| {
            let successful = Successful::default();
            successful.set(1);
            registry.register(name, help, successful.clone());
            successful
        };
        let validity = config.web.file.as_ref().and_then(config::WebFile::certificate_validity);
        let web = config.web.file.as_ref().map(|_| {
            successful(
                "queuekeeper_web_config_last_reload_successful",
                "Whether the last reload of the web configuration and its files succeeded",
            )
        });
        let config = config.file.as_ref().map(|_| {
            successful(
                "queuekeeper_config_last_reload_successful",
                "Whether the last reload of the configuration and its files succeeded, and all users it names exist",
            )
        });
        let not_after = validity.map(|validity| {
            let not_after = Seconds::default();
            not_after.set(validity.not_after.as_second() as f64);
            registry.register(
                "queuekeeper_web_certificate_not_after_timestamp_seconds",
                "Unix time at which the server certificate expires",
                not_after.clone(),
            );
            not_after
        });
        Self { web, config, not_after }
    }
}

/// The last error of reloading a file, so that it is logged once.
struct LastReloadError {
    what: &'static str,
    successful: Option<Successful>,
    message: String,
}

impl Reloader {
    /// Registers the gauges.
    pub(super) fn register(registry: &mut Registry, config: &Config) -> Self {
        Self {
            metrics: ReloadMetrics::register(registry, config),
            reloads: watch::Sender::new(()),
            requested: Notify::new(),
        }
    }

    /// Checks the files at once.
    pub(super) fn request(&self) {
        self.requested.notify_one();
    }

    /// Notified after each reload.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.reloads.subscribe()
    }

    /// Reloads each file when it or a file that it names has changed, until the server stops. An invalid one is logged,
    /// and the previous version stays in use. The rules are those of each queue.
    pub(super) async fn run(&self, context: &HttpContext, alerts: &[&Alerts]) {
        let last_error = |what, successful: &Option<Successful>| LastReloadError {
            what,
            successful: successful.clone(),
            message: String::new(),
        };
        let mut web = last_error("the web configuration", &self.metrics.web);
        let mut config = last_error("the configuration", &self.metrics.config);
        let (mut refused, in_use) = (None, context.config_file());
        let checks = async {
            loop {
                self.check_certificate(context, &mut refused, Timestamp::now());
                // Whichever comes first: the next check, or a request for one.
                let _ = tokio::time::timeout(INTERVAL, self.requested.notified()).await;
                let before = (context.web_file(), context.config_file());
                check_web_file(context, &mut web).await;
                check_config_file(context, (alerts, in_use.as_deref()), &mut config).await;
                if !is_same(before.0.as_ref(), context.web_file().as_ref())
                    || !is_same(before.1.as_ref(), context.config_file().as_ref())
                {
                    self.reloads.send_replace(());
                }
            }
        };
        context.shutdown().run_until_cancelled(checks).await;
    }

    /// Exports when the certificate expires, and logs once for each that it has expired or is not valid yet.
    fn check_certificate(&self, context: &HttpContext, refused: &mut Option<(Validity, &'static str)>, now: Timestamp) {
        let file = context.web_file();
        let Some((file, validity)) = file.and_then(|file| file.certificate_validity().map(|validity| (file, validity)))
        else {
            return;
        };
        let Validity { not_before, not_after } = validity;
        if let Some(gauge) = &self.metrics.not_after {
            gauge.set(not_after.as_second() as f64);
        }
        let before = std::mem::replace(refused, validity.refusal(now).map(|why| (validity, why)));
        if let Some((_, why)) = refused.filter(|_| *refused != before) {
            let path = file.path().display();
            tracing::warn!(%path, %not_before, %not_after, "the certificate of the web configuration {why}: clients reject it");
        }
    }
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

async fn check_web_file(context: &HttpContext, last_error: &mut LastReloadError) {
    let Some(file) = context.web_file() else { return };
    let path = file.path().to_owned();
    let read = read_again(&path, last_error.what, move || file.read_again()).await;
    last_error.update(read.map(|new| {
        if let Some(new) = new {
            context.set_web_file(new);
        }
    }));
}

/// `in_use` is the version of the start, some sections of which stay in use.
async fn check_config_file(
    context: &HttpContext,
    (alerts, in_use): (&[&Alerts], Option<&ConfigFile>),
    last_error: &mut LastReloadError,
) {
    let Some(file) = context.config_file() else { return };
    let path = file.path().to_owned();
    let has_deployments = context.config.deployments.is_some();
    let read = read_again(&path, last_error.what, move || file.read_again()).await;
    let outcome = read.and_then(|new| {
        if let Some(new) = new {
            for alerts in alerts {
                alerts.set_rules(new.rules().clone());
            }
            if let Some(in_use) = in_use.filter(|_| !has_deployments) {
                new.log_unapplied(in_use);
            }
            context.set_config_file(new);
        }
        // A role of an unknown user, as of one that was removed from the other file first, does no harm. Keeping the
        // previous version for that could keep a token valid that was removed from it.
        let (web, Some(file)) = (context.web_file(), context.config_file()) else { return Ok(()) };
        file.check_users(web.as_deref()).map_err(|error| error.to_string())?;
        // The same holds for what the next start refuses.
        let checked = if has_deployments { file.check_for_deployments() } else { Ok(()) };
        checked.map_err(|error| format!("a start with it would be refused: {error}"))
    });
    last_error.update(outcome);
}

/// Reads a file again; `None` where nothing has changed.
async fn read_again<T: Send + 'static>(
    path: &Path,
    what: &'static str,
    read: impl FnOnce() -> Result<Option<T>, FileError> + Send + 'static,
) -> Result<Option<T>, String> {
    // The volume of the files may hang.
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    let new = read.map_err(|error| format!("the previous version stays in use: {error}"))?;
    if new.is_some() {
        tracing::info!(path = %path.display(), "reloaded {what}");
    }
    Ok(new)
}

impl LastReloadError {
    fn update(&mut self, outcome: Result<(), String>) {
        if let Some(successful) = &self.successful {
            successful.inner().store(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
        match outcome {
            Ok(()) => self.message.clear(),
            // Logged already.
            Err(why) if why == self.message => {}
            Err(why) => {
                tracing::warn!("failed to reload {}: {why}", self.what);
                self.message = why;
            }
        }
    }
}
