//! Links to the pages of znodes, relative to the root.

use queuekeeper_queue::path::{NodePath, Path};

/// A path segment, percent-encoded for a URL.
pub(super) fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' => segment.push(char::from(byte)),
            _ => segment.push_str(&format_byte(byte)),
        }
    }
    segment
}

fn format_byte(byte: u8) -> String {
    format!("%{byte:02X}")
}

/// The page of a znode in the tree.
pub(super) fn tree(path: &NodePath) -> String {
    let names: Vec<_> = path.names().map(segment).collect();
    if names.is_empty() { "tree".to_owned() } else { format!("tree/{}", names.join("/")) }
}

/// The most detailed page of a znode: that of its job or batch, or of the znode itself.
pub(super) fn best(path: &Path) -> String {
    match path {
        Path::Job(job) | Path::JobNode(job, _) => format!("jobs/{job}"),
        Path::Batch(batch) | Path::BatchNode(batch, _) => format!("batches/{batch}"),
        other => tree(&NodePath::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_what_it_names() {
        for (path, link) in [
            ("/", "tree"),
            ("/jobs/jid0000000042/status", "jobs/jid0000000042"),
            ("/batches/bid0000000042", "batches/bid0000000042"),
            ("/locks/storage/ark_1", "tree/locks/storage/ark_1"),
            ("/x/a b?#%/é\"", "tree/x/a%20b%3F%23%25/%C3%A9%22"),
        ] {
            let path = NodePath::parse(path).unwrap();
            let known = path.known();
            let shown = if matches!(known, Path::Unexpected(_)) { tree(&path) } else { best(&known) };
            assert_eq!(shown, link);
        }
    }
}
