//! What is counted of actions.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::actor::Source;
use super::kind::ActionKind;

/// What an action counts as when it was done.
pub(super) const DONE: &str = "done";

/// What an action counts as that was only to be shown.
pub(super) const DRY_RUN: &str = "dry_run";

/// What an action counts as of which a part was done, and something stood against the rest.
pub(super) const IN_PART: &str = "in_part";

/// What an action counts as of which it is not known whether it was done.
pub(super) const UNKNOWN: &str = "unknown";

/// What an action counts as that the queue stood against.
pub(super) const CONFLICT: &str = "conflict";

/// What an action over many counts as that was ended by somebody.
pub(super) const CANCELLED: &str = "cancelled";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    action: &'static str,
    source: &'static str,
    outcome: &'static str,
}

/// The counters of actions; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    actions: Family<Labels, Counter>,
}

impl Metrics {
    /// Registers the counters: each action at 0 as done, by every means that it can be ordered by. What else can come of
    /// one appears when it first does. That would be eleven series for each, of which hardly one ever counts; no alert
    /// reads them, and the dashboards count a series that appears while its process is watched from 0.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for action in ActionKind::ALL {
            // The command line is another process, and keeps an audit file of its own.
            for source in [Source::Web, Source::Api, Source::Alert] {
                if source != Source::Alert || action.is_for_rules() {
                    let labels = Labels { action: action.label(), source: source.label(), outcome: DONE };
                    drop(metrics.actions.get_or_create_owned(&labels));
                }
            }
        }
        registry.register(
            "queuekeeper_actions",
            "Actions on items of the queue, by what was requested, by what means, and what came of it",
            metrics.actions.clone(),
        );
        metrics
    }

    pub(super) fn count(&self, action: ActionKind, source: Source, outcome: &'static str) {
        let labels = Labels { action: action.label(), source: source.label(), outcome };
        self.actions.get_or_create_owned(&labels).inc();
    }
}
