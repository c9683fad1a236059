//! What faults and history add to the cost of applying a change.

use queuekeeper::mirror::bench::apply_steps;

use crate::{ROUNDS, median};

pub(crate) fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!("apply: time a read, for the mirror alone and with faults and history");
    for jobs in sizes {
        let number = u32::try_from(*jobs)?;
        let (mut alone, mut kept) = (Vec::new(), Vec::new());
        // By turns, so that whatever else the machine does slows both down.
        for _ in 0..ROUNDS {
            alone.push(apply_steps(number, false).each);
            kept.push(apply_steps(number, true).each);
        }
        let (alone, kept) = (median(&mut alone), median(&mut kept));
        let share = (kept.as_secs_f64() / alone.as_secs_f64() - 1.0) * 100.0;
        println!("  {jobs:>7} jobs: {:>5} ns, with all {:>5} ns: {share:+.0} %", alone.as_nanos(), kept.as_nanos());
    }
    Ok(())
}
