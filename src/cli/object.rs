//! `queuekeeper object`: the objects that deposits became.

mod compare;
mod get;
mod repair;
mod request;
mod show;
mod verify;

use clap::{Args, Subcommand};

/// Show, read, request, verify and repair stored objects
#[derive(Clone, Debug, Args)]
pub(super) struct ObjectArgs {
    #[command(subcommand)]
    command: ObjectCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ObjectCommand {
    Show(show::ShowArgs),
    Get(get::GetArgs),
    Verify(verify::VerifyArgs),
    Request(Box<request::RequestArgs>),
    Repair(Box<repair::RepairArgs>),
}

impl ObjectArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done, or something is wrong with the object.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        super::log::begin_plain();
        match self.command {
            ObjectCommand::Show(args) => args.run().await,
            ObjectCommand::Get(args) => args.run().await,
            ObjectCommand::Verify(args) => args.run().await,
            ObjectCommand::Request(args) => Box::pin(args.run()).await,
            ObjectCommand::Repair(args) => Box::pin(args.run()).await,
        }
    }
}
