//! The pages of the mill.
//!
//! None is updated live: what they show is in the catalogue, and nothing reports its changes.

use axum::routing::{MethodRouter, get, post};
use jiff::Timestamp;

use super::frame::{Frame, Section};
use crate::views::mill::ErrorProof;
use crate::views::show::{Ago, Moment, visible};
use crate::web::http::problem::Problem;
use crate::web::http::query::{address, pair};
use crate::web::state::State;

mod checks;
mod compared;
mod dead_letters;
mod errors;
mod held;
mod item;
mod overview;
mod pauses;
mod policies;
mod policy;
mod reports;
mod spaces;
mod tasks;

/// All of them.
pub(super) fn routes() -> Vec<(&'static str, MethodRouter<State>)> {
    vec![
        ("/mill", get(overview::show)),
        ("/mill/held", get(held::list).post(held::decide)),
        ("/mill/dead-letters", get(dead_letters::list).post(dead_letters::decide)),
        ("/mill/errors", get(errors::list).post(errors::resolve)),
        ("/mill/reports", get(reports::list)),
        ("/mill/reports/{id}", get(reports::show)),
        ("/mill/checks", get(checks::list)),
        ("/mill/checks/new", get(checks::new).post(checks::ask)),
        ("/mill/spaces", get(spaces::list)),
        ("/mill/spaces/{account}/{space}", get(spaces::items)),
        ("/mill/spaces/{account}/{space}/item", get(item::show)),
        ("/mill/policies", get(policies::list)),
        ("/mill/policies/{account}", get(policies::show).post(policies::save)),
    ]
}

/// What only takes a form.
pub(super) fn posted() -> [(&'static str, MethodRouter<State>); 3] {
    [
        ("/mill/policies/{account}/plan", post(policies::plan)),
        ("/mill/pause", post(pauses::pause)),
        ("/mill/resume", post(pauses::resume)),
    ]
}

fn frame(state: &State, root: &str, now: Timestamp) -> Frame {
    Frame::new(&state.view(now), root.to_owned(), Section::Mill)
}

/// Where the bit errors of an account are listed.
fn errors_of(root: &str, account: &str) -> String {
    address(&format!("{root}mill/errors"), &[pair("account", account)])
}

/// An instant that is to come, or how long ago it was.
#[derive(Debug)]
struct Due {
    /// `in 3.2 h`, to the nearest unit, or `3.2 h ago`.
    words: String,
    at: Moment,
}

impl Due {
    fn new(instant: Timestamp, now: Timestamp) -> Self {
        let at = Moment::new(instant, now);
        let words = match std::time::Duration::try_from(instant.duration_since(now)) {
            Ok(left) => format!("in {}", Ago::nearest(left)),
            Err(_) => format!("{} ago", at.ago),
        };
        Self { words, at }
    }
}

/// What was seen of a copy and what is recorded, with what each is.
type ProofLines = Vec<(&'static str, String)>;

fn proof_lines(proof: &ErrorProof) -> ProofLines {
    let ErrorProof { content, provider, index, audit } = proof;
    let proof = [("As read", content), ("Store reports", provider), ("Content index", index), ("Audit log", audit)];
    proof.into_iter().map(|(of, seen)| (of, visible(seen))).filter(|(_, seen)| !seen.is_empty()).collect()
}

/// How much of a whole is done, in percent of the width of a bar.
fn width(done: u64, all: u64) -> String {
    format!("{:.2}", if all == 0 { 0.0 } else { (done as f64 / all as f64 * 100.0).min(100.0) })
}

/// The fields of a form, of which some may come several times.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn one(&self, name: &str) -> Result<&str, Problem> {
        self.all(name).next().ok_or_else(|| Problem::bad(format!("The form has no field {name}.")))
    }
}
