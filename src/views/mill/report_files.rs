//! The files of a report, read from the store in which they lie.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use queuekeeper_mill::bit::report::fields;
use queuekeeper_store::store::{Chunks, Item};
use queuekeeper_store::{ErrorKind, Store, StoreName};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::{Mill, ViewError};
use crate::views::csv;
use crate::views::parameter::{OneOf, labelled};

/// Opens a store of the configuration; the error is one line.
pub(crate) type OpenStore = Arc<dyn Fn(StoreName) -> BoxFuture<'static, Result<Arc<dyn Store>, String>> + Send + Sync>;

/// A line of a report is never so long.
const MOST_LINE: usize = 1 << 20;

/// What of a report is wanted as a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// The table of all items, as it is stored.
    #[default]
    Tsv,
    /// The table of what it covers, as it is stored.
    Coverage,
    /// Both as one document, as it is stored.
    Json,
    /// The table of all items as CSV.
    Csv,
    /// The checks as events of PREMIS, as they are stored.
    Premis,
    /// Its seal, as it is stored.
    Seal,
}

impl ReportFormat {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [Self::Tsv, Self::Coverage, Self::Json, Self::Csv, Self::Premis, Self::Seal];

    /// Its name.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Tsv => "tsv",
            Self::Coverage => "coverage",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Premis => "premis",
            Self::Seal => "seal",
        }
    }

    /// What it is, for a link.
    pub(crate) fn help(self) -> &'static str {
        match self {
            Self::Tsv => "All items (TSV)",
            Self::Coverage => "Coverage (TSV)",
            Self::Json => "Both (JSON)",
            Self::Csv => "All items (CSV)",
            Self::Premis => "Events (PREMIS)",
            Self::Seal => "Seal (JSON)",
        }
    }

    /// The format of the file in the store that it is made of.
    fn stored(self) -> &'static str {
        match self {
            Self::Tsv | Self::Csv => Self::Tsv.label(),
            Self::Coverage | Self::Json | Self::Premis | Self::Seal => self.label(),
        }
    }
}

labelled! {
    ReportFormat: ReportFormat::ALL, ReportFormat::label, Self::default();
}

type Format = OneOf<ReportFormat>;

/// Which file of a report.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ReportFile {
    /// `tsv`, the table of all items; `coverage`, the table of what it covers; `json`, both as one document; `csv`, the
    /// table of all items for spreadsheets; `premis`, the checks as events of PREMIS; `seal`, which names the other
    /// files by their SHA-256.
    #[param(inline)]
    pub(crate) format: Format,
}

/// A file of a report that is being read.
pub(crate) struct OpenReport {
    /// Its name.
    pub(crate) name: String,
    /// How many bytes it has, where that is known.
    pub(crate) length: Option<u64>,
    /// Its content.
    pub(crate) chunks: BoxStream<'static, io::Result<Bytes>>,
}

impl Mill {
    /// Opens a file of a report. No more of it than a line and a chunk is in memory at once.
    ///
    /// # Errors
    /// Where there is no such report, or its file is not in the store any more, and when catalogue or store cannot be
    /// read.
    pub(crate) async fn open_report(&self, number: &str, format: ReportFormat) -> Result<OpenReport, ViewError> {
        let known = self.known_report(number).await?;
        let file = known.file(format.stored());
        let none = || ViewError::not_found(format!("The files of report {number} were not found in the store."));
        let file = file.ok_or_else(none)?;
        let (store, space, key) = (file.store.parse::<StoreName>(), file.space.parse(), file.key.parse());
        let (Ok(store), Ok(space), Ok(key)) = (store, space, key) else { return Err(none()) };
        let failed = |why: &dyn std::fmt::Display| {
            tracing::error!(report = number, %store, key = file.key, "cannot read a file of a report: {why}");
            ViewError::Unavailable("The file cannot be read from its store; the log has the cause.".to_owned())
        };
        let opened = (self.0.open)(store.clone()).await.map_err(|why| failed(&why))?;
        let content = opened.get(&Item::new(space, key), None, None).await.map_err(|error| match error.kind {
            ErrorKind::NotFound | ErrorKind::NoSpace => none(),
            _ => failed(&error),
        })?;
        let name = known.file_name(&file);
        Ok(match format {
            ReportFormat::Csv => OpenReport {
                name: format!("{}csv", name.trim_end_matches("tsv")),
                length: None,
                chunks: as_csv(content.chunks).boxed(),
            },
            ReportFormat::Tsv
            | ReportFormat::Coverage
            | ReportFormat::Json
            | ReportFormat::Premis
            | ReportFormat::Seal => OpenReport { name, length: Some(content.properties.size), chunks: content.chunks },
        })
    }
}

/// The lines of a table of a report as CSV.
fn as_csv(chunks: Chunks) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let lines = stream::unfold(Some((chunks, Vec::new())), |state| async move {
        let (mut chunks, mut left) = state?;
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    left.extend_from_slice(&chunk);
                    let whole = left.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    if left.len() - whole > MOST_LINE {
                        return Some((Err(invalid("has a line that is too long")), None));
                    }
                    if whole > 0 {
                        let rest = left.split_off(whole);
                        return Some(match records(&left) {
                            Ok(records) => (Ok(records), Some((chunks, rest))),
                            Err(error) => (Err(error), None),
                        });
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None if left.is_empty() => return None,
                None => return Some((Err(invalid("ends within a line")), None)),
            }
        }
    });
    // A body may be polled again after its end, which a stream of this kind does not take.
    lines.fuse()
}

fn records(lines: &[u8]) -> io::Result<Bytes> {
    let lines = std::str::from_utf8(lines).map_err(|_| invalid("is not text"))?;
    Ok(lines.lines().map(|line| csv::record(&fields(line))).collect::<String>().into())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the table of the report {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn csv_of(chunks: &[&'static [u8]]) -> Result<String, String> {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk))).collect();
        let parts = as_csv(stream::iter(chunks).boxed()).collect::<Vec<_>>().await;
        parts
            .into_iter()
            .map(|part| part.map(|part| String::from_utf8(part.to_vec()).unwrap()))
            .collect::<Result<_, _>>()
            .map_err(|error: io::Error| error.to_string())
    }

    #[tokio::test]
    async fn a_table_is_the_same_as_csv_wherever_it_is_cut_and_has_no_formulas() {
        let expected = "key,detail\n'=1+1,\"a, \"\"b\"\"\"\n\u{e9},'\\tx\\n\\\\\n";
        let table = "key\tdetail\n=1+1\ta, \"b\"\n\u{e9}\t\\tx\\n\\\\\\\\\n".as_bytes();
        for at in 0..=table.len() {
            let (one, other) = table.split_at(at);
            assert_eq!(csv_of(&[one, &[], other]).await.as_deref(), Ok(expected), "{at}");
        }
        assert_eq!(csv_of(&[]).await.as_deref(), Ok(""));
    }

    #[tokio::test]
    async fn a_table_that_is_cut_off_or_is_none_ends_with_an_error() {
        static LONG: [u8; MOST_LINE + 1] = [b'a'; MOST_LINE + 1];
        for (chunks, why) in [
            (&[&b"a\tb\nc"[..]][..], "ends within a line"),
            (&[b"\xff\n"], "is not text"),
            (&[&LONG], "has a line that is too long"),
        ] {
            let error = csv_of(chunks).await.unwrap_err();
            assert!(error.ends_with(why), "{error}");
        }
    }
}
