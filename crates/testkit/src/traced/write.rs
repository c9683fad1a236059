//! Which system calls write what lasts.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::libc::{self, user_regs_struct};
use nix::unistd::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// The requests of ZooKeeper's protocol that change something: create, delete, setData, multi, create2,
/// createContainer, createTTL.
const CHANGES: [(i32, &str); 7] = [
    (1, "create"),
    (2, "delete"),
    (5, "set"),
    (14, "multi"),
    (15, "create"),
    (19, "create container"),
    (21, "create with ttl"),
];

/// Where a system call has what it writes: numbers are those of its arguments, from 0.
#[derive(Clone, Copy)]
pub(super) enum Call {
    /// To a file or a socket, from memory.
    Buffer,
    /// The same from several places.
    Vectors,
    /// A message to a socket.
    Message,
    /// It changes the file that is open as this argument.
    File(&'static str, usize),
    /// It changes what a path names, relative to a directory that is open, or to that of the process.
    Path(&'static str, Option<usize>, usize),
    /// It may make or empty a file, whose path is relative to a directory as above; the flags are behind the path.
    Open(Option<usize>, usize),
    /// The same as `openat2` has it.
    OpenHow,
}

/// The system calls that write what lasts, and may be asked to.
pub(super) const CALLS: [(i64, Call); 29] = [
    (libc::SYS_write, Call::Buffer),
    (libc::SYS_sendto, Call::Buffer),
    (libc::SYS_writev, Call::Vectors),
    (libc::SYS_sendmsg, Call::Message),
    (libc::SYS_pwrite64, Call::File("write", 0)),
    (libc::SYS_pwritev, Call::File("write", 0)),
    (libc::SYS_pwritev2, Call::File("write", 0)),
    (libc::SYS_sendfile, Call::File("write", 0)),
    (libc::SYS_copy_file_range, Call::File("write", 2)),
    (libc::SYS_ftruncate, Call::File("truncate", 0)),
    (libc::SYS_fallocate, Call::File("allocate", 0)),
    (libc::SYS_open, Call::Open(None, 0)),
    (libc::SYS_openat, Call::Open(Some(0), 1)),
    (libc::SYS_openat2, Call::OpenHow),
    (libc::SYS_mkdir, Call::Path("mkdir", None, 0)),
    (libc::SYS_mkdirat, Call::Path("mkdir", Some(0), 1)),
    (libc::SYS_rename, Call::Path("rename to", None, 1)),
    (libc::SYS_renameat, Call::Path("rename to", Some(2), 3)),
    (libc::SYS_renameat2, Call::Path("rename to", Some(2), 3)),
    (libc::SYS_link, Call::Path("link", None, 1)),
    (libc::SYS_symlink, Call::Path("link", None, 1)),
    (libc::SYS_linkat, Call::Path("link", Some(2), 3)),
    (libc::SYS_symlinkat, Call::Path("link", Some(1), 2)),
    (libc::SYS_unlink, Call::Path("unlink", None, 0)),
    (libc::SYS_unlinkat, Call::Path("unlink", Some(0), 1)),
    (libc::SYS_rmdir, Call::Path("rmdir", None, 0)),
    (libc::SYS_truncate, Call::Path("truncate", None, 0)),
    (libc::SYS_creat, Call::Path("create", None, 0)),
    (libc::SYS_mknodat, Call::Path("create", Some(0), 1)),
];

/// The flags with which a file is made or emptied.
const MAKES: [i32; 2] = [libc::O_CREAT, libc::O_TRUNC];

/// Has the kernel stop this process, whose tracer waits for that, at the system calls that may write, and at no others.
pub(super) fn trap() {
    let making = |at: usize| {
        let flags = |flag: i32| {
            let flag = u64::from(flag.cast_unsigned());
            let at = u8::try_from(at).unwrap();
            SeccompRule::new(vec![
                SeccompCondition::new(at, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag).unwrap(),
            ])
        };
        MAKES.map(|flag| flags(flag).unwrap()).to_vec()
    };
    let rules = CALLS.map(|(number, call)| match call {
        Call::Open(_, path) => (number, making(path + 1)),
        // Always.
        _ => (number, Vec::new()),
    });
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Trace(0),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter_all_threads(&program).expect("a process may filter its own system calls");
}

/// How much of a request is looked at, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The longest path.
const MOST_PATH: u64 = 4096;

/// A write of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// To a file, by a system call, with its path below the directory that is watched.
    File(&'static str, String),
    /// A request to ZooKeeper.
    ZooKeeper(&'static str),
    /// To another server: the first word.
    Socket(String),
}

impl WriteKind {
    /// Whether it is to a file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(..))
    }

    /// Whether a full disk may refuse it: what only removes needs no space.
    pub(super) fn needs_space(&self) -> bool {
        matches!(self, Self::File(call, _) if !["unlink", "rmdir"].contains(call))
    }
}

impl std::fmt::Display for WriteKind {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(call, path) => write!(to, "{call} {path}"),
            Self::ZooKeeper(request) => write!(to, "ZooKeeper: {request}"),
            Self::Socket(word) => write!(to, "socket: {word:?}"),
        }
    }
}

/// What is watched of a process.
pub(super) struct Watched {
    beneath: PathBuf,
}

impl Watched {
    pub(super) fn new(beneath: PathBuf) -> Self {
        Self { beneath: fs::canonicalize(beneath).unwrap() }
    }

    /// The write that a thread is about to do by a system call, if it is one.
    pub(super) fn write(&self, thread: Pid, registers: &user_regs_struct) -> Option<WriteKind> {
        let number = registers.orig_rax.cast_signed();
        let given = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
        let directory =
            |at: Option<usize>| at.map_or_else(|| u64::from(libc::AT_FDCWD.cast_unsigned()), |at| given[at]);
        let (_, call) = CALLS.iter().find(|(one, _)| *one == number)?;
        match *call {
            Call::Buffer => self.bytes(thread, given[0], || memory(thread, given[1], given[2])),
            Call::Vectors => self.bytes(thread, given[0], || vectors(thread, given[1], given[2])),
            Call::Message => self.bytes(thread, given[0], || {
                // Of `msghdr`: where the vectors are, and how many.
                let header = memory(thread, given[1] + 16, 16);
                vectors(thread, word(&header, 0), word(&header, 8))
            }),
            Call::File(name, at) => self.file(thread, name, given[at]),
            Call::Path(name, beneath, at) => self.path(thread, name, directory(beneath), given[at]),
            Call::Open(beneath, at) => self.opened(thread, directory(beneath), given[at], given[at + 1]),
            Call::OpenHow => self.opened(thread, given[0], given[1], word(&memory(thread, given[2], 8), 0)),
        }
    }

    /// What is written to a file or a socket.
    fn bytes(&self, thread: Pid, descriptor: u64, content: impl FnOnce() -> Vec<u8>) -> Option<WriteKind> {
        let to = open_file(thread, descriptor)?;
        if !to.to_str()?.starts_with("socket:") {
            return self.file(thread, "write", descriptor);
        }
        let content = content();
        if content.first() == Some(&0) {
            return request(&content).map(WriteKind::ZooKeeper);
        }
        let word = String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned();
        let word = word.split(|char: char| char.is_whitespace() || char == '\0').next().unwrap_or_default().to_owned();
        let only_reads = content.is_empty() || ["GET", "HEAD"].contains(&word.as_str());
        (!only_reads).then_some(WriteKind::Socket(word))
    }

    fn file(&self, thread: Pid, call: &'static str, descriptor: u64) -> Option<WriteKind> {
        self.named(call, &open_file(thread, descriptor)?)
    }

    fn path(&self, thread: Pid, call: &'static str, directory: u64, path: u64) -> Option<WriteKind> {
        self.named(call, &resolve(thread, directory, path)?)
    }

    /// A file that is made, or emptied.
    fn opened(&self, thread: Pid, directory: u64, path: u64, flags: u64) -> Option<WriteKind> {
        let has = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
        if !MAKES.into_iter().any(has) {
            return None;
        }
        let path = resolve(thread, directory, path)?;
        match fs::symlink_metadata(&path) {
            Ok(facts) if has(libc::O_TRUNC) && facts.len() > 0 => self.named("truncate", &path),
            Ok(_) => None,
            Err(_) => self.named("create", &path),
        }
    }

    fn named(&self, call: &'static str, path: &Path) -> Option<WriteKind> {
        let below = path.strip_prefix(&self.beneath).ok()?;
        Some(WriteKind::File(call, below.to_string_lossy().into_owned()))
    }
}

/// The request that changes something, in what is sent to ZooKeeper: each has its length, its number, and its kind.
fn request(mut content: &[u8]) -> Option<&'static str> {
    while content.len() >= 12 {
        let number = |at: usize| i32::from_be_bytes(content[at..at + 4].try_into().unwrap());
        let (length, kind) = (number(0), number(8));
        if let Some((_, name)) = CHANGES.iter().find(|(change, _)| *change == kind) {
            return Some(name);
        }
        content = content.get(4 + usize::try_from(length).unwrap_or(usize::MAX - 4)..)?;
    }
    None
}

/// What a descriptor of a thread is open for.
fn open_file(thread: Pid, descriptor: u64) -> Option<PathBuf> {
    let descriptor = u32::try_from(descriptor & u64::from(u32::MAX)).ok()?;
    if descriptor == libc::AT_FDCWD.cast_unsigned() {
        return fs::read_link(format!("/proc/{thread}/cwd")).ok();
    }
    fs::read_link(format!("/proc/{thread}/fd/{descriptor}")).ok()
}

/// The path that a thread names, relative to a directory.
fn resolve(thread: Pid, directory: u64, path: u64) -> Option<PathBuf> {
    let mut name = memory(thread, path, MOST_PATH);
    name.truncate(name.iter().position(|byte| *byte == 0)?);
    let name = String::from_utf8(name).ok()?;
    Some(open_file(thread, directory)?.join(name.trim_start_matches("./")))
}

/// Some of the memory of a thread: what can be read of it.
fn memory(thread: Pid, from: u64, bytes: u64) -> Vec<u8> {
    let mut content = vec![0; usize::try_from(bytes.min(MOST_BYTES)).unwrap()];
    let Ok(file) = File::open(format!("/proc/{thread}/mem")) else { return Vec::new() };
    let read = file.read_at(&mut content, from).unwrap_or(0);
    content.truncate(read);
    content
}

/// The memory that vectors name: an address and a length each.
fn vectors(thread: Pid, from: u64, many: u64) -> Vec<u8> {
    let vectors = memory(thread, from, many * 16);
    let each = vectors.chunks_exact(16).map(|vector| memory(thread, word(vector, 0), word(vector, 8)));
    each.collect::<Vec<_>>().concat()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
}
