//! From where the sessions are connected, where the servers report it.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::store::{Addresses, MirrorStore, Writer};

/// How often the servers are queried: a daemon that has just started is named soon enough by its session.
const PERIOD: Duration = Duration::from_secs(10);

/// Asks the servers for the addresses of their clients from time to time.
#[derive(Debug)]
pub struct AddressBook {
    store: MirrorStore,
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
            self.store.learn_addresses(addresses);
            if problem != logged {
                if problem.is_empty() {
                    info!("all servers report the addresses of sessions again");
                } else {
                    warn!(%problem, "not all addresses of sessions are known; sessions without one are shown by id only");
                }
                logged = problem;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_session_outlives_it_and_their_number_is_bounded() {
        let store = Writer::new().store();
        let learned = |sessions: std::ops::Range<i64>, host: &str| -> Addresses {
            sessions.map(|session| (session, format!("{host}:{session}").into())).collect()
        };
        let address = |session| store.address(session).map(|address| address.to_string());
        let changes = store.changes();
        store.learn_addresses(learned(1..3, "a"));
        store.learn_addresses(learned(2..3, "b"));
        assert_eq!([1, 2, 3].map(address), [Some("a:1".to_owned()), Some("b:2".to_owned()), None]);
        assert!(changes.has_changed().unwrap());
        let seen = *changes.borrow();
        store.learn_addresses(learned(2..3, "b"));
        store.learn_addresses(Addresses::new());
        assert_eq!((*changes.borrow(), address(1).as_deref()), (seen, Some("a:1")), "nothing is new");
        store.learn_addresses(learned(10..10_010, "c"));
        assert_eq!([1, 2, 10].map(|session| address(session).is_some()), [false, false, true]);
    }
}
