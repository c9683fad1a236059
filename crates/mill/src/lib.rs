//! The mill: copies of content in other stores, as policies want them.
//!
//! - [`policy`]: which space is copied from where to where, in the files of the `DuraCloud` Mill;
//! - [`account`]: whose content it is; [`asides`]: what is kept of content that was deleted or written over;
//! - [`audit`]: what a change leads to; [`duplicate`]: what is done to a copy;
//! - [`copies`]: which copies of an object there are; [`merge`]: two listings side by side;
//! - [`presence`]: which processes there are;
//! - [`producer`]: goes through everything, and asks for what is missing;
//! - [`stats`]: what spaces have; [`store_events`]: what stores say of their changes; [`run`]: all of it at work;
//! - [`worker`]: tasks are taken, processed, and come to an end.
//!
//! # Invariants
//! - Nothing is decided by a file that could not be read, nor by a listing that ended with an error.
//! - A store, a space, an account or a policy that vanishes never leads to a deletion.

pub mod account;
pub mod asides;
pub mod audit;
pub mod copies;
pub mod duplicate;
pub mod merge;
mod missing;
pub mod policy;
pub mod presence;
pub mod producer;
pub mod run;
pub mod stats;
pub mod store_events;
pub mod worker;
