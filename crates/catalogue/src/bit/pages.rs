//! The pages of runs: what of a space is not checked.

use std::time::Duration;

use queuekeeper_store::{Key, SpaceName, StoreName};

use super::checked::PageEnd;
use super::items;
use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;
use crate::loops::Morsel;
use crate::tasks::{NewTask, TaskKind, TaskQueue, TaskSubject, key_column};

/// A page as its task finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPage {
    /// The run.
    pub run: u64,
    /// The last key; `None` for the end of the space.
    pub last: Option<Key>,
    /// How long ago its run began.
    pub age: Duration,
    /// The number of the loop.
    pub number: u64,
    /// Whether its run has ended.
    pub is_late: bool,
    /// Whether the pages come first that the run before could not check.
    pub is_behind_others: bool,
}

/// A page of the newest run. SQLite looks for the pages before their tasks only where the join is a cross join.
pub(crate) const PAGE: &str = "SELECT bit_pages.run, bit_pages.last, {now} - bit_runs.started, bit_runs.loop,
        bit_runs.ended IS NOT NULL,
        bit_runs.origin IS NOT NULL AND bit_pages.last IS NOT NULL AND bit_pages.last <= bit_runs.origin AND (
            bit_runs.listed IS NULL OR EXISTS (
                SELECT 1 FROM bit_pages AS first CROSS JOIN tasks
                WHERE first.run = bit_runs.id AND NOT first.is_checked
                    AND (first.last IS NULL OR first.last > bit_runs.origin)
                    AND tasks.account = bit_runs.account AND tasks.space = bit_runs.space AND tasks.key = first.behind
                    AND tasks.kind = 'BIT_PAGE' AND tasks.destination = bit_runs.store AND tasks.state <> 'dead'))
    FROM bit_runs JOIN bit_pages ON bit_pages.run = bit_runs.id
    WHERE bit_runs.id = (SELECT newest.id FROM bit_runs AS newest WHERE newest.account = $1 AND newest.store = $2
            AND newest.space = $3 ORDER BY newest.loop DESC LIMIT 1)
        AND bit_pages.behind = $4 AND NOT bit_pages.is_checked";

/// Where a run begins: behind the first page that the one before could not check, in the order in which that went.
const ORIGIN: &str = "SELECT bit_pages.behind FROM bit_runs JOIN bit_pages ON bit_pages.run = bit_runs.id
    WHERE bit_runs.id = (SELECT before.id FROM bit_runs AS before WHERE before.account = $1 AND before.store = $2
            AND before.space = $3 AND before.loop < $4 ORDER BY before.loop DESC LIMIT 1)
        AND NOT bit_pages.is_checked
    ORDER BY (bit_runs.origin IS NOT NULL AND bit_pages.last IS NOT NULL AND bit_pages.last <= bit_runs.origin),
        bit_pages.behind LIMIT 1";

impl Catalogue {
    /// The page of the newest run of a space that begins behind a key; `None` where it was checked already. What the
    /// run could not check until it ended can be checked as long as there is no newer one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_page(
        &self,
        account: &str,
        store: &StoreName,
        space: &SpaceName,
        behind: Option<&Key>,
    ) -> Result<Option<RunPage>, Error> {
        Ok(self.list(PAGE, values![account, store, space, key_column(behind)], read_page).await?.pop())
    }

    /// How many pages of a run are not checked, with the items and bytes that the store listed in them.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_pages_left(&self, run: u64) -> Result<(u64, u64, u64), Error> {
        let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(items), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT)
            FROM bit_pages WHERE run = $1";
        let left = |row: &DatabaseRow| Ok((row.count(0)?, row.count(1)?, row.count(2)?));
        Ok(self.list(sql, values![run], left).await?.pop().unwrap_or_default())
    }

    /// How many items and bytes the store listed in the pages of a run that waited for their store when it ended.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_pages_unread(&self, run: u64) -> Result<(u64, u64), Error> {
        let sql = "SELECT CAST(COALESCE(SUM(items), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT)
            FROM bit_pages WHERE run = $1 AND is_unread";
        let unread = |row: &DatabaseRow| Ok((row.count(0)?, row.count(1)?));
        Ok(self.list(sql, values![run], unread).await?.pop().unwrap_or_default())
    }
}

/// The key behind which a run of a loop begins; `None` for the beginning of the space.
pub(super) async fn origin(session: &mut Session, of: &Morsel, number: u64) -> Result<Option<Key>, Error> {
    let Some(row) = session.row(ORIGIN, values![&of.account, &of.source, &of.space, number]).await? else {
        return Ok(None);
    };
    let bytes: Vec<u8> = session.decode(row.get(0))?;
    if bytes.is_empty() { Ok(None) } else { session.decode(row.key(0)) }
}

/// Writes down what is unread with the end of a run: all that was to be checked then and did not fail for good waited
/// for its store.
pub(super) async fn end_with_run(session: &mut Session, run: u64) -> Result<(), Error> {
    let waiting = "UPDATE bit_pages SET is_unread = TRUE WHERE run = $1 AND EXISTS (
        SELECT 1 FROM bit_runs JOIN tasks ON tasks.account = bit_runs.account AND tasks.space = bit_runs.space
            AND tasks.key = bit_pages.behind AND tasks.kind = 'BIT_PAGE' AND tasks.destination = bit_runs.store
            AND tasks.state <> 'dead'
        WHERE bit_runs.id = bit_pages.run)";
    session.run(waiting, values![run]).await.map(|_rows| ())
}

/// The task of a page.
pub(super) fn task(account: &str, store: &StoreName, space: &SpaceName, behind: Option<Key>) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::BitPage,
        account: account.to_owned(),
        space: space.clone(),
        key: behind,
        destination: Some(store.clone()),
    };
    NewTask { queue: TaskQueue::BitIntegrity, subject, source: None }
}

/// Takes a page for checked but for what is checked one by one, and makes what is left of it a page of its own. The
/// answer is the task of that.
pub(crate) async fn end_page(
    session: &mut Session,
    subject: &TaskSubject,
    page: &PageEnd,
) -> Result<Option<NewTask>, Error> {
    let behind = key_column(page.behind.as_ref());
    let TaskSubject { account, space, destination, .. } = subject;
    if !page.is_late {
        items::begin(session, page).await?;
    }
    let rest = page.rest.as_ref().zip(destination.as_ref());
    if let Some((rest, _)) = rest {
        let sql = "INSERT INTO bit_pages (run, behind, last, items, bytes)
            SELECT run, $3, last, CASE WHEN NOT $6 AND items > $4 THEN items - $4 ELSE 0 END,
                CASE WHEN NOT $6 AND bytes > $5 THEN bytes - $5 ELSE 0 END
            FROM bit_pages WHERE run = $1 AND behind = $2 ON CONFLICT DO NOTHING";
        session.run(sql, values![page.run, behind, rest, page.listed.0, page.listed.1, page.is_late]).await?;
    }
    let sql = if page.is_late {
        "UPDATE bit_pages SET is_checked = TRUE WHERE run = $1 AND behind = $2"
    } else {
        "DELETE FROM bit_pages WHERE run = $1 AND behind = $2"
    };
    session.run(sql, values![page.run, behind]).await?;
    Ok(rest.map(|(rest, store)| task(account, store, space, Some(rest.clone()))))
}

fn read_page(row: &DatabaseRow) -> Result<RunPage, sqlx::Error> {
    Ok(RunPage {
        run: row.count(0)?,
        last: row.key(1)?,
        age: Duration::from_millis(u64::try_from(row.get::<i64>(2)?).unwrap_or(0)),
        number: row.count(3)?,
        is_late: row.get(4)?,
        is_behind_others: row.get(5)?,
    })
}
