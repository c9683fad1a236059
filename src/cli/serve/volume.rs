//! The volume that the daemons work on.

use std::path::PathBuf;

use clap::Args;
use queuekeeper_ingest::space::Rules;

use crate::config::StorageConfig;

/// The options of working storage.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Working storage")]
pub(in crate::cli) struct VolumeArgs {
    /// A directory on the volume of the daemons' working storage, to measure how full it is
    #[arg(long = "storage.path", value_name = "DIRECTORY", help_heading = "Working storage")]
    path: Option<PathBuf>,

    /// The used fraction of that volume above which the daemons hold back jobs; above 0, up to 1
    #[arg(
        long = "storage.threshold",
        value_name = "RATIO",
        default_value_t = Rules::THRESHOLD,
        value_parser = threshold,
        help_heading = "Working storage"
    )]
    threshold: f64,
}

impl VolumeArgs {
    /// The volume, where one is named.
    pub(in crate::cli) fn volume(self) -> Option<StorageConfig> {
        let Self { path, threshold } = self;
        path.map(|path| StorageConfig { path, threshold })
    }
}

fn threshold(text: &str) -> Result<f64, &'static str> {
    text.parse()
        .ok()
        .filter(|ratio| *ratio > 0.0 && *ratio <= 1.0)
        .ok_or("expected a fraction of the volume above 0, up to 1, such as 0.8 for 80 %")
}
