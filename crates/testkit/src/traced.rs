//! Processes that are killed right behind one of their writes, or whose disk is full at one.
//!
//! The seam is the kernel's: each system call of each thread stops the process (`ptrace`), and those that change
//! something that lasts are counted. So what is tried is the very program, and no writing escapes, whichever library does
//! it: files of the working storage, of stores and of SQLite, requests to ZooKeeper that change it, statements to
//! PostgreSQL, messages. (What SQLite maps into memory is no file that lasts.)

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

mod write;

use write::Watched;
pub use write::WriteKind;

/// What happens at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// The process is killed once that write, from 1, is done.
    Kill(usize),
    /// From that write to a file on, from 1, so many fail, since the disk is full.
    Full(usize, usize),
}

/// What a process wrote, and how it ended.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Its writes, in their order. Of one that is killed the last one is that behind which it was.
    pub writes: Vec<WriteKind>,
    /// The writes that failed on purpose.
    pub failed: Vec<WriteKind>,
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
}

/// A process whose writes are counted. It sees the end of its standard input when this is dropped, and ends with this
/// process.
#[derive(Debug)]
pub struct Traced {
    input: Option<ChildStdin>,
    tracer: Option<JoinHandle<Trace>>,
}

impl Traced {
    /// Starts a program with arguments, and counts what it writes below a directory and to sockets.
    #[must_use]
    pub fn start(command: &Command, beneath: PathBuf, fault: Option<WriteFault>) -> Self {
        // It stops itself before it is the program, so that nothing of that is missed.
        let mut stopped = Command::new("/bin/sh");
        stopped.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
        stopped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        stopped.stdin(Stdio::piped()).stdout(Stdio::null());
        let (send, input) = mpsc::channel();
        // All that is traced belongs to the thread that began it.
        let tracer = std::thread::spawn(move || {
            let mut child = stopped.spawn().unwrap();
            send.send(child.stdin.take().unwrap()).unwrap();
            let process = Pid::from_raw(child.id().try_into().unwrap());
            assert!(matches!(waitpid(process, Some(WaitPidFlag::WUNTRACED)), Ok(WaitStatus::Stopped(..))));
            let options = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL;
            ptrace::seize(process, options).expect("this process may trace its children");
            kill(process, Signal::SIGCONT).unwrap();
            let (watched, pending, trace) = (Watched::new(beneath), HashMap::new(), Trace::default());
            let trace = Tracer { process, watched, fault, pending, trace }.follow();
            // Its end was seen already.
            let _ = child.wait();
            trace
        });
        Self { input: Some(input.recv().unwrap()), tracer: Some(tracer) }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.tracer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Closes its standard input, and waits for its end.
    pub async fn stop(mut self) -> Trace {
        drop(self.input.take());
        let tracer = self.tracer.take().unwrap();
        tokio::task::spawn_blocking(|| tracer.join().unwrap()).await.unwrap()
    }
}

/// A write that a thread is about to do.
enum Pending {
    /// It is done.
    Write(WriteKind),
    /// It fails.
    Full,
}

struct Tracer {
    process: Pid,
    watched: Watched,
    fault: Option<WriteFault>,
    /// Of the threads that are inside of a system call that writes.
    pending: HashMap<Pid, Pending>,
    trace: Trace,
}

impl Tracer {
    fn follow(mut self) -> Trace {
        // Of this thread's children and what it traces only: other threads wait for theirs.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let mut files = 0;
        loop {
            let stopped = waitpid(Pid::from_raw(-1), Some(flags)).unwrap();
            let (thread, signal) = match stopped {
                WaitStatus::PtraceSyscall(thread) => {
                    self.at_call(thread, &mut files);
                    (thread, None)
                }
                WaitStatus::Stopped(thread, Signal::SIGTRAP) | WaitStatus::PtraceEvent(thread, ..) => (thread, None),
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::Exited(thread, code) if thread == self.process => {
                    self.trace.code = Some(code);
                    return self.trace;
                }
                WaitStatus::Signaled(thread, ..) if thread == self.process => return self.trace,
                WaitStatus::Exited(..)
                | WaitStatus::Signaled(..)
                | WaitStatus::Continued(_)
                | WaitStatus::StillAlive => continue,
            };
            // One that was killed meanwhile goes nowhere.
            let _ = ptrace::syscall(thread, signal);
        }
    }

    /// A thread is at the begin or at the end of a system call.
    fn at_call(&mut self, thread: Pid, files: &mut usize) {
        let Ok(info) = ptrace::syscall_info(thread) else { return };
        let is_entry = info.op == libc::PTRACE_SYSCALL_INFO_ENTRY;
        if !is_entry && !self.pending.contains_key(&thread) {
            return;
        }
        let Ok(mut registers) = ptrace::getregs(thread) else { return };
        if is_entry {
            let Some(write) = self.watched.write(thread, &registers) else { return };
            *files += usize::from(write.is_file());
            let at = *files;
            let is_full = matches!(self.fault, Some(WriteFault::Full(from, many)) if (from..from + many).contains(&at));
            if is_full && write.needs_space() {
                self.trace.failed.push(write);
                // No system call has this number: nothing is done.
                registers.orig_rax = u64::MAX;
                ptrace::setregs(thread, registers).unwrap();
                self.pending.insert(thread, Pending::Full);
            } else {
                self.pending.insert(thread, Pending::Write(write));
            }
            return;
        }
        match self.pending.remove(&thread) {
            // An error is a small negative number.
            Some(Pending::Write(write)) if registers.rax.cast_signed() >= 0 => {
                self.trace.writes.push(write);
                if self.fault == Some(WriteFault::Kill(self.trace.writes.len())) {
                    kill(self.process, Signal::SIGKILL).unwrap();
                }
            }
            Some(Pending::Full) => {
                registers.rax = i64::from(-libc::ENOSPC).cast_unsigned();
                ptrace::setregs(thread, registers).unwrap();
            }
            Some(Pending::Write(_)) | None => {}
        }
    }
}
