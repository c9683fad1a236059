//! What is deposited: found by the arguments, and read from any offset on.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use queuekeeper_ingest::pack::Pack;
use queuekeeper_ingest::url::ContentUrl;

use crate::cli::UsageError;

/// What is deposited.
pub(super) enum Payload {
    /// What lies at a URL.
    Url(ContentUrl),
    /// Standard input.
    Input,
    /// A file, or what can be read like one, such as a pipe; by its path.
    File(String),
    /// Files and directories.
    Pack(Arc<Pack>),
}

impl Payload {
    /// The payload that the arguments name, of which there is one at least.
    pub(super) fn find(arguments: &[String]) -> anyhow::Result<Self> {
        let is_alone = |argument: &String| argument == "-" || is_url(argument);
        match arguments {
            [one] if one == "-" => Ok(Self::Input),
            [one] if is_url(one) => {
                let url = one.parse().map_err(|error| UsageError::flag("FILE|DIR|URL", error))?;
                Ok(Self::Url(url))
            }
            [one] if Path::new(one).is_dir() => Ok(Self::Pack(Arc::new(Pack::of_directory(Path::new(one))?))),
            [one] => Ok(Self::File(one.clone())),
            several if several.iter().any(is_alone) => {
                Err(UsageError::flag("FILE|DIR|URL", "a URL or standard input cannot be combined with others").into())
            }
            several => Ok(Self::Pack(Arc::new(Pack::of_paths(several)?))),
        }
    }

    /// The name that it has of its own.
    pub(super) fn file_name(&self) -> Option<String> {
        match self {
            Self::Url(url) => url.file_name(),
            Self::File(path) => Path::new(path).file_name()?.to_str().map(ToOwned::to_owned),
            Self::Input | Self::Pack(_) => None,
        }
    }

    /// Its content, which can be read once; that of a URL is empty.
    pub(super) fn read_once(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Url(_) => Box::new(io::empty()),
            Self::Input => Box::new(io::stdin()),
            Self::File(path) => Box::new(open(path)?),
            Self::Pack(pack) => Box::new(pack.read_from(0)),
        })
    }

    /// The file with its content: where it lies, or copied from standard input or a pipe, which can be read once only.
    /// `None` for a URL, and for several files.
    pub(super) async fn file(&self) -> anyhow::Result<Option<File>> {
        let mut once: Box<dyn Read + Send> = match self {
            Self::Url(_) | Self::Pack(_) => return Ok(None),
            Self::Input => Box::new(io::stdin()),
            Self::File(path) => {
                let file = open(path)?;
                if file.metadata()?.is_file() {
                    return Ok(Some(file));
                }
                Box::new(file)
            }
        };
        let copied = tokio::task::spawn_blocking(move || {
            let mut copy = tempfile::tempfile()?;
            io::copy(&mut once, &mut copy)?;
            copy.rewind()?;
            Ok::<_, io::Error>(copy)
        });
        copied.await?.map(Some).context("cannot copy the content")
    }

    /// Its content, which can be read from any offset on; `None` for a URL.
    pub(super) async fn content(&self) -> anyhow::Result<Option<Content>> {
        if let Self::Pack(pack) = self {
            return Ok(Some(Content::Pack(Arc::clone(pack))));
        }
        let Some(file) = self.file().await? else { return Ok(None) };
        let size = file.metadata()?.len();
        Ok(Some(Content::File(Arc::new(file), size)))
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn open(path: &str) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {path}"))
}

/// Content that can be read from any offset on.
#[derive(Clone)]
pub(super) enum Content {
    /// A file, and how many bytes it has.
    File(Arc<File>, u64),
    /// A tar that is made on the way.
    Pack(Arc<Pack>),
}

impl Content {
    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File(_, size) => *size,
            Self::Pack(pack) => pack.size(),
        }
    }

    /// The file, where it is one; `None` for several files.
    ///
    /// # Errors
    /// When it cannot be used a second time.
    pub(super) fn file(&self) -> io::Result<Option<File>> {
        match self {
            Self::File(file, _) => file.try_clone().map(Some),
            Self::Pack(_) => Ok(None),
        }
    }

    /// What is behind an offset.
    pub(super) fn read_from(&self, offset: u64) -> Box<dyn Read + Send> {
        match self {
            Self::File(file, size) => Box::new(Positioned { file: Arc::clone(file), at: offset }.take(size - offset)),
            Self::Pack(pack) => Box::new(pack.read_from(offset)),
        }
    }
}

/// A file from an offset on, which others may read at the same time.
struct Positioned {
    file: Arc<File>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(to, self.at)?;
        if read == 0 && !to.is_empty() {
            return Err(io::Error::other("the file changed while it was being deposited"));
        }
        self.at += read as u64;
        Ok(read)
    }
}
