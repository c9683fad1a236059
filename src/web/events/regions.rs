//! The live regions of a rendered page, and which of them differ.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use axum::body::Bytes;
use serde::Serialize;

const OPEN: &str = "<!--live ";
const OPEN_END: &str = "-->";

/// One rendering of a page.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Increases by one with each rendering of a page.
    number: u64,
    /// For how long the first change on it had been waiting to be rendered.
    pub(super) waited: Duration,
    regions: Vec<Region>,
    /// What differs from the previous rendering, as most readers get it.
    changes: Bytes,
}

/// The content between a region's marks.
#[derive(Debug)]
struct Region {
    name: String,
    /// A hash of the content without ages, which scripts on the page update.
    fingerprint: u64,
    event: Bytes,
}

impl Snapshot {
    pub(super) fn new(html: &str, last: Option<&Self>) -> Self {
        let regions: Vec<_> = split(html).map(|(name, html)| Region::new(name, html)).collect();
        let number = last.map_or(0, |last| last.number + 1);
        let mut snapshot = Self { number, waited: Duration::ZERO, regions, changes: Bytes::new() };
        snapshot.changes = snapshot.differing(last);
        snapshot
    }

    /// The events for a reader that has this earlier rendering, if any; `None` where nothing differs.
    pub(super) fn since(&self, known_by: Option<&Self>) -> Option<Bytes> {
        let changes = match known_by {
            Some(known_by) if known_by.number + 1 == self.number => self.changes.clone(),
            known_by => self.differing(known_by),
        };
        (!changes.is_empty()).then_some(changes)
    }

    fn differing(&self, known_by: Option<&Self>) -> Bytes {
        let is_known = |region: &&Region| {
            let known = known_by.and_then(|known_by| known_by.regions.iter().find(|known| known.name == region.name));
            known.is_some_and(|known| known.fingerprint == region.fingerprint)
        };
        let new = self.regions.iter().filter(|region| !is_known(region));
        new.flat_map(|region| region.event.iter().copied()).collect::<Vec<_>>().into()
    }
}

impl Region {
    fn new(name: &str, html: &str) -> Self {
        #[derive(Serialize)]
        struct Data<'a> {
            name: &'a str,
            html: &'a str,
        }
        let mut hasher = DefaultHasher::new();
        timeless(html).for_each(|part| part.hash(&mut hasher));
        // JSON writes every line feed as an escape, so it is one line, as an event's data has to be.
        let data = serde_json::to_string(&Data { name, html }).expect("texts can always be written as JSON");
        let event = Bytes::from(format!("event: region\ndata: {data}\n\n"));
        Self { name: name.to_owned(), fingerprint: hasher.finish(), event }
    }
}

/// The regions of a page: each name with the content between its marks. Data of znodes cannot contain a mark, because
/// every `<` in it is escaped.
fn split(html: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let open = rest.find(OPEN)? + OPEN.len();
            let (name, after) = rest[open..].split_once(OPEN_END)?;
            rest = after;
            let close = format!("<!--/live {name}-->");
            if let Some(end) = after.find(&close) {
                rest = &after[end + close.len()..];
                return Some((name, &after[..end]));
            }
        }
    })
}

/// A region without the texts of its `time` elements, and without the one that says when the page was rendered.
fn timeless(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(html);
    std::iter::from_fn(move || {
        let html = rest?;
        let parts = html.find("<time").and_then(|start| {
            let text = start + html[start..].find('>')? + 1;
            let end = text + html[text..].find("</time>")?;
            let kept = if html[start..text].contains(" data-now") { start } else { text };
            Some((&html[..kept], &html[end..]))
        });
        let (part, after) = parts.map_or((html, None), |(part, after)| (part, Some(after)));
        rest = after;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(pending: u32, ago: &str, datetime: &str, now: &str) -> String {
        format!(
            "<body><!--live nav--><nav id=\"nav\">Jobs\n</nav><!--/live nav--><main><!--live pipe--><p id=\"pipe\">\
             {pending} since <time datetime=\"{datetime}\" title=\"t\">{ago}</time> ago</p><!--/live pipe-->\
             <!--live fresh--><p id=\"fresh\"><time data-now datetime=\"{now}\">{now}</time></p><!--/live fresh-->"
        )
    }

    fn names(changes: Option<Bytes>) -> Vec<String> {
        let changes = String::from_utf8(changes.unwrap_or_default().to_vec()).unwrap();
        let events = changes.split("\n\n").filter(|event| !event.is_empty());
        let data = events.map(|event| event.strip_prefix("event: region\ndata: ").unwrap().to_owned());
        data.map(|data| serde_json::from_str::<serde_json::Value>(&data).unwrap()["name"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_reader_gets_everything_once_and_then_what_differs_from_what_he_saw() {
        let first = Snapshot::new(&page(5, "3 s", "T1", "N1"), None);
        assert_eq!(names(first.since(None)), ["nav", "pipe", "fresh"]);
        let aged = Snapshot::new(&page(5, "4 s", "T1", "N2"), Some(&first));
        assert_eq!(names(aged.since(Some(&first))), [""; 0], "the passing of time is no changes");
        let changed = Snapshot::new(&page(6, "4 s", "T1", "N3"), Some(&aged));
        assert_eq!(names(changed.since(Some(&aged))), ["pipe"]);
        let back = Snapshot::new(&page(5, "4 s", "T1", "N4"), Some(&changed));
        assert_eq!(names(back.since(Some(&changed))), ["pipe"]);
        assert_eq!(names(back.since(Some(&aged))), [""; 0], "who was slow has nothing to catch up with");
        let dated = Snapshot::new(&page(5, "4 s", "T2", "N5"), Some(&back));
        assert_eq!(names(dated.since(Some(&first))), ["pipe"], "another instant is changes");
    }

    #[test]
    fn an_event_is_one_line_with_what_stands_between_the_marks() {
        let snapshot = Snapshot::new(&page(5, "3 s", "T1", "N1"), None);
        let event = String::from_utf8(snapshot.regions[0].event.to_vec()).unwrap();
        let expected = r#"{"name":"nav","html":"<nav id=\"nav\">Jobs\n</nav>"}"#;
        assert_eq!(event, format!("event: region\ndata: {expected}\n\n"));
    }

    #[test]
    fn a_mark_without_its_end_is_no_region() {
        let html = "<!--live a--><p><!--live b-->b<!--/live b--></p><!--live c";
        assert_eq!(split(html).collect::<Vec<_>>(), [("b", "b")]);
        assert_eq!(timeless("a<time x>b").collect::<String>(), "a<time x>b");
        assert_eq!(
            timeless("a<time x>b</time>c<time data-now>d</time>e").collect::<String>(),
            "a<time x></time>c</time>e"
        );
    }
}
