//! Renewed certificates, passwords, roles and tokens.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::State;
use crate::config::{self, Config, FileError, Validity};

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(2);

type Successful = Gauge<u64, AtomicU64>;
type Seconds = Gauge<f64, AtomicU64>;

/// `queuekeeper_*config_last_reload_successful`, of the files that there are.
#[derive(Debug)]
pub(super) struct Reloaded {
    web: Option<Successful>,
    config: Option<Successful>,
    /// `queuekeeper_web_certificate_not_after_timestamp_seconds`.
    not_after: Option<Seconds>,
}

impl Reloaded {
    /// Registers the gauges, at 1: a server does not begin with a file that is wrong.
    pub(super) fn register(registry: &mut Registry, config: &Config) -> Self {
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
                "Whether the last reload of the web configuration and its files was successful.",
            )
        });
        let config = config.file.as_ref().map(|_| {
            successful(
                "queuekeeper_config_last_reload_successful",
                "Whether the configuration and its files, as they are now, are in use and name no unknown users",
            )
        });
        let not_after = validity.map(|validity| {
            let not_after = Seconds::default();
            not_after.set(validity.not_after.as_second() as f64);
            registry.register(
                "queuekeeper_web_certificate_not_after_timestamp_seconds",
                "Unix time at which the TLS certificate of the web server expires.",
                not_after.clone(),
            );
            not_after
        });
        Self { web, config, not_after }
    }
}

/// Of a file, what was said last.
struct LastReloadError {
    what: &'static str,
    successful: Option<Successful>,
    before: String,
}

/// Takes up each configuration whenever it or a file that it names has changed, until the server ends. One that is wrong
/// is last_error and left where it is.
pub(super) async fn keep_up(state: &State) {
    let last_error = |what, successful: &Option<Successful>| LastReloadError {
        what,
        successful: successful.clone(),
        before: String::new(),
    };
    let mut web = last_error("the web configuration", &state.shared.reloaded.web);
    let mut config = last_error("the configuration", &state.shared.reloaded.config);
    let mut refused = None;
    let ending = state.ending();
    ending
        .run_until_cancelled(async {
            loop {
                look_at_certificate(state, &mut refused, Timestamp::now());
                // Whichever comes first: the next look, or somebody who asks for it.
                let _ = tokio::time::timeout(EVERY, state.shared.look.notified()).await;
                let before = (state.web_file(), state.file());
                look_at_web(state, &mut web).await;
                look_at_config(state, &mut config).await;
                if !is_same(before.0.as_ref(), state.web_file().as_ref())
                    || !is_same(before.1.as_ref(), state.file().as_ref())
                {
                    state.shared.reloads.send_replace(());
                }
            }
        })
        .await;
}

/// Exports until when the certificate is valid, and logs once of each that it has expired or is not valid yet.
fn look_at_certificate(state: &State, refused: &mut Option<(Validity, &'static str)>, now: Timestamp) {
    let Some((file, validity)) = state.web_file().and_then(|file| file.certificate_validity().map(|when| (file, when)))
    else {
        return;
    };
    let Validity { not_before, not_after } = validity;
    if let Some(gauge) = &state.shared.reloaded.not_after {
        gauge.set(not_after.as_second() as f64);
    }
    let before = std::mem::replace(refused, validity.refusal(now).map(|why| (validity, why)));
    if let Some((_, why)) = refused.filter(|_| *refused != before) {
        let path = file.path().display();
        tracing::warn!(%path, %not_before, %not_after, "the certificate of the web configuration {why}, and clients refuse it");
    }
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

async fn look_at_web(state: &State, last_error: &mut LastReloadError) {
    let Some(file) = state.web_file() else { return };
    let path = file.path().to_owned();
    last_error.hear(take(&state.shared.web_file, &path, last_error.what, move || file.read_again()).await);
}

async fn look_at_config(state: &State, last_error: &mut LastReloadError) {
    let Some(file) = state.file() else { return };
    let path = file.path().to_owned();
    let before = Arc::clone(&file);
    let taken = take(&state.shared.file, &path, last_error.what, move || before.read_again()).await;
    if let Some((alerts, now)) = state.shared.alerts.get().zip(state.file()).filter(|(_, now)| !Arc::ptr_eq(now, &file))
    {
        alerts.set_rules(now.rules().clone());
    }
    // A role of nobody, as of a user who was taken out of the other file first, does no harm; to leave the whole file
    // where it is for that could leave a token valid that was taken out of it.
    let web = state.web_file();
    let fits =
        || state.file().map_or(Ok(()), |file| file.check_users(web.as_deref()).map_err(|error| error.to_string()));
    last_error.hear(taken.and_then(|()| fits()));
}

/// Reads a file again, and takes what is new for what there was.
async fn take<T: Send + 'static>(
    present: &RwLock<Option<Arc<T>>>,
    path: &Path,
    what: &'static str,
    read: impl FnOnce() -> Result<Option<T>, FileError> + Send + 'static,
) -> Result<(), String> {
    // The files may be on a volume that hangs.
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    match read {
        Ok(Some(new)) => {
            *present.write() = Some(Arc::new(new));
            tracing::info!(path = %path.display(), "reloaded {what}");
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(error) => Err(format!("the previous one stays in use: {error}")),
    }
}

impl LastReloadError {
    fn hear(&mut self, outcome: Result<(), String>) {
        if let Some(successful) = &self.successful {
            successful.inner().store(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
        match outcome {
            Ok(()) => self.before.clear(),
            // Once, and not each time.
            Err(why) if why == self.before => {}
            Err(why) => {
                tracing::warn!("{} was changed and cannot be used as it is: {why}", self.what);
                self.before = why;
            }
        }
    }
}
