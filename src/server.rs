//! Runs a server: starts its parts, connects them, and shuts them down.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use crate::actions::audit::Audit;
use crate::actions::{self, Actions};
use crate::alerts::{self, Alerts};
use crate::config::{Config, ListenAddress};
use crate::metrics::{self, queue, storage};
use crate::mirror;
use crate::prometheus::Prometheus;
use crate::web;
use host_names::HostNames;
use queuekeeper_ingest::step::Services;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_store::StoreFamilies;
use queuekeeper_zookeeper::Sessions;
use queuekeeper_zookeeper::connections::Connections;
use queuekeeper_zookeeper::coordination::{Coordination, CoordinationError};
use repository::Repository;

pub mod catalogue;
mod host_names;
pub mod ingest;
pub mod mill;
mod repository;
pub mod standalone;
mod tasks;

/// Binds every address, all of them or none.
///
/// # Errors
/// When an address cannot be bound; the error names it.
pub async fn listen(addresses: &[ListenAddress]) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    for address in addresses {
        let listener = address.bind().await.with_context(|| {
            format!("cannot listen on {address}; free it, or name another with --web.listen-address")
        })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Serves a queue on the listeners until `shutdown`, and returns within two seconds of it.
///
/// # Errors
/// When a part of the server fails or ends early: without the mirror the others would serve stale data.
pub async fn serve(config: Config, listeners: Vec<TcpListener>, shutdown: &CancellationToken) -> anyhow::Result<()> {
    serve_with(volume(&config), config, listeners, Beside::default(), shutdown).await
}

/// The volume of the configuration; `None` if it has none.
#[must_use]
pub fn volume(config: &Config) -> Option<storage::Storage> {
    config.storage.clone().map(|volume| storage::Storage::new(volume.path, volume.threshold))
}

/// What a server has besides the queue's pages.
#[derive(Default)]
pub struct Beside {
    /// Each of them reloads the configuration and reopens the audit file.
    pub hangups: Option<Signal>,
    /// Daemons that work on the same queue in this process, with what they need opened.
    pub daemons: Option<(ingest::Ingest, Arc<Services>)>,
    /// What the stores count that the daemons work with.
    pub stores: Option<StoreFamilies>,
    /// What the mill counts that runs in this process.
    pub mill: Option<MillMetrics>,
}

impl Beside {
    /// Registers what is counted beside the server.
    fn register(&self, registry: &mut Registry) {
        if let Some(stores) = &self.stores {
            stores.register_in(registry);
        }
        if let Some(mill) = &self.mill {
            mill.register_in(registry);
        }
    }
}

/// The same with a given volume, instead of that of the configuration, and with what is beside it.
///
/// # Errors
/// As [`serve`].
pub async fn serve_with(
    volume: Option<storage::Storage>,
    config: Config,
    listeners: Vec<TcpListener>,
    beside: Beside,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let (audit, mut trail) = Audit::open(config.audit.clone())?;
    if config.file.as_ref().is_some_and(|file| !file.rules().rules.is_empty()) {
        trail.open_alerts()?;
    }
    let mut tasks = tasks::Tasks::new(shutdown);
    let mut registry = metrics::registry();
    beside.register(&mut registry);
    if let Some((ingest, services)) = &beside.daemons {
        services.register(&mut registry);
        ingest::spawn_daemons(&mut tasks, ingest, services);
    }

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
    let sessions = Sessions::new(config.zookeeper.clone());
    let seen = mirror::Metrics::register(&mut registry);
    let drift_interval = config.mirror.drift_interval;
    tasks.spawn("the mirror", move |shutdown| async move {
        Ok(mirror::run(sessions, writer, seen, drift_interval, shutdown).await?)
    });

    if let Some(volume) = volume.clone() {
        tasks.spawn("the measuring of working storage", |shutdown| async {
            volume.poll(shutdown).await;
            Ok(())
        });
    }
    queue::Queue {
        store: store.clone(),
        storage: volume.clone(),
        drop_after: config.mirror.drop_after,
        collections: config.collections,
    }
    .register(&mut registry);

    let tls = config.web.file.as_ref().is_some_and(|file| file.tls().is_some());
    for listener in &listeners {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, tls, prefix = config.web.route_prefix.as_str(), zookeeper = %config.zookeeper.servers, "listening");
    }
    let (limits, counted) = (config.mirror.fault_limits.clone(), actions::Metrics::register(&mut registry));
    let trail_of_hangups = audit.clone();
    let (actions, runner) = Actions::new(store.clone(), limits, (audit, trail), counted);
    let sessions = Sessions::new(config.zookeeper.clone());
    tasks.spawn("the actions", |shutdown| async { Ok(runner.run(sessions, shutdown).await?) });

    let (space, counted) = (volume.clone(), alerts::Metrics::register(&mut registry));
    let space = move || space.as_ref().and_then(storage::Storage::left_bytes);
    let rules = config.file.as_ref().map(|file| file.rules().clone()).unwrap_or_default();
    let alerts = Alerts::new(store.clone(), space, actions.clone(), coordination, rules, counted);
    let runner = alerts.runner();
    let (sessions, wanted) = (Sessions::new(config.zookeeper.clone()), alerts.wanted());
    tasks.spawn("the coordination", |shutdown| async { Ok(keeper.run(sessions, wanted, shutdown).await?) });
    tasks.spawn("the rules", |shutdown| async {
        runner.run(shutdown).await;
        Ok(())
    });

    let mut config = config;
    let daemons = beside.daemons.as_ref().map(|(_, services)| services);
    let repository = Box::pin(Repository::open(&config, daemons, &actions)).await?;
    repository.sweep(&mut tasks);
    repository.measure(&mut registry, &mut tasks);
    config.web.repository = repository.parts();

    let prometheus =
        config.prometheus.clone().map(|options| Prometheus::new(options.url.to_string(), options.matchers));
    let mut state = web::State::new(config, store, volume, Some(actions), registry).with_alerts(alerts);
    if let Some(prometheus) = prometheus.transpose().context("cannot set up TLS for --prometheus.url")? {
        state = state.with_prometheus(prometheus);
    }
    state = repository.show(state);
    if let Some(hangups) = beside.hangups {
        reload_on(&mut tasks, hangups, trail_of_hangups, state.clone());
    }
    tasks.spawn("the web server", |shutdown| async { Ok(web::run(listeners, state, shutdown).await?) });
    tasks.join().await
}

/// Reloads the configuration and reopens the audit file on each signal, as a task.
fn reload_on(tasks: &mut tasks::Tasks, mut hangups: Signal, trail: Audit, state: web::State) {
    tasks.spawn("the reload on SIGHUP", |shutdown| async move {
        while shutdown.run_until_cancelled(hangups.recv()).await.flatten().is_some() {
            tracing::info!("received SIGHUP, reloading the configuration and the audit file");
            trail.reopen().await;
            state.reload();
        }
        shutdown.cancelled().await;
        Ok(())
    });
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

/// The addresses of sessions with the names of their hosts, and in one line which servers did not report theirs, and why;
/// empty if all did.
fn addresses(found: Connections, names: &HostNames) -> (mirror::Addresses, String) {
    let failures = found.failures.iter().map(|(host, why)| format!("{host}: {why}"));
    let addresses = found.addresses.into_iter().map(|(session, address)| (session, names.named(address).into()));
    (addresses.collect(), failures.collect::<Vec<_>>().join("; "))
}
