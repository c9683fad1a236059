//! What is exported of the hosts.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Hosts;

impl Hosts {
    /// Adds the family to a registry. No host is named in it: their names come with the deposits.
    pub fn register(&self, registry: &mut Registry) {
        registry.sub_registry_with_prefix("merritt_daemon").register_collector(Box::new(self.clone()));
    }
}

impl Collector for Hosts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let away = ConstGauge::new(i64::try_from(self.away()).unwrap_or(i64::MAX));
        let help = "Number of hosts that this process does not contact for now because of repeated failures.";
        away.encode(encoder.encode_descriptor("hosts_away", help, None, away.metric_type())?)
    }
}
