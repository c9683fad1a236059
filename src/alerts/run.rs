//! Executing decisions in the background.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::server::Alerts;
use queuekeeper_zookeeper::coordination::CoordinationMode;

/// How often our own znodes are read: the delay until the leader executes a decision that another process accepted.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The same without rules, when only unexpected znodes are looked for.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The task that executes decisions; awaited by its owner.
#[derive(Debug)]
pub struct AlertRunner {
    alerts: Alerts,
}

impl Alerts {
    /// What executes decisions, once it runs.
    #[must_use]
    pub fn runner(&self) -> AlertRunner {
        AlertRunner { alerts: self.clone() }
    }
}

impl AlertRunner {
    /// Runs until `shutdown`. The current item is then finished; the rest is left to the next leader.
    pub async fn run(self, shutdown: CancellationToken) {
        let shared = &self.alerts.shared;
        let mut wanted = self.alerts.wanted();
        while !shutdown.is_cancelled() {
            shared.poll(&shutdown).await;
            let is_idle = *wanted.borrow_and_update() == CoordinationMode::ClockOnly && shared.seen.read().is_some();
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = shared.wake.notified() => {}
                // There is always a sender, since this handle owns one.
                _ = wanted.wait_for(|wanted| *wanted > CoordinationMode::ClockOnly), if is_idle => {}
                () = tokio::time::sleep(if is_idle { IDLE_POLL_INTERVAL } else { POLL_INTERVAL }) => {}
            }
        }
    }
}
