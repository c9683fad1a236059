//! Every space with its copies, and its items.

use std::time::Duration;

use askama::Template;
use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;

use super::super::frame::Frame;
use super::super::render;
use super::checks::{RequestedRow, request_at};
use super::compared::ComparedRow;
use super::item::{CopyRow, listed};
use super::{errors_of, frame, width};
use crate::actions::mill::MillActionKind;
use crate::views::mill::{CopyState, ItemFilter, KeyText, ProofAge, SpaceCopies, SpaceCopy, SpaceFilter, SpaceItem};
use crate::views::query::Parameters as _;
use crate::views::show::{Ago, Count, Size, counted, visible};
use crate::web::http::identity::Identity;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

#[derive(Debug, Template)]
#[template(path = "mill_spaces.html")]
struct SpacesPage {
    frame: Frame,
    filter: SpaceFilter,
    accounts: Vec<String>,
    stores: Vec<String>,
    may_check: bool,
    unread: Vec<String>,
    /// How old a proof may become; empty where nothing on this page is checked.
    max_age: String,
    rows: Vec<SpaceRow>,
    next: String,
}

#[derive(Debug, Template)]
#[template(path = "mill_space.html")]
struct SpacePage {
    frame: Frame,
    space: SpaceRow,
    /// The page of the reports on it.
    reports: String,
    policy_error: String,
    may_check: bool,
    requested: Vec<RequestedRow>,
    compared: Vec<ComparedRow>,
    prefix: String,
    rows: Vec<ItemRow>,
    next: String,
}

/// A space, a cell for each copy.
#[derive(Debug)]
struct SpaceRow {
    name: String,
    href: String,
    cells: Vec<Cell>,
}

#[derive(Debug)]
struct Cell {
    store: String,
    /// What its bar is filled with.
    class: &'static str,
    width: String,
    /// What it is, with its number.
    text: String,
    size: Size,
    /// What the tag says.
    state: &'static str,
    tag: &'static str,
    error: String,
    /// How many open bit errors it has, in words; empty for none.
    wrong: String,
    /// Where they are listed.
    wrong_href: String,
    /// Whether they are its state, which says nothing more then.
    is_wrong: bool,
    /// How old its proofs are, in words.
    proofs: String,
    /// How that compares with the limit; the same, as a class and as the colour of a tag.
    age: &'static str,
    age_class: &'static str,
    age_tag: &'static str,
    /// Where a check of it is requested.
    check: String,
}

#[derive(Debug)]
struct ItemRow {
    key: String,
    href: String,
    copies: Vec<CopyRow>,
    differing: String,
    left_out: String,
}

/// `GET /mill/spaces`: every space, a cell for each copy.
pub(in crate::web::pages) async fn list(
    FromState(state): FromState<State>,
    who: Identity,
    Params(filter): Params<SpaceFilter>,
) -> Result<Response, Problem> {
    let mill = state.mill()?;
    let list = mill.spaces(&filter).await?;
    let now = Timestamp::now();
    let frame = frame(&state, "../", now);
    let base = format!("{}mill/spaces", frame.root);
    let next = list.next.map(|after| address(&base, &SpaceFilter { after, ..filter.clone() }.pairs()));
    let mut copies = list.items.iter().flat_map(|space| &space.copies);
    let max_age = copies.find_map(|copy| copy.proofs.max_age_seconds);
    let unread = list.unread.iter().map(|(account, why)| format!("{account}: {}", visible(why)));
    let page = SpacesPage {
        accounts: mill.account_names(),
        stores: mill.store_names(),
        may_check: state.rights(&who) >= MillActionKind::CheckContent.role(),
        unread: unread.collect(),
        max_age: max_age.map(|most| Ago(Duration::from_secs(most)).to_string()).unwrap_or_default(),
        rows: list.items.iter().map(|space| SpaceRow::new(space, &frame.root, now)).collect(),
        next: next.unwrap_or_default(),
        filter,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

/// `GET /mill/spaces/{account}/{space}`: the items of a space.
pub(in crate::web::pages) async fn items(
    FromState(state): FromState<State>,
    who: Identity,
    Path((account, space)): Path<(String, String)>,
    Params(filter): Params<ItemFilter>,
) -> Result<Response, Problem> {
    let list = state.mill()?.items(&account, &space, &filter).await?;
    let now = Timestamp::now();
    let frame = frame(&state, "../../../", now);
    let row = SpaceRow::new(&list.space, &frame.root, now);
    let after = list.next.as_deref().and_then(|key| key.parse::<KeyText>().ok());
    let next = after.map(|after| address(&row.href, &ItemFilter { after, ..filter.clone() }.pairs()));
    let of_space = [pair("account", account), pair("space", space)];
    let page = SpacePage {
        reports: address(&format!("{}mill/reports", frame.root), &of_space),
        policy_error: list.policy_error.as_deref().map(visible).unwrap_or_default(),
        may_check: state.rights(&who) >= MillActionKind::CheckContent.role(),
        requested: list.requested_checks.iter().map(|check| RequestedRow::new(check, &frame.root, now)).collect(),
        compared: list.comparisons.iter().map(|comparison| ComparedRow::new(comparison, now)).collect(),
        prefix: filter.prefix.clone(),
        rows: list.items.iter().map(|item| ItemRow::new(item, &row.href)).collect(),
        next: next.unwrap_or_default(),
        space: row,
        frame,
    };
    Ok(render(StatusCode::OK, &page))
}

impl SpaceRow {
    fn new(space: &SpaceCopies, root: &str, now: Timestamp) -> Self {
        Self {
            name: format!("{}/{}", space.account, space.space),
            href: format!("{root}mill/spaces/{}/{}", space.account, space.space),
            cells: space.copies.iter().map(|copy| Cell::new(space, copy, root, now)).collect(),
        }
    }
}

impl Cell {
    fn new(space: &SpaceCopies, copy: &SpaceCopy, root: &str, now: Timestamp) -> Self {
        let (age_class, age_tag) = match copy.proofs.age {
            // However young other proofs are.
            _ if copy.bit_errors > 0 => ("age-too-old", "bad"),
            ProofAge::Empty => ("", "done"),
            ProofAge::Unchecked => ("age-unchecked", "done"),
            ProofAge::Fresh => ("age-fresh", "good"),
            ProofAge::Ageing => ("age-ageing", "warn"),
            ProofAge::TooOld => ("age-too-old", "bad"),
        };
        let (class, tag, filled) = match copy.state {
            CopyState::Source => ("source", "done", width(1, 1)),
            CopyState::Complete => ("done", "good", width(1, 1)),
            CopyState::BitErrors => ("work", "bad", width(1, 1)),
            CopyState::Incomplete => ("work", "warn", width(copy.items, copy.source_items)),
            CopyState::LeftOut => ("done", "done", width(copy.items, copy.source_items)),
            CopyState::Differing => ("work", "warn", width(1, 1)),
            CopyState::NoPolicy => ("gone", "done", width(1, 1)),
            CopyState::None => ("gone", "done", width(0, 1)),
        };
        let items = counted(copy.items, "item", "items");
        let text = match (copy.state, &copy.source) {
            (CopyState::None, _) => String::new(),
            (CopyState::Incomplete | CopyState::LeftOut, Some(source)) => {
                format!("{} of {} in {source}", Count(copy.items), counted(copy.source_items, "item", "items"))
            }
            (CopyState::Complete | CopyState::BitErrors | CopyState::Differing, Some(source)) => {
                format!("{items}, copied from {source}")
            }
            (_, _) => items,
        };
        Self {
            store: copy.store.clone(),
            class,
            width: filled,
            text,
            size: Size::new(copy.bytes),
            state: copy.state.words(),
            tag,
            error: copy.error.as_deref().map(visible).unwrap_or_default(),
            wrong: match copy.bit_errors {
                0 => String::new(),
                open => counted(open, "open bit error", "open bit errors"),
            },
            wrong_href: errors_of(root, &space.account),
            is_wrong: copy.state == CopyState::BitErrors,
            proofs: copy.proofs.words(now),
            age: copy.proofs.age.words(),
            age_class,
            age_tag,
            check: request_at(root, &space.account, &copy.store, &space.space, ""),
        }
    }

    /// Whether there is something of which the size is known.
    fn has_size(&self) -> bool {
        !self.text.is_empty()
    }
}

impl ItemRow {
    /// Whether a copy has an open bit error.
    fn is_wrong(&self) -> bool {
        self.copies.iter().any(|copy| copy.is_wrong)
    }

    fn new(item: &SpaceItem, space_href: &str) -> Self {
        Self {
            key: item.key.clone(),
            href: address(&format!("{space_href}/item"), &[pair("key", &*item.key_encoded)]),
            copies: listed(item),
            differing: item.differing.join(", "),
            left_out: item.left_out.join(", "),
        }
    }
}
