//! A row of a manifest.

use queuekeeper_store::{Algorithm, Digest};

use super::column::Column;
use super::names::Warning;
use super::problem::ProblemKind;
use super::profile::{ALGORITHMS, ManifestProfile};
use crate::ark::Ark;
use crate::name;
use crate::url::{ContentUrl, UrlError, conceal};

/// A row: a file, or the package of an object in a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestRow {
    /// Where it is fetched from; `None` in the manifest of a container.
    pub url: Option<ContentUrl>,
    /// Its digest.
    pub digest: Option<Digest>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was modified, as it is written.
    pub modified: Option<String>,
    /// Its name. Where the column is empty, the last part of the URL; in a batch, where that is empty, all parts.
    pub name: String,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// The object's identifier, as it is written.
    pub primary_id: Option<String>,
    /// The ids that the owner knows the object by, each once.
    pub local_ids: Vec<String>,
    /// The object's creator.
    pub creator: Option<String>,
    /// The object's title.
    pub title: Option<String>,
    /// The object's date, as it is written.
    pub date: Option<String>,
}

/// A column of a line: its text, and the character where that begins, from 1.
struct Cell<'a> {
    text: &'a str,
    at: u64,
}

/// What is found while a line is taken apart.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<(u64, ProblemKind)>,
    pub(super) warning: Option<Warning>,
    /// Where the name begins.
    pub(super) name_at: u64,
}

impl ManifestRow {
    /// Takes a line apart.
    pub(super) fn parse(profile: ManifestProfile, text: &str, line: u64) -> (Self, Findings) {
        let (mut row, mut found) = (Self::default(), Findings { name_at: 1, ..Findings::default() });
        let (mut algorithm, mut value) = (None, None);
        let mut at = 1;
        let mut url_at = 1;
        for (column, whole) in profile.columns().iter().zip(text.split('|')) {
            let cell = Cell::new(whole, at);
            at += count(whole) + 1;
            match column {
                Column::Url => url_at = cell.at,
                Column::Name => found.name_at = cell.at,
                _ => {}
            }
            if !cell.text.is_empty() {
                match column {
                    Column::HashAlgorithm => algorithm = Some(cell),
                    Column::HashValue => value = Some(cell),
                    _ => row.set(profile, *column, &cell).unwrap_or_else(|kind| found.problems.push((cell.at, kind))),
                }
            }
        }
        match (algorithm, value) {
            (None, None) => {}
            (Some(algorithm), Some(value)) => match digest(&algorithm, &value) {
                Ok(digest) => row.digest = Some(digest),
                Err(problem) => found.problems.push(problem),
            },
            _ => found.warning = Some(Warning::HalfDigest { line }),
        }
        if found.problems.is_empty() {
            row.complete(profile, url_at, &mut found);
        }
        found.problems.sort_by_key(|(at, _)| *at);
        (row, found)
    }

    fn set(&mut self, profile: ManifestProfile, column: Column, cell: &Cell<'_>) -> Result<(), ProblemKind> {
        let slot = match column {
            Column::Url => {
                let url: ContentUrl = cell.text.parse()?;
                if url.is_file() && profile != ManifestProfile::Add {
                    return Err(UrlError::Scheme(url.to_string()).into());
                }
                self.url = Some(url);
                return Ok(());
            }
            Column::Size => {
                let size =
                    cell.text.bytes().all(|byte| byte.is_ascii_digit()).then(|| cell.text.parse().ok()).flatten();
                self.size = Some(size.ok_or_else(|| ProblemKind::Size(conceal(cell.text)))?);
                return Ok(());
            }
            Column::Name => {
                let decoded = decode(cell.text);
                name::check(&decoded)?;
                self.name = decoded;
                return Ok(());
            }
            Column::LocalId => {
                let text = cell.description()?;
                for id in text.split(';').map(str::trim).filter(|id| !id.is_empty()) {
                    if !self.local_ids.iter().any(|other| other == id) {
                        self.local_ids.push(id.to_owned());
                    }
                }
                return Ok(());
            }
            Column::PrimaryId => {
                let text = cell.description()?;
                text.parse::<Ark>()?;
                self.primary_id = Some(text);
                return Ok(());
            }
            Column::Modified => &mut self.modified,
            Column::MimeType => &mut self.mime_type,
            Column::Creator => &mut self.creator,
            Column::Title => &mut self.title,
            Column::Date => &mut self.date,
            Column::HashAlgorithm | Column::HashValue => return Ok(()),
        };
        *slot = Some(cell.description()?);
        Ok(())
    }

    /// Checks what a row has to have, and derives a missing name.
    fn complete(&mut self, profile: ManifestProfile, url_at: u64, found: &mut Findings) {
        if profile != ManifestProfile::Object && self.url.is_none() {
            found.problems.push((url_at, ProblemKind::NoUrl));
        }
        if !self.name.is_empty() {
            return;
        }
        let url = self.url.as_ref();
        let of_path = || url.filter(|_| profile.is_batch()).and_then(ContentUrl::path_name);
        let of_url = url.and_then(ContentUrl::file_name).or_else(of_path);
        // The last part, decoded, may hold slashes.
        match of_url.filter(|name| !name.contains('/')).map(|name| (name::check(&name), name)) {
            Some((Ok(()), name)) => self.name = name,
            Some((Err(error), _)) => found.problems.push((url_at, error.into())),
            None if self.url.is_some() || profile == ManifestProfile::Object => {
                found.problems.push((found.name_at, ProblemKind::NoName));
            }
            None => {}
        }
    }
}

impl<'a> Cell<'a> {
    fn new(whole: &'a str, at: u64) -> Self {
        let is_space = |char: char| char.is_ascii_whitespace() || char == '\u{b}';
        let start = whole.trim_start_matches(is_space);
        Self { text: start.trim_end_matches(is_space), at: at + count(&whole[..whole.len() - start.len()]) }
    }

    /// The text of a column that describes, decoded. It ends up in XML, which has no control characters.
    fn description(&self) -> Result<String, ProblemKind> {
        if self.text.contains(is_unfit) {
            return Err(ProblemKind::Control);
        }
        Ok(decode(self.text))
    }
}

/// Whether XML 1.0 cannot hold a character.
pub(super) fn is_unfit(char: char) -> bool {
    matches!(char, '\0'..='\u{8}' | '\u{a}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}')
}

/// Both escapes that checkm has here.
pub(super) fn decode(text: &str) -> String {
    text.replace("%20", " ").replace("%7c", "|")
}

fn count(text: &str) -> u64 {
    text.chars().count() as u64
}

fn digest(algorithm: &Cell<'_>, value: &Cell<'_>) -> Result<Digest, (u64, ProblemKind)> {
    let known = algorithm.text.parse().ok().filter(|known| ALGORITHMS.contains(known));
    let known = known.ok_or_else(|| (algorithm.at, ProblemKind::Algorithm(conceal(algorithm.text))))?;
    let is_checksum = matches!(known, Algorithm::Adler32 | Algorithm::Crc32);
    // Java's writers leave out leading zeros of the two that are numbers.
    let padded = if is_checksum { format!("{:0>8}", value.text) } else { value.text.to_owned() };
    Digest::from_hex(known, &padded).map_err(|error| (value.at, error.into()))
}
