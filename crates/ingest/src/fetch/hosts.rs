//! What is known of the hosts, and which of them are away: one that failed many requests in a row gets none for a
//! while, and then one at a time, until it answers. Without this, the jobs of one dead origin would keep all workers
//! busy with waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::FetchCause;
use super::connections::Connections;
use super::limits::HostLimits;

/// How many hosts are known at most; of others nothing is remembered.
const MOST_HOSTS: usize = 10_000;

/// How long the name of a host with its port is at most; of a longer one nothing is remembered. No name that can be
/// looked up has more than 253 bytes.
const MOST_NAME_BYTES: usize = 260;

/// How long those wait who come while another one tries whether a host is back.
const TRIED: Duration = Duration::from_secs(5);

/// The hosts that failed last time, and the connections to all, shared by the fetchers of a process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    failed: Arc<Mutex<BTreeMap<String, Host>>>,
    pub(super) connections: Connections,
}

/// A host whose last request failed.
#[derive(Debug, Default)]
struct Host {
    failures: u32,
    /// What the last one failed by.
    why: String,
    /// Until when it gets no request, and how long that is.
    away: Option<(Instant, Duration)>,
    is_tried: bool,
}

/// The right to send one request to a host.
#[derive(Debug)]
pub(super) struct Ticket {
    hosts: Hosts,
    limits: HostLimits,
    name: String,
    is_trial: bool,
}

impl Hosts {
    /// Before a request to a host, which is named with its port.
    ///
    /// # Errors
    /// [`FetchCause::Away`] while it gets none.
    pub(super) fn enter(&self, name: String, limits: HostLimits) -> Result<Ticket, FetchCause> {
        let (mut hosts, mut is_trial) = (self.failed.lock(), false);
        if let Some(host) = hosts.get_mut(&name)
            && let Some((until, _)) = host.away
        {
            let rest = until.saturating_duration_since(Instant::now());
            if host.is_tried || !rest.is_zero() {
                let (failures, why) = (host.failures, host.why.clone());
                return Err(FetchCause::Away {
                    host: name,
                    failures,
                    why,
                    wait: rest.max(if host.is_tried { TRIED } else { rest }),
                });
            }
            (host.is_tried, is_trial) = (true, true);
        }
        drop(hosts);
        Ok(Ticket { hosts: self.clone(), limits, name, is_trial })
    }

    /// How many hosts get no request now, or are just being tried. One whose time is over, and to which no one wants to
    /// send anything, is not among them.
    pub(super) fn away(&self) -> usize {
        let (hosts, now) = (self.failed.lock(), Instant::now());
        hosts.values().filter(|host| host.is_tried || host.away.is_some_and(|(until, _)| until > now)).count()
    }
}

impl Ticket {
    /// The host has answered, whatever it said.
    pub(super) fn answered(self) {
        self.hosts.failed.lock().remove(&self.name);
    }

    /// The host did not answer, or said that it cannot.
    pub(super) fn failed(self, cause: &FetchCause) {
        if self.name.len() > MOST_NAME_BYTES {
            return;
        }
        let mut hosts = self.hosts.failed.lock();
        if hosts.len() >= MOST_HOSTS && !hosts.contains_key(&self.name) {
            let now = Instant::now();
            hosts.retain(|_, host| host.away.is_some_and(|(until, _)| until > now));
            if hosts.len() >= MOST_HOSTS {
                return;
            }
        }
        let host = hosts.entry(self.name.clone()).or_default();
        host.failures = host.failures.saturating_add(1);
        host.why = cause.to_string();
        let pause = match host.away {
            // Sent before the host was found to be away.
            Some(_) if !self.is_trial => return,
            Some((_, pause)) => pause.saturating_mul(2).min(self.limits.most),
            None if host.failures >= self.limits.failures => self.limits.first,
            None => return,
        };
        let pause_now = match cause {
            FetchCause::Status { retry_after: Some(wanted), .. } => pause.max((*wanted).min(self.limits.most)),
            _ => pause,
        };
        host.away = Some((Instant::now() + pause_now, pause));
    }
}

impl Drop for Ticket {
    /// Where the request was given up, another one may try.
    fn drop(&mut self) {
        if self.is_trial
            && let Some(host) = self.hosts.failed.lock().get_mut(&self.name)
        {
            host.is_tried = false;
        }
    }
}
