//! The ZooKeeper of the demo: a private server, or a chroot of its own in a running one.

use std::fmt::Write as _;
use std::path::PathBuf;

use rand::RngExt as _;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Acls, Client, CreateMode, Error as ClientError, MultiReadResult};

use super::Error;
use super::janitor::SNAP_COUNT;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer, Servers};

/// The prefix of the chroot's name.
const CHROOT: &str = "queuekeeper-demo-";

/// How many znodes are listed or deleted in one request.
const CHUNK: usize = 500;

/// How often the removal of the tree is repeated, since a session that was just closed may still have znodes.
const ROUNDS: usize = 5;

/// The ZooKeeper of the demo.
#[derive(Debug)]
pub(super) enum DemoZooKeeper {
    /// A private server.
    Private(PrivateServer),
    /// A chroot in a running server.
    Below {
        /// The connection to the root as configured.
        outside: Config,
        /// The chroot below that root.
        chroot: String,
        /// The connection to the demo's chroot.
        inside: Config,
    },
}

impl DemoZooKeeper {
    /// Starts a private server, or creates the chroot; `None` if `shutdown` came first.
    pub(super) async fn open(
        servers: Option<&Servers>,
        jobs: usize,
        shutdown: &CancellationToken,
    ) -> Result<Option<Self>, Error> {
        let Some(servers) = servers else {
            // A job has about twelve znodes, and a million of these take about 500 MiB of heap.
            let heap_mib = 512 + u32::try_from(jobs / 160).unwrap_or(u32::MAX);
            let start = PrivateServer::start(Options { heap_mib, snap_count: Some(SNAP_COUNT), ..Options::default() });
            // A server that is aborted during its start is killed, and its directory removed.
            return Ok(shutdown.run_until_cancelled(start).await.transpose()?.map(Self::Private));
        };
        let outside = Config::new(servers.clone());
        let client = outside.connect().await?;
        let mut chroot = format!("/{CHROOT}");
        for _ in 0..8 {
            write!(chroot, "{:x}", rand::rng().random_range(0..16)).expect("writing to a String does not fail");
        }
        let root = format!("{}{chroot}", servers.chroot().unwrap_or_default());
        let refused = |source| Error::Chroot { doing: "create", chroot: root.clone(), source };
        client.create(&chroot, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.map_err(refused)?;
        let inside = servers.with_chroot(&root).expect("a chroot with a name added to it is a path of a znode");
        Ok(Some(Self::Below { outside, chroot, inside: Config::new(inside) }))
    }

    /// The connection to the queue.
    pub(super) fn config(&self) -> Config {
        match self {
            Self::Private(server) => {
                let servers = server.connect_string().parse().expect("a private server's address is well formed");
                Config::new(servers)
            }
            Self::Below { inside, .. } => inside.clone(),
        }
    }

    /// The directory of a private server.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        match self {
            Self::Private(server) => Some(server.directory().to_owned()),
            Self::Below { .. } => None,
        }
    }

    /// Removes everything that was created.
    pub(super) async fn close(self) -> Result<(), Error> {
        match self {
            // When dropped, it is killed and its directory removed.
            Self::Private(server) => drop(server),
            Self::Below { outside, chroot, inside } => {
                let failed = |source| Error::Chroot {
                    doing: "remove",
                    chroot: inside.servers.chroot().unwrap_or_default().to_owned(),
                    source,
                };
                let client = outside.connect().await?;
                remove(&client, &chroot).await.map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Deletes a znode and all below it, the deepest first.
async fn remove(client: &Client, root: &str) -> Result<(), ClientError> {
    let mut outcome = Ok(());
    for _ in 0..ROUNDS {
        let mut levels = vec![vec![root.to_owned()]];
        while let Some(level) = levels.last().filter(|level| !level.is_empty()) {
            let below = children(client, level).await?;
            levels.push(below);
        }
        outcome = Ok(());
        for chunk in levels.iter().rev().flat_map(|level| level.chunks(CHUNK)) {
            if let Err(error) = delete(client, chunk).await {
                outcome = Err(error);
            }
        }
        match &outcome {
            Ok(()) => break,
            Err(ClientError::NotEmpty) => {}
            Err(_) => return outcome,
        }
    }
    outcome
}

async fn children(client: &Client, parents: &[String]) -> Result<Vec<String>, ClientError> {
    let mut found = Vec::new();
    for chunk in parents.chunks(CHUNK) {
        let mut reader = client.new_multi_reader();
        chunk.iter().try_for_each(|parent| reader.add_get_children(parent))?;
        for (parent, answer) in chunk.iter().zip(reader.commit().await?) {
            // A znode that no longer exists has no children.
            if let MultiReadResult::Children { children } = answer {
                found.extend(children.iter().map(|child| format!("{parent}/{child}")));
            }
        }
    }
    Ok(found)
}

async fn delete(client: &Client, paths: &[String]) -> Result<(), ClientError> {
    let mut writer = client.new_multi_writer();
    paths.iter().try_for_each(|path| writer.add_delete(path, None))?;
    if writer.commit().await.is_ok() {
        return Ok(());
    }
    // One of them is gone or has a new child: delete each separately, all requests concurrently.
    let deletions: Vec<_> = paths.iter().map(|path| client.delete(path, None)).collect();
    let mut outcome = Ok(());
    for deletion in deletions {
        match deletion.await {
            Ok(()) | Err(ClientError::NoNode) => {}
            Err(error) => outcome = Err(error),
        }
    }
    outcome
}
