//! Whole lists as CSV.

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};

use crate::views::csv::Columns;
use crate::views::page::Limit;
use crate::views::{List, PageQuery};
use crate::web::http::problem::Problem;
use crate::web::state::State;

/// The media type of CSV (RFC 4180).
pub(super) const MEDIA_TYPE: &str = "text/csv";

/// What the path of a list ends in as CSV.
pub(super) const ENDING: &str = ".csv";

/// What each of them is, for the description of the API.
pub(super) const DESCRIPTION: &str = "\
    All that match, without a limit. Pages of 500 are read and sent one after the other: in a longer list, an item that \
    moves meanwhile may be missing or be listed twice. A response that ends early is incomplete, which its chunked \
    encoding shows.";

/// What is the same in all of them, likewise.
pub(super) const FORMAT: &str = "\
    In CSV the first line has the names of the fields, with a dot before those of nested objects. The elements of a list \
    are separated by semicolons, invisible characters are escaped, and a text that a spreadsheet would take for a \
    formula is prefixed with an apostrophe.";

/// A list as CSV.
#[derive(Debug)]
pub(super) struct Csv(Body);

impl IntoResponse for Csv {
    fn into_response(self) -> Response {
        // It is saved under the last part of its path.
        let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8"), (header::CONTENT_DISPOSITION, "attachment")];
        (headers, self.0).into_response()
    }
}

/// All pages of a list, each of them read when the one before has been sent: no more than one is in memory.
///
/// # Errors
/// Where the first page cannot be read. A later page that cannot be read ends the response early.
pub(super) fn whole<L: List + 'static>(
    state: State,
    ask: impl Fn(&State, PageQuery) -> Result<L, Problem> + Send + 'static,
) -> Result<Csv, Problem> {
    let columns = Columns::<L::Item>::new();
    let page = move |cursor| ask(&state, PageQuery { limit: Limit::most(), cursor });
    let first = page(None)?;
    let begin = columns.header() + &columns.rows(first.items());
    let rest = stream::unfold(first.next().map(str::to_owned), move |next| {
        let read = |cursor| match page(Some(cursor)) {
            Ok(list) => (Ok(columns.rows(list.items())), list.next().map(str::to_owned)),
            Err(problem) => {
                tracing::warn!(error = %problem.detail, "a list as CSV ends early");
                (Err(std::io::Error::other(problem.detail)), None)
            }
        };
        std::future::ready(next.map(read))
    });
    // A body may be polled again after its end, which a stream of this kind does not take.
    Ok(Csv(Body::from_stream(stream::iter([Ok(begin)]).chain(rest).fuse())))
}
