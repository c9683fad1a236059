//! How late the sidecar shows what changes in ZooKeeper, from its own histogram.

use std::fmt;

use anyhow::Context as _;

use crate::world::Program;

/// How many changes were shown within so many seconds, for each limit of the histogram.
#[derive(Clone)]
pub(crate) struct Delays(Vec<(f64, f64)>);

impl Delays {
    /// Those of all changes so far.
    pub(crate) async fn so_far(sidecar: &Program) -> anyhow::Result<Self> {
        let page = sidecar.get("/metrics").await.context("the sidecar does not answer")?;
        let buckets =
            page.lines().filter_map(|line| line.strip_prefix("queuekeeper_mirror_delay_seconds_bucket{le=\""));
        let counts = buckets.map(|line| {
            let (limit, count) = line.split_once("\"} ").context("no bucket")?;
            Ok((limit.parse().unwrap_or(f64::INFINITY), count.parse()?))
        });
        Ok(Self(counts.collect::<anyhow::Result<_>>()?))
    }

    /// Those of the changes since then.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self(self.0.iter().zip(&before.0).map(|(now, then)| (now.0, now.1 - then.1)).collect())
    }

    fn changes(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// Below which that share of the changes is, in milliseconds: evenly spread within a bucket, as Prometheus has it.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = self.changes() * share;
        let mut below = (0.0, 0.0);
        for bucket in &self.0 {
            if bucket.1 >= wanted && bucket.1 > below.1 {
                return 1e3 * (below.0 + (bucket.0 - below.0) * (wanted - below.1) / (bucket.1 - below.1));
            }
            below = *bucket;
        }
        f64::NAN
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, most] = [0.5, 0.99].map(|share| self.quantile_ms(share));
        write!(f, "p50 {median:.1} ms, p99 {most:.1} ms, of {} changes", self.changes())
    }
}
