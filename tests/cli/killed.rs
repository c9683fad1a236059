//! Commands that are killed, interrupted, or find no room: nothing appears, and the next one goes on.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::program::queuekeeper;
use super::stores::{command, configured};

/// The files that are being written in the store `main`.
fn temporary(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("objects/.queuekeeper/temporary"));
    entries.map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

/// Starts a command, and waits until it writes a file.
async fn start(home: &Path, arguments: &str, stdin: Option<&[u8]>) -> Child {
    let file = home.join("config.yml");
    let words: Vec<_> = arguments.split(' ').chain(["--config.file", file.to_str().unwrap()]).collect();
    let mut child = queuekeeper(home, &words).stdin(Stdio::piped()).spawn().unwrap();
    if let Some(content) = stdin {
        child.stdin.as_mut().unwrap().write_all(content).unwrap();
    }
    let until = Instant::now() + Duration::from_mins(1);
    // Not the probe's, which is small and gone at once.
    let is_writing = || temporary(home).iter().any(|path| fs::metadata(path).is_ok_and(|facts| facts.len() > 1 << 20));
    while !is_writing() {
        assert!(child.try_wait().unwrap().is_none() && Instant::now() < until, "it does not write");
        sleep(Duration::from_millis(2)).await;
    }
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_command_left_holds_its_item_for_a_minute_and_is_settled_by_the_next_change() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _s3 = configured(home).await;
    command(home, "store put /dev/null main/space/other --create-space").await.is(0, &[]);
    let mut child = start(home, "store put - main/space/a", Some(&vec![b'x'; 3 << 20])).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(temporary(home).len(), 1);

    let held = command(home, "store put /dev/null main/space/a").await;
    held.is(3, &["store main: put space/a: waiting for up to 30 s: a change of ", "holds it (add, begun at 20"]);
    held.is(
        3,
        &["error: store main: put space/a: a change of ", " UTC, and longer while its process works; try again"],
    );
    // Other items are free.
    command(home, "store put /dev/null main/space/third").await.is(0, &[]);

    let until = Instant::now() + Duration::from_mins(1);
    let mut check = command(home, "catalogue check").await;
    while check.code == 0 && Instant::now() < until {
        sleep(Duration::from_millis(500)).await;
        check = command(home, "catalogue check").await;
    }
    check.is(
        1,
        &["a change of a killed process is not settled: add of main/space/a by ", "make a change in that store"],
    );
    // What it wrote counts as left after a day.
    let left = fs::File::options().write(true).open(&temporary(home)[0]).unwrap();
    left.set_modified(SystemTime::now() - Duration::from_hours(48)).unwrap();
    command(home, "store put /dev/null main/space/fourth").await.is(0, &[]);
    command(home, "catalogue check").await.is(0, &["no problems found"]);
    assert_eq!(temporary(home), [""; 0].map(PathBuf::from));
    command(home, "store put /dev/null main/space/a").await.is(0, &["entity tag"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_ends_at_once_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _s3 = configured(home).await;
    command(home, "store put /dev/null main/space/other --create-space").await.is(0, &[]);
    // Some seconds of zeros, which take no room.
    let size = 4 << 30;
    fs::File::create(home.join("objects/space/large")).unwrap().set_len(size).unwrap();
    let mut child = start(home, "store cp main/space/large main/space/copy", None).await;
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let mut largest = 0;
    while child.try_wait().unwrap().is_none() {
        let sizes = temporary(home).into_iter().filter_map(|path| Some(fs::metadata(path).ok()?.len()));
        largest = sizes.max().unwrap_or(0).max(largest);
        sleep(Duration::from_millis(5)).await;
    }
    assert!(largest < size, "it has read all of it");
    let output = spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("stopped: it was interrupted; nothing was written"), "{err}");
    assert!(!home.join("objects/space/copy").exists() && temporary(home).is_empty());
    // Nothing holds the item.
    command(home, "store put /dev/null main/space/copy").await.is(0, &[]);
    command(home, "catalogue check").await.is(0, &["no problems found"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_file_sizes_is_reported_as_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _s3 = configured(home).await;
    command(home, "store put /dev/null main/space/other --create-space").await.is(0, &[]);
    let (large, config) = (home.join("large"), home.join("config.yml"));
    fs::File::create(&large).unwrap().set_len(64 << 20).unwrap();
    let program = env!("CARGO_BIN_EXE_queuekeeper");
    // Blocks of 512 or 1,024 bytes, as the shell has it.
    let script = format!(
        "ulimit -f 16384; exec {program} store put {} main/space/large --config.file {}",
        large.display(),
        config.display()
    );
    let output = spawn_blocking(move || Command::new("sh").args(["-c", &script]).output()).await.unwrap().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{:?}: {err}", output.status);
    assert!(err.contains("no space is left on it; nothing was written"), "{err}");
    assert!(!home.join("objects/space/large").exists() && temporary(home).is_empty());
    command(home, "catalogue check").await.is(0, &["no problems found"]);
}

/// A small file system, for as long as it lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; `None` where this user may not.
    fn mount(at: PathBuf) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&at).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ended = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_content_and_lets_items_be_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _s3 = configured(home).await;
    let Some(disk) = SmallDisk::mount(home.join("objects")) else {
        // This user may not mount a file system.
        return;
    };
    let (part, large) = (home.join("part"), home.join("large"));
    fs::write(&part, vec![b'x'; 600 << 10]).unwrap();
    fs::write(&large, vec![b'x'; 2 << 20]).unwrap();
    command(home, &format!("store put {} main/space/part --create-space", part.display())).await.is(0, &[]);
    let put = format!("store put {} main/space/large", large.display());
    command(home, &put).await.is(1, &["store main: put space/large: no space is left on it; nothing was written"]);
    // To the last byte.
    drop(fs::write(disk.0.join("filler"), vec![0; 2 << 20]));
    command(home, &put).await.is(1, &["no space is left on it"]);
    command(home, "store rm main/space/part --yes").await.is(0, &["deleted main/space/part"]);
    command(home, "catalogue check").await.is(0, &["no problems found"]);
    fs::remove_file(disk.0.join("filler")).unwrap();
    command(home, &format!("store put {} main/space/part", part.display())).await.is(0, &[]);
}
