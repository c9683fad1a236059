//! The query strings of lists, with the text that is searched for.

use std::collections::BTreeSet;

use super::board::{self, Answer, Board};

/// The lists of the API, each with what names its items, and the pages that show them.
const LISTS: [(&str, &str, &str); 6] = [
    ("/api/v1/jobs", "/jobs", "id"),
    ("/api/v1/failures", "/failures", "group"),
    ("/api/v1/batches", "/batches", "id"),
    ("/api/v1/access", "/access", "id"),
    ("/api/v1/locks", "/locks", "path"),
    ("/api/v1/faults", "/faults", "item"),
];

/// What else takes a query string.
const OTHERS: [&str; 8] =
    ["/api/v1/audit", "/audit", "/api/v1/history", "/search", "/events", "/action", "/api/v1/tree/jobs", "/lists"];

/// Pages of a list are not followed further than that.
const MOST_PAGES: usize = 200;

/// Asks each list for what the bytes say.
///
/// # Panics
/// When a page and the API do not agree on whether it can be asked, when the pages of a list do not add up to it, or
/// when the server fails.
pub fn check(data: &[u8]) {
    let query = String::from_utf8_lossy(data);
    // What follows is no part of a query, and no program sends it.
    let query = query.split('#').next().unwrap_or_default();
    board::with(|board| {
        for (list, page, _) in LISTS {
            let Some(answer) = board.get(&format!("{list}?{query}")) else { return };
            let status = answer.status.as_u16();
            assert!(matches!(status, 200 | 400 | 404), "{list}?{query} was answered with {status}: {}", answer.body);
            // A refusal names what is accepted, and is short.
            assert!(status == 200 || answer.body.len() < 20_000, "{status} with {} bytes", answer.body.len());
            if let Some(shown) = board.get(&format!("{page}?{query}")) {
                let taken = |status: u16| status == 200 || status == 404;
                // A page has fewer rows than an answer of the API, and says so.
                let is_long = shown.body.contains("A page has at most");
                let agree = is_long || taken(status) == taken(shown.status.as_u16());
                assert!(agree, "{page}?{query}: {status} and {}", shown.status);
            }
            if status == 200 {
                follow(board, list, query, answer);
            }
        }
        let csv = ["/api/v1/jobs.csv", "/api/v1/batches.csv", "/api/v1/locks.csv", "/api/v1/audit.csv"];
        for other in OTHERS.into_iter().chain(csv) {
            board.get(&format!("{other}?{query}"));
        }
    });
}

/// Follows a list from the page that was requested to its last, and counts its items.
fn follow(board: &Board, list: &str, query: &str, first: Answer) {
    let (_, _, name) = LISTS.iter().find(|(known, ..)| *known == list).expect("it is one of them");
    let mut seen = BTreeSet::new();
    let mut answer = first;
    for _ in 0..MOST_PAGES {
        let page = answer.json();
        let items = page["items"].as_array().unwrap_or_else(|| panic!("{list} has no items: {page}"));
        for item in items {
            // The same id may stand in two queues, and a path have several faults.
            let key = (item["queue"].to_string(), item["fault"].to_string(), item[*name].to_string());
            assert!(seen.insert(key), "{list}?{query} lists {item} twice");
        }
        let Some(next) = page["next"].as_str() else { return };
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("cursor=")).collect();
        let address = format!("{list}?{}&cursor={next}", kept.join("&"));
        answer = board.get(&address).unwrap_or_else(|| panic!("{address} is no address"));
        assert!(answer.status.is_success(), "{address}: {}", answer.body);
    }
}
