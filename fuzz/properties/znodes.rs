//! The znodes of a tree, from the lines of a dump.

use std::collections::BTreeMap;

use queuekeeper::mirror::fuzzing::Znode;
use queuekeeper_queue::dump::line::{DumpLine, read_line};

/// The znodes in the lines of a dump; what is no such line is passed over, and of two with one path the last counts.
#[must_use]
pub fn znodes(lines: &[u8]) -> Vec<Znode> {
    // Without a root there is no tree.
    let mut found = BTreeMap::from([("/".to_owned(), (Vec::new(), false))]);
    for line in lines.split(|byte| *byte == b'\n') {
        if let Ok(DumpLine::Node(node)) = read_line(line) {
            found.insert(node.path.into_owned(), (node.data, node.is_ephemeral));
        }
    }
    let znode = |(path, (data, is_ephemeral))| Znode { path, data, is_ephemeral };
    found.into_iter().map(znode).collect()
}
