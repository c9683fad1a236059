//! The overview.

use askama::Template;

use super::View;
use super::attention::{self, Item};
use super::figures::Figures;
use super::frame::{Frame, Section};
use crate::mirror::Freshness;
use crate::web::show::{Count, Moment};

/// The overview, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "overview.html")]
pub struct Overview {
    frame: Frame,
    attention: Vec<Item>,
    figures: Option<Figures>,
    connection: Vec<Fact>,
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
            frame: Frame::new(view, "./".to_owned(), Section::Overview),
            attention: summary.as_ref().map(|summary| attention::items(summary, *storage, *now)).unwrap_or_default(),
            figures: summary.as_ref().map(|summary| Figures::new(summary, *storage, *now)),
            connection: connection(view, freshness),
        }
    }
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
