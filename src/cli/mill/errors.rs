//! `queuekeeper mill errors` and `repair`: what is wrong with copies, and their repair from other ones.

use std::ffi::OsString;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use jiff::Timestamp;
use queuekeeper_mill::bit::verify::Scope;

use super::PlaceArgs;
use super::session::{MillActArgs, MillSession};
use super::verify::Named;
use crate::actions::mill::WrongCopy;
use crate::cli::UsageError;
use crate::cli::exit::CommandError;
use crate::cli::output::{self, Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{BitErrorItem, ErrorFilter, ErrorList};

/// List the bit errors: copies that are not what was recorded, and what can be done about them
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ErrorsArgs {
    /// Those of this account; without one, of the first that has any
    #[arg(value_name = "ACCOUNT", default_value = "")]
    account: String,

    /// Bit errors with a number above this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,

    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Have a copy repaired from another one
///
/// A worker reads another copy, and writes it where content index and audit log have the same of both; the damaged content is kept
/// aside. `mill errors` shows whether that has ended.
#[derive(Clone, Debug, Args)]
pub(super) struct RepairArgs {
    /// The number of a bit error, or the item in a store, which is named, or has the number that policies have
    #[arg(
        value_name = "NUMBER|ACCOUNT/STORE/SPACE/KEY",
        value_parser = OsStringValueParser::new().try_map(|text| RepairOf::parse(&text))
    )]
    what: RepairOf,

    #[command(flatten)]
    act: MillActArgs,
}

/// What is to be repaired, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RepairOf {
    Error(u64),
    Copy(Named),
}

impl RepairOf {
    fn parse(text: &OsString) -> Result<Self, String> {
        match text.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Self::Error(number)),
            None => Named::parse(text).map(Self::Copy),
        }
    }
}

impl ErrorsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (mill, catalogue) = self.place.open().await?;
        let list =
            mill.errors(&ErrorFilter { account: self.account, after: self.after, ..ErrorFilter::default() }).await;
        catalogue.close().await;
        let list = list.map_err(CommandError::from)?;
        self.output.show(&list, |screen| show(&list, screen))?;
        if list.errors.is_empty() {
            output::note("there are no bit errors");
        } else if let Some(after) = list.next {
            output::note(&format!("there are more: --after {after}"));
        }
        Ok(())
    }
}

fn show(list: &ErrorList, screen: &mut Screen) {
    if list.errors.is_empty() {
        return;
    }
    for (account, open) in &list.accounts {
        screen.say(&format!("{account}: {} open", count(*open)));
    }
    screen.table(&table(&list.errors));
    screen.gap();
    for error in &list.errors {
        screen.item(&format!("{}: ", error.number), &error.remedy);
    }
}

fn table(errors: &[BitErrorItem]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::number("NUMBER"),
        Column::new("STORE"),
        Column::rest("ITEM"),
        Column::rest("FOUND"),
        Column::number("SINCE"),
        Column::number("LAST"),
        Column::number("TIMES"),
    ]);
    for error in errors {
        table.row([
            error.number.to_string(),
            error.store.clone(),
            format!("{}/{}/{}", error.account, error.space, error.key),
            error.detail.clone(),
            ago(Some(error.found), now),
            ago(Some(error.seen), now),
            count(error.times),
        ]);
    }
    table
}

impl RepairArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let copy = match self.what {
            RepairOf::Error(number) => WrongCopy::Error(number),
            RepairOf::Copy(named) => match named.scope(&self.act.config()?)? {
                Scope { account, store, space: Some(space), key: Some(key) } => {
                    WrongCopy::Copy { account, store, space, key }
                }
                Scope { .. } => return Err(UsageError("name one item: ACCOUNT/STORE/SPACE/KEY".to_owned()).into()),
            },
        };
        self.act.with_session(async |session| repair(session, &copy).await).await
    }
}

async fn repair(session: &MillSession, copy: &WrongCopy) -> anyhow::Result<()> {
    let MillSession { actions, actor, reason, .. } = session;
    let entry = actions.repair(copy, actor, reason).await.map_err(CommandError::from)?;
    let name = entry.targets.first().map_or("", |target| target.trim_start_matches("copy:"));
    output::write(&format!("the repair of {name} waits for a worker\n"))
}
