//! The brake on what the mill may destroy: how many items of a space it may delete or overwrite within a day.
//!
//! The count is taken where the effect happens, over all queues, workers and restarts, in the transaction that records
//! under which key the content is kept aside ([`put_aside`](crate::Catalogue::put_aside)). What was allowed counts,
//! whether it was done afterwards or not, and counts once however often it is requested again.

use queuekeeper_store::{SpaceName, StoreName};

use crate::counters::Counter;
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::{Value, values};
use crate::error::Error;

/// Whose items may be destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Braked<'a> {
    /// The account.
    pub account: &'a str,
    /// The store that would lose content.
    pub store: &'a StoreName,
    /// The space.
    pub space: &'a SpaceName,
}

/// How much may be destroyed within a day: whichever of both is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeLimit {
    /// So many items.
    pub items: u32,
    /// Of what the space has by the content index, so many in a hundred.
    pub percent: u32,
}

impl Default for BrakeLimit {
    /// 100 items, or 5 in a hundred.
    fn default() -> Self {
        Self { items: 100, percent: 5 }
    }
}

/// What the brake says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrakeAnswer {
    /// Whether it may be done now.
    pub is_allowed: bool,
    /// How many were allowed in the last 24 hours, with this one if it was.
    pub number: u64,
    /// How many may be, by what the space has now.
    pub limit: u64,
}

/// A number that no other lock of ours begins with.
const LOCK: i64 = 0x716b_6272;

/// The minutes of a day, by the database's clock.
const ALLOWED: &str = "SELECT CAST(COALESCE(SUM(number), 0) AS BIGINT) FROM effects
    WHERE account = $1 AND store = $2 AND space = $3 AND minute > {now} / 60000 - 1440";

const LIVING: &str = "SELECT CAST(COALESCE(SUM(value), 0) AS BIGINT) FROM (
        SELECT value FROM counters WHERE name = $1 AND scope = $2
        UNION ALL SELECT delta FROM counter_deltas WHERE name = $1 AND scope = $2) AS parts";

const COUNT: &str = "INSERT INTO effects (account, store, space, minute, number) VALUES ($1, $2, $3, {now} / 60000, 1)
    ON CONFLICT (account, store, space, minute) DO UPDATE SET number = effects.number + 1";

const FORGET: &str = "DELETE FROM effects
    WHERE account = $1 AND store = $2 AND space = $3 AND minute <= {now} / 60000 - 1440";

/// Lets no other effect on the same space be decided before this transaction ends, so that two do not both take what is
/// left. `SQLite`'s transaction is the lock.
pub(crate) async fn lock(session: &mut Session, of: &Braked<'_>) -> Result<(), Error> {
    if session.dialect() == Dialect::Postgres {
        let Braked { account, store, space } = *of;
        let sql = "SELECT pg_advisory_xact_lock(HASHTEXTEXTENDED($1, $2))";
        session.rows(sql, values![&format!("{account}/{store}/{space}"), LOCK]).await?;
    }
    Ok(())
}

/// Allows an effect, and counts it, unless that would pass the limit. One that was counted already stays allowed.
pub(crate) async fn allow(
    session: &mut Session,
    of: &Braked<'_>,
    limit: Option<BrakeLimit>,
    is_counted: bool,
) -> Result<BrakeAnswer, Error> {
    let Braked { account, store, space } = *of;
    session.run(FORGET, values![account, store, space]).await?;
    let done = number(session, ALLOWED, values![account, store, space]).await?;
    let scope = format!("{store}/{space}");
    let living = number(session, LIVING, values![Counter::SpaceItems.as_str(), &scope]).await?;
    let most = limit.map(|limit| u64::from(limit.items).max(living.saturating_mul(limit.percent.into()) / 100));
    let is_new = !is_counted && most.is_none_or(|most| done < most);
    if is_new {
        session.run(COUNT, values![account, store, space]).await?;
    }
    let (number, limit) = (done + u64::from(is_new), most.unwrap_or(u64::MAX));
    Ok(BrakeAnswer { is_allowed: is_counted || is_new, number, limit })
}

async fn number(session: &mut Session, sql: &'static str, values: Vec<Value>) -> Result<u64, Error> {
    let row = session.row(sql, values).await?;
    let figure = row.map(|row| session.decode(row.get::<i64>(0))).transpose()?;
    Ok(figure.and_then(|figure| u64::try_from(figure).ok()).unwrap_or(0))
}
