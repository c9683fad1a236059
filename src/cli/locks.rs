//! `queuekeeper locks`: who holds what.

use clap::Args;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::{Column, Screen, Table};
use super::paging::Paging;
use super::words::{ago, count};
use crate::views::locks::{LockFilter, LockList};
use crate::views::show::requested;

/// List locks, by default oldest first
#[derive(Clone, Debug, Args)]
pub(super) struct LocksArgs {
    #[command(flatten)]
    filter: LockFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    client: ClientArgs,
}

impl LocksArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let store = link.store(false).await?;
            let (source, now) = (link.source(&store), Timestamp::now());
            Ok(self.paging.take(|page| source.locks(&self.filter, page, now))?)
        });
        let list = list.await?;
        self.client.output.list(&list, &list.items, |screen| show(&list, self.filter.kind.is_some(), screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "lock", "locks");
        }
        Ok(())
    }
}

fn show(list: &LockList, is_of_one_kind: bool, screen: &mut Screen) {
    let now = Timestamp::now();
    if !is_of_one_kind {
        show_kinds(list, now, screen);
    }
    let mut table = Table::new([Column::number("AGE"), Column::new("SESSION"), Column::rest("LOCK")]);
    for lock in &list.items {
        let session = match (&lock.session, lock.persistent) {
            (Some(session), _) => session.clone(),
            (None, Some(_)) => "persistent".to_owned(),
            (None, None) => "unreadable".to_owned(),
        };
        table.row([ago(lock.created, now), session, lock.path.clone()]);
    }
    screen.table(&table);
    // Who paused or held, and why, which a column has no room for.
    let requested = |by: &Option<String>, reason: &Option<String>| {
        requested(by.as_deref().unwrap_or_default(), reason.as_deref().unwrap_or_default())
    };
    let said = list.items.iter().map(|lock| (&lock.path, requested(&lock.by, &lock.reason)));
    let mut said = said.filter(|(_, requested)| !requested.is_empty()).peekable();
    if said.peek().is_some() {
        screen.gap();
    }
    for (path, requested) in said {
        screen.entry(&format!("{path}: {requested}"));
    }
}

/// How many locks of each kind there are, by whatever is filtered below.
fn show_kinds(list: &LockList, now: Timestamp, screen: &mut Screen) {
    let mut kinds = Table::new([Column::new("KIND"), Column::number("LOCKS"), Column::number("OLDEST")]);
    for kind in list.kinds.iter().filter(|kind| kind.count > 0) {
        kinds.row([kind.kind.to_owned(), count(kind.count), ago(kind.oldest, now)]);
    }
    screen.table(&kinds);
    if !list.items.is_empty() {
        screen.gap();
    }
}
