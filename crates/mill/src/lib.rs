//! The mill: copies of content in other stores, as policies want them.
//!
//! - [`policy`]: which space is copied from where to where, in the files of the `DuraCloud` Mill;
//! - [`account`]: whose content it is; [`asides`]: what is kept of content that was deleted or written over;
//! - [`limits`]: what an operator allows in a store, and [`stores`] that keep to it;
//! - [`audit`]: what a change leads to; [`bit`]: what a check of a copy proves; [`duplicate`]: what is done to a copy;
//! - [`copies`]: which copies of an object there are; [`merge`]: two listings side by side;
//! - [`presence`]: which processes there are; [`metrics`]: what each of them counts;
//! - [`producer`]: goes through everything, and asks for what is missing; [`why`]: why a copy is not done yet;
//! - [`stats`]: what spaces have; [`store_events`]: what stores say of their changes; [`run`]: all of it at work;
//! - [`users`]: the names under which all that is recorded;
//! - [`worker`]: tasks are taken, processed, and come to an end.
//!
//! # Invariants
//! - Nothing is decided by a file that could not be read, nor by a listing that ended with an error.
//! - A store, a space, an account or a policy that vanishes never leads to a deletion.

pub mod account;
pub mod asides;
pub mod audit;
pub mod bit;
pub mod copies;
pub mod duplicate;
pub mod limits;
pub mod merge;
pub mod metrics;
mod missing;
pub mod policy;
pub mod presence;
pub mod prices;
pub mod producer;
pub mod run;
pub mod stats;
pub mod store_events;
pub mod stores;
pub mod users;
pub mod why;
mod words;
pub mod worker;
