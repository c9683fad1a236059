//! `queuekeeper object`: the objects that deposits became.

mod compare;
mod get;
mod repair;
mod request;
mod show;
mod verify;

use clap::Args;

use super::commands::commands;

/// Show, read, request, verify and repair stored objects
#[derive(Clone, Debug, Args)]
pub(super) struct ObjectArgs {
    #[command(subcommand)]
    command: ObjectCommand,
}

commands! {
    enum ObjectCommand {
        Show(show::ShowArgs),
        Get(get::GetArgs),
        Verify(verify::VerifyArgs),
        Request(request::RequestArgs),
        Repair(repair::RepairArgs),
    }
}

impl ObjectArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done, or something is wrong with the object.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        super::log::begin_plain();
        self.command.run().await
    }
}
