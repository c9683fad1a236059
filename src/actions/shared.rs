//! What all parts of the actions share.

use std::sync::OnceLock;

use queuekeeper_catalogue::Catalogue;
use tokio_util::task::TaskTracker;

use super::audit::Audit;
use super::clock::Clock;
use super::execution::Executions;
use super::lists::Lists;
use super::metrics::Metrics;
use super::session::Connected;
use crate::mirror::Store;
use queuekeeper_queue::fault::Limits;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connected: Connected,
    pub(super) store: Option<Store>,
    /// What the catalogue has of deposits, where there is one.
    pub(super) catalogue: OnceLock<Catalogue>,
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) audit: Audit,
    pub(super) metrics: Metrics,
    pub(super) executions: Executions,
    pub(super) lists: Lists,
    pub(super) tasks: TaskTracker,
}
