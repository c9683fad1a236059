//! Fetching a file over HTTP: in pieces where it breaks off, checked while it streams, from where the
//! [`Guard`] allows.
//!
//! A [`Fetcher`] is that of a profile. It tries again what may pass within seconds, as its [`RetryPolicy`] says; what
//! lasts longer is for the daemon, which gives its worker back: see [`FetchError::is_temporary`] and
//! [`FetchError::retry_after`].

mod attempt;
mod connections;
mod error;
mod hop;
mod hosts;
mod limits;
mod metrics;
mod resolver;
mod sink;

#[cfg(test)]
mod forged;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use queuekeeper_store::retry::{Attempts, RetryPolicy};
use queuekeeper_store::{Algorithm, Digests};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, StatusCode, redirect};

pub use error::{FetchCause, FetchError};
pub use hosts::Hosts;
pub use limits::HostLimits;

use crate::file_root::{self, FileRoot};
use crate::profile::Credentials;
use crate::url::{ContentUrl, Guard};
use attempt::Attempt;
use connections::Kept;
use resolver::{GuardedResolver, Lookup};
use sink::Sink;

/// The digests that every file gets.
pub const ALGORITHMS: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Sha512];

/// How many bytes of progress make attempts count from the beginning again.
const PROGRESS: u64 = 8 << 20;

/// The longest wait that an origin may request of a worker. Behind a longer one it is for the daemon, which gives its
/// worker back.
const WAIT_LIMIT: Duration = Duration::from_secs(5);

/// How a fetcher behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long an origin may be silent.
    pub silence: Duration,
    /// How often it is tried again before the error is returned.
    pub retries: RetryPolicy,
    /// How many connections a host gets, and when it counts as away.
    pub hosts: HostLimits,
}

impl Default for Settings {
    fn default() -> Self {
        let retries = RetryPolicy { attempts: 5, within: Duration::from_mins(1), ..RetryPolicy::default() };
        Self {
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(1),
            retries,
            hosts: HostLimits::default(),
        }
    }
}

/// What a file should be.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its size in bytes, where it is announced.
    pub size: Option<u64>,
    /// How many bytes it may have where it is not.
    pub most_bytes: u64,
    /// Its digests: given by the depositor, or found by an earlier attempt.
    pub digests: Digests,
}

/// A file that was fetched, or was there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its size in bytes.
    pub size: u64,
    /// Its digests, [`ALGORITHMS`] and those that were expected.
    pub digests: Digests,
    /// Its media type, as the origin says.
    pub media_type: Option<String>,
    /// How many requests were made, redirects not counted; 0 where the file was there already.
    pub attempts: u32,
}

/// Fetches the files of a profile's deposits. Cheap to clone; connections are shared, and those that a job keeps are
/// kept until all clones are dropped.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    guard: Arc<Guard>,
    credentials: Credentials,
    settings: Settings,
    hosts: Hosts,
    kept: Kept,
}

impl Fetcher {
    /// A fetcher that goes where the guard lets it, through no proxy, with credentials for the hosts that have some.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(guard: Guard, credentials: Credentials, settings: Settings) -> Result<Self, reqwest::Error> {
        Self::asking(resolver::system(), guard, credentials, settings)
    }

    /// The same with something else than the system to look names up.
    fn asking(
        lookup: Lookup,
        guard: Guard,
        credentials: Credentials,
        settings: Settings,
    ) -> Result<Self, reqwest::Error> {
        let guard = Arc::new(guard);
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(GuardedResolver::new(Arc::clone(&guard), lookup)))
            .connect_timeout(settings.connect)
            .read_timeout(settings.silence)
            .user_agent(concat!("queuekeeper/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, guard, credentials, settings, hosts: Hosts::default(), kept: Kept::default() })
    }

    /// The same one, which shares with others what is known of the hosts, and their connections.
    #[must_use]
    pub fn sharing(mut self, hosts: &Hosts) -> Self {
        self.hosts = hosts.clone();
        self
    }

    /// The same one for another job, which keeps connections of its own.
    #[must_use]
    pub fn for_job(&self) -> Self {
        Self { kept: Kept::default(), ..self.clone() }
    }

    /// The size of a file in bytes, by `HEAD`, else by a `GET` of its first byte; `None` where the origin does not say.
    ///
    /// # Errors
    /// When it cannot be had at all.
    pub async fn size(&self, url: &ContentUrl) -> Result<Option<u64>, FetchError> {
        let mut hop = None;
        let asked = self.ask_size(url, &mut hop).await;
        asked.map_err(|cause| FetchError::new(url, cause, 1).behind(hop))
    }

    /// Sends content to a service, once; the answer is its status and the beginning of what it says.
    ///
    /// # Errors
    /// When it must not be sent, or there is no answer.
    pub async fn send_to(
        &self,
        method: Method,
        url: &ContentUrl,
        headers: HeaderMap,
        content: String,
    ) -> Result<(StatusCode, String), FetchError> {
        let sent = self.send_content(method, url, headers, content).await;
        let (status, headers, text) = sent.map_err(|cause| FetchError::new(url, cause, 1))?;
        let failed = FetchCause::status(status, &headers);
        let failed = FetchError::new(url, failed, 1);
        if status.is_server_error() || failed.is_temporary() { Err(failed) } else { Ok((status, text)) }
    }

    /// Fetches a file to a name in a directory. A file that is there and has the expected size and digests is kept;
    /// what an attempt before left is gone on with, where digests are expected that prove it right in the end. Its
    /// content is durable then, its name after [`FileRoot::sync_folders`].
    ///
    /// `written` counts the bytes that are on the disk.
    ///
    /// # Errors
    /// When it cannot be had, is not what was expected, or cannot be written.
    pub async fn fetch(
        &self,
        url: &ContentUrl,
        expected: &Expected,
        file_root: &Arc<FileRoot>,
        path: &str,
        written: &Arc<AtomicU64>,
    ) -> Result<Fetched, FetchError> {
        let disk = |error| FetchError::new(url, FetchCause::Disk(error), 0);
        if let Some(found) = self::kept(expected, file_root, path).await.map_err(disk)? {
            written.store(found.size, Ordering::Relaxed);
            return Ok(found);
        }
        let mut sink = Sink::open(file_root, path, expected, written).await.map_err(disk)?;
        let (mut attempts, mut policy, mut validator) = (0, Attempts::new(self.settings.retries), None);
        let mut has_begun_again = false;
        loop {
            attempts += 1;
            let (before, mut hop) = (sink.bytes(), None);
            let attempt = Attempt { fetcher: self, url, expected, validator: &mut validator, hop: &mut hop };
            let cause = match attempt.run(&mut sink).await {
                Ok(media_type) => match sink.check(expected) {
                    Ok(digests) => {
                        let size = sink.bytes();
                        sink.publish(path)
                            .await
                            .map_err(|error| FetchError::new(url, FetchCause::Disk(error), attempts))?;
                        return Ok(Fetched { size, digests, media_type, attempts });
                    }
                    // The content may have changed between two attempts, or the disk lost what the first one wrote.
                    Err(_) if before > 0 && !has_begun_again => {
                        has_begun_again = true;
                        sink.restart().await.map_err(disk)?;
                        continue;
                    }
                    Err(cause) => cause,
                },
                Err(cause) => cause,
            };
            // Nothing was requested.
            let is_unsent = matches!(cause, FetchCause::Away { .. } | FetchCause::Busy { .. });
            let failed = FetchError::new(url, cause, attempts - u32::from(is_unsent)).behind(hop);
            if is_unsent {
                return Err(failed);
            }
            if !failed.is_temporary() {
                // What has come of one that is larger than was allowed is gone on with where more is, and digests prove
                // it right.
                let may_grow = matches!(failed.cause(), FetchCause::TooLarge { .. }) && expected.size.is_none();
                let is_kept = may_grow && !expected.digests.is_empty();
                if !matches!(failed.cause(), FetchCause::Disk(_)) && !is_kept {
                    sink.discard(path).await;
                }
                return Err(failed);
            }
            if sink.bytes() >= before + PROGRESS {
                policy = Attempts::new(self.settings.retries);
            }
            if failed.retry_after().is_some_and(|wait| wait > WAIT_LIMIT) {
                return Err(failed);
            }
            match policy.after_failure(failed.retry_after()) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(failed),
            }
        }
    }
}

/// The file that is there, if digests prove it to be the right one.
async fn kept(expected: &Expected, file_root: &Arc<FileRoot>, path: &str) -> std::io::Result<Option<Fetched>> {
    if expected.digests.is_empty() {
        return Ok(None);
    }
    let (file_root, path, wanted) = (Arc::clone(file_root), path.to_owned(), expected.clone());
    let found = tokio::task::spawn_blocking(move || {
        let Some(file) = file_root.file(&path)? else { return Ok(None) };
        file_root::digests(&file, algorithms(&wanted)).map(Some)
    });
    let Some((size, digests)) = found.await.map_err(std::io::Error::other)?? else { return Ok(None) };
    let is_right = expected.size.is_none_or(|wanted| wanted == size) && expected.digests.difference(&digests).is_none();
    Ok(is_right.then_some(Fetched { size, digests, media_type: None, attempts: 0 }))
}

/// What is computed: what every file gets, and what is compared.
fn algorithms(expected: &Expected) -> Vec<Algorithm> {
    let given = expected.digests.iter().map(queuekeeper_store::Digest::algorithm);
    ALGORITHMS.into_iter().chain(given).collect()
}
