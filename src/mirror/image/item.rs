//! What a batch and an access request have in common.

use std::sync::Arc;

use zookeeper_client::Stat;

use super::change::{Observation, ObservedState};
use super::row::{LockStat, Nodes, UNKNOWN_MS};
use crate::mirror::read::Found;
use crate::mirror::text::cut;
use queuekeeper_queue::record::{Decoded, ItemStatus};
use queuekeeper_queue::state::State;

/// A batch or request, as far as its own znode, `status` and `lock` say. There are few beside the jobs, so each has its
/// texts to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item<S> {
    pub(super) nodes: Nodes,
    pub(super) unreadable: Nodes,
    /// Of these, the ones that hold something else than they should; the others are not readable.
    pub(super) malformed: Nodes,
    pub(super) has_status: bool,
    pub(super) state: Option<S>,
    pub(super) entered_ms: i64,
    pub(super) created_ms: i64,
    pub(super) status_version: i32,
    /// The status text, where it names no state that we know or is spelled as the daemons do not.
    pub(super) status_text: Arc<str>,
    pub(super) message: Arc<str>,
    pub(super) lock: Option<LockStat>,
}

impl<S> Default for Item<S> {
    fn default() -> Self {
        Self {
            nodes: Nodes::default(),
            unreadable: Nodes::default(),
            malformed: Nodes::default(),
            has_status: false,
            state: None,
            entered_ms: UNKNOWN_MS,
            created_ms: UNKNOWN_MS,
            status_version: -1,
            status_text: Arc::default(),
            message: Arc::default(),
            lock: None,
        }
    }
}

impl<S: State> Item<S> {
    pub(super) fn seen(&self) -> ObservedState<S> {
        ObservedState::of(self.state, self.has_status)
    }

    /// Where it is, with what shows how it came there.
    pub(super) fn observation(&self) -> Observation<S> {
        Observation {
            seen: self.seen(),
            entered_ms: self.entered_ms,
            created_ms: self.created_ms,
            version: self.status_version,
        }
    }

    /// Takes note of a znode being there or not, and of its being readable.
    pub(super) fn note(&mut self, bit: u8, found: &Found, malformed: bool) {
        self.nodes.set(bit, found.is_present());
        self.unreadable.set(bit, malformed || matches!(found, Found::Denied));
        self.malformed.set(bit, malformed);
    }

    /// Sets what the item's own znode says.
    pub(super) fn set_own(&mut self, stat: Option<&Stat>) {
        self.created_ms = stat.map_or(UNKNOWN_MS, |stat| stat.ctime);
        // A status that is there and not readable dates nothing either.
        if self.status_version < 0 {
            self.entered_ms = self.created_ms;
        }
    }

    /// Sets what `status` says. Gives whether it was malformed.
    pub(super) fn set_status(&mut self, found: &Found) -> bool {
        let decoded = found.node().map(|(data, _)| ItemStatus::<S>::decode(data));
        let Decoded { value, malformed } = decoded.unwrap_or(Decoded { value: ItemStatus::default(), malformed: None });
        let odd = if value.status.is_canonical() { "" } else { &value.status.text };
        self.has_status = found.is_present();
        self.state = value.status.state;
        self.status_text = cut(odd).into();
        self.message = cut(&value.message).into();
        self.entered_ms = found.node().map_or(self.created_ms, |(_, stat)| stat.mtime);
        self.status_version = found.node().map_or(-1, |(_, stat)| stat.version);
        malformed.is_some()
    }

    /// Sets what `lock` says.
    pub(super) fn set_lock(&mut self, stat: Option<&Stat>) {
        self.lock = stat.map(LockStat::of);
    }
}
