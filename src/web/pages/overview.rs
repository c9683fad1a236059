//! The overview.

use askama::Template;

use super::View;
use super::attention::{self, Item};
use super::figures::Figures;
use crate::metrics::build;
use crate::mirror::Freshness;
use crate::web::show::{Ago, Count, Moment};

/// The overview, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "overview.html")]
pub struct Overview {
    root: &'static str,
    servers: String,
    /// Where the metrics are, relative to this page.
    metrics: String,
    version: &'static str,
    now: Moment,
    fresh: Fresh,
    banner: Option<Banner>,
    attention: Vec<Item>,
    figures: Option<Figures>,
    connection: Vec<Fact>,
}

/// The freshness in the header.
#[derive(Debug)]
struct Fresh {
    class: &'static str,
    text: String,
}

/// What nobody may overlook: the figures below are old, or there are none.
#[derive(Debug)]
struct Banner {
    title: String,
    text: String,
}

/// A line of the table about the connection.
#[derive(Debug)]
struct Fact {
    name: &'static str,
    value: String,
    moment: Option<Moment>,
}

impl Overview {
    /// Works out what the page says.
    #[must_use]
    pub fn new(view: &View) -> Self {
        let View { now, freshness, summary, storage, .. } = view;
        Self {
            root: "./",
            servers: view.servers.clone(),
            metrics: format!(".{}", view.telemetry_path),
            version: build::VERSION,
            now: Moment::new(*now, *now),
            fresh: fresh(view),
            banner: banner(view),
            attention: summary.as_ref().map(|summary| attention::items(summary, *storage, *now)).unwrap_or_default(),
            figures: summary.as_ref().map(|summary| Figures::new(summary, *storage, *now)),
            connection: connection(view, freshness),
        }
    }
}

fn fresh(view: &View) -> Fresh {
    let freshness = &view.freshness;
    let (class, text) = if freshness.last_walk.is_none() {
        ("bad", "no image yet".to_owned())
    } else if freshness.is_synced() {
        ("good", "live".to_owned())
    } else {
        ("bad", format!("{} old", Ago(freshness.stale_for(view.now))))
    };
    Fresh { class, text }
}

fn banner(view: &View) -> Option<Banner> {
    let freshness = &view.freshness;
    if freshness.is_synced() {
        return None;
    }
    let connected = freshness.is_connected();
    let cause = freshness.problem.as_deref().unwrap_or(if connected {
        "Connected to ZooKeeper; the tree is being read."
    } else {
        "Not connected to ZooKeeper."
    });
    let (title, rest) = if let (Some(_), Some(since)) = (freshness.last_walk, freshness.stale_since) {
        let Moment { ago, exact, .. } = Moment::new(since, view.now);
        (format!("These figures are {ago} old"), format!("The page shows the queue as it was at {exact}."))
    } else {
        let rest = "There is nothing to show until it has been.".to_owned();
        ("The queue has not been read yet".to_owned(), rest)
    };
    let retry = if connected { "" } else { " Connecting is tried again until it succeeds." };
    Some(Banner { title, text: format!("{}{retry} {rest}", sentence(cause)) })
}

/// A cause as a sentence: it may come from an error, which begins small and ends without a full stop.
fn sentence(cause: &str) -> String {
    let mut characters = cause.trim().chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    let text: String = first.chain(characters).collect();
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

fn connection(view: &View, freshness: &Freshness) -> Vec<Fact> {
    let fact = |name, value: String| Fact { name, value, moment: None };
    let mut facts = vec![fact("Servers", view.servers.clone())];
    facts.push(match &freshness.session {
        Some(session) => fact("Session", session.clone()),
        None => fact("Session", "none".to_owned()),
    });
    let moment = |name, instant| Fact { name, value: String::new(), moment: Some(Moment::new(instant, view.now)) };
    facts.extend(freshness.last_event.map(|instant| moment("Last change", instant)));
    facts.extend(freshness.last_walk.map(|instant| moment("Last read whole", instant)));
    facts.extend(
        freshness.last_walk_duration.map(|took| fact("Time to read it", format!("{:.1} s", took.as_secs_f64()))),
    );
    if let Some(summary) = &view.summary {
        facts.push(fact("Znodes", Count(summary.znodes).to_string()));
        facts.push(fact("Unreadable", Count(summary.unreadable).to_string()));
    }
    facts
}
