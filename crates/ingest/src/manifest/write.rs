//! Writing a manifest in its strict form.

use std::io::{self, Write};

use super::column::Column;
use super::profile::{HEADER, ManifestProfile};
use super::row::{ManifestRow, decode, is_unfit};
use crate::name::{self, NameError};

/// What stands between columns.
const BAR: &str = " | ";

const PREFIXES: [(&str, &str); 2] = [
    ("mrt:", "http://merritt.cdlib.org/terms#"),
    ("nfo:", "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"),
];

/// Why a row cannot be written. Nothing of it was written then, but for [`WriteError::Io`].
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The stream takes no more.
    #[error("cannot write the manifest: {0}")]
    Io(#[from] io::Error),
    /// The profile has no column for a value.
    #[error("a manifest with the profile {profile} has no column {column}", profile = profile.as_str())]
    NoColumn {
        /// The profile.
        profile: ManifestProfile,
        /// The name of the column.
        column: &'static str,
    },
    /// A row lacks what its profile needs.
    #[error("the row has no {0}")]
    Missing(&'static str),
    /// The name of the file is not taken.
    #[error("cannot write the file name {text:?}: {error}")]
    Name {
        /// The name, made visible.
        text: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// The value would be read as another one.
    #[error(
        "cannot write {text:?} into column {column}: readers would take it for another value, as checkm cannot escape {what}"
    )]
    Unwritable {
        /// The name of the column.
        column: &'static str,
        /// The value, made visible.
        text: String,
        /// What stands in the way.
        what: &'static str,
    },
}

/// Writes a manifest. Without [`Writer::finish`] it is one that was cut off.
pub struct Writer<W> {
    to: W,
    profile: ManifestProfile,
}

impl<W: Write> Writer<W> {
    /// Begins a manifest.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn new(mut to: W, profile: ManifestProfile) -> io::Result<Self> {
        writeln!(to, "#%checkm_0.7")?;
        writeln!(to, "{HEADER}{BAR}{}", profile.uri())?;
        for (prefix, uri) in PREFIXES {
            writeln!(to, "#%prefix{BAR}{prefix}{BAR}{uri}")?;
        }
        write!(to, "#%fields")?;
        for column in profile.columns() {
            write!(to, "{BAR}{}", column.as_str())?;
        }
        writeln!(to)?;
        Ok(Self { to, profile })
    }

    /// Writes a row. A text that is empty is one that is not there.
    ///
    /// # Errors
    /// When the row has something that the profile has no column for, or that would not be read as it is.
    pub fn write(&mut self, row: &ManifestRow) -> Result<(), WriteError> {
        let columns = self.profile.columns();
        let mut cells: Vec<String> = Vec::with_capacity(columns.len());
        for column in columns {
            cells.push(self.cell(*column, row)?);
        }
        let (with_id, objects) = (self.profile.is_batch(), !row.local_ids.is_empty());
        let is_given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        for (is_there, column) in [
            (row.url.is_some(), Column::Url),
            (is_given(&row.mime_type), Column::MimeType),
            (is_given(&row.primary_id), Column::PrimaryId),
            (objects && !with_id, Column::LocalId),
            (is_given(&row.creator), Column::Creator),
            (is_given(&row.title), Column::Title),
            (is_given(&row.date), Column::Date),
        ] {
            if is_there && !columns.contains(&column) {
                return Err(WriteError::NoColumn { profile: self.profile, column: column.as_str() });
            }
        }
        let last = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |at| at + 1);
        cells.truncate(last);
        Ok(writeln!(self.to, "{}", cells.join(BAR))?)
    }

    /// Ends the manifest.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        writeln!(self.to, "#%eof")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn cell(&self, column: Column, row: &ManifestRow) -> Result<String, WriteError> {
        let text = match column {
            Column::Url => {
                let url = row.url.as_ref().ok_or(WriteError::Missing("URL"))?;
                if url.is_file() && self.profile != ManifestProfile::Add {
                    return Err(WriteError::Unwritable {
                        column: column.as_str(),
                        text: url.to_string(),
                        what: "a local file",
                    });
                }
                return Ok(url.reveal().as_str().to_owned());
            }
            Column::HashAlgorithm => {
                return Ok(row.digest.as_ref().map_or_else(String::new, |one| one.algorithm().to_string()));
            }
            Column::HashValue => return Ok(row.digest.as_ref().map_or_else(String::new, ToString::to_string)),
            Column::Size => return Ok(row.size.map_or_else(String::new, |size| size.to_string())),
            Column::Name => {
                name::check(&row.name).map_err(|error| WriteError::Name { text: name::shown(&row.name), error })?;
                Some(row.name.clone())
            }
            Column::LocalId => Some(self::local_ids(&row.local_ids)?),
            Column::Modified => row.modified.clone(),
            Column::MimeType => row.mime_type.clone(),
            Column::PrimaryId => row.primary_id.clone(),
            Column::Creator => row.creator.clone(),
            Column::Title => row.title.clone(),
            Column::Date => row.date.clone(),
        };
        encode(column, self.profile, &text.unwrap_or_default())
    }
}

fn local_ids(ids: &[String]) -> Result<String, WriteError> {
    let unwritable =
        |id: &String, what| WriteError::Unwritable { column: Column::LocalId.as_str(), text: name::shown(id), what };
    for (at, id) in ids.iter().enumerate() {
        if id.contains(';') {
            return Err(unwritable(id, "a semicolon"));
        }
        if id.trim() != id || id.is_empty() || ids[..at].contains(id) {
            return Err(unwritable(id, "blanks around it, nor what is empty or there twice"));
        }
    }
    Ok(ids.join(";"))
}

/// A text as a column has it: blanks at its ends and bars are escaped.
fn encode(column: Column, profile: ManifestProfile, text: &str) -> Result<String, WriteError> {
    let unwritable = |what| WriteError::Unwritable { column: column.as_str(), text: name::shown(text), what };
    if decode(text) != text {
        return Err(unwritable("a percent sign before 20 or 7c"));
    }
    if text.contains(is_unfit) {
        return Err(unwritable("control characters"));
    }
    if text.starts_with('\t') || text.ends_with('\t') {
        return Err(unwritable("a tab at an end"));
    }
    if text.starts_with('#') && profile.columns().first() == Some(&column) {
        return Err(unwritable("a number sign at the beginning of a line"));
    }
    let mut encoded = text.replace('|', "%7c");
    if encoded.ends_with(' ') {
        encoded.replace_range(encoded.len() - 1.., "%20");
    }
    if encoded.starts_with(' ') {
        encoded.replace_range(..1, "%20");
    }
    Ok(encoded)
}
