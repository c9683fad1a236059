//! Reports on the integrity of spaces, and one of them.

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::frame::Frame;
use super::super::render;
use super::{ProofLines, frame, proof_lines};
use crate::views::mill::{
    CoveragePart, FailedItem, ReportDetail, ReportFilter, ReportFormat, ReportItem, ReportPage, StoredFile, tag,
};
use crate::views::query::Parameters as _;
use crate::views::show::{Count, Moment, Size, visible};
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_reports.html")]
struct ReportsPage {
    frame: Frame,
    filter: ReportFilter,
    accounts: Vec<String>,
    stores: Vec<String>,
    rows: Vec<ReportRow>,
    /// The same as JSON.
    json: String,
    next: String,
}

#[derive(Debug, Template)]
#[template(path = "mill_report.html")]
struct ReportShown {
    frame: Frame,
    report: ReportRow,
    policy: String,
    started: Moment,
    ended: Option<Moment>,
    coverage: Vec<PartRow>,
    files: Vec<StoredFile>,
    /// Its files as downloads: the format, and where.
    downloads: Vec<(&'static str, String)>,
    failed: Vec<FailedRow>,
    json: String,
    next: String,
}

/// A report, as lists show it.
#[derive(Debug)]
struct ReportRow {
    number: u64,
    href: String,
    account: String,
    store: String,
    space: String,
    space_href: String,
    loop_number: u64,
    at: Moment,
    result: String,
    tag: &'static str,
    is_newest: bool,
    /// Whether it covers every item, in words; empty where that is not known.
    covers: &'static str,
    lacks: Vec<String>,
    /// These are empty where they are not known.
    items: String,
    size: Option<Size>,
    proven: String,
    wrong: String,
}

/// A part of a coverage.
#[derive(Debug)]
struct PartRow {
    words: String,
    items: String,
    size: Size,
    tag: &'static str,
    leads_to: &'static str,
}

/// An item that something is wrong with.
#[derive(Debug)]
struct FailedRow {
    key: String,
    href: String,
    detail: String,
    at: Moment,
    proof: ProofLines,
}

/// `GET /mill/reports`: reports on the integrity of spaces.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    Params(filter): Params<ReportFilter>,
) -> Result<Response, Problem> {
    let (mill, now) = (state.mill()?, Timestamp::now());
    let list = mill.reports(&filter).await?;
    let frame = frame(&state, "../", now);
    let base = format!("{}mill/reports", frame.root);
    let next = list.next.map(|before| address(&base, &ReportFilter { before: Some(before), ..filter.clone() }.pairs()));
    let page = ReportsPage {
        accounts: mill.account_names(),
        stores: mill.store_names(),
        rows: list.items.iter().map(|report| ReportRow::new(report, &frame.root, now)).collect(),
        json: address(&format!("{}api/v1/mill/reports", frame.root), &filter.pairs()),
        next: next.unwrap_or_default(),
        filter,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

/// `GET /mill/reports/{id}`: what a report covers, and the items that something is wrong with.
pub(in crate::web::pages) async fn show(
    FromState(state): FromState<State>,
    Path(id): Path<String>,
    Params(page): Params<ReportPage>,
) -> Result<Response, Problem> {
    let now = Timestamp::now();
    let ReportDetail { report, coverage, files, failed, next } = state.mill()?.report(&id, &page).await?;
    let frame = frame(&state, "../../", now);
    let row = ReportRow::new(&report, &frame.root, now);
    let next = next.map(|after| address(&row.href, &ReportPage { after, limit: page.limit }.pairs()));
    let json = format!("{}api/v1/mill/reports/{}", frame.root, report.number);
    let download =
        |format: ReportFormat| (format.help(), address(&format!("{json}/file"), &[pair("format", format.label())]));
    let page = ReportShown {
        policy: report.policy.clone(),
        started: Moment::new(report.started, now),
        ended: report.ended.map(|ended| Moment::new(ended, now)),
        coverage: coverage.iter().map(PartRow::new).collect(),
        downloads: ReportFormat::ALL.map(download).into(),
        files,
        failed: failed.iter().map(|item| FailedRow::new(item, &row, now)).collect(),
        json,
        next: next.unwrap_or_default(),
        report: row,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

impl ReportRow {
    fn new(report: &ReportItem, root: &str, now: Timestamp) -> Self {
        let ReportItem { number, account, store, space, loop_number, result, is_newest, .. } = report;
        let count = |count: Option<u64>| count.map(|count| Count(count).to_string()).unwrap_or_default();
        Self {
            number: *number,
            href: format!("{root}mill/reports/{number}"),
            account: account.clone(),
            store: store.clone(),
            space: space.clone(),
            space_href: format!("{root}mill/spaces/{account}/{space}"),
            loop_number: *loop_number,
            at: Moment::new(report.reported, now),
            result: result.clone(),
            tag: tag(result),
            is_newest: *is_newest,
            covers: match report.is_complete {
                Some(true) => "complete",
                Some(false) => "not complete",
                None => "",
            },
            lacks: report.lacks.clone(),
            items: count(report.items),
            size: report.bytes.map(Size::new),
            proven: count(report.proven),
            wrong: count(report.wrong),
        }
    }
}

impl PartRow {
    fn new(part: &CoveragePart) -> Self {
        let CoveragePart { words, why, items, bytes, leads_to, .. } = part;
        Self {
            words: if why.is_empty() { (*words).to_owned() } else { format!("{words}: {}", visible(why)) },
            items: Count(*items).to_string(),
            size: Size::new(*bytes),
            tag: leads_to.map(tag).unwrap_or_default(),
            leads_to: leads_to.unwrap_or_default(),
        }
    }
}

impl FailedRow {
    fn new(item: &FailedItem, report: &ReportRow, now: Timestamp) -> Self {
        Self {
            key: item.key.clone(),
            href: address(&format!("{}/item", report.space_href), &[pair("key", &*item.key_encoded)]),
            detail: visible(&item.detail),
            at: Moment::new(item.time, now),
            proof: proof_lines(&item.proof),
        }
    }
}
