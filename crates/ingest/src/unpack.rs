//! Unpacking what depositors pack: into an open directory, in a stream, within limits, and nothing but plain files.
//!
//! Refused are names that [`crate::name`] refuses, links and devices, encrypted entries, names that are there twice,
//! and more entries or bytes than allowed. An archive within is left as it is. An attempt that was killed leaves files
//! that the next one replaces: done again, the result is the same.

pub mod bag;
mod budget;
pub mod manifest;
mod output;
mod tarred;
mod zipped;

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64};

use queuekeeper_queue::record::ENTRY;
use queuekeeper_store::{Algorithm, Digests};

use crate::file_root::FileRoot;
use crate::kind::{ArchiveFormat, Compression, ContainerFormat};
use crate::name::{NameError, shown};
use output::Output;

/// The largest window that a compressed stream may need, as a power of two: 128 MiB of memory.
const WINDOW_LOG: u32 = 27;

/// How many names a warning lists.
const MOST_NAMED: usize = 10;

/// What an archive may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many entries it may have, folders included.
    pub entries: u64,
    /// How many bytes its files may have together: what was announced, or granted.
    pub bytes: u64,
    /// How many times its own size they may have, if that is more than [`Limits::FREE`].
    pub ratio: u64,
}

impl Limits {
    /// How many bytes any archive may become, however small it is.
    pub const FREE: u64 = 64 << 20;

    /// The usual limits with these bytes.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self { entries: 400_000, bytes, ratio: 500 }
    }
}

/// What others see of an unpacking, and how they stop it.
#[derive(Debug, Default)]
pub struct Progress {
    /// How many bytes are written.
    pub written: AtomicU64,
    /// Set, it ends with [`ArchiveCause::Stopped`] soon.
    pub stop: AtomicBool,
}

/// What was in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The files, in their order.
    pub files: Vec<UnpackedFile>,
    /// Folders without files, which no object keeps.
    pub empty_folders: Vec<String>,
    /// Pairs of names that differ by Unicode normalization only, the first 100.
    pub similar: Vec<(String, String)>,
    /// The bytes of all files.
    pub bytes: u64,
}

impl Unpacked {
    /// What is odd about the archive, and no reason to refuse it: one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let pair = |(one, other): &(String, String)| format!("{} and {}", in_quotes(one), in_quotes(other));
        let similar = named("names that differ by Unicode normalization only", &self.similar, pair);
        let empty = named("empty folders, which are not stored", &self.empty_folders, |name| in_quotes(name));
        similar.into_iter().chain(empty).collect()
    }
}

/// How many there are, and the names of the first; `None` where there are none.
fn named<T>(what: &str, names: &[T], in_words: impl Fn(&T) -> String) -> Option<String> {
    let first: Vec<String> = names.iter().take(MOST_NAMED).map(in_words).collect();
    let more = names.len().saturating_sub(first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!first.is_empty()).then(|| format!("{what}: {}{more}", first.join(", ")))
}

fn in_quotes(name: &str) -> String {
    format!("\"{}\"", shown(name))
}

/// A file that was in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedFile {
    /// Its name, relative to the archive.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its digests by the requested algorithms.
    pub digests: Digests,
}

/// Why an archive was not unpacked: one sentence.
#[derive(Debug)]
pub struct ArchiveError {
    /// The entry, where it is one.
    entry: Option<String>,
    cause: ArchiveCause,
}

/// What stands in the way.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ArchiveCause {
    #[error("its name does not end with any of {known}", known = ContainerFormat::suffixes())]
    UnknownFormat,
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("it is {0}; an archive may hold files and folders only")]
    Special(&'static str),
    #[error("it is encrypted")]
    Encrypted,
    #[error("its name occurs twice")]
    Repeated,
    #[error("its name is used for both a file and a folder")]
    Conflict,
    #[error("there are more than {0} entries")]
    TooManyEntries(u64),
    #[error("the names have too many parts")]
    TooManyParts,
    #[error("the files have more than {0} bytes, the amount that was announced or granted")]
    TooManyBytes(u64),
    #[error("the files have more than {0} times the bytes of the archive")]
    Ratio(u64),
    #[error("entries overlap each other")]
    Overlap,
    #[error("the archive was cut off; send all of it")]
    CutOff,
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    #[error("it was stopped")]
    Stopped,
    #[error("cannot read the archive: {0}")]
    Read(io::Error),
    #[error("cannot write: {0}")]
    Write(io::Error),
}

impl ArchiveError {
    fn whole(cause: ArchiveCause) -> Self {
        Self { entry: None, cause }
    }

    fn of(entry: &str, cause: ArchiveCause) -> Self {
        Self { entry: Some(shown(entry)), cause }
    }

    /// What stands in the way.
    #[must_use]
    pub fn cause(&self) -> &ArchiveCause {
        &self.cause
    }

    /// Whether the archive itself is at fault, so that another attempt is of no use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self.cause, ArchiveCause::Stopped | ArchiveCause::Read(_) | ArchiveCause::Write(_))
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(to, "{ENTRY} {entry:?}: {}", self.cause),
            None => write!(to, "cannot unpack the archive: {}", self.cause),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl ArchiveCause {
    /// What reading has failed by: the disk, or what is read.
    fn of_reading(error: io::Error) -> Self {
        match error.kind() {
            _ if error.raw_os_error().is_some() => Self::Read(error),
            io::ErrorKind::UnexpectedEof => Self::CutOff,
            _ => Self::Damaged(shown(&error.to_string())),
        }
    }
}

/// Unpacks a container into a directory, in the form that its name indicates. It blocks on the disk.
///
/// # Errors
/// When the container is refused, damaged, or cannot be read or written. What was written stays.
pub fn unpack(
    source: File,
    file_name: &str,
    file_root: &FileRoot,
    limits: &Limits,
    algorithms: &[Algorithm],
    progress: &Progress,
) -> Result<Unpacked, ArchiveError> {
    let unknown = || ArchiveError::whole(ArchiveCause::UnknownFormat);
    let (stem, format) = ContainerFormat::split_name(file_name).ok_or_else(unknown)?;
    let read = |error| ArchiveError::whole(ArchiveCause::Read(error));
    let size = source.metadata().map_err(read)?.len();
    let mut output = Output::new(file_root, limits, size, algorithms, progress);
    match format {
        ContainerFormat::Archive(ArchiveFormat::Zip) => zipped::unpack(source, limits, &mut output)?,
        ContainerFormat::Archive(ArchiveFormat::Tar(compression)) => {
            tarred::unpack(plain(source, compression).map_err(read)?, &mut output)?;
        }
        ContainerFormat::Single(compression) => {
            let mut content = plain(source, Some(compression)).map_err(read)?;
            output.file(stem, None, &mut content)?;
        }
    }
    output.finish()
}

/// The bytes of a stream without its compression. Several streams behind each other are one, as parallel compressors
/// write them.
fn plain(source: File, compression: Option<Compression>) -> io::Result<Box<dyn Read>> {
    let source = BufReader::with_capacity(256 * 1024, source);
    Ok(match compression {
        None => Box::new(source),
        Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
        Some(Compression::Bzip2) => Box::new(bzip2::bufread::MultiBzDecoder::new(source)),
        Some(Compression::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}
