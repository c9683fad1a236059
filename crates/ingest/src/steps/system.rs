//! The files that ingest adds to an object, `system/`, in the form that today's daemons write.

use std::collections::HashSet;
use std::fmt::Write as _;

use queuekeeper_catalogue::inventory::Object;

use crate::ark::Ark;
use crate::metadata::{BETWEEN, ELEMENTS, ProducerMetadata};
use crate::profile::Profile;
use crate::spec::{JobSpec, Package};

/// What stands for a value that is not known.
const UNKNOWN: &str = "(:unas)";

/// What the steps that a package went through are called in `mrt-ingest.txt`, by what it is.
const HANDLERS: [(Package, &str); 3] = [
    (Package::File, "downloading; processing"),
    (Package::Container, "downloading; unpacking; processing"),
    (Package::Manifest, "manifest; downloading; processing"),
];

/// The elements of `mrt-dc.xml` whose values are split at semicolons, an element each.
const SPLIT: [&str; 4] = ["subject", "creator", "relation", "identifier"];

/// How many values of an element `mrt-dc.xml` has.
const MOST_VALUES: usize = 10_000;

/// The largest text of a term in a znode and in the inventory, in characters. Files have all of it.
const MOST_TERM_CHARS: usize = 3_500;

/// The beginning of a term that znodes and the inventory have.
#[must_use]
pub(crate) fn cut(term: &str) -> String {
    term.chars().take(MOST_TERM_CHARS).collect()
}

/// What describes an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    /// Who made it.
    pub(crate) who: Option<String>,
    /// What it is called.
    pub(crate) what: Option<String>,
    /// When it was made.
    pub(crate) when: Option<String>,
    /// Its local ids.
    pub(crate) local_ids: Vec<String>,
    /// The elements of Dublin Core that deposit and deposited files have, besides its identifiers.
    dublin_core: Vec<(&'static str, String)>,
}

impl Description {
    /// The description of a version. `mrt-erc.txt` and `mrt-datacite.xml` among the deposited files count first, then
    /// the deposit, then `mrt-dc.xml`; what an update leaves open stays as it was in the object.
    #[must_use]
    pub(crate) fn new(spec: &JobSpec, producer: &ProducerMetadata, object: Option<&Object>) -> Self {
        let of_deposit = |element: &'static str| {
            let field = if matches!(element, "title" | "creator" | "date") { spec.text(element) } else { "" };
            let texts = [field, spec.text(&format!("DC{element}"))].map(str::trim).map(ToOwned::to_owned);
            texts.into_iter().filter(|text| !text.is_empty())
        };
        let of_producer = |element: &'static str| {
            let found = producer.dublin_core.iter().filter(move |(name, _)| *name == element);
            found.map(|(_, text)| text.clone())
        };
        let before = object.filter(|_| spec.is_update);
        let term = |overwriting: Option<&String>, element: &'static str, before: Option<&String>| {
            let filled = || {
                let texts: Vec<String> = of_producer(element).collect();
                Some(texts.join(BETWEEN)).filter(|text| !text.is_empty())
            };
            let given = overwriting.cloned().or_else(|| of_deposit(element).next());
            given.or_else(filled).or_else(|| before.cloned())
        };
        let first = &producer.overwriting;
        let who = term(first.who.as_ref(), "creator", before.and_then(|object| object.creator.as_ref()));
        let what = term(first.what.as_ref(), "title", before.and_then(|object| object.title.as_ref()));
        let when = term(first.when.as_ref(), "date", before.and_then(|object| object.date.as_ref()));
        let mut dublin_core: Vec<(&'static str, String)> = Vec::new();
        for element in ELEMENTS {
            let texts = of_deposit(element).chain(of_producer(element));
            dublin_core.extend(texts.map(|text| (element, text)));
        }
        for (element, term) in [("title", &what), ("creator", &who), ("date", &when)] {
            if let Some(term) = term.as_ref().filter(|_| dublin_core.iter().all(|(name, _)| *name != element)) {
                dublin_core.push((element, term.clone()));
            }
        }
        Self { who, what, when, local_ids: spec.local_ids.clone(), dublin_core }
    }

    /// Creator, title and date as today's daemons write them.
    #[must_use]
    pub(crate) fn terms(&self) -> [&str; 3] {
        [&self.who, &self.what, &self.when].map(|term| term.as_deref().unwrap_or(UNKNOWN))
    }

    /// The identifiers, the ARK first.
    fn places<'a>(&'a self, ark: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::once(ark).chain(self.local_ids.iter().map(String::as_str))
    }

    /// `mrt-erc.txt`
    #[must_use]
    pub(crate) fn erc(&self, ark: &str) -> String {
        let mut text = String::from("erc:\n");
        let [who, what, when] = self.terms();
        let lines = [("who", who), ("what", what), ("when", when)];
        for (key, value) in lines.into_iter().chain(self.places(ark).map(|place| ("where", place))) {
            line(&mut text, key, ": ", value);
        }
        text
    }

    /// `mrt-dc.xml`: an element for each term, its values joined, or several where it is one that is split. Gives a
    /// warning for each element that has too many values, too.
    #[must_use]
    pub(crate) fn dublin_core(&self, ark: &str) -> (String, Vec<String>) {
        let mut warnings = Vec::new();
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DublinCore xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n",
        );
        for element in ELEMENTS {
            let own = self.dublin_core.iter().filter(|(name, _)| *name == element).map(|(_, value)| value.as_str());
            let places = (element == "identifier").then(|| self.places(ark)).into_iter().flatten();
            let is_split = SPLIT.contains(&element);
            let (mut values, mut known) = (Vec::<&str>::new(), HashSet::<&str>::new());
            for value in places.chain(own.flat_map(|value| value.split(move |char| is_split && char == ';'))) {
                let value = value.trim();
                if value.is_empty() || known.contains(value) {
                    continue;
                }
                if values.len() >= MOST_VALUES {
                    warnings.push(format!("mrt-dc.xml has only the first {MOST_VALUES} values of {element}"));
                    break;
                }
                known.insert(value);
                values.push(value);
            }
            let joined = values.join(BETWEEN);
            let values = if is_split { values } else { vec![joined.as_str()] };
            for value in values.into_iter().filter(|value| !value.is_empty()) {
                // Nothing is lost in a string.
                let _ = writeln!(text, "  <dc:{element}>{}</dc:{element}>", xml(value));
            }
        }
        text.push_str("</DublinCore>\n");
        (text, warnings)
    }
}

/// The media type of a file that ingest adds, by its name.
#[must_use]
pub(crate) fn media_type_of_system_file(name: &str) -> &'static str {
    let is_xml = std::path::Path::new(name).extension().is_some_and(|extension| extension == "xml");
    if is_xml { "application/xml" } else { "text/plain" }
}

/// How the package of a job came in, for `mrt-ingest.txt`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provenance<'a> {
    /// What ingest is.
    pub(super) agent: &'a str,
    /// The object's ARK.
    pub(super) ark: &'a str,
    /// Whether the ARK was found by the local ids, and not named by the deposit or assigned anew.
    pub(super) is_retrieved: bool,
    /// Whether the files were compared with a manifest of their own.
    pub(super) has_manifest: bool,
}

/// `mrt-ingest.txt`
#[must_use]
pub(super) fn ingest(spec: &JobSpec, profile: &Profile, description: &Description, from: Provenance<'_>) -> String {
    let collections: Vec<_> = profile.collections.iter().map(Ark::as_str).collect();
    let (collections, node) = (collections.join(";"), profile.node.to_string());
    let term = |term: &'_ Option<String>| term.clone().unwrap_or_default();
    let [creator, title, date] = [&description.who, &description.what, &description.when].map(term);
    // One that differs from its digest, or is invalid, did not come so far.
    let integrity = if spec.digest.is_some() { "valid" } else { "no digest was supplied" };
    let validity = if from.has_manifest { "valid" } else { "there is no manifest" };
    let handlers = HANDLERS.into_iter().find(|(package, _)| *package == spec.package);
    let lines = [
        ("ingest", from.agent),
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
        ("creator", &creator),
        ("title", &title),
        ("date", &date),
        ("localIdentifier", spec.text("localID")),
        ("note", spec.text("note")),
        ("packageIntegrity", integrity),
        ("manifestValidity", validity),
        ("assignedIdentifier", from.ark),
        ("retrievedIdentifier", if from.is_retrieved { from.ark } else { "" }),
        ("handlers", handlers.map_or("", |(_, handlers)| handlers)),
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

    fn spec(more: &serde_json::Value) -> JobSpec {
        let mut configuration = serde_json::json!({
            "batchID": "bid-1", "jobID": "jid-2", "profile": "p", "type": "file", "filename": "a", "localID": "x",
        });
        configuration.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        JobSpec::parse(configuration.to_string().as_bytes()).unwrap()
    }

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
        for (update, expected) in [(true, ["B", "Before", UNKNOWN]), (false, ["B", UNKNOWN, UNKNOWN])] {
            let spec = spec(&serde_json::json!({"update": update.to_string(), "creator": "B", "title": " "}));
            let found = Description::new(&spec, &ProducerMetadata::default(), Some(&object));
            assert_eq!(found.terms(), expected);
        }
    }

    #[test]
    fn deposited_metadata_fills_or_overwrites_and_dublin_core_has_all_of_it() {
        let text = |text: &str| Some(text.to_owned());
        let dublin_core =
            [("title", "Own"), ("date", "1999"), ("creator", "C; D"), ("creator", "D"), ("identifier", "y; x")];
        let producer = ProducerMetadata {
            dublin_core: dublin_core.map(|(element, text)| (element, text.to_owned())).to_vec(),
            overwriting: crate::metadata::Terms { who: text("E"), ..crate::metadata::Terms::default() },
            warnings: Vec::new(),
        };
        let spec = spec(&serde_json::json!({"title": "T", "creator": "F", "DCsubject": "s;t", "DCrights": "r;q"}));
        let description = Description::new(&spec, &producer, None);
        assert_eq!(description.terms(), ["E", "T", "1999"]);
        let expected = [
            "<dc:title>T; Own</dc:title>",
            "<dc:creator>F</dc:creator>",
            "<dc:creator>C</dc:creator>",
            "<dc:creator>D</dc:creator>",
            "<dc:subject>s</dc:subject>",
            "<dc:subject>t</dc:subject>",
            "<dc:date>1999</dc:date>",
            "<dc:identifier>ark:/1/2</dc:identifier>",
            "<dc:identifier>x</dc:identifier>",
            "<dc:identifier>y</dc:identifier>",
            "<dc:rights>r;q</dc:rights>",
        ];
        let (xml, warnings) = description.dublin_core("ark:/1/2");
        assert!(warnings.is_empty(), "{warnings:?}");
        let found: Vec<&str> = xml.lines().skip(2).map(str::trim).filter(|line| *line != "</DublinCore>").collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_element_of_very_many_values_is_cut_with_a_warning_and_repeated_values_do_not_count() {
        let described =
            |subject: String| Description { dublin_core: vec![("subject", subject)], ..Description::default() };
        let subjects = |count: usize| (0..count).map(|number| format!("{number:x};")).collect::<Vec<_>>().concat();
        let (xml, warnings) = described(subjects(MOST_VALUES).repeat(2)).dublin_core("ark:/1/2");
        assert_eq!((xml.matches("<dc:subject>").count(), warnings), (MOST_VALUES, Vec::new()));
        let (xml, warnings) = described(subjects(800_000)).dublin_core("ark:/1/2");
        assert_eq!(xml.matches("<dc:subject>").count(), MOST_VALUES);
        assert_eq!(warnings, ["mrt-dc.xml has only the first 10000 values of subject"]);
    }

    #[test]
    fn each_value_is_one_line_or_one_element_whatever_is_in_it() {
        let hostile = serde_json::json!({"creator": "A\r\nwhere: ark:/1/forged", "title": "<b> & ]]>\u{1}x"});
        let description = Description::new(&spec(&hostile), &ProducerMetadata::default(), None);
        let erc = description.erc("ark:/99999/x");
        let expected =
            "erc:\nwho: A  where: ark:/1/forged\nwhat: <b> & ]]> x\nwhen: (:unas)\nwhere: ark:/99999/x\nwhere: x\n";
        assert_eq!(erc, expected);
        let (xml, _) = description.dublin_core("ark:/99999/x");
        assert!(xml.contains("<dc:title>&lt;b&gt; &amp; ]]&gt; x</dc:title>"), "{xml}");
        assert!(!xml.contains("dc:date") && xml.contains("<dc:identifier>x</dc:identifier>"));
        assert_eq!(anvl([("a", "1\n2"), ("b", "")]), "a:\t1 2\n");
    }
}
