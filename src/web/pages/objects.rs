//! What was stored: objects, their versions and files.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::frame::{Frame, Section, root_from};
use super::listing::with;
use super::render;
use crate::actions::access::AccessRequest;
use crate::actions::{Role, Source};
use crate::views::mill::{BitErrorItem, proof_words};
use crate::views::objects::{FileFilter, FileProof, ObjectBitError, ObjectDetail, ObjectFilter, ObjectItem, Objects};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, counted, visible};
use crate::web::http::identity::Identity;
use crate::web::http::params::{Params, Sent};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;
use crate::words::size;

/// The list, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "objects.html")]
struct ObjectsPage {
    frame: Frame,
    filter: ObjectFilter,
    rows: Vec<ObjectRow>,
    /// How many are on this page, in words.
    shown: String,
    /// The same as JSON.
    json: String,
    /// Where the next page is; empty on the last one.
    next: String,
}

#[derive(Debug)]
struct ObjectRow {
    ark: String,
    href: String,
    title: String,
    collection: String,
    collection_href: String,
    version: u32,
    modified: Moment,
}

/// One object, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "object.html")]
struct ObjectPage {
    frame: Frame,
    object: ObjectItem,
    created: Moment,
    local_ids: String,
    versions: Vec<VersionRow>,
    /// The number of the version whose files are listed.
    version: u32,
    files: Vec<FileRow>,
    /// Where the next page of files is; empty on the last one.
    next: String,
    /// Where the first page of them is; empty on the first one.
    first: String,
    /// When its embargo ends, or why that is not known; empty where it has none.
    embargo: String,
    jobs_href: String,
    copies: Vec<CopyRow>,
    /// How many open bit errors there are, in words; empty for none.
    wrong: String,
    errors: Vec<ErrorRow>,
    /// Whether the reader may request it as an archive here.
    may_request: bool,
}

/// The form by which an object is requested.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestForm {
    version: Option<u32>,
    format: Option<String>,
    content: Option<String>,
}

#[derive(Debug)]
struct VersionRow {
    number: u32,
    /// Where its files are listed.
    href: String,
    /// Whether its files are listed here.
    is_shown: bool,
    ingested: Moment,
    submitter: String,
    /// Where its batch is, while that is in the queue; empty for none.
    batch_href: String,
    files: String,
    size: String,
}

#[derive(Debug)]
struct CopyRow {
    store: String,
    state: String,
    /// Where its bit errors are listed; empty for none.
    wrong_href: String,
    /// When it was complete; `None` where it is not.
    since: Option<Moment>,
    /// What is missing, and why; empty for nothing.
    reason: String,
}

/// A file of which a copy has an open bit error.
#[derive(Debug)]
struct ErrorRow {
    number: u64,
    path: String,
    /// The page of the item.
    href: String,
    /// Where it is decided about.
    list_href: String,
    store: String,
    detail: String,
    found: Moment,
    expected: String,
    actual: String,
    /// Why it is not repaired yet, and what is done about that.
    why: String,
}

#[derive(Debug)]
struct FileRow {
    path: String,
    /// Where its content is; empty where this server cannot read it.
    href: String,
    size: String,
    digest: String,
    media_type: String,
    /// Each of its copies: the store, whether it has an open bit error, and when and how it was proven last.
    proofs: Vec<(String, bool, Option<Moment>, String)>,
}

/// `GET /objects`: which objects are there.
pub(super) async fn list(
    FromState(state): FromState<State>,
    Params(filter): Params<ObjectFilter>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let frame = Frame::new(&state.view(now), "./".to_owned(), Section::Objects);
    let list = state.objects()?.list(&filter).await?;
    let root = frame.root.clone();
    let row = |item: &ObjectItem| ObjectRow {
        ark: item.ark.clone(),
        href: format!("{root}objects/{}", item.ark),
        title: item.title.clone(),
        collection: item.collection.clone(),
        collection_href: with(&format!("{root}objects"), "collection", &item.collection),
        version: item.current_version,
        modified: Moment::new(item.modified, now),
    };
    let next =
        list.next.map(|after| address(&format!("{root}objects"), &ObjectFilter { after, ..filter.clone() }.pairs()));
    let json = address(&format!("{root}api/v1/objects"), &filter.pairs());
    let of = if next.is_some() || !filter.after.is_empty() { " on this page" } else { "" };
    let shown = format!("{}{of}", counted(list.items.len() as u64, "object", "objects"));
    let rows = list.items.iter().map(row).collect();
    let page = ObjectsPage { rows, shown, json, next: next.unwrap_or_default(), filter, frame };
    Ok(render(StatusCode::OK, &page))
}

/// `GET /objects/{ark}`: what is known of one object.
pub(super) async fn show(
    FromState(state): FromState<State>,
    Path(ark): Path<String>,
    who: Identity,
    Params(filter): Params<FileFilter>,
    uri: Uri,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let detail = state.objects()?.object(&ark, &filter).await?;
    let frame = Frame::new(&state.view(now), root_from(uri.path()), Section::Objects);
    let mut page = ObjectPage::new(detail, frame, &state, now);
    if filter.after.is_empty() {
        page.first.clear();
    }
    page.may_request = state.requests().is_ok() && state.rights(&who) >= Role::Operator;
    Ok(render(StatusCode::OK, &page))
}

/// `POST /objects/{ark}`: requests an object as an archive, and shows the request.
pub(super) async fn request(
    FromState(state): FromState<State>,
    Path(ark): Path<String>,
    who: Identity,
    uri: Uri,
    Sent(form): Sent<RequestForm>,
) -> Result<Response, Problem> {
    let actor = state.authorize(&who, Role::Operator, Source::Web)?;
    let RequestForm { version, format, content } = form;
    let made = state.requests()?.make(&AccessRequest { ark, version, format, content }, &actor).await?;
    // Relative, because a proxy may serve us below any prefix.
    let shown = with(&format!("{}access", root_from(uri.path())), "text", &made.archive.token);
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, shown)]).into_response())
}

/// Whether a day or a time, which may have a zone, is past; one without a zone counts in UTC.
fn is_past(end: &str, now: Timestamp) -> bool {
    let utc = |end: DateTime| end.to_zoned(TimeZone::UTC).ok().map(|end| end.timestamp());
    let end = end.parse::<Timestamp>().ok().or_else(|| end.parse::<DateTime>().ok().and_then(utc));
    end.is_some_and(|end| end < now)
}

fn proven(of: &FileProof, now: Timestamp) -> (String, bool, Option<Moment>, String) {
    let how = of.proof.as_deref().map(|proof| format!("by {}", proof_words(proof))).unwrap_or_default();
    (of.store.clone(), of.bit_error.is_some(), of.proven.map(|proven| Moment::new(proven, now)), how)
}

impl ErrorRow {
    fn new(of: &ObjectBitError, root: &str, now: Timestamp) -> Self {
        let ObjectBitError { path, error } = of;
        let BitErrorItem { number, account, store, space, key_encoded, detail, found, expected, actual, .. } = error;
        let of_item = format!("{root}mill/spaces/{account}/{space}/item");
        Self {
            number: *number,
            path: path.clone(),
            href: address(&of_item, &[pair("key", &**key_encoded)]),
            list_href: address(&format!("{root}mill/errors"), &[pair("account", &**account)]),
            store: store.clone(),
            detail: visible(detail),
            found: Moment::new(*found, now),
            expected: visible(expected),
            actual: visible(actual),
            why: visible(format!("{} {}", error.why, error.fix).trim_end()),
        }
    }
}

impl ObjectPage {
    fn new(detail: ObjectDetail, frame: Frame, state: &State, now: Timestamp) -> Self {
        let root = frame.root.clone();
        let batch = |deposit: &Option<String>| {
            let batch = deposit.as_ref().and_then(|deposit| state.shared_store().batch_of_uuid(deposit));
            batch.map(|batch| format!("{root}batches/{batch}")).unwrap_or_default()
        };
        let here = format!("{root}objects/{}", detail.object.ark);
        let account = detail.bit_errors.first().map(|of| pair("account", &*of.error.account));
        let errors_href = address(&format!("{root}mill/errors"), account.as_ref());
        let has_contents = state.objects().is_ok_and(Objects::has_contents);
        let download = |path: &str| {
            let [ark, version] = [detail.object.ark.clone(), detail.version.to_string()];
            let name = [pair("ark", ark), pair("version", version), pair("path", path)];
            address(&format!("{root}api/v1/objects/file"), &name)
        };
        let files_of = |number: u32| with(&here, "version", &number.to_string());
        let next = detail.next_file.as_ref();
        let next =
            next.map(|after| address(&here, &[pair("version", detail.version.to_string()), pair("after", after)]));
        Self {
            created: Moment::new(detail.object.created, now),
            local_ids: detail.local_ids.join("; "),
            versions: detail
                .versions
                .iter()
                .map(|version| VersionRow {
                    number: version.number,
                    href: files_of(version.number),
                    is_shown: version.number == detail.version,
                    ingested: Moment::new(version.ingested, now),
                    submitter: version.submitter.clone(),
                    batch_href: batch(&version.deposit),
                    files: Count(version.file_count).to_string(),
                    size: size(version.size_bytes),
                })
                .collect(),
            files: detail
                .files
                .iter()
                .map(|file| FileRow {
                    path: file.path.clone(),
                    href: if has_contents { download(&file.path) } else { String::new() },
                    size: size(file.size_bytes),
                    digest: file.digest.clone(),
                    media_type: file.media_type.clone(),
                    proofs: file.proofs.iter().map(|proof| proven(proof, now)).collect(),
                })
                .collect(),
            embargo: match (&detail.embargo_end, &detail.embargo_problem) {
                (Some(end), _) => format!("{} {}", if is_past(end, now) { "ended" } else { "ends" }, visible(end)),
                (None, Some(problem)) => format!("not known: {problem}"),
                (None, None) => String::new(),
            },
            copies: detail
                .copies
                .iter()
                .map(|copy| CopyRow {
                    store: copy.store.clone(),
                    state: copy.state(),
                    wrong_href: if copy.bit_errors > 0 { errors_href.clone() } else { String::new() },
                    since: copy.complete_since.map(|since| Moment::new(since, now)),
                    reason: visible(&copy.reason()),
                })
                .collect(),
            wrong: match detail.bit_error_count {
                0 => String::new(),
                count => counted(count, "open bit error", "open bit errors"),
            },
            errors: detail.bit_errors.iter().map(|error| ErrorRow::new(error, &root, now)).collect(),
            version: detail.version,
            next: next.unwrap_or_default(),
            first: files_of(detail.version),
            may_request: false,
            jobs_href: with(&format!("{root}jobs"), "text", &detail.object.ark),
            object: detail.object,
            frame,
        }
    }
}
