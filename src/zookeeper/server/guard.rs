//! Ends the private server when its owner's process is gone, however that went.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tracing::debug;

/// Reads the id of the process to guard, `none`, or `done`, line by line. When its input ends without `done`, the
/// owner is gone: it kills the process and removes the directory. The removal is tried more than once, since a
/// process that was just killed may still be finishing a write.
const SCRIPT: &str = r#"
pid=
while read -r line; do
    case $line in
        done) exit 0 ;;
        none) pid= ;;
        *) pid=$line ;;
    esac
done
[ -z "$pid" ] || kill -9 "$pid"
[ -n "$1" ] || exit 0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf -- "$1" && exit 0
    sleep 0.1
done
"#;

/// A shell that waits at a pipe from us. The system closes our end of it when we die, by `kill -9` too; a parent-death
/// signal would ask for unsafe code, and comes already when the thread that started the child ends.
#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
}

impl Guard {
    /// Starts it; `directory` is what it removes when it has to act.
    pub(super) fn start(directory: Option<&Path>) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "sh"])
            .arg(directory.map_or(OsStr::new(""), Path::as_os_str))
            // It must outlive a Ctrl-C at the terminal, which goes to our whole group.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self { shell: command.spawn()? })
    }

    /// From now on the process `pid` is guarded, and no other.
    pub(super) fn watch(&mut self, pid: u32) {
        self.tell(&format!("{pid}\n"));
    }

    /// Nothing is guarded for now.
    pub(super) fn forget(&mut self) {
        self.tell("none\n");
    }

    /// The owner has cleaned up by itself.
    pub(super) fn dismiss(&mut self) {
        self.tell("done\n");
        drop(self.shell.stdin.take());
        if let Err(error) = self.shell.wait() {
            debug!(%error, "the guard of the private ZooKeeper could not be awaited");
        }
    }

    fn tell(&mut self, line: &str) {
        if let Some(pipe) = &mut self.shell.stdin
            && let Err(error) = pipe.write_all(line.as_bytes())
        {
            debug!(%error, "the guard of the private ZooKeeper is gone");
        }
    }
}
