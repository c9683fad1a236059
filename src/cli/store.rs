//! `queuekeeper store`: content by its key, in any store of the configuration.

use std::path::PathBuf;

use clap::Args;

mod copy;
mod delete;
mod get;
mod hold;
mod list;
mod open;
mod part;
mod path;
mod put;
mod read;
mod recorded;
mod report;
mod verify;
mod write;

use super::commands::commands;
pub(super) use open::{audited, failed, probe};

/// List, read, write, copy, delete and verify content in the stores of --config.file; hold a store, and release it
///
/// An item is named STORE/SPACE/KEY; the key is everything after the second slash. Changes are recorded in the
/// catalogue, so --config.file must name one.
#[derive(Clone, Debug, Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

commands! {
    enum StoreCommand {
        #[command(name = "ls")]
        List(list::ListArgs),
        Get(get::GetArgs),
        Put(put::PutArgs),
        #[command(name = "rm")]
        Delete(delete::DeleteArgs),
        #[command(name = "cp")]
        Copy(copy::CopyArgs),
        Verify(verify::VerifyArgs),
        Hold(hold::HoldArgs),
        Release(hold::ReleaseArgs),
        Held(hold::HeldArgs),
    }
}

/// Where the stores are.
#[derive(Clone, Debug, Args)]
struct ConfigArgs {
    /// The file with the stores and the catalogue
    #[arg(long = "config.file", value_name = "FILE")]
    config_file: PathBuf,
}

impl StoreArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done, or not wholly.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        super::log::begin_plain();
        self.command.run().await
    }
}
