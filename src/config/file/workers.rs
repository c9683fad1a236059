//! How many workers the daemons have, in the file of `--config.file` and behind `--workers`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use queuekeeper_ingest::daemon::{Daemon, UnknownDaemon};
use queuekeeper_ingest::settings::WorkerBounds;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::source::{FileError, refuse};

/// The most workers of a daemon.
const MOST_WORKERS: usize = 1_000;

/// What is said of a daemon: a number, or two with a dash between.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or a range such as 2-16")]
pub(super) enum Numbers {
    One(u64),
    Two(String),
}

/// Checks what is said of each daemon.
pub(super) fn check(path: &Path, keys: BTreeMap<String, Spanned<Numbers>>) -> Result<WorkerBounds, FileError> {
    let mut all = WorkerBounds::new();
    for (name, numbers) in keys {
        let line = numbers.referenced.line();
        let text = match numbers.value {
            Numbers::One(number) => number.to_string(),
            Numbers::Two(text) => text,
        };
        let bounds = name
            .parse()
            .map_err(|error: UnknownDaemon| error.to_string())
            .and_then(|daemon| Ok((daemon, worker_bounds(daemon, &text)?)));
        let (daemon, bounds) = bounds.map_err(|why| refuse(path, line, format!("workers: {name}: {why}")))?;
        all.insert(daemon, bounds);
    }
    Ok(all)
}

/// Reads how many workers a daemon has, as `4` or `2-16`.
///
/// # Errors
/// Why it cannot have that many.
pub fn worker_bounds(daemon: Daemon, numbers: &str) -> Result<RangeInclusive<usize>, String> {
    let (least, most) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| text.parse().ok().filter(|number| (1..=MOST_WORKERS).contains(number));
    let bounds = number(least).zip(number(most)).filter(|(least, most)| least <= most);
    let (least, most) =
        bounds.ok_or_else(|| format!("expected a number from 1 to {MOST_WORKERS}, or a range such as 2-16"))?;
    if least < most && !daemon.has_variable_workers() {
        return Err(format!("{daemon} has a fixed number of workers; expected one number"));
    }
    let (fewest, why) = daemon.spec().fewest_workers;
    if least < fewest {
        return Err(format!("{daemon} needs at least {fewest} workers, {why}"));
    }
    Ok(least..=most)
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;
    use super::*;

    #[test]
    fn each_daemon_has_one_number_or_two_that_it_can_have() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yml");
        let read = |text: &str| {
            std::fs::write(&path, format!("workers: {{{text}}}\n")).unwrap();
            ConfigFile::read(&path).map_err(|error| error.to_string())
        };
        let workers = read("downloading: 4-16, storing: 8").unwrap().workers().clone();
        assert_eq!(workers, WorkerBounds::from([(Daemon::Downloading, 4..=16), (Daemon::Storing, 8..=8)]));
        for (text, expected) in [
            ("nobody: 1", "workers: nobody: "),
            ("storing: 0", "expected a number from 1 to 1000"),
            ("storing: 5-4", "or a range such as 2-16"),
            ("storing: [1]", "config.yml"),
            ("report: 1-2", "report has a fixed number of workers"),
            ("access: 1", "access needs at least"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
