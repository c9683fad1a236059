//! What is counted of the outbox.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// What their names begin with, whichever process delivers.
pub const PREFIX: &str = "merritt_daemon";

/// How an attempt to deliver a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivered {
    /// It was delivered.
    Done,
    /// It is tried again later.
    Delayed,
    /// It cannot be delivered.
    GivenUp,
}

impl Delivered {
    const ALL: [Self; 3] = [Self::Done, Self::Delayed, Self::GivenUp];
}

impl EncodeLabelValue for Delivered {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        let name = match self {
            Self::Done => "delivered",
            Self::Delayed => "delayed",
            Self::GivenUp => "given_up",
        };
        EncodeLabelValue::encode(&name, encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDelivery {
    kind: &'static str,
    outcome: Delivered,
}

/// The families of the outbox; clones share them.
#[derive(Clone, Debug)]
pub struct OutboxMetrics {
    messages: Family<OfKind, Gauge>,
    message_age: Family<OfKind, Gauge<f64, AtomicU64>>,
    deliveries: Family<OfDelivery, Counter>,
}

impl OutboxMetrics {
    /// Those of a process that delivers messages of these kinds.
    #[must_use]
    pub fn new(kinds: &[&'static str]) -> Self {
        let metrics =
            Self { messages: Family::default(), message_age: Family::default(), deliveries: Family::default() };
        for kind in kinds.iter().copied() {
            metrics.messages.get_or_create_owned(&OfKind { kind });
            metrics.message_age.get_or_create_owned(&OfKind { kind });
            for outcome in Delivered::ALL {
                metrics.deliveries.get_or_create_owned(&OfDelivery { kind, outcome });
            }
        }
        metrics
    }

    /// Adds the families to a registry with [`PREFIX`].
    pub fn register(&self, registry: &mut Registry) {
        let help = "Number of undelivered mails and callbacks of all processes";
        registry.register("messages_waiting", help, self.messages.clone());
        let help = "Age of the oldest undelivered mail or callback";
        registry.register_with_unit("message_age", help, Unit::Seconds, self.message_age.clone());
        let help = "Total number of attempts of this process to deliver a mail or a callback, by outcome";
        registry.register("deliveries", help, self.deliveries.clone());
    }

    /// An attempt to deliver a message has ended.
    pub fn delivered(&self, kind: &'static str, outcome: Delivered) {
        self.deliveries.get_or_create_owned(&OfDelivery { kind, outcome }).inc();
    }

    /// So many messages of a kind wait, the oldest for so long.
    pub fn messages(&self, kind: &'static str, (count, age): (u64, Duration)) {
        self.messages.get_or_create_owned(&OfKind { kind }).set(i64::try_from(count).unwrap_or(i64::MAX));
        self.message_age.get_or_create_owned(&OfKind { kind }).set(age.as_secs_f64());
    }
}
