//! `queuekeeper mill reports`: reports on the integrity of spaces, one of them, and its files.

use std::io::{ErrorKind, Write as _};

use anyhow::Context as _;
use clap::Args;
use futures::TryStreamExt as _;
use jiff::Timestamp;

use super::ConfigArgs;
use crate::cli::exit::CommandError;
use crate::cli::output::{self, Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::{ago, count};
use crate::views::mill::{Mill, OpenReport, ReportDetail, ReportFilter, ReportFormat, ReportItem, ReportPage};
use crate::views::parameter::OneOf;
use crate::views::show::{machine, visible};
use crate::words::size;

/// List the reports on the integrity of spaces, newest loop first; show one; or write one of its files to standard
/// output
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ReportsArgs {
    /// The number of the report to show
    #[arg(value_name = "NUMBER")]
    number: Option<u64>,

    /// Write this file of the report: tsv is the table of all items, coverage the table of what it covers, json both in
    /// one document; csv is the table of all items for spreadsheets, premis the checks as PREMIS events, seal the list
    /// of the other files with their SHA-256
    #[arg(long, value_name = "FORMAT", requires = "number")]
    file: Option<OneOf<ReportFormat>>,

    /// Reports on spaces of this account
    #[arg(long, value_name = "ACCOUNT", default_value = "", conflicts_with = "number")]
    account: String,

    /// Reports on spaces in this store
    #[arg(long, value_name = "STORE", default_value = "", conflicts_with = "number")]
    store: String,

    /// Reports on spaces of this name
    #[arg(long, value_name = "SPACE", default_value = "", conflicts_with = "number")]
    space: String,

    /// Only reports that are the newest on their space and not a success
    #[arg(long, conflicts_with = "number")]
    unsuccessful: bool,

    /// Reports with a number below this, as printed at the end of the previous list
    #[arg(long, value_name = "NUMBER", conflicts_with = "number")]
    before: Option<u64>,

    /// Items of the report whose checks have a number above this, as printed at the end of the previous list
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "number")]
    after: u64,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl ReportsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let show = async |mill: &Mill| match (self.number, self.file) {
            (Some(number), Some(format)) => write(mill, number, format.0).await,
            (Some(number), None) => self.one(mill, number).await,
            (None, _) => self.list(mill).await,
        };
        self.config.with_mill(show).await
    }

    async fn list(&self, mill: &Mill) -> anyhow::Result<()> {
        let filter = ReportFilter {
            account: self.account.clone(),
            store: self.store.clone(),
            space: self.space.clone(),
            unsuccessful: self.unsuccessful,
            before: self.before,
            ..ReportFilter::default()
        };
        let list = mill.reports(&filter).await.map_err(CommandError::from)?;
        self.output.show(&list, |screen| {
            if !list.items.is_empty() {
                screen.table(&table(&list.items));
            }
        })?;
        if list.items.is_empty() {
            output::note("there are no such reports");
        } else if let Some(before) = list.next {
            output::note(&format!("there are more: --before {before}"));
        }
        Ok(())
    }

    async fn one(&self, mill: &Mill, number: u64) -> anyhow::Result<()> {
        let page = ReportPage { after: self.after, ..ReportPage::default() };
        let detail = mill.report(&number.to_string(), &page).await.map_err(CommandError::from)?;
        self.output.show(&detail, |screen| show(&detail, screen))?;
        if let Some(after) = detail.next {
            output::note(&format!("there are more items: --after {after}"));
        }
        Ok(())
    }
}

fn table(reports: &[ReportItem]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::number("NUMBER"),
        Column::rest("SPACE"),
        Column::new("STORE"),
        Column::new("RESULT"),
        Column::number("ITEMS"),
        Column::number("PROVEN"),
        Column::number("WRONG"),
        Column::number("LOOP"),
        Column::number("AGO"),
        Column::rest("LACKS").if_filled(),
    ]);
    let number = |number: Option<u64>| number.map(count).unwrap_or_default();
    for report in reports {
        table.row([
            report.number.to_string(),
            format!("{}/{}", report.account, report.space),
            report.store.clone(),
            report.result.clone(),
            number(report.items),
            number(report.proven),
            number(report.wrong),
            report.loop_number.to_string(),
            ago(Some(report.reported), now),
            report.lacks.join("; "),
        ]);
    }
    table
}

fn show(detail: &ReportDetail, screen: &mut Screen) {
    let ReportDetail { report, coverage, files, failed, .. } = detail;
    screen.fact("space", &format!("{}/{} in {}", report.account, report.space, report.store));
    screen.fact("result", &report.result);
    for lack in &report.lacks {
        screen.fact("lacks", lack);
    }
    screen.fact("loop", &report.loop_number.to_string());
    screen.fact("proof", &report.policy);
    screen.fact("reported", &machine(report.reported));
    for file in files {
        screen.fact(file.format, &format!("{}/{}/{}", file.store, file.space, file.key));
    }
    let mut parts = Table::new([
        Column::rest("COVERAGE"),
        Column::number("NUMBER"),
        Column::number("SIZE"),
        Column::new("RESULT").if_filled(),
    ]);
    for part in coverage {
        let words = if part.why.is_empty() { part.words.to_owned() } else { format!("{}: {}", part.words, part.why) };
        parts.row([words, count(part.items), size(part.bytes), part.leads_to.unwrap_or_default().to_owned()]);
    }
    if !coverage.is_empty() {
        screen.gap();
        screen.table(&parts);
    }
    let mut items = Table::new([Column::rest("ITEM"), Column::rest("FOUND")]);
    for item in failed {
        items.row([item.key.clone(), visible(&item.detail)]);
    }
    if !failed.is_empty() {
        screen.gap();
        screen.table(&items);
    }
}

/// Writes a file of a report, chunk by chunk. A closed pipe is not an error.
async fn write(mill: &Mill, number: u64, format: ReportFormat) -> anyhow::Result<()> {
    let OpenReport { mut chunks, .. } =
        mill.open_report(&number.to_string(), format).await.map_err(CommandError::from)?;
    let mut out = std::io::stdout();
    while let Some(chunk) = chunks.try_next().await.with_context(|| format!("report {number} cannot be read"))? {
        match out.write_all(&chunk) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            wrote => wrote?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}
