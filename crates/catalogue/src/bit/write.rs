//! What checks have found, written in the transaction that ends their task.

use std::collections::BTreeMap;

use super::checked::{CheckedItem, CheckedPart, Evidence};
use super::counts::Deltas;
use super::{LISTED, NOTHING, SUCCESS, errors};
use crate::catalogue::Catalogue;
use crate::counters::{self, Counter};
use crate::database::Session;
use crate::database::value::{Value, values};
use crate::error::Error;
use crate::index;
use crate::proofs;
use crate::tasks::{NewTask, put};

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
        self.notify().await;
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

/// Writes down the proof of each copy of which the index still has the event that was checked. One that is being
/// changed is passed by: what was proven of it is over.
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
