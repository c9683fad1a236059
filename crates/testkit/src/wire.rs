//! A TCP proxy in front of a ZooKeeper server that knows requests from answers: it counts them, and cuts the connection
//! at exactly one of them.
//!
//! Counted are requests of a client's own making: not how a session is established or kept alive, credentials, or
//! watches that are set again. Of those, [`Wire::of_changes`] counts the ones that change something: how many reads
//! there are before them may depend on how long one of them takes.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// Where a connection is cut, by the number of a request since [`Wire::arm`], from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The request does not reach the server.
    Unsent(usize),
    /// The server has carried the request out, and its answer does not reach the client.
    Unanswered(usize),
    /// The answer reaches the client, and nothing after it.
    Answered(usize),
}

/// How long a cut lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A client that reconnects at once is accepted.
    Short,
    /// No client is accepted until [`Wire::restore`].
    Long,
}

#[derive(Debug, Default)]
struct State {
    /// How many requests were seen since the last [`Wire::arm`].
    requests: usize,
    /// How many of them were sent by a connection that awaited no answer.
    round_trips: usize,
    cut: Option<(Point, Cut)>,
    was_cut: bool,
    is_closed: bool,
    /// The answer that is to be held back.
    held: Option<usize>,
    is_holding: bool,
}

/// A running proxy; it ends when dropped, with all its connections.
#[derive(Debug)]
pub struct Wire {
    port: u16,
    state: Arc<Mutex<State>>,
    _task: AbortOnDropHandle<()>,
}

impl Wire {
    /// Starts a proxy in front of `server_port` of the loopback interface. It passes everything.
    pub async fn start(server_port: u16) -> Self {
        Self::counting(server_port, false).await
    }

    /// The same, that counts requests that change something, and no others.
    pub async fn of_changes(server_port: u16) -> Self {
        Self::counting(server_port, true).await
    }

    async fn counting(server_port: u16, only_changes: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::<Mutex<State>>::default();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server_port));
        let task = tokio::spawn(serve(listener, server, only_changes, Arc::clone(&state)));
        Self { port, state, _task: AbortOnDropHandle::new(task) }
    }

    /// `127.0.0.1:PORT`, for clients.
    #[must_use]
    pub fn connect_string(&self) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Counts from 1 again, and cuts the connection once, at that point, if a place is given.
    pub fn arm(&self, cut: Option<(Point, Cut)>) {
        *self.state.lock() = State { cut, ..State::default() };
    }

    /// Counts from 1 again, and holds the answer to that request back, with all that follows it, until
    /// [`Self::restore`]: the server has carried the request out by then.
    pub fn hold(&self, answer: usize) {
        *self.state.lock() = State { held: Some(answer), ..State::default() };
    }

    /// Whether an answer is being held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.state.lock().is_holding
    }

    /// How many requests there were since [`Self::arm`].
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state.lock().requests
    }

    /// How many times a connection has sent requests and awaited all answers, since [`Self::arm`]: requests that are
    /// under way together count once.
    #[must_use]
    pub fn round_trips(&self) -> usize {
        self.state.lock().round_trips
    }

    /// Whether the connection was cut since [`Self::arm`].
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.state.lock().was_cut
    }

    /// Lets everyone in again after a long cut, passes what is held back, and cuts no more.
    pub fn restore(&self) {
        let mut state = self.state.lock();
        (state.cut, state.is_closed, state.held, state.is_holding) = (None, false, None, false);
    }
}

impl State {
    /// Cuts, if this is the place.
    fn is_at(&mut self, here: Point) -> bool {
        let Some((_, cut)) = self.cut.take_if(|(point, _)| *point == here) else { return false };
        (self.was_cut, self.is_closed) = (true, cut == Cut::Long);
        true
    }

    /// Holds back, if this is the answer.
    fn is_to_be_held(&mut self, number: usize) -> bool {
        self.is_holding |= self.held.take_if(|held| *held == number).is_some();
        self.is_holding
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, only_changes: bool, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                if state.lock().is_closed {
                    let _ = client.set_zero_linger();
                } else {
                    connections.spawn(pass_both_ways(client, server, only_changes, Arc::clone(&state)));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn pass_both_ways(client: TcpStream, server: SocketAddr, only_changes: bool, state: Arc<Mutex<State>>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    // Which number a request has whose answer is awaited, by what the client calls it.
    let awaited = Mutex::default();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pass_requests(from_client, to_server, only_changes, &state, &awaited) => {}
        () = pass_answers(from_server, to_client, &state, &awaited) => {}
    }
}

/// Passes requests until the connection ends or is cut.
async fn pass_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    only_changes: bool,
    state: &Mutex<State>,
    awaited: &Mutex<HashMap<i32, usize>>,
) {
    /// The client's goodbye.
    const CLOSE: i32 = -11;
    /// To create, to delete, to set data or an ACL, and several of those together, in all forms; `OpCode` of
    /// ZooKeeper's `ZooDefs`.
    const CHANGES: [i32; 8] = [1, 2, 5, 7, 14, 15, 19, 21];
    let mut is_first = true;
    while let Some(packet) = packet(&mut from).await {
        let name = number_at(&packet, 4);
        let is_counted = |kind| kind != CLOSE && (!only_changes || CHANGES.contains(&kind));
        // What the client library sends by itself has a negative name, and the first packet has none.
        if !std::mem::take(&mut is_first) && name >= 0 && is_counted(number_at(&packet, 8)) {
            let mut state = state.lock();
            state.requests += 1;
            let number = state.requests;
            if state.is_at(Point::Unsent(number)) {
                return;
            }
            let mut awaited = awaited.lock();
            state.round_trips += usize::from(awaited.is_empty());
            awaited.insert(name, number);
        }
        if to.write_all(&packet).await.is_err() {
            return;
        }
    }
}

/// Passes answers until the connection ends or is cut.
async fn pass_answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &Mutex<State>,
    awaited: &Mutex<HashMap<i32, usize>>,
) {
    let mut is_first = true;
    while let Some(packet) = packet(&mut from).await {
        let is_session = std::mem::take(&mut is_first);
        let number = awaited.lock().remove(&number_at(&packet, 4)).filter(|_| !is_session);
        if number.is_some_and(|number| state.lock().is_at(Point::Unanswered(number))) {
            return;
        }
        if number.is_some_and(|number| state.lock().is_to_be_held(number)) {
            while state.lock().is_holding {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        // Known before the client can have the answer. Without a linger of its own, that arrives before the end does.
        let is_last = number.is_some_and(|number| state.lock().is_at(Point::Answered(number)));
        if to.write_all(&packet).await.is_err() || is_last {
            return;
        }
    }
}

/// A whole packet, with the length before it; `None` at the end.
async fn packet(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet).await.ok()?;
    let length = usize::try_from(number_at(&packet, 0)).ok()?;
    packet.resize(4 + length, 0);
    from.read_exact(&mut packet[4..]).await.ok()?;
    Some(packet)
}

fn number_at(packet: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}
