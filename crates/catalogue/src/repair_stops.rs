//! Where no repair starts by itself: an operator has stopped them, or too many failed, or too much is wrong at once.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::StoreName;
use queuekeeper_store::store::Item;

use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::{DatabaseRow, Value, millis, values};
use crate::error::Error;
use crate::tasks::{TaskKind, TaskQueue, TaskState};

/// How many repairs may start by themselves in a store within 24 hours: more damage than that is for an operator.
pub const MOST_A_DAY: u64 = 10;

/// After so many automatic repairs in a store that failed one after the other, none starts there by itself any more.
pub const MOST_FAILURES: u64 = 3;

/// Where so many copies in a store were found to be wrong within [`WAVE`], the cause is shared: no repair starts there
/// by itself any more.
pub const MOST_FOUND: u64 = 25;

/// Within what time copies are counted that were found to be wrong.
pub const WAVE: Duration = Duration::from_hours(1);

/// For how long after an automatic repair of a copy none starts by itself again: what is wrong again soon is for an
/// operator.
pub const COOLDOWN: Duration = Duration::from_hours(7 * 24);

/// When the mill stops automatic repairs in a store by itself, as the end of a sentence: `after 3 automatic repairs
/// ..`.
#[must_use]
pub fn when_stopped() -> String {
    format!(
        "after {MOST_FAILURES} automatic repairs in it that failed one after the other, or once {MOST_FOUND} of its copies were found \
         to be wrong within {}",
        span(WAVE)
    )
}

/// How many repairs start by themselves, as the end of a sentence: `for no more than ..`.
#[must_use]
pub fn how_many() -> String {
    format!(
        "for no more than {MOST_A_DAY} copies in one store within 24 hours, nor twice for one copy within {}",
        span(COOLDOWN)
    )
}

/// Whole hours or days in words.
#[must_use]
pub fn span(time: Duration) -> String {
    let hours = time.as_secs() / 3600;
    let (number, unit) = if hours > 24 && hours.is_multiple_of(24) { (hours / 24, "day") } else { (hours, "hour") };
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

/// A stop of automatic repairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairStop {
    /// The store; `None` for all of them.
    pub store: Option<StoreName>,
    /// Who stopped them.
    pub user: String,
    /// Why: one sentence.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What became of a request for a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairStarted {
    /// It is started now, or goes on: it was open, and its task had failed for good or was dropped.
    Started,
    /// It was started before, and has not ended.
    Open,
    /// As many as may be were started automatically in that store within 24 hours.
    TooMany,
    /// Automatic repairs are stopped there.
    Stopped,
    /// An automatic repair of the copy ended lately.
    Cooling,
}

/// The name of all stores together.
fn name(store: Option<&StoreName>) -> &str {
    store.map_or("", StoreName::as_str)
}

impl Catalogue {
    /// Stops automatic repairs in a store, or in all of them. The answer is whether they were not stopped before.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn stop_repairs(&self, store: Option<&StoreName>, user: &str, reason: &str) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = stop(&mut session, name(store), user, reason).await;
        session.end(outcome).await
    }

    /// Lets repairs start by themselves again in a store, or in all of them but those that are stopped one by one; what
    /// was found meanwhile is looked at now. The answer is whether they were stopped.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn resume_repairs(&self, store: Option<&StoreName>) -> Result<bool, Error> {
        let sql = "UPDATE repair_stops SET ended = {now} WHERE store = $1 AND ended IS NULL";
        let wake = "UPDATE tasks SET visible = {now} WHERE queue = $1 AND kind = 'BIT_ERROR' AND state = 'waiting'
            AND holder IS NULL AND (destination = $2 OR $2 = '')";
        let mut session = self.database.begin().await?;
        let outcome = async {
            let ended = session.run(sql, values![name(store)]).await?;
            if ended > 0 {
                session.run(wake, values![TaskQueue::BitError.as_str(), name(store)]).await?;
            }
            Ok(ended > 0)
        };
        let outcome = outcome.await;
        let was_stopped = session.end(outcome).await?;
        self.notify().await;
        Ok(was_stopped)
    }

    /// Whether automatic repairs are stopped in a store, or in all.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn are_repairs_stopped(&self, store: &StoreName) -> Result<bool, Error> {
        Ok(!self.list(IN_FORCE, values![store], |_found: &DatabaseRow| Ok(())).await?.is_empty())
    }

    /// Whether an automatic repair of a copy ended so lately that none starts by itself again.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn was_repaired_lately(&self, store: &StoreName, item: &Item) -> Result<bool, Error> {
        let values = values![store, &item.space, &item.key, millis(COOLDOWN)];
        Ok(!self.list(LATELY, values, |_found: &DatabaseRow| Ok(())).await?.is_empty())
    }

    /// Where automatic repairs are stopped.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn repair_stops(&self) -> Result<Vec<RepairStop>, Error> {
        let sql = "SELECT store, user_name, reason, since FROM repair_stops WHERE ended IS NULL ORDER BY store";
        let read = |row: &DatabaseRow| {
            let store: String = row.get(0)?;
            let store = if store.is_empty() { None } else { Some(row.need(0, |name: String| name.parse())?) };
            Ok(RepairStop { store, user: row.get(1)?, reason: row.get(2)?, since: row.time(3)? })
        };
        self.list(sql, values![], read).await
    }
}

/// An automatic repair of a copy that ended lately.
const LATELY: &str = "SELECT 1 FROM repairs WHERE store = $1 AND space = $2 AND key = $3 AND is_automatic
    AND ended > {now} - $4";

/// The stops in force of one store or of all.
const IN_FORCE: &str = "SELECT 1 FROM repair_stops WHERE store IN ($1, '') AND ended IS NULL";

async fn stop(session: &mut Session, store: &str, user: &str, reason: &str) -> Result<bool, Error> {
    let sql = "INSERT INTO repair_stops (store, user_name, reason, since) VALUES ($1, $2, $3, {now})
        ON CONFLICT (store) DO UPDATE SET user_name = excluded.user_name, reason = excluded.reason,
            since = excluded.since, ended = NULL WHERE repair_stops.ended IS NOT NULL";
    let reason = crate::error::one_line(reason);
    Ok(session.run(sql, values![store, user, &*reason]).await? > 0)
}

/// Why a repair may not start by itself now; `None` where it may. What opens the breaker of the store is written down.
pub(crate) async fn refuse(
    session: &mut Session,
    store: &StoreName,
    item: &Item,
    user: &str,
) -> Result<Option<RepairStarted>, Error> {
    if session.row(IN_FORCE, values![store]).await?.is_some() {
        return Ok(Some(RepairStarted::Stopped));
    }
    let failed = values![TaskKind::Repair.as_str(), TaskState::Dead.as_str(), MOST_FAILURES];
    let why = if count(session, FAILED, store, failed).await? >= MOST_FAILURES {
        format!("the last {MOST_FAILURES} automatic repairs in this store failed")
    } else if count(session, FOUND, store, values![millis(WAVE)]).await? >= MOST_FOUND {
        format!("{MOST_FOUND} copies or more in this store were found to be wrong within {}", span(WAVE))
    } else {
        let row = session.row(LATELY, values![store, &item.space, &item.key, millis(COOLDOWN)]).await?;
        return Ok(row.map(|_repaired| RepairStarted::Cooling));
    };
    stop(session, store.as_str(), user, &why).await?;
    Ok(Some(RepairStarted::Stopped))
}

/// How many of the newest automatic repairs in a store failed, of those since the last stop there ended.
const FAILED: &str = "SELECT COUNT(*) FROM (SELECT id, key, ended, outcome FROM repairs
        WHERE store = $1 AND is_automatic AND started > COALESCE((SELECT ended FROM repair_stops WHERE store = $1), 0)
        ORDER BY id DESC LIMIT $4) AS newest
    WHERE outcome NOT IN ('repaired', 'healthy') OR (ended IS NULL AND EXISTS (SELECT 1 FROM tasks
        WHERE tasks.key = newest.key AND destination = $1 AND kind = $2 AND state = $3))";

/// How many copies in a store are wrong that were found lately, of those since the last stop there ended.
const FOUND: &str = "SELECT COUNT(*) FROM bit_errors WHERE store = $1 AND ended IS NULL AND found > {now} - $2
    AND found > COALESCE((SELECT ended FROM repair_stops WHERE store = $1), 0)";

async fn count(session: &mut Session, sql: &'static str, store: &StoreName, more: Vec<Value>) -> Result<u64, Error> {
    let mut values = values![store];
    values.extend(more);
    let row = session.row(sql, values).await?;
    Ok(row.map(|row| session.decode(row.count(0))).transpose()?.unwrap_or(0))
}
