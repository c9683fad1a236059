//! The status of a batch or access request, as the Java daemons can load it.

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::too_large_to_lose;
use crate::path::Path;
use crate::record::{self, ItemStatus, Malformed};
use crate::state::State;
use crate::transaction::Transaction;

/// A status that is to be written.
pub(super) struct StatusWrite {
    path: Path,
    new: Vec<u8>,
    /// The old data that the new does not keep.
    lost: Option<Vec<u8>>,
    version: Option<i32>,
    words: String,
}

/// The state that a status names in any spelling, or `derived` where it names none; and the status as the daemons write
/// it, where it is not so already.
///
/// # Errors
/// Why the state is not known.
pub(super) fn loadable_status<S: State>(
    path: &Path,
    found: Option<&(Vec<u8>, Stat)>,
    derived: Option<S>,
    now: Timestamp,
) -> Result<(S, Option<StatusWrite>), String> {
    let old = found.map(|(data, _)| data.as_slice()).unwrap_or_default();
    let data = record::as_utf8(old);
    let decoded = ItemStatus::<S>::decode(&data);
    let status = &decoded.value.status;
    let text = status.text.trim();
    let state = match status.state.or_else(|| S::from_any(text)) {
        Some(state) => state,
        None if !text.is_empty() => return Err(format!("status has an unknown state, {text}")),
        None => derived.ok_or_else(|| match (&decoded.malformed, found) {
            (Some(malformed), Some(_)) => format!("status {malformed}"),
            (_, _) => "status does not exist".to_owned(),
        })?,
    };
    if status.is_canonical() && decoded.malformed.is_none() && std::str::from_utf8(old).is_ok() {
        return Ok((state, None));
    }
    // Of an object each key is kept.
    let is_kept = old.is_empty() || matches!(decoded.malformed, None | Some(Malformed::Missing(_)));
    if let Some(why) = too_large_to_lose(old).filter(|_| !is_kept) {
        return Err(format!("status {why}"));
    }
    let write = StatusWrite {
        path: path.clone(),
        new: record::loadable_item_status(&data, state, now),
        lost: (!is_kept).then(|| old.to_vec()),
        version: found.map(|(_, stat)| stat.version),
        words: format!("status: {state}, which counts as entering the state now"),
    };
    Ok((state, Some(write)))
}

impl StatusWrite {
    pub(super) fn add(self, changes: &mut Transaction, loses: &mut Vec<(Path, Vec<u8>)>, words: &mut Vec<String>) {
        loses.extend(self.lost.map(|old| (self.path.clone(), old)));
        words.push(self.words);
        match self.version {
            Some(version) => changes.set(self.path, self.new, version),
            None => changes.create(self.path, self.new),
        };
    }
}
