//! Values as we write them: canonical keys, and every key that we do not know kept as it stood.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Malformed;
use crate::id::JobId;
use crate::state::{Authority, JobState, State};
use crate::time;

/// The key of ours in a job's `status` for when a daemon took it from Pending.
const CONSUMED: &str = "consumption_date";

/// A change of a job's state, as its `status` node records it.
#[derive(Clone, Copy, Debug)]
pub struct StatusChange<'a> {
    /// The state that the job leaves; `None` where its status names none that we know.
    pub from: Option<JobState>,
    /// The state that it enters.
    pub to: JobState,
    /// Whose change it is.
    pub by: Authority,
    /// The last successful state, as it was before the change.
    pub last_successful: Option<JobState>,
    /// The number of retries after the change.
    pub retry_count: u32,
    /// What to say of the step.
    pub message: &'a str,
    /// The present time.
    pub now: Timestamp,
}

/// The value of a new job's `status`: Pending.
#[must_use]
pub fn new_status(now: Timestamp) -> Vec<u8> {
    let (to, by) = (JobState::Pending, Authority::Daemon);
    let change = StatusChange { from: None, to, by, last_successful: None, retry_count: 0, message: "", now };
    job_status(&[], &change)
}

/// The value of a job's `status` after a change. Unknown keys of `old` stay; where `old` is not an object it is
/// replaced as a whole. A daemon's step from Pending sets when it took the job: [`consumed`].
#[must_use]
pub fn job_status(old: &[u8], change: &StatusChange<'_>) -> Vec<u8> {
    let last_successful = match change.from {
        Some(from) if from.is_success_before(change.to) => Some(from),
        Some(_) | None => change.last_successful,
    };
    let mut object = kept(old);
    set_common(&mut object, change.to, change.message, change.now);
    let is_taken = change.from == Some(JobState::Pending) && change.by == Authority::Daemon;
    if is_taken && !matches!(change.to, JobState::Held | JobState::Deleted) {
        object.insert(CONSUMED.into(), change.now.to_string().into());
    }
    object.insert("last_successful_status".into(), last_successful.map_or(Value::Null, |state| state.name().into()));
    object.insert("retry_count".into(), change.retry_count.into());
    bytes(object)
}

/// When a daemon of ours took a job from Pending, by its `status`; `None` where none did.
#[must_use]
pub fn consumed(status: &[u8]) -> Option<Timestamp> {
    kept(status).get(CONSUMED)?.as_str()?.parse().ok()
}

/// The value of a job's `status` as the Java daemons can load it, of a state that is not changed by this: what `old`
/// says stays, but for what they refuse. `last_successful` counts where `old` names no such state.
#[must_use]
pub fn loadable_job_status(
    old: &[u8],
    state: JobState,
    last_successful: Option<JobState>,
    retry_count: u32,
    now: Timestamp,
) -> Vec<u8> {
    const LAST: &str = "last_successful_status";
    let mut object = kept(old);
    set_same(&mut object, state, now);
    let named = object.get(LAST).and_then(Value::as_str);
    // A text that names no state that we know may name one of theirs.
    if named.is_none_or(|named| named.is_empty() || JobState::from_any(named).is_some()) {
        let last = named.and_then(JobState::from_any).or(last_successful);
        object.insert(LAST.into(), last.map_or(Value::Null, |state| state.name().into()));
    }
    object.insert("retry_count".into(), retry_count.into());
    bytes(object)
}

/// The same of the `status` of a batch or access request.
#[must_use]
pub fn loadable_item_status<S: State>(old: &[u8], state: S, now: Timestamp) -> Vec<u8> {
    let mut object = kept(old);
    set_same(&mut object, state, now);
    bytes(object)
}

/// Names the state as the daemons do, and keeps the message.
fn set_same<S: State>(object: &mut Map<String, Value>, state: S, now: Timestamp) {
    let message = object.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    set_common(object, state, &message, now);
}

/// The value of a batch's or access request's `status` after a change.
#[must_use]
pub fn item_status<S: State>(old: &[u8], to: S, message: &str, now: Timestamp) -> Vec<u8> {
    let mut object = kept(old);
    set_common(&mut object, to, message, now);
    bytes(object)
}

/// The value of a job's `identifiers`, over what was there.
///
/// # Errors
/// When `old` holds something, but no JSON object: it is not ours to throw away.
pub fn identifiers(old: &[u8], ark: &str, local_ids: &[&str]) -> Result<Vec<u8>, Malformed> {
    let mut object = if old.is_empty() { Map::new() } else { super::field::object(old)? };
    object.remove("primary");
    object.insert("primary_id".into(), ark.into());
    object.insert("local_id".into(), json!(local_ids));
    Ok(bytes(object))
}

/// The value of a node of which we write some keys, over what was there.
///
/// # Errors
/// When `old` holds something, but no JSON object: it is not ours to throw away.
pub fn merged(old: &[u8], keys: impl IntoIterator<Item = (&'static str, Value)>) -> Result<Vec<u8>, Malformed> {
    let mut object = if old.is_empty() { Map::new() } else { super::field::object(old)? };
    object.extend(keys.into_iter().map(|(key, value)| (key.to_owned(), value)));
    Ok(bytes(object))
}

/// The value of a batch's `status-report`, over what was there; a report that cannot be read is replaced.
#[must_use]
pub fn status_report(old: &[u8], failed: &[JobId], successful: &[JobId], now: Timestamp) -> Vec<u8> {
    let mut object = kept(old);
    let names = |jobs: &[JobId]| jobs.iter().map(|job| Value::from(job.to_string())).collect::<Vec<_>>();
    object.insert("last_modified".into(), time::write(now).into());
    object.insert("failed_jobs".into(), names(failed).into());
    object.insert("successful_jobs".into(), names(successful).into());
    bytes(object)
}

/// The jobs that a batch's `status-report` says have failed, and those that were completed; each sorted.
#[must_use]
pub fn reported(data: &[u8]) -> (Vec<JobId>, Vec<JobId>) {
    let object = kept(data);
    let jobs = |key: &str| {
        let names = object.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let mut jobs: Vec<JobId> = names.filter_map(|name| name.parse().ok()).collect();
        jobs.sort_unstable();
        jobs
    };
    (jobs("failed_jobs"), jobs("successful_jobs"))
}

fn set_common<S: State>(object: &mut Map<String, Value>, to: S, message: &str, now: Timestamp) {
    // The published design's name for the same thing would be left behind as a second, older truth.
    object.remove("last_modification_date");
    object.insert("status".into(), to.name().into());
    object.insert("last_modified".into(), time::write(now).into());
    object.insert("message".into(), message.into());
}

fn kept(old: &[u8]) -> Map<String, Value> {
    super::field::object(old).unwrap_or_default()
}

fn bytes(object: Map<String, Value>) -> Vec<u8> {
    Value::Object(object).to_string().into_bytes()
}
