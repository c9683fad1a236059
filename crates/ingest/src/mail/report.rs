//! What a report says: the outcome of each job, and what has changed since the report before.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_mail::line;
use queuekeeper_mail::message::{Attached, Body, MailTable};
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::state::JobOutcome;
use queuekeeper_queue::time::moment;
use queuekeeper_queue::{BatchReport, Error, Job, LastReport, Queue};

use serde_json::{Value, json};

use super::listed::{COMPLETED, FAILED, JobsJson};
use super::table::Table;
use crate::copies::CopyStanding;
use crate::url::{ContentUrl, conceal, conceal_in};
use crate::warnings;

/// How many jobs are read at a time.
const AT_A_TIME: usize = 32;

/// How many jobs of a kind are in the text; all are in the table.
const LISTED: usize = 100;

/// The longest texts of a job, in characters: a message has at most 1 KiB.
const MOST_TEXT: usize = 1_024;
const MOST_NAME: usize = 300;

/// What is said of a job.
#[derive(Clone, Debug)]
pub(crate) struct JobLine {
    pub(crate) job: JobId,
    pub(crate) file: String,
    pub(crate) local_ids: String,
    pub(crate) ark: String,
    pub(crate) message: String,
}

impl JobLine {
    /// It as the lists of JSON have it.
    fn json(&self, status: &str, configuration: &Value) -> Value {
        let Self { job, local_ids, ark, message, .. } = self;
        json!({
            "jobID": job.to_string(), "status": status, "message": message, "localID": local_ids, "primaryID": ark,
            "configuration": without_secrets("", configuration),
        })
    }
}

/// A value of a configuration, without queries and users in its URLs, and without the URLs that are not valid. Other
/// programs keep them there.
fn without_secrets(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => text_without_secrets(key, text).map_or(Value::Null, Value::String),
        Value::Array(values) => values.iter().map(|value| without_secrets(key, value)).collect(),
        Value::Object(all) => {
            let shown = all.iter().map(|(key, value)| (key.clone(), without_secrets(key, value)));
            Value::Object(shown.filter(|(key, value)| !value.is_null() || all[key].is_null()).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A text of a configuration; `None` for a URL that is not valid.
fn text_without_secrets(key: &str, text: &str) -> Option<String> {
    let before = text.split_once("://").map(|(before, _)| before.trim());
    // A flag may be called so, too.
    let is_of_url = key.to_ascii_lowercase().ends_with("url") && text.contains(':');
    let is_scheme =
        |before: &str| !before.contains(|char: char| char.is_whitespace() || matches!(char, '?' | '@' | ';'));
    match before {
        _ if is_of_url => text.parse::<ContentUrl>().ok().map(|url| url.to_string()),
        Some(before) if is_scheme(before) => text.parse::<ContentUrl>().ok().map(|url| url.to_string()),
        Some(_) => Some(conceal(text)),
        None => Some(text.to_owned()),
    }
}

/// The first jobs of a kind, and how many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) first: Vec<JobLine>,
    pub(crate) total: u64,
}

/// What the report before says of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Failed,
    Completed,
    Unknown,
}

impl Before {
    fn of(job: JobId, last: &LastReport) -> Self {
        if last.failed.binary_search(&job).is_ok() {
            Self::Failed
        } else if last.completed.binary_search(&job).is_ok() {
            Self::Completed
        } else {
            Self::Unknown
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Completed => "Completed",
            Self::Unknown => "",
        }
    }
}

/// The words for what has become of jobs, by what the report before says of them.
const CHANGES: [(Before, JobOutcome, &str); 9] = [
    (Before::Failed, JobOutcome::Failed, "had failed, and have not been completed since"),
    (Before::Failed, JobOutcome::Completed, "had failed, and are completed now"),
    (Before::Failed, JobOutcome::Deleted, "had failed, and are deleted now"),
    (Before::Completed, JobOutcome::Failed, "were completed, and have failed now"),
    (Before::Completed, JobOutcome::Completed, "are completed, as before"),
    (Before::Completed, JobOutcome::Deleted, "were completed, and are deleted now"),
    (Before::Unknown, JobOutcome::Failed, "are not in that report, and have failed"),
    (Before::Unknown, JobOutcome::Completed, "are not in that report, and are completed"),
    (Before::Unknown, JobOutcome::Deleted, "are deleted, and were not completed before"),
];

/// The outcomes of a batch's jobs as a mail has them.
#[derive(Debug)]
pub(crate) struct Outcomes {
    failed: Listed,
    repaired: Listed,
    /// Those that were completed with warnings.
    warned: Listed,
    json: [JobsJson; 2],
    changes: BTreeMap<(Before, JobOutcome), u64>,
    table: Table,
    /// The objects of the completed jobs.
    arks: BTreeSet<String>,
    copies: Option<(CopyStanding, Timestamp)>,
}

/// Reads the jobs of a batch, some at a time, those that failed first.
pub(crate) async fn collect(queue: &Queue, report: &BatchReport, last: Option<&LastReport>) -> Result<Outcomes, Error> {
    let before = |job| last.map_or(Before::Unknown, |last| Before::of(job, last));
    let is_repaired = |job: &JobId| before(*job) == Before::Failed;
    let (repaired, others): (Vec<JobId>, Vec<JobId>) = report.completed.iter().copied().partition(is_repaired);
    let order = [
        (JobOutcome::Failed, &report.failed),
        (JobOutcome::Completed, &repaired),
        (JobOutcome::Deleted, &report.deleted),
        (JobOutcome::Completed, &others),
    ];
    let mut outcomes = Outcomes {
        failed: Listed::default(),
        repaired: Listed::default(),
        warned: Listed::default(),
        json: [FAILED, COMPLETED].map(JobsJson::new),
        changes: BTreeMap::new(),
        table: Table::new(report.len()),
        arks: BTreeSet::new(),
        copies: None,
    };
    let jobs = order.into_iter().flat_map(|(outcome, jobs)| jobs.iter().map(move |job| (outcome, *job)));
    let jobs: Vec<(JobOutcome, JobId)> = jobs.collect();
    let read = |(outcome, job): (JobOutcome, JobId)| async move { (outcome, job, queue.load_job(job).await) };
    let mut reads = stream::iter(jobs.into_iter().map(read)).buffered(AT_A_TIME);
    while let Some((outcome, id, read)) = reads.next().await {
        let (line, configuration) = match read {
            Ok(job) => (JobLine::of(&job), job.data(JobNode::Configuration).map(ToOwned::to_owned)),
            // Its znodes are gone, the reference to it is not.
            Err(Error::Missing(_)) => (JobLine::gone(id), None),
            Err(error) => return Err(error),
        };
        let configuration: Value = serde_json::from_slice(&configuration.unwrap_or_default()).unwrap_or_default();
        outcomes.add(outcome, before(id), line, &configuration);
    }
    drop(reads);
    Ok(outcomes)
}

impl Outcomes {
    fn add(&mut self, outcome: JobOutcome, before: Before, line: JobLine, configuration: &Value) {
        *self.changes.entry((before, outcome)).or_default() += 1;
        let name = match outcome {
            JobOutcome::Processing => "Processing",
            JobOutcome::Failed => "Failed",
            JobOutcome::Completed => "Completed",
            JobOutcome::Deleted => "Deleted",
        };
        let JobLine { job, file, local_ids, ark, message } = line.clone();
        self.table.push([job.to_string(), name.to_owned(), before.name().to_owned(), file, local_ids, ark, message]);
        let [failed, completed] = &mut self.json;
        match outcome {
            JobOutcome::Failed => failed.push(&line.json(name, configuration)),
            JobOutcome::Completed => {
                completed.push(&line.json(name, configuration));
                self.arks.insert(line.ark.clone());
            }
            JobOutcome::Processing | JobOutcome::Deleted => {}
        }
        if outcome == JobOutcome::Completed && !warnings::of(&line.message).is_empty() {
            self.warned.add(line.clone());
        }
        match (before, outcome) {
            (_, JobOutcome::Failed) => self.failed.add(line),
            (Before::Failed, JobOutcome::Completed) => self.repaired.add(line),
            _ => {}
        }
    }

    /// The objects of the completed jobs, by their identifiers.
    pub(crate) fn arks(&self) -> &BTreeSet<String> {
        &self.arks
    }

    /// Says of the objects how many have their copies.
    pub(crate) fn with_copies(self, standing: CopyStanding, now: Timestamp) -> Self {
        Self { copies: Some((standing, now)), ..self }
    }

    /// Says it, with what has changed since a report before; the rest is attached.
    pub(crate) fn say(self, mut body: Body, last: Option<&LastReport>) -> (Body, Vec<Attached>) {
        if let Some(last) = last {
            body = body.paragraph(&format!("Since report {}, of the jobs of this submission:", last.number));
            for (before, outcome, words) in CHANGES {
                if let Some(count) = self.changes.get(&(before, outcome)) {
                    body = body.paragraph(&format!("- {count} {words}."));
                }
            }
        }
        if let Some((standing, now)) = self.copies {
            body = body.paragraph(&copies_in_words(standing, now));
        }
        body = self.failed.say(body, "Failed jobs");
        body = self.repaired.say(body, "Jobs that had failed and are completed now");
        body = self.warned.say(body, "Completed jobs with warnings");
        body = body.paragraph("All jobs are in the attached file jobs.csv.");
        let [failed, completed] = self.json;
        let copies = self.copies.map(|(CopyStanding { complete, incomplete }, now)| {
            ("copies", json!({"complete": complete, "incomplete": incomplete, "time": seconds(now)}))
        });
        let copies = copies.as_slice();
        let lists: [(_, _, &[_]); 2] = [(FAILED, failed, &[]), (COMPLETED, completed, copies)];
        let json = lists.into_iter().filter_map(|((name, ..), jobs, more)| {
            jobs.finish(more).map(|content| Attached { name, media_type: "application/json", content })
        });
        let media_type = "text/csv; charset=utf-8; header=present";
        let table = Attached { name: "jobs.csv", media_type, content: self.table.finish() };
        (body, std::iter::once(table).chain(json).collect())
    }
}

/// How many objects have their copies, in a sentence that says when.
fn copies_in_words(standing: CopyStanding, now: Timestamp) -> String {
    let at = moment(now);
    match standing {
        CopyStanding { complete: 1, incomplete: 0 } => {
            format!("As of {at}, the object has all required copies.")
        }
        CopyStanding { complete, incomplete: 0 } => {
            format!("As of {at}, all {complete} objects have all required copies.")
        }
        CopyStanding { complete: 0, incomplete: 1 } => {
            format!("As of {at}, some copies of the object are still pending.")
        }
        CopyStanding { complete: 0, incomplete } => {
            format!("As of {at}, copies of all {incomplete} objects are still pending.")
        }
        CopyStanding { complete, incomplete } => {
            let of = complete.saturating_add(incomplete);
            format!(
                "As of {at}, {complete} of {of} objects have all required copies; copies of the other {incomplete} are still pending."
            )
        }
    }
}

fn seconds(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Listed {
    fn add(&mut self, line: JobLine) {
        self.total += 1;
        if self.first.len() < LISTED {
            self.first.push(line);
        }
    }

    fn say(&self, body: Body, heading: &str) -> Body {
        let row = |line: &JobLine| {
            let JobLine { job, file, local_ids, ark, message } = line.clone();
            vec![job.to_string(), file, local_ids, ark, message]
        };
        let columns = &[("Job", ""), ("File", ""), ("Local id", "local id"), ("ARK", "ARK"), ("Message", "")];
        let list = MailTable { columns, rows: self.first.iter().map(row).collect(), total: self.total };
        body.list(heading, &list, "in jobs.csv")
    }
}

impl JobLine {
    fn of(job: &Job) -> Self {
        let (configuration, identifiers) = (job.configuration().value, job.identifiers().value);
        let local_ids = if identifiers.local_ids.is_empty() { configuration.local_ids } else { identifiers.local_ids };
        let ark = if identifiers.ark.is_empty() { &configuration.object_id } else { &identifiers.ark };
        Self {
            job: job.id,
            file: line(&configuration.filename, MOST_NAME),
            local_ids: line(&local_ids.join(";"), MOST_NAME),
            ark: line(ark, MOST_NAME),
            message: line(&conceal_in(&job.status().value.message), MOST_TEXT),
        }
    }

    fn gone(job: JobId) -> Self {
        let [file, local_ids, ark] = [(); 3].map(|()| String::new());
        Self { job, file, local_ids, ark, message: "its znodes were removed".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_how_many_objects_have_their_copies_and_when_that_was() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        for (complete, incomplete, words) in [
            (1, 0, "the object has all required copies."),
            (5, 0, "all 5 objects have all required copies."),
            (0, 1, "some copies of the object are still pending."),
            (0, 5, "copies of all 5 objects are still pending."),
            (3, 2, "3 of 5 objects have all required copies; copies of the other 2 are still pending."),
        ] {
            let found = copies_in_words(CopyStanding { complete, incomplete }, now);
            assert_eq!(found, format!("As of 2027-01-15 08:00:00 UTC, {words}"));
        }
    }

    #[test]
    fn the_configuration_in_a_list_has_no_query_no_user_and_no_url_that_is_not_valid() {
        let job = JobLine::gone("jid0000000001".parse().unwrap());
        let configuration = json!({
            "payload_url": "https://example.edu/a?X-Amz-Signature=SECRET", "callbackUrl": "http:u:SECRET@example.edu/",
            "other": " HTTPS://u:SECRET@example.edu/b", "of": [{"s3": "s3://key:SECRET@bucket/c"}, "https://example.edu/d#SECRET"],
            "note": "from https://example.edu/e?SECRET", "title": "Who? File: @home #1", "retainTargetURL": "true",
            "objectID": "ark:/99999/x?", "size": 7, "creator": null,
        });
        let expected = json!({
            "payload_url": "https://example.edu/a?..", "of": [{}, "https://example.edu/d"],
            "note": "from https://example.edu/e?..", "title": "Who? File: @home #1", "retainTargetURL": "true",
            "objectID": "ark:/99999/x?", "size": 7, "creator": null,
        });
        assert_eq!(job.json("Failed", &configuration)["configuration"], expected);
    }
}
