//! What checks have found, written in the transaction that ends their task.

use std::collections::BTreeMap;

use queuekeeper_store::store::Item;
use queuekeeper_store::{Digests, Key, StoreName};

use super::counts::Deltas;
use super::items::LoneItem;
use super::requested::RequestedPart;
use super::{LISTED, NOTHING, SUCCESS, errors};
use crate::catalogue::Catalogue;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::database::value::{Value, values};
use crate::error::Error;
use crate::index;
use crate::proofs;
use crate::tasks::{NewTask, put};

/// What each of the four sources said of a copy, as JSON; `None` where it said nothing, or where that is what the record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The content that was read.
    pub content: Option<String>,
    /// The store.
    pub provider: Option<String>,
    /// The content index.
    pub index: Option<String>,
    /// The last settled event of the audit log.
    pub audit: Option<String>,
}

/// What is wrong with a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The names of what was found, at least one of a failure.
    pub findings: Vec<&'static str>,
    /// What is wrong, as a sentence.
    pub detail: String,
    /// What the store has that no record explains: an event of the audit log says so, once.
    pub observed: Option<Observed>,
}

/// What a store has that no record explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// In whose name the audit log says so.
    pub user: String,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The digests of the whole content.
    pub digests: Digests,
}

/// The outcome of the check of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedItem {
    /// The item, in the space as the store names it.
    pub item: Item,
    /// Its number in the catalogue; `None` where it has none yet.
    pub id: Option<u64>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The result.
    pub result: &'static str,
    /// How the bytes were proven, where they were.
    pub proof: Option<&'static str>,
    /// The event that the proof is of: the one that the content index had while the copy was checked.
    pub seq: Option<u64>,
    /// What was seen.
    pub evidence: Evidence,
    /// What is wrong; `None` where nothing is.
    pub wrong: Option<Wrong>,
    /// Why its content was not read, as a sentence; `None` where it was, or was not to be.
    pub unread: Option<&'static str>,
}

/// That a page of a run was checked, up to a key or to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageEnd {
    /// The run.
    pub run: u64,
    /// Whether that had ended: what its report says of the page stays.
    pub is_late: bool,
    /// The key behind which the page begins; `None` for the beginning of the space.
    pub behind: Option<Key>,
    /// The key behind which the rest begins that is a page of its own from now on; `None` where nothing is left.
    pub rest: Option<Key>,
    /// How many items and bytes the store listed in what was checked.
    pub listed: (u64, u64),
    /// What of it is checked one by one.
    pub alone: Vec<LoneItem>,
}

/// What a task has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPart {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The run that it belongs to; `None` for a check outside of runs.
    pub run: Option<u64>,
    /// The page, where the task was of one.
    pub page: Option<PageEnd>,
    /// How far a check is that was requested, where the task was of one.
    pub requested: Option<RequestedPart>,
    /// What was checked.
    pub items: Vec<CheckedItem>,
    /// How many items and bytes were skipped, as the policy of the store wants it.
    pub skipped: (u64, u64),
    /// Whether the item of the task is of a job that has not recorded it yet.
    pub is_being_stored: bool,
}

impl CheckedPart {
    /// Items that were checked outside of runs.
    #[must_use]
    pub fn of(account: String, store: StoreName, items: Vec<CheckedItem>) -> Self {
        Self { account, store, run: None, page: None, requested: None, items, skipped: (0, 0), is_being_stored: false }
    }

    /// Whether many items were checked, those alone with which nothing was known to be wrong.
    fn is_of_page(&self) -> bool {
        self.page.is_some() || self.requested.as_ref().is_some_and(|requested| requested.is_of_space)
    }
}

impl Catalogue {
    /// Writes what was checked without a task, and requests what follows, in one transaction.
    ///
    /// # Errors
    /// When the database cannot be written; then nothing was.
    pub async fn record_checks(&self, part: &CheckedPart, then: Vec<NewTask>) -> Result<(), Error> {
        let mut session = self.database.begin().await?;
        let outcome = async {
            write(&mut session, part).await?;
            put(&mut session, then).await.map(|_new| ())
        };
        let outcome = outcome.await;
        session.end(outcome).await?;
        self.ring().await;
        Ok(())
    }
}

/// Writes what was checked; where that was done by a task, in the transaction that ends it.
pub(crate) async fn write(session: &mut Session, part: &CheckedPart) -> Result<(), Error> {
    let (gone, items): (Vec<_>, Vec<_>) = part.items.iter().partition(|checked| checked.result == NOTHING);
    for checked in gone {
        errors::end(session, &part.store, &checked.item, "gone").await?;
    }
    let (mut of_run, mut numbered) = (Deltas::default(), Vec::with_capacity(items.len()));
    for checked in items {
        let id = match checked.id {
            Some(id) => id,
            None => u64::try_from(index::item(session, &checked.item.space, &checked.item.key).await?).unwrap_or(0),
        };
        numbered.push((checked, id));
        of_run.add(checked.result, 1, checked.bytes);
    }
    log(session, part, &numbered).await?;
    prove(session, part, &numbered).await?;
    for (result, number) in of_run.iter() {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        counters::add(session, result, &[(Counter::BitResults, number)]).await?;
    }
    for (checked, _) in numbered {
        match &checked.wrong {
            Some(wrong) => errors::open(session, part, checked, wrong).await?,
            None if checked.result == SUCCESS && !part.is_of_page() => {
                errors::end(session, &part.store, &checked.item, "proven").await?;
            }
            None => {}
        }
    }
    if part.skipped.0 > 0 {
        of_run.add("skipped", part.skipped.0, part.skipped.1);
    }
    if let Some(page) = &part.page {
        of_run.add(LISTED, page.listed.0, page.listed.1);
    }
    if let Some(run) = part.run {
        of_run.write(session, run).await?;
    }
    Ok(())
}

async fn log(session: &mut Session, part: &CheckedPart, items: &[(&CheckedItem, u64)]) -> Result<(), Error> {
    let mut values: Vec<Value> = Vec::with_capacity(11 * items.len());
    for (checked, id) in items {
        let CheckedItem { result, proof, evidence, wrong, unread, .. } = checked;
        let Evidence { content, provider, index, audit } = evidence;
        let findings = wrong.as_ref().map(|wrong| wrong.findings.join(" "));
        let detail = wrong.as_ref().map(|wrong| crate::error::one_line(&wrong.detail));
        let detail = detail.as_deref().or(*unread);
        values.extend(values![*id, &part.store, part.run, *result, &findings, *proof, content, provider, index, audit]);
        values.extend(values![detail]);
    }
    let into = "INSERT INTO bit_log (time, item, store, run, result, findings, proof, content, provider, content_index,
        audit, detail)";
    let row = "{now}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";
    session.insert_returning(into, row, "", values).await.map(|_rows| ())
}

/// Writes down the proof of each copy of which the index still has the event that was checked. One that is being changed is passed
/// by: what was proven of it is over.
async fn prove(session: &mut Session, part: &CheckedPart, items: &[(&CheckedItem, u64)]) -> Result<(), Error> {
    let select = "SELECT copies.item, COALESCE(copies.proof, 'none'),
            COALESCE(copies.proven, copies.written) / 86400000, wanted.column4 FROM copies JOIN (";
    let then = ") AS wanted ON copies.item = wanted.column1 AND copies.store = wanted.column2
        AND copies.seq = wanted.column3 AND NOT copies.is_deleted {lock_next}";
    let (mut values, mut spaces): (Vec<Value>, _) = (Vec::new(), BTreeMap::new());
    for (checked, id) in items.iter().filter(|(checked, _)| checked.wrong.is_none()) {
        if let (Some(proof), Some(seq)) = (checked.proof, checked.seq) {
            values.extend(values![*id, &part.store, seq, proof]);
            spaces.insert(i64::try_from(*id).unwrap_or(i64::MAX), &checked.item.space);
        }
    }
    let mut free = BTreeMap::new();
    for row in session.insert_returning(select, "?, ?, ?, ?", then, values).await? {
        let read = || Ok((row.get(0)?, (row.get::<String>(1)?, row.get::<i64>(2)?, row.get::<String>(3)?)));
        let (item, of): (i64, _) = session.decode(read())?;
        free.insert(item, of);
    }
    let update = "UPDATE copies SET proof = wanted.column3, proven = {now} FROM (";
    let then = ") AS wanted WHERE copies.item = wanted.column1 AND copies.store = wanted.column2
        RETURNING item, proven";
    let values = free.iter().flat_map(|(item, (_, _, proof))| values![*item, &part.store, proof]).collect();
    let mut deltas = BTreeMap::new();
    for row in session.insert_returning(update, "?, ?, ?", then, values).await? {
        let (item, time): (i64, _) = session.decode(row.get(0).and_then(|item| Ok((item, row.time(1)?))))?;
        if let (Some((before, day, proof)), Some(space)) = (free.get(&item), spaces.get(&item)) {
            let of = |proof: &str, day| (part.store.to_string(), space.to_string(), proof.to_owned(), day);
            *deltas.entry(of(before, *day)).or_default() -= 1;
            *deltas.entry(of(proof, proofs::day(time))).or_default() += 1;
        }
    }
    proofs::add(session, &deltas).await
}
