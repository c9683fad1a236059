//! Where deposits go.

use std::path::PathBuf;

use clap::Args;

use crate::cli::UsageError;
use crate::config::{ConfigFile, Deposits};

/// The options of deposits.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deposits")]
pub(super) struct DepositArgs {
    /// The working storage of the daemons: accept deposits, and keep uploads there
    #[arg(long = "deposits.working", value_name = "DIR", requires = "profiles")]
    working: Option<PathBuf>,

    /// The directory of the collections' profiles
    #[arg(id = "profiles", long = "deposits.profiles", value_name = "DIR", requires = "working")]
    profiles: Option<PathBuf>,
}

impl DepositArgs {
    /// Where they go, where they are taken.
    ///
    /// # Errors
    /// When there is no catalogue to record them in.
    pub(super) fn deposits(self, file: Option<&ConfigFile>) -> Result<Option<Deposits>, UsageError> {
        let Some((working, profiles)) = self.working.zip(self.profiles) else { return Ok(None) };
        if file.is_none_or(|file| file.stores().catalogue().is_none()) {
            let why = "deposits require a catalogue: name one in the file of --config.file";
            return Err(UsageError::flag("--deposits.working", why));
        }
        Ok(Some(Deposits { working, profiles }))
    }
}
