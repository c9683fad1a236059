//! The present time.

use jiff::Timestamp;

/// The present time.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
