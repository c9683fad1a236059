//! What one queue needs: its mirror, its actions and its alerts.

use std::net::SocketAddr;

use prometheus_client::registry::Registry;
use queuekeeper_zookeeper::Sessions;
use queuekeeper_zookeeper::connections::Connections;
use queuekeeper_zookeeper::coordination::{Coordination, CoordinationError};

use super::host_names::HostNames;
use super::tasks::Tasks;
use crate::actions::audit::Audit;
use crate::actions::{self, Actions};
use crate::alerts::{self, Alerts};
use crate::config::{Config, DeploymentName};
use crate::metrics::{queue, working_storage};
use crate::mirror::{self, MirrorStore};

/// A queue whose parts run.
pub(super) struct ServedQueue {
    pub(super) store: MirrorStore,
    pub(super) actions: Actions,
    pub(super) alerts: Alerts,
    pub(super) audit: Audit,
}

impl ServedQueue {
    /// Starts the parts as tasks, and registers what they count. The configuration names the ZooKeeper of this queue,
    /// and its name where it has one.
    ///
    /// # Errors
    /// When the audit trail cannot be opened.
    pub(super) fn start(
        config: &Config,
        volume: Option<&working_storage::MeasuredStorage>,
        tasks: &mut Tasks,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let deployment = config.web.deployment();
        let (audit, mut trail) = Audit::open_of(config.audit.clone(), deployment.map(DeploymentName::as_str))?;
        if config.file.as_ref().is_some_and(|file| !file.rules().rules.is_empty()) {
            trail.open_alerts()?;
        }
        let of_queue = || {
            let sessions = Sessions::new(config.zookeeper.clone());
            // The process of several queues serves the others.
            if deployment.is_some() { sessions.despite_any_failure() } else { sessions }
        };
        let writer = mirror::Writer::with_limits(config.mirror.fault_limits.clone())
            .with_read_budget(config.mirror.read_budget_bytes);
        let store = writer.store();
        let (coordination, keeper) = Coordination::new(config.zookeeper.acl.clone());
        if let Some(period) = config.mirror.clock_interval {
            let (timekeeper, coordination) = (writer.timekeeper(), coordination.clone());
            tasks.spawn("the clock", move |shutdown| async move {
                let ask = async || coordination.time().await.map_err(|error| no_time(&error));
                timekeeper.run(period, ask, shutdown).await;
                Ok(())
            });
        }
        if config.mirror.session_addresses {
            let (book, zookeeper) = (writer.address_book(), config.zookeeper.clone());
            tasks.spawn("the addresses of sessions", |shutdown| async move {
                let names = HostNames::new();
                let ask = async || {
                    let found = zookeeper.connections().await;
                    names.look_up(found.addresses.values().map(SocketAddr::ip)).await;
                    addresses(found, &names)
                };
                book.run(ask, shutdown).await;
                Ok(())
            });
        }
        let sessions = of_queue();
        let seen = mirror::Metrics::register(registry);
        let drift_interval = config.mirror.drift_interval;
        tasks.spawn("the mirror", move |shutdown| async move {
            Ok(mirror::run(sessions, writer, seen, drift_interval, shutdown).await?)
        });
        queue::QueueMetrics {
            store: store.clone(),
            storage: volume.cloned(),
            drop_after: config.mirror.drop_after,
            collections: config.collections,
        }
        .register(registry);

        let (limits, counted) = (config.mirror.fault_limits.clone(), actions::Metrics::register(registry));
        let (actions, runner) = Actions::new(store.clone(), limits, (audit.clone(), trail), counted);
        let sessions = of_queue().beside_another();
        tasks.spawn("the actions", |shutdown| async { Ok(runner.run(sessions, shutdown).await?) });

        let (space, counted) = (volume.cloned(), alerts::Metrics::register(registry));
        let space = move || space.as_ref().and_then(working_storage::MeasuredStorage::left_bytes);
        let rules = config.file.as_ref().map(|file| file.rules().clone()).unwrap_or_default();
        let alerts = Alerts::new(store.clone(), space, actions.clone(), coordination, rules, counted);
        let alerts = match deployment {
            Some(name) => alerts.of_deployment(name.as_str()),
            None => alerts,
        };
        let runner = alerts.runner();
        let (sessions, wanted) = (of_queue().beside_another(), alerts.wanted());
        tasks.spawn("the coordination", |shutdown| async { Ok(keeper.run(sessions, wanted, shutdown).await?) });
        tasks.spawn("the rules", |shutdown| async {
            runner.run(shutdown).await;
            Ok(())
        });
        Ok(Self { store, actions, alerts, audit })
    }
}

/// The mirror's error for a clock that cannot be measured.
fn no_time(error: &CoordinationError) -> mirror::NoTime {
    let why = error.to_string();
    match error {
        CoordinationError::NotConnected | CoordinationError::Unanswered(_) => mirror::NoTime::Unanswered(why),
        CoordinationError::Changed { .. } | CoordinationError::Crowded { .. } | CoordinationError::Refused { .. } => {
            mirror::NoTime::Refused(why)
        }
    }
}

/// The addresses of sessions with the names of their hosts, and in one line which servers did not report theirs, and
/// why; empty if all did.
fn addresses(found: Connections, names: &HostNames) -> (mirror::Addresses, String) {
    let failures = found.failures.iter().map(|(host, why)| format!("{host}: {why}"));
    let addresses = found.addresses.into_iter().map(|(session, address)| (session, names.named(address).into()));
    (addresses.collect(), failures.collect::<Vec<_>>().join("; "))
}
