//! One write to a znode of our own, as a part of a transaction.

/// One write of a transaction, by the znode's path below the chroot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Refuses the transaction unless the znode is there.
    Present(String),
    /// Refuses the transaction if the znode is there. ZooKeeper has no such check: it is made and removed again, and no
    /// client sees it in between.
    Absent(String),
    /// Makes a persistent znode.
    Create(String, Vec<u8>),
    /// Replaces the data that has this version.
    Set(String, Vec<u8>, i32),
    /// Deletes the znode of which the data has this version.
    Delete(String, i32),
}

impl Write {
    /// The znode that it is about.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Present(path)
            | Self::Absent(path)
            | Self::Create(path, _)
            | Self::Set(path, ..)
            | Self::Delete(path, _) => path,
        }
    }
}
