//! The elements of a small XML document that hold text.

use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// How deeply elements may be nested.
const MOST_DEPTH: usize = 32;

/// The longest name of an element without its prefix, in bytes. Each leaf has those of all elements that it is in.
const MOST_NAME_BYTES: usize = 128;

/// How many elements with text are read.
const MOST_LEAVES: usize = 10_000;

/// An element with text, without elements in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Its name behind those of the elements that it is in, each without prefix.
    pub(super) path: Vec<String>,
    /// Whether it has the attribute `titleType` of `DataCite`.
    pub(super) has_title_type: bool,
    /// Its text in one line.
    pub(super) text: String,
}

/// An element that has not ended.
struct Open {
    has_title_type: bool,
    has_elements: bool,
    text: String,
}

/// Reads a document whose entities are those of XML only; an error is one sentence.
pub(super) fn leaves(document: &str) -> Result<Vec<Leaf>, String> {
    let mut reader = Reader::from_str(document);
    let invalid = |error: &dyn std::fmt::Display| format!("it is not valid XML: {error}");
    let (mut path, mut open, mut leaves) = (Vec::<String>::new(), Vec::<Open>::new(), Vec::new());
    loop {
        let event = reader.read_event().map_err(|error| invalid(&error))?;
        let more = match event {
            Event::Start(element) => {
                if open.len() >= MOST_DEPTH {
                    return Err("it is nested too deeply".to_owned());
                }
                if let Some(above) = open.last_mut() {
                    above.has_elements = true;
                }
                let name = element.local_name();
                if name.as_ref().len() > MOST_NAME_BYTES {
                    return Err(format!("the name of an element has more than {MOST_NAME_BYTES} bytes"));
                }
                path.push(String::from_utf8_lossy(name.as_ref()).into_owned());
                let has_title_type = has_title_type(&element);
                open.push(Open { has_title_type, has_elements: false, text: String::new() });
                continue;
            }
            Event::End(_) => {
                if let Some(Open { has_title_type, has_elements: false, text }) = open.pop()
                    && !text.trim().is_empty()
                {
                    if leaves.len() >= MOST_LEAVES {
                        return Err(format!("it has more than {MOST_LEAVES} elements with text"));
                    }
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    leaves.push(Leaf { path: path.clone(), has_title_type, text });
                }
                path.pop();
                continue;
            }
            Event::Empty(_) => {
                if let Some(above) = open.last_mut() {
                    above.has_elements = true;
                }
                continue;
            }
            Event::Text(text) => {
                text.xml_content(XmlVersion::Implicit1_0).map_err(|error| invalid(&error))?.into_owned()
            }
            Event::CData(text) => {
                text.xml_content(XmlVersion::Implicit1_0).map_err(|error| invalid(&error))?.into_owned()
            }
            Event::GeneralRef(reference) => {
                if let Some(char) = reference.resolve_char_ref().map_err(|error| invalid(&error))? {
                    char.to_string()
                } else {
                    let name = reference.decode().map_err(|error| invalid(&error))?;
                    let unknown = || invalid(&format_args!("entity {:?} is not known", crate::name::shown(&name)));
                    resolve_xml_entity(&name).ok_or_else(unknown)?.to_owned()
                }
            }
            // Entities that it defines are not expanded, and those of other files not read.
            Event::DocType(_) => return Err("it has a document type".to_owned()),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => continue,
            Event::Eof if open.is_empty() => return Ok(leaves),
            Event::Eof => return Err(invalid(&"it ends within an element")),
        };
        if let Some(element) = open.last_mut() {
            element.text.push_str(&more);
        }
    }
}

fn has_title_type(element: &BytesStart<'_>) -> bool {
    // The search for duplicates compares each attribute with all before it.
    let mut attributes = element.attributes();
    attributes.with_checks(false).flatten().any(|attribute| attribute.key.local_name().as_ref() == b"titleType")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_leaves_are_bounded_and_attributes_are_read_in_one_pass() {
        let named = |bytes: usize| format!("<a><p:{0}>x</p:{0}></a>", "n".repeat(bytes));
        assert_eq!(leaves(&named(MOST_NAME_BYTES)).unwrap()[0].path[1].len(), MOST_NAME_BYTES);
        let error = leaves(&named(MOST_NAME_BYTES + 1)).unwrap_err();
        assert_eq!(error, "the name of an element has more than 128 bytes");

        let many = |count: usize| format!("<a>{}</a>", "<b>x</b>".repeat(count));
        assert_eq!(leaves(&many(MOST_LEAVES)).unwrap().len(), MOST_LEAVES);
        assert_eq!(leaves(&many(MOST_LEAVES + 1)).unwrap_err(), "it has more than 10000 elements with text");

        // Compared with each other, these would take hours.
        let attributes = (0..300_000).map(|number| format!(" a{number}=''")).collect::<Vec<_>>().concat();
        let found = leaves(&format!("<a><b{attributes} titleType='x'>c</b></a>")).unwrap();
        assert!(found[0].has_title_type);
    }
}
