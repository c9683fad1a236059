//! The status, shown again and again: in place on a terminal, and block by block in a pipe.

use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::task::spawn_blocking;

use super::program::queuekeeper;
use super::prompts::terminal;
use super::world::World;
use queuekeeper_testkit::proxy::{Newcomers, Proxy};
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(1);

/// A command that runs until it is ended, and what it has written.
struct Watching {
    child: Child,
    written: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Watching {
    /// Starts it; `from` is where its output is read, if it goes to no pipe.
    fn start(world: &World, zookeeper: &str, more: &[&str], terminal: Option<(File, File)>) -> Self {
        let arguments = [&["status", "--watch", "--interval=100ms", "--zookeeper", zookeeper], more].concat();
        let mut command = queuekeeper(world.home.path(), &arguments);
        let from = terminal.map(|(ours, its)| {
            command.stdout(its);
            ours
        });
        let mut child = command.spawn().unwrap();
        // The child has the last handle of the other side, so that reading ends with it.
        drop(command);
        let mut from: Box<dyn std::io::Read + Send> = match from {
            Some(from) => Box::new(from),
            None => Box::new(child.stdout.take().unwrap()),
        };
        let written = Arc::new(Mutex::new(String::new()));
        let to = Arc::clone(&written);
        let reader = std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(count @ 1..) = from.read(&mut some) {
                to.lock().push_str(&String::from_utf8_lossy(&some[..count]));
            }
        });
        Self { child, written, reader }
    }

    async fn shows(&self, text: &str) {
        eventually(LIMIT, text, async || self.written.lock().contains(text)).await;
    }

    /// Waits until it shows this after everything that it has shown so far.
    async fn shows_again(&self, text: &str) {
        let before = self.written.lock().len();
        eventually(LIMIT, text, async || self.written.lock()[before..].contains(text)).await;
    }

    /// Ends it as Ctrl-C does, and gives all that it has written, up to the end of what it writes to.
    async fn end(self) -> String {
        let Self { mut child, written, reader } = self;
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = spawn_blocking(move || {
            let status = child.wait().unwrap();
            reader.join().unwrap();
            status
        });
        assert_eq!(ended.await.unwrap().code(), Some(0));
        written.lock().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_status_is_redrawn_in_place_and_the_terminal_is_left_as_it_was() {
    let world = World::new("watch-terminal").await;
    let (ours, its) = terminal();
    tcsetwinsize(&its, Winsize { ws_row: 12, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let screen = its.try_clone().unwrap();
    let watching = Watching::start(&world, &world.address, &[], Some((ours, its)));
    watching.shows("\u{1b}[?1049h\u{1b}[?25l\u{1b}[H").await;
    watching.shows("12 jobs in 1 batch").await;
    watching.shows(" more lines do not fit. Every 100ms. Ctrl-C ends it.").await;
    // It follows the queue, and the size of the terminal.
    world.job(100, 0, "Pending", "").await;
    watching.shows_again("13 jobs in 1 batch").await;
    tcsetwinsize(&screen, Winsize { ws_row: 120, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    watching.shows_again("\r\nEvery 100ms. Ctrl-C ends it.\u{1b}[J").await;
    drop(screen);
    let written = watching.end().await;
    assert!(written.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{written:?}");
    assert_eq!(written.matches("\u{1b}[?1049h").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_pipe_it_is_a_block_for_each_interval_and_a_lost_connection_is_in_the_first_line() {
    let world = World::new("watch-pipe").await;
    let (server, chroot) = world.address.split_once('/').unwrap();
    let port = server.rsplit_once(':').unwrap().1.parse().unwrap();
    let proxy = Proxy::start(port).await;
    let address = format!("{}/{chroot}", proxy.connect_string());
    proxy.cut(Newcomers::Refuse);
    let watching = Watching::start(&world, &address, &[], None);
    watching.shows(&format!("Not connected to ZooKeeper at {address}: ")).await;
    proxy.restore();
    watching.shows(" under way, oldest wait ").await;
    watching.shows_again("12 jobs in 1 batch").await;
    proxy.cut(Newcomers::Refuse);
    watching.shows_again("\n\nNot connected to ZooKeeper for ").await;
    proxy.restore();
    watching.shows_again(" under way, oldest wait ").await;
    let written = watching.end().await;
    assert!(!written.contains('\u{1b}') && !written.contains("\n\n\n"), "{written}");

    let watching = Watching::start(&world, &world.address, &["-o", "json"], None);
    watching.shows("\n\n{").await;
    let written = watching.end().await;
    let first = written.split("\n\n").find(|block| block.contains("\"verdict\""));
    // Before the first walk it is the state of the connection.
    if let Some(first) = first {
        assert_eq!(serde_json::from_str::<serde_json::Value>(first).unwrap()["jobs"], 12, "{first}");
    }
    world.run("status --watch --interval 10ms").await.is(2, &["--interval: 10ms is less than 100ms"]);
    world.run("status --interval 1s").await.is(2, &["--watch"]);

    // A reader that has enough ends it.
    let mut child = queuekeeper(world.home.path(), &["status", "--watch", "--interval=100ms"])
        .env("QUEUEKEEPER_ZOOKEEPER", &world.address)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let status = spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
