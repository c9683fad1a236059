//! `process_*`, named as Prometheus' own client libraries name them, and the tasks in it, as others count goroutines.

use std::fmt;

use procfs::process::{LimitValue, Process};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use super::encode::Families;

/// Registers the families of this process, read from `/proc/self` and the runtime at each scrape.
pub fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(Collect));
}

#[derive(Debug)]
struct Collect;

impl Collector for Collect {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::new(encoder);
        if let Ok(runtime) = Handle::try_current() {
            let tasks = runtime.metrics().num_alive_tasks() as u64;
            families.count("queuekeeper_tasks", "Number of live tokio tasks.", tasks)?;
        }
        // Where /proc is hidden from us a scrape still has everything else.
        let Ok(process) = Process::myself() else { return Ok(()) };
        if let Ok(stat) = process.stat() {
            let ticks = procfs::ticks_per_second() as f64;
            families.counter(
                "process_cpu_seconds",
                "Total user and system CPU time spent in seconds.",
                (stat.utime + stat.stime) as f64 / ticks,
            )?;
            let start = procfs::boot_time_secs().ok().map(|boot| boot as f64 + stat.starttime as f64 / ticks);
            families.gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                start,
            )?;
            families.count("process_virtual_memory_bytes", "Virtual memory size in bytes.", stat.vsize)?;
            families.count(
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
                stat.rss * procfs::page_size(),
            )?;
            families.gauge("process_threads", "Number of OS threads in the process.", stat.num_threads as f64)?;
        }
        if let Ok(limits) = process.limits() {
            let most = match limits.max_open_files.soft_limit {
                LimitValue::Value(most) => Some(most as f64),
                LimitValue::Unlimited => None,
            };
            families.gauge("process_max_fds", "Maximum number of open file descriptors.", most)?;
        }
        if let Ok(open) = process.fd_count() {
            families.count("process_open_fds", "Number of open file descriptors.", open as u64)?;
        }
        Ok(())
    }
}
