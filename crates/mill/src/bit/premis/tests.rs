//! What a reader of XML finds in the documents.

use queuekeeper_store::Key;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

use super::*;
use crate::bit::report::Statement;

const NAMESPACE: &[u8] = b"http://www.loc.gov/premis/v3";

/// The children of an event and of an agent in their order, as the schema of PREMIS 3.0 has them, with those that must
/// be there.
const EVENT: [(&str, bool); 7] = [
    ("eventIdentifier", true),
    ("eventType", true),
    ("eventDateTime", true),
    ("eventDetailInformation", false),
    ("eventOutcomeInformation", false),
    ("linkingAgentIdentifier", false),
    ("linkingObjectIdentifier", false),
];
const AGENT: [(&str, bool); 4] =
    [("agentIdentifier", true), ("agentName", false), ("agentType", false), ("agentVersion", false)];

#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// The text of the only element at a path.
    fn at(&self, path: &str) -> &str {
        self.all(path)[..].try_into().map(|[only]: [&str; 1]| only).unwrap()
    }

    fn all(&self, path: &str) -> Vec<&str> {
        let (name, rest) = path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let found = self.children.iter().filter(|child| child.name == name);
        found.flat_map(|child| rest.map_or_else(|| vec![&*child.text], |rest| child.all(rest))).collect()
    }

    fn has_order(&self, order: &[(&str, bool)]) -> bool {
        let names: Vec<_> = self.children.iter().map(|child| &*child.name).collect();
        let at: Option<Vec<_>> = names.iter().map(|name| order.iter().position(|(known, _)| known == name)).collect();
        let needed = order.iter().filter(|(_, is_needed)| *is_needed).all(|(name, _)| names.contains(name));
        needed && at.is_some_and(|at| at.is_sorted())
    }
}

fn read(text: &str) -> Element {
    let mut reader = NsReader::from_str(text);
    let (mut open, mut root) = (vec![Element::default()], None);
    loop {
        let (namespace, event) = reader.read_resolved_event().unwrap();
        match event {
            Event::Start(start) => {
                assert!(matches!(namespace, ResolveResult::Bound(bound) if bound.0 == NAMESPACE));
                let name = String::from_utf8(start.local_name().as_ref().to_vec()).unwrap();
                open.push(Element { name, ..Element::default() });
            }
            Event::End(_) => {
                let ended = open.pop().unwrap();
                let parent = open.last_mut().unwrap();
                if parent.name.is_empty() {
                    assert!(root.replace(ended).is_none());
                } else {
                    parent.children.push(ended);
                }
            }
            Event::Text(text) => {
                open.last_mut().unwrap().text.push_str(&text.xml_content(XmlVersion::Explicit1_0).unwrap());
            }
            Event::GeneralRef(entity) => {
                let of = &mut open.last_mut().unwrap().text;
                match entity.resolve_char_ref().unwrap() {
                    Some(char) => of.push(char),
                    None => of.push_str(resolve_xml_entity(&entity.decode().unwrap()).unwrap()),
                }
            }
            Event::Eof => return root.unwrap(),
            _ => {}
        }
    }
}

fn row(key: &[u8], result: &str, detail: &str) -> ReportRow {
    ReportRow {
        date: "2026-11-27T06:17:22Z".parse().unwrap(),
        account: "account1".to_owned(),
        store: "replica".parse().unwrap(),
        space: "theses".parse().unwrap(),
        key: Key::new(key).unwrap(),
        result: result.to_owned(),
        findings: vec![],
        proof: (result == "success").then(|| "read".to_owned()),
        content: Statement::Missing,
        provider: Statement::Same,
        index: Statement::None,
        audit: Statement::None,
        detail: detail.to_owned(),
    }
}

#[test]
fn each_check_is_an_event_in_the_order_of_the_schema() {
    let (mut events, mut text) = PremisEvents::begin("bit-integrity/replica/theses/1");
    let failure = ReportRow {
        findings: vec!["content_damaged".to_owned(), "index_wrong".to_owned()],
        ..row(b"b", "failure", "content damaged")
    };
    for row in [failure, row(b"a", "error", "all differ"), row(b"c", "unproven", ""), row(b"d", "success", "")] {
        text.push_str(&events.event(&row));
    }
    text.push_str(&PremisEvents::end());
    let root = read(&text);
    assert_eq!(root.name, "premis");
    let names: Vec<_> = root.children.iter().map(|child| &*child.name).collect();
    assert_eq!(names, ["event", "event", "event", "event", "agent"]);
    let (agent, events) = root.children.split_last().unwrap();
    assert!(agent.has_order(&AGENT) && events.iter().all(|event| event.has_order(&EVENT)), "{text}");
    let outcomes: Vec<_> = events.iter().map(|event| event.at("eventOutcomeInformation/eventOutcome")).collect();
    assert_eq!(outcomes, ["fail", "fail", "warning", "success"]);
    let first = &events[0];
    for (path, value) in [
        ("eventIdentifier/eventIdentifierValue", "bit-integrity/replica/theses/1#1"),
        ("eventType", "fixity check"),
        ("eventDateTime", "2026-11-27T06:17:22Z"),
        ("eventDetailInformation/eventDetail", "proof: none"),
        ("linkingAgentIdentifier/linkingAgentIdentifierType", agent.at("agentIdentifier/agentIdentifierType")),
        ("linkingAgentIdentifier/linkingAgentIdentifierValue", agent.at("agentIdentifier/agentIdentifierValue")),
        ("linkingObjectIdentifier/linkingObjectIdentifierValue", "account1/replica/theses/b"),
    ] {
        assert_eq!(first.at(path), value);
    }
    let notes = first.all("eventOutcomeInformation/eventOutcomeDetail/eventOutcomeDetailNote");
    let expected = [
        "result: failure",
        "findings: content_damaged index_wrong",
        "detail: content damaged",
        "content_checksum: missing",
        "provider_checksum: same",
    ];
    assert_eq!(notes, expected);
    assert_eq!(events[1].at("eventIdentifier/eventIdentifierValue"), "bit-integrity/replica/theses/1#2");
}

#[test]
fn whatever_a_key_or_a_sentence_has_is_text() {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let detail = "</premis:event>]]><!-- & \"x' é\u{0}\u{1b}\u{fffe}";
    for key in [&every[..], b"</premis:event>", b"&lt;", b"]]>", b"a b/\xff"] {
        let (mut events, mut text) = PremisEvents::begin("r");
        text.push_str(&events.event(&row(key, "error", detail)));
        text.push_str(&PremisEvents::end());
        let root = read(&text);
        assert_eq!(root.children.len(), 2, "{text}");
        let copy = format!("account1/replica/theses/{}", Key::new(key).unwrap().encoded());
        assert_eq!(root.children[0].at("linkingObjectIdentifier/linkingObjectIdentifierValue"), copy);
        let notes = root.children[0].all("eventOutcomeInformation/eventOutcomeDetail/eventOutcomeDetailNote");
        assert_eq!(notes[1], "detail: </premis:event>]]><!-- & \"x' é\u{fffd}\u{fffd}\u{fffd}");
    }
}
