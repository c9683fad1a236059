//! Renewed certificates and passwords.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::State;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(2);

/// `queuekeeper_web_config_last_reload_successful`.
pub(super) type Successful = Gauge<u64, AtomicU64>;

/// Registers the gauge, at 1: a server does not begin with a file that is wrong.
pub(super) fn register(registry: &mut Registry) -> Successful {
    let successful = Successful::default();
    successful.set(1);
    registry.register(
        "queuekeeper_web_config_last_reload_successful",
        "Whether the web configuration and its files, as they are now, are in use",
        successful.clone(),
    );
    successful
}

/// Takes up the web configuration whenever it or a file that it names has changed, until the server ends. One that is
/// wrong is told and left where it is.
pub(super) async fn keep_up(state: &State) {
    let ending = state.ending();
    ending
        .run_until_cancelled(async {
            let mut told = String::new();
            loop {
                tokio::time::sleep(EVERY).await;
                look(state, &mut told).await;
            }
        })
        .await;
}

async fn look(state: &State, told: &mut String) {
    let Some(file) = state.web_file() else { return };
    // The files may be on a volume that hangs.
    let path = file.path().to_owned();
    let read = tokio::task::spawn_blocking(move || file.read_again()).await;
    let outcome = match read {
        Ok(Ok(new)) => {
            if let Some(new) = new {
                *state.shared.web_file.write() = Some(Arc::new(new));
                tracing::info!(path = %path.display(), "the web configuration was read again");
            }
            Ok(())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Some(successful) = &state.shared.reloaded {
        successful.inner().store(u64::from(outcome.is_ok()), Ordering::Relaxed);
    }
    match outcome {
        Ok(()) => told.clear(),
        // Once, and not each time.
        Err(why) if why == *told => {}
        Err(why) => {
            tracing::warn!("the web configuration was changed and cannot be used, the one before it stays: {why}");
            *told = why;
        }
    }
}
