//! What the memory of each job's steps takes, beside the same image without it.

use std::process::Command;

use anyhow::Context as _;
use queuekeeper::mirror::bench::apply_steps;

use crate::served::memory;

/// What it may take, in bytes a job.
const GOAL: u32 = 100;

/// As many steps are remembered of a job at most: all of the way from Pending to Completed.
const STEPS: usize = 8;

/// The argument with which this program starts itself.
pub(crate) const ARGUMENT: &str = "--histories";

pub(crate) fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("histories: resident bytes a job that full ones ({STEPS} steps of each job) and faults add; goal {GOAL}");
    for jobs in sizes {
        let (alone, kept) = (resident(*jobs, false)?, resident(*jobs, true)?);
        let each = (kept as f64 - alone as f64) / *jobs as f64;
        println!("  {jobs:>7} jobs: {each:>4.0} bytes a job ({} MiB, without {} MiB)", kept >> 20, alone >> 20);
    }
    Ok(())
}

/// The size of a process of its own that has led so many jobs all the way. It gives memory back as it is freed, so that
/// only what is in use is counted.
fn resident(jobs: usize, is_kept: bool) -> anyhow::Result<u64> {
    let output = Command::new(std::env::current_exe()?)
        .args([ARGUMENT, if is_kept { "kept" } else { "none" }, "--jobs", &jobs.to_string()])
        .env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        .output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)?.trim().parse().context("the process prints its size")
}

/// The part of that process.
pub(crate) fn print(which: &str, jobs: usize) -> anyhow::Result<()> {
    let is_kept = which == "kept";
    let applied = apply_steps(u32::try_from(jobs)?, is_kept);
    anyhow::ensure!(applied.remembered() == if is_kept { STEPS } else { 0 }, "not every step is remembered");
    anyhow::ensure!(applied.suspected() == 0, "these jobs are healthy");
    println!("{}", memory("self", "VmRSS")?);
    Ok(())
}
