//! What can be chosen for a private server.

use std::path::PathBuf;
use std::time::Duration;

/// How a private server is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// An unpacked ZooKeeper release to use; `None` for `ZOOKEEPER_HOME` or else the system's.
    pub home: Option<PathBuf>,
    /// Where data and log are kept, and left; `None` for a temporary directory that goes with the server.
    pub directory: Option<PathBuf>,
    /// A second port that speaks TLS; `None` for plain connections only.
    pub tls: Option<ServerTls>,
    /// The server's tick. The shortest session is two ticks, and sessions are checked once a tick.
    pub tick: Duration,
    /// The longest session timeout that the server grants.
    pub max_session_timeout: Duration,
    /// The Java classes of authentication providers besides those of its own, `ip` and `digest`.
    pub auth_providers: Vec<&'static str>,
    /// Transactions between two snapshots; `None` for the server's own default (100,000).
    pub snap_count: Option<u32>,
    /// The Java heap's limit in MiB. A million znodes of the queue's kind need some 500.
    pub heap_mib: u32,
    /// Whether each transaction is forced to disk before it is answered. A server that lives in a temporary directory
    /// has nothing to lose, and is faster without.
    pub durable: bool,
    /// How long the server may take until it answers.
    pub start_limit: Duration,
    /// Its place among several servers that are one; `None` for a server alone.
    pub member: Option<Member>,
}

impl Default for Options {
    /// Fast and small: ticks of 500 ms, sessions of 1 s to 60 s, 512 MiB of heap, nothing forced to disk, temporary.
    fn default() -> Self {
        Self {
            home: None,
            directory: None,
            tls: None,
            tick: Duration::from_millis(500),
            max_session_timeout: Duration::from_mins(1),
            auth_providers: Vec::new(),
            snap_count: None,
            heap_mib: 512,
            durable: false,
            start_limit: Duration::from_mins(1),
            member: None,
        }
    }
}

/// The place of a private server in an ensemble. It answers only once more than half of the members run, so they are to
/// be started at the same time.
#[derive(Clone, Debug)]
pub struct Member {
    /// Which of `peers` it is itself, from 0.
    pub index: usize,
    /// The ports of all members, for their quorum and for their elections, the same list for each of them.
    pub peers: Vec<[u16; 2]>,
}

/// Certificates of a private server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// PEM file with the server's private key (PKCS #8, not encrypted) and its certificates; the name ends in `.pem`.
    pub key_store: PathBuf,
    /// PEM file of the authorities whose clients are trusted; the name ends in `.pem`.
    pub trust_store: PathBuf,
    /// Whether clients must show a certificate.
    pub client_auth: ClientAuth,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Required; ZooKeeper's default.
    Need,
    /// They may.
    Want,
    /// They are not requested.
    None,
}

impl ClientAuth {
    /// The word of ZooKeeper's `ssl.clientAuth`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Need => "need",
            Self::Want => "want",
            Self::None => "none",
        }
    }
}
