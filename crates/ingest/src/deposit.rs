//! A deposit, from what a depositor has to a batch in the queue.
//!
//! What is uploaded is on the disk, durable and compared with its digest, before the batch exists. Repeated with the same
//! UUID, a deposit is the same batch.

use std::fs::{self, File};
use std::io::{self, Read};

use jiff::Timestamp;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::{Error as QueueError, Queue};
use queuekeeper_store::{Digest, Digests, Hashers};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::directory::{self, WorkingStorage};
use crate::kind::DepositType;
use crate::name::{self, NameError};
use crate::url::ContentUrl;

/// How much of an upload is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// How much of a payload tells its type, in bytes.
const START: usize = 4_096;

/// What is deposited.
#[derive(Clone, Debug, Default)]
pub struct NewDeposit {
    /// The collection's profile.
    pub profile: String,
    /// The type; guessed where it is not given.
    pub kind: Option<DepositType>,
    /// The name of the file.
    pub file_name: String,
    /// Who deposits it.
    pub submitter: String,
    /// The object's title.
    pub title: Option<String>,
    /// Its creator.
    pub creator: Option<String>,
    /// Its date, in the depositor's words.
    pub date: Option<String>,
    /// A note for people.
    pub note: Option<String>,
    /// The object's ARK, where it has one.
    pub primary_id: Option<String>,
    /// The ids that the owner knows the object by.
    pub local_ids: Vec<String>,
    /// The payload's digest.
    pub digest: Option<Digest>,
    /// The addresses that the report goes to.
    pub notification: Option<String>,
    /// Whether the object's other files are carried over.
    pub is_update: bool,
}

/// Why a deposit was not made.
#[derive(Debug, thiserror::Error)]
pub enum DepositError {
    /// The file's name is none that a deposit may have.
    #[error("file name {name:?}: {error}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// What came is not what was announced.
    #[error("expected the {algorithm} digest {expected}, found {found}", algorithm = expected.algorithm())]
    Digest {
        /// What was announced.
        expected: Digest,
        /// What came.
        found: Digest,
    },
    /// The working storage cannot be written, or the payload not be read.
    #[error("cannot {what}: {error}")]
    Disk {
        /// What was being done.
        what: &'static str,
        /// What happened.
        error: io::Error,
    },
    /// The batch cannot be made.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// A deposit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The batch's znode.
    pub batch: BatchId,
    /// The id that the depositor knows it by.
    pub id: String,
    /// What it was taken for.
    pub kind: DepositType,
}

impl NewDeposit {
    /// Deposits a file: copied to the working storage first.
    ///
    /// # Errors
    /// When it is refused or cannot be made; then no batch exists, and nothing is left of the upload.
    pub async fn upload(
        &self,
        queue: &Queue,
        storage: &WorkingStorage,
        uuid: Uuid,
        mut payload: impl Read + Send + 'static,
    ) -> Result<Receipt, DepositError> {
        self.check()?;
        let (directory, file_name) = (storage.batch(&id_of(uuid)), self.file_name.clone());
        let algorithm = self.digest.as_ref().map(Digest::algorithm);
        let written = directory.clone();
        let copied = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(&written)?;
            let mut hashers = Hashers::new(algorithm);
            let (temporary, path) = (written.join(format!(".{file_name}.upload")), written.join(&file_name));
            let mut file = File::create(&temporary)?;
            let (mut piece, mut start) = (vec![0; PIECE], Vec::new());
            loop {
                let bytes = match payload.read(&mut piece) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                start.extend_from_slice(&piece[..bytes.min(START - start.len())]);
                hashers.update(&piece[..bytes]);
                io::Write::write_all(&mut file, &piece[..bytes])?;
            }
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            directory::sync_folder_of(&path)?;
            directory::sync_folder_of(&written)?;
            Ok((start, hashers.bytes(), hashers.finish()))
        });
        let copied = copied.await.map_err(io::Error::other).flatten();
        let made = match copied {
            Ok((start, size, digests)) => match self.compare(&digests) {
                Ok(()) => self.submit(queue, uuid, None, &start, Some(size)).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(DepositError::Disk { what: "keep the upload", error }),
        };
        // After a lost connection the batch may exist, and needs it.
        if made.as_ref().is_err_and(|error| !matches!(error, DepositError::Queue(_))) {
            let _ = fs::remove_dir_all(&directory);
        }
        made
    }

    /// Deposits what lies at a URL, which the daemons fetch.
    ///
    /// # Errors
    /// When it is refused or cannot be made.
    pub async fn refer(&self, queue: &Queue, uuid: Uuid, url: &ContentUrl) -> Result<Receipt, DepositError> {
        self.check()?;
        self.submit(queue, uuid, Some(url), &[], None).await
    }

    fn check(&self) -> Result<(), DepositError> {
        let wrong = |error| DepositError::Name { name: name::shown(&self.file_name), error };
        name::check(&self.file_name).map_err(wrong)?;
        // It is a file of the batch's directory, beside those of its jobs, where what begins with a dot is ours.
        if self.file_name.contains('/') || self.file_name.starts_with('.') || self.file_name.len() > 240 {
            return Err(wrong(NameError::Ambiguous));
        }
        Ok(())
    }

    fn compare(&self, found: &Digests) -> Result<(), DepositError> {
        let Some(expected) = &self.digest else { return Ok(()) };
        match found.get(expected.algorithm()) {
            Some(found) if found != expected => {
                Err(DepositError::Digest { expected: expected.clone(), found: found.clone() })
            }
            _ => Ok(()),
        }
    }

    async fn submit(
        &self,
        queue: &Queue,
        uuid: Uuid,
        url: Option<&ContentUrl>,
        start: &[u8],
        size: Option<u64>,
    ) -> Result<Receipt, DepositError> {
        let kind = self.kind.unwrap_or_else(|| DepositType::guess(&self.file_name, start));
        let id = id_of(uuid);
        let mut all: Map<String, Value> = Map::new();
        let texts = [
            ("batchID", Some(id.clone())),
            ("profile", Some(self.profile.clone())),
            ("type", Some(kind.to_string())),
            ("filename", Some(self.file_name.clone())),
            ("submitter", Some(self.submitter.clone())),
            ("submissionDate", Some(Timestamp::now().to_string())),
            ("size", size.map(|size| size.to_string())),
            ("title", self.title.clone()),
            ("creator", self.creator.clone()),
            ("date", self.date.clone()),
            ("note", self.note.clone()),
            ("objectID", self.primary_id.clone()),
            ("localID", Some(self.local_ids.join(";"))),
            ("digestType", self.digest.as_ref().map(|digest| digest.algorithm().to_string())),
            ("digestValue", self.digest.as_ref().map(Digest::hex)),
            ("notification", self.notification.clone()),
            ("payload_url", url.map(|url| url.reveal().to_string())),
        ];
        for (key, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                all.insert(key.to_owned(), text.into());
            }
        }
        all.insert("update".to_owned(), self.is_update.into());
        let data = Value::Object(all).to_string().into_bytes();
        let batch = match queue.create_batch(&data, Timestamp::now()).await {
            // The same deposit was made before.
            Err(QueueError::Conflict(conflict)) => {
                queue.find_batch(&id).await?.ok_or(QueueError::Conflict(conflict))?
            }
            made => made?,
        };
        Ok(Receipt { batch, id, kind })
    }
}

/// The id that a depositor knows a batch by.
#[must_use]
pub fn id_of(uuid: Uuid) -> String {
    format!("bid-{uuid}")
}
