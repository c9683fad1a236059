//! `queuekeeper store ls`: what a store has.

use std::io::{ErrorKind, IsTerminal as _, Write};

use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_store::store::Listed;
use queuekeeper_store::{Key, SpaceName, Store};
use serde::Serialize;
use utoipa::ToSchema;

use super::ConfigArgs;
use super::open::failed;
use super::path::{self, StorePath};
use super::report;
use crate::cli::output::{self, OutputArgs};
use crate::cli::words::count;
use crate::views::csv::{self, Columns};
use crate::views::show::visible_json;
use crate::words::{counted, moment};

/// How many items a table has at most, unless more are asked for.
const MOST_IN_TABLE: u64 = 1000;

/// List the spaces of a store, or the items of a space, by key
///
/// A key may be any bytes. In JSON and CSV, `key` is a readable form with escapes for invisible characters;
/// `key_encoded` is the exact key, percent-encoded. Items are written as they are read. A list that is cut off by
/// --limit has `has_more` in JSON. A list that fails midway ends with the error: in JSON as `error` after `items`, in
/// CSV as a last line with one field, `error: ..`; the exit code is then not 0.
#[derive(Clone, Debug, Args)]
pub(super) struct ListArgs {
    /// A store, a space, or a prefix of keys in a space
    #[arg(value_name = "STORE[/SPACE[/PREFIX]]", value_parser = StorePath::parser())]
    path: StorePath,

    #[command(flatten)]
    output: OutputArgs,

    /// Show only items with keys above this one
    #[arg(long, value_name = "KEY", value_parser = path::key_parser())]
    after: Option<Key>,

    /// Show at most this many items [default: 1000 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<u64>,

    /// Show all items
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// One item of a list.
#[derive(Serialize, ToSchema)]
struct StoredItemRow {
    key: String,
    size: u64,
    modified: jiff::Timestamp,
    etag: Option<String>,
    key_encoded: String,
}

impl ListArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let store = self.config.stores()?.read(&self.path.store).await?;
        match &self.path.space {
            None => self.spaces(&*store).await,
            Some(space) => match self.items(&*store, space).await {
                // The reader of the pipe has closed it, as `head` does.
                Err(error) if is_closed(&error) => Ok(()),
                listed => listed,
            },
        }
    }

    async fn spaces(&self, store: &dyn Store) -> anyhow::Result<()> {
        let spaces = store.spaces().await.map_err(|error| failed(&error))?;
        let names: Vec<_> = spaces.iter().map(SpaceName::as_str).collect();
        if self.output.is_csv() {
            return output::write(&[&["name"], &*names, &[""]].concat().join("\n"));
        }
        self.output.show(&serde_json::json!({ "spaces": names }), |screen| {
            for name in &names {
                screen.say(name);
            }
        })?;
        if names.is_empty() {
            output::note(&format!("{} has no spaces", store.name()));
        }
        Ok(())
    }

    /// How many items are shown at most. A program that reads a list would take a cut one for all there is.
    fn most(&self) -> Option<u64> {
        let is_for_programs = self.output.is_json() || self.output.is_csv();
        self.limit.or((!self.all && !is_for_programs).then_some(MOST_IN_TABLE))
    }

    /// Writes each item as it comes: a space may have any number.
    async fn items(&self, store: &dyn Store, space: &SpaceName) -> anyhow::Result<()> {
        let mut listing = store.list(space, &self.path.rest, self.after.as_ref());
        // What fails at once fails before anything is written.
        let mut next = listing.try_next().await.map_err(|error| failed(&error))?;
        let mut out = Rows::begin(self.output)?;
        let mut shown = 0;
        while let Some(item) = next {
            if Some(shown) == self.most() {
                out.end(true)?;
                let first = if shown == 1 { "item".to_owned() } else { counted(shown, "item", "items") };
                output::note(&format!("the first {first}; --all shows all of them"));
                return Ok(());
            }
            out.row(&item)?;
            shown += 1;
            next = match listing.try_next().await {
                Ok(next) => next,
                Err(error) => {
                    let error = failed(&error);
                    out.break_off(&error.to_string())?;
                    return Err(error.into());
                }
            };
        }
        out.end(false)?;
        if shown == 0 {
            output::note("no item matches");
        }
        Ok(())
    }
}

/// Rows on their way to standard output.
struct Rows {
    out: std::io::BufWriter<std::io::Stdout>,
    output: OutputArgs,
    columns: Columns<StoredItemRow>,
    is_first: bool,
    is_terminal: bool,
}

impl Rows {
    fn begin(output: OutputArgs) -> std::io::Result<Self> {
        let is_terminal = std::io::stdout().is_terminal();
        let out = std::io::BufWriter::new(std::io::stdout());
        let mut rows = Self { out, output, columns: Columns::new(), is_first: true, is_terminal };
        if output.is_json() {
            rows.out.write_all(b"{\"items\": [")?;
        } else if output.is_csv() {
            rows.out.write_all(rows.columns.header().as_bytes())?;
        } else {
            writeln!(rows.out, "{:>20}  {:<23}  KEY", "BYTES", "MODIFIED")?;
        }
        Ok(rows)
    }

    fn row(&mut self, item: &Listed) -> anyhow::Result<()> {
        let row = StoredItemRow {
            key: report::text(&item.key),
            size: item.size,
            modified: item.modified,
            etag: item.etag.as_ref().map(|etag| etag.0.clone()),
            key_encoded: item.key.encoded(),
        };
        if self.output.is_json() {
            self.out.write_all(if self.is_first { b"\n  " } else { b",\n  " })?;
            self.out.write_all(visible_json(serde_json::to_string(&row)?).as_bytes())?;
        } else if self.output.is_csv() {
            self.out.write_all(self.columns.rows(&[row]).as_bytes())?;
        } else {
            let modified = moment(item.modified);
            writeln!(self.out, "{:>20}  {modified}  {}", count(item.size), item.key)?;
            // A reader sees each page as it comes.
            if self.is_terminal && self.is_first {
                self.out.flush()?;
            }
        }
        self.is_first = false;
        Ok(())
    }

    /// Ends a list of which there is more that cannot be read, so that it is not taken for all there is.
    fn break_off(&mut self, why: &str) -> anyhow::Result<()> {
        if self.output.is_json() {
            self.out.write_all(b"\n], \"error\": ")?;
            self.out.write_all(visible_json(serde_json::to_string(why)?).as_bytes())?;
            self.out.write_all(b"}\n")?;
        } else if self.output.is_csv() {
            self.out.write_all(csv::line(&format!("error: {why}")).as_bytes())?;
        }
        Ok(self.out.flush()?)
    }

    fn end(&mut self, has_more: bool) -> std::io::Result<()> {
        if self.output.is_json() {
            self.out.write_all(if self.is_first { b"]" } else { b"\n]" })?;
            self.out.write_all(if has_more { b", \"has_more\": true}\n" } else { b"}\n" })?;
        }
        self.out.flush()
    }
}

fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
