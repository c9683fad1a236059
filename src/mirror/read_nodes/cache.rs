//! What was read a moment ago.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Item;
use queuekeeper_queue::path::NodePath;

/// A list of fewer names is not worth keeping: it is read again in a moment.
const LONG: usize = 1_000;

/// How many lists are kept: some 4 MB each for the longest folders that work.
const LISTINGS: usize = 4;

/// How many items are kept.
const ITEMS: usize = 32;

/// How long an item is kept. An open page asks for it again with every change of the queue.
const FRESH: Duration = Duration::from_secs(1);

/// Long lists of children, which stay right until a child comes or goes.
#[derive(Debug, Default)]
pub(super) struct Listings {
    lists: BTreeMap<NodePath, (i64, u64, Arc<Vec<String>>)>,
    turn: u64,
}

impl Listings {
    /// The names of the children, unless one came or went since: then the znode's `pzxid` is another.
    pub(super) fn get(&mut self, path: &NodePath, pzxid: i64) -> Option<Arc<Vec<String>>> {
        let (of, used, names) = self.lists.get_mut(path)?;
        if *of != pzxid {
            self.lists.remove(path);
            return None;
        }
        self.turn += 1;
        *used = self.turn;
        Some(Arc::clone(names))
    }

    pub(super) fn put(&mut self, path: &NodePath, pzxid: i64, names: &Arc<Vec<String>>) {
        if names.len() < LONG {
            return;
        }
        self.turn += 1;
        self.lists.insert(path.clone(), (pzxid, self.turn, Arc::clone(names)));
        if self.lists.len() > LISTINGS {
            let oldest = self.lists.iter().min_by_key(|(_, (_, used, _))| *used).map(|(path, _)| path.clone());
            oldest.map(|path| self.lists.remove(&path));
        }
    }
}

/// Items that were read within the last second.
#[derive(Debug, Default)]
pub(super) struct Recent {
    items: BTreeMap<NodePath, (Instant, Arc<Item>)>,
}

impl Recent {
    pub(super) fn get(&self, path: &NodePath, now: Instant) -> Option<Arc<Item>> {
        let (at, item) = self.items.get(path)?;
        (now.duration_since(*at) < FRESH).then(|| Arc::clone(item))
    }

    /// Keeps what was requested at an instant.
    pub(super) fn put(&mut self, path: &NodePath, item: Arc<Item>, at: Instant) {
        self.items.retain(|_, (then, _)| at.duration_since(*then) < FRESH);
        if self.items.len() < ITEMS {
            self.items.insert(path.clone(), (at, item));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_right_until_a_child_comes_or_goes_and_few_are_kept() {
        let names = Arc::new(vec![String::new(); LONG]);
        let path = |number: usize| NodePath::parse(&format!("/{number}")).unwrap();
        let mut lists = Listings::default();
        for number in 0..LISTINGS {
            lists.put(&path(number), 7, &names);
        }
        assert!(lists.get(&path(0), 7).is_some());
        lists.put(&path(9), 7, &names);
        assert!(lists.get(&path(1), 7).is_none() && lists.get(&path(0), 7).is_some(), "the one not used goes");
        assert!(lists.get(&path(0), 8).is_none());
        lists.put(&path(10), 7, &Arc::new(vec![String::new(); LONG - 1]));
        assert!(lists.get(&path(10), 7).is_none());
    }
}
