//! `queuekeeper catalogue`: the database of what is stored where.

mod rebuild;

use std::path::PathBuf;

use clap::Args;
use queuekeeper_catalogue::{Catalogue, ErrorKind};
use serde_json::json;

use super::UsageError;
use super::commands::commands;
use super::config::ConfigArgs;
use super::exit::{CommandError, FAILED, NOT_FOUND, REFUSED};
use super::output::{OutputArgs, Screen, Spinner, without_csv};
use crate::config::{CatalogueUrl, ConfigFile};
use crate::server::standalone::DataDirectory;
use crate::views::show::visible;
use crate::words::counted;

/// Check, back up, migrate or rebuild the catalogue
#[derive(Clone, Debug, Args)]
pub(super) struct CatalogueArgs {
    #[command(subcommand)]
    command: CatalogueCommand,
}

commands! {
    enum CatalogueCommand {
        Check(CheckArgs),
        Backup(BackupArgs),
        Migrate(MigrateArgs),
        Rebuild(rebuild::RebuildArgs),
    }
}

/// Compare counters with rows, and the audit log with its hashes
///
/// It reads all rows, which can take long, and changes nothing: a catalogue with an earlier schema is refused, not
/// migrated. Exits with 1 if anything is wrong.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
struct CheckArgs {
    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Write a consistent copy of a catalogue in SQLite, while it is in use
///
/// The copy has the schema of the catalogue; nothing is migrated. For PostgreSQL, use the backup tools of its server.
#[derive(Clone, Debug, Args)]
struct BackupArgs {
    /// The file to write, which appears when it is complete
    #[arg(value_name = "FILE")]
    to: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// Bring the schema of the catalogue up to date, or create it
///
/// Every command that opens a catalogue does so, except `check`, `backup` and `check-config --probe`; this one does
/// nothing else, and shows what it did. Earlier versions of this program refuse a schema that is newer than theirs.
#[derive(Clone, Debug, Args)]
struct MigrateArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

impl CatalogueArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done, or a check finds something.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        super::log::begin_plain();
        self.command.run().await
    }
}

impl ConfigArgs {
    fn url(&self) -> Result<CatalogueUrl, UsageError> {
        let Some(path) = &self.config_file else {
            let data = DataDirectory::new(self.data.clone().unwrap_or_default());
            let stores = data.stores().map_err(|error| UsageError::flag("--data", error))?;
            let none = || UsageError::flag("--data", "a repository has a catalogue");
            return stores.catalogue().cloned().ok_or_else(none);
        };
        let file = ConfigFile::read(path).map_err(|error| UsageError::flag("--config.file", error))?;
        let none = || UsageError::flag("--config.file", format!("{} has no catalogue", path.display()));
        file.stores().catalogue().cloned().ok_or_else(none)
    }

    /// A catalogue that exists, as it is: a mistyped path makes no new one, and those who use it may know its schema
    /// only.
    async fn open(&self) -> anyhow::Result<Catalogue> {
        Ok(Catalogue::open_as_is(self.url()?.expose()).await.map_err(failed)?)
    }
}

impl CheckArgs {
    async fn run(self) -> anyhow::Result<()> {
        let catalogue = self.config.open().await?;
        let spinner = Spinner::start("checking the catalogue");
        let findings = catalogue.check().await.map_err(failed);
        drop(spinner);
        let place = catalogue.place().to_owned();
        catalogue.close().await;
        let texts: Vec<_> = findings?.iter().map(ToString::to_string).collect();
        self.output.show(&json!({ "catalogue": place, "findings": texts }), |screen: &mut Screen| {
            for text in &texts {
                screen.entry(text);
            }
            if texts.is_empty() {
                screen.say(&format!("catalogue {place}: no problems found"));
            }
        })?;
        if texts.is_empty() {
            return Ok(());
        }
        let findings = counted(texts.len() as u64, "finding", "findings");
        Err(CommandError::new(FAILED, format!("catalogue {place}: {findings}")).into())
    }
}

impl BackupArgs {
    async fn run(self) -> anyhow::Result<()> {
        if !self.replace && self.to.symlink_metadata().is_ok() {
            let why = format!("{} exists; --replace replaces it", self.to.display());
            return Err(CommandError::new(REFUSED, why).into());
        }
        let catalogue = self.config.open().await?;
        let spinner = Spinner::start("copying the catalogue");
        let copied = catalogue.backup(&self.to).await.map_err(failed);
        drop(spinner);
        catalogue.close().await;
        copied?;
        super::output::write(&format!("wrote {}\n", self.to.display()))
    }
}

impl MigrateArgs {
    async fn run(self) -> anyhow::Result<()> {
        let (catalogue, migrated) = Catalogue::migrate(self.config.url()?.expose()).await.map_err(failed)?;
        let place = catalogue.place().to_owned();
        catalogue.close().await;
        super::output::write(&match (migrated.from, migrated.to) {
            (0, to) => format!("catalogue {place}: created with schema {to}\n"),
            (from, to) if from == to => format!("catalogue {place}: schema {to} is up to date\n"),
            (from, to) => {
                let backup =
                    migrated.backup.map(|file| format!("; copy of the old one: {}", visible(&file.to_string_lossy())));
                format!("catalogue {place}: migrated from schema {from} to {to}{}\n", backup.unwrap_or_default())
            }
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err calls it")]
fn failed(error: queuekeeper_catalogue::Error) -> CommandError {
    let code = if matches!(error.kind, ErrorKind::Missing) { NOT_FOUND } else { FAILED };
    CommandError::new(code, error.to_string())
}
