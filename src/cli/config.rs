//! Where commands find the configuration.

use std::path::PathBuf;

use clap::Args;

/// Where the configuration is.
#[derive(Clone, Debug, Args)]
pub(super) struct ConfigArgs {
    /// The file with the stores, the catalogue and the mill's accounts
    #[arg(long = "config.file", value_name = "FILE", required_unless_present = "data")]
    pub(super) config_file: Option<PathBuf>,

    /// The directory of a repository of queuekeeper standalone, instead of a file
    #[arg(long = "data", value_name = "DIR", conflicts_with = "config_file")]
    pub(super) data: Option<PathBuf>,
}
