//! The mail on a report that is no success, to those whom the account names.

use std::sync::Arc;
use std::time::SystemTime;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::BitRun;
use queuekeeper_catalogue::outbox::NewMessage;
use queuekeeper_mail::message::{Body, Mail, MailTable};
use queuekeeper_mail::settings::MailSettings;
use queuekeeper_mail::{MAIL, line};
use queuekeeper_store::store::Item;
use tokio::sync::Notify;
use uuid::Uuid;

use super::checker::said;
use super::coverage::{Amount, ReportResult};
use super::report::ReportHead;
use crate::account::Account;
use crate::words::{counted, moment};

/// How many findings a mail has.
const FINDINGS: u32 = 10;

/// The longest text of others, in characters.
const MOST_KEY: usize = 300;
const MOST_DETAIL: usize = 1_024;

/// What a finding has in place of the number of its bit error where that has ended before the report was written.
const RESOLVED: &str = "resolved";

/// The results of which a mail has findings.
const WRONG: [&str; 2] = ["error", "failure"];

/// How mails on reports are made.
#[derive(Clone, Debug, Default)]
pub struct ReportMail {
    /// Who sends them, whom answers go to, and who gets a copy.
    pub settings: MailSettings,
    /// Where the pages are, without a slash at the end; `None` where that is not known.
    pub pages: Option<String>,
    /// Notified when a mail was written.
    pub posted: Arc<Notify>,
}

impl ReportMail {
    /// The mail on a report that is stored at `place`; `None` where the account names no address, or the report is a
    /// success.
    ///
    /// # Errors
    /// With one sentence, when the catalogue cannot be read.
    pub(super) async fn message(
        &self,
        catalogue: &Catalogue,
        account: &Account,
        run: &BitRun,
        head: &ReportHead,
        place: &str,
    ) -> Result<Option<NewMessage>, String> {
        let result = head.coverage.result(head.required);
        let (word, verdict) = match result {
            ReportResult::Success => return Ok(None),
            ReportResult::Incomplete => ("INCOMPLETE", "not every item has the proof that its policy requires"),
            ReportResult::Failure => ("FAIL", "some content is not as recorded"),
        };
        if account.mail.is_empty() {
            return Ok(None);
        }
        let ReportHead { store, space, .. } = head;
        let name = &account.name;
        let body = Body::default().paragraph(&format!("Of the space {space} in {store}, {verdict}."));
        let body = facts(body, head);
        let body = findings(catalogue, account, run, head, body).await?;
        let body = self.further(body, run, place, result);
        let (id, MailSettings { from, reply_to, copies, .. }) = (Uuid::now_v7(), &self.settings);
        let is_new = |copy: &&String| account.mail.iter().all(|known| !known.eq_ignore_ascii_case(copy));
        let copies: Vec<String> = copies.iter().filter(is_new).cloned().collect();
        let message = format!("bit-report-{}.{id}", run.id);
        let mail = Mail {
            from,
            reply_to: reply_to.as_deref(),
            to: &account.mail,
            copies: &copies,
            subject: &format!("Mill: {word} -- Bit report: {name}/{space} in {store}"),
            id: &message,
            body,
            attachments: Vec::new(),
        };
        Ok(Some(NewMessage {
            content: mail.render(SystemTime::now()).map_err(|error| format!("the mail on the report: {error}"))?,
            name: message,
            kind: MAIL.to_owned(),
            subject: id,
            batch: String::new(),
            profile: String::new(),
            recipient: account.mail.iter().chain(&copies).map(String::as_str).collect::<Vec<_>>().join(", "),
            settled: None,
        }))
    }

    /// Where the whole is, and what to do.
    fn further(&self, body: Body, run: &BitRun, place: &str, result: ReportResult) -> Body {
        let page = |path: &str| self.pages.as_ref().map(|url| format!(", or {url}{path}")).unwrap_or_default();
        let BitRun { id, account, .. } = run;
        let body = body
            .paragraph(&format!(
                "The whole report: queuekeeper mill reports {id}{}. Its files are in {place}.*",
                page(&format!("/mill/reports/{id}"))
            ))
            .paragraph(&format!(
                "Bit errors that need a decision: queuekeeper mill errors {account}{}. The runbook describes how to handle each.",
                page(&format!("/mill/errors?account={account}"))
            ));
        match result {
            ReportResult::Success | ReportResult::Failure => body,
            ReportResult::Incomplete => body.paragraph(&format!(
                "Checks that failed permanently: queuekeeper mill dead-letters --account {account}{}; queuekeeper mill retry retries them. The next loop checks items that were not reached.",
                page(&format!("/mill/dead-letters?account={account}"))
            )),
        }
    }
}

/// The first findings, each with the number of its bit error, by which it is resolved.
async fn findings(
    catalogue: &Catalogue,
    account: &Account,
    run: &BitRun,
    head: &ReportHead,
    body: Body,
) -> Result<Body, String> {
    let space = account.require_space(&run.space)?;
    let mut checks = Vec::new();
    for result in WRONG {
        checks.extend(catalogue.checks_of_run(run.id, result, 0, FINDINGS).await.map_err(said)?);
    }
    checks.truncate(FINDINGS as usize);
    let mut rows = Vec::with_capacity(checks.len());
    for check in checks {
        let key = line(&check.key.to_string(), MOST_KEY);
        let error = catalogue.bit_error(&run.store, &Item::new(space.clone(), check.key)).await.map_err(said)?;
        let number = error.map_or_else(|| RESOLVED.to_owned(), |error| error.id.to_string());
        rows.push(vec![number, key, line(&check.detail.unwrap_or_default(), MOST_DETAIL)]);
    }
    let coverage = &head.coverage;
    let wrong = [coverage.failed, coverage.missing, coverage.foreign].map(|amount| amount.items);
    let columns = &[("Number", ""), ("Key", ""), ("Found", "")];
    let list = MailTable { columns, rows, total: wrong.iter().sum() };
    Ok(body.list("Bit errors", &list, "in the report"))
}

/// What the report says as a whole, and what it covers.
fn facts(body: Body, head: &ReportHead) -> Body {
    let ReportHead { account, store, space, number, policy, required, started, ended, coverage } = head;
    let facts = [
        ("Account", account.clone()),
        ("Store", store.to_string()),
        ("Space", space.to_string()),
        ("Result", coverage.result(*required).as_str().to_owned()),
        ("Loop", number.to_string()),
        ("Proof", policy.clone()),
        ("Began", moment(*started)),
        ("Ended", moment(*ended)),
    ];
    let mut body = body.facts(&facts.each_ref().map(|(name, value)| (*name, value.as_str())));
    for lack in coverage.lacks(*required) {
        body = body.paragraph(&format!("- {} {}.", counted(lack.items, "item", "items"), lack.words));
    }
    let parts: Vec<(String, String)> = coverage
        .parts()
        .filter(|(part, _, amount)| amount.items > 0 || *part == "stored")
        .map(|(part, why, Amount { items, bytes })| {
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let amount = format!("{}, {}{why}", counted(items, "item", "items"), counted(bytes, "byte", "bytes"));
            (part.replace('_', " "), amount)
        })
        .collect();
    body.facts(&parts.iter().map(|(part, amount)| (part.as_str(), amount.as_str())).collect::<Vec<_>>())
}
