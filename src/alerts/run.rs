//! Looking after decisions, as long as the process goes on.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::server::Alerts;
use queuekeeper_zookeeper::coordination::Wanted;

/// How often our own znodes are looked at: how soon a decision that another process accepted is carried out by the one
/// that leads.
const EVERY: Duration = Duration::from_secs(1);

/// The same where there is no rule: then only what does not belong there is looked for.
const SELDOM: Duration = Duration::from_secs(10);

/// What carries decisions out; awaited by whoever made it.
#[derive(Debug)]
pub struct Runner {
    alerts: Alerts,
}

impl Runner {
    pub(super) fn new(alerts: Alerts) -> Self {
        Self { alerts }
    }

    /// Looks after decisions until `shutdown`. An item that is under way then is finished; the rest is for whoever leads
    /// next.
    pub async fn run(self, shutdown: CancellationToken) {
        let shared = &self.alerts.shared;
        let mut wanted = self.alerts.wanted();
        while !shutdown.is_cancelled() {
            shared.look(&shutdown).await;
            let is_idle = *wanted.borrow_and_update() == Wanted::Nothing && shared.seen.read().is_some();
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = shared.wake.notified() => {}
                // There is always a sender: this very handle has it.
                _ = wanted.wait_for(|wanted| *wanted > Wanted::Nothing), if is_idle => {}
                () = tokio::time::sleep(if is_idle { SELDOM } else { EVERY }) => {}
            }
        }
    }
}
