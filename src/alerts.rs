//! Alerts that act: Alertmanager says that something is wrong, and a rule of the operator's says what may be done about it.
//!
//! The way of an alert:
//!
//! 1. [`Payload`] is what Alertmanager sends; everything in it is hostile.
//! 2. [`Alerts::receive`], in whichever process was called, finds the [`Rule`]s that name the alert, looks whether it may
//!    be acted upon at all (`guard`), and writes a [`Decision`] down as a znode before it answers.
//! 3. The process that leads looks after the decisions (`act`): what there is to do at that moment (`select`), frozen as a
//!    list with the decision; then item by item, each one checked again and done by one transaction of
//!    [`actions`](crate::actions) that also moves the decision on, takes from the budget ([`Memory`]), and checks that this
//!    process still leads and nothing is paused.
//! 4. Everything is written down, counted (`metrics`) and shown ([`Alerts::overview`]).
//!
//! A rule in dry run goes the same way up to the list, writes nothing to ZooKeeper, and tells what it would have done.

mod accept;
mod act;
mod book;
mod call;
mod decision;
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod item;
mod memory;
mod metrics;
mod outcome;
mod overview;
mod pace;
mod payload;
mod rehearse;
mod resolve;
mod rule;
mod run;
mod select;
mod server;
mod standing;
mod time;
mod trial;
mod written;

pub use accept::{NotReceived, Received};
pub use decision::Decision;
pub use foreign::{Foreign, foreign};
pub use memory::{Breaker, Hold, Memory, Together};
pub use metrics::Metrics;
pub use outcome::Outcome;
pub use overview::{EventRow, Overview, Pause, RuleOverview};
pub use payload::{Alert, BadPayload, Payload, Status};
pub use rule::{Budget, Mode, Narrow, Remedy, Rule, Rules, Selector};
pub use run::Runner;
pub use server::{Alerts, NotChanged};
pub use standing::{RuleStanding, Standing};
pub use trial::Trial;
