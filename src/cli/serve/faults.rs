//! The limits of faults.

use std::time::Duration;

use clap::Args;

use crate::config::PrometheusDuration;
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::state::{JobState, State};

/// The limits that an operator may set; the others have the defaults of [`Limits`].
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct FaultArgs {
    /// How long an inconsistency must last to count as a fault: daemons change a job in separate writes
    #[arg(
        long = "faults.grace",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Limits::default().grace),
        help_heading = "Faults"
    )]
    grace: PrometheusDuration,

    #[arg(
        long = "faults.job-lock",
        help = format!(
            "How long a job of a state may be locked, as downloading=24h; may be repeated [default: {}]",
            defaults(JobState::default_lock_limit)
        ),
        value_name = "STATE=DURATION",
        value_delimiter = ',',
        value_parser = state_limit,
        help_heading = "Faults"
    )]
    job_lock: Vec<(JobState, PrometheusDuration)>,

    #[arg(
        long = "faults.stuck",
        help = format!(
            "How long no job may leave a state whose oldest job is as old, as provisioning=6h; may be repeated [default: {}]",
            defaults(JobState::default_stuck_limit)
        ),
        value_name = "STATE=DURATION",
        value_delimiter = ',',
        value_parser = state_limit,
        help_heading = "Faults"
    )]
    stuck: Vec<(JobState, PrometheusDuration)>,

    /// How long the report of a batch may be due while the batch is not locked
    #[arg(
        long = "faults.report",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Limits::default().report),
        help_heading = "Faults"
    )]
    report: PrometheusDuration,

    /// How long a batch may be locked in Processing, while its jobs are created
    #[arg(
        long = "faults.batch-processing",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Limits::default().batch_processing),
        help_heading = "Faults"
    )]
    batch_processing: PrometheusDuration,

    /// How long a queue may be paused, or a collection or a store held
    #[arg(
        long = "faults.pause",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(Limits::default().pause),
        help_heading = "Faults"
    )]
    pause: PrometheusDuration,

    /// The number of resumes from which a job that failed again counts as a fault
    #[arg(
        long = "faults.retries",
        value_name = "NUMBER",
        default_value_t = Limits::default().retries,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Faults"
    )]
    retries: u32,
}

impl FaultArgs {
    pub(in crate::cli) fn limits(&self) -> Limits {
        let mut limits = Limits {
            grace: self.grace.get(),
            report: self.report.get(),
            batch_processing: self.batch_processing.get(),
            pause: self.pause.get(),
            retries: self.retries,
            ..Limits::default()
        };
        for (state, limit) in &self.job_lock {
            limits.job_lock.set(*state, limit.get());
        }
        for (state, limit) in &self.stuck {
            limits.stuck.set(*state, limit.get());
        }
        limits
    }
}

/// The limits of the states that daemons work on, as the flag takes them, and the one of all others.
fn defaults(limit: fn(JobState) -> Duration) -> String {
    let elsewhere = limit(JobState::Held);
    let own = JobState::ALL.iter().filter(|state| limit(**state) != elsewhere);
    let own = own.map(|state| format!("{}={}", state.label(), PrometheusDuration::from(limit(*state))));
    let own: Vec<_> = own.collect();
    format!("{}, {} elsewhere", own.join(", "), PrometheusDuration::from(elsewhere))
}

fn state_limit(text: &str) -> Result<(JobState, PrometheusDuration), String> {
    let (state, limit) = text.split_once('=').ok_or("expected STATE=DURATION, such as downloading=24h")?;
    let named = JobState::ALL.iter().copied().find(|known| known.label() == state);
    let labels: Vec<_> = JobState::ALL.iter().map(|state| state.label()).collect();
    let named =
        named.ok_or_else(|| format!("{state:?} is not a state of a job; expected one of {}", labels.join(", ")))?;
    Ok((named, limit.parse().map_err(|error| format!("{state}: {error}"))?))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        faults: FaultArgs,
    }

    #[test]
    fn no_flag_gives_the_defaults_and_each_flag_sets_its_limit() {
        let read = |args: &[&str]| Cli::try_parse_from([&["x"], args].concat()).map(|cli| cli.faults.limits());
        assert_eq!(read(&[]).unwrap(), Limits::default());
        let set = read(&["--faults.grace=5s", "--faults.job-lock=storing=3h,notify=5m", "--faults.stuck=pending=2d"]);
        let set = set.unwrap();
        assert_eq!(set.grace.as_secs(), 5);
        assert_eq!(set.job_lock.get(Some(JobState::Notify)).as_secs(), 300);
        assert_eq!(set.job_lock.get(Some(JobState::Storing)).as_secs(), 3 * 3600);
        assert_eq!(set.stuck.get(Some(JobState::Pending)).as_secs(), 2 * 86_400);
        for wrong in ["storing", "teleporting=1h", "storing=1"] {
            assert!(read(&["--faults.job-lock", wrong]).is_err(), "{wrong}");
        }
    }
}
