//! Removes old files of a private server, so that its directory stays small.
//!
//! A standalone server never removes its old snapshots and transaction logs. They are needed only after a restart,
//! which does not happen here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval of the cleanup.
const PERIOD: Duration = Duration::from_mins(1);

/// How many of the newest files of each kind are kept: the current one, and the one before.
const KEPT: usize = 2;

/// The number of transactions between two snapshots, and so in one log: about 50 MB.
pub(super) const SNAP_COUNT: u32 = 50_000;

/// Removes old files periodically; never returns.
pub(super) async fn remove_old_files(server: PathBuf) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let directory = server.join("data").join("version-2");
        let tidied = tokio::task::spawn_blocking(move || remove_old(&directory)).await;
        if let Ok(Err(error)) = tidied {
            tracing::debug!(%error, "cannot remove old files of the private ZooKeeper");
        }
    }
}

/// Removes all snapshots and logs but the newest.
fn remove_old(directory: &Path) -> io::Result<()> {
    for kind in ["log.", "snapshot."] {
        let mut files = Vec::new();
        for file in fs::read_dir(directory)? {
            let file = file?;
            // The extension is a transaction's number.
            let name = file.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(kind));
            if let Some(number) = number.and_then(|number| u64::from_str_radix(number, 16).ok()) {
                files.push((number, file.path()));
            }
        }
        files.sort_unstable();
        files.truncate(files.len().saturating_sub(KEPT));
        files.into_iter().try_for_each(|(_, path)| fs::remove_file(path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_logs_and_snapshots_are_kept_and_no_other_file_is_touched() {
        let here = tempfile::tempdir().unwrap();
        for name in
            ["log.1", "log.ff", "log.100", "log.200", "snapshot.0", "snapshot.9", "snapshot.a1", "acceptedEpoch"]
        {
            fs::write(here.path().join(name), "").unwrap();
        }
        remove_old(here.path()).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(here.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        left.sort_unstable();
        assert_eq!(left, ["acceptedEpoch", "log.100", "log.200", "snapshot.9", "snapshot.a1"]);
    }
}
