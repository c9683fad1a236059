//! Notify: the depositor's system is told, and what the job needed is removed.

use queuekeeper_catalogue::outbox::NewMessage;
use queuekeeper_queue::JobChange;
use serde_json::{Map, Value, json};

use super::downloading::blocking;
use super::storing;
use crate::outbox::{CALLBACK, Callback};
use crate::step::{JobAtWork, StepError};

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

/// The row is committed before it is delivered, so that each attempt sends the same content under the same key.
async fn call(work: &JobAtWork<'_>, url: &crate::url::ContentUrl) -> Result<(), StepError> {
    let (spec, catalogue) = (work.spec, &work.services.catalogue);
    let retry = work.job.job.status().value.retry_count.unwrap_or(0);
    let name = format!("{}/notify/{retry}", spec.job);
    let message = NewMessage {
        name: name.clone(),
        kind: CALLBACK.to_owned(),
        subject: spec.uuid,
        recipient: format!("{}/mc/{}", url.reveal().as_str().trim_end_matches('/'), spec.job),
        content: body(work)?.to_string(),
    };
    work.fence.pass().await;
    catalogue.queue_message(&message).await?;
    let Some(due) = catalogue.message(&name).await? else {
        return Err(StepError::temporary("the callback's row is gone"));
    };
    if due.is_delivered {
        return Ok(());
    }
    let callback = Callback { fetcher: work.fetcher()? };
    callback.deliver(&due.message).await.map_err(|failure| {
        if failure.is_final {
            StepError::Permanent(failure.why)
        } else {
            StepError::Temporary { why: failure.why, after: failure.after }
        }
    })?;
    catalogue.message_delivered(due.id).await?;
    Ok(())
}

fn body(work: &JobAtWork<'_>) -> Result<Value, StepError> {
    let spec = work.spec;
    let version = work.job.job.data(queuekeeper_queue::path::JobNode::Inventory).unwrap_or_default();
    let version: Map<String, Value> = serde_json::from_slice(version).unwrap_or_default();
    let version = version.get("manifest_url").and_then(Value::as_str).and_then(|url| url.rsplit_once("/v"));
    let state = json!({
        "xmlns:job": NAMESPACE,
        "job:jobID": spec.job,
        "job:packageName": spec.file_name,
        "job:primaryID": storing::ark(work)?,
        "job:localID": spec.local_ids.join(";"),
        "job:submissionDate": spec.text("submissionDate"),
        "job:completionDate": work.job.job.entered().map(|entered| entered.to_string()),
        "job:jobStatus": "COMPLETED",
        "job:jobStatusMessage": "Success",
        "job:versionID": version.map(|(_, version)| version),
        "job:objectCreator": spec.text("creator"),
        "job:objectTitle": spec.text("title"),
        "job:objectDate": spec.text("date"),
        "job:objectNote": spec.text("note"),
        "job:queuePriority": work.job.job.priority().map(|priority| priority.to_string()).unwrap_or_default(),
    });
    Ok(json!({ "job:jobState": state }))
}
