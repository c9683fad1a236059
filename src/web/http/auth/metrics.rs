//! Counters of logins.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    outcome: &'static str,
}

/// The counters of one method.
#[derive(Clone, Debug)]
pub(super) struct OutcomeCounters {
    pub(super) accepted: Counter,
    pub(super) rejected: Counter,
    /// Refused without verification, because too many others waited.
    pub(super) busy: Counter,
}

/// `queuekeeper_http_logins_*`.
#[derive(Clone, Debug)]
pub(super) struct LoginMetrics {
    pub(super) password: OutcomeCounters,
    pub(super) token: OutcomeCounters,
    /// Tokens after their time of expiry.
    pub(super) expired: Counter,
    pub(super) throttled: Counter,
}

impl LoginMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let family = Family::<Labels, Counter>::default();
        let counter = |method, outcome| family.get_or_create_owned(&Labels { method, outcome });
        let counters = |method| OutcomeCounters {
            accepted: counter(method, "accepted"),
            rejected: counter(method, "rejected"),
            busy: counter(method, "busy"),
        };
        let metrics = Self {
            password: counters("password"),
            token: counters("token"),
            expired: counter("token", "expired"),
            throttled: Counter::default(),
        };
        registry.register("queuekeeper_http_logins", "Requests with a password or a token", family);
        registry.register(
            "queuekeeper_http_logins_throttled",
            "Requests with a password or a token that were delayed because of earlier failures",
            metrics.throttled.clone(),
        );
        metrics
    }
}
