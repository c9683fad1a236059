//! Metrics of actions.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::actor::Source;
use super::kind::ActionKind;
use super::outcome::DONE;

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
    /// Registers the counters. Each action has a series for the outcome `done` and each source from the start, at 0.
    /// Series for other outcomes appear with the first occurrence: they would be eleven for each action, nearly all of
    /// them always 0. No alert uses them, and the dashboards count a series that appears while its process is watched
    /// from 0.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for action in ActionKind::ALL {
            // The command line is another process, with an audit file of its own.
            for source in [Source::Web, Source::Api, Source::Alert] {
                if source != Source::Alert || action.is_for_rules() {
                    let labels = Labels { action: action.label(), source: source.label(), outcome: DONE };
                    drop(metrics.actions.get_or_create_owned(&labels));
                }
            }
        }
        registry.register(
            "queuekeeper_actions",
            "Total number of actions on items of the queue by kind, source and outcome",
            metrics.actions.clone(),
        );
        metrics
    }

    /// Begins the series of further actions, which only people request: of a server that has what they act on.
    pub(super) fn begin<const N: usize>(&self, actions: [&'static str; N]) {
        for action in actions {
            for source in [Source::Web, Source::Api] {
                let labels = Labels { action, source: source.label(), outcome: DONE };
                drop(self.actions.get_or_create_owned(&labels));
            }
        }
    }

    pub(super) fn count(&self, action: &'static str, source: Source, outcome: &'static str) {
        let labels = Labels { action, source: source.label(), outcome };
        self.actions.get_or_create_owned(&labels).inc();
    }
}
