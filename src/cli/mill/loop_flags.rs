//! How loops are gone through, as flags of the commands that do so.

use clap::Args;
use queuekeeper_mill::run::MillSettings;

use super::loop_period::loop_period;
use crate::config::PrometheusDuration;

/// How loops are gone through.
#[derive(Clone, Debug, Args)]
pub(super) struct LoopArgs {
    /// The time from the beginning of one loop of copies to the beginning of the next
    #[arg(
        long,
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(MillSettings::default().frequency),
        value_parser = loop_period
    )]
    frequency: PrometheusDuration,

    /// The number of waiting tasks at which a loop waits
    #[arg(long, value_name = "NUMBER", default_value_t = MillSettings::default().most_waiting)]
    queue_limit: u64,

    /// Check every item, not only those that differ, once in this many loops; 0 for never
    #[arg(long, value_name = "NUMBER", default_value_t = MillSettings::default().thorough_every)]
    thorough_every: u64,
}

impl LoopArgs {
    /// The settings of the mill with what these flags set; all others are the defaults.
    pub(super) fn settings(&self) -> MillSettings {
        MillSettings {
            frequency: self.frequency.get(),
            most_waiting: self.queue_limit,
            thorough_every: self.thorough_every,
            ..MillSettings::default()
        }
    }
}
