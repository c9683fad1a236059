//! Objects in a store, in the Oxford Common File Layout (OCFL) 1.1: what is needed to read them without this program is
//! in the store itself.
//!
//! A space is an OCFL storage root ([`Root`]), in which each identifier leads to one object ([`Object`]). An object has
//! versions; an *inventory* says which logical paths each version has, and under which content paths the bytes lie.
//! From the bytes up:
//!
//! - `layout`: where an object lies (extension 0003); `path`: what logical paths may be, and under which content path a
//!   file is written;
//! - [`Inventory`]: sorted outside of memory, read and written as a stream;
//! - [`Snapshot`]: one state of an object, read at one instant, with its versions and files;
//! - [`Writer`]: a new version, from its files to the moment at which readers see it;
//! - [`Object::repair`]: finishes or removes what a writer left that was stopped; [`Object::verify`]: reads everything
//!   and compares.
//!
//! # How a version appears
//! 1. Content, below `vN/content/JOB-UUID/`, each under a key that no other job uses.
//! 2. `vN/inventory.json`, only where there is none. **This is the instant at which the version is decided**: of two
//!    writers, one gets it. All content is there by then.
//! 3. What follows from it, in any order of processes but in this order of steps: the sidecar of that inventory, the
//!    root inventory (in place of the one before, by its entity tag), the root sidecar, and for a new object its
//!    declaration `0=ocfl_object_1.1`. The next process - the same job, another writer, a repair - finishes the steps
//!    that a stopped writer did not; repeating them changes nothing.
//!
//! The declaration comes last, so that other programs find an object only when it is whole.
//!
//! # Invariants
//! - Readers get the old version or the new one, never parts of both.
//! - Nothing that an inventory names is ever overwritten or removed; content is removed only where no inventory can
//!   come to name it.
//! - No operation holds a file, or what an inventory says of many files, in memory.

mod chunks;
mod clean;
mod commit;
mod error;
mod feed;
mod file;
mod finish;
mod inventory;
mod layout;
mod object;
mod path;
mod repair;
mod root;
mod verify;
mod writer;

pub use error::OcflError;
pub use inventory::{FileEntry, Inventory, User, VersionInfo};
pub use object::{Object, Snapshot};
pub use path::PathError;
pub use repair::{Abandoned, Repaired};
pub use root::{Found, Root};
pub use verify::{OcflFinding, Verified};
pub use writer::{Begun, NewFile, NewVersion, Start, Writer};
