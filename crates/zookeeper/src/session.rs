//! A series of sessions: establish one, follow it until it ends, establish the next.
//!
//! The owner's loop is short:
//!
//! ```no_run
//! # async fn work(_: &zookeeper_client::Client) {}
//! # async fn owner(config: queuekeeper_zookeeper::Config) -> Result<(), queuekeeper_zookeeper::ConnectError> {
//! let mut sessions = queuekeeper_zookeeper::Sessions::new(config);
//! loop {
//!     let client = sessions.establish().await?;
//!     tokio::select! {
//!         _end = sessions.follow(&client) => {}
//!         () = work(&client) => {}
//!     }
//! }
//! # }
//! ```

mod state;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::future::{Fuse, FutureExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};
use zookeeper_client::{Client, SessionId, SessionState};

use super::chroot::{self, NoChroot, Presence};
use super::connect::{Config, ConnectError};
pub use state::{Connection, SessionEnd};

/// The first pause between two attempts; each is twice the one before, and up to as much again is added at random.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before its random part, so that a server which refused us is found within a second of its return.
/// A session that lasted longer than this resets the pauses.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long the client library may try to reconnect a session without ephemeral znodes before a new one is established.
/// It tries all servers in turn with pauses that double, and a server that has lost its data refuses the session for
/// ever.
const RECONNECT_LIMIT: Duration = Duration::from_secs(1);

/// What becomes of a session whose chroot is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingChroot {
    /// It waits for the chroot, which is logged.
    Await,
    /// The same without a line in the log.
    AwaitSilently,
    /// It is returned.
    Accept,
}

/// Establishes sessions, one after the other, and publishes the state of the connection.
#[derive(Debug)]
pub struct Sessions {
    config: Config,
    state: watch::Sender<Connection>,
    pauses: ExponentialBackoff,
    /// When the last session was established; `None` before the first.
    established: Option<Instant>,
    /// How many there were so far.
    count: u64,
    /// How many connections there were so far, over all sessions.
    connections: u64,
    /// The last failure that was logged, word for word, while it lasts.
    logged: Option<String>,
    /// Whether a session may be given up for another.
    replaceable: bool,
    /// Whether it tries again after any failure.
    is_insistent: bool,
    /// What becomes of a session whose chroot is missing.
    missing_chroot: MissingChroot,
    /// The session for which the last one was given up, and since when there was no connection.
    replacement: Option<(Client, Instant)>,
}

impl Sessions {
    /// Sessions by `config`; nothing happens before [`Self::establish`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        let nothing_yet = Connection::Connecting { since: Instant::now(), failed_attempts: 0, last_error: None };
        Self {
            config,
            state: watch::Sender::new(nothing_yet),
            pauses: pauses(),
            established: None,
            count: 0,
            connections: 0,
            logged: None,
            replaceable: false,
            is_insistent: false,
            missing_chroot: MissingChroot::Await,
            replacement: None,
        }
    }

    /// For clients without ephemeral znodes, which lose nothing with a session: after a second without a connection
    /// another session is established in parallel, and whichever connects first is kept.
    #[must_use]
    pub fn without_ephemerals(self) -> Self {
        Self { replaceable: true, ..self }
    }

    /// For clients that follow the chroot by themselves: [`Self::establish`] returns a session though it is missing.
    #[must_use]
    pub fn despite_missing_chroot(self) -> Self {
        Self { missing_chroot: MissingChroot::Accept, ..self }
    }

    /// For clients beside another one of the same process that says in the log that the chroot is missing.
    #[must_use]
    pub fn beside_another(self) -> Self {
        Self { missing_chroot: MissingChroot::AwaitSilently, ..self }
    }

    /// For one of several queues of a process, which does not end because one of them cannot be reached:
    /// [`Self::establish`] tries again whatever the failure.
    #[must_use]
    pub fn despite_any_failure(self) -> Self {
        Self { is_insistent: true, ..self }
    }

    /// The configuration they are made by.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Watches the state of the connection. Only the latest state is kept: a short one may be missed.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Connection> {
        self.state.subscribe()
    }

    /// Tries until there is a session and its chroot exists, however long it takes, with growing pauses. The one for
    /// which the last was given up is there already, and is returned at once.
    ///
    /// A failure is logged once, not once an attempt; another reason is logged again. The first attempt is made at
    /// once, unless the last session did not live longer than the longest pause. Where the chroot is missing, the
    /// session waits for it by a watch.
    ///
    /// # Errors
    /// With a failure that trying again will not repair (see [`ConnectError::is_retryable`]), but only before the first
    /// session: afterwards the configuration is known to have worked, a certificate that is just being replaced is a
    /// temporary failure, and it retries. Never with [`Self::despite_any_failure`].
    pub async fn establish(&mut self) -> Result<Client, ConnectError> {
        loop {
            let (client, since) = self.find().await?;
            if self.has_chroot(&client, since).await {
                self.welcome(&client, since);
                return Ok(client);
            }
        }
    }

    /// A session, and since when it was searched for.
    async fn find(&mut self) -> Result<(Client, Instant), ConnectError> {
        let since = Instant::now();
        if let Some(replacement) = self.replacement.take() {
            return Ok(replacement);
        }
        self.state.send_replace(Connection::Connecting { since, failed_attempts: 0, last_error: None });
        match self.established {
            Some(last) if last.elapsed() <= LONGEST_PAUSE => self.pause().await,
            Some(_) | None => self.pauses = pauses(),
        }
        let mut failed_attempts = 0;
        loop {
            match self.config.connect_anywhere().await {
                Ok(client) => return Ok((client, since)),
                Err(error) if self.is_final(&error) => return Err(error),
                Err(error) => {
                    failed_attempts += 1;
                    self.log_once(&error);
                    let last_error = Some(Arc::new(error));
                    self.state.send_replace(Connection::Connecting { since, failed_attempts, last_error });
                }
            }
            self.pause().await;
        }
    }

    /// Whether it is not tried again after this failure.
    fn is_final(&self, error: &ConnectError) -> bool {
        !self.is_insistent && self.established.is_none() && !error.is_retryable()
    }

    /// Waits for the chroot, where it is missing and wanted; `false` if the session ended before it was there.
    async fn has_chroot(&mut self, client: &Client, since: Instant) -> bool {
        self.established = Some(Instant::now());
        if self.missing_chroot == MissingChroot::Accept {
            return true;
        }
        match chroot::look(client, &self.config.servers).await {
            Presence::Present => return true,
            Presence::SessionOver => return false,
            Presence::Missing => {}
        }
        let error = NoChroot::of(&self.config.servers);
        if self.missing_chroot == MissingChroot::Await && self.logged.as_deref() != Some(&*error.to_string()) {
            warn!(zookeeper = %self.config.servers, "{error}");
            self.logged = Some(error.to_string());
        }
        let last_error = Some(Arc::new(error.into()));
        self.state.send_replace(Connection::Connecting { since, failed_attempts: 1, last_error });
        chroot::created(client).await == Presence::Present
    }

    /// Follows the session of `client`, which [`Self::establish`] gave, until it is over.
    ///
    /// May be dropped and called again.
    pub async fn follow(&mut self, client: &Client) -> SessionEnd {
        let session = client.session_id();
        let mut watcher = client.state_watcher();
        // What was missed before the watcher was made shows as a state that differs from the published one.
        let mut state = watcher.state();
        let mut repeated = false;
        let mut replacement = pin!(Fuse::terminated());
        loop {
            match state {
                SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                    replacement.set(Fuse::terminated());
                    self.reconnected(session, repeated);
                }
                SessionState::Disconnected => {
                    self.disconnected(client);
                    if self.replaceable {
                        replacement.set(find_replacement(self.config.clone()).fuse());
                    }
                }
                SessionState::Expired => return self.ended(session, SessionEnd::Expired),
                SessionState::AuthFailed => return self.ended(session, SessionEnd::AuthFailed),
                SessionState::Closed => return self.ended(session, SessionEnd::Closed),
            }
            state = tokio::select! {
                biased;
                state = watcher.changed() => state,
                found = &mut replacement => {
                    let since = self.state.borrow().since();
                    self.replacement = Some((found, since));
                    return self.ended(session, SessionEnd::Replaced);
                }
            };
            repeated = true;
        }
    }

    fn welcome(&mut self, client: &Client, since: Instant) {
        let now = Instant::now();
        self.established = Some(now);
        self.count += 1;
        self.connections += 1;
        self.logged = None;
        info!(
            zookeeper = %self.config.servers,
            session = %client.session_id(),
            session_timeout_ms = millis(client.session_timeout()),
            after_ms = millis(now - since),
            "connected to ZooKeeper",
        );
        self.publish_connected(client.session_id());
    }

    fn publish_connected(&self, session: SessionId) {
        let (sessions, connections) = (self.count, self.connections);
        self.state.send_replace(Connection::Connected { since: Instant::now(), session, sessions, connections });
    }

    /// `seen_change`: the library reported this state as a change, so even one equal to ours is another connection
    /// (the loss between the two was passed over).
    fn reconnected(&mut self, session: SessionId, seen_change: bool) {
        if self.state.borrow().is_connected() && !seen_change {
            return;
        }
        info!(zookeeper = %self.config.servers, %session, "reconnected to ZooKeeper in the same session");
        self.connections += 1;
        self.publish_connected(session);
    }

    fn disconnected(&self, client: &Client) {
        let session = client.session_id();
        warn!(
            zookeeper = %self.config.servers,
            %session,
            session_timeout_ms = millis(client.session_timeout()),
            "lost the connection to ZooKeeper; reconnecting",
        );
        self.state.send_replace(Connection::Disconnected { since: Instant::now(), session });
    }

    fn ended(&self, session: SessionId, end: SessionEnd) -> SessionEnd {
        match end {
            SessionEnd::Expired => {
                warn!(zookeeper = %self.config.servers, %session, "ZooKeeper session expired; establishing a new one");
            }
            SessionEnd::AuthFailed => {
                let zookeeper = &self.config.servers;
                warn!(%zookeeper, %session, "ZooKeeper refused the credentials; the session has ended");
            }
            SessionEnd::Closed => info!(zookeeper = %self.config.servers, %session, "ZooKeeper session closed"),
            SessionEnd::Replaced => {
                info!(zookeeper = %self.config.servers, %session, "ZooKeeper session replaced by a new one");
            }
        }
        self.state.send_replace(Connection::Ended { since: Instant::now(), end });
        end
    }

    async fn pause(&mut self) {
        // The pauses never run out: they are built without a limit in number or time.
        sleep(self.pauses.next().unwrap_or(LONGEST_PAUSE)).await;
    }

    fn log_once(&mut self, error: &ConnectError) {
        let said = error.to_string();
        if self.logged.as_ref() != Some(&said) {
            warn!(zookeeper = %self.config.servers, "cannot connect to ZooKeeper; retrying: {said}");
            self.logged = Some(said);
        }
    }
}

/// Waits for the library to reconnect, then tries until there is a session.
async fn find_replacement(config: Config) -> Client {
    sleep(RECONNECT_LIMIT).await;
    let mut pauses = pauses();
    loop {
        if let Some(client) = config.connect_quickly().await {
            return client;
        }
        sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .build()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
