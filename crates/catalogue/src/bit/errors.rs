//! Bit errors: what is wrong with a copy, until that is resolved.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::checked::{CheckedItem, CheckedPart, Evidence, Wrong};
use super::records::last_bytes;
use crate::audit::observe;
use crate::catalogue::{Catalogue, page};
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// Something that is wrong with a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitError {
    /// Its number.
    pub id: u64,
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The item, in the space as the store names it.
    pub item: Item,
    /// The run that found it last; `None` for a check outside of runs.
    pub run: Option<u64>,
    /// The result of the last check: a failure or an error.
    pub result: String,
    /// The names of what that found.
    pub findings: Vec<String>,
    /// What it saw.
    pub evidence: Evidence,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// When it was found first.
    pub found: Timestamp,
    /// When it was found last.
    pub seen: Timestamp,
    /// How often it was found.
    pub times: u64,
    /// When the repair of the copy was started that has not ended; `None` where there is none.
    pub repair_started: Option<Timestamp>,
}

macro_rules! columns {
    () => {
        "id, account, store, space, key, run, result, findings, content, provider, content_index, audit, detail, found, seen, times,
            (SELECT started FROM repairs WHERE repairs.store = bit_errors.store AND repairs.space = bit_errors.space
                AND repairs.key = bit_errors.key AND repairs.ended IS NULL)"
    };
}

/// The open ones of an account, from a number on.
pub(crate) const OF_ACCOUNT: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bit_errors WHERE account = $1 AND ended IS NULL AND id > $2 ORDER BY id LIMIT $3"
);

const OF_ITEM: &str =
    concat!("SELECT ", columns!(), " FROM bit_errors WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL");

const NUMBERED: &str = concat!("SELECT ", columns!(), " FROM bit_errors WHERE id = $1 AND ended IS NULL");

/// The open ones of a part of a space.
pub(crate) const OF_PART: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bit_errors WHERE store = $1 AND space = $2 AND key > $3 AND key <= $4 AND ended IS NULL ORDER BY key LIMIT $5"
);

/// Those of an account in the order in which they were found.
pub(crate) const OLDEST: &str = "SELECT found FROM bit_errors WHERE account = $1 AND ended IS NULL ORDER BY id LIMIT 1";

/// The keys of the open ones of a part of a space.
pub(crate) const OPEN_KEYS: &str = "SELECT key FROM bit_errors
    WHERE store = $1 AND space = $2 AND key > $3 AND key <= $4 AND ended IS NULL ORDER BY key LIMIT $5";

impl Catalogue {
    /// What is wrong with copies of an account, with numbers above `after`, at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_errors(&self, account: &str, after: u64, limit: u32) -> Result<Vec<BitError>, Error> {
        self.list(OF_ACCOUNT, values![account, after, page(limit)], read).await
    }

    /// What is wrong with a copy; `None` where nothing is known to be.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_error(&self, store: &StoreName, item: &Item) -> Result<Option<BitError>, Error> {
        Ok(self.list(OF_ITEM, values![store, &item.space, &item.key], read).await?.pop())
    }

    /// What is wrong with a copy, by its number; `None` where that has ended.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_error_numbered(&self, id: u64) -> Result<Option<BitError>, Error> {
        Ok(self.list(NUMBERED, values![id], read).await?.pop())
    }

    /// What is wrong with the copies in a part of a space of a store: those with keys above `behind`, up to `last`, in
    /// the order of keys; at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_errors_of_part(
        &self,
        store: &StoreName,
        space: &SpaceName,
        (behind, last): (Option<&Key>, Option<&Key>),
        limit: u32,
    ) -> Result<Vec<BitError>, Error> {
        let (behind, last) = (behind.map_or(&b""[..], Key::as_bytes), last_bytes(last));
        self.list(OF_PART, values![store, space, behind, &last[..], page(limit)], read).await
    }

    /// The numbers of the open bit errors of the copies of these keys of a space in some stores.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_errors_of_keys<'a>(
        &self,
        stores: impl IntoIterator<Item = &'a StoreName>,
        space: &SpaceName,
        keys: &[Key],
    ) -> Result<BTreeMap<(StoreName, Key), u64>, Error> {
        let select = "SELECT bit_errors.store, bit_errors.key, bit_errors.id FROM bit_errors JOIN (";
        let then = ") AS wanted ON bit_errors.store = wanted.column1 AND bit_errors.space = wanted.column2
            AND bit_errors.key = wanted.column3 AND bit_errors.ended IS NULL";
        let of = |store| keys.iter().flat_map(move |key| values![store, space, key]);
        let values = stores.into_iter().flat_map(of).collect();
        let mut session = self.database.read().await?;
        let rows = session.insert_returning(select, "?, ?, ?", then, values).await?;
        let read = |row: &DatabaseRow| {
            let store = row.need(0, |name: String| name.parse::<StoreName>())?;
            Ok(((store, row.need(1, |bytes: Vec<u8>| Key::new(bytes))?), row.count(2)?))
        };
        rows.iter().map(|row| session.decode(read(row))).collect()
    }

    /// When the open bit error of an account was found that was found first; `None` where it has none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn oldest_bit_error(&self, account: &str) -> Result<Option<Timestamp>, Error> {
        Ok(self.list(OLDEST, values![account], |row| row.time(0)).await?.pop())
    }

    /// The spaces of an account, as the store names them, with copies of which something is known to be wrong.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_error_spaces(&self, account: &str, store: &StoreName) -> Result<Vec<SpaceName>, Error> {
        let sql = "SELECT DISTINCT space FROM bit_errors WHERE account = $1 AND store = $2 AND ended IS NULL";
        let space = |row: &DatabaseRow| row.need(0, |name: String| name.parse::<SpaceName>());
        self.list(sql, values![account, store], space).await
    }

    /// The keys of the copies of which something is known to be wrong, of those above `behind`, up to `last`; at most
    /// `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn bit_error_keys(
        &self,
        store: &StoreName,
        space: &SpaceName,
        (behind, last): (Option<&Key>, Option<&Key>),
        limit: u32,
    ) -> Result<Vec<Key>, Error> {
        let (behind, last) = (behind.map_or(&b""[..], Key::as_bytes), last_bytes(last));
        let key = |row: &DatabaseRow| row.need(0, |bytes: Vec<u8>| Key::new(bytes));
        self.list(OPEN_KEYS, values![store, space, behind, &last[..], page(limit)], key).await
    }
}

/// Writes down what is wrong with a copy, in place of what was found before. What was not observed before becomes an
/// event of the audit log.
pub(super) async fn open(
    session: &mut Session,
    part: &CheckedPart,
    checked: &CheckedItem,
    wrong: &Wrong,
) -> Result<(), Error> {
    let sql = "INSERT INTO bit_errors (account, store, space, key, run, result, findings, content, provider,
            content_index, audit, detail, found, seen, times)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, {now}, {now}, 1)
        ON CONFLICT (store, space, key) WHERE ended IS NULL DO UPDATE SET account = excluded.account,
            run = excluded.run, result = excluded.result, findings = excluded.findings, content = excluded.content,
            provider = excluded.provider, content_index = excluded.content_index, audit = excluded.audit,
            detail = excluded.detail, seen = excluded.seen, times = bit_errors.times + 1
        RETURNING times";
    let CheckedPart { account, store, run, .. } = part;
    let CheckedItem { item, result, evidence, .. } = checked;
    let Evidence { content, provider, index, audit: event } = evidence;
    if let Some(observed) = &wrong.observed {
        let known = "SELECT 1 FROM bit_errors WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL
            AND findings = $4 AND content IS NOT DISTINCT FROM $5 AND provider IS NOT DISTINCT FROM $6";
        let findings = wrong.findings.join(" ");
        let values = values![store, &item.space, &item.key, &findings, content, provider];
        if session.row(known, values).await?.is_none() {
            observe(session, (store, item), observed, &wrong.detail).await?;
        }
    }
    let mut values = values![account, store, &item.space, &item.key, *run, *result, &wrong.findings.join(" ")];
    values.extend(values![content, provider, index, event, &crate::error::one_line(&wrong.detail)]);
    let row = session.row(sql, values).await?;
    let times = row.map(|row| session.decode(row.count(0))).transpose()?;
    if times == Some(1) {
        count(session, account, store, item, 1).await?;
    }
    Ok(())
}

/// Counts copies that have something wrong.
async fn count(session: &mut Session, account: &str, store: &StoreName, item: &Item, delta: i64) -> Result<(), Error> {
    counters::add(session, &format!("{account}/{store}"), &[(Counter::BitErrors, delta)]).await?;
    counters::add(session, &format!("{store}/{}", item.space), &[(Counter::SpaceBitErrors, delta)]).await
}

/// The task that looks again at what was found, while no worker has it.
const WAKE: &str =
    "UPDATE tasks SET visible = {now} WHERE account = $1 AND space = $2 AND key = $3 AND kind = 'BIT_ERROR'
    AND destination = $4 AND state = 'waiting' AND holder IS NULL";

/// Ends what is open of a copy, and has the task that waits for that looked at now.
pub(crate) async fn end(session: &mut Session, store: &StoreName, item: &Item, outcome: &str) -> Result<(), Error> {
    let sql = "UPDATE bit_errors SET ended = {now}, outcome = $4
        WHERE store = $1 AND space = $2 AND key = $3 AND ended IS NULL RETURNING account";
    let Some(row) = session.row(sql, values![store, &item.space, &item.key, outcome]).await? else { return Ok(()) };
    let account: String = session.decode(row.get(0))?;
    // Tasks have the account's own name of the space, which may be without a prefix.
    let name = item.space.as_str();
    let names = [name].into_iter().chain(name.match_indices('.').map(|(at, _)| &name[at + 1..]));
    for space in names {
        session.run(WAKE, values![&account, space, &item.key, store]).await?;
    }
    count(session, &account, store, item, -1).await
}

fn read(row: &DatabaseRow) -> Result<BitError, sqlx::Error> {
    let space = row.need(3, |name: String| name.parse::<SpaceName>())?;
    let findings: String = row.get(7)?;
    Ok(BitError {
        id: row.count(0)?,
        account: row.get(1)?,
        store: row.need(2, |name: String| name.parse::<StoreName>())?,
        item: Item::new(space, row.need(4, |bytes: Vec<u8>| Key::new(bytes))?),
        run: row.parse(5, |run: i64| u64::try_from(run))?,
        result: row.get(6)?,
        findings: findings.split_whitespace().map(str::to_owned).collect(),
        evidence: Evidence { content: row.get(8)?, provider: row.get(9)?, index: row.get(10)?, audit: row.get(11)? },
        detail: row.get(12)?,
        found: row.time(13)?,
        seen: row.time(14)?,
        times: row.count(15)?,
        repair_started: row.parse(16, Timestamp::from_millisecond)?,
    })
}
