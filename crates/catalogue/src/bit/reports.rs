//! The reports on runs: what each says as a whole, and where its files lie.

use queuekeeper_store::StoreName;

use super::runs::{BitRun, read, runs};
use super::seals::{self, SealHead};
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;
use crate::outbox::{self, NewMessage};

/// A report that is being stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReport<'a> {
    /// Its result.
    pub result: &'a str,
    /// Where it lies: `STORE/SPACE/KEY` of its table, without the ending.
    pub place: &'a str,
    /// What it covers, as JSON.
    pub coverage: &'a str,
    /// Whether it covers every item as its policy asks for, whatever is wrong with some.
    pub is_complete: bool,
    /// The mail that it sends, if any.
    pub mail: Option<&'a NewMessage>,
}

/// Which reports; an empty name stands for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reports<'a> {
    /// Those of this account.
    pub account: &'a str,
    /// Those of this store.
    pub store: &'a str,
    /// Those of this space, as accounts name it.
    pub space: &'a str,
    /// Only the newest of each space, where it is no success and its loop has this number or a higher one.
    pub unsuccessful: Option<u64>,
}

/// How many spaces of an account have a newest report in a store that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsuccessfulReports {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// Of how many it does not cover every item.
    pub incomplete: u64,
    /// Of how many it says that something is wrong.
    pub failed: u64,
}

pub(crate) const REPORTS: &str =
    runs!("reported IS NOT NULL AND id < $1 AND ($2 = '' OR store = $2) ORDER BY id DESC LIMIT $3");

pub(crate) const REPORTS_OF_ACCOUNT: &str =
    runs!("reported IS NOT NULL AND account = $1 AND id < $2 AND ($3 = '' OR store = $3) ORDER BY id DESC LIMIT $4");

pub(crate) const REPORTS_OF_SPACE: &str = runs!(
    "reported IS NOT NULL AND space = $1 AND id < $2 AND ($3 = '' OR account = $3) AND ($4 = '' OR store = $4)
    ORDER BY id DESC LIMIT $5"
);

/// There are at most as many as spaces.
pub(crate) const UNSUCCESSFUL: &str = runs!(
    "is_newest AND result <> 'success' AND loop >= $1 AND id < $2 AND ($3 = '' OR account = $3)
        AND ($4 = '' OR store = $4) AND ($5 = '' OR space = $5)
    ORDER BY id DESC LIMIT $6"
);

const COUNTED: &str = "SELECT account, store, SUM(CASE WHEN is_complete THEN 0 WHEN NOT is_complete THEN 1 ELSE 0 END),
        SUM(CASE WHEN result = 'failure' THEN 1 ELSE 0 END)
    FROM bit_runs WHERE is_newest AND result <> 'success' AND loop >= $1 GROUP BY account, store ORDER BY account, store";

impl Catalogue {
    /// Records that the report on a run is stored, appends its seal to the chain of the account, and puts its mail into
    /// the outbox, in one transaction. `seal` makes the seal, of its number and the seal before it. Nothing is done
    /// where the run has a report already.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn report_bit_run(
        &self,
        run: &BitRun,
        report: &NewReport<'_>,
        seal: impl FnOnce(u64, Option<&SealHead>) -> String + Send,
    ) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let outcome = store(&mut session, run, report, seal).await;
        session.end(outcome).await
    }

    /// The runs that have a report, the newest first, with numbers below `before`; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_reports(&self, of: Reports<'_>, before: Option<u64>, limit: u32) -> Result<Vec<BitRun>, Error> {
        let Reports { account, store, space, unsuccessful } = of;
        let (before, limit) = (before.unwrap_or(u64::MAX), page(limit));
        let (sql, values) = if let Some(number) = unsuccessful {
            (UNSUCCESSFUL, values![number, before, account, store, space, limit])
        } else if !space.is_empty() {
            (REPORTS_OF_SPACE, values![space, before, account, store, limit])
        } else if !account.is_empty() {
            (REPORTS_OF_ACCOUNT, values![account, before, store, limit])
        } else {
            (REPORTS, values![before, store, limit])
        };
        self.list(sql, values, read).await
    }

    /// By account and store, how many spaces have a newest report that is no success, of loops with this number or a
    /// higher one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn unsuccessful_bit_reports(&self, number: u64) -> Result<Vec<UnsuccessfulReports>, Error> {
        let read = |row: &DatabaseRow| {
            Ok(UnsuccessfulReports {
                account: row.get(0)?,
                store: row.need(1, |name: String| name.parse::<StoreName>())?,
                incomplete: row.count(2)?,
                failed: row.count(3)?,
            })
        };
        self.list(COUNTED, values![number], read).await
    }
}

async fn store(
    session: &mut Session,
    run: &BitRun,
    report: &NewReport<'_>,
    seal: impl FnOnce(u64, Option<&SealHead>) -> String + Send,
) -> Result<(), Error> {
    let BitRun { id, number, account, store, space, .. } = run;
    let NewReport { result, place, coverage, is_complete, mail } = *report;
    let of_older = "UPDATE bit_runs SET is_newest = FALSE
        WHERE account = $1 AND store = $2 AND space = $3 AND loop < $4 AND is_newest";
    session.run(of_older, values![account, store, space, *number]).await?;
    let sql = "UPDATE bit_runs SET reported = {now}, result = $2, report = $3, coverage = $4, is_complete = $5,
            is_newest = NOT EXISTS (
                SELECT 1 FROM bit_runs AS later WHERE later.account = bit_runs.account AND later.store = bit_runs.store
                    AND later.space = bit_runs.space AND later.loop > bit_runs.loop AND later.reported IS NOT NULL)
        WHERE id = $1 AND reported IS NULL";
    if session.run(sql, values![*id, result, place, coverage, is_complete]).await? == 0 {
        return Ok(());
    }
    if let Some(mail) = mail {
        outbox::write(session, mail).await?;
    }
    seals::append(session, account, (*id, place), seal).await
}
