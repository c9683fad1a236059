//! Suspicions that a walk could not date: they show by znodes of which it knows only the names.

use crate::mirror::faults::Suspicion;
use crate::mirror::image::Image;
use queuekeeper_queue::fault::{Limits, Since};
use queuekeeper_queue::path::Path;

/// A suspicion, and what would date it.
#[derive(Debug)]
pub(in crate::mirror) struct Undated {
    item: Path,
    suspicion: Suspicion,
    /// The last change of the znodes that are known which may have caused it.
    hint_ms: Option<i64>,
    /// The znodes that show it and of which only the names are known. It is no older than any of them.
    pub(in crate::mirror) nodes: Vec<Path>,
}

impl Image {
    /// What a walk has found, at most so many of them.
    pub(in crate::mirror) fn undated(&self, limits: &Limits, most: usize) -> Vec<Undated> {
        let undated = self.faults.suspects.undated().filter_map(|(item, suspicion)| {
            let (mut hint_ms, mut nodes) = (None, Vec::new());
            self.findings(&self.faults, item, limits, &mut |finding| {
                if let (true, Since::Seen(at_ms)) = (suspicion.is_of(&finding), finding.since) {
                    hint_ms = hint_ms.max(at_ms);
                    nodes.extend((finding.nodes)().into_iter().filter(is_name));
                }
            });
            (!nodes.is_empty()).then(|| Undated { item: item.clone(), suspicion: *suspicion, hint_ms, nodes })
        });
        undated.take(most).collect()
    }

    /// Dates a suspicion by when the znodes that show it were created, as far as these are there. Milliseconds by the
    /// servers' clock.
    pub(in crate::mirror) fn date(&mut self, undated: &Undated, created_ms: impl Fn(&Path) -> Option<i64>) {
        if let Some(created_ms) = undated.nodes.iter().filter_map(created_ms).max() {
            let since_ms = undated.hint_ms.map_or(created_ms, |hint_ms| hint_ms.max(created_ms));
            self.faults.suspects.date(&undated.item, &undated.suspicion, since_ms);
        }
    }
}

/// Whether a walk learns no more of a znode than its name.
fn is_name(path: &Path) -> bool {
    matches!(path, Path::Entry(..) | Path::Reference(..) | Path::Unexpected(_))
}
