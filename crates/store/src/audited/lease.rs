//! The lease of one change: extended while it is made, so that a living one never looks crashed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use crate::audit::{AuditSink, Intent, SinkError};
use crate::digest::Digests;

/// An open intent, and until when it is ours.
///
/// Counted by our own clock from before the lease was requested, and given up a third of its length before its end:
/// what is stopped then has stopped when another process may take over.
pub(super) struct Lease {
    sink: Arc<dyn AuditSink>,
    length: Duration,
    state: Mutex<State>,
}

struct State {
    intent: Intent,
    extended: Instant,
}

impl Lease {
    /// The lease of an intent that was begun or taken over at this instant or later.
    pub(super) fn new(sink: Arc<dyn AuditSink>, length: Duration, intent: Intent, extended: Instant) -> Self {
        Self { sink, length, state: Mutex::new(State { intent, extended }) }
    }

    /// The intent, as far as it is known now.
    pub(super) async fn intent(&self) -> Intent {
        self.state.lock().await.intent.clone()
    }

    /// Whether the intent is known to have this content, and no other process can have taken it over.
    pub(super) async fn is_of(&self, size: u64, digests: &Digests) -> bool {
        let state = self.state.lock().await;
        let is_ours = Instant::now() < state.extended + self.length / 3;
        is_ours && state.intent.size == Some(size) && state.intent.digests == *digests
    }

    /// How long it still lasts, as others see it at the earliest.
    pub(super) async fn left(&self) -> Duration {
        let extended = self.state.lock().await.extended;
        (extended + self.length).saturating_duration_since(Instant::now())
    }

    /// Extends the lease, and writes down what the change has become. Where the record is away, it tries again as long
    /// as the lease is safely ours.
    pub(super) async fn update(&self, change: impl FnOnce(&mut Intent) + Send) -> Result<(), String> {
        // The lock is held throughout, so that no earlier record comes after a later one.
        let mut state = self.state.lock().await;
        let mut intent = state.intent.clone();
        change(&mut intent);
        let end = state.extended + self.length * 2 / 3;
        let mut backoff = Backoff::new();
        loop {
            let now = Instant::now();
            match timeout_at(end, self.sink.extend(&intent, self.length)).await {
                Ok(Ok(())) => {
                    (state.intent, state.extended) = (intent, now);
                    return Ok(());
                }
                Ok(Err(lost @ SinkError::Lost)) => return Err(lost.to_string()),
                Ok(Err(away @ SinkError::Unavailable(_))) if Instant::now() >= end => return Err(away.to_string()),
                Ok(Err(SinkError::Unavailable(_))) => sleep(backoff.next()).await,
                Err(_) => return Err("the lease of this change could not be extended in time".to_owned()),
            }
        }
    }

    /// Extends the lease for ever; returns why it cannot any more.
    async fn keep(&self) -> String {
        loop {
            let extended = self.state.lock().await.extended;
            let next = extended + self.length / 3;
            sleep_until(next).await;
            if self.state.lock().await.extended == extended
                && let Err(why) = self.update(|_| ()).await
            {
                return why;
            }
        }
    }

    /// Carries an operation out, and extends the lease meanwhile. When the lease is lost, the operation is aborted, and
    /// dropped where that does not end it.
    ///
    /// # Errors
    /// Why the lease was lost, where the operation was dropped.
    pub(super) async fn hold<T>(
        &self,
        abort: Option<&CancellationToken>,
        operation: impl Future<Output = T> + Send,
    ) -> Result<T, String> {
        let mut operation = pin!(operation);
        let why = tokio::select! {
            biased;
            result = &mut operation => return Ok(result),
            why = self.keep() => why,
        };
        let Some(abort) = abort else { return Err(why) };
        abort.cancel();
        timeout(self.length / 3, operation).await.map_err(|_| why)
    }
}
