//! The runs of a loop, and their pages.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::pages;
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, millis, values};
use crate::error::Error;
use crate::loops::{self, Advance, Lead, Morsel};
use crate::tasks::{NewTask, put};

/// One space of a store in one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitRun {
    /// Its number.
    pub id: u64,
    /// The number of the loop.
    pub number: u64,
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it.
    pub space: SpaceName,
    /// The proof policy of the store, as it is configured, such as `read 1/12`.
    pub policy: String,
    /// When it began, by the database's clock.
    pub started: Timestamp,
    /// When all its checks had been requested.
    pub listed: Option<Timestamp>,
    /// When all its checks had ended.
    pub ended: Option<Timestamp>,
    /// Whether some of its checks have not ended; what failed for good has.
    pub has_open_checks: bool,
    /// Whether there are some, and all of these wait until the store can be read.
    pub waits_for_store: bool,
    /// When its report was stored, with its result, and where it lies; `None` before.
    pub report: Option<StoredReport>,
}

/// The report on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReport {
    /// When it was stored.
    pub time: Timestamp,
    /// Its result.
    pub result: String,
    /// Where it lies: `STORE/SPACE/KEY` of its table, without the ending.
    pub place: String,
    /// What it covers, as JSON; `None` of a report that was stored before this was kept.
    pub coverage: Option<String>,
    /// Whether it covers every item as its policy asks for, whatever is wrong with some; `None` where that is not
    /// known.
    pub is_complete: Option<bool>,
    /// Whether it is on the newest run of its space that has a report.
    pub is_newest: bool,
}

/// A page of keys to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPage {
    /// The key behind which it begins; `None` for the beginning of the space.
    pub behind: Option<Key>,
    /// Its last key; `None` for the end of the space.
    pub last: Option<Key>,
    /// How many items the store listed there.
    pub items: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

/// Runs, read by [`read`].
macro_rules! runs {
    ($condition:literal) => {
        concat!(
            "SELECT id, loop, account, store, space, asked, started, listed, ended, EXISTS (
                SELECT 1 FROM tasks WHERE tasks.account = bit_runs.account AND tasks.destination = bit_runs.store
                    AND tasks.space = bit_runs.space AND kind IN ('BIT', 'BIT_PAGE') AND state <> 'dead'),
                reported, result, report, coverage, is_complete, is_newest, NOT EXISTS (
                SELECT 1 FROM tasks WHERE tasks.account = bit_runs.account AND tasks.destination = bit_runs.store
                    AND tasks.space = bit_runs.space AND kind IN ('BIT', 'BIT_PAGE')
                    AND state NOT IN ('dead', 'restore'))
            FROM bit_runs WHERE ",
            $condition
        )
    };
}

pub(super) use runs;

/// Those that have not ended. There are as many as spaces are checked at once.
const OPEN_RUNS: &str = runs!("ended IS NULL ORDER BY account, store, space");

const RUN: &str = runs!("id = $1");

/// The newest of a space.
pub(crate) const NEWEST_RUN: &str = runs!("account = $1 AND store = $2 AND space = $3 ORDER BY loop DESC LIMIT 1");

/// The oldest of a space that has ended and has no report, as long as its checks are kept.
pub(crate) const UNREPORTED: &str = runs!(
    "account = $1 AND store = $2 AND space = $3 AND ended IS NOT NULL AND reported IS NULL AND NOT is_forgotten
    ORDER BY loop LIMIT 1"
);

/// The run that a check of an item belongs to.
pub(crate) const OPEN_RUN: &str =
    "SELECT id FROM bit_runs WHERE account = $1 AND store = $2 AND space = $3 AND ended IS NULL ORDER BY id LIMIT 1";

impl Catalogue {
    /// The runs that have not ended, in the order of accounts, stores and spaces.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_bit_runs(&self) -> Result<Vec<BitRun>, Error> {
        self.list(OPEN_RUNS, values![], read).await
    }

    /// A run; `None` where there is none with this number.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_run(&self, id: u64) -> Result<Option<BitRun>, Error> {
        Ok(self.list(RUN, values![id], read).await?.pop())
    }

    /// The newest run of a space of a store; `None` before the first one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn newest_bit_run(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
    ) -> Result<Option<BitRun>, Error> {
        Ok(self.list(NEWEST_RUN, values![account, store, space], read).await?.pop())
    }

    /// The oldest run of a space that has ended and has no report; `None` where all have one, or their checks are
    /// forgotten.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn unreported_bit_run(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
    ) -> Result<Option<BitRun>, Error> {
        Ok(self.list(UNREPORTED, values![account, store, space], read).await?.pop())
    }

    /// The number of the run of a space that is under way; `None` where there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_bit_run(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
    ) -> Result<Option<u64>, Error> {
        Ok(self.list(OPEN_RUN, values![account, store, space], |row| row.count(0)).await?.pop())
    }

    /// Requests the checks of pages of a space, begins its run with the first, and saves how far the morsel is by that,
    /// in one transaction. The answer is whether this leader still leads: where it does not, nothing is written.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn advance_bit(
        &self,
        lead: &Lead,
        morsel: &Morsel,
        (to, policy): (&Advance, &str),
        pages: &[NewPage],
    ) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = advance(&mut session, lead, morsel, (to, policy), pages).await;
        let is_leading = session.end(outcome).await?;
        if !pages.is_empty() {
            self.notify().await;
        }
        Ok(is_leading)
    }

    /// Ends a run of which all checks were requested and have ended, and requests what follows. Checks that wait until
    /// their store can be read are waited for up to the limit, from the request for the last of them. The answer is
    /// whether it ended now.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end_bit_run(
        &self,
        lead: &Lead,
        run: u64,
        wait_limit: Duration,
        then: Vec<NewTask>,
    ) -> Result<bool, Error> {
        let (mut session, rings) = (self.database.begin().await?, !then.is_empty());
        let outcome = end(&mut session, lead, (run, wait_limit), then).await;
        let has_ended = session.end(outcome).await?;
        if has_ended && rings {
            self.notify().await;
        }
        Ok(has_ended)
    }
}

async fn advance(
    session: &mut Session,
    lead: &Lead,
    morsel: &Morsel,
    (to, policy): (&Advance, &str),
    pages: &[NewPage],
) -> Result<bool, Error> {
    let Morsel { account, space, source: store, .. } = morsel;
    let task = |page: &NewPage| pages::task(account, store, space, page.behind.clone());
    let tasks = pages.iter().map(task).collect();
    if !loops::advance(session, lead, morsel, to, tasks).await? {
        return Ok(false);
    }
    if matches!(to, Advance::Failed(_)) {
        return Ok(true);
    }
    let origin = pages::origin(session, morsel, lead.number).await?;
    let new = "INSERT INTO bit_runs (loop, account, store, space, asked, started, is_forgotten, origin)
        VALUES ($1, $2, $3, $4, $5, {now}, FALSE, $6)
        ON CONFLICT (account, store, space, loop) DO UPDATE SET asked = excluded.asked RETURNING id";
    let row = session.row(new, values![lead.number, account, store, space, policy, origin.as_ref()]).await?;
    let run = row.map(|row| session.decode(row.count(0))).transpose()?.unwrap_or_default();
    let values = pages.iter().flat_map(|page| {
        let NewPage { behind, last, items, bytes } = page;
        values![run, behind.as_ref().map_or(&b""[..], Key::as_bytes), last.as_ref(), *items, *bytes]
    });
    session.insert_many("INSERT INTO bit_pages (run, behind, last, items, bytes)", 5, values.collect()).await?;
    if matches!(to, Advance::Done(_)) {
        session.run("UPDATE bit_runs SET listed = {now} WHERE id = $1", values![run]).await?;
    }
    Ok(true)
}

async fn end(
    session: &mut Session,
    lead: &Lead,
    (run, wait_limit): (u64, Duration),
    then: Vec<NewTask>,
) -> Result<bool, Error> {
    if !loops::is_leading(session, lead).await? {
        return Ok(false);
    }
    let sql =
        "UPDATE bit_runs SET ended = {now} WHERE id = $1 AND ended IS NULL AND listed IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM tasks WHERE tasks.account = bit_runs.account AND tasks.destination = bit_runs.store
            AND tasks.space = bit_runs.space AND kind IN ('BIT', 'BIT_PAGE') AND state <> 'dead'
            AND (state <> 'restore' OR bit_runs.listed > {now} - $2))";
    if session.run(sql, values![run, millis(wait_limit)]).await? == 0 {
        return Ok(false);
    }
    pages::end_with_run(session, run).await?;
    put(session, then).await?;
    Ok(true)
}

pub(super) fn read(row: &DatabaseRow) -> Result<BitRun, sqlx::Error> {
    Ok(BitRun {
        id: row.count(0)?,
        number: row.count(1)?,
        account: row.get(2)?,
        store: row.need(3, |name: String| name.parse::<StoreName>())?,
        space: row.need(4, |name: String| name.parse::<SpaceName>())?,
        policy: row.get(5)?,
        started: row.time(6)?,
        listed: row.parse(7, Timestamp::from_millisecond)?,
        ended: row.parse(8, Timestamp::from_millisecond)?,
        has_open_checks: row.get(9)?,
        report: StoredReport::read(row)?,
        waits_for_store: row.get(9)? && row.get(16)?,
    })
}

impl StoredReport {
    /// The report of a run, from the columns of [`runs`]; `None` where it has none.
    pub(super) fn read(row: &DatabaseRow) -> Result<Option<Self>, sqlx::Error> {
        let time = row.parse(10, Timestamp::from_millisecond)?;
        let (result, place): (Option<String>, Option<String>) = (row.get(11)?, row.get(12)?);
        let Some(((time, result), place)) = time.zip(result).zip(place) else { return Ok(None) };
        let (coverage, is_complete, is_newest) = (row.get(13)?, row.get(14)?, row.get(15)?);
        Ok(Some(Self { time, result, place, coverage, is_complete, is_newest }))
    }
}
