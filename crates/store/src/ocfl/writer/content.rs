//! Storing the content of one file of a new version.

use std::fmt;
use std::sync::Arc;

use futures::TryStreamExt;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::error::{Error, ErrorKind, Operation};
use crate::ocfl::error::OcflError;
use crate::ocfl::finish::is_race;
use crate::ocfl::inventory::Stored;
use crate::ocfl::object::{Object, is_absent};
use crate::ocfl::path;
use crate::store::{self, Chunks, Condition};

/// What a file of a new version has for content.
#[derive(Clone)]
pub struct NewFile {
    /// Its size in bytes, where it is known; content of another size is refused.
    pub size: Option<u64>,
    /// Digests that it must have. With a SHA-512, content that the object has already is not read at all: a caller that
    /// names one has computed it from this content.
    pub expected: Digests,
    /// Opens the content, each time from its first byte. It is read twice where an earlier attempt of the same job left
    /// something else under its name.
    pub open: Arc<dyn Fn() -> Chunks + Send + Sync>,
}

impl fmt::Debug for NewFile {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "NewFile {{ size: {:?}, expected: {:?} }}", self.size, self.expected)
    }
}

impl NewFile {
    /// Content that a function opens.
    pub fn new(open: impl Fn() -> Chunks + Send + Sync + 'static) -> Self {
        Self { size: None, expected: Digests::default(), open: Arc::new(open) }
    }
}

/// What is to be done for a file.
pub(super) enum Put {
    /// Nothing: the object has its content.
    Known(Digest),
    /// Its content is stored.
    Content(Box<ContentPut>),
}

/// What was done for a file.
pub(super) enum Done {
    /// Nothing: the object has content with this SHA-512.
    Known(Digest),
    /// Its content lies under this name in the folder of the job's content.
    Stored { name: String, stored: Stored },
}

/// Content on its way to a key that no other job uses.
pub(super) struct ContentPut {
    pub(super) object: Object,
    pub(super) folder: String,
    pub(super) name: String,
    /// Whether something lies under that name, from an earlier attempt or from a file that was replaced.
    pub(super) is_taken: bool,
    pub(super) file: NewFile,
}

impl Put {
    pub(super) async fn run(self) -> Result<Done, OcflError> {
        match self {
            Self::Known(digest) => Ok(Done::Known(digest)),
            Self::Content(put) => put.run().await,
        }
    }
}

impl ContentPut {
    async fn run(self) -> Result<Done, OcflError> {
        if !self.is_taken {
            match self.store(&self.name).await {
                Ok(done) => return Ok(done),
                Err(error) if is_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let sha512 = match self.file.expected.get(Algorithm::Sha512) {
            Some(sha512) => sha512.clone(),
            None => self.read_source().await?,
        };
        let mut name = self.name.clone();
        loop {
            let found = self.read_stored(&name).await?;
            let is_other = name != self.name;
            match found {
                Some((digests, size)) if digests.get(Algorithm::Sha512) == Some(&sha512) => {
                    return Ok(done(&name, &digests, size));
                }
                Some(_) if is_other => {
                    let why = format!("it is there already, with other content than the SHA-512 {sha512} of its name");
                    return Err(self.object.damaged(&format!("{}{name}", self.folder), why));
                }
                Some(_) => name = path::other_name(&sha512),
                None => return Ok(self.store(&name).await?),
            }
        }
    }

    async fn store(&self, name: &str) -> Result<Done, Error> {
        let put = store::Put {
            size: self.file.size,
            expected: self.file.expected.clone(),
            compute: vec![Algorithm::Sha256, Algorithm::Sha512],
            condition: Condition::IfAbsent,
            ..store::Put::default()
        };
        let item = self.object.item(&format!("{}{name}", self.folder));
        let written = self.object.store.put(&item, (self.file.open)(), put).await?;
        Ok(done(name, &written.digests, written.size))
    }

    /// The digests and the size of what lies under a name, by reading it.
    async fn read_stored(&self, name: &str) -> Result<Option<(Digests, u64)>, OcflError> {
        let item = self.object.item(&format!("{}{name}", self.folder));
        let content = match self.object.store.get(&item, None, None).await {
            Ok(content) => content,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let hashers = hash(content.chunks, &[Algorithm::Sha256, Algorithm::Sha512]).await;
        let hashers = hashers.map_err(|error| self.object.broken(&item, &error.to_string()))?;
        let size = hashers.bytes();
        Ok(Some((hashers.finish(), size)))
    }

    /// The SHA-512 of the content, after it was compared with what is expected of it.
    async fn read_source(&self) -> Result<Digest, OcflError> {
        let failed = |kind| {
            let subject = self.object.item(&format!("{}{}", self.folder, self.name)).to_string();
            Error { store: self.object.store.name().clone(), operation: Operation::Put, subject, kind }
        };
        let expected = &self.file.expected;
        let algorithms: Vec<_> = expected.iter().map(Digest::algorithm).chain([Algorithm::Sha512]).collect();
        let hashers = hash((self.file.open)(), &algorithms).await.map_err(|error| failed(ErrorKind::Source(error)))?;
        if let Some(size) = self.file.size.filter(|size| *size != hashers.bytes()) {
            return Err(failed(ErrorKind::Size { expected: size, found: hashers.bytes() }).into());
        }
        let digests = hashers.finish();
        if let Some((expected, found)) = expected.difference(&digests) {
            return Err(failed(ErrorKind::Digest { expected: expected.clone(), found: found.clone() }).into());
        }
        Ok(digests.get(Algorithm::Sha512).cloned().expect("it was requested"))
    }
}

fn done(name: &str, digests: &Digests, size: u64) -> Done {
    let stored = Stored { sha512: bytes(digests, Algorithm::Sha512), sha256: bytes(digests, Algorithm::Sha256), size };
    Done::Stored { name: name.to_owned(), stored }
}

/// The bytes of a digest that was requested.
fn bytes<const N: usize>(digests: &Digests, algorithm: Algorithm) -> [u8; N] {
    let digest = digests.get(algorithm).expect("it was requested");
    digest.as_bytes().try_into().expect("the length is that of the algorithm's digests")
}

async fn hash(mut chunks: Chunks, algorithms: &[Algorithm]) -> std::io::Result<Hashers> {
    let mut hashers = Hashers::new(algorithms.iter().copied());
    while let Some(chunk) = chunks.try_next().await? {
        hashers.update(&chunk);
    }
    Ok(hashers)
}
