//! Runs a server: starts its parts, connects them, and shuts them down.

use std::sync::Arc;

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use crate::actions::audit::Audit;
use crate::config::{Config, ListenAddress};
use crate::metrics::{self, working_storage};
use crate::prometheus::Prometheus;
use crate::web;
use queue::ServedQueue;
use queuekeeper_ingest::services::Services;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_store::StoreFamilies;
use repository::Repository;

pub mod catalogue;
pub mod deployments;
mod host_names;
pub mod ingest;
pub mod mill;
mod queue;
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
pub fn volume(config: &Config) -> Option<working_storage::MeasuredStorage> {
    config.storage.clone().map(|volume| working_storage::MeasuredStorage::new(volume.path, volume.threshold))
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
    volume: Option<working_storage::MeasuredStorage>,
    config: Config,
    listeners: Vec<TcpListener>,
    beside: Beside,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut tasks = tasks::Tasks::new(shutdown);
    let mut registry = metrics::registry();
    beside.register(&mut registry);
    if let Some((ingest, services)) = &beside.daemons {
        services.register(&mut registry);
        ingest::spawn_daemons(&mut tasks, ingest, services);
    }

    if let Some(volume) = volume.clone() {
        tasks.spawn("the measuring of working storage", |shutdown| async {
            volume.poll(shutdown).await;
            Ok(())
        });
    }
    log_listening(&listeners, &config)?;
    let ServedQueue { store, actions, alerts, audit } =
        ServedQueue::start(&config, volume.as_ref(), &mut tasks, &mut registry)?;

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
        let state = state.clone();
        reload_on(&mut tasks, hangups, vec![audit], move || state.reload());
    }
    tasks.spawn("the web server", |shutdown| async { Ok(web::run(listeners, state, shutdown).await?) });
    tasks.join().await
}

/// Logs where a server listens, and for what.
fn log_listening(listeners: &[TcpListener], config: &Config) -> anyhow::Result<()> {
    let tls = config.web.file.as_ref().is_some_and(|file| file.tls().is_some());
    for listener in listeners {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, tls, prefix = config.web.route_prefix.as_str(), zookeeper = %config.zookeeper.servers, "listening");
    }
    Ok(())
}

/// Reloads the configuration and reopens the audit files on each signal, as a task.
fn reload_on(
    tasks: &mut tasks::Tasks,
    mut hangups: Signal,
    trails: Vec<Audit>,
    reload: impl Fn() + Send + Sync + 'static,
) {
    tasks.spawn("the reload on SIGHUP", |shutdown| async move {
        while shutdown.run_until_cancelled(hangups.recv()).await.flatten().is_some() {
            tracing::info!("received SIGHUP, reloading the configuration and the audit file");
            for trail in &trails {
                trail.reopen().await;
            }
            reload();
        }
        shutdown.cancelled().await;
        Ok(())
    });
}
