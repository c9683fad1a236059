//! The values of znodes.

use std::borrow::Cow;
use std::fmt::Debug;

use jiff::Timestamp;
use queuekeeper_queue::id::JobId;
use queuekeeper_queue::record::{
    Configuration, Decoded, Identifiers, ItemStatus, JobStatus, PauseNote, StatusChange, Submission, Token, bid,
    identifiers, is_priority_out_of_range, item_status, job_status, merged, object_form, priority, space_needed,
    status_report,
};
use queuekeeper_queue::state::{AccessState, Authority, BatchState, JobState, State};
use serde_json::{Map, Value};

use super::shown;

/// Reads the bytes as the value of every znode, and writes over them.
///
/// # Panics
/// When what is read is not what stands there, is larger than that, or when what is written over it cannot be read or
/// loses a key.
pub fn check(data: &[u8]) {
    // What another reader makes of it: an object in which no key stands twice.
    let object = serde_json::from_slice::<Map<String, Value>>(data.trim_ascii()).ok();
    let job = JobStatus::decode(data);
    fits(data, &[&job.value.status.text, &job.value.message], &job);
    status(&job, &job.value.status, object.as_ref());
    let batch = ItemStatus::<BatchState>::decode(data);
    fits(data, &[&batch.value.status.text, &batch.value.message], &batch);
    status(&batch, &batch.value.status, object.as_ref());
    let access = ItemStatus::<AccessState>::decode(data);
    status(&access, &access.value.status, object.as_ref());
    let configuration = Configuration::decode(data);
    let value = &configuration.value;
    let mut texts = vec![
        &value.collection,
        &value.submitter,
        &value.filename,
        &value.title,
        &value.creator,
        &value.submission_date,
        &value.object_id,
    ];
    texts.extend(&value.local_ids);
    fits(data, &texts, &configuration);
    says(object.as_ref(), "title", &value.title);
    says(object.as_ref(), "filename", &value.filename);
    let submission = Submission::decode(data);
    let value = &submission.value;
    let texts = [
        &value.uuid,
        &value.collection,
        &value.submitter,
        &value.filename,
        &value.title,
        &value.kind,
        &value.submission_date,
    ];
    fits(data, &texts, &submission);
    says(object.as_ref(), "batchID", &value.uuid);
    let ids = Identifiers::decode(data);
    let mut texts = vec![&ids.value.ark];
    texts.extend(&ids.value.local_ids);
    fits(data, &texts, &ids);
    let token = Token::decode(data);
    fits(data, &[&token.value.token, &token.value.url], &token);
    let note = PauseNote::decode(data);
    fits(data, &[&note.value.who, &note.value.why], &note);
    assert_eq!(object_form(data).is_ok(), is_object(data), "a value is an object or none");
    plain(data);
    written(data, &job, object.as_ref());
}

/// Whether bytes are a JSON object, by another way than the decoders'.
fn is_object(data: &[u8]) -> bool {
    let data = data.trim_ascii();
    let is_text = std::str::from_utf8(data).is_ok();
    is_text && data.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

/// Checks that texts are no longer than what they are read from, and that an error is one short line.
fn fits<T: Debug>(data: &[u8], texts: &[&Cow<'_, str>], decoded: &Decoded<T>) {
    let length: usize = texts.iter().map(|text| text.len()).sum();
    // Numbers may get longer, as 1e15 does.
    assert!(length <= 8 * data.len(), "{length} bytes of text from {} bytes", data.len());
    if let Some(malformed) = &decoded.malformed {
        shown::error(malformed, 200);
    }
}

/// Checks a status against another reader's.
fn status<T, S: State>(
    decoded: &Decoded<T>,
    status: &queuekeeper_queue::record::StatusText<'_, S>,
    object: Option<&Map<String, Value>>,
) {
    assert_eq!(status.state, S::from_any(&status.text), "a state is what the text says");
    assert!(!status.is_canonical() || status.state.is_some_and(|state| state.name() == status.text));
    if decoded.malformed.is_none() {
        // A number under another's key may be beyond what the other reader takes.
        let Some(object) = object else { return };
        assert!(object.contains_key("status"), "what is well formed has a status");
        says(Some(object), "status", &status.text);
    }
}

/// Checks a text against another reader's, where the other reads a text, too.
fn says(object: Option<&Map<String, Value>>, key: &str, text: &str) {
    let other = match object.and_then(|object| object.get(key)) {
        Some(Value::String(other)) => other.clone(),
        Some(Value::Number(number)) if !number.is_f64() => number.to_string(),
        _ => return,
    };
    // The value of a key that occurs twice is not certain.
    assert!(text == other || text.is_empty(), "{key} is {other:?} and was read as {text:?}");
}

/// Checks the values that are plain text.
fn plain(data: &[u8]) {
    let number = std::str::from_utf8(data).ok().and_then(|text| text.trim().parse::<i128>().ok());
    match bid(data) {
        // White space around it is passed over, also such as `trim_ascii` does not know.
        Ok(bid) => {
            let text = std::str::from_utf8(data).unwrap_or_default();
            assert_eq!(text.trim(), bid.to_string(), "an id is what stands there");
        }
        Err(error) => shown::error(error, 200),
    }
    match priority(data) {
        Ok(priority) => assert_eq!(number, Some(i128::from(priority.number())), "a priority is what stands there"),
        Err(error) => {
            assert!(!number.is_some_and(|number| (0..=99).contains(&number)), "0 to 99 are priorities");
            shown::error(error, 200);
        }
    }
    let is_beyond = number.is_some_and(|number| i32::try_from(number).is_ok() && !(0..=99).contains(&number));
    assert_eq!(
        is_priority_out_of_range(data),
        is_beyond,
        "what the daemons read as a priority and is none is reported"
    );
    match space_needed(data) {
        Ok(bytes) => {
            let read = bytes.map_or(0, i128::from);
            assert!(number == Some(read) || (number == Some(-1) && read == 0), "{number:?} bytes are {read}");
        }
        Err(error) => shown::error(error, 200),
    }
}

/// Checks what is written over the bytes.
fn written(data: &[u8], old: &Decoded<JobStatus<'_>>, object: Option<&Map<String, Value>>) {
    let now: Timestamp = "2026-03-02T18:17:05Z".parse().expect("this is an instant");
    let change = StatusChange {
        from: old.value.status.state,
        to: JobState::Failed,
        by: Authority::Operator,
        last_successful: old.value.last_successful,
        retry_count: old.value.retry_count.unwrap_or(0),
        message: "no \"space\" left\n\u{0}",
        now,
    };
    let new = job_status(data, &change);
    let again = JobStatus::decode(&new);
    assert_eq!(again.malformed, None, "what we write is well formed: {}", String::from_utf8_lossy(&new));
    assert_eq!(again.value.status.state, Some(JobState::Failed));
    assert!(again.value.status.is_canonical(), "the daemons read what we write");
    assert_eq!(again.value.retry_count, Some(change.retry_count));
    assert_eq!(again.value.message, change.message);
    assert_eq!(again.value.last_successful, old.value.last_successful, "a failure is no success");
    keeps(object, &new, &["status", "last_modified", "message", "last_successful_status", "retry_count"]);
    let new = item_status(data, BatchState::UpdateReporting, "", now);
    let again = ItemStatus::<BatchState>::decode(&new);
    assert_eq!((again.malformed, again.value.status.state), (None, Some(BatchState::UpdateReporting)));
    keeps(object, &new, &["status", "last_modified", "message"]);
    let new = status_report(data, &[JobId::new(1)], &[], now);
    assert!(object_form(&new).is_ok(), "a report is an object");
    keeps(object, &new, &["last_modified", "failed_jobs", "successful_jobs"]);
    if let Ok(new) = identifiers(data, "ark:/99999/fk4", &["a;b", ""]) {
        let again = Identifiers::decode(&new);
        assert_eq!((again.malformed, &*again.value.ark), (None, "ark:/99999/fk4"));
        assert_eq!(again.value.local_ids, ["a;b", ""]);
        keeps(object, &new, &["primary_id", "primary", "local_id"]);
    } else {
        assert!(object.is_none(), "an object is written over");
    }
    if let Ok(new) = merged(data, [("mode", Value::from("add"))]) {
        assert!(object_form(&new).is_ok(), "an object stays one");
        keeps(object, &new, &["mode"]);
    }
}

/// Checks that every key but ours, and but the one that is renamed, stands in the new value as it stood in the old one.
fn keeps(object: Option<&Map<String, Value>>, new: &[u8], ours: &[&str]) {
    let Some(object) = object else { return };
    let new: Map<String, Value> = serde_json::from_slice(new).expect("what we write is an object");
    for (key, value) in object {
        if !ours.contains(&key.as_str()) && key != "last_modification_date" {
            let kept = new.get(key).unwrap_or_else(|| panic!("the key {key:?} is lost"));
            // A number that is not whole is read as the next that there is, and written as that.
            assert!(kept == value || has_float(value), "the key {key:?} is not ours: {value} became {kept}");
        }
    }
}

fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(has_float),
        Value::Object(object) => object.values().any(has_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
