//! `queuekeeper object`: the objects that deposits became.

mod compare;
mod place;
mod verify;

use clap::{Args, Subcommand};

/// Verify an object of the catalogue
#[derive(Clone, Debug, Args)]
pub(super) struct ObjectArgs {
    #[command(subcommand)]
    command: ObjectCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ObjectCommand {
    Verify(verify::VerifyArgs),
}

impl ObjectArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done, or something is wrong with the object.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        super::log::begin_plain();
        match self.command {
            ObjectCommand::Verify(args) => args.run().await,
        }
    }
}
