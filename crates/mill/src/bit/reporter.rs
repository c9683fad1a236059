//! The report on a run: what its checks found is summed up, and written into the account's space for reports.
//!
//! Everything is read from the log of checks in pages, once to sum it up and once for each file: a space of any size
//! needs the memory of one page. A process that dies writes the files again under the same names, until the report is
//! recorded with its seal: that is then stored beside them.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{BitRun, LeftItem, LoggedCheck, NewReport, SealHead};
use queuekeeper_catalogue::tasks::{TakenTask, TaskKind, TaskOutcome, TaskState, TaskSubject};
use queuekeeper_store::Key;
use queuekeeper_store::store::{Chunks, Item};
use serde_json::json;

use super::checker::{Checker, said};
use super::coverage::{Amount, Coverage};
use super::mail::ReportMail;
use super::policy::ProofPolicy;
use super::premis::PremisEvents;
use super::report::{JsonReport, ReportHead, ReportRow, Statement, coverage_tsv, tsv_header};
use super::seals::{PreviousSeal, SealDocument, write};
use super::verdict::{CheckResult, CopyFinding, Proof};
use crate::account::Account;
use crate::worker::{Lease, Processed, Processor};

/// Why items are skipped.
const TURN: &str = "its turn to be read is in another loop";

/// Why items are not read whose store could not be read until the end of the run.
const WAITING: &str = "it waits for its restore, or for the budget of its store";

/// How many checks are read at once.
const PAGE: u32 = 1000;

/// The results of which a report has rows, what is wrong first.
const RESULTS: [&str; 4] = ["error", "failure", "unproven", "success"];

/// Writes reports.
pub struct Reporter {
    /// What it works with.
    pub checker: Checker,
    /// How mails on reports that are no success are made.
    pub mail: ReportMail,
}

#[async_trait]
impl Processor for Reporter {
    fn kind(&self) -> TaskKind {
        TaskKind::BitReport
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.report(&task.subject, lease).await.unwrap_or_else(TaskOutcome::Failed).into()
    }
}

/// The checks of a run, page by page.
#[derive(Clone)]
struct Checks {
    catalogue: Catalogue,
    run: BitRun,
    result: usize,
    after: u64,
}

impl Checks {
    fn of(catalogue: &Catalogue, run: &BitRun) -> Self {
        Self { catalogue: catalogue.clone(), run: run.clone(), result: 0, after: 0 }
    }

    async fn page(&mut self) -> Result<Option<Vec<ReportRow>>, String> {
        while let Some(result) = RESULTS.get(self.result) {
            let page = self.catalogue.checks_of_run(self.run.id, result, self.after, PAGE).await.map_err(said)?;
            if let Some(last) = page.last() {
                self.after = last.id;
                return page.into_iter().map(|check| self.row(check)).collect::<Result<_, _>>().map(Some);
            }
            (self.result, self.after) = (self.result + 1, 0);
        }
        Ok(None)
    }

    fn row(&self, check: LoggedCheck) -> Result<ReportRow, String> {
        let LoggedCheck { id, time, key, result, findings, proof, evidence, detail, .. } = check;
        let read = |kept: Option<String>| {
            let read = kept.as_deref().map(Statement::read).transpose();
            read.map(Option::unwrap_or_default).map_err(|why| format!("check {id} is not readable: {why}"))
        };
        // Of what is not wrong, it is kept only once what all have.
        let is_wrong = RESULTS[..2].contains(&result.as_str());
        let record = |kept: Option<String>| if is_wrong { read(kept) } else { Ok(Statement::Same) };
        Ok(ReportRow {
            date: time,
            account: self.run.account.clone(),
            store: self.run.store.clone(),
            space: self.run.space.clone(),
            key,
            result,
            findings,
            proof,
            content: read(evidence.content)?,
            provider: read(evidence.provider)?,
            index: record(evidence.index)?,
            audit: record(evidence.audit)?,
            detail: detail.unwrap_or_default(),
        })
    }

    fn pages(self) -> impl Stream<Item = io::Result<Vec<ReportRow>>> {
        stream::try_unfold(self, |mut checks| async move {
            let page = checks.page().await.map_err(io::Error::other)?;
            Ok(page.map(|page| (page, checks)))
        })
    }

    fn tsv(self) -> Chunks {
        let lines = self.pages().map_ok(|page| Bytes::from(page.iter().map(ReportRow::tsv).collect::<String>()));
        stream::iter([Ok(Bytes::from(tsv_header()))]).chain(lines).boxed()
    }

    fn premis(self, report: &str) -> Chunks {
        let (mut events, begin) = PremisEvents::begin(report);
        let rows =
            move |page: Vec<ReportRow>| Bytes::from(page.iter().map(|row| events.event(row)).collect::<String>());
        let rows = self.pages().map_ok(rows);
        let end = stream::iter([Ok(Bytes::from(PremisEvents::end()))]);
        stream::iter([Ok(Bytes::from(begin))]).chain(rows).chain(end).boxed()
    }

    fn json(self, head: &ReportHead) -> Chunks {
        let (mut report, begin) = JsonReport::begin(head);
        let rows = move |page: Vec<ReportRow>| Bytes::from(page.iter().map(|row| report.row(row)).collect::<String>());
        let rows = self.pages().map_ok(rows);
        let end = stream::iter([Ok(Bytes::from_static(JsonReport::END.as_bytes()))]);
        stream::iter([Ok(Bytes::from(begin))]).chain(rows).chain(end).boxed()
    }
}

impl Reporter {
    /// Reports on all runs of a space that have ended and have no report.
    async fn report(&self, subject: &TaskSubject, lease: &Lease) -> Result<TaskOutcome, String> {
        let store = subject.require_destination()?;
        let next = async || {
            let run = self.checker.catalogue.unreported_bit_run(&subject.account, store, &subject.space).await;
            run.map_err(said)
        };
        loop {
            self.checker.store_seals(subject, lease).await?;
            let Some(run) = next().await? else { return Ok(TaskOutcome::Done) };
            self.report_on(&run, subject, lease).await?;
        }
    }

    async fn report_on(&self, run: &BitRun, subject: &TaskSubject, lease: &Lease) -> Result<(), String> {
        let (catalogue, store) = (&self.checker.catalogue, &run.store);
        let ended = run.ended.ok_or_else(|| "the run has not ended".to_owned())?;
        let account = Account::find(&self.checker.accounts, &subject.account)?;
        let (place, admin) = account.report_place()?;
        let policy = run.policy.parse::<ProofPolicy>()?;
        let head = ReportHead {
            account: account.name.clone(),
            store: store.clone(),
            space: run.space.clone(),
            number: run.number,
            policy: run.policy.clone(),
            required: policy.proof(),
            started: run.started,
            ended,
            coverage: self.coverage(run, lease).await?,
        };
        let name = name(run, ended);
        let reports = self.checker.stores.get(&account.name, place, lease)?;
        reports.create_space(&admin).await.map_err(|error| error.to_string())?;
        let coverage = stream::iter([Ok(Bytes::from(coverage_tsv(&head.coverage)))]).boxed();
        let checks = || Checks::of(catalogue, run);
        let mut files = BTreeMap::new();
        for (ending, content_type, content) in [
            ("coverage.tsv", "text/tab-separated-values", coverage),
            ("tsv", "text/tab-separated-values", checks().tsv()),
            ("json", "application/json", checks().json(&head)),
            ("premis.xml", "application/xml", checks().premis(&name)),
        ] {
            let key = format!("{name}.{ending}").parse::<Key>().map_err(|error| error.to_string())?;
            let item = Item::new(admin.clone(), key);
            let file = write(reports.as_ref(), &item, content, content_type, lease).await?;
            files.insert(ending.to_owned(), file);
        }
        let (result, covered) = (head.coverage.result(head.required).as_str(), json!(head.coverage).to_string());
        let stored_at = format!("{place}/{admin}/{name}");
        let is_complete = head.coverage.is_complete(head.required);
        let mail = self.mail.message(catalogue, account, run, &head, &stored_at).await?;
        let report = NewReport { result, place: &stored_at, coverage: &covered, is_complete, mail: mail.as_ref() };
        let seal = |number, previous: Option<&SealHead>| {
            let previous = previous.map(|seal| PreviousSeal { report: seal.place.clone(), sha256: seal.hash.clone() });
            let (account, report, result) = (account.name.clone(), stored_at.clone(), result.to_owned());
            SealDocument { account, number, previous, report, result, ended, files }.text()
        };
        catalogue.report_bit_run(run, &report, seal).await.map_err(said)?;
        if mail.is_some() {
            self.mail.posted.notify_one();
        }
        let (account, space) = (&account.name, &run.space);
        tracing::info!(account, %store, %space, result, name, "reported on the integrity of a space");
        Ok(())
    }

    async fn coverage(&self, run: &BitRun, lease: &Lease) -> Result<Coverage, String> {
        let catalogue = &self.checker.catalogue;
        let (_, items, bytes) = catalogue.bit_pages_left(run.id).await.map_err(said)?;
        let left = Amount { items, bytes };
        let (items, bytes) = catalogue.bit_listed(run.id).await.map_err(said)?;
        let stored = Amount { items, bytes } + left;
        let (items, bytes) = catalogue.bit_pages_unread(run.id).await.map_err(said)?;
        let never_reached = Amount { items: left.items.saturating_sub(items), bytes: left.bytes.saturating_sub(bytes) };
        let mut coverage = Coverage { stored, never_reached, ..Coverage::default() };
        if items > 0 {
            coverage.unread.insert(WAITING.to_owned(), Amount { items, bytes });
        }
        let mut checks = Checks::of(catalogue, run);
        while let Some(page) = checks.page().await? {
            for row in &page {
                add(&mut coverage, row);
            }
            lease.progressed();
        }
        for count in catalogue.bit_counts(run.id).await.map_err(said)? {
            let amount = Amount { items: count.items, bytes: count.bytes };
            match count.result.as_str() {
                "skipped" => coverage.skipped = [(TURN.to_owned(), amount)].into(),
                "being_stored" => coverage.being_stored = amount,
                "nothing" => coverage.gone = amount,
                _ => {}
            }
        }
        self.add_left(run, &mut coverage, lease).await?;
        Ok(coverage)
    }

    /// Adds the items whose own checks have come to no result.
    async fn add_left(&self, run: &BitRun, coverage: &mut Coverage, lease: &Lease) -> Result<(), String> {
        let mut behind = None;
        loop {
            let left = self.checker.catalogue.bit_items_left(run.id, behind.as_ref(), PAGE).await.map_err(said)?;
            let Some(last) = left.last() else { return Ok(()) };
            behind = Some(last.key.clone());
            for item in &left {
                let part = match item.state {
                    None => &mut coverage.dropped,
                    Some(state) if state != TaskState::Restore && has_failed(item, run) => &mut coverage.dead,
                    Some(_) => coverage.unread.entry(WAITING.to_owned()).or_default(),
                };
                *part = *part + Amount { items: 1, bytes: item.bytes };
            }
            lease.progressed();
        }
    }
}

/// Whether the check of an item failed in a run: one that is looked at again by now keeps the failures that it had
/// before.
fn has_failed(item: &LeftItem, run: &BitRun) -> bool {
    let mut failed = item.errors.iter().map(|error| error.time);
    failed.any(|time| time >= run.started && run.ended.is_none_or(|ended| time <= ended))
}

/// Adds a check to what it covers.
fn add(coverage: &mut Coverage, row: &ReportRow) {
    let size = |statement: &Statement| match statement {
        Statement::Fixity(fixity) => Some(fixity.size),
        Statement::None | Statement::Missing | Statement::Same => None,
    };
    let bytes = [&row.content, &row.provider, &row.index, &row.audit].into_iter().find_map(size).unwrap_or(0);
    let has = |finding: CopyFinding| row.findings.iter().any(|name| name == finding.as_str());
    let part = if row.result == CheckResult::Unproven.as_str() && !row.detail.is_empty() {
        coverage.unread.entry(row.detail.clone()).or_default()
    } else if row.result == CheckResult::Unproven.as_str() {
        &mut coverage.unproven
    } else if row.result == CheckResult::Success.as_str() {
        match row.proof.as_deref().and_then(Proof::named) {
            Some(Proof::Read) => &mut coverage.read,
            Some(Proof::Provider) => &mut coverage.provider,
            None => &mut coverage.unproven,
        }
    } else if has(CopyFinding::ContentMissing) {
        &mut coverage.missing
    } else if has(CopyFinding::NotRecorded) {
        &mut coverage.foreign
    } else {
        &mut coverage.failed
    };
    *part = *part + Amount { items: 1, bytes };
}

/// The keys of the files of the report on a run, without their endings.
pub(super) fn name(run: &BitRun, ended: Timestamp) -> String {
    let BitRun { store, space, number, .. } = run;
    format!("bit-integrity/{store}/{space}/{}-{number}", ended.strftime("%Y-%m-%dT%H-%M-%SZ"))
}
