//! Child processes that never outlive this process, however it ends.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpSocket;
use tracing::debug;

/// Reads `watch` or `forget` with the id of a process, or `done`, line by line. When its input ends without `done`, the
/// owner is gone: it kills the processes and removes the directory. The removal is tried more than once, since a
/// process that was just killed may still be finishing a write.
const GUARD: &str = r#"
pids=
while read -r word pid; do
    case $word in
        done) exit 0 ;;
        watch) pids="$pids $pid" ;;
        forget)
            kept=
            for each in $pids; do
                [ "$each" = "$pid" ] || kept="$kept $each"
            done
            pids=$kept
            ;;
    esac
done
for each in $pids; do
    kill -9 "$each"
done
[ -n "$1" ] || exit 0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" && exit 0
    sleep 0.1
done
"#;

/// Waits for our word before it becomes the program: were we killed between its start and the guard's learning of it,
/// it would read the end of its input instead, and end.
const GO: &str = r#"read -r go && exec "$@" </dev/null"#;

/// Starts processes and ends them when their owner's process is gone, however that went.
///
/// It is a shell that waits at a pipe from us. The system closes our end of it when we die, by `kill -9` too; a
/// parent-death signal would need unsafe code, and is sent already when the thread that started the child ends.
#[derive(Debug)]
pub struct Guard {
    shell: Child,
}

impl Guard {
    /// Begins with no process; `directory` is what it removes when it has to act.
    ///
    /// # Errors
    /// When no shell can be started.
    pub fn start(directory: Option<&Path>) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", GUARD, "sh"])
            .arg(directory.map_or(OsStr::new(""), Path::as_os_str))
            // It must outlive a Ctrl-C at the terminal, which goes to our whole group.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self { shell: command.spawn()? })
    }

    /// Starts a program that prints to `log`, in `directory`. It must be ended by [`Self::kill`].
    ///
    /// # Errors
    /// When it cannot be started; then it is not running.
    pub fn launch(&mut self, program: &[OsString], directory: &Path, log: File) -> io::Result<Child> {
        let errors = log.try_clone()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", GO, "sh"])
            .args(program)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            // A group of its own: the terminal's Ctrl-C is for us, and we end the program in our own time.
            .process_group(0);
        let mut child = command.spawn()?;
        self.send(&format!("watch {}\n", child.id()));
        let sent = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(b"go\n"));
        match sent {
            Ok(()) => Ok(child),
            Err(error) => {
                self.kill(child)?;
                Err(error)
            }
        }
    }

    /// Kills a process that was launched here, and waits for its end, which takes some milliseconds.
    ///
    /// # Errors
    /// When it cannot be killed, or its end not be awaited.
    pub fn kill(&mut self, mut child: Child) -> io::Result<()> {
        child.kill()?;
        // The guard forgets the process before it is reaped: afterwards its id may be another's.
        self.send(&format!("forget {}\n", child.id()));
        child.wait().map(|_status| ())
    }

    /// The owner has cleaned up by itself.
    pub fn dismiss(&mut self) {
        self.send("done\n");
        drop(self.shell.stdin.take());
        if let Err(error) = self.shell.wait() {
            debug!(%error, "cannot wait for the process guard");
        }
    }

    fn send(&mut self, line: &str) {
        if let Some(pipe) = &mut self.shell.stdin
            && let Err(error) = pipe.write_all(line.as_bytes())
        {
            debug!(%error, "the process guard has ended");
        }
    }
}

/// Signals a process. It is not reaped yet, so its id is its own, and a signal to one that ended does nothing.
pub fn signal(child: &Child, signal: Signal) {
    if let Err(error) = kill_process(Pid::from_child(child), signal) {
        debug!(pid = child.id(), %error, "cannot signal a child process");
    }
}

/// Waits until each thread of a process that was sent a stop signal is stopped: on a busy machine that takes a moment.
pub fn await_stop(child: &Child) {
    /// Longer is not waited for.
    const LIMIT: Duration = Duration::from_secs(2);
    let began = Instant::now();
    while began.elapsed() < LIMIT && !stands_still(child) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn stands_still(child: &Child) -> bool {
    let threads = i32::try_from(child.id()).ok().and_then(|pid| Process::new(pid).ok()?.tasks().ok());
    let is_still = |state: char| matches!(state, 'T' | 't');
    threads.is_some_and(|mut threads| {
        threads.all(|thread| thread.and_then(|thread| thread.stat()).map_or(true, |stat| is_still(stat.state)))
    })
}

/// A port of the loopback interface on which nobody listens, and which the system gives to nobody else while this
/// lives. Who names it may listen on it with `SO_REUSEADDR`, which servers set, and again after an end.
#[derive(Debug)]
pub struct FreePort {
    number: u16,
    _socket: TcpSocket,
}

impl FreePort {
    /// Finds one.
    ///
    /// # Errors
    /// When there is none.
    pub fn find() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { number: socket.local_addr()?.port(), _socket: socket })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_still_runs_when_its_owner_is_gone_is_killed_and_the_directory_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("ours");
        std::fs::create_dir(&directory).unwrap();
        let mut guard = Guard::start(Some(&directory)).unwrap();
        let mut launch = || {
            let log = File::create(directory.join("log")).unwrap();
            guard.launch(&["sleep".into(), "600".into()], &directory, log).unwrap()
        };
        let (ended, mut first, mut second) = (launch(), launch(), launch());
        guard.kill(ended).unwrap();
        assert_eq!((first.try_wait().unwrap(), second.try_wait().unwrap()), (None, None));
        // As the system does when we are killed.
        drop(guard.shell.stdin.take());
        assert!(guard.shell.wait().unwrap().success());
        for child in [&mut first, &mut second] {
            let limit = Instant::now() + Duration::from_mins(1);
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < limit, "it runs on");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(!directory.exists());
    }
}
