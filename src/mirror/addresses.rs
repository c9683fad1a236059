//! From where the sessions are connected, where the servers tell.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::store::{Addresses, Store, Writer};

/// How often the servers are asked: a daemon that has just started is named soon enough by its session.
const PERIOD: Duration = Duration::from_secs(10);

/// Asks the servers for the addresses of their clients from time to time.
#[derive(Debug)]
pub struct AddressBook {
    store: Store,
}

impl Writer {
    /// What learns the addresses of sessions, where there is a server to ask.
    #[must_use]
    pub fn address_book(&self) -> AddressBook {
        AddressBook { store: self.store() }
    }
}

impl AddressBook {
    /// Asks at the start and from time to time, until `shutdown`. `ask` gives the addresses that are known, and why it
    /// gives not all of them, in one line; empty if it does. Each problem is logged once.
    pub async fn run<F>(self, ask: impl Fn() -> F, shutdown: CancellationToken)
    where
        F: Future<Output = (Addresses, String)>,
    {
        shutdown.run_until_cancelled(self.keep(ask)).await;
    }

    async fn keep<F>(self, ask: impl Fn() -> F)
    where
        F: Future<Output = (Addresses, String)>,
    {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut logged = String::new();
        loop {
            ticks.tick().await;
            let (addresses, problem) = ask().await;
            self.store.set_addresses(addresses);
            if problem != logged {
                if problem.is_empty() {
                    info!("all servers tell the addresses of sessions again");
                } else {
                    warn!(%problem, "not all addresses of sessions are known; the others are shown by their ids alone");
                }
                logged = problem;
            }
        }
    }
}
