//! The options of the audit trail.

use std::path::PathBuf;

use clap::Args;

use crate::actions::audit::{Destination, Rotation};

/// The audit trail.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Actions")]
pub(super) struct AuditArgs {
    /// File in which each action is recorded, as JSON lines, before and after its execution; - for standard output. An
    /// action that cannot be recorded is not executed
    #[arg(long = "audit.file", value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// The size at which that file is rotated to FILE.1, in MiB
    #[arg(
        long = "audit.size",
        value_name = "MIB",
        default_value_t = Rotation::default().size_bytes >> 20,
        value_parser = clap::value_parser!(u64).range(1..=65_536)
    )]
    size: u64,

    /// The number of rotated files to keep
    #[arg(
        long = "audit.files",
        value_name = "NUMBER",
        default_value_t = Rotation::default().files,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    files: u32,
}

impl AuditArgs {
    pub(super) fn destination(self) -> Destination {
        if self.file.as_os_str() == "-" {
            return Destination::StandardOutput;
        }
        Destination::File(self.file, Rotation { size_bytes: self.size << 20, files: self.files })
    }
}
