//! `queuekeeper completion`: completion scripts for shells.

use clap::Args;
use clap_complete::Shell;

use super::output;

/// Write the completion script of a shell
#[derive(Clone, Debug, Args)]
pub(super) struct CompletionArgs {
    /// The shell
    shell: Shell,
}

impl CompletionArgs {
    /// Writes the script to standard output.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "queuekeeper", &mut script);
        output::write(&String::from_utf8_lossy(&script))
    }
}
