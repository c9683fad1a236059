//! `queuekeeper man-pages`: a manual page of each command, made from its help.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

/// Write a manual page of each command, as queuekeeper.1, queuekeeper-serve.1 and so on
///
/// Existing pages are replaced.
#[derive(Clone, Debug, Args)]
pub(super) struct ManPagesArgs {
    /// The directory for the pages, which is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl ManPagesArgs {
    /// Writes the pages.
    ///
    /// # Errors
    /// When the directory cannot be created, or a page not written.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let shown = self.directory.display();
        fs::create_dir_all(&self.directory).with_context(|| format!("cannot create {shown}"))?;
        clap_mangen::generate_to(described(super::command()), &self.directory)
            .with_context(|| format!("cannot write manual pages to {shown}"))
    }
}

/// What `-h` leaves out would be without its description.
fn described(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(described)
}
