//! The oracle for the mirror: the whole tree, read in the plainest way there is.

use std::collections::BTreeMap;

use zookeeper_client::{Client, Error, Stat};

/// Every znode with its data and its `Stat`, by path.
pub type Tree = BTreeMap<String, (Vec<u8>, Stat)>;

/// Reads `root` and all below it, depth first, one `get_data` and one `list_children` at a time.
///
/// The znodes in `skip` are left out with all below them; the server's own `/zookeeper` always is. One that vanishes
/// while the tree is read is left out too, and the tree is empty where `root` does not exist: for a comparison, the
/// tree must have come to rest.
///
/// # Panics
/// When a read fails in another way.
pub async fn read_tree(client: &Client, root: &str, skip: &[&str]) -> Tree {
    let mut tree = Tree::new();
    let mut to_read = vec![root.to_owned()];
    while let Some(path) = to_read.pop() {
        if path == "/zookeeper" || skip.contains(&path.as_str()) {
            continue;
        }
        let (node, children) = match (client.get_data(&path).await, client.list_children(&path).await) {
            (Ok(node), Ok(children)) => (node, children),
            (Err(Error::NoNode), _) | (_, Err(Error::NoNode)) => continue,
            (Err(error), _) | (_, Err(error)) => panic!("cannot read {path}: {error}"),
        };
        let parent = if path == "/" { "" } else { &path };
        to_read.extend(children.iter().map(|name| format!("{parent}/{name}")));
        tree.insert(path, node);
    }
    tree
}
