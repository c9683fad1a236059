//! A session's id.

use std::fmt;

use serde::{Serialize, Serializer};

/// A session, written as ZooKeeper prints it: `0x1000a3f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session(i64);

impl Session {
    /// A session; `None` for 0, which is none.
    pub(crate) fn of(id: i64) -> Option<Self> {
        (id != 0).then_some(Self(id))
    }
}

impl Session {
    /// Its number.
    pub(crate) fn id(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A session in the notation of ZooKeeper's log; `None` for a persistent lock.
pub(crate) fn session_text(session: i64) -> Option<String> {
    (session != 0).then(|| format!("0x{session:x}"))
}
