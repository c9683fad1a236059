//! Readers of live pages, and one renderer for each distinct page.

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

use super::page::{self, PageView, render};
use super::regions::Snapshot;
use crate::web::http::address::network;
use crate::web::http::identity::{AuthMethod, Identity};
use crate::web::state::State;

/// How many streams are open at once: half of the connections.
const MAX_STREAMS: usize = 256;

/// How many distinct pages are rendered for them.
const MAX_PAGES: usize = 64;

/// How many streams, and how many distinct pages, one user or token may have: a quarter.
const MAX_PER_ACTOR: [usize; 2] = [MAX_STREAMS / 4, MAX_PAGES / 4];

/// The same for one address without login: three quarters, as it may be a proxy for all readers.
const MAX_PER_ADDRESS: [usize; 2] = [MAX_STREAMS / 4 * 3, MAX_PAGES / 4 * 3];

/// The shortest time between two renderings of a page.
const MIN_INTERVAL: Duration = Duration::from_millis(500);

/// All renderings together use at most one part in so many of a core. The more pages there are and the longer they
/// take, the longer is the interval of each.
const MAX_CORE_SHARE: u32 = 10;

/// The longest time between two renderings of a page, for what changes with time alone.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// Why a stream is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    /// There are as many streams as there may be.
    Streams,
    /// There are as many distinct pages as there may be.
    Pages,
    /// The reader has its share of the streams.
    OwnStreams(usize),
    /// The reader has its share of the distinct pages.
    OwnPages(usize),
    /// The server is shutting down.
    Ending,
}

impl LimitReached {
    /// Whether others would be served.
    pub(super) fn is_own_share(self) -> bool {
        matches!(self, Self::OwnStreams(_) | Self::OwnPages(_))
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams => {
                write!(f, "{MAX_STREAMS} live pages are open, the limit. Try again later, or reload the page.")
            }
            Self::Pages => {
                write!(f, "{MAX_PAGES} different live pages are open, the limit. Try again later, or reload the page.")
            }
            Self::OwnStreams(share) => {
                write!(f, "This user, token or address has {share} live pages open, the limit for one. Close some.")
            }
            Self::OwnPages(share) => {
                write!(
                    f,
                    "This user, token or address has {share} different live pages open, the limit for one. Close some."
                )
            }
            Self::Ending => f.write_str("The server is shutting down. Try again in a moment."),
        }
    }
}

/// What a share of the streams belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reader {
    /// A user or a token, wherever it is.
    Actor(String),
    /// All clients of an address that do not log in.
    Address(Option<IpAddr>),
}

impl Reader {
    pub(super) fn of(identity: &Identity) -> Self {
        match identity.method {
            AuthMethod::Password | AuthMethod::Token => Self::Actor(identity.name.clone()),
            AuthMethod::Anonymous | AuthMethod::Loopback => Self::Address(identity.peer.map(network)),
        }
    }

    /// The most streams and the most distinct pages.
    fn share(&self) -> [usize; 2] {
        match self {
            Self::Actor(_) => MAX_PER_ACTOR,
            Self::Address(_) => MAX_PER_ADDRESS,
        }
    }
}

/// One reader's slot among the streams, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamSlot {
    readers: Arc<Mutex<Readers>>,
    reader: Reader,
    view: PageView,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.readers.lock().leave(&self.reader, &self.view);
    }
}

/// The open streams: how many each reader has of each page.
#[derive(Debug, Default)]
struct Readers {
    streams: usize,
    by_reader: HashMap<Reader, HashMap<PageView, usize>>,
}

impl Readers {
    fn enter(&mut self, reader: &Reader, view: &PageView) -> Result<(), LimitReached> {
        let [most_streams, most_pages] = reader.share();
        if let Some(own) = self.by_reader.get(reader) {
            if own.values().sum::<usize>() >= most_streams {
                return Err(LimitReached::OwnStreams(most_streams));
            }
            if own.len() >= most_pages && !own.contains_key(view) {
                return Err(LimitReached::OwnPages(most_pages));
            }
        }
        if self.streams >= MAX_STREAMS {
            return Err(LimitReached::Streams);
        }
        self.streams += 1;
        *self.by_reader.entry(reader.clone()).or_default().entry(view.clone()).or_default() += 1;
        Ok(())
    }

    fn leave(&mut self, reader: &Reader, view: &PageView) {
        self.streams -= 1;
        let Some(own) = self.by_reader.get_mut(reader) else { return };
        if let Some(count) = own.get_mut(view) {
            *count -= 1;
            if *count == 0 {
                own.remove(view);
            }
        }
        if own.is_empty() {
            self.by_reader.remove(reader);
        }
    }
}

/// The open pages, each with its latest rendering.
#[derive(Debug, Default)]
pub(in crate::web) struct Hub {
    pages: Mutex<HashMap<PageView, watch::Sender<Arc<Snapshot>>>>,
    readers: Arc<Mutex<Readers>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Hub {
    /// That of another queue of the same server, whose readers count together with those here.
    pub(in crate::web) fn beside(&self) -> Self {
        Self { readers: Arc::clone(&self.readers), ..Self::default() }
    }

    /// Ends all streams and renderers.
    pub(in crate::web) async fn end(&self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Cancelled when the streams have to end.
    pub(super) fn ended(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Opens a stream, of the reader's share.
    pub(super) fn enter(&self, reader: Reader, view: &PageView) -> Result<StreamSlot, LimitReached> {
        if self.end.is_cancelled() {
            return Err(LimitReached::Ending);
        }
        self.readers.lock().enter(&reader, view)?;
        Ok(StreamSlot { readers: Arc::clone(&self.readers), reader, view: view.clone() })
    }

    /// Subscribes to a page that is rendered already.
    pub(super) fn join(&self, view: &PageView) -> Option<watch::Receiver<Arc<Snapshot>>> {
        self.pages.lock().get(view).map(watch::Sender::subscribe)
    }

    /// Starts the renderer of a page, of which this is the first rendering.
    pub(super) fn open(
        self: &Arc<Self>,
        state: &State,
        view: PageView,
        first: Arc<Snapshot>,
    ) -> Result<watch::Receiver<Arc<Snapshot>>, LimitReached> {
        let mut pages = self.pages.lock();
        // Another request may have been faster.
        if let Some(page) = pages.get(&view) {
            return Ok(page.subscribe());
        }
        if pages.len() >= MAX_PAGES {
            return Err(LimitReached::Pages);
        }
        let (sender, receiver) = watch::channel(first);
        pages.insert(view.clone(), sender.clone());
        self.tasks.spawn(follow(Arc::clone(self), state.clone(), view, sender));
        Ok(receiver)
    }

    /// Removes a page without readers; returns whether it did.
    fn close(&self, view: &PageView) -> bool {
        let mut pages = self.pages.lock();
        let is_left = pages.get(view).is_none_or(|page| page.receiver_count() == 0);
        if is_left {
            pages.remove(view);
        }
        is_left
    }

    fn page_count(&self) -> u32 {
        u32::try_from(self.pages.lock().len()).unwrap_or(u32::MAX)
    }
}

/// Renders a page repeatedly while it has readers.
async fn follow(hub: Arc<Hub>, state: State, view: PageView, sender: watch::Sender<Arc<Snapshot>>) {
    let router = page::router(&state);
    let mut changes = state.shared.store.changes();
    let (mut rendered, mut took) = (Instant::now(), Duration::ZERO);
    loop {
        let mut changed = None;
        let due = async {
            tokio::select! {
                // The store outlives us: its sender is never gone.
                _ = changes.changed() => changed = Some(Instant::now()),
                () = sleep(MAX_INTERVAL) => {}
            }
            sleep_until(rendered + MIN_INTERVAL.max(took * MAX_CORE_SHARE.saturating_mul(hub.page_count()))).await;
        };
        tokio::select! {
            () = hub.end.cancelled() => return,
            () = sender.closed() => {
                if hub.close(&view) {
                    return;
                }
                continue;
            }
            () = due => {}
        }
        // Changes during the rendering may not be included.
        changes.mark_unchanged();
        rendered = Instant::now();
        let last = Arc::clone(&sender.borrow());
        match render(&router, &view, Some(&last)).await {
            Ok(mut snapshot) => {
                snapshot.waited = changed.map_or(Duration::ZERO, |changed| changed.elapsed());
                sender.send_replace(Arc::new(snapshot));
            }
            // The readers reconnect and get the error of the page.
            Err(refused) if refused.is_gone() => {
                hub.pages.lock().remove(&view);
                return;
            }
            // The last rendering stays until the next succeeds.
            Err(refused) => tracing::debug!(address = view.address, ?refused, "failed to render a live page"),
        }
        took = rendered.elapsed();
    }
}
