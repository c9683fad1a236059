//! Notify: the depositor's system is called, and what the job needed is removed.

use queuekeeper_catalogue::outbox::{Attempt, NewMessage};
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_queue::{JobChange, LockedJob, record};
use serde_json::{Map, Value, json};

use super::storing;
use crate::blocking::blocking;
use crate::clock::now;
use crate::engine::fence::Fence;
use crate::outbox::{CALLBACK, Callback, FAILED_CALLBACK};
use crate::profile::Profile;
use crate::services::Services;
use crate::spec::JobSpec;
use crate::step::{JobAtWork, StepError};
use crate::url::ContentUrl;

/// The namespace of the messages' keys.
const NAMESPACE: &str = "http://uc3.cdlib.org/ontology/mrt/ingest/job";

/// Sends the callback, where the profile has one, and removes the working directory.
///
/// # Errors
/// When the callback is refused for good or cannot be delivered yet, or the directory cannot be removed.
pub async fn notify(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    if let Some(url) = &work.profile.callback {
        call(work, url).await?;
    }
    let directory = work.directory.clone();
    blocking(move || directory.remove())
        .await?
        .map_err(|error| StepError::working("remove the job's files", &error))?;
    Ok(JobChange::success())
}

/// Writes down that a job fails, for the depositor's system; nothing depends on its delivery. A job whose callback
/// failed has no other one.
///
/// # Errors
/// When it cannot be written down.
pub(crate) async fn failed(services: &Services, fence: &Fence, job: &LockedJob, why: &str) -> Result<(), StepError> {
    // Without a readable configuration it is not known whom to call.
    let Ok(spec) = JobSpec::of(&job.job) else { return Ok(()) };
    let Ok(profile) = services.profile(&spec.profile) else { return Ok(()) };
    let Some(url) = profile.callback.as_ref().filter(|_| job.state != JobState::Notify) else { return Ok(()) };
    let identifiers = job.job.identifiers().value;
    let named = spec.primary_id.as_deref().unwrap_or_default();
    let ark = if identifiers.ark.is_empty() { named } else { &identifiers.ark };
    let outcome = Outcome { status: "FAILED", message: why, ark, ended: now().to_string() };
    let message = message(&spec, &profile, url, FAILED_CALLBACK, job, &outcome);
    fence.pass().await;
    services.catalogue.queue_message(&message).await?;
    services.posted.callback.notify_one();
    Ok(())
}

/// The row is committed before it is delivered, so that each attempt sends the same content under the same key.
async fn call(work: &JobAtWork<'_>, url: &ContentUrl) -> Result<(), StepError> {
    let (spec, catalogue) = (work.spec, &work.services.catalogue);
    let ended = work.job.job.entered().map(|entered| entered.to_string()).unwrap_or_default();
    let outcome = Outcome { status: "COMPLETED", message: "Success", ark: &storing::ark(work)?, ended };
    let message = message(spec, &work.profile, url, CALLBACK, work.job, &outcome);
    work.fence.pass().await;
    catalogue.queue_message(&message).await?;
    let Some(known) = catalogue.message(&message.name).await? else {
        return Err(StepError::temporary("the callback's row is gone"));
    };
    if known.is_delivered {
        return Ok(());
    }
    if known.has_ended {
        // It was refused for good, and the job's failure could not be written then.
        return Err(StepError::Permanent(known.error.unwrap_or_default()));
    }
    let callback = Callback { fetcher: work.fetcher()? };
    match callback.deliver(&known.message).await {
        Ok(()) => {
            catalogue.message_tried(known.id, Attempt::Delivered { note: None }).await?;
            Ok(())
        }
        Err(failure) if failure.is_final => {
            catalogue.message_tried(known.id, Attempt::GivenUp { why: &failure.why }).await?;
            Err(StepError::Permanent(failure.why))
        }
        Err(failure) => Err(StepError::Temporary { why: failure.why, after: failure.after }),
    }
}

/// How a job ended.
struct Outcome<'a> {
    status: &'static str,
    message: &'a str,
    ark: &'a str,
    ended: String,
}

fn message(
    spec: &JobSpec,
    profile: &Profile,
    url: &ContentUrl,
    kind: &str,
    job: &LockedJob,
    outcome: &Outcome<'_>,
) -> NewMessage {
    let retry = job.job.status().value.retry_count.unwrap_or(0);
    NewMessage {
        name: format!("{}/{}/{retry}", spec.job, job.state.label()),
        kind: kind.to_owned(),
        subject: spec.uuid,
        batch: spec.batch.clone(),
        profile: profile.name.to_string(),
        recipient: format!("{}/mc/{}", url.reveal().as_str().trim_end_matches('/'), spec.job),
        content: body(spec, job, outcome).to_string(),
        settled: None,
    }
}

fn body(spec: &JobSpec, job: &LockedJob, outcome: &Outcome<'_>) -> Value {
    let version = job.job.data(JobNode::Inventory).unwrap_or_default();
    let version: Map<String, Value> = serde_json::from_slice(version).unwrap_or_default();
    let consumed = record::consumed(job.job.data(JobNode::Status).unwrap_or_default());
    // One that fails in Pending is taken now.
    let consumed = consumed.or_else(|| (job.state == JobState::Pending).then(now));
    let version = version.get("manifest_url").and_then(Value::as_str).and_then(|url| url.rsplit_once("/v"));
    let state = json!({
        "xmlns:job": NAMESPACE,
        "job:jobID": spec.job,
        "job:packageName": spec.file_name,
        "job:primaryID": outcome.ark,
        "job:localID": spec.local_ids.join(";"),
        "job:submissionDate": spec.text("submissionDate"),
        "job:consumptionDate": consumed.map(|at| at.to_string()),
        "job:completionDate": outcome.ended,
        "job:jobStatus": outcome.status,
        "job:jobStatusMessage": outcome.message,
        "job:versionID": version.map(|(_, version)| version),
        "job:objectCreator": spec.text("creator"),
        "job:objectTitle": spec.text("title"),
        "job:objectDate": spec.text("date"),
        "job:objectNote": spec.text("note"),
        "job:queuePriority": job.job.priority().map(|priority| priority.to_string()).unwrap_or_default(),
    });
    json!({ "job:jobState": state })
}
