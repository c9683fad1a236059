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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Checksum;

    /// A dump of the root alone, with as many spaces at the end of its first line.
    fn dump(spaces: usize) -> String {
        let header = r#"{"queuekeeper_dump":2,"id":"d","taken":"2026-03-02T18:17:05Z","program":"1","redacted":false,"left_out":[],"next":{}}"#;
        let end = r#"{"end":{"nodes":1,"ephemeral":0,"vanished":0,"jobs":0,"batches":0,"requests":0,"data_bytes":0,"newest_zxid":0}}"#;
        let lines = format!("{header}{}\n{{\"path\":\"/\"}}\n{end}\n", " ".repeat(spaces));
        let mut sum = Checksum::new();
        sum.add(lines.as_bytes());
        format!("{lines}{{\"sha256\":\"{}\"}}\n", sum.text())
    }

    fn checked(text: &str) -> Result<CheckedDump, String> {
        check(text.as_bytes(), LoadLimits::new(1, "", &[])).map_err(|error| error.to_string())
    }

    #[test]
    fn a_dump_is_checked_from_its_first_line_to_its_last() {
        let text = dump(0);
        let whole = checked(&text).unwrap();
        assert_eq!((whole.header.id.as_str(), whole.read.nodes), ("d", 1));
        assert!(text.ends_with(&format!("{{\"sha256\":\"{}\"}}\n", whole.sha256)));
        assert_eq!(checked(text.trim_end()), Ok(whole));
        assert_eq!(checked("").unwrap_err(), "line 1 is missing: the dump was cut off");
        assert_eq!(checked(&(text + "{}")).unwrap_err(), "line 5 follows the last line of the dump");
    }

    #[test]
    fn a_line_may_be_as_long_as_any_and_no_longer() {
        let spaces = DumpReader::LONGEST_LINE - dump(0).find('\n').unwrap();
        assert!(checked(&dump(spaces)).is_ok());
        assert_eq!(checked(&dump(spaces + 1)).unwrap_err(), "line 1 is longer than 8 MiB");
    }

    #[test]
    fn no_more_is_read_of_a_line_than_what_refuses_it() {
        let mut input = std::io::Cursor::new(vec![b' '; 2 * DumpReader::LONGEST_LINE]);
        assert!(check(&mut input, LoadLimits::new(1, "", &[])).is_err());
        assert_eq!(input.position(), DumpReader::LONGEST_LINE as u64 + 2);
    }
}
