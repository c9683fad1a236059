//! The options and the connection of all commands that read or change the queue, and one walk of the tree.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::future::BoxFuture;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use zookeeper_client::Client;

use super::exit::{CommandError, FAILED};
use super::output::{OutputArgs, Spinner};
use super::serve::faults::FaultArgs;
use super::{UsageError, ZooKeeperArgs};
use crate::actions::Clock;
use crate::config::Mirror;
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::{self, LoadError, Measured};
use crate::views::ViewSource;
use crate::views::show::brief;
use queuekeeper_queue::Queue;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::id::JobId;

use queuekeeper_zookeeper::coordination::Coordination;

/// The time limit for closing a session. An open session expires.
const CLOSING: Duration = Duration::from_millis(500);

/// How to reach the queue, and the output format.
#[derive(Clone, Debug, Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,

    #[command(flatten)]
    zookeeper: ZooKeeperArgs,

    #[command(flatten)]
    faults: FaultArgs,
}

/// A session with ZooKeeper.
#[derive(Clone, Debug)]
pub(super) struct Link {
    config: queuekeeper_zookeeper::Config,
    pub(super) client: Client,
    pub(super) limits: Limits,
    /// The servers' clock, once it has been measured.
    clock: Arc<OnceCell<Result<Measured, String>>>,
}

impl ClientArgs {
    /// How to reach the queue, and the limits of faults.
    pub(super) fn settings(&self) -> Result<(queuekeeper_zookeeper::Config, Limits), UsageError> {
        Ok((self.zookeeper.clone().config()?, self.faults.limits()))
    }

    /// Connects; one attempt.
    pub(super) async fn connect(&self) -> Result<Link, anyhow::Error> {
        super::log::begin_plain();
        let (config, limits) = self.settings()?;
        let client = config.connect().await.map_err(CommandError::from)?;
        Ok(Link { config, client, limits, clock: Arc::default() })
    }

    /// Connects, runs queries, and closes the session.
    pub(super) async fn ask<T>(&self, ask: impl AsyncFnOnce(&Link) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let link = self.connect().await?;
        let answer = ask(&link).await;
        link.close().await;
        answer
    }
}

impl Link {
    /// Walks the tree once; with `confirm` a second time if the first walk finds faults.
    pub(super) async fn store(&self, confirm: bool) -> Result<mirror::MirrorStore, CommandError> {
        let _spinner = Spinner::start("reading the queue");
        let measured = self.clock.get().and_then(|measured| measured.as_ref().ok()).copied();
        Ok(mirror::load(&self.client, self.limits.clone(), confirm, measured).await?)
    }

    /// Reads one job, and nothing else; `None` if it does not exist.
    pub(super) async fn job(&self, id: JobId) -> Result<Option<mirror::MirrorStore>, CommandError> {
        Ok(mirror::load_job(&self.client, id).await?)
    }

    /// Measures the servers' clock by one write below /queuekeeper, if possible; once per command.
    fn measure(&self) -> BoxFuture<'static, Result<Measured, String>> {
        let (clock, client, acl) = (Arc::clone(&self.clock), self.client.clone(), self.config.acl.clone());
        Box::pin(async move {
            let ask = || async move {
                let coordination = Coordination::over(client).with_acl(acl.as_slice());
                Measured::by(coordination.time()).await.map_err(|error| error.to_string())
            };
            clock.get_or_init(ask).await.clone()
        })
    }

    /// Measures the servers' clock, before the walk of what acts by an age: a clock of this host that is ahead makes
    /// everything seem older than it is. `otherwise` is what can be done where it cannot be measured, besides giving
    /// the right.
    pub(super) async fn measure_or_refuse(&self, otherwise: &str) -> Result<(), CommandError> {
        match self.measure().await {
            Ok(_) => Ok(()),
            Err(_) if self.client.check_stat("/").await == Ok(None) => {
                Err(LoadError::NoRoot { chroot: self.client.path().to_owned() }.into())
            }
            Err(why) => Err(CommandError::new(
                FAILED,
                format!(
                    "this depends on ages, which are unknown, because the clock of the ZooKeeper servers could not be \
                     measured: {why}. Nothing was done. Grant these credentials the right to create and write /queuekeeper/clock{otherwise}"
                ),
            )),
        }
    }

    /// The servers' clock, for actions that depend on an age. A dry run writes nothing, so it does not measure it.
    pub(super) fn clock(&self, is_dry_run: bool) -> Clock {
        let link = self.clone();
        if is_dry_run { Clock::Mirror } else { Clock::Measured(Arc::new(move || link.measure())) }
    }

    /// The queue, to change it.
    pub(super) fn queue(&self) -> Queue {
        Queue::new(self.client.clone()).with_acl(self.config.acl.as_slice())
    }

    /// The source of views.
    pub(super) fn source<'a>(&'a self, store: &'a mirror::MirrorStore) -> ViewSource<'a> {
        source(store, None, &self.config)
    }

    /// Closes the session, so that the server does not keep it until it expires.
    pub(super) async fn close(self) {
        let mut watcher = self.client.state_watcher();
        drop(self.client);
        let over = async { while !watcher.changed().await.is_terminated() {} };
        // Nothing hangs on it: see above.
        let _ = timeout(CLOSING, over).await;
    }
}

/// The source of views without rules that are at work here.
pub(super) fn source<'a>(
    store: &'a mirror::MirrorStore,
    storage: Option<&'a MeasuredStorage>,
    config: &'a queuekeeper_zookeeper::Config,
) -> ViewSource<'a> {
    let stalled_after = Mirror::STALLED_AFTER;
    ViewSource { store, storage, alerts: None, servers: &config.servers, stalled_after }
}

/// Parses a job's id.
pub(super) fn job_id(text: &str) -> Result<JobId, UsageError> {
    let number = || text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok().map(JobId::new)).flatten();
    text.parse().ok().or_else(number).ok_or_else(|| {
        let text = brief(text, 64);
        UsageError(format!("{text} is not a job id: expected jid and ten digits, such as jid0000000042"))
    })
}
