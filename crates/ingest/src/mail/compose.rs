//! Mails into the outbox, each before the state changes that it reports.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use queuekeeper_catalogue::outbox::NewMessage;
use queuekeeper_mail::address::Recipients;
use queuekeeper_mail::message::{Attached, Body, Mail};
use queuekeeper_mail::settings::{MailSettings, Route};
use queuekeeper_mail::{MAIL, Settled, line, write_settled};
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::time::moment;
use queuekeeper_queue::{Batch, BatchReport, Queue};
use queuekeeper_store::ocfl::Root;
use serde_json::Value;
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

use super::report::{self, Outcomes};
use crate::clock::now;
use crate::copies::StoredObjects;
use crate::engine::fence::Fence;
use crate::parts::{Part, uuid_of_part};
use crate::profile::Profile;
use crate::services::Services;
use crate::spec::id_of;
use crate::spec::uuid_of;
use crate::step::StepError;

/// How long it may take to count copies.
const MOST_COUNTING: Duration = Duration::from_secs(30);

/// The longest text of a depositor's, in characters.
const MOST_TEXT: usize = 300;

/// What a mail is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// The submission is valid, and so many jobs are created.
    Queued,
    /// It became no jobs.
    Refused,
    /// Its jobs have ended.
    Reported(BatchState),
}

impl Occasion {
    /// Whether a collection wants mail of it; one without a profile is not kept in the dark about what happened.
    fn is_wanted(self, profile: Option<&Profile>) -> bool {
        match (self, profile) {
            (Self::Queued, profile) => profile.is_some_and(|profile| profile.is_mailed_when_queued),
            (Self::Refused | Self::Reported(_), None) => true,
            (Self::Reported(BatchState::Completed), Some(profile)) if profile.is_success_suppressed => false,
            (Self::Refused | Self::Reported(_), Some(profile)) => profile.is_report_mailed,
        }
    }
}

/// Whom a mail goes to.
struct Addressed {
    /// The depositor, or those whom the profile names.
    depositor: Recipients,
    /// The admins who get a copy.
    copies: Vec<String>,
}

/// A batch whose depositor gets a mail.
pub(crate) struct Correspondence<'a> {
    services: &'a Services,
    fence: &'a Fence,
    batch: &'a Batch,
    /// As the submission has it.
    id: String,
    uuid: Uuid,
}

impl<'a> Correspondence<'a> {
    pub(crate) fn new(services: &'a Services, fence: &'a Fence, batch: &'a Batch) -> Self {
        let id = batch.submitted().value.uuid.into_owned();
        let uuid = uuid_of(&id, "bid-");
        Self { services, fence, batch, id, uuid }
    }

    /// The mail that a submission is valid and becomes jobs, with those of all its batches.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub(crate) async fn queued(&self, jobs: u64, batches: u64) -> Result<(), StepError> {
        let occasion = Occasion::Queued;
        let Some(to) = self.recipients(occasion, "queued").await? else { return Ok(()) };
        let body = Body::default().paragraph("The submission is valid, and its jobs are queued.");
        let body = self.facts(body, &[("Part", &self.part(batches)), ("Jobs", &jobs.to_string())]);
        self.commit("queued", "OK -- Submission Queued", &to, body, Vec::new()).await
    }

    /// The mail that a submission became no jobs.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub(crate) async fn refused(&self, why: &str) -> Result<(), StepError> {
        let Some(to) = self.recipients(Occasion::Refused, "refused").await? else { return Ok(()) };
        let body =
            Body::default().paragraph("The submission has failed. No job was created; it has to be submitted again.");
        let body = self.facts(body, &[("Reason", &line(why, 1_024))]);
        self.commit("refused", "FAIL -- Submission Processed", &to, body, Vec::new()).await
    }

    /// The report of a batch whose jobs have ended.
    ///
    /// # Errors
    /// When a job cannot be read, or the mail cannot be written down.
    pub(crate) async fn reported(&self, queue: &Queue, jobs: &BatchReport) -> Result<(), StepError> {
        let last = self.batch.last_report();
        let number = last.as_ref().map_or(1, |last| last.number + 1);
        // Numbers begin again where a tree is loaded from a dump or restored; the time does not.
        let entered = self.batch.entered().map_or(0, jiff::Timestamp::as_millisecond);
        let name = format!("report-{number}-{entered:x}");
        let verdict = jobs.verdict();
        let Some(to) = self.recipients(Occasion::Reported(verdict), &name).await? else { return Ok(()) };
        let outcomes = report::collect(queue, jobs, last.as_ref()).await?;
        let outcomes = self.with_copies(outcomes).await;
        let sentence = match (number, verdict) {
            _ if jobs.is_empty() => "The submission has no jobs, and has to be made again.".to_owned(),
            (1, BatchState::Completed) => "All jobs of the submission have ended, and none has failed.".to_owned(),
            (1, _) => "All jobs of the submission have ended, and some have failed.".to_owned(),
            (number, BatchState::Completed) => {
                format!("This is report {number} of the submission: no failed jobs are left.")
            }
            (number, _) => format!("This is report {number} of the submission: some jobs have failed."),
        };
        let counts =
            [&jobs.processing, &jobs.failed, &jobs.completed, &jobs.deleted].map(|jobs| jobs.len().to_string());
        let ([pending, failed, completed, deleted], ended) = (&counts, moment(Timestamp::now()));
        let body = Body::default().paragraph(&sentence);
        let part = self.part(self.batches(queue, jobs).await?);
        let facts = [
            ("Reported", &ended),
            ("Part", &part),
            ("Pending", pending),
            ("Failed", failed),
            ("Completed", completed),
            ("Deleted", deleted),
        ];
        let body = self.facts(body, &facts.map(|(name, text)| (name, text.as_str())));
        let (body, attachments) = outcomes.say(body, last.as_ref());
        let word = if verdict == BatchState::Completed { "OK" } else { "FAIL" };
        let update = if number > 1 { " Again" } else { "" };
        let subject = format!("{word} -- Submission Processed{update}");
        self.commit(&name, &subject, &to, body, attachments).await
    }

    /// With how many objects have their copies, where that is known soon: a report does not wait for it.
    async fn with_copies(&self, outcomes: Outcomes) -> Outcomes {
        let Some(count) = self.services.count_copies.get() else { return outcomes };
        let Ok(profile) = self.services.profile(&self.batch.submitted().value.collection) else { return outcomes };
        let folders: Vec<_> = outcomes.arks().iter().filter_map(|ark| Root::folder_of(ark).ok()).collect();
        if folders.is_empty() {
            return outcomes;
        }
        let objects = StoredObjects { store: profile.store.clone(), space: profile.space.clone(), folders };
        match timeout(MOST_COUNTING, count(objects)).await {
            Ok(Ok(Some(standing))) => outcomes.with_copies(standing, now()),
            Ok(Ok(None)) => outcomes,
            Ok(Err(why)) => {
                warn!(batch = %self.batch.id, why, "a report does not list the copies");
                outcomes
            }
            Err(_) => {
                warn!(batch = %self.batch.id, "a report does not list the copies: counting them takes too long");
                outcomes
            }
        }
    }

    /// How many batches the deposit has become, as far as that is to be found from the first one.
    async fn batches(&self, queue: &Queue, jobs: &BatchReport) -> Result<u64, StepError> {
        let mut batches = 1;
        // One that is not full has none beside it.
        if jobs.len() as u64 >= self.services.settings.most_jobs {
            while queue.find_batch(&id_of(uuid_of_part(self.uuid, batches + 1))).await?.is_some() {
                batches += 1;
            }
        }
        Ok(batches)
    }

    /// Which part of its deposit the batch is, in words; empty where it is all of it.
    fn part(&self, batches: u64) -> String {
        let submission = serde_json::from_slice(self.batch.submission.as_deref().unwrap_or_default());
        match Part::of(&submission.unwrap_or_default(), self.uuid) {
            Some(Part { of, number, count, .. }) => format!("{number} of {count}, of {}", line(&of, 80)),
            None if batches > 1 => format!("1 of {batches}; each further part has a mail of its own"),
            None => String::new(),
        }
    }

    /// Whom a mail goes to; `None` where it is not wanted, or written down already.
    async fn recipients(&self, occasion: Occasion, name: &str) -> Result<Option<Addressed>, StepError> {
        let collection = self.batch.submitted().value.collection.into_owned();
        let profile = self.services.profile(&collection).ok();
        if !occasion.is_wanted(profile.as_deref()) {
            return Ok(None);
        }
        let submission: Value =
            serde_json::from_slice(self.batch.submission.as_deref().unwrap_or_default()).unwrap_or_default();
        let named = submission.get("notification").and_then(Value::as_str).unwrap_or_default();
        let of_profile = profile.as_deref().map(|profile| profile.addresses.as_slice()).unwrap_or_default();
        let depositor = Recipients::new(of_profile.iter().map(String::as_str), named);
        for (address, why) in &depositor.refused {
            warn!(batch = %self.batch.id, %address, %why, "no mail is sent to an address of a submission");
        }
        let settings = &self.services.settings.mail;
        let copies = if occasion == Occasion::Queued { &[] } else { settings.copies.as_slice() };
        let is_new = |copy: &&String| depositor.valid.iter().all(|known| !known.eq_ignore_ascii_case(copy));
        let copies: Vec<String> = copies.iter().filter(is_new).cloned().collect();
        // A file may be read by anyone.
        let has_reader = matches!(settings.route, Route::Directory(_));
        if depositor == Recipients::default() && copies.is_empty() && !has_reader {
            return Ok(None);
        }
        let known = self.services.catalogue.message(&self.name(name)).await?;
        Ok(known.is_none().then_some(Addressed { depositor, copies }))
    }

    fn name(&self, what: &str) -> String {
        format!("{what}.{}", self.uuid)
    }

    fn facts(&self, body: Body, more: &[(&str, &str)]) -> Body {
        let submitted = self.batch.submitted().value;
        // Other programs have forms of their own.
        let date = submitted.submission_date.parse().map_or_else(|_| submitted.submission_date.to_string(), moment);
        let texts = [
            ("Submission", &self.id),
            ("Collection", &submitted.collection.into_owned()),
            ("Title", &submitted.title.into_owned()),
            ("File", &submitted.filename.into_owned()),
            ("Submitter", &submitted.submitter.into_owned()),
            ("Submitted", &date),
        ]
        .map(|(name, text)| (name, line(text, MOST_TEXT)));
        let batch = self.batch.id.to_string();
        let own = texts.iter().map(|(name, text)| (*name, text.as_str()));
        body.facts(&own.chain([("Batch", batch.as_str())]).chain(more.iter().copied()).collect::<Vec<_>>())
    }

    async fn commit(
        &self,
        what: &str,
        subject: &str,
        to: &Addressed,
        body: Body,
        attachments: Vec<Attached>,
    ) -> Result<(), StepError> {
        let (name, submitted) = (self.name(what), self.batch.submitted().value);
        let title = line(&submitted.title, 80);
        let title = if title.is_empty() { title } else { format!(" ({title})") };
        let subject = format!("Ingest: {subject}: {}{title}", line(&self.id, 80));
        let MailSettings { from, reply_to, .. } = &self.services.settings.mail;
        let reply_to = reply_to.as_deref();
        let (to, copies, refused) = (&to.depositor.valid, &to.copies, &to.depositor.refused);
        let mail = Mail { from, reply_to, to, copies, subject: &subject, id: &name, body, attachments };
        let content =
            mail.render(SystemTime::now()).map_err(|error| StepError::temporary(format_args!("mail: {error}")))?;
        let settled: Settled = refused.iter().cloned().map(|(address, why)| (address, Some(why))).collect();
        let message = NewMessage {
            name,
            kind: MAIL.to_owned(),
            subject: self.uuid,
            batch: self.id.clone(),
            profile: submitted.collection.into_owned(),
            recipient: to.iter().chain(copies).map(String::as_str).collect::<Vec<_>>().join(", "),
            content,
            settled: write_settled(&settled),
        };
        self.fence.pass().await;
        if self.services.catalogue.queue_message(&message).await? {
            info!(batch = %self.batch.id, mail = %message.name, to = to.len(), copies = copies.len(), bytes = message.content.len(), "queued a mail");
        }
        self.services.posted.mail.notify_one();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_gets_what_its_profile_wants() {
        let profile = |keys: &str| {
            let text = format!(
                "name: p\nowner: ark:/1/o\nstore: main\nminter: {{kind: noid, shoulder: ark:/99999/fk4}}\n{keys}"
            );
            Profile::parse(std::path::Path::new("p.yaml"), text.as_bytes(), |_| Ok(Vec::new())).unwrap()
        };
        let [completed, failed] = [BatchState::Completed, BatchState::Failed].map(Occasion::Reported);
        let all = [Occasion::Queued, Occasion::Refused, completed, failed];
        for (keys, expected) in [
            (None, [false, true, true, true]),
            (Some(""), [false, true, true, true]),
            (Some("notification: {queued: true}\n"), [true, true, true, true]),
            (Some("report: {suppress: true}\n"), [false, true, false, true]),
            (Some("report: {mail: false}\nnotification: {queued: true}\n"), [true, false, false, false]),
        ] {
            let profile = keys.map(profile);
            assert_eq!(all.map(|occasion| occasion.is_wanted(profile.as_ref())), expected, "{keys:?}");
        }
    }
}
