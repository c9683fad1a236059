//! An S3 server for tests, with faults on purpose.
//!
//! The protocol, signatures and checksums are those of the crate `s3s`; what is here is what lies behind them: buckets
//! as ordered maps of keys to versions, whose content are files in one directory. Keys are held in memory, content is
//! not. Nothing outlives the server.
//!
//! Each request passes: `connection` (HTTP, TLS, bodies that break off in `tamper`), the library, `access` (counts
//! it in `log`, finds the faults that meet it in `fault`), the operation in `backend`, and back. Changes are made in
//! one place, `Backend::commit`, at once and whole.

mod access;
mod archive;
mod assemble;
mod backend;
mod blob;
mod bucket;
mod checksum;
mod condition;
mod connection;
mod exchange;
mod fault;
mod host;
mod intake;
mod listing;
mod log;
mod object;
mod oracle;
mod policy;
mod state;
mod tamper;
mod upload;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

pub use fault::{Effect, Fault, FaultHandle, PageFault, Point, WRITES};
pub use log::{Logged, REJECTED};
pub use policy::Privileges;

use access::{Checkpoint, Keys};
use archive::Restores;
use backend::Backend;
use blob::Blobs;
use fault::Faults;
use host::Domains;
use log::Log;
use policy::Policy;
use state::{Clock, Shared, State};

/// How a server is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address and port to listen at; port 0 for any free one.
    pub listen: SocketAddr,
    /// Where content lies; a temporary directory where there is none.
    pub directory: Option<PathBuf>,
    /// The access key that is known.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
    /// The name of the region; requests for any other are served, too.
    pub region: String,
    /// A domain below which buckets are hosts, besides `localhost` and `s3.localhost`.
    pub domain: Option<String>,
    /// PEM files of a certificate and its key, for `https`.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether everything gets a CRC-64/NVME that comes without a checksum, as at AWS since December 2024.
    pub has_default_checksum: bool,
    /// The size in bytes below which only the last part of an upload may be; 5 MiB at AWS.
    pub minimum_part_bytes: u64,
    /// The size in bytes of the largest object that one request copies; 5 GiB at AWS.
    pub maximum_copy_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            directory: None,
            access_key: "AKIATESTKEY".to_owned(),
            secret_key: "a-secret-of-the-test-server".to_owned(),
            region: "us-east-1".to_owned(),
            domain: None,
            tls: None,
            has_default_checksum: false,
            minimum_part_bytes: 5 * 1024 * 1024,
            maximum_copy_bytes: 5 * 1024 * 1024 * 1024,
        }
    }
}

/// A running server. It ends when stopped or dropped, with all its connections.
pub struct S3Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<AbortOnDropHandle<()>>,
    _directory: Option<TempDir>,
}

impl S3Server {
    /// Starts a server on the loopback interface.
    ///
    /// # Errors
    /// When the port is taken, or a file cannot be read or written.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        let (path, directory) = if let Some(path) = &settings.directory {
            (path.clone(), None)
        } else {
            let directory = TempDir::new()?;
            (directory.path().to_owned(), Some(directory))
        };
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let listener = TcpListener::bind(settings.listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            settings,
            state: parking_lot::Mutex::new(State::default()),
            blobs: Blobs::new(path),
            faults: Faults::default(),
            log: Log::default(),
            restores: Restores::default(),
            clock: Clock::default(),
            policy: Policy::default(),
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
        });
        let accepting = connection::accept(listener, tls, service(&shared), Arc::clone(&shared));
        let accepting = Some(AbortOnDropHandle::new(tokio::spawn(accepting)));
        Ok(Self { address, shared, accepting, _directory: directory })
    }

    /// Stops it, and waits until nothing of it runs.
    pub async fn stop(mut self) {
        self.shared.end.cancel();
        self.shared.faults.clear();
        if let Some(accepting) = self.accepting.take() {
            // It ends by itself, or has panicked, which the test has seen in its answers.
            let _ = accepting.await;
        }
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    /// The URL for clients that use path style.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme(), self.address)
    }

    /// The URL below which buckets are hosts, `http://s3.localhost:PORT`. Not every resolver knows such names.
    #[must_use]
    pub fn virtual_endpoint(&self) -> String {
        format!("{}://s3.localhost:{}", self.scheme(), self.address.port())
    }

    fn scheme(&self) -> &'static str {
        if self.shared.settings.tls.is_some() { "https" } else { "http" }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The access key.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.shared.settings.access_key
    }

    /// The secret.
    #[must_use]
    pub fn secret_key(&self) -> &str {
        &self.shared.settings.secret_key
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.shared.settings.region
    }

    /// Allows its clients what a policy document says, and nothing else.
    ///
    /// # Panics
    /// When that has anything but statements that allow actions on resources.
    pub fn restrict(&self, document: &str) {
        self.shared.policy.set(document);
    }

    /// Puts a fault in force.
    #[expect(clippy::must_use_candidate, reason = "a fault stays in force without its handle")]
    pub fn inject(&self, fault: Fault) -> FaultHandle {
        self.shared.faults.add(fault)
    }

    /// Takes all faults away, and lets go what they hold.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Sets the server's clock off by so many milliseconds. It refuses requests that were signed at another time, and
    /// states its own in `Date` and `Last-Modified`.
    pub fn set_clock_skew(&self, milliseconds: i64) {
        self.shared.clock.set(milliseconds);
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.shared.end.cancel();
    }
}

fn service(shared: &Arc<Shared>) -> S3Service {
    let Settings { access_key, secret_key, domain, .. } = shared.settings.clone();
    let mut builder = S3ServiceBuilder::new(Backend { shared: Arc::clone(shared) });
    builder.set_auth(Keys { access_key, secret_key });
    builder.set_access(Checkpoint { shared: Arc::clone(shared) });
    builder.set_host(Domains::new(domain.as_deref()));
    let mut config = S3Config::default();
    // Times are compared with a clock that may be wrong on purpose, and so not by the library.
    config.presigned_url_max_skew_time_secs = u32::MAX;
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    builder.build()
}

fn acceptor((certificate, key): &(PathBuf, PathBuf)) -> io::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificate).map_err(io::Error::other)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
