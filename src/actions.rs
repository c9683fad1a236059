//! What an operator may do, and everything between the request and the queue.
//!
//! An [`Action`] needs an [`Actor`] and a [`Reason`]. Built only from the transactions of
//! [`queue`](queuekeeper_queue), it is executed whole or refused with the reason.
//!
//! - The table of what is supported: [`ActionSpec`], for each [`ActionKind`] and [`TargetKind`], with its [`Role`].
//! - [`Actions::plan`] shows what an action would write, [`Actions::execute`] executes it: it reads and checks
//!   (`prepare`), records the request ([`audit`]), commits, and records the outcome.
//! - [`Actions::freeze`] and [`Actions::execute_frozen`] do so for many targets, item by item (`bulk`);
//!   [`Actions::skips`] shows which of them would be skipped.
//! - [`Actions::execute_with_writes`] does so in one transaction with znodes of our own, for rules (`with_writes`).
//! - What people do to the mill, which needs no queue: [`mill`].
//! - Running and recently finished actions: [`Execution`], by the action's id.

mod accept;
pub mod access;
mod action;
mod actor;
pub mod audit;
mod bulk;
mod clock;
pub mod deposit;
mod execute;
mod execution;
mod kind;
mod lists;
mod metrics;
pub mod mill;
pub mod outcome;
mod parameters;
mod precondition;
mod prepare;
mod reason;
mod refusal;
mod runner;
mod session;
mod shared;
mod skips;
mod spec;
pub mod store_events;
mod table;
mod target;
mod with_writes;
mod withdraw;

pub use accept::{Accepted, Actions};
pub use action::{Action, Requested};
pub use actor::{Actor, Role, Source, UnknownRole};
pub use clock::{Clock, MeasureClock};
pub use execution::{ActionOutcome, DoneItem, Execution, Progress};
pub use kind::{ActionKind, UnknownAction};
pub(crate) use lists::no_list;
pub use lists::{BulkAction, Frozen, LIST_LIFETIME, ListOf, ListOrigin, MAX_ITEMS};
pub use metrics::Metrics;
pub(crate) use parameters::action_parameters;
pub use parameters::{
    AcceptedParameter, ActionParameters, Argument, Input, InputWords, Parameter, ParameterSpec, ParameterValue,
    WrittenParameters, WrongValue,
};
pub use precondition::Precondition;
pub use prepare::Prepared;
pub use reason::{NoReason, Reason};
pub use refusal::Refusal;
pub use runner::ActionRunner;
pub use skips::Skip;
pub use spec::{ActionSpec, Applies};
pub use table::{
    ActionOn, BatchAction, BatchesAction, CollectionAction, FaultAction, JobAction, LockAction, QueueAction,
    RequestAction, StoreAction,
};
pub use target::{Target, TargetKind, UnknownTarget};
pub use with_writes::WithWritesError;

// The words of the queue that an action is written in: its callers need know nothing else of the queue.
pub use queuekeeper_queue::RepairKind;
pub use queuekeeper_queue::fault::Fault;
pub use queuekeeper_queue::id::JobId;
pub use queuekeeper_queue::path::Path;
pub use queuekeeper_queue::state::{JobState, State};
