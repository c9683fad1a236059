//! `queuekeeper mill spaces`: every space and how far its copies are, the items of one, and one item.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use jiff::Timestamp;
use queuekeeper_store::Key;

use super::ConfigArgs;
use crate::cli::UsageError;
use crate::cli::exit::CommandError;
use crate::cli::output::{self, Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::{ago, argument, count, some};
use crate::views::mill::{ItemDetail, ItemFilter, ItemList, ItemName, KeyText, Mill, SpaceCopies, SpaceFilter};
use crate::words::{counted, size};

/// Show all spaces and the state of their copies, the items of one space, or one item and why it is not up to date
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct SpacesArgs {
    /// The space whose items are shown
    #[arg(value_name = "ACCOUNT/SPACE")]
    space: Option<String>,

    /// The key of the item to show, not encoded, as for mill verify
    #[arg(
        long,
        value_name = "KEY",
        requires = "space",
        value_parser = OsStringValueParser::new().try_map(|text: OsString| {
            Key::new(text.as_bytes()).map_err(|error| error.to_string())
        })
    )]
    key: Option<Key>,

    /// Spaces or items with names that begin with this
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,

    /// Spaces after this one, or items after this key, as printed at the end of the previous list; a key is taken as it
    /// is, without decoding. In JSON, `next` of items is percent-encoded, like `key_encoded`
    #[arg(long, value_name = "NAME|KEY", allow_hyphen_values = true)]
    after: Option<OsString>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl SpacesArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let space = self.space.as_deref().map(|name| {
            let wrong = || UsageError(format!("expected ACCOUNT/SPACE, not {name:?}"));
            name.split_once('/').ok_or_else(wrong)
        });
        let space = space.transpose()?;
        let after = self.after.as_ref().map(|after| match space {
            Some(_) => Key::new(after.as_bytes()).map(After::Key).map_err(|error| error.to_string()),
            None => {
                after.to_str().map(|name| After::Space(name.to_owned())).ok_or("it is no name of a space".to_owned())
            }
        });
        let after = after.transpose().map_err(|error| UsageError::flag("--after", error))?;
        let show = async |mill: &Mill| match (space, &self.key) {
            (Some((account, space)), Some(key)) => {
                let key = KeyText(Some(key.clone()));
                let detail = mill.item(account, space, &ItemName { key }).await.map_err(CommandError::from)?;
                self.output.show(&detail, |screen| show_item(&detail, screen))
            }
            (Some((account, space)), None) => {
                let after = KeyText(after.and_then(After::key));
                let filter = ItemFilter { prefix: self.prefix.clone(), after, ..ItemFilter::default() };
                let list = mill.items(account, space, &filter).await.map_err(CommandError::from)?;
                self.output.show(&list, |screen| show_items(&list, screen))?;
                let next = list.next.as_deref().and_then(|next| next.parse::<KeyText>().ok()?.0);
                more(next.as_ref().map(Key::as_bytes));
                Ok(())
            }
            (None, _) => {
                let (prefix, after) = (self.prefix.clone(), after.and_then(After::space).unwrap_or_default());
                let list = mill
                    .spaces(&SpaceFilter { prefix, after, ..SpaceFilter::default() })
                    .await
                    .map_err(CommandError::from)?;
                self.output.show(&list, |screen| screen.table(&copies(&list.items, Timestamp::now())))?;
                for (account, why) in &list.unread {
                    output::note(&format!("the policy of {account} cannot be read: {why}"));
                }
                if list.items.is_empty() {
                    output::note("the content index has no such space");
                }
                more(list.next.as_deref().map(str::as_bytes));
                Ok(())
            }
        };
        self.config.with_mill(show).await
    }
}

/// Behind what a list begins.
enum After {
    Space(String),
    Key(Key),
}

impl After {
    fn space(self) -> Option<String> {
        match self {
            Self::Space(name) => Some(name),
            Self::Key(_) => None,
        }
    }

    fn key(self) -> Option<Key> {
        match self {
            Self::Key(key) => Some(key),
            Self::Space(_) => None,
        }
    }
}

fn more(next: Option<&[u8]>) {
    if let Some(after) = next {
        output::note(&format!("there are more: --after {}", argument(after)));
    }
}

fn copies(spaces: &[SpaceCopies], now: Timestamp) -> Table {
    let mut table = Table::new([
        Column::rest("SPACE"),
        Column::new("STORE"),
        Column::new("STATE"),
        Column::number("ITEMS"),
        Column::number("OF"),
        Column::number("SIZE"),
        Column::number("BIT ERRORS").if_filled(),
        Column::new("FROM"),
        Column::new("PROOFS").if_filled(),
        Column::rest("OLDEST PROOF").if_filled(),
        Column::new("COUNTED").if_filled(),
        Column::rest("ERROR").if_filled(),
    ]);
    for space in spaces {
        for copy in &space.copies {
            let of = copy.source.as_ref().map(|_| count(copy.source_items)).unwrap_or_default();
            table.row([
                format!("{}/{}", space.account, space.space),
                copy.store.clone(),
                copy.state.words().to_owned(),
                count(copy.items),
                of,
                size(copy.bytes),
                some(copy.bit_errors),
                copy.source.clone().unwrap_or_default(),
                if copy.items == 0 { String::new() } else { copy.proofs.age.words().to_owned() },
                copy.proofs.words(now),
                copy.counted
                    .map(|of| format!("{} {} ago", counted(of.items, "item", "items"), ago(Some(of.time), now)))
                    .unwrap_or_default(),
                copy.error.clone().unwrap_or_default(),
            ]);
        }
    }
    table
}

fn show_items(list: &ItemList, screen: &mut Screen) {
    screen.table(&copies(std::slice::from_ref(&list.space), Timestamp::now()));
    screen.gap();
    let mut table = Table::new([
        Column::rest("KEY"),
        Column::new("IN"),
        Column::new("BIT ERROR IN").if_filled(),
        Column::new("NOT DONE IN").if_filled(),
        Column::new("LEFT OUT IN").if_filled(),
    ]);
    for item in &list.items {
        let living = item.copies.iter().filter(|copy| !copy.is_deleted).map(|copy| copy.store.as_str());
        let wrong = item.copies.iter().filter(|copy| copy.bit_error.is_some()).map(|copy| copy.store.as_str());
        let (differing, left_out) = (item.differing.join(", "), item.left_out.join(", "));
        let (living, wrong) = (living.collect::<Vec<_>>().join(", "), wrong.collect::<Vec<_>>().join(", "));
        table.row([item.key.clone(), living, wrong, differing, left_out]);
    }
    screen.table(&table);
}

fn show_item(detail: &ItemDetail, screen: &mut Screen) {
    let now = Timestamp::now();
    screen.say(&format!("{}/{}: {}", detail.account, detail.space, detail.item.key));
    if detail.is_done {
        screen.say("according to the content index, its copies are as the policies require");
    }
    for cause in &detail.causes {
        screen.item("- ", cause);
    }
    screen.gap();
    let mut copies =
        Table::new([Column::new("STORE"), Column::number("SIZE"), Column::number("PROVEN"), Column::rest("DIGEST")]);
    for copy in &detail.item.copies {
        let bytes = if copy.is_deleted { "deleted".to_owned() } else { size(copy.size_bytes) };
        let proven = match (copy.bit_error, copy.proven) {
            (Some(number), _) => format!("bit error {number}"),
            (None, proven) => proven.map(|at| format!("{} ago", ago(Some(at), now))).unwrap_or_default(),
        };
        copies.row([copy.store.clone(), bytes, proven, copy.digest.clone()]);
    }
    screen.table(&copies);
    screen.gap();
    let mut checks = Table::new([
        Column::new("CHECKED"),
        Column::rest("RESULT"),
        Column::number("AGO"),
        Column::rest("WHAT").if_filled(),
    ]);
    for check in &detail.checks {
        let detail = check.detail.clone().unwrap_or_default();
        checks.row([check.store.clone(), check.words(), ago(Some(check.time), now), detail]);
    }
    if !detail.checks.is_empty() {
        screen.table(&checks);
        screen.gap();
    }
    let mut events = Table::new([
        Column::new("STORE"),
        Column::new("CHANGE"),
        Column::rest("BY"),
        Column::number("AGO"),
        Column::rest("WHY").if_filled(),
    ]);
    for event in &detail.events {
        let (change, why) = (event.change.to_owned(), event.why.clone().unwrap_or_default());
        events.row([event.store.clone(), change, event.user.clone(), ago(Some(event.time), now), why]);
    }
    screen.table(&events);
}
