//! Lost or gained read permissions. No event reports them, and servers withhold events of znodes that a client may not
//! read (CVE-2024-23944). Events of readable znodes are the hint: a change of a status also changes a znode next to it.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::mirror::image::Image;
use crate::mirror::read::Found;
use queuekeeper_queue::path::{BatchNode, EntryName, JobNode, Path, RequestNode};

/// How far apart the log names what has been closed to us.
const WARN_SPACING: Duration = Duration::from_mins(1);

/// The znodes that may have changed by what has, although no event reported them: of each item of which one did, the
/// status and whatever is closed to us as far as we know.
pub(super) fn implied(dirty: &[Path], image: &Image) -> HashSet<Path> {
    let mut implied = HashSet::new();
    for item in dirty.iter().flat_map(items).flatten().collect::<HashSet<_>>() {
        implied.extend(image.closed_nodes(&item));
        implied.extend(status(&item));
    }
    for path in dirty {
        implied.remove(path);
    }
    implied
}

/// The jobs, batches and requests that a znode belongs to.
fn items(path: &Path) -> [Option<Path>; 2] {
    match path {
        Path::Job(job) | Path::JobNode(job, _) | Path::Entry(_, EntryName { job, .. }) => [Some(Path::Job(*job)), None],
        Path::Reference(batch, _, job) => [Some(Path::Job(*job)), Some(Path::Batch(*batch))],
        Path::Batch(batch) | Path::BatchNode(batch, _) | Path::BatchOutcome(batch, _) => {
            [Some(Path::Batch(*batch)), None]
        }
        Path::Request(queue, request) | Path::RequestNode(queue, request, _) => {
            [Some(Path::Request(*queue, *request)), None]
        }
        _ => [None, None],
    }
}

fn status(item: &Path) -> Option<Path> {
    match item {
        Path::Job(job) => Some(Path::JobNode(*job, JobNode::Status)),
        Path::Batch(batch) => Some(Path::BatchNode(*batch, BatchNode::Status)),
        Path::Request(queue, request) => Some(Path::RequestNode(*queue, *request, RequestNode::Status)),
        _ => None,
    }
}

/// Znodes that were found closed to us and that the log has not named.
#[derive(Debug, Default)]
pub(in crate::mirror) struct Closed {
    waiting: Option<(u64, Path)>,
    warned: Option<Instant>,
}

impl Closed {
    /// Takes note of reads before they are applied to the image.
    pub(in crate::mirror) fn note(&mut self, reads: &[(Path, Found)], image: &Image) {
        let denied = reads.iter().filter(|(_, found)| matches!(found, Found::Denied));
        for (path, _) in denied.filter(|(path, _)| !image.is_unreadable(path)) {
            self.waiting.get_or_insert_with(|| (0, path.clone())).0 += 1;
        }
    }

    /// Logs them, at once or a minute after the last ones: they may come and go.
    pub(in crate::mirror) fn warn(&mut self, now: Instant) {
        if let Some((znodes, first)) = self.take(now) {
            warn!(
                znodes,
                %first,
                "ZooKeeper denies these credentials access to further znodes (NoAuth): check their ACLs and --zookeeper.auth-file"
            );
        }
    }

    fn take(&mut self, now: Instant) -> Option<(u64, Path)> {
        if self.warned.is_some_and(|warned| now.duration_since(warned) < WARN_SPACING) {
            return None;
        }
        let waiting = self.waiting.take()?;
        self.warned = Some(now);
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuekeeper_queue::id::JobId;

    fn denied(jobs: std::ops::Range<u32>) -> Vec<(Path, Found)> {
        jobs.map(|job| (Path::JobNode(JobId::new(job), JobNode::Status), Found::Denied)).collect()
    }

    #[test]
    fn what_is_closed_is_named_once_and_no_oftener_than_every_minute() {
        let (mut image, mut closed, start) = (Image::default(), Closed::default(), Instant::now());
        let mut see = |reads: Vec<(Path, Found)>, closed: &mut Closed| {
            closed.note(&reads, &image);
            for (path, found) in reads {
                image.apply(path, &found);
            }
        };
        see(denied(0..3), &mut closed);
        let first = denied(0..1).remove(0).0;
        assert_eq!(closed.take(start), Some((3, first)));
        see(denied(0..5), &mut closed);
        see(denied(2..6), &mut closed);
        assert_eq!(closed.take(start + WARN_SPACING / 2), None);
        let first = denied(3..4).remove(0).0;
        assert_eq!(closed.take(start + WARN_SPACING), Some((3, first)));
        assert_eq!(closed.take(start + WARN_SPACING * 2), None);
    }
}
