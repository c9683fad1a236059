//! What to do when an alert fires: the runbook as a page, which the alerts lead to.

use std::sync::LazyLock;

use askama::Template;
use pulldown_cmark::{CowStr, Event, HeadingLevel, LinkType, Parser, Tag, TagEnd, html};

use super::View;
use super::frame::{self, Frame};
use crate::web::dashboards;

/// The runbook, ready to be rendered.
#[derive(Debug, Template)]
#[template(path = "runbook.html")]
pub(super) struct RunbookPage {
    frame: Frame,
    runbook: &'static Runbook,
}

impl RunbookPage {
    pub(super) fn new(view: &View) -> Self {
        let runbook = if view.repository.mill { &RUNBOOK } else { &WITHOUT_MILL };
        Self { frame: Frame::new(view, ROOT.to_owned(), None), runbook }
    }

    /// That of the pages of several queues.
    pub(super) fn of_all(frame: Frame) -> Self {
        Self { frame, runbook: &OF_ALL }
    }
}

/// The way from the page up to the root.
const ROOT: &str = "./";

/// It is the same as long as the program runs.
static RUNBOOK: LazyLock<Runbook> = LazyLock::new(|| Runbook::new(dashboards::runbook(), |_| true));

/// The same for a server that has no pages of the mill to lead to.
static WITHOUT_MILL: LazyLock<Runbook> = LazyLock::new(|| Runbook::new(dashboards::runbook(), is_without_mill));

/// The same for the pages of several queues, beside which there is none of its pages but the probes.
static OF_ALL: LazyLock<Runbook> = LazyLock::new(|| Runbook::new(dashboards::runbook(), |part| part == PROBES));

/// The part of the probes.
const PROBES: &str = "-";

fn is_without_mill(part: &str) -> bool {
    part != frame::Section::Mill.href()
}

/// A text with a heading, and sections with headings below it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Runbook {
    title: String,
    /// What stands before the first section, as HTML.
    introduction: String,
    sections: Vec<Section>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    /// Where links to it lead: the title in lower case, with dashes for spaces.
    id: String,
    title: String,
    html: String,
}

impl Runbook {
    /// Its pages are linked that are in a part which the server has.
    fn new(markdown: &str, has: fn(&str) -> bool) -> Self {
        let mut book = Self::default();
        let mut events: Vec<Event<'_>> = Vec::new();
        let mut heading: Option<String> = None;
        for event in Parser::new(markdown) {
            match event {
                Event::Start(Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }) => {
                    book.take(&mut events);
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(level @ (HeadingLevel::H1 | HeadingLevel::H2))) => {
                    let title = heading.take().unwrap_or_default();
                    if level == HeadingLevel::H1 {
                        book.title = title;
                    } else {
                        book.sections.push(Section { id: anchor(&title), title, html: String::new() });
                    }
                }
                Event::Text(text) | Event::Code(text) if heading.is_some() => {
                    heading.get_or_insert_default().push_str(&text);
                }
                Event::Code(text) => events.extend(code(text, has)),
                // There is no HTML in it, and none would be let through.
                Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
                other => events.push(other),
            }
        }
        book.take(&mut events);
        book
    }

    /// Renders what was gathered into the part that it belongs to.
    fn take(&mut self, events: &mut Vec<Event<'_>>) {
        let part = self.sections.last_mut().map_or(&mut self.introduction, |section| &mut section.html);
        html::push_html(part, events.drain(..));
    }
}

fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-")
}

/// Code; a page of ours leads there, unless something has to be filled in. A znode's path is none.
fn code(text: CowStr<'_>, has: fn(&str) -> bool) -> Vec<Event<'_>> {
    let is_page = |page: &&str| {
        let part = page.split(['/', '?']).next().unwrap_or_default();
        let is_part = part == PROBES || frame::is_part(part);
        is_part && has(part) && !page.contains(char::is_uppercase)
    };
    let Some(page) = text.strip_prefix('/').filter(is_page) else {
        return vec![Event::Code(text)];
    };
    let dest_url = format!("{ROOT}{page}").into();
    let link = Tag::Link { link_type: LinkType::Inline, dest_url, title: "".into(), id: "".into() };
    vec![Event::Start(link), Event::Code(text), Event::End(TagEnd::Link)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_distinguished_pages_are_linked_and_nothing_else_gets_through() {
        let text = "# All\nbegin\n\n## A `b` c\nSee `/jobs?a=1&b=2`, `/jobs?state=STATE`, `/queuekeeper/paused`, `/mill/held`, `rm`.\n\n## D\n<script>x</script>\n";
        let book = Runbook::new(text, is_without_mill);
        let section = |id: &str, title: &str, html: &str| Section {
            id: id.to_owned(),
            title: title.to_owned(),
            html: html.to_owned(),
        };
        assert_eq!((book.title.as_str(), book.introduction.as_str()), ("All", "<p>begin</p>\n"));
        let linked = "<p>See <a href=\"./jobs?a=1&amp;b=2\"><code>/jobs?a=1&amp;b=2</code></a>, \
                      <code>/jobs?state=STATE</code>, <code>/queuekeeper/paused</code>, <code>/mill/held</code>, <code>rm</code>.</p>\n";
        assert_eq!(book.sections[0], section("a-b-c", "A b c", linked));
        assert!(!book.sections[1].html.contains("<script"), "{:?}", book.sections[1]);
        let with_mill = Runbook::new(text, |_| true);
        assert!(with_mill.sections[0].html.contains("<a href=\"./mill/held\">"), "{:?}", with_mill.sections[0]);
        assert!(RUNBOOK.sections.len() > 15 && !RUNBOOK.title.is_empty());
    }
}
