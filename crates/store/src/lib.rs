//! Content stores: places where content lies under keys, and what is promised about them.
//!
//! A [`Store`] is a directory or a bucket of S3; a [`SpaceName`] names a part of it, a [`Key`] an item in that part.
//! From the bytes up:
//!
//! - [`name`], [`key`]: what things are called, checked; [`digest`]: algorithms, digests, and all of them in one pass;
//! - [`store`]: the trait, and what its operations take and return; [`error`]: one line for each failure;
//! - `sorted`: records that are sorted outside of memory;
//! - [`directory`]: a directory as a store;
//! - [`limit`], [`retry`], [`metrics`]: what stores share: how many requests at once, how often again, what is counted;
//! - [`s3`]: buckets of S3, or of what speaks its protocol;
//! - [`guarded`]: a store that asks before each write whether it may begin;
//! - [`ocfl`]: objects with versions, in any store;
//! - [`archive`]: what is asked for where content cannot be read at once;
//! - [`noted`]: a store that notes the changes made through it, to be recorded together;
//! - [`audit`]: what [`AuditSink`](audit::AuditSink)s record of changes; [`audited`]: a store of which every change is
//!   recorded, whatever dies on the way.
//!
//! # Invariants
//! - Content is streamed: no operation holds a whole file in memory.
//! - Content appears whole or not at all, and only after its digests were compared with those that were expected and
//!   its [`CommitGuard`](store::CommitGuard) let it through.
//! - No key is skipped, normalized, or taken for another.
//! - Nothing here knows ZooKeeper, SQL or HTTP routes.

pub mod archive;
pub mod audit;
pub mod audited;
pub mod counted;
pub mod digest;
pub mod directory;
pub mod error;
pub mod guarded;
pub mod key;
pub mod limit;
pub mod metrics;
pub mod name;
pub mod noted;
pub mod ocfl;
pub mod retry;
pub mod s3;
mod sorted;
pub mod store;
pub mod time;

pub use audited::Audited;
pub use counted::Counted;
pub use digest::{Algorithm, Digest, Digests, Hashers};
pub use directory::DirectoryStore;
pub use error::{Error, ErrorKind};
pub use guarded::{Guarded, WriteGuard};
pub use key::{Key, KeyForm};
pub use metrics::{StoreFamilies, StoreMetrics};
pub use name::{SpaceName, StoreName};
pub use noted::Noted;
pub use s3::{S3Config, S3Store};
pub use store::{Item, Store};
