//! Prompts on a terminal, and signals while they wait.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::program::queuekeeper;
use super::world::World;
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(1);

/// A terminal: our side, and that of a program.
pub(super) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).custom_flags(OpenptFlags::NOCTTY.bits().cast_signed());
    let its = options.open(OsStr::from_bytes(name.as_bytes())).unwrap();
    (File::from(ours), its)
}

/// A command whose prompts go to a terminal of our own.
struct PromptingCommand {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl PromptingCommand {
    fn start(world: &World, line: &str) -> Self {
        let (keyboard, its) = terminal();
        let arguments: Vec<_> = line.split(' ').chain(["--zookeeper", &world.address]).collect();
        let mut command = queuekeeper(world.home.path(), &arguments);
        command.stdin(its.try_clone().unwrap()).stderr(its).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        // The child has the last handles of the other side, so that reading ends with it.
        drop(command);
        let (mut from, screen) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(String::new())));
        let to = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(count @ 1..) = from.read(&mut some) {
                to.lock().push_str(&String::from_utf8_lossy(&some[..count]));
            }
        });
        Self { child, keyboard, screen }
    }

    /// Waits until it has prompted this often.
    async fn asks(&self, times: usize) {
        let has_asked = || self.screen.lock().matches("Continue? [y/N]").count() >= times;
        eventually(LIMIT, &format!("question {times}"), async || has_asked()).await;
    }

    fn answer(&mut self, answer: &str) {
        self.keyboard.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }

    /// Waits for its end; returns the exit code, standard output, and the screen.
    async fn ends(self) -> (Option<i32>, String, String) {
        let (pid, screen) = (Pid::from_child(&self.child), Arc::clone(&self.screen));
        let Ok(ended) = timeout(LIMIT, spawn_blocking(|| self.child.wait_with_output())).await else {
            // As below `nohup`, where SIGHUP ends nothing.
            kill_process(pid, Signal::KILL).unwrap();
            panic!("it goes on: {}", screen.lock());
        };
        let ended = ended.unwrap().unwrap();
        let is_printed = || self.screen.lock().contains("error: ");
        eventually(LIMIT, "the last line", async || is_printed()).await;
        let shown = self.screen.lock().clone();
        (ended.status.code(), String::from_utf8(ended.stdout).unwrap(), shown)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_a_command_that_prompts_and_what_it_has_done_is_shown() {
    let world = World::new("prompts").await;
    for (number, signal) in (777..).zip([Signal::INT, Signal::TERM, Signal::HUP]) {
        for other in 0..3 {
            world.create(&format!("/jobs/states/storing/05-jid0000{other}00{number}"), "").await;
        }
        // Before anything is executed.
        let asking = PromptingCommand::start(&world, "faults --repair --reason tried");
        asking.asks(1).await;
        kill_process(Pid::from_child(&asking.child), signal).unwrap();
        let (code, out, shown) = asking.ends().await;
        assert_eq!((code, &*out), (Some(3), ""), "{signal:?}: {shown}");
        assert!(shown.contains("error: interrupted; nothing was done"), "{shown}");

        // After the first of three.
        let mut asking = PromptingCommand::start(&world, "faults --repair --reason tried");
        asking.asks(1).await;
        asking.answer("y");
        asking.asks(2).await;
        kill_process(Pid::from_child(&asking.child), signal).unwrap();
        let (code, out, shown) = asking.ends().await;
        assert_eq!(code, Some(6), "{signal:?}: {out} {shown}");
        assert_eq!(out.matches(": done").count(), 1, "{out}");
        assert!(shown.contains("error: 1 done; fault:") && shown.contains("; 1 more not started"), "{shown}");

        world.run("faults --repair --yes --reason tried").await.is(0, &["2 done"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_stops_the_remaining_actions_and_what_was_done_is_shown() {
    let world = World::new("ended").await;
    for other in 0..3 {
        world.create(&format!("/jobs/states/storing/05-jid0000{other}00777"), "").await;
    }
    let mut asking = PromptingCommand::start(&world, "faults --repair --reason tried");
    asking.asks(1).await;
    asking.answer("y");
    asking.asks(2).await;
    let home = world.home.path().join(".local/state/queuekeeper");
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::write(&home, "a file where the audit trail belongs").unwrap();
    asking.answer("y");
    let (code, out, shown) = asking.ends().await;
    assert_eq!(code, Some(6), "{out} {shown}");
    assert_eq!(out.matches(": done").count(), 1, "{out}");
    assert!(shown.contains("nothing was done") && shown.contains("; 1 more not started"), "{shown}");
}
