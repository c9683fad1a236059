//! A manifest as it is kept: without what may be secret.

use std::io::{self, BufRead, Write};

enum At {
    LineStart,
    /// In the first column.
    Url,
    /// In the query of the first column.
    Query,
    Rest,
}

/// Copies a manifest whose first column is a URL as it is, but for the queries of these, which become `?..`.
///
/// # Errors
/// When one of the streams fails.
pub fn conceal_queries(mut source: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let mut at = At::LineStart;
    loop {
        let chunk = match source.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return to.flush();
        }
        let mut out = Vec::with_capacity(chunk.len());
        for &byte in chunk {
            at = match (byte, at) {
                (b'\n' | b'\r', _) => At::LineStart,
                (b'#', At::LineStart) | (b'|', At::LineStart | At::Url) | (_, At::Rest) => At::Rest,
                (b'|', At::Query) => {
                    out.push(b' ');
                    At::Rest
                }
                (_, At::Query) => {
                    at = At::Query;
                    continue;
                }
                (b'?', At::LineStart | At::Url) => {
                    out.extend_from_slice(b"?..");
                    at = At::Query;
                    continue;
                }
                (_, At::LineStart | At::Url) => At::Url,
            };
            out.push(byte);
        }
        to.write_all(&out)?;
        let taken = chunk.len();
        source.consume(taken);
    }
}
