//! The manifest of a version, which processing leaves for storing.

use std::io::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use queuekeeper_store::Digest;
use url::Url;

use super::problem::ProblemKind;
use super::profile::ManifestProfile;
use super::row::{ManifestRow, decode};
use super::write::{WriteError, Writer};
use crate::name;
use crate::url::{ContentUrl, shown};

/// All but what no URL escapes, and slashes: neither the URL library nor a server takes it for anything else.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Writes the manifest of a version (`mrt-add-manifest`): a row for each file of a job's directory.
///
/// The URL of a row names its file exactly. Its column for the name cannot hold a literal `%20` or `%7c`: there, and so
/// for Java's storage, such a name has what these stand for. Our own reader takes names from URLs
/// ([`super::Reader::add`]).
pub struct AddWriter<W> {
    writer: Writer<W>,
    base: Url,
}

impl<W: Write> AddWriter<W> {
    /// Begins a manifest of files beneath a directory's URL, which ends with a slash: `file:///QUEUE/BATCH/JOB/` or
    /// `http://HOST/ingestqueue/BATCH/JOB/`.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn new(to: W, base: Url) -> io::Result<Self> {
        Ok(Self { writer: Writer::new(to, ManifestProfile::Add)?, base })
    }

    /// Writes the row of a file with its path in the directory, as `producer/a.txt`.
    ///
    /// # Errors
    /// When the stream cannot be written, or the name is none that a file of an object may have.
    pub fn write(
        &mut self,
        path: &str,
        size: u64,
        digest: Digest,
        mime_type: Option<String>,
    ) -> Result<(), WriteError> {
        name::check(path).map_err(|error| WriteError::Name { text: name::shown(path), error })?;
        let url = Url::parse(&format!("{}{}", self.base, utf8_percent_encode(path, ESCAPED)));
        let url = url.map_err(io::Error::other)?;
        let url = ContentUrl::try_from(url).map_err(io::Error::other)?;
        let row = ManifestRow {
            url: Some(url),
            digest: Some(digest),
            size: Some(size),
            name: decode(path),
            mime_type,
            ..ManifestRow::default()
        };
        self.writer.write(&row)
    }

    /// Ends the manifest.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }
}

/// The name of a file by its URL beneath that of a directory.
pub(super) fn name_beneath(base: &Url, url: &Url) -> Result<String, ProblemKind> {
    let rest = (url.query().is_none()).then(|| url.as_str().strip_prefix(base.as_str())).flatten();
    let rest = rest.filter(|_| base.as_str().ends_with('/')).ok_or_else(|| ProblemKind::Elsewhere(shown(base)))?;
    let name = percent_decode_str(rest).decode_utf8().map_err(|_| name::NameError::NoText)?;
    name::check(&name)?;
    Ok(name.into_owned())
}
