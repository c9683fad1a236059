//! What a deposit goes through on its way to a stored object, and the daemons that take it there.
//!
//! From the bytes up, first what needs neither ZooKeeper nor the catalogue:
//!
//! - [`name`]: what files may be called; [`url`]: what may be fetched, from where, and how a URL is shown;
//! - [`kind`]: types of deposits and forms of containers; [`manifest`]: reading, comparing and writing manifests;
//! - [`ark`]: identifiers, and names that are made here; [`profile`]: what holds for a collection's deposits;
//! - [`space`]: which jobs get room on the working storage; [`file_root`]: files that appear whole or not at all;
//! - [`fetch`]: files over HTTP; [`unpack`]: unpacking containers, and BagIt bags in them; [`pack`]: making one, of
//!   what a depositor has as files and directories.
//!
//! Then the daemons:
//!
//! - [`deposit`]: from a payload to a batch; [`resubmit`]: the failed rows of one; [`daemon`]: which daemons there are;
//!   [`settings`]: what an operator sets; [`metrics`]: what they count; [`services`]: what they share;
//! - [`spec`]: what a job is to do; [`working`], [`files`]: where its files lie, and which it has;
//! - [`grants`]: who was granted how much of the working storage;
//! - [`steps`]: what is done with a job in each state; `metadata`: what the deposited files say of their object;
//!   [`step`]: how that ends; [`warnings`]: what is odd about a package; [`yaml`]: what is wrong with a file; `mail`:
//!   what is written to depositors; [`outbox`]: how it is sent;
//! - [`parts`]: deposits of several batches; [`copies`]: how many of their objects have copies;
//! - `batches`, `reports`, [`access`], [`cleanup`]: the daemons that take no jobs; [`rebuild`]: the inventory, made
//!   again from the stores; [`contents`]: what lies in the stores, read;
//! - `recorded`: what storing and cleaning up change in a store, in the audit log;
//! - `blocking`: work on the disk; [`engine`]: sessions, lanes and workers, which run all of these; [`fuzzing`]:
//!   decoders, for the fuzzing alone.
//!
//! # Invariants
//! - Everything that comes from a depositor is hostile: sizes, numbers and depths are limited before memory is taken.
//! - No URL's query, user or password is in an error, a log, or the output of `Debug`.
//! - What is written to the disk may be written again after a crash at any instruction, with the same result.

pub mod access;
pub mod ark;
mod batches;
mod blocking;
pub mod cleanup;
mod clock;
pub mod contents;
pub mod copies;
pub mod daemon;
pub mod deposit;
pub mod engine;
mod ezid;
pub mod fetch;
pub mod file_root;
pub mod files;
pub mod fuzzing;
pub mod grants;
pub mod kind;
mod mail;
pub mod manifest;
pub mod metadata;
pub mod metrics;
pub mod name;
pub mod outbox;
pub mod pack;
pub mod parts;
pub mod profile;
pub mod progress;
pub mod rebuild;
mod recorded;
mod reports;
pub mod resubmit;
pub mod services;
pub mod settings;
pub mod space;
pub mod spec;
pub mod step;
pub mod steps;
pub mod unpack;
pub mod url;
pub mod warnings;
pub mod withdrawal;
pub mod working;
pub mod yaml;
