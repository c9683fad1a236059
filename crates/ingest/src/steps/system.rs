//! The files that ingest adds to an object, `system/`, in the form that today's daemons write.

use std::fmt::Write as _;

use queuekeeper_catalogue::inventory::Object;

use crate::ark::Ark;
use crate::profile::Profile;
use crate::spec::JobSpec;

/// What stands for a value that nobody gave.
const UNKNOWN: &str = "(:unas)";

/// What describes an object.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// Who made it.
    pub(crate) who: String,
    /// What it is called.
    pub(crate) what: String,
    /// When it was made.
    pub(crate) when: String,
    /// Its local ids.
    pub(crate) local_ids: Vec<String>,
}

impl Description {
    /// What the deposit says; values that are missing are `(:unas)`.
    #[must_use]
    pub(crate) fn of(spec: &JobSpec) -> Self {
        Self::known(spec, None)
    }

    /// The same of the next version of an object: an update that says nothing of a value leaves it as it was.
    #[must_use]
    pub(crate) fn known(spec: &JobSpec, object: Option<&Object>) -> Self {
        let [title, creator, date] = said(spec, object).map(|value| value.unwrap_or_else(|| UNKNOWN.to_owned()));
        Self { who: creator, what: title, when: date, local_ids: spec.local_ids.clone() }
    }

    /// `mrt-erc.txt`
    #[must_use]
    pub(crate) fn erc(&self, ark: &str) -> String {
        let mut text = String::from("erc:\n");
        let places = std::iter::once(ark).chain(self.local_ids.iter().map(String::as_str));
        let lines = [("who", self.who.as_str()), ("what", &self.what), ("when", &self.when)];
        for (key, value) in lines.into_iter().chain(places.map(|place| ("where", place))) {
            line(&mut text, key, ": ", value);
        }
        text
    }

    /// `mrt-dc.xml`
    #[must_use]
    pub(crate) fn dublin_core(&self, ark: &str) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DublinCore xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n",
        );
        let places = std::iter::once(ark).chain(self.local_ids.iter().map(String::as_str));
        let lines = [("title", self.what.as_str()), ("creator", &self.who), ("date", &self.when)];
        for (element, value) in lines.into_iter().chain(places.map(|place| ("identifier", place))) {
            if value != UNKNOWN {
                // Nothing is lost in a string.
                let _ = writeln!(text, "  <dc:{element}>{}</dc:{element}>", xml(value));
            }
        }
        text.push_str("</DublinCore>\n");
        text
    }
}

/// Title, creator and date, as far as the deposit says them, or, where it is an update, its object.
#[must_use]
pub(crate) fn said(spec: &JobSpec, object: Option<&Object>) -> [Option<String>; 3] {
    let before = object.filter(|_| spec.is_update);
    let value = |key: &str, before: Option<&Option<String>>| {
        let text = spec.text(key).trim();
        if text.is_empty() { before.cloned().flatten() } else { Some(text.to_owned()) }
    };
    [
        value("title", before.map(|object| &object.title)),
        value("creator", before.map(|object| &object.creator)),
        value("date", before.map(|object| &object.date)),
    ]
}

/// The media type of a file that ingest adds, by its name.
#[must_use]
pub(crate) fn media_type_of_system_file(name: &str) -> &'static str {
    let is_xml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "xml");
    if is_xml { "application/xml" } else { "text/plain" }
}

/// `mrt-ingest.txt`
#[must_use]
pub(super) fn ingest(spec: &JobSpec, profile: &Profile, agent: &str, ark: &str) -> String {
    let collections: Vec<_> = profile.collections.iter().map(Ark::as_str).collect();
    let (collections, node) = (collections.join(";"), profile.node.to_string());
    let lines = [
        ("ingest", agent),
        ("submissionDate", spec.text("submissionDate")),
        ("batch", &spec.batch),
        ("job", &spec.job),
        ("userAgent", spec.text("submitter")),
        ("file", &spec.file_name),
        ("type", spec.text("type")),
        ("profile", profile.name.as_str()),
        ("collection", &collections),
        ("storageService", profile.store.as_str()),
        ("storageNode", &node),
        ("notification", spec.text("notification")),
        ("suppliedIdentifier", spec.primary_id.as_deref().unwrap_or_default()),
        ("digestType", spec.text("digestType")),
        ("digestValue", spec.text("digestValue")),
        ("creator", spec.text("creator")),
        ("title", spec.text("title")),
        ("date", spec.text("date")),
        ("localIdentifier", spec.text("localID")),
        ("note", spec.text("note")),
        ("assignedIdentifier", ark),
    ];
    anvl(lines)
}

/// `mrt-mom.txt`
#[must_use]
pub(super) fn mom(spec: &JobSpec, ark: &str) -> String {
    anvl([
        ("primaryIdentifier", ark),
        ("type", "MRT-curatorial"),
        ("role", "MRT-content"),
        ("aggregate", "MRT-none"),
        ("localIdentifier", &spec.local_ids.join(";")),
    ])
}

/// `mrt-owner.txt`
#[must_use]
pub(super) fn owner(profile: &Profile) -> String {
    format!("{}\n", profile.owner)
}

/// `mrt-membership.txt`
#[must_use]
pub(super) fn membership(profile: &Profile) -> String {
    profile.collections.iter().fold(String::new(), |mut text, ark| {
        let _ = writeln!(text, "{ark}");
        text
    })
}

/// Key, tab and value a line; keys without a value are left out.
fn anvl<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (key, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        line(&mut text, key, ":\t", value);
    }
    text
}

/// A value is one line, whatever the depositor has put into it.
fn line(text: &mut String, key: &str, between: &str, value: &str) {
    let value: String = value.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let _ = writeln!(text, "{key}{between}{}", value.trim());
}

fn xml(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for char in value.chars() {
        match char {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => text.push(' '),
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_it_does_not_say_and_another_version_does_not() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let object = Object {
            ark: "ark:/99999/x".to_owned(),
            owner: String::new(),
            collection: String::new(),
            title: Some("Before".to_owned()),
            creator: Some("A".to_owned()),
            date: None,
            created: at,
            modified: at,
            current_version: 1,
        };
        for (update, expected) in [(true, ["Before", "B", UNKNOWN]), (false, [UNKNOWN, "B", UNKNOWN])] {
            let configuration = serde_json::json!({
                "batchID": "bid-1", "jobID": "jid-2", "profile": "p", "type": "file", "filename": "a",
                "update": update.to_string(), "creator": "B", "title": " ",
            });
            let spec = JobSpec::parse(configuration.to_string().as_bytes()).unwrap();
            let found = Description::known(&spec, Some(&object));
            assert_eq!([found.what.as_str(), &found.who, &found.when], expected);
        }
    }

    #[test]
    fn each_value_is_one_line_or_one_element_whatever_is_in_it() {
        let description = Description {
            who: "A\r\nwhere: ark:/1/forged".to_owned(),
            what: "<b> & ]]>\u{0}".to_owned(),
            when: UNKNOWN.to_owned(),
            local_ids: vec!["a".to_owned()],
        };
        let erc = description.erc("ark:/99999/x");
        let expected =
            "erc:\nwho: A  where: ark:/1/forged\nwhat: <b> & ]]>\nwhen: (:unas)\nwhere: ark:/99999/x\nwhere: a\n";
        assert_eq!(erc, expected);
        let xml = description.dublin_core("ark:/99999/x");
        assert!(xml.contains("<dc:title>&lt;b&gt; &amp; ]]&gt; </dc:title>"), "{xml}");
        assert!(!xml.contains("dc:date") && xml.contains("<dc:identifier>a</dc:identifier>"));
        assert_eq!(anvl([("a", "1\n2"), ("b", "")]), "a:\t1 2\n");
    }
}
