//! What an operator may order, and everything that stands between his order and the queue.
//!
//! An [`Order`] needs an [`Actor`] and a [`Reason`], or it does not exist. Built only from the transactions of
//! [`queue`](queuekeeper_queue), it happens whole or says why not.
//!
//! - What may be ordered: [`Action`], on which [`Subject`], and by which [`Role`].
//! - [`Actions::plan`] shows what an order would do, [`Actions::execute`] does it: it reads and checks (`prepare`), writes
//!   down that it was ordered ([`audit`]), commits, and writes down what came of it.
//! - [`Actions::freeze`] and [`Actions::execute_frozen`] do it to many, item by item (`bulk`).
//! - [`Actions::execute_beside`] does it in one transaction with znodes of our own, for what acts by itself (`beside`).
//! - What goes on and what came of it: [`Work`], by the order's id.

mod action;
mod actor;
pub mod audit;
mod beside;
mod bulk;
mod carry_out;
mod clock;
mod execute;
mod metrics;
mod order;
mod prepare;
mod refusal;
mod runner;
mod session;
mod work;

pub use action::{Action, Subject, UnknownAction, UnknownSubject};
pub use actor::{Actor, Role, Source, UnknownRole};
pub use beside::NotBeside;
pub use bulk::{Each, Frozen, ListOf, MOST_ITEMS};
pub use clock::{Ask, Clock};
pub use execute::{Actions, Taken};
pub use metrics::Metrics;
pub use order::{NoReason, Order, Reason, Seen};
pub use prepare::Prepared;
pub use refusal::Refusal;
pub use runner::Runner;
pub use work::{Outcome, Reached, Work};

// The words of the queue in which orders are told: for whoever gives them and need know nothing else of the queue.
pub use queuekeeper_queue::fault::Fault;
pub use queuekeeper_queue::id::JobId;
pub use queuekeeper_queue::path::Path;
pub use queuekeeper_queue::state::{JobState, State};
