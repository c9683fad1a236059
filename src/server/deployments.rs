//! Serves several queues by one process: each has its own mirror, actions, alerts and pages, and they share the
//! listeners, the logins and the runtime.

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use queuekeeper_zookeeper::Servers;
use tokio::net::TcpListener;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use super::queue::ServedQueue;
use super::tasks::Tasks;
use super::{log_listening, reload_on};
use crate::config::{Config, ConfigFile, DeploymentName, Deployments, OfOneQueue, Web};
use crate::metrics::{self, DEPLOYMENT};
use crate::prometheus::Prometheus;
use crate::web::{self, Front, ServedDeployments};

/// Checks that a configuration has nothing that belongs to one queue.
///
/// # Errors
/// When it has.
pub fn check(config: &Config) -> Result<(), OfOneQueue> {
    let refuse = |flag, what| Err(OfOneQueue { flag, what });
    if config.storage.is_some() {
        return refuse("--storage.path", "the volume of daemons");
    }
    if config.deposits.is_some() {
        return refuse("--deposits.working", "the working storage of deposits");
    }
    config.file.as_ref().map_or(Ok(()), ConfigFile::check_for_deployments)
}

/// Serves queues on the listeners until `shutdown`, each below its name, and returns within two seconds of it. The
/// ZooKeeper of the configuration is that of none of them.
///
/// # Errors
/// When a part of the server fails or ends early, of whichever queue.
pub async fn serve(
    config: Config,
    queues: Vec<(DeploymentName, Servers)>,
    listeners: Vec<TcpListener>,
    hangups: Option<Signal>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let names = queues.iter().map(|(name, _)| name.clone()).collect();
    let common = of_deployments(&config, Deployments { all: names, this: None });
    let mut tasks = Tasks::new(shutdown);
    let mut registry = metrics::registry();
    let front = Front::new(&mut registry, &common);
    let (mut states, mut trails) = (Vec::new(), Vec::new());
    for (name, servers) in queues {
        let own = of_queue(&common, &name, servers);
        log_listening(&listeners, &own)?;
        let mut registry = metrics::registry_of_deployment(name.as_str());
        tasks.of(Some(name.as_str()));
        let queue = ServedQueue::start(&own, None, &mut tasks, &mut registry)?;
        trails.push(queue.audit.clone());
        states.push(state(&front, own, queue, registry)?);
    }
    tasks.of(None);
    if let Some(hangups) = hangups {
        let front = front.clone();
        reload_on(&mut tasks, hangups, trails, move || front.reload());
    }
    let served = ServedDeployments::new(&front, common.web, registry, states);
    tasks.spawn("the web server", |shutdown| async { Ok(served.run(listeners, shutdown).await?) });
    tasks.join().await
}

/// The same configuration for pages in another place among those of several queues.
fn of_deployments(config: &Config, deployments: Deployments) -> Config {
    let web = Web { deployments: Some(deployments), ..config.web.clone() };
    Config { web, ..config.clone() }
}

/// The configuration of one queue.
fn of_queue(common: &Config, name: &DeploymentName, servers: Servers) -> Config {
    let all = common.web.deployments.as_ref().map(|deployments| deployments.all.clone()).unwrap_or_default();
    let mut own = of_deployments(common, Deployments { all, this: Some(name.clone()) });
    own.web.route_prefix = common.web.route_prefix.of_deployment(name);
    own.zookeeper.servers = servers;
    own.audit = common.audit.of_deployment(name.as_str());
    if let Some(prometheus) = &mut own.prometheus {
        let matcher = format!("{DEPLOYMENT}=\"{name}\"");
        let given = std::mem::take(&mut prometheus.matchers);
        prometheus.matchers = if given.is_empty() { matcher } else { format!("{given},{matcher}") };
    }
    own
}

/// The pages of a queue.
fn state(front: &Front, config: Config, queue: ServedQueue, registry: Registry) -> anyhow::Result<web::State> {
    let ServedQueue { store, actions, alerts, .. } = queue;
    let prometheus = config.prometheus.clone();
    let state = web::State::behind(front, config, store, None, Some(actions), registry).with_alerts(alerts);
    let Some(options) = prometheus else { return Ok(state) };
    let prometheus = Prometheus::new(options.url.to_string(), options.matchers);
    Ok(state.with_prometheus(prometheus.context("cannot set up TLS for --prometheus.url")?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::actions::audit::{Destination, Rotation};
    use crate::config;

    fn config() -> Config {
        Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap()))
    }

    #[test]
    fn what_belongs_to_one_queue_is_refused_with_its_flag() {
        assert_eq!(check(&config()), Ok(()));
        let volume = config::StorageConfig { path: "/data".into(), threshold: 0.8 };
        let deposits = config::Deposits { working: "/data".into(), profiles: "/profiles".into() };
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "catalogue: {url: \"sqlite:catalogue.db\"}\n").unwrap();
        let file = ConfigFile::read(file.path()).unwrap();
        for (config, flag, what) in [
            (Config { storage: Some(volume), ..config() }, "--storage.path", "the volume of daemons"),
            (Config { deposits: Some(deposits), ..config() }, "--deposits.working", "the working storage of deposits"),
            (Config { file: Some(file), ..config() }, "--config.file", "the catalogue that it names"),
        ] {
            let refused = check(&config).unwrap_err();
            assert_eq!((refused.flag, refused.what), (flag, what));
            assert!(refused.to_string().ends_with("serve that queue in a separate process"), "{refused}");
        }
    }

    #[test]
    fn a_queue_has_its_own_addresses_audit_file_and_figures() {
        let mut common = config();
        common.web.route_prefix = "/ops".parse().unwrap();
        let prometheus = |matchers: &str| {
            Some(config::PrometheusConfig {
                url: "http://prometheus:9090".parse().unwrap(),
                matchers: matchers.to_owned(),
            })
        };
        for (file, own) in
            [("/var/a.b/actions.jsonl", "/var/a.b/actions.prod.jsonl"), ("/var/a.b/actions", "/var/a.b/actions.prod")]
        {
            for (given, matchers) in [("", "deployment=\"prod\""), ("job=\"q\"", "job=\"q\",deployment=\"prod\"")] {
                common.audit = Destination::File(file.into(), Rotation::default());
                common.prometheus = prometheus(given);
                let queue = of_queue(&common, &"prod".parse().unwrap(), "zk1/merritt".parse().unwrap());
                assert_eq!(queue.web.route_prefix.as_str(), "/ops/prod");
                assert_eq!(queue.zookeeper.servers.to_string(), "zk1:2181/merritt");
                assert_eq!(queue.prometheus.unwrap().matchers, matchers);
                let Destination::File(path, _) = queue.audit else { panic!("{file}") };
                assert_eq!(path, Path::new(own));
            }
        }
    }
}
