//! What the deposited files say of their object: `mrt-dc.xml`, `mrt-datacite.xml`, `mrt-erc.txt` and `mrt-embargo.txt`.
//!
//! The files are kept as they are. Metadata that cannot be read is a warning, and the object is stored without it; an
//! embargo without an end is refused, since the object would be published.

mod embargo;
mod xml;

use std::io::{self, Read as _};

pub use queuekeeper_queue::record::EMBARGO;

use crate::file_root::FileRoot;

/// The elements of Dublin Core, in the order in which they are written.
pub(crate) const ELEMENTS: [&str; 15] = [
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "contributor",
    "date",
    "type",
    "format",
    "identifier",
    "source",
    "language",
    "relation",
    "coverage",
    "rights",
];

const DUBLIN_CORE: &str = "mrt-dc.xml";
const DATACITE: &str = "mrt-datacite.xml";
const ERC: &str = "mrt-erc.txt";

/// The largest of these files that is read, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// What stands between several values of a term.
pub(crate) const BETWEEN: &str = "; ";

/// Creator, title and date of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) who: Option<String>,
    pub(crate) what: Option<String>,
    pub(crate) when: Option<String>,
}

/// What the deposited files say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProducerMetadata {
    /// The elements of `mrt-dc.xml`, which fill what the deposit leaves open, and their values in their order.
    pub(crate) dublin_core: Vec<(&'static str, String)>,
    /// The terms of `mrt-erc.txt`, else of `mrt-datacite.xml`: they count before those of the deposit.
    pub(crate) overwriting: Terms,
    /// What could not be read, and when an embargo ends: one sentence each.
    pub(crate) warnings: Vec<String>,
}

/// The metadata of an object is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetadataError {
    /// A file cannot be read.
    #[error("cannot read {name}: {error}")]
    Read { name: &'static str, error: io::Error },
    /// The end of the embargo is no date.
    #[error("{EMBARGO}: {0}")]
    Embargo(String),
}

/// When the embargo of an object ends, as the text of its file has it; `None` where it says that there is none, and
/// where it says nothing of one.
#[must_use]
pub fn end_of_embargo(text: &str) -> Option<String> {
    embargo::end(text).ok().flatten()
}

impl ProducerMetadata {
    /// Reads it from the deposited files.
    ///
    /// # Errors
    /// When a file cannot be read, or an embargo has no end.
    pub(crate) fn read(producer: &FileRoot) -> Result<Self, MetadataError> {
        let mut found = Self::default();
        if let Some(text) = found.text(producer, DUBLIN_CORE)? {
            match xml::leaves(&text) {
                Ok(leaves) => found.dublin_core = dublin_core(&leaves),
                Err(why) => found.ignored(DUBLIN_CORE, &why),
            }
        }
        if let Some(text) = found.text(producer, DATACITE)? {
            match xml::leaves(&text) {
                Ok(leaves) => found.overwriting = datacite(&leaves),
                Err(why) => found.ignored(DATACITE, &why),
            }
        }
        if let Some(text) = found.text(producer, ERC)? {
            let (Terms { who, what, when }, has_keys) = erc(&text);
            if !has_keys {
                found.ignored(ERC, "none of its lines begins with who:, what: or when:");
            }
            let before = std::mem::take(&mut found.overwriting);
            found.overwriting =
                Terms { who: who.or(before.who), what: what.or(before.what), when: when.or(before.when) };
        }
        if let Some(bytes) = bytes(producer, EMBARGO)? {
            let end = embargo::end(&String::from_utf8_lossy(&bytes)).map_err(MetadataError::Embargo)?;
            found.warnings.extend(end.map(|end| format!("its {EMBARGO} declares an embargo until {end}")));
        }
        Ok(found)
    }

    /// The text of a file; `None` where there is none, or it is ignored.
    fn text(&mut self, producer: &FileRoot, name: &'static str) -> Result<Option<String>, MetadataError> {
        let Some(bytes) = bytes(producer, name)? else { return Ok(None) };
        if bytes.len() as u64 > MOST_BYTES {
            self.ignored(name, &format!("it has more than {MOST_BYTES} bytes"));
            return Ok(None);
        }
        let text = String::from_utf8(bytes);
        if text.is_err() {
            self.ignored(name, "it is not UTF-8");
        }
        Ok(text.ok().map(|text| text.trim_start_matches('\u{feff}').to_owned()))
    }

    fn ignored(&mut self, name: &str, why: &str) {
        self.warnings.push(format!("{name} is kept, but its metadata is not used: {why}"));
    }
}

/// The beginning of a file, one byte more than is read of it; `None` where no file has the name.
fn bytes(producer: &FileRoot, name: &'static str) -> Result<Option<Vec<u8>>, MetadataError> {
    let failed = |error| MetadataError::Read { name, error };
    let file = match producer.file(name) {
        // A folder has the name.
        Err(error) if error.raw_os_error().is_none() => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let Some(file) = file else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

fn dublin_core(leaves: &[xml::Leaf]) -> Vec<(&'static str, String)> {
    let element = |leaf: &xml::Leaf| {
        let [_, name] = leaf.path.as_slice() else { return None };
        let element = ELEMENTS.into_iter().find(|element| element == name)?;
        Some((element, leaf.text.clone()))
    };
    leaves.iter().filter_map(element).collect()
}

fn datacite(leaves: &[xml::Leaf]) -> Terms {
    let at = |path: &[&str]| {
        let found = leaves.iter().filter(|leaf| leaf.path == path);
        // A title with a type is another title, such as a translation.
        let texts: Vec<&str> = found.filter(|leaf| !leaf.has_title_type).map(|leaf| leaf.text.as_str()).collect();
        Some(texts.join(BETWEEN)).filter(|text| !text.is_empty())
    };
    Terms {
        who: at(&["resource", "creators", "creator", "creatorName"]),
        what: at(&["resource", "titles", "title"]),
        when: at(&["resource", "publicationYear"]),
    }
}

/// Reads the lines `who:`, `what:` and `when:`, and says whether there is any; a line that begins with white space goes
/// on with the one before.
fn erc(text: &str) -> (Terms, bool) {
    let mut values: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']);
        match (line.split_once(':'), values.last_mut()) {
            (_, Some((_, value))) if is_continued => {
                value.push(' ');
                value.push_str(line.trim());
            }
            (Some((key, value)), _) if !line.starts_with('#') => {
                values.push((key.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
            _ => {}
        }
    }
    let of = |key: &str| {
        let texts = values.iter().filter(|(name, _)| name == key).map(|(_, value)| value.trim());
        // Codes such as `(:unas)` say that there is no value.
        let texts: Vec<&str> = texts.filter(|value| !value.is_empty() && !value.starts_with("(:un")).collect();
        Some(texts.join(BETWEEN)).filter(|text| !text.is_empty())
    };
    let has_keys = values.iter().any(|(key, _)| ["who", "what", "when"].contains(&&**key));
    (Terms { who: of("who"), what: of("what"), when: of("when") }, has_keys)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(files: &[(&str, &[u8])]) -> Result<ProducerMetadata, MetadataError> {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(directory.path().join(name), content).unwrap();
        }
        ProducerMetadata::read(&FileRoot::open(directory.path(), directory.path()).unwrap())
    }

    const XML: &[u8] =
        b"\xef\xbb\xbf<?xml version='1.0'?><!-- x --><DublinCore xmlns:dc='http://purl.org/dc/elements/1.1/'>\
        <dc:title>A &amp; B &#xe9;</dc:title><dc:subject>s; t</dc:subject><dc:odd>x</dc:odd><dc:title> <![CDATA[<C>]]>\
        </dc:title><dc:date/></DublinCore>";

    #[test]
    fn the_files_of_a_deposit_say_what_they_say_and_erc_counts_before_datacite() {
        let datacite = "<resource xmlns='http://datacite.org/schema/kernel-4'><creators><creator><creatorName>N, A\
            </creatorName><nameIdentifier>1</nameIdentifier></creator><creator><creatorName>M, B</creatorName></creator>\
            </creators><titles><title titleType='AlternativeTitle'>Other</title><title>Main</title></titles>\
            <publicationYear>2019</publicationYear></resource>";
        let erc = "erc:\nwho: (:unas)\nWhat: of\n  two lines\nwhere: ark:/1/2\n# when: 1999\n";
        let found = read(&[(DUBLIN_CORE, XML), (DATACITE, datacite.as_bytes()), (ERC, erc.as_bytes())]).unwrap();
        let elements = [("title", "A & B \u{e9}"), ("subject", "s; t"), ("title", "<C>")];
        assert_eq!(found.dublin_core, elements.map(|(element, text)| (element, text.to_owned())));
        let text = |text: &str| Some(text.to_owned());
        let terms = Terms { who: text("N, A; M, B"), what: text("of two lines"), when: text("2019") };
        assert_eq!((found.overwriting, found.warnings), (terms, Vec::new()));
        assert_eq!(read(&[]).unwrap(), ProducerMetadata::default());
    }

    #[test]
    fn metadata_that_cannot_be_read_is_a_warning_and_expands_to_nothing() {
        let bomb = b"<!DOCTYPE a [<!ENTITY x 'yyyy'>]><a><dc:title>&x;</dc:title></a>";
        for (content, why) in [
            (&bomb[..], "it has a document type"),
            (b"<a><title>x</a>", "it is not valid XML"),
            (b"<a><title>&undefined;</title></a>", "it is not valid XML"),
            (b"<a><title>x", "it is not valid XML"),
            (b"<a>\xff</a>", "it is not UTF-8"),
            (&vec![b'a'; 5 << 20], "it has more than"),
            ("<a>".repeat(1_000).as_bytes(), "it is nested too deeply"),
        ] {
            let found = read(&[(DUBLIN_CORE, content)]).unwrap();
            let expected = format!("mrt-dc.xml is kept, but its metadata is not used: {why}");
            assert!(found.warnings[0].starts_with(&expected), "{:?}", found.warnings);
            assert!(found.dublin_core.is_empty());
        }
    }

    #[test]
    fn a_file_without_a_key_is_a_warning_and_one_without_values_is_none() {
        let warnings = |text: &str| read(&[(ERC, text.as_bytes())]).unwrap().warnings;
        let expected =
            "mrt-erc.txt is kept, but its metadata is not used: none of its lines begins with who:, what: or when:";
        for text in ["", "A title\nA creator", "erc:\nwhere: ark:/1/2", "# who: nobody"] {
            assert_eq!(warnings(text), [expected], "{text:?}");
        }
        assert_eq!(warnings("erc:\nwho: (:unas)\n"), Vec::<String>::new());
    }

    #[test]
    fn an_embargo_is_a_warning_and_one_without_an_end_is_refused() {
        let found = read(&[(EMBARGO, b"embargoEndDate: 2031-06-12T12:00:00-05:00\n")]).unwrap();
        let expected = "its mrt-embargo.txt declares an embargo until 2031-06-12T12:00:00-05:00";
        assert_eq!(found.warnings, [expected]);
        let error = read(&[(EMBARGO, b"embargoEndDate: soon\n")]).unwrap_err().to_string();
        assert_eq!(error, "mrt-embargo.txt: embargoEndDate \"soon\" is not a date such as 2030-01-31");
    }
}
