//! Manifests in the form checkm 0.7: what a depositor sends, what lies in a container, what storing is given.
//!
//! A manifest is lines of UTF-8: headers that begin with `#%`, comments that begin with `#`, blank lines, and rows of
//! columns between `|`. [`Reader`] takes what the daemons in production take, and more; [`Writer`] writes one form.
//!
//! # Reading
//! - Columns count by their position, which the profile fixes; other headers than `#%profile` and `#%eof` are ignored.
//! - Trailing columns may be missing, and columns too many are ignored. White space around columns is none of theirs.
//! - In all columns but the URL, `%20` is a blank and `%7c` a bar; no other escape is known.
//! - The last line that is neither blank nor a comment is `#%eof`, in any case; without it the manifest was cut off.
//! - A byte order mark is skipped; lines end with LF, CR LF or CR.
//!
//! Problems are collected with their lines and columns, up to [`MOST_PROBLEMS`], and reading goes on behind them.

mod add;
mod column;
mod conceal;
mod contents;
mod lines;
mod names;
mod problem;
mod profile;
mod read;
mod row;
mod write;

#[cfg(test)]
mod tests;

pub use add::AddWriter;
pub use conceal::conceal_queries;
pub use contents::{Difference, FoundFile, ListedFiles};
pub(crate) use lines::{BoundedLine, Lines};
pub(crate) use names::Names;
pub use names::Warning;
pub use problem::{MOST_PROBLEMS, ManifestError, Problem, ProblemKind};
pub(crate) use problem::{PROBLEMS_BYTES, in_one_line, uris};
pub use profile::ManifestProfile;
pub use read::{Limits, Reader, Summary};
pub use row::ManifestRow;
pub use write::{WriteError, Writer};
