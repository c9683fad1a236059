//! `queuekeeper locks`: who holds what.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::{Column, Screen, Table};
use super::paging::{Paging, Parameters};
use super::words::{ago, count};
use crate::mirror::{AGE_LABELS, LockKind};
use crate::views::locks::LockList;
use crate::web::Pairs;

/// List locks, oldest first
#[derive(Clone, Debug, Args)]
pub(super) struct LocksArgs {
    #[command(flatten)]
    filter: LockFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which locks")]
struct LockFilter {
    /// Of this kind
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(LockKind::ALL.map(LockKind::label)))]
    kind: Option<String>,

    /// So old: a band, named by its end
    #[arg(long, value_name = "AGE", value_parser = PossibleValuesParser::new(AGE_LABELS))]
    age: Option<String>,

    /// Held by this session, as 0x100005a3c2e0001; none for persistent locks, which no session holds
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl LocksArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let answers = link.walk(false).await?;
            let now = Timestamp::now();
            Ok(self.paging.take(self.asked(), |asked| answers.locks(asked, now))?)
        });
        let list = list.await?;
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "lock", "locks");
        }
        Ok(())
    }

    fn asked(&self) -> Pairs {
        let filter = &self.filter;
        Parameters::default()
            .with("kind", filter.kind.as_ref())
            .with("age", filter.age.as_ref())
            .with("session", filter.session.as_ref())
            .pairs()
    }
}

fn show(list: &LockList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut kinds = Table::new([Column::new("KIND"), Column::number("LOCKS"), Column::number("OLDEST")]);
    for kind in list.kinds.iter().filter(|kind| kind.count > 0) {
        kinds.row([kind.kind.to_owned(), count(kind.count), ago(kind.oldest, now)]);
    }
    screen.table(&kinds);
    if !list.items.is_empty() {
        screen.gap();
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
}
