//! How content is checked, as flags of the commands that go through it.

use std::path::{Path, PathBuf};

use clap::Args;
use queuekeeper_mill::bit::lists::{ListError, SpaceList, SpaceLists};
use queuekeeper_mill::bit::producer::BitSettings;

use super::loop_period::loop_period;
use crate::cli::UsageError;
use crate::config::PrometheusDuration;

/// How content is checked.
#[derive(Clone, Debug, Args)]
pub(super) struct BitArgs {
    /// The maximum age of the last proof of a copy; a loop through all content begins every half of that time
    #[arg(
        long = "bit.max-age",
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(BitSettings::default().max_age),
        value_parser = loop_period
    )]
    max_age: PrometheusDuration,

    /// A file with the spaces to check, one /account/store/space a line, with * for any; without it, all
    #[arg(long = "bit.include", value_name = "FILE")]
    include: Option<PathBuf>,

    /// A file with the spaces not to check, in the same form
    #[arg(long = "bit.exclude", value_name = "FILE")]
    exclude: Option<PathBuf>,

    /// The number of spaces that are checked at the same time
    #[arg(
        long = "bit.spaces",
        value_name = "NUMBER",
        default_value_t = BitSettings::AT_ONCE,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    spaces: u16,
}

impl BitArgs {
    /// The settings, with so many tasks that may wait.
    pub(super) fn settings(&self, most_waiting: u64) -> Result<BitSettings, UsageError> {
        let lists = SpaceLists {
            include: read("--bit.include", self.include.as_deref())?,
            exclude: read("--bit.exclude", self.exclude.as_deref())?,
        };
        Ok(BitSettings { lists, max_age: self.max_age.get(), most_waiting, at_once: self.spaces.into() })
    }
}

fn read(flag: &'static str, path: Option<&Path>) -> Result<SpaceList, UsageError> {
    let Some(path) = path else { return Ok(SpaceList::default()) };
    let wrong = |why: String| UsageError::flag(flag, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let list: SpaceList = text.parse().map_err(|error: ListError| wrong(error.to_string()))?;
    // An empty list of what is checked is a mistake: it would be taken for everything.
    if flag == "--bit.include" && list.is_empty() { Err(wrong("it names no space".to_owned())) } else { Ok(list) }
}
