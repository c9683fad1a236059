//! How logins end, counted.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    means: &'static str,
    outcome: &'static str,
}

/// The counters of one means.
#[derive(Clone, Debug)]
pub(super) struct Outcomes {
    pub(super) right: Counter,
    pub(super) wrong: Counter,
    /// Too many waited already.
    pub(super) busy: Counter,
}

/// `queuekeeper_http_logins_*`.
#[derive(Clone, Debug)]
pub(super) struct Logins {
    pub(super) password: Outcomes,
    pub(super) token: Outcomes,
    /// Tokens that were right once.
    pub(super) expired: Counter,
    pub(super) slowed: Counter,
}

impl Logins {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let family = Family::<Labels, Counter>::default();
        let counter = |means, outcome| family.get_or_create_owned(&Labels { means, outcome });
        let outcomes = |means| Outcomes {
            right: counter(means, "right"),
            wrong: counter(means, "wrong"),
            busy: counter(means, "busy"),
        };
        let logins = Self {
            password: outcomes("password"),
            token: outcomes("token"),
            expired: counter("token", "expired"),
            slowed: Counter::default(),
        };
        registry.register("queuekeeper_http_logins", "Requests that came with a password or a token", family);
        registry.register(
            "queuekeeper_http_logins_slowed",
            "Requests that had to wait, since others had failed to log in before",
            logins.slowed.clone(),
        );
        logins
    }
}
