//! Who looks at which page.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::page::{self, Seen, render};
use super::regions::Shot;
use crate::web::State;
use crate::web::http::host::network;
use crate::web::http::identity::{AuthMethod, Identity};

/// How many streams are open at once. Each is a connection, and others want to be served too.
const MOST_STREAMS: usize = 256;

/// How many distinct pages are rendered for them.
const MOST_PAGES: usize = 64;

/// How many streams, and how many distinct pages, are one user's or one token's: a quarter.
const SHARE_OF_ACTOR: [usize; 2] = [MOST_STREAMS / 4, MOST_PAGES / 4];

/// The same of one address from which people read without logging in: three quarters, as it may be the proxy that all of
/// them come through.
const SHARE_OF_ADDRESS: [usize; 2] = [MOST_STREAMS / 4 * 3, MOST_PAGES / 4 * 3];

/// The shortest time between two renderings of a page.
const SPACING: Duration = Duration::from_millis(500);

/// All renderings together take at most this part of a core: one in so many. The more pages there are and the longer
/// they take, the longer each waits for its next turn.
const SHARE: u32 = 10;

/// How long nothing may change until a page is rendered again, for what the passing of time changes.
const IDLE: Duration = Duration::from_secs(5);

/// Why there is no stream for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// There are as many streams as there may be.
    Streams,
    /// There are as many distinct pages as there may be.
    Pages,
    /// The reader has as many streams as one may have.
    OwnStreams(usize),
    /// The reader has as many distinct pages as one may have.
    OwnPages(usize),
    /// The server is about to end.
    Ending,
}

impl Full {
    /// Whether others would be served.
    pub(super) fn is_own_share(self) -> bool {
        matches!(self, Self::OwnStreams(_) | Self::OwnPages(_))
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams => write!(f, "{MOST_STREAMS} live pages are open already. Come back later, or reload."),
            Self::Pages => write!(f, "{MOST_PAGES} different live pages are open already. Come back later, or reload."),
            Self::OwnStreams(share) => {
                write!(f, "This user, token or address has {share} live pages open, the most for one. Close some.")
            }
            Self::OwnPages(share) => {
                write!(
                    f,
                    "This user, token or address has {share} different live pages open, the most for one. Close some."
                )
            }
            Self::Ending => f.write_str("The server is about to end. Come back in a moment."),
        }
    }
}

/// Who has a share of the streams.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    /// A user or a token, wherever it is.
    Actor(String),
    /// Whoever reads from there without logging in.
    Address(Option<IpAddr>),
}

impl Reader {
    pub(super) fn of(identity: &Identity) -> Self {
        match identity.means {
            AuthMethod::Password | AuthMethod::Token => Self::Actor(identity.name.clone()),
            AuthMethod::Nobody | AuthMethod::Loopback => Self::Address(identity.peer.map(network)),
        }
    }

    /// The most streams and the most distinct pages.
    fn share(&self) -> [usize; 2] {
        match self {
            Self::Actor(_) => SHARE_OF_ACTOR,
            Self::Address(_) => SHARE_OF_ADDRESS,
        }
    }
}

/// One reader's place among the streams, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    readers: Arc<Mutex<Readers>>,
    reader: Reader,
    seen: Seen,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.readers.lock().leave(&self.reader, &self.seen);
    }
}

/// The streams that are open: how many each reader has of each page.
#[derive(Debug, Default)]
struct Readers {
    streams: usize,
    by_reader: HashMap<Reader, HashMap<Seen, usize>>,
}

impl Readers {
    fn enter(&mut self, reader: &Reader, seen: &Seen) -> Result<(), Full> {
        let [most_streams, most_pages] = reader.share();
        if let Some(own) = self.by_reader.get(reader) {
            if own.values().sum::<usize>() >= most_streams {
                return Err(Full::OwnStreams(most_streams));
            }
            if own.len() >= most_pages && !own.contains_key(seen) {
                return Err(Full::OwnPages(most_pages));
            }
        }
        if self.streams >= MOST_STREAMS {
            return Err(Full::Streams);
        }
        self.streams += 1;
        *self.by_reader.entry(reader.clone()).or_default().entry(seen.clone()).or_default() += 1;
        Ok(())
    }

    fn leave(&mut self, reader: &Reader, seen: &Seen) {
        self.streams -= 1;
        let Some(own) = self.by_reader.get_mut(reader) else { return };
        if let Some(count) = own.get_mut(seen) {
            *count -= 1;
            if *count == 0 {
                own.remove(seen);
            }
        }
        if own.is_empty() {
            self.by_reader.remove(reader);
        }
    }
}

/// The pages that are looked at, each with its latest rendering.
#[derive(Debug, Default)]
pub(in crate::web) struct Hub {
    pages: Mutex<HashMap<Seen, watch::Sender<Arc<Shot>>>>,
    readers: Arc<Mutex<Readers>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Hub {
    /// Ends all streams, and with them whatever renders for them.
    pub(in crate::web) async fn end(&self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Cancelled when the streams have to end.
    pub(super) fn ended(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Takes a place among the streams, of the reader's share.
    pub(super) fn enter(&self, reader: Reader, seen: &Seen) -> Result<Place, Full> {
        if self.end.is_cancelled() {
            return Err(Full::Ending);
        }
        self.readers.lock().enter(&reader, seen)?;
        Ok(Place { readers: Arc::clone(&self.readers), reader, seen: seen.clone() })
    }

    /// Joins those who look at a page already.
    pub(super) fn join(&self, seen: &Seen) -> Option<watch::Receiver<Arc<Shot>>> {
        self.pages.lock().get(seen).map(watch::Sender::subscribe)
    }

    /// Begins to render a page of which this is the first rendering.
    pub(super) fn open(&self, state: &State, seen: Seen, first: Arc<Shot>) -> Result<watch::Receiver<Arc<Shot>>, Full> {
        let mut pages = self.pages.lock();
        // Somebody else may have been quicker.
        if let Some(page) = pages.get(&seen) {
            return Ok(page.subscribe());
        }
        if pages.len() >= MOST_PAGES {
            return Err(Full::Pages);
        }
        let (sender, receiver) = watch::channel(first);
        pages.insert(seen.clone(), sender.clone());
        self.tasks.spawn(follow(state.clone(), seen, sender));
        Ok(receiver)
    }

    /// Forgets a page that nobody looks at. Gives whether that is so.
    fn close(&self, seen: &Seen) -> bool {
        let mut pages = self.pages.lock();
        let is_left = pages.get(seen).is_none_or(|page| page.receiver_count() == 0);
        if is_left {
            pages.remove(seen);
        }
        is_left
    }

    fn turns(&self) -> u32 {
        u32::try_from(self.pages.lock().len()).unwrap_or(u32::MAX)
    }
}

/// Renders a page again and again while somebody looks at it.
async fn follow(state: State, seen: Seen, sender: watch::Sender<Arc<Shot>>) {
    let hub = &state.shared.hub;
    let router = page::router(&state);
    let mut changes = state.shared.store.changes();
    let (mut rendered, mut took) = (Instant::now(), Duration::ZERO);
    loop {
        let mut changed = None;
        let due = async {
            tokio::select! {
                // The store outlives us: its sender is never gone.
                _ = changes.changed() => changed = Some(Instant::now()),
                () = sleep(IDLE) => {}
            }
            sleep_until(rendered + SPACING.max(took * SHARE.saturating_mul(hub.turns()))).await;
        };
        tokio::select! {
            () = hub.end.cancelled() => return,
            () = sender.closed() => {
                if hub.close(&seen) {
                    return;
                }
                continue;
            }
            () = due => {}
        }
        // What comes while it is being rendered may not be on it.
        changes.mark_unchanged();
        rendered = Instant::now();
        let last = Arc::clone(&sender.borrow());
        match render(&router, &seen, Some(&last)).await {
            Ok(mut shot) => {
                shot.waited = changed.map_or(Duration::ZERO, |changed| changed.elapsed());
                sender.send_replace(Arc::new(shot));
            }
            // The readers come back, and are told by the page itself.
            Err(refused) if refused.is_gone() => {
                hub.pages.lock().remove(&seen);
                return;
            }
            // What was shown stays until it can be rendered again.
            Err(refused) => tracing::debug!(address = seen.address, ?refused, "a live page could not be rendered"),
        }
        took = rendered.elapsed();
    }
}
