//! What an operator may request, and everything that stands between his action and the queue.
//!
//! An [`Action`] needs an [`Actor`] and a [`Reason`], or it does not exist. Built only from the transactions of
//! [`queue`](queuekeeper_queue), it happens whole or says why not.
//!
//! - What may be requested: [`ActionKind`], on which [`Target`], and by which [`Role`].
//! - [`Actions::plan`] shows what an action would do, [`Actions::execute`] does it: it reads and checks (`prepare`), writes
//!   down that it was requested ([`audit`]), commits, and writes down what came of it.
//! - [`Actions::freeze`] and [`Actions::execute_frozen`] do it to many, item by item (`bulk`).
//! - [`Actions::execute_beside`] does it in one transaction with znodes of our own, for what acts by itself (`beside`).
//! - What goes on and what came of it: [`Execution`], by the action's id.

mod action;
mod actor;
pub mod audit;
mod beside;
mod bulk;
mod carry_out;
mod clock;
mod execute;
mod execution;
mod kind;
mod metrics;
mod prepare;
mod refusal;
mod runner;
mod session;

pub use action::{Action, NoReason, Precondition, Reason};
pub use actor::{Actor, Role, Source, UnknownRole};
pub use beside::NotBeside;
pub use bulk::{BulkAction, Frozen, ListOf, MOST_ITEMS};
pub use clock::{Clock, MeasureClock};
pub use execute::{Accepted, Actions};
pub use execution::{Execution, Outcome, Reached};
pub use kind::{ActionKind, Target, UnknownAction, UnknownTarget};
pub use metrics::Metrics;
pub use prepare::Prepared;
pub use refusal::Refusal;
pub use runner::Runner;

// The words of the queue in which actions are told: for whoever gives them and need know nothing else of the queue.
pub use queuekeeper_queue::fault::Fault;
pub use queuekeeper_queue::id::JobId;
pub use queuekeeper_queue::path::Path;
pub use queuekeeper_queue::state::{JobState, State};
