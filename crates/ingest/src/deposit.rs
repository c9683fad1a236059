//! A deposit, from what a depositor has to a batch in the queue.
//!
//! What is uploaded is on the disk, durable and compared with its digest, before the batch exists. Repeated with the
//! same UUID, a deposit is the same batch.

use std::io::{self, Read};

use jiff::Timestamp;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{Error as QueueError, Queue};
use queuekeeper_store::Digest;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::kind::DepositType;
use crate::manifest::{self, ManifestProfile};
use crate::name::{self, NameError};
use crate::spec::{PAYLOAD_SHA256, VOLUME, id_of, object_of, volume_of};
use crate::url::{ContentUrl, conceal};
use crate::working::{WorkingStorage, secret};

mod check;
mod same;
mod upload;

pub use check::{DepositFinding, Findings, MOST_REQUESTS};
use upload::Whole;
pub use upload::{Upload, abandoned};

/// How much of an upload is copied at once, in bytes.
const PIECE: usize = 256 * 1024;

/// Where the content of a deposit is.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// At a URL, whose query is kept on this volume, where it has one.
    Url(&'a ContentUrl, Option<Uuid>),
    /// Uploaded to this volume.
    Volume(Uuid),
}

impl<'a> Source<'a> {
    fn url(&self) -> Option<&'a ContentUrl> {
        match self {
            Self::Url(url, _) => Some(url),
            Self::Volume(_) => None,
        }
    }

    fn volume(&self) -> Option<Uuid> {
        match self {
            Self::Url(_, volume) => *volume,
            Self::Volume(volume) => Some(*volume),
        }
    }
}

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
    /// What else the submission says, such as `DCcreator`; of a key that the other fields set, theirs counts.
    pub more: Map<String, Value>,
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
    /// A manifest without a type, whose profile is none that a deposit can have.
    #[error(
        "it begins like a manifest, but {profile}; expected one of {known}; to store it as it is, set its type to file",
        known = manifest::uris(DepositType::ALL.into_iter().filter_map(DepositType::manifest))
    )]
    Manifest {
        /// What is wrong with its profile.
        profile: String,
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
    /// The batch of this key or UUID is another deposit.
    #[error("{id} is a different deposit: its {what} differs; use another key or UUID for this one")]
    Other {
        /// The deposit that was made with it.
        id: String,
        /// The first field that differs.
        what: &'static str,
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
        let storage = storage.clone();
        let copied = blocking("keep the upload", move || {
            let mut upload = Upload::open(&storage, uuid)?;
            // What another attempt has left is of no use: this one begins anew.
            upload.clear()?;
            match copy(&mut payload, &mut upload) {
                Ok(()) => Ok(upload),
                Err(error) => {
                    let _ = upload.remove();
                    Err(error)
                }
            }
        });
        self.submit_upload(queue, uuid, copied.await?).await
    }

    /// Deposits what has been uploaded.
    ///
    /// # Errors
    /// When it is refused or cannot be made; then no batch exists, and nothing is left of the upload. After a lost
    /// connection the batch may exist, and what was uploaded stays.
    pub async fn submit_upload(&self, queue: &Queue, uuid: Uuid, upload: Upload) -> Result<Receipt, DepositError> {
        let (file_name, expected, checked) = (self.file_name.clone(), self.digest.clone(), self.check());
        let known = queue.find_batch(&id_of(uuid)).await?;
        let (mut upload, whole) = blocking("read the upload", move || {
            let mut upload = upload;
            let whole = checked.and_then(|()| upload.check(expected.as_ref()));
            Ok((upload, whole))
        })
        .await?;
        let whole = whole.and_then(|whole| self.check_start(&whole.start).map(|()| whole));
        let made = match (whole, known) {
            (Err(error), _) => Err(error),
            // The same deposit was made before, and its daemons may be reading what came then.
            (Ok(whole), Some(batch)) => self.check_same(queue, batch, None, Some(&whole)).await.map(|()| Receipt {
                batch,
                id: id_of(uuid),
                kind: self.kind_of(&whole.start),
            }),
            (Ok(whole), None) => {
                let is_manifest = self.kind_of(&whole.start).manifest().is_some();
                let kept = blocking("keep the upload", move || upload.keep(&file_name, is_manifest).map(|()| upload));
                upload = kept.await?;
                self.submit(queue, uuid, Source::Volume(upload.volume()), Some(&whole)).await
            }
        };
        // After a lost connection the batch may exist, and needs what came.
        if matches!(made, Err(DepositError::Queue(_))) {
            return made;
        }
        blocking("remove the upload", move || upload.remove()).await?;
        made
    }

    /// Deposits what lies at a URL, which the daemons fetch. The query of the URL, which may be a signature, is kept in
    /// the working storage. Of a deposit that was made before, a query of now takes the place of the kept one while no
    /// daemon has begun with it.
    ///
    /// # Errors
    /// When it is refused or cannot be made; also where the URL has a query, and there is no working storage.
    pub async fn refer(
        &self,
        queue: &Queue,
        storage: Option<&WorkingStorage>,
        uuid: Uuid,
        url: &ContentUrl,
    ) -> Result<Receipt, DepositError> {
        self.check()?;
        if !url.has_query() {
            return self.submit(queue, uuid, Source::Url(url, None), None).await;
        }
        let (what, id) = ("keep the query of the URL", id_of(uuid));
        let none = || DepositError::Disk { what, error: io::Error::other("there is no working storage") };
        let storage = storage.ok_or_else(none)?;
        let (directory, kept) = (storage.batch(&id), url.clone());
        let keep = move || secret::keep_url(&directory, &kept);
        if let Some(batch) = queue.find_batch(&id).await? {
            self.check_same(queue, batch, Some(url), None).await?;
            let known = queue.load_batch(batch).await?;
            let all = object_of("submission", known.submission.as_deref().unwrap_or_default()).unwrap_or_default();
            // What is kept elsewhere, or was removed with the batch's directory, is of no use here.
            if known.state() == Some(BatchState::Pending) && volume_of(&all) == Some(storage.volume()) {
                blocking(what, keep).await?;
            }
            return Ok(Receipt { batch, id, kind: self.kind_of(&[]) });
        }
        blocking(what, keep).await?;
        self.submit(queue, uuid, Source::Url(url, Some(storage.volume())), None).await
    }

    /// Checks what can be checked before anything of the content is there.
    ///
    /// # Errors
    /// When it is refused.
    pub fn check(&self) -> Result<(), DepositError> {
        let wrong = |error| DepositError::Name { name: name::shown(&self.file_name), error };
        name::check(&self.file_name).map_err(wrong)?;
        // It is a file of the batch's directory, beside those of its jobs, where what begins with a dot is ours.
        if self.file_name.contains('/') || self.file_name.starts_with('.') || self.file_name.len() > 240 {
            return Err(wrong(NameError::NotPlain));
        }
        Ok(())
    }

    /// Checks that what is deposited without a type is no manifest that would be taken for a file.
    ///
    /// # Errors
    /// For a content that begins as a manifest does, and names no profile that a deposit can have.
    pub fn check_start(&self, start: &[u8]) -> Result<(), DepositError> {
        if self.kind.is_some() || self.kind_of(start).manifest().is_some() {
            return Ok(());
        }
        match ManifestProfile::named_in(start) {
            None => Ok(()),
            Some("") => Err(DepositError::Manifest { profile: "has no line '#%profile | URI'".to_owned() }),
            Some(uri) => {
                let uri = conceal(&name::shown(uri));
                Err(DepositError::Manifest { profile: format!("its profile {uri:?} is not one for deposits") })
            }
        }
    }

    /// The type, guessed from its first bytes where it is not given.
    #[must_use]
    pub fn kind_of(&self, start: &[u8]) -> DepositType {
        self.kind.unwrap_or_else(|| DepositType::guess(&self.file_name, start))
    }

    async fn submit(
        &self,
        queue: &Queue,
        uuid: Uuid,
        source: Source<'_>,
        whole: Option<&Whole>,
    ) -> Result<Receipt, DepositError> {
        let kind = self.kind_of(whole.map(|whole| whole.start.as_slice()).unwrap_or_default());
        let id = id_of(uuid);
        let mut all = self.more.clone();
        let texts = [
            ("batchID", Some(id.clone())),
            ("profile", Some(self.profile.clone())),
            ("type", Some(kind.to_string())),
            ("filename", Some(self.file_name.clone())),
            ("submitter", Some(self.submitter.clone())),
            ("submissionDate", Some(Timestamp::now().to_string())),
            ("size", whole.map(|whole| whole.size.to_string())),
            (PAYLOAD_SHA256, whole.and_then(|whole| whole.sha256.as_ref()).map(Digest::hex)),
            ("title", self.title.clone()),
            ("creator", self.creator.clone()),
            ("date", self.date.clone()),
            ("note", self.note.clone()),
            ("objectID", self.primary_id.clone()),
            ("localID", Some(self.local_ids.join(";"))),
            ("digestType", self.digest.as_ref().map(|digest| digest.algorithm().to_string())),
            ("digestValue", self.digest.as_ref().map(Digest::hex)),
            ("notification", self.notification.clone()),
            ("payload_url", source.url().map(ContentUrl::without_query)),
            (VOLUME, source.volume().map(|volume| volume.to_string())),
        ];
        // Of a URL without a query any volume will do.
        all.remove(VOLUME);
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
                let batch = queue.find_batch(&id).await?.ok_or(QueueError::Conflict(conflict))?;
                self.check_same(queue, batch, source.url(), whole).await?;
                batch
            }
            made => made?,
        };
        Ok(Receipt { batch, id, kind })
    }
}

fn copy(from: &mut impl Read, to: &mut Upload) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(bytes) => to.write(&piece[..bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Works on the disk, in a thread that may wait for it.
async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, DepositError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    done.map_err(|error| DepositError::Disk { what, error })
}
