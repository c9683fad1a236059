//! A whole dump, read before anything of it is written.

use std::io::{BufRead, Read as _};

use super::{DumpReader, LoadError, LoadLimits};
use crate::dump::{Header, Trailer};

/// A dump that was read from its first line to its last, and is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedDump {
    /// Its first line.
    pub header: Header,
    /// Its last line but one.
    pub read: Trailer,
    /// Its checksum: the SHA-256 of all lines but the last, in hex digits.
    pub sha256: String,
}

/// Reads a dump from its first line to its last, and writes nothing.
///
/// # Errors
/// [`LoadError::Dump`] where it is not a whole dump, or holds what could not be loaded; [`LoadError::Input`] where it
/// cannot be read.
pub fn check(mut input: impl BufRead, limits: LoadLimits) -> Result<CheckedDump, LoadError> {
    let mut reader = DumpReader::new(limits);
    let (mut line, mut header) = (Vec::new(), None);
    loop {
        line.clear();
        // One byte more than any line may have is enough to refuse it.
        let most = DumpReader::LONGEST_LINE as u64 + 2;
        if input.by_ref().take(most).read_until(b'\n', &mut line).map_err(LoadError::Input)? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if header.is_none() {
            header = Some(reader.header(text)?);
        } else {
            reader.check(text)?;
        }
    }
    let (read, sha256) = reader.end()?;
    let header = header.ok_or_else(|| reader.cut())?;
    Ok(CheckedDump { header, read, sha256: sha256.to_owned() })
}
