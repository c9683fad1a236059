//! Folders that grow too large to be listed.

use super::finding::Sink;
use super::item::by_shape;
use super::{Fault, Limits};
use crate::path::Path;

/// Detects the faults of a folder of so many children.
pub fn detect_folder(path: &Path, children: u64, limits: &Limits, sink: &mut Sink<'_>) {
    if children >= limits.folder_children {
        // The list of 52,000 names is 1 MiB, which is the most that the Java client reads.
        let how = "It has nearly as many children as a Java client can list, or more.";
        sink(by_shape(Fault::FolderNearLimit, how, limits.grace, None, &|| vec![path.clone()]));
    }
}
