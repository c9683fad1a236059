//! What a deposit goes through on its way to a stored object, as far as it needs neither ZooKeeper nor the catalogue.
//!
//! From the bytes up:
//!
//! - [`name`]: what files may be called; [`url`]: what may be fetched, from where, and how a URL is shown;
//! - [`kind`]: types of deposits and forms of containers; [`manifest`]: reading, comparing and writing manifests;
//! - [`ark`]: identifiers, and names that are made here; [`profile`]: what holds for a collection's deposits;
//! - [`space`]: which jobs get room on the working storage; [`place`]: files that appear whole or not at all;
//! - [`fetch`]: files over HTTP; [`archive`]: unpacking containers, and BagIt bags in them.
//!
//! # Invariants
//! - Everything that comes from a depositor is hostile: sizes, numbers and depths are limited before memory is taken.
//! - No URL's query, user or password is in an error, a log, or the output of `Debug`.
//! - What is written to the disk may be written again after a crash at any instruction, with the same result.

pub mod archive;
pub mod ark;
pub mod fetch;
pub mod kind;
pub mod manifest;
pub mod name;
pub mod place;
pub mod profile;
pub mod space;
pub mod url;
