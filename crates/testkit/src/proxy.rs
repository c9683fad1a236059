//! A TCP proxy that can cut, stall and restore the connections to a server behind it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// What becomes of clients that come while the connections are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomers {
    /// Nothing listens: connection refused.
    Refuse,
    /// They are let in and thrown out.
    Close,
}

/// What a stall holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Answers and watch events.
    ToClient,
    /// Everything.
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    Slow(Duration),
    Stall(Direction),
    Cut(Newcomers),
}

#[derive(Clone, Copy, Debug)]
struct State {
    mode: Mode,
    /// How many cuts there were; a connection from before the last one is over, even if all is restored since.
    cuts: u64,
}

/// A running proxy; it ends when dropped, with all its connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: watch::Sender<State>,
    accepted: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of `server_port` of the loopback interface. It passes everything.
    pub async fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, states) = watch::channel(State { mode: Mode::Pass, cuts: 0 });
        let accepted = Arc::new(AtomicU64::new(0));
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server_port));
        let task = tokio::spawn(serve(listener, server, states, Arc::clone(&accepted)));
        Self { port, state, accepted, _task: AbortOnDropHandle::new(task) }
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn connect_string(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// How many connections were let in so far, counting those that were thrown out at once.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Ends all connections and lets no other through until [`Self::restore`].
    pub fn cut(&self, newcomers: Newcomers) {
        self.state.send_modify(|state| *state = State { mode: Mode::Cut(newcomers), cuts: state.cuts + 1 });
    }

    /// Keeps all connections, and takes new ones, but passes nothing in `direction` until [`Self::restore`].
    /// What is held back is passed then.
    pub fn stall(&self, direction: Direction) {
        self.state.send_modify(|state| state.mode = Mode::Stall(direction));
    }

    /// Passes everything, but holds each piece of it back for so long, as a server does that is busy with something
    /// else.
    pub fn slow(&self, each: Duration) {
        self.state.send_modify(|state| state.mode = Mode::Slow(each));
    }

    /// Passes everything again.
    pub fn restore(&self) {
        self.state.send_modify(|state| state.mode = Mode::Pass);
    }
}

async fn serve(
    mut listener: TcpListener,
    server: SocketAddr,
    mut states: watch::Receiver<State>,
    accepted: Arc<AtomicU64>,
) {
    let address = listener.local_addr().unwrap();
    let mut connections = JoinSet::new();
    loop {
        let state = *states.borrow_and_update();
        if state.mode == Mode::Cut(Newcomers::Refuse) {
            drop(listener);
            let restored = states.wait_for(|state| state.mode != Mode::Cut(Newcomers::Refuse)).await.map(drop);
            if restored.is_err() {
                return;
            }
            listener = listen_again(address).await;
            continue;
        }
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return },
            Ok((client, _)) = listener.accept() => {
                accepted.fetch_add(1, Ordering::Relaxed);
                // The state may have changed while the client waited in the queue.
                let state = *states.borrow();
                if matches!(state.mode, Mode::Cut(_)) {
                    let _ = client.set_zero_linger();
                } else {
                    connections.spawn(pass_both_ways(client, server, state.cuts, states.clone()));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// The port was ours a moment ago; a connection that another process makes may have it for as short a time.
async fn listen_again(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(_taken) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn pass_both_ways(client: TcpStream, server: SocketAddr, cuts: u64, mut states: watch::Receiver<State>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Dropped with a linger of zero, a connection is reset: nothing in flight arrives any more.
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
        let _ = stream.set_zero_linger();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass(from_client, to_server, Direction::ToServer, states.clone()) => {}
        () = pass(from_server, to_client, Direction::ToClient, states.clone()) => {}
        _cut = states.wait_for(|state| state.cuts != cuts) => {}
    }
}

/// Passes one direction until its source ends or its sink fails.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    mut states: watch::Receiver<State>,
) {
    let flows = |state: &State| match state.mode {
        Mode::Pass | Mode::Slow(_) => true,
        Mode::Stall(stalled) => stalled != direction && stalled != Direction::Both,
        Mode::Cut(_) => false,
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let mode = states.borrow().mode;
        if let Mode::Slow(each) = mode {
            tokio::time::sleep(each).await;
        }
        if states.wait_for(flows).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
