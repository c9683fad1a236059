//! What a service was found to do.

use crate::digest::Algorithm;
use crate::key::KeyForm;
use crate::store::Condition;

/// What a service does, as far as writing depends on it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
pub(super) struct Found {
    pub(super) put_if_absent: bool,
    pub(super) put_if_match: bool,
    pub(super) complete_if_absent: bool,
    pub(super) complete_if_match: bool,
    pub(super) copy_if_absent: bool,
    pub(super) copy_if_match: bool,
    pub(super) delete_if_match: bool,
    /// The checksums that it keeps of content that is sent whole.
    pub(super) kept_whole: Vec<Algorithm>,
    /// The checksum of the whole that it keeps of content in parts.
    pub(super) kept_of_parts: Option<Algorithm>,
    /// The forms of keys that it takes for other keys.
    pub(super) refused_keys: Vec<KeyForm>,
    pub(super) versions: bool,
    pub(super) object_lock: bool,
}

impl Found {
    /// Whether a write of the whole on this condition is one.
    pub(super) fn holds_for_put(&self, condition: &Condition) -> bool {
        match condition {
            Condition::None => true,
            Condition::IfAbsent => self.put_if_absent,
            Condition::IfMatch(_) => self.put_if_match,
        }
    }

    /// Whether the end of an upload in parts on this condition is one.
    pub(super) fn holds_for_parts(&self, condition: &Condition) -> bool {
        match condition {
            Condition::None => true,
            Condition::IfAbsent => self.complete_if_absent,
            Condition::IfMatch(_) => self.complete_if_match,
        }
    }
}
