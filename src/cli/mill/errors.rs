//! `queuekeeper mill errors`, `repair` and `resolve`: what is wrong with copies, and what is decided about that.

use std::ffi::OsString;

use clap::Args;
use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use queuekeeper_mill::bit::verify::Scope;

use super::ConfigArgs;
use super::session::{MillActArgs, MillSession};
use super::verify::Named;
use crate::actions::mill::{Resolution, WrongCopy};
use crate::cli::UsageError;
use crate::cli::exit::CommandError;
use crate::cli::output::{self, Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{BitErrorItem, ErrorFilter, ErrorList, StopItem};

/// List the bit errors: copies that differ from their records, and what can be done about them
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ErrorsArgs {
    /// Bit errors of this account; without it, of the first account that has any
    #[arg(value_name = "ACCOUNT", default_value = "")]
    account: String,

    /// Bit errors with a number above this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Have a copy repaired from another one: the same as mill resolve repair
#[derive(Clone, Debug, Args)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    decision: DecisionArgs,
}

/// Have a bit error resolved
///
/// A worker reads the copy, and carries out the resolution if it still fits what it finds; `mill errors` shows which
/// resolutions are possible, and whether one is in progress. Overwritten content is kept aside.
#[derive(Clone, Debug, Args)]
pub(super) struct ResolveArgs {
    /// How to resolve it
    #[arg(value_name = "RESOLUTION", value_parser = resolutions())]
    resolution: Resolution,

    #[command(flatten)]
    decision: DecisionArgs,
}

/// Parses the name of a resolution; the help has what each of them does.
fn resolutions() -> impl TypedValueParser<Value = Resolution> {
    let value = |resolution: Resolution| PossibleValue::new(resolution.as_str()).help(resolution.help());
    PossibleValuesParser::new(Resolution::ALL.map(value))
        .try_map(|name| Resolution::named(&name).ok_or("it is not a resolution"))
}

/// Of which copy a bit error is to be resolved, and why.
#[derive(Clone, Debug, Args)]
struct DecisionArgs {
    /// The number of a bit error, or an item as ACCOUNT/STORE/SPACE/KEY; the store by its name, or by its number in
    /// policies
    #[arg(
        value_name = "NUMBER|ITEM",
        value_parser = OsStringValueParser::new().try_map(|text| ErrorOf::parse(&text))
    )]
    what: ErrorOf,

    #[command(flatten)]
    act: MillActArgs,
}

/// Of which copy a bit error is to be resolved, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorOf {
    Error(u64),
    Copy(Named),
}

/// What a decision is to name.
const WANTED: &str = "expected the number of a bit error, or an item: ACCOUNT/STORE/SPACE/KEY";

impl ErrorOf {
    fn parse(text: &OsString) -> Result<Self, &'static str> {
        match text.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Self::Error(number)),
            None => Named::parse(text).map(Self::Copy).map_err(|_why| WANTED),
        }
    }
}

impl ErrorsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let filter = ErrorFilter { account: self.account, after: self.after, ..ErrorFilter::default() };
        let list = self.config.ask(async |mill| mill.errors(&filter).await).await?;
        self.output.show(&list, |screen| show(&list, screen))?;
        if list.errors.is_empty() {
            output::note(&match self.after {
                0 => "there are no bit errors".to_owned(),
                after => format!("there are no bit errors with a number above {after}"),
            });
        } else if let Some(after) = list.next {
            output::note(&format!("there are more: --after {after}"));
        }
        Ok(())
    }
}

fn show(list: &ErrorList, screen: &mut Screen) {
    for StopItem { store, user, reason, since } in &list.stops {
        let store = if store.is_empty() { "all stores" } else { store };
        let since = ago(Some(*since), Timestamp::now());
        screen.say(&format!("automatic repairs in {store} are stopped, for {since}, by {user}: {reason}"));
    }
    if list.errors.is_empty() {
        return;
    }
    for (account, open) in &list.accounts {
        screen.say(&format!("{account}: {} open", count(*open)));
    }
    screen.table(&table(&list.errors));
    screen.gap();
    for error in &list.errors {
        let names: Vec<_> = error.resolutions.iter().map(|resolution| resolution.name).collect();
        let possible = if names.is_empty() { String::new() } else { format!("Possible: {}.", names.join(", ")) };
        let texts = [&error.why, &error.fix, &possible].into_iter().filter(|text| !text.is_empty());
        let texts: Vec<_> = texts.map(String::as_str).collect();
        screen.item(&format!("{}: ", error.number), &texts.join(" "));
    }
}

/// How a bit error may be decided about now; `None` where nothing may be.
pub(in crate::cli) fn decide(error: &BitErrorItem) -> Option<String> {
    let names: Vec<_> = error.resolutions.iter().map(|resolution| resolution.name).collect();
    let (number, names) = (error.number, Some(names.join("|")).filter(|names| !names.is_empty())?);
    Some(format!("To decide: queuekeeper mill resolve {names} {number} --reason TEXT"))
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
        self.decision.run(Resolution::Repair).await
    }
}

impl ResolveArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.decision.run(self.resolution).await
    }
}

impl DecisionArgs {
    async fn run(self, resolution: Resolution) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let copy = match self.what {
            ErrorOf::Error(number) => WrongCopy::Error(number),
            ErrorOf::Copy(named) => match named.scope(&self.act.config()?)? {
                Scope { account, store, space: Some(space), key: Some(key) } => {
                    WrongCopy::Copy { account, store, space, key }
                }
                Scope { .. } => return Err(UsageError(WANTED.to_owned()).into()),
            },
        };
        self.act.with_session(async |session| resolve(session, &copy, resolution).await).await
    }
}

async fn resolve(session: &MillSession, copy: &WrongCopy, resolution: Resolution) -> anyhow::Result<()> {
    let MillSession { actions, actor, reason, .. } = session;
    let entry = actions.resolve(copy, resolution, actor, reason).await.map_err(CommandError::from)?;
    let name = entry.targets.first().map_or("", |target| target.trim_start_matches("copy:"));
    output::write(&match resolution {
        Resolution::Repair => format!("the repair of {name} waits for a worker\n"),
        Resolution::Drop => format!("the bit error of {name} is dropped\n"),
        Resolution::Rewrite | Resolution::Correct | Resolution::Adopt | Resolution::Accept => {
            format!("{} of {name} waits for a worker\n", resolution.as_str())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_what_each_resolution_does() {
        let values: Vec<_> = resolutions().possible_values().unwrap().collect();
        let named: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
        assert_eq!(named, Resolution::ALL.map(Resolution::as_str));
        for (value, resolution) in values.iter().zip(Resolution::ALL) {
            let help = value.get_help().unwrap().to_string();
            assert_eq!(help, resolution.help());
            // What a page shows beside it is not there on the command line.
            assert!(!help.contains(" here"), "{help}");
        }
    }
}
