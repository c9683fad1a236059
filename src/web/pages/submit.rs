//! Deposits: the form, and what has become of one.

use askama::Template;
use axum::extract::{Multipart, Path, State as FromState};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_queue::state::{BatchState, State as _};

use super::batch::Warned;
use super::frame::{Frame, Section};
use super::{View, render};
use crate::actions::Source;
use crate::actions::deposit::DepositRequest;
use crate::views::deposits::{DepositPart, DepositView};
use crate::views::show::{Count, Moment, counted};
use crate::web::deposits::{SentForm, deposit_id};
use crate::web::http::identity::Identity;
use crate::web::http::problem::{HasMessage, Problem};
use crate::web::state::State;
use crate::words::size;

/// How many of the caller's deposits are listed.
const LISTED: u32 = 20;

/// After how many seconds the page of a deposit at work is loaded again: what it shows is the caller's own, so that it
/// is not updated with the pages that all readers share.
const LOOK_AGAIN: HeaderValue = HeaderValue::from_static("3");

/// The form, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "submit.html")]
struct SubmitPage {
    frame: Frame,
    profiles: Vec<Choice>,
    kinds: Vec<Choice>,
    /// What was wrong with what was sent; empty for a new form.
    problem: String,
    sent: DepositRequest,
    local_ids: String,
    deposits: Vec<DepositRow>,
}

/// What can be chosen.
#[derive(Debug)]
struct Choice {
    name: String,
    is_chosen: bool,
}

/// A deposit in the list.
#[derive(Debug)]
struct DepositRow {
    href: String,
    name: String,
    state: String,
    profile: String,
    received: Option<Moment>,
}

/// One deposit, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "deposit.html")]
struct DepositPage {
    frame: Frame,
    deposit: DepositView,
    state: String,
    received: Option<Moment>,
    size: String,
    come: String,
    counts: Vec<(&'static str, String)>,
    jobs: Vec<Job>,
    /// Where its batch is; empty where it has none, or the reader may not read it.
    batch_href: String,
    /// Where its failed rows are submitted again; empty where that cannot be done.
    resubmit: String,
    /// Where the deposit of these is; empty for none.
    resubmitted_href: String,
    /// Where it is withdrawn; empty where that cannot be done.
    withdraw: String,
    /// The deposit that it is a part of; empty for none.
    whole_href: String,
    parts: Vec<Part>,
    warned: Warned,
    /// Since when it is being withdrawn.
    withdrawing: Option<Moment>,
    /// When it was withdrawn.
    withdrawn: Option<Moment>,
}

#[derive(Debug)]
struct Part {
    number: u64,
    id: String,
    href: String,
    state: String,
    outcome: String,
    counts: Vec<(&'static str, String)>,
    /// How many jobs have warnings; empty for none.
    warned: String,
}

#[derive(Debug)]
struct Job {
    id: String,
    /// Empty where the reader may not read it.
    href: String,
    state: &'static str,
    filename: String,
    ark: String,
    message: String,
}

/// `GET /submit`: a form to deposit with.
pub(super) async fn form(FromState(state): FromState<State>, who: Identity) -> Result<Response, Problem> {
    page(&state, &who, StatusCode::OK, DepositRequest::default(), String::new()).await
}

/// `POST /submit`: makes a deposit of a file or of what lies at a URL.
pub(super) async fn make(
    FromState(state): FromState<State>,
    who: Identity,
    form: Multipart,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(&who, Source::Web)?;
    let of = (intake, &actor, &allowance);
    let sent = match state.take_form(form, None, of).await {
        Ok(sent) => sent,
        Err(refused) => return again(&state, &who, request_of(&refused.sent), refused.problem).await,
    };
    let request = request_of(&sent);
    match state.deposit_form(sent, request.clone(), None, of).await {
        // Relative, because a proxy may serve us below any prefix.
        Ok(receipt) => {
            Ok((StatusCode::SEE_OTHER, [(header::LOCATION, format!("submit/{}", receipt.id))]).into_response())
        }
        Err(problem) => again(&state, &who, request, problem).await,
    }
}

/// The form again with what was typed, and why it was refused.
async fn again(state: &State, who: &Identity, sent: DepositRequest, problem: Problem) -> Result<Response, Problem> {
    let Problem { detail, headers, .. } = &problem;
    let mut response = page(state, who, problem.status(), sent, detail.to_string()).await?;
    response.headers_mut().extend(headers.iter().cloned());
    Ok(response)
}

fn request_of(sent: &SentForm) -> DepositRequest {
    let named = sent.file.as_ref().map(|(name, _)| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned());
    DepositRequest {
        profile: sent.text("profile").to_owned(),
        filename: sent.some("filename").or(named).unwrap_or_default(),
        kind: sent.some("type"),
        url: sent.some("url").filter(|_| sent.file.is_none()),
        size: None,
        digest: sent.some("digest"),
        title: sent.some("title"),
        creator: sent.some("creator"),
        date: sent.some("date"),
        note: sent.some("note"),
        ark: sent.some("ark"),
        local_ids: sent
            .text("local_ids")
            .split([';', ','])
            .map(|id| id.trim().to_owned())
            .filter(|id| !id.is_empty())
            .collect(),
        notification: sent.some("notification"),
        update: sent.text("update") == "on",
    }
}

async fn page(
    state: &State,
    who: &Identity,
    status: StatusCode,
    sent: DepositRequest,
    problem: String,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(who, Source::Web)?;
    let (now, source) = (Timestamp::now(), state.source());
    let frame = frame(&state.view(now), "./", who);
    let chosen = |name: String, sent: &str| Choice { is_chosen: name == sent, name };
    let deposits = intake.deposits(&actor, LISTED).await?;
    let line = |deposit: &DepositView| DepositRow {
        href: format!("{}submit/{}", frame.root, deposit.id),
        name: if deposit.filename.is_empty() { deposit.id.clone() } else { deposit.filename.clone() },
        state: state_of(&deposit.state, deposit.processing).to_owned(),
        profile: deposit.profile.clone(),
        received: deposit.received.map(|at| Moment::new(at, now)),
    };
    let deposits = deposits.iter().map(|(deposit, parts)| line(&source.deposit(deposit, parts, now))).collect();
    let kind = sent.kind.clone().unwrap_or_default();
    let page = SubmitPage {
        profiles: intake.profiles(&allowance).into_iter().map(|name| chosen(name, &sent.profile)).collect(),
        kinds: DepositType::ALL.into_iter().map(|one| chosen(one.to_string(), &kind)).collect(),
        problem,
        local_ids: sent.local_ids.join("; "),
        sent,
        deposits,
        frame,
    };
    let mut response = render(status, &page);
    if !status.is_success() {
        response.extensions_mut().insert(HasMessage);
    }
    Ok(response)
}

/// The frame, without the parts that a depositor may not read.
pub(super) fn frame(view: &View, root: &str, who: &Identity) -> Frame {
    let frame = Frame::new(view, root.to_owned(), Section::Submit);
    if who.may_read() { frame } else { frame.for_depositor() }
}

/// The state of a deposit as its depositor takes it: a batch is `reporting` already while its jobs are worked on.
fn state_of(state: &str, processing: u64) -> &str {
    if state == BatchState::Reporting.label() && processing > 0 { "in progress" } else { state }
}

/// How many jobs have which outcome.
fn counts(completed: u64, failed: u64, processing: u64) -> Vec<(&'static str, String)> {
    let counts = [("completed", completed), ("failed", failed), ("not done", processing)];
    counts.map(|(what, count)| (what, Count(count).to_string())).into()
}

/// `POST /submit/{id}/failed`: submits the failed rows of a batch again, and redirects to the deposit of these.
pub(super) async fn failed(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (intake, actor, allowance) = state.depositor(&who, Source::Web)?;
    let receipt = intake.again(deposit_id(&id)?, &actor, &allowance).await?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, format!("../{}", receipt.id))]).into_response())
}

/// `GET /submit/{id}`: what has become of a deposit.
pub(super) async fn show(
    FromState(state): FromState<State>,
    who: Identity,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let deposit = state.find_deposit(&id, &who, Source::Web).await?;
    let now = Timestamp::now();
    let frame = frame(&state.view(now), "../", &who);
    let root = frame.root.clone();
    let may_read = who.may_read();
    let job = |job: &crate::views::deposits::DepositedJob| Job {
        id: job.job.clone(),
        href: if may_read { format!("{root}jobs/{}", job.job) } else { String::new() },
        state: job.state,
        filename: job.filename.clone(),
        ark: job.ark.clone(),
        message: job.message.clone(),
    };
    let part = |part: &DepositPart| Part {
        number: part.part,
        id: part.id.clone(),
        // The page need not lead to itself.
        href: if part.id == deposit.id { String::new() } else { format!("{root}submit/{}", part.id) },
        state: state_of(&part.state, part.processing).to_owned(),
        outcome: part.outcome.clone().unwrap_or_default(),
        counts: counts(part.completed, part.failed, part.processing),
        warned: if part.warned > 0 { counted(part.warned, "job", "jobs") } else { String::new() },
    };
    let batch_href = deposit.batch.as_ref().filter(|_| may_read).map(|batch| format!("{root}batches/{batch}"));
    let is_at_rest = deposit.outcome.is_some() || matches!(&*deposit.state, "removed" | "uploading");
    let page = DepositPage {
        state: state_of(&deposit.state, deposit.processing).to_owned(),
        received: deposit.received.map(|at| Moment::new(at, now)),
        size: deposit.size_bytes.map(size).unwrap_or_default(),
        come: deposit.offset.map(size).unwrap_or_default(),
        counts: counts(deposit.completed, deposit.failed, deposit.processing),
        whole_href: deposit.part_of.as_ref().map(|id| format!("{root}submit/{id}")).unwrap_or_default(),
        parts: deposit.parts.iter().map(part).collect(),
        jobs: deposit.jobs.iter().map(job).collect(),
        batch_href: batch_href.unwrap_or_default(),
        resubmit: if deposit.may_resubmit { format!("{root}submit/{}/failed", deposit.id) } else { String::new() },
        resubmitted_href: deposit.resubmitted_as.as_ref().map(|id| format!("{root}submit/{id}")).unwrap_or_default(),
        withdraw: if deposit.may_withdraw { format!("{root}submit/{}/withdraw", deposit.id) } else { String::new() },
        warned: Warned::new(&deposit.warned, may_read.then_some(&root)),
        withdrawing: deposit.withdrawing_since.map(|at| Moment::new(at, now)),
        withdrawn: deposit.withdrawn.map(|at| Moment::new(at, now)),
        deposit,
        frame,
    };
    let mut response = render(StatusCode::OK, &page);
    if !is_at_rest {
        response.headers_mut().insert(header::REFRESH, LOOK_AGAIN);
    }
    Ok(response)
}
