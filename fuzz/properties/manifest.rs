//! Manifests: what depositors send, and what lies in their containers.

use queuekeeper_ingest::manifest::{
    Limits, ListedFiles, MOST_PROBLEMS, ManifestError, ManifestProfile, ManifestRow, Reader, Writer, conceal_queries,
};
use queuekeeper_ingest::name;

use super::shown;

/// What a concealed query is, without its question mark.
const CONCEALED: &str = "..";

/// Reads what follows the first byte as a manifest; that byte chooses the profile that is expected, if any.
///
/// # Panics
/// When a row has what no file may be called, a valid row is not written as what reads as the same, an error is not one
/// line or shows a query, or a query is kept.
pub fn check(data: &[u8]) {
    let Some((first, text)) = data.split_first() else { return };
    let expected = ManifestProfile::ALL.get(usize::from(*first) % (ManifestProfile::ALL.len() + 1)).copied();
    let limits = Limits { line_bytes: 4_096, rows: 1_000, bytes: 1 << 20 };
    let mut reader = Reader::new(text, limits, expected);
    let rows: Vec<ManifestRow> = reader.by_ref().map(|(_, row)| row).collect();
    let profile = reader.profile().or(expected);
    for row in &rows {
        assert_eq!(name::check(&row.name), Ok(()), "a file may be called {:?}", row.name);
    }
    match reader.finish() {
        Ok(summary) => {
            assert_eq!(summary.rows, u64::try_from(rows.len()).unwrap_or_default(), "each row is counted");
            assert_eq!(Some(summary.profile), profile, "the profile is the one that was read");
            assert!(summary.warnings.len() <= 100, "warnings are bounded");
            written_as_read(&rows, summary.profile);
            concealed(text, summary.profile);
        }
        Err(error) => refused(&error, &rows),
    }
    if let Err(error) = ListedFiles::read(text, limits) {
        refused(&error, &[]);
    }
}

/// Checks the error of a manifest, of which these rows are valid.
fn refused(error: &ManifestError, rows: &[ManifestRow]) {
    assert!((1..=MOST_PROBLEMS).contains(&error.problems().len()), "problems are counted: {error}");
    let whole = error.in_full(8_192);
    for text in error.problems().iter().map(ToString::to_string).chain([error.to_string(), whole]) {
        shown::error(&text, 32_768);
        for query in rows.iter().filter_map(|row| row.url.as_ref()?.reveal().query()) {
            assert!(query.len() < 24 || !text.contains(query), "a query is shown: {text}");
        }
    }
}

/// Writes those rows that can be written, and reads them again.
fn written_as_read(rows: &[ManifestRow], profile: ManifestProfile) {
    let mut writer = Writer::new(Vec::new(), profile).expect("memory can be written");
    let mut written = Vec::new();
    for row in rows {
        match writer.write(row) {
            Ok(()) => written.push(row.clone()),
            Err(error) => shown::error(&error, 4_096),
        }
    }
    let text = writer.finish().expect("memory can be written");
    let mut reader = Reader::new(&text[..], Limits::default(), None);
    let again: Vec<ManifestRow> = reader.by_ref().map(|(_, row)| row).collect();
    assert_eq!(again, written, "{}", String::from_utf8_lossy(&text));
    assert!(written.is_empty() || reader.finish().is_ok(), "{}", String::from_utf8_lossy(&text));
}

/// Checks the form that is kept of a valid manifest.
fn concealed(text: &[u8], profile: ManifestProfile) {
    if profile == ManifestProfile::Object {
        // Its rows have no URL.
        return;
    }
    let mut kept = Vec::new();
    conceal_queries(text, &mut kept).expect("memory can be written");
    for (line, row) in Reader::new(&kept[..], Limits::default(), Some(profile)) {
        let query = row.url.as_ref().and_then(|url| url.reveal().query());
        assert!(query.is_none_or(|query| query == CONCEALED), "line {line} keeps a query");
    }
}
