//! `queuekeeper mill`: copies of content in other stores.

mod adopt;
mod audit;
mod bit_flags;
mod checks;
mod compare;
mod dead_letters;
mod errors;
mod held;
mod loop_flags;
mod loop_period;
mod pause;
mod policies;
mod policy;
mod produce;
mod queues;
mod repair_stops;
mod reports;
mod retry;
mod run;
mod session;
mod spaces;
mod verify;
mod verify_reports;

pub(super) use errors::decide;

use std::path::Path;

use clap::Args;

use super::UsageError;
use super::commands::commands;
use super::config::ConfigArgs;
use super::exit::CommandError;
use crate::config::{CatalogueUrl, ConfigFile, FileError, MillConfig};
use crate::server;
use crate::server::mill::OpenStores;
use crate::server::standalone::DataDirectory;
use crate::views::ViewError;
use crate::views::mill::Mill;

/// Copy content to other stores, prove copies, and repair them
#[derive(Clone, Debug, Args)]
pub(super) struct MillArgs {
    #[command(subcommand)]
    command: MillCommand,
}

commands! {
    enum MillCommand {
        Run(run::RunArgs),
        Produce(produce::ProduceArgs),
        Verify(verify::VerifyArgs),
        Checks(checks::ChecksArgs),
        Compare(compare::CompareArgs),
        VerifyReports(verify_reports::VerifyReportsArgs),
        Audit(audit::AuditArgs),
        Queues(queues::QueuesArgs),
        Spaces(spaces::SpacesArgs),
        Errors(errors::ErrorsArgs),
        Reports(reports::ReportsArgs),
        Repair(errors::RepairArgs),
        Resolve(errors::ResolveArgs),
        Adopt(adopt::AdoptArgs),
        StopRepairs(repair_stops::StopRepairsArgs),
        ResumeRepairs(repair_stops::ResumeRepairsArgs),
        Held(held::HeldArgs),
        DeadLetters(dead_letters::DeadLettersArgs),
        Retry(retry::RetryArgs),
        Drop(retry::DropArgs),
        Pause(pause::PauseArgs),
        Resume(pause::ResumeArgs),
        Policies(policies::PoliciesArgs),
        Policy(policy::PolicyArgs),
    }
}

impl ConfigArgs {
    fn read(&self) -> Result<(ConfigFile, MillConfig), UsageError> {
        self.read_by(ConfigFile::read)
    }

    /// The same for what reads stores alone: the file need not name a catalogue.
    fn read_for_stores(&self) -> Result<(ConfigFile, MillConfig), UsageError> {
        self.read_by(ConfigFile::read_for_stores)
    }

    fn read_by(
        &self,
        read: fn(&Path) -> Result<ConfigFile, FileError>,
    ) -> Result<(ConfigFile, MillConfig), UsageError> {
        let Some(path) = &self.config_file else { return self.of_data() };
        let file = read(path).map_err(|error| UsageError::flag("--config.file", error))?;
        let none = || UsageError::flag("--config.file", format!("{} has no key mill", path.display()));
        let mill = file.mill().cloned().ok_or_else(none)?;
        Ok((file, mill))
    }

    fn of_data(&self) -> Result<(ConfigFile, MillConfig), UsageError> {
        let data = DataDirectory::new(self.data.clone().unwrap_or_default());
        let invalid = |error: queuekeeper_store::name::NameError| UsageError::flag("--data", error);
        let (stores, mill) = (data.stores().map_err(invalid)?, data.mill().map_err(invalid)?);
        if let Some(path) = stores.catalogue().and_then(CatalogueUrl::missing) {
            return Err(UsageError::flag("--data", format!("there is no catalogue {}", path.display())));
        }
        Ok((ConfigFile::local(data.path(), stores, mill.clone()), mill))
    }

    /// Reads from the mill of the file, and closes its catalogue.
    async fn with_mill<T>(&self, read: impl AsyncFnOnce(&Mill) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let (file, mill) = self.read()?;
        let catalogue = server::catalogue::open(file.stores()).await?;
        let found = match server::mill::shown(&catalogue, &mill, file.stores(), OpenStores::new()).await {
            Ok(mill) => read(&mill).await,
            Err(error) => Err(error),
        };
        catalogue.close().await;
        found
    }

    /// The same for one view of it.
    async fn ask<T>(&self, view: impl AsyncFnOnce(&Mill) -> Result<T, ViewError>) -> anyhow::Result<T> {
        self.with_mill(async |mill| Ok(view(mill).await.map_err(CommandError::from)?)).await
    }
}

impl MillArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.command.run().await
    }
}
