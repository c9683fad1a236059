//! The checks of a report as PREMIS events.
//!
//! The document is that of PREMIS 3.0 (Library of Congress): its events, in the order of the report, then the agent.
//! Each event is of the type `fixity check`, with the outcome `success`, `fail` or `warning` (vocabulary
//! *eventOutcome*). It is made event by event: a space of any size needs the memory of one.

use std::borrow::Cow;

use quick_xml::escape::escape;

use super::report::ReportRow;
use super::verdict::CheckResult;

/// The agent of all events.
const AGENT: [(&str, &str); 2] = [("AgentIdentifierType", "software"), ("AgentIdentifierValue", "queuekeeper")];

/// The version of the agent.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Events, made one by one.
#[derive(Debug)]
pub struct PremisEvents {
    report: String,
    number: u64,
}

impl PremisEvents {
    /// The beginning of the document of a report: the identifiers of its events have its name.
    #[must_use]
    pub fn begin(report: &str) -> (Self, String) {
        let begin = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <premis:premis xmlns:premis=\"http://www.loc.gov/premis/v3\" \
            xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
            xsi:schemaLocation=\"http://www.loc.gov/premis/v3 https://www.loc.gov/standards/premis/premis.xsd\" \
            version=\"3.0\">\n";
        (Self { report: report.to_owned(), number: 0 }, begin.to_owned())
    }

    /// The next event.
    #[must_use]
    pub fn event(&mut self, row: &ReportRow) -> String {
        self.number += 1;
        let ReportRow { date, account, store, space, key, result, findings, proof, detail, .. } = row;
        let outcome = if *result == CheckResult::Success.as_str() {
            "success"
        } else if *result == CheckResult::Unproven.as_str() {
            "warning"
        } else {
            "fail"
        };
        let proof = proof.as_deref().unwrap_or("none");
        let mut notes = vec![format!("result: {result}")];
        if !findings.is_empty() {
            notes.push(format!("findings: {}", findings.join(" ")));
        }
        if !detail.is_empty() {
            notes.push(format!("detail: {detail}"));
        }
        let checksums = row.checksums().into_iter().filter(|(_, checksum)| !checksum.is_empty());
        notes.extend(checksums.map(|(of, checksum)| format!("{of}: {checksum}")));
        let mut xml = Xml::default();
        xml.within("event", |xml| {
            xml.within("eventIdentifier", |xml| {
                xml.text("eventIdentifierType", "queuekeeper check");
                xml.text("eventIdentifierValue", &format!("{}#{}", self.report, self.number));
            });
            xml.text("eventType", "fixity check");
            xml.text("eventDateTime", &date.to_string());
            xml.within("eventDetailInformation", |xml| xml.text("eventDetail", &format!("proof: {proof}")));
            xml.within("eventOutcomeInformation", |xml| {
                xml.text("eventOutcome", outcome);
                for note in &notes {
                    xml.within("eventOutcomeDetail", |xml| xml.text("eventOutcomeDetailNote", note));
                }
            });
            xml.within("linkingAgentIdentifier", |xml| {
                for (name, value) in AGENT {
                    xml.text(&format!("linking{name}"), value);
                }
            });
            xml.within("linkingObjectIdentifier", |xml| {
                xml.text("linkingObjectIdentifierType", "queuekeeper copy");
                let copy = format!("{account}/{store}/{space}/{}", key.encoded());
                xml.text("linkingObjectIdentifierValue", &copy);
            });
        });
        xml.0
    }

    /// The end of the document, with the agent.
    #[must_use]
    pub fn end() -> String {
        let mut xml = Xml::default();
        xml.within("agent", |xml| {
            xml.within("agentIdentifier", |xml| {
                for (name, value) in AGENT {
                    xml.text(&name.replacen('A', "a", 1), value);
                }
            });
            xml.text("agentName", "queuekeeper");
            xml.text("agentType", "software");
            xml.text("agentVersion", VERSION);
        });
        xml.0 + "</premis:premis>\n"
    }
}

/// Elements of PREMIS, one after the other.
#[derive(Default)]
struct Xml(String);

impl Xml {
    fn within(&mut self, name: &str, children: impl FnOnce(&mut Self)) {
        self.0.extend(["<premis:", name, ">"]);
        children(self);
        self.0.extend(["</premis:", name, ">\n"]);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.0.extend(["<premis:", name, ">", &escape(legal(text)), "</premis:", name, ">\n"]);
    }
}

/// The text, with U+FFFD for each character that no document of XML 1.0 can have.
fn legal(text: &str) -> Cow<'_, str> {
    let is_legal = |char: char| match char {
        '\t' | '\n' | '\r' => true,
        char => char >= ' ' && !matches!(char, '\u{fffe}' | '\u{ffff}'),
    };
    if text.chars().all(is_legal) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|char| if is_legal(char) { char } else { char::REPLACEMENT_CHARACTER }).collect())
}

#[cfg(test)]
mod tests;
