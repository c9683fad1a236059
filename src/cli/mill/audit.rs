//! `queuekeeper mill audit`: the audit log of a space, for auditors.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use queuekeeper_mill::audit::tsv::AuditTable;
use queuekeeper_mill::bit::verify::Scope;

use super::ConfigArgs;
use super::verify::Named;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, NOT_FOUND};
use crate::cli::output;
use crate::server;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// Write the audit log of a space, oldest event first
#[derive(Clone, Debug, Args)]
pub(super) struct AuditArgs {
    /// A space of an account in a store; the store by its name, or by its number in policies
    #[arg(
        value_name = "ACCOUNT/STORE/SPACE",
        value_parser = OsStringValueParser::new().try_map(|text: OsString| space(&text))
    )]
    what: Named,

    /// The format: tsv has the columns of Mill's audit log
    #[arg(long, value_name = "FORMAT", default_value = "tsv")]
    format: Format,

    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Tsv,
}

/// A space, as it is written.
fn space(text: &OsString) -> Result<Named, String> {
    let parts = text.as_bytes().split(|byte| *byte == b'/').filter(|part| !part.is_empty()).count();
    if parts == 3 { Named::parse(text) } else { Err("name a space: ACCOUNT/STORE/SPACE".to_owned()) }
}

impl AuditArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.config.read()?;
        let Scope { account, store, space: Some(space), key: None } = self.what.scope(&config)? else {
            return Err(UsageError("name a space: ACCOUNT/STORE/SPACE".to_owned()).into());
        };
        let Format::Tsv = self.format;
        let table = config.accounts.get(&account).and_then(|account| AuditTable::new(account, &store, &space));
        let none = || UsageError(format!("the name {space} is not possible for a space in the stores"));
        let table = table.ok_or_else(none)?;
        let catalogue = server::catalogue::open(file.stores()).await?;
        let mut page = catalogue.events_of_space(&store, table.in_store(), 0, PAGE).await?;
        if page.is_empty() {
            catalogue.close().await;
            let why = format!("the audit log has no events of a space {space} in {store}");
            return Err(CommandError::new(NOT_FOUND, why).into());
        }
        let mut is_open = output::write_while_open(&AuditTable::header())?;
        while let Some(last) = page.last()
            && is_open
        {
            let after = last.seq;
            let lines: String = page.iter().map(|event| table.line(event)).collect();
            is_open = output::write_while_open(&lines)?;
            page = catalogue.events_of_space(&store, table.in_store(), after, PAGE).await?;
        }
        catalogue.close().await;
        Ok(())
    }
}
