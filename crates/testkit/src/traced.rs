//! Processes that are killed right behind one of their writes, stopped in the middle of one, or whose disk is full at
//! one.
//!
//! The seam is the kernel's: a thread is stopped (`ptrace`) at each system call that may write (by a filter of
//! `seccomp`), and those that change something that lasts are counted. So what is tried is the very program, and no
//! writing escapes, whichever library does it: files of the working storage, of stores and of SQLite, requests to
//! ZooKeeper that change it, statements to PostgreSQL, messages. (What SQLite maps into memory is no file that lasts.)

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use parking_lot::Mutex;

mod write;

use write::Watched;
pub use write::WriteKind;

/// What happens at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// The process is killed once that write, from 1, is done.
    Kill(usize),
    /// The process is stopped when that write, from 1, has begun and nothing of it is done, until [`Traced::go_on`]: as
    /// by `SIGSTOP`, but at an instant that is chosen.
    Stop(usize),
    /// From that write to a file on, from 1, so many fail, since the disk is full.
    Full(usize, usize),
}

/// How often a tracer looks whether the process that it has stopped may go on.
const LOOK: Duration = Duration::from_millis(1);

/// How far a [`WriteFault::Stop`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    /// It has not happened.
    #[default]
    Ahead,
    /// No thread of the process goes on.
    Stopped,
    /// It goes on.
    Over,
}

/// What a process wrote, and how it ended.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its writes, in their order. Of one that is killed the last one is that behind which it was.
    pub writes: Vec<WriteKind>,
    /// The write in whose middle it was stopped.
    pub stopped: Option<WriteKind>,
    /// The writes that failed on purpose.
    pub failed: Vec<WriteKind>,
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
}

/// What a process that [`Traced::start`] runs does first: only what it writes from then on is seen.
///
/// # Panics
/// Where the kernel does not let it.
pub fn show_writes() {
    write::trap();
}

/// A process whose writes are counted. It sees the end of its standard input when this is dropped, goes on if it was
/// stopped, and ends with this process.
#[derive(Debug)]
pub struct Traced {
    stop: Arc<Mutex<Stop>>,
    input: Option<ChildStdin>,
    tracer: Option<JoinHandle<Trace>>,
}

impl Traced {
    /// Starts a program with arguments, which calls [`show_writes`], and counts what it writes below a directory and to
    /// sockets.
    #[must_use]
    pub fn start(command: &Command, beneath: PathBuf, fault: Option<WriteFault>) -> Self {
        // It stops itself before it is the program, so that nothing of that is missed.
        let mut stopped = Command::new("/bin/sh");
        stopped.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
        stopped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        stopped.stdin(Stdio::piped()).stdout(Stdio::null());
        let (send, input) = mpsc::channel();
        let stop = Arc::<Mutex<Stop>>::default();
        let shared = Arc::clone(&stop);
        // All that is traced belongs to the thread that began it.
        let tracer = std::thread::spawn(move || {
            let mut child = stopped.spawn().unwrap();
            send.send(child.stdin.take().unwrap()).unwrap();
            let process = Pid::from_raw(child.id().try_into().unwrap());
            assert!(matches!(waitpid(process, Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
            let options = Options::PTRACE_O_TRACECLONE
                | Options::PTRACE_O_TRACESECCOMP
                | Options::PTRACE_O_TRACESYSGOOD
                | Options::PTRACE_O_EXITKILL;
            ptrace::seize(process, options).expect("this process may trace its children");
            kill(process, Signal::SIGCONT).unwrap();
            let tracer = Tracer {
                process,
                watched: Watched::new(beneath),
                fault,
                stop: shared,
                stopped: Vec::new(),
                begun: 0,
                begun_files: 0,
                pending: HashMap::new(),
                is_shown: false,
                trace: Trace::default(),
            };
            let trace = tracer.follow();
            // Its end was seen already.
            let _ = child.wait();
            trace
        });
        Self { stop, input: Some(input.recv().unwrap()), tracer: Some(tracer) }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.tracer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether it is stopped by [`WriteFault::Stop`].
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        *self.stop.lock() == Stop::Stopped
    }

    /// Has it go on where it was stopped, with the write that it had begun; it is stopped no more.
    pub fn go_on(&self) {
        *self.stop.lock() = Stop::Over;
    }

    /// Closes its standard input, and waits for its end.
    pub async fn stop(mut self) -> Trace {
        self.go_on();
        drop(self.input.take());
        let tracer = self.tracer.take().unwrap();
        tokio::task::spawn_blocking(|| tracer.join().unwrap()).await.unwrap()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.go_on();
    }
}

struct Tracer {
    process: Pid,
    watched: Watched,
    fault: Option<WriteFault>,
    stop: Arc<Mutex<Stop>>,
    /// The threads that go on when the process does, with the signals that they get then.
    stopped: Vec<(Pid, Option<Signal>)>,
    /// How many writes have begun, and how many of them were to files.
    begun: usize,
    begun_files: usize,
    /// Of the threads that are inside of a system call that writes.
    pending: HashMap<Pid, WriteKind>,
    /// Whether the process has shown any system call.
    is_shown: bool,
    trace: Trace,
}

impl Tracer {
    fn follow(mut self) -> Trace {
        // Of this thread's children and what it traces only: other threads wait for theirs.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        loop {
            let is_stopped = self.is_stopped();
            if !is_stopped {
                for (thread, signal) in std::mem::take(&mut self.stopped) {
                    self.go_on(thread, signal);
                }
            }
            let at_once = if is_stopped { WaitPidFlag::WNOHANG } else { WaitPidFlag::empty() };
            let stopped = waitpid(Pid::from_raw(-1), Some(flags | at_once)).unwrap();
            let (thread, signal) = match stopped {
                WaitStatus::PtraceEvent(thread, _, libc::PTRACE_EVENT_SECCOMP) => {
                    self.at_call(thread);
                    (thread, None)
                }
                WaitStatus::PtraceSyscall(thread) => {
                    self.behind_call(thread);
                    (thread, None)
                }
                WaitStatus::Stopped(thread, Signal::SIGTRAP) | WaitStatus::PtraceEvent(thread, ..) => (thread, None),
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::Exited(thread, code) if thread == self.process => {
                    assert!(self.is_shown || code != 0, "it does not show what it writes");
                    self.trace.code = Some(code);
                    return self.trace;
                }
                WaitStatus::Signaled(thread, ..) if thread == self.process => return self.trace,
                WaitStatus::StillAlive => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) | WaitStatus::Continued(_) => continue,
            };
            if self.is_stopped() {
                self.stopped.push((thread, signal));
            } else {
                self.go_on(thread, signal);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        *self.stop.lock() == Stop::Stopped
    }

    /// Has a thread go on to the end of the system call in which it writes, or to the next one.
    fn go_on(&self, thread: Pid, signal: Option<Signal>) {
        // One that was killed meanwhile goes nowhere.
        let is_writing = self.pending.contains_key(&thread);
        let _ = if is_writing { ptrace::syscall(thread, signal) } else { ptrace::cont(thread, signal) };
    }

    /// Stops the threads that are outside of system calls, too.
    fn stop_all(&self) {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process)).into_iter().flatten();
        for thread in threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()) {
            // One that is stopped already, or is gone, cannot be.
            let _ = ptrace::interrupt(Pid::from_raw(thread));
        }
    }

    /// A thread begins a system call that may write.
    fn at_call(&mut self, thread: Pid) {
        self.is_shown = true;
        let Ok(mut registers) = ptrace::getregs(thread) else { return };
        let Some(write) = self.watched.write(thread, &registers) else { return };
        self.begun += 1;
        self.begun_files += usize::from(write.is_file());
        let mut stop = self.stop.lock();
        if *stop == Stop::Ahead && self.fault == Some(WriteFault::Stop(self.begun)) {
            self.trace.stopped = Some(write.clone());
            self.stop_all();
            *stop = Stop::Stopped;
        }
        drop(stop);
        let at = self.begun_files;
        let is_full = matches!(self.fault, Some(WriteFault::Full(from, many)) if (from..from + many).contains(&at));
        if is_full && write.needs_space() {
            self.trace.failed.push(write);
            // No system call has this number: nothing is done, and this is its answer.
            registers.orig_rax = u64::MAX;
            registers.rax = i64::from(-libc::ENOSPC).cast_unsigned();
            ptrace::setregs(thread, registers).unwrap();
        } else {
            self.pending.insert(thread, write);
        }
    }

    /// A thread is behind a system call in which it wrote.
    fn behind_call(&mut self, thread: Pid) {
        let Some(write) = self.pending.remove(&thread) else { return };
        // An error is a small negative number.
        if ptrace::getregs(thread).is_ok_and(|registers| registers.rax.cast_signed() >= 0) {
            self.trace.writes.push(write);
            if self.fault == Some(WriteFault::Kill(self.trace.writes.len())) {
                kill(self.process, Signal::SIGKILL).unwrap();
            }
        }
    }
}
