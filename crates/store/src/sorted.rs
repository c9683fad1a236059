//! Records that are sorted outside of memory: the names of a large folder, the files of a large object.
//!
//! A record is a key and a value, both bytes, in the byte order of keys. From the bytes up:
//!
//! - [`Record`], `Records`: one, and as many as are sorted in memory at a time;
//! - [`Table`]: sorted records, in memory where they are few, else in a temporary file; [`Merged`]: several tables that
//!   are read as one;
//! - [`Sorter`]: takes records in any order and makes a table of them;
//! - [`Map`]: records that are looked up, added and removed by key.
//!
//! Memory does not grow with the number of records, but for some bytes for each block of a file, and two for each key
//! of a [`Map`]. Temporary files have no names: they go with the process, however it ends. All of this blocks its
//! thread.

use std::io;

mod filter;
mod map;
mod merged;
mod record;
mod sorter;
mod table;

pub(crate) use map::Map;
pub(crate) use merged::Merged;
pub(crate) use record::Record;
pub(crate) use sorter::Sorter;
pub(crate) use table::Table;

/// A temporary file that another process, or the disk, has changed.
pub(crate) fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not hold what was written to it")
}
