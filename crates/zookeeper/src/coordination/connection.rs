//! The connection to our own znodes, and the requests on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acl, Acls, Client, CreateMode, Error as ClientError, MultiWriteError};

use super::election::{self, ElectionState, Leadership};
use super::nodes::{PENDING, ROOT, RULES};
use super::snapshot::Snapshot;
use crate::{ConnectError, RequestError, Sessions, Write, within};

/// How long a request may take.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Our own znodes; cheap to clone.
#[derive(Clone, Debug)]
pub struct Coordination {
    client: watch::Receiver<Option<Client>>,
    lead: watch::Receiver<Option<Leadership>>,
    resign: Arc<Notify>,
    problem: watch::Receiver<Option<String>>,
    acl: Arc<[Acl]>,
}

/// The task that keeps the connection; its creator awaits it.
#[derive(Debug)]
pub struct CoordinationTask {
    client: watch::Sender<Option<Client>>,
    lead: watch::Sender<Option<Leadership>>,
    resign: Arc<Notify>,
    problem: watch::Sender<Option<String>>,
    acl: Arc<[Acl]>,
}

/// What our own znodes are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoordinationMode {
    /// For the servers' time only.
    ClockOnly,
    /// To be read. Nothing else is written, and this process is no candidate.
    ReadOnly,
    /// To act: the folders are created, and this process stands for election.
    Active,
}

/// Why our own znodes could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CoordinationError {
    /// There is no connection.
    #[error("ZooKeeper is not connected")]
    NotConnected,
    /// No answer came, or the connection was lost. Whether a write was done is not known.
    #[error("{0}")]
    Unanswered(RequestError),
    /// A znode is not as expected: it exists or does not, or has another version.
    #[error("{path}: {why}")]
    Changed {
        /// Which.
        path: String,
        /// How, in ZooKeeper's words.
        why: ClientError,
    },
    /// A znode has too many descendants to delete them with it.
    #[error(
        "{path}: more than {} znodes are below it, which queuekeeper did not create, so nothing was deleted; inspect \
         them, and delete all by hand (zkCli.sh: deleteall {path})",
        super::nodes::MOST_BELOW
    )]
    Crowded {
        /// Which.
        path: &'static str,
    },
    /// ZooKeeper refused it.
    #[error("{path}: {why}")]
    Refused {
        /// Which znode it was about.
        path: String,
        /// Why.
        why: ClientError,
    },
}

impl CoordinationError {
    /// Whether a znode was to be made that is there already.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self, Self::Changed { why: ClientError::NodeExists, .. })
    }

    /// Whether a znode is missing, or the folder of one that was to be made.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Changed { why: ClientError::NoNode, .. })
    }
}

impl Coordination {
    /// A connection that the returned task keeps, for znodes with this ACL; an empty one is open to everyone.
    #[must_use]
    pub fn new(acl: Vec<Acl>) -> (Self, CoordinationTask) {
        let (client, connected) = watch::channel(None);
        let (lead, leads) = watch::channel(None);
        let (resign, acl) = (Arc::new(Notify::new()), Arc::from(acl));
        let (problems, problem) = watch::channel(None);
        let task =
            CoordinationTask { client, lead, resign: Arc::clone(&resign), problem: problems, acl: Arc::clone(&acl) };
        (Self { client: connected, lead: leads, resign, problem, acl }, task)
    }

    /// One over a connection that its caller keeps: it reads, and never leads.
    #[must_use]
    pub fn over(client: Client) -> Self {
        let (client, lead) = (watch::channel(Some(client)).1, watch::channel(None).1);
        Self { client, lead, resign: Arc::new(Notify::new()), problem: watch::channel(None).1, acl: Arc::from([]) }
    }

    /// The same for znodes with this ACL; an empty one is open to everyone.
    #[must_use]
    pub fn with_acl(mut self, acl: &[Acl]) -> Self {
        self.acl = Arc::from(acl);
        self
    }

    /// The right to act, while this process has it. It may be lost at any moment, which the transactions check.
    #[must_use]
    pub fn lead(&self) -> Option<Leadership> {
        self.lead.borrow().clone()
    }

    /// Why this process cannot stand for election although it should, as long as that lasts.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.problem.borrow().clone()
    }

    /// Gives up the right to act, because its znode was found to be gone.
    pub fn resign(&self) {
        self.resign.notify_one();
    }

    /// Everything below `/queuekeeper`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(&self) -> Result<Snapshot, CoordinationError> {
        let client = self.client()?;
        let read = within(LIMIT, Snapshot::read(&client)).await.map_err(|error| Self::failed(ROOT, error))?;
        read.map_err(|(path, why)| CoordinationError::Refused { path: path.to_owned(), why })
    }

    /// Writes all of these, or nothing.
    ///
    /// # Errors
    /// When one of them does not apply, or it cannot be written.
    pub async fn commit(&self, writes: &[Write]) -> Result<(), CoordinationError> {
        let client = self.client()?;
        let acls = self.acls();
        let mut writer = client.new_multi_writer();
        for write in writes {
            let added = match write {
                Write::Present(path) => writer.add_check_version(path, -1),
                Write::Absent(path) => writer
                    .add_create(path, b"", &CreateMode::Persistent.with_acls(acls))
                    .and_then(|()| writer.add_delete(path, None)),
                Write::Create(path, data) => writer.add_create(path, data, &CreateMode::Persistent.with_acls(acls)),
                Write::Set(path, data, version) => writer.add_set_data(path, data, Some(*version)),
                Write::Delete(path, version) => writer.add_delete(path, Some(*version)),
            };
            added.map_err(|error| Self::failed(write.path(), RequestError::Refused(error)))?;
        }
        // Absence takes two operations.
        let paths = || {
            let twice = |write: &Write| 1 + usize::from(matches!(write, Write::Absent(_)));
            writes.iter().flat_map(move |write| std::iter::repeat_n(write.path(), twice(write)))
        };
        match tokio::time::timeout(LIMIT, writer.commit()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(MultiWriteError::OperationFailed { index, source })) => {
                Err(Self::failed(paths().nth(index).unwrap_or(ROOT), RequestError::Refused(source)))
            }
            Ok(Err(MultiWriteError::RequestFailed { source })) => {
                Err(Self::failed(ROOT, RequestError::Refused(source)))
            }
            Err(_elapsed) => Err(CoordinationError::Unanswered(RequestError::TimedOut { limit: LIMIT })),
        }
    }

    /// Makes the folders that are missing.
    ///
    /// # Errors
    /// When they cannot be made.
    pub async fn make_folders(&self) -> Result<(), CoordinationError> {
        let client = self.client()?;
        for folder in [PENDING, RULES] {
            let options = CreateMode::Persistent.with_acls(self.acls());
            let made = within(LIMIT, client.mkdir(folder, &options)).await;
            made.map_err(|error| Self::failed(folder, error))?;
        }
        Ok(())
    }

    pub(super) fn connected(&self) -> watch::Receiver<Option<Client>> {
        self.client.clone()
    }

    pub(super) fn client(&self) -> Result<Client, CoordinationError> {
        self.client.borrow().clone().ok_or(CoordinationError::NotConnected)
    }

    pub(super) fn acls(&self) -> Acls<'_> {
        if self.acl.is_empty() { Acls::anyone_all() } else { Acls::from(&*self.acl) }
    }

    pub(super) fn failed(path: &str, error: RequestError) -> CoordinationError {
        match error {
            RequestError::Refused(why) if !RequestError::Refused(why.clone()).is_connection() => {
                let path = path.to_owned();
                match why {
                    ClientError::NoNode | ClientError::NodeExists | ClientError::BadVersion => {
                        CoordinationError::Changed { path, why }
                    }
                    why => CoordinationError::Refused { path, why },
                }
            }
            lost => CoordinationError::Unanswered(lost),
        }
    }
}

impl CoordinationTask {
    /// Connects, stands for election once `mode` is active, and reconnects when a session is over, until `shutdown`.
    ///
    /// # Errors
    /// As [`Sessions::establish`].
    pub async fn run(
        self,
        mut sessions: Sessions,
        mode: watch::Receiver<CoordinationMode>,
        shutdown: CancellationToken,
    ) -> Result<(), ConnectError> {
        let keep = async {
            loop {
                let client = sessions.establish().await?;
                let coordination = self.handle(&client);
                let mut mode = mode.clone();
                let act = async {
                    // Without a sender it can only stay as it is.
                    if mode.wait_for(|mode| *mode == CoordinationMode::Active).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                    if let Err(error) = coordination.make_folders().await {
                        tracing::warn!(
                            "cannot create the znodes below /queuekeeper, so no action is taken on alerts: {error}"
                        );
                    }
                    let state = ElectionState { lead: &self.lead, problem: &self.problem };
                    election::stand(&client, coordination.acls(), state, &self.resign).await;
                };
                self.client.send_replace(Some(client.clone()));
                tokio::select! {
                    _end = sessions.follow(&client) => {}
                    () = act => {}
                }
                self.lead.send_replace(None);
                self.problem.send_replace(None);
                self.client.send_replace(None);
            }
        };
        let kept = shutdown.run_until_cancelled(keep).await.unwrap_or(Ok(()));
        self.lead.send_replace(None);
        kept
    }

    fn handle(&self, client: &Client) -> Coordination {
        Coordination { acl: Arc::clone(&self.acl), ..Coordination::over(client.clone()) }
    }
}
