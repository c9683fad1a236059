//! `queuekeeper mill compare`: what a store lists, and what the content index has.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::compare::{Compared, Difference};
use queuekeeper_mill::bit::comparer::CompareSaid;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_store::error::shortened;
use serde_json::json;

use super::ConfigArgs;
use super::verify::Named;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND, NOT_PROVEN};
use crate::cli::meter::Lines;
use crate::cli::output;
use crate::cli::words::count;
use crate::server;
use crate::views::show::visible_json;
use crate::words::{counted, size};

/// Compare what a store lists with the content index, without reading content
///
/// One line for each item that is stored but not recorded, recorded but not stored, or has another size, checksum or
/// entity tag than recorded; each difference is checked a second time before it is printed. Nothing is changed. Exits
/// with 7 if anything differs. If the listing fails midway, the command fails, regardless of what it printed until
/// then.
#[derive(Clone, Debug, Args)]
pub(super) struct CompareArgs {
    /// A space of an account in a store, or all of them; the store by its name, or by its number in policies
    #[arg(
        value_name = "ACCOUNT/STORE[/SPACE]",
        value_parser = OsStringValueParser::new().try_map(|text: OsString| Named::parse(&text))
    )]
    what: Named,

    /// Keep the result: a table in the account's space for reports, and a summary in the catalogue, which the pages and
    /// the API show
    #[arg(long)]
    keep: bool,

    /// Lines for people, or JSON or TSV for programs
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    format: Format,

    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Tsv,
}

impl CompareArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.config.read()?;
        let scope = self.what.scope_of_content(&config)?;
        if scope.key.is_some() {
            return Err(UsageError("name a space, or a store: ACCOUNT/STORE[/SPACE]".to_owned()).into());
        }
        let reports = config.accounts.get(&scope.account).and_then(Account::primary).filter(|_| self.keep);
        let checker = server::mill::checker(&config, file.stores(), [&scope.store].into_iter().chain(reports)).await?;
        let catalogue = checker.catalogue.clone();
        let mut printed = Printed::begin(&scope, self.format);
        let outcome = checker.compare(&scope, self.keep, &mut |said| printed.say(&said)).await;
        catalogue.close().await;
        let compared = match outcome {
            Ok(compared) => compared,
            Err(why) => {
                printed.lines.end()?;
                return Err(CommandError::new(FAILED, why).into());
            }
        };
        if compared == Compared::default() && scope.space.is_some() {
            let why = "there is no such space, or it is empty, and has no records";
            return Err(CommandError::new(NOT_FOUND, why).into());
        }
        printed.end(&compared)?;
        let differing = compared.differing();
        if differing > 0 || compared.changing > 0 {
            let differing = counted(differing, "item differs", "items differ");
            let why = match compared.changing {
                0 => differing,
                changing => format!("{differing}, {}", counted(changing, "was being changed", "were being changed")),
            };
            return Err(CommandError::new(NOT_PROVEN, why).into());
        }
        Ok(())
    }
}

/// What is printed while the comparison goes on: no more than a line of it is in memory.
struct Printed<'a> {
    scope: &'a Scope,
    format: Format,
    lines: Lines,
    has_any: bool,
}

impl<'a> Printed<'a> {
    fn begin(scope: &'a Scope, format: Format) -> Self {
        Self { scope, format, lines: Lines::new(), has_any: false }
    }

    fn say(&mut self, said: &CompareSaid<'_>) {
        let text = match said {
            CompareSaid::Progress(compared) => return self.lines.progress(|| summary(compared)),
            CompareSaid::Kept(_space, place) => return self.lines.note(&format!("kept as {place}")),
            CompareSaid::Differs(difference) => self.line(difference),
        };
        self.has_any = true;
        self.lines.write(&text);
    }

    fn line(&self, difference: &Difference) -> String {
        let Difference { space, key, kind, stored, recorded } = difference;
        let Scope { account, store, .. } = self.scope;
        match self.format {
            Format::Table => {
                let key = key.to_string();
                let sizes = match (stored, recorded) {
                    (Some(stored), Some(recorded)) if stored != recorded => {
                        format!(": {} stored, {} recorded", size(*stored), size(*recorded))
                    }
                    (_, _) => String::new(),
                };
                format!("{account}/{store}/{space}/{}: {}{sizes}\n", shortened(&key), kind.words())
            }
            Format::Tsv => {
                let header = if self.has_any { String::new() } else { Difference::tsv_header() };
                header + &difference.tsv(account, store)
            }
            Format::Json => {
                let begin = if self.has_any { "," } else { "{\"differences\":[" };
                let row = json!({
                    "account": account,
                    "store": store.as_str(),
                    "space": space.as_str(),
                    "key": key.to_string(),
                    "key_encoded": key.encoded(),
                    "difference": kind.as_str(),
                    "stored_bytes": stored,
                    "recorded_bytes": recorded,
                });
                format!("{begin}\n{}", visible_json(row.to_string()))
            }
        }
    }

    fn end(self, compared: &Compared) -> anyhow::Result<()> {
        self.lines.end()?;
        output::write(&match self.format {
            Format::Table => format!("{}\n", summary(compared)),
            Format::Tsv if self.has_any => return Ok(()),
            Format::Tsv => Difference::tsv_header(),
            Format::Json => {
                let begin = if self.has_any { "\n" } else { "{\"differences\":[" };
                format!("{begin}],\"compared\":{}}}\n", json!(compared))
            }
        })
    }
}

fn summary(compared: &Compared) -> String {
    let Compared { agreeing, differences, changing } = compared;
    let mut text = format!("{} with {} as recorded", counted(agreeing.items, "item", "items"), size(agreeing.bytes));
    for (kind, amount) in differences {
        // Writing to a string does not fail.
        let _ = write!(text, ", {} {}", count(amount.items), kind.words());
    }
    if *changing > 0 {
        let _ = write!(text, ", {} being changed", count(*changing));
    }
    text
}
