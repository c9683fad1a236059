//! Alerts that act: Alertmanager reports a condition, and a rule of the operator defines the response.
//!
//! The processing of an alert:
//!
//! 1. [`Payload`] is the message of Alertmanager; everything in it is untrusted.
//! 2. [`Alerts::receive`], in any process that is called, finds the [`Rule`]s that match the alert, checks whether they
//!    may act at all (`guard`), and stores a [`Decision`] as a znode before it responds.
//! 3. The leader processes the decisions (`act`): it selects the items at that moment (`select`), freezes them as a
//!    list in the decision, and then executes item by item, each checked again and committed in one transaction of
//!    [`actions`](crate::actions) that also updates the decision and the budget ([`Memory`]), and checks that this
//!    process is still the leader and nothing is paused.
//! 4. Everything is recorded, counted (`metrics`) and shown ([`Alerts::overview`]).
//!
//! A rule in dry run is processed up to the list, writes nothing to ZooKeeper, and reports what it would have done.

mod accept;
mod act;
mod audit_check;
mod call;
mod decision;
mod dry_run;
mod evaluation;
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod item;
mod memory;
mod metrics;
mod outcome;
mod overview;
mod payload;
mod rate_limit;
mod recent;
mod resolve;
mod rule;
mod rule_test;
mod run;
mod select;
mod server;
mod status;
mod time;

pub use accept::{NotReceived, Received};
pub use decision::Decision;
pub use foreign::{Foreign, foreign};
pub use memory::{Breaker, Memory, RuleHold, SharedBudget};
pub use metrics::Metrics;
pub use outcome::AlertOutcome;
pub use overview::{EventRow, Overview, RuleOverview, RulesPause};
pub use payload::{Alert, BadPayload, MAX_MESSAGE_BYTES, Payload, Status};
pub use rule::{Budget, Mode, Narrow, Rule, RuleAction, RuleItems, Rules, Selector};
pub use rule_test::RuleTest;
pub use run::AlertRunner;
pub use server::{Alerts, NotChanged};
pub use status::{RuleStatus, RulesStatus};
