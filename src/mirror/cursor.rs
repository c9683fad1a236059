//! What every list's cursor has in common.

/// A text that is no cursor, or that of another list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the cursor that an earlier page of the same list gave")]
pub struct InvalidCursor;
