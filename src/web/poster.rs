//! Deposits by programs that deposit to Merritt: the same forms, the same answers. Those that know it may send an
//! `Idempotency-Key`, as in the API.

use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, State as FromState};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::deposits::SentForm;
use super::http::identity::Identity;
use super::http::key::key;
use super::http::problem::{HasMessage, Problem};
use super::state::State;
use crate::actions::Source;
use crate::actions::deposit::DepositRequest;
use crate::config::RepositoryParts;

/// The namespace of the answers.
const NAMESPACE: &str = "http://uc3.cdlib.org/ontology/mrt/ingest/batch";

/// A form, or why the body is none.
type MaybeForm = Result<Multipart, MultipartRejection>;

/// Every route, by what it does; none where no deposits are taken.
pub(super) fn routes(has: RepositoryParts) -> impl Iterator<Item = (&'static str, MethodRouter<State>)> {
    let all = [("/poster/submit", post(submit)), ("/poster/add", post(submit)), ("/poster/update", post(update))];
    all.into_iter().filter(move |_| has.deposits)
}

/// `POST /poster/submit` and `POST /poster/add`: a deposit, as it says itself whether it is an update.
async fn submit(state: FromState<State>, who: Identity, headers: HeaderMap, form: MaybeForm) -> Response {
    answer(&state, &who, &headers, form, false).await
}

/// `POST /poster/update`: a deposit that keeps the object's other files.
async fn update(state: FromState<State>, who: Identity, headers: HeaderMap, form: MaybeForm) -> Response {
    answer(&state, &who, &headers, form, true).await
}

async fn answer(state: &State, who: &Identity, headers: &HeaderMap, form: MaybeForm, is_update: bool) -> Response {
    let mut wants_xml = accepts_xml(headers);
    let taken = take(state, who, headers, form, is_update, &mut wants_xml).await;
    let mut response = match &taken {
        Ok(id) => {
            let state = BatchState { id, status: "QUEUED", message: "", agent: &who.name };
            state.response(StatusCode::OK, wants_xml)
        }
        Err(problem) => failed(problem, wants_xml, &who.name),
    };
    response.extensions_mut().insert(HasMessage);
    if let Err(problem) = taken {
        problem.headers.into_iter().for_each(|(name, value)| {
            response.headers_mut().append(name, value);
        });
    }
    response
}

/// Whether a client accepts XML: a form can say otherwise, once it is read.
pub(super) fn accepts_xml(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("xml"))
}

/// The answer to a request that is refused, of a user whose name may not be known.
pub(super) fn failed(problem: &Problem, wants_xml: bool, agent: &str) -> Response {
    let state = BatchState { id: "", status: "FAILED", message: &problem.detail, agent };
    state.response(problem.status(), wants_xml)
}

async fn take(
    state: &State,
    who: &Identity,
    headers: &HeaderMap,
    form: MaybeForm,
    is_update: bool,
    wants_xml: &mut bool,
) -> Result<String, Problem> {
    let (intake, actor, allowance) = state.depositor(who, Source::Api)?;
    let form = form.map_err(|_| Problem::bad("The body is not a form: send it as multipart/form-data."))?;
    let (of, key) = ((intake, &actor, &allowance), key(headers)?);
    let taken = state.take_form(form, key, of).await;
    let sent = taken.as_ref().unwrap_or_else(|refused| &refused.sent);
    match sent.text("responseForm") {
        "xml" => *wants_xml = true,
        "json" => *wants_xml = false,
        _ => {}
    }
    let mut sent = taken?;
    let request = match request_of(&sent, is_update) {
        Ok(request) => request,
        Err(problem) => {
            sent.discard().await;
            return Err(problem);
        }
    };
    Ok(state.deposit_form(sent, request, key, of).await?.id)
}

fn request_of(sent: &SentForm, is_update: bool) -> Result<DepositRequest, Problem> {
    let digest = match (sent.some("digestType"), sent.some("digestValue")) {
        // A form may have a type chosen for a value that is not given.
        (_, None) => None,
        (Some(algorithm), Some(value)) => Some(format!("{}:{value}", algorithm.to_ascii_lowercase().replace('-', ""))),
        (None, Some(_)) => return Err(Problem::bad("digestValue has no digestType; send both, or neither.")),
    };
    let named = sent.file.as_ref().map(|(name, _)| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned());
    // A depositor's client may also send the manifest's URL in the place of the file.
    let url = sent.some("url").or_else(|| sent.some("file")).filter(|_| sent.file.is_none());
    // The submitter is a note of the depositor, and no identity.
    let note = [sent.some("note"), sent.some("submitter").map(|name| format!("submitted by {name}"))];
    let note: Vec<_> = note.into_iter().flatten().collect();
    Ok(DepositRequest {
        profile: sent.text("profile").to_owned(),
        filename: sent.some("filename").or(named).unwrap_or_default(),
        kind: sent.some("type"),
        url,
        size: None,
        digest,
        title: sent.some("title"),
        creator: sent.some("creator"),
        date: sent.some("date"),
        note: Some(note.join("; ")).filter(|note| !note.is_empty()),
        ark: sent.some("primaryIdentifier"),
        local_ids: sent
            .text("localIdentifier")
            .split(';')
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty())
            .collect(),
        notification: sent.some("notification"),
        update: is_update || sent.text("update").eq_ignore_ascii_case("true"),
    })
}

/// What is answered.
struct BatchState<'a> {
    id: &'a str,
    status: &'a str,
    message: &'a str,
    agent: &'a str,
}

impl BatchState<'_> {
    fn response(&self, status: StatusCode, wants_xml: bool) -> Response {
        let (media, body) =
            if wants_xml { ("application/xml; charset=utf-8", self.xml()) } else { ("application/json", self.json()) };
        (status, [(header::CONTENT_TYPE, media)], body).into_response()
    }

    /// The values by their names, in the order of the answer.
    fn values(&self) -> [(&'static str, String); 6] {
        let now = Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        [
            ("batchID", self.id.to_owned()),
            ("jobStates", String::new()),
            ("batchStatus", self.status.to_owned()),
            ("batchStatusMessage", self.message.to_owned()),
            ("userAgent", self.agent.to_owned()),
            ("submissionDate", now),
        ]
    }

    fn json(&self) -> String {
        let mut state = serde_json::Map::from_iter([("xmlns:bat".to_owned(), json!(NAMESPACE))]);
        for (name, value) in self.values() {
            if name != "batchStatusMessage" || !value.is_empty() {
                state.insert(format!("bat:{name}"), value.into());
            }
        }
        json!({ "bat:batchState": state }).to_string()
    }

    fn xml(&self) -> String {
        let values =
            self.values().into_iter().filter(|(name, value)| *name != "batchStatusMessage" || !value.is_empty());
        let elements: Vec<String> =
            values.map(|(name, value)| format!("<bat:{name}>{}</bat:{name}>", escaped(&value))).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <bat:batchState xmlns:bat=\"{NAMESPACE}\">{}</bat:batchState>\n",
            elements.concat()
        )
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            other if other.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_in_both_forms_whatever_it_says() {
        let state = BatchState { id: "bid-1", status: "FAILED", message: "a <b> & \"c\"\u{1}", agent: "lab" };
        let xml = state.xml();
        assert!(
            xml.contains("<bat:batchStatusMessage>a &lt;b&gt; &amp; &quot;c&quot; </bat:batchStatusMessage>"),
            "{xml}"
        );
        let json: serde_json::Value = serde_json::from_str(&state.json()).unwrap();
        assert_eq!(json["bat:batchState"]["bat:batchStatusMessage"], "a <b> & \"c\"\u{1}");
        let queued = BatchState { status: "QUEUED", message: "", ..state };
        assert!(!queued.json().contains("Message") && !queued.xml().contains("Message"));
    }
}
