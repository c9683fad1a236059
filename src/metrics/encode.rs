//! Writing families whose samples are worked out at the scrape.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

/// The labels of a sample, in the order in which they are written.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

const NONE: Labels<'static, 0> = [];

/// Writes families one after the other.
pub(super) struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl<'a> Families<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self { encoder }
    }

    /// Writes a family of gauges; nothing at all where there is no sample.
    pub(super) fn gauges<'l, L: AsRef<[(&'static str, &'l str)]>, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            let labels = labels.as_ref();
            if labels.is_empty() {
                // An empty label set would be written as a pair of braces.
                family.encode_gauge(&value)?;
            } else {
                family.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    /// Writes a gauge without labels; nothing where it has no value.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Into<Option<f64>>) -> fmt::Result {
        self.gauges(name, help, value.into().map(|value| (NONE, value)))
    }

    /// Writes a gauge without labels that counts something.
    pub(super) fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauges(name, help, [(NONE, value)])
    }

    /// Writes a family of counters; `name` is without `_total`.
    pub(super) fn counters<'l, L: AsRef<[(&'static str, &'l str)]>>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return Ok(());
        }
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels.as_ref())?
                .encode_counter(&value, None::<&Exemplar<[(&str, &str); 0], u64>>)?;
        }
        Ok(())
    }

    /// Writes a counter without labels; `name` is without `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        family.encode_counter(&value, None::<&Exemplar<[(&str, &str); 0], f64>>)
    }
}

/// An instant as Prometheus counts it: seconds since 1970.
pub(super) fn seconds(instant: Timestamp) -> f64 {
    // Through milliseconds, which a float holds exactly: ZooKeeper knows nothing finer.
    instant.as_millisecond() as f64 / 1000.0
}

/// The label value of a truth.
pub(super) fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
