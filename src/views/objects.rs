//! Objects: what the catalogue knows of what was stored.

mod bit_errors;
mod content;
mod copies;
mod filters;
mod proofs;

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::inventory::{File, Object, Version};
use queuekeeper_ingest::ark::Ark;
use queuekeeper_ingest::contents::ObjectReader;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;
use uuid::Uuid;

use super::error::{ViewError, quoted};

pub(crate) use bit_errors::ObjectBitError;
use bit_errors::OfObject;
pub(crate) use content::{FileName, OpenedFile};
use copies::Copied;
pub(crate) use copies::{ObjectCopy, Places};
pub(crate) use filters::{FileFilter, ObjectFilter, VersionNumber};
pub(crate) use proofs::FileProof;

/// How many versions of an object are shown.
const VERSIONS: u32 = 100;

/// How many files and local ids of it.
const FILES: u32 = 500;

/// How long the page of a job waits for the catalogue: the rest of it does not need one.
const SOON: Duration = Duration::from_secs(1);

/// A page of objects, in the order of their ARKs, or of the titles that were searched for.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectList {
    /// The objects of this page.
    pub(crate) items: Vec<ObjectItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectItem {
    /// Its ARK.
    #[schema(example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// The ARK of its owner.
    pub(crate) owner: String,
    /// The mnemonic of its collection.
    pub(crate) collection: String,
    /// The title in its newest version; empty if it has none.
    pub(crate) title: String,
    /// The creator; likewise.
    pub(crate) creator: String,
    /// The date, in the depositor's words; likewise.
    pub(crate) date: String,
    /// When its first version was recorded.
    pub(crate) created: Timestamp,
    /// When a version was last recorded.
    pub(crate) modified: Timestamp,
    /// The number of its newest version.
    pub(crate) current_version: u32,
}

/// An object with its versions and the files of one of them.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectDetail {
    /// The object.
    pub(crate) object: ObjectItem,
    /// Its local ids, at most 500.
    pub(crate) local_ids: Vec<String>,
    /// When the embargo on that version ends, as its `producer/mrt-embargo.txt` has it; null if it has none.
    #[schema(example = "2031-06-12")]
    pub(crate) embargo_end: Option<String>,
    /// Why it is unknown whether there is an embargo: the version has that file, but it cannot be read.
    pub(crate) embargo_problem: Option<String>,
    /// Its versions, the newest first, at most a hundred.
    pub(crate) versions: Vec<ObjectVersion>,
    /// The number of the version whose files these are.
    pub(crate) version: u32,
    /// Files of that version by path, at most 500.
    pub(crate) files: Vec<ObjectFile>,
    /// `after` of the next page of files; null on the last one.
    pub(crate) next_file: Option<String>,
    /// Its copies in other stores; empty if there is no mill.
    pub(crate) copies: Vec<ObjectCopy>,
    /// How many open bit errors its copies have, in all stores of the account; of a very large object, at most 10,000
    /// in each.
    pub(crate) bit_error_count: u64,
    /// The first of these bit errors, at most 20.
    pub(crate) bit_errors: Vec<ObjectBitError>,
}

/// A version of an object.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectVersion {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// The UUID of the job that stored it.
    pub(crate) job: String,
    /// The id of the deposit that it came with; null if that is not known.
    #[schema(example = "bid-9c1a0b5e-0000-4000-8000-000000000001")]
    pub(crate) deposit: Option<String>,
    /// Who deposited it.
    pub(crate) submitter: String,
    /// How many files it has.
    pub(crate) file_count: u64,
    /// How many bytes they have.
    pub(crate) size_bytes: u64,
    /// When it was recorded.
    pub(crate) ingested: Timestamp,
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ObjectFile {
    /// Its logical path, such as `producer/page-1.tif`.
    pub(crate) path: String,
    /// Its size.
    pub(crate) size_bytes: u64,
    /// Its strongest digest, such as `sha512:0f3a..`; empty if it has none.
    pub(crate) digest: String,
    /// Its media type; empty if it is not known.
    pub(crate) media_type: String,
    /// Its copies, by the name of their store, with their last proof; empty if there is no mill.
    pub(crate) proofs: Vec<FileProof>,
}

/// The version of an object that a job made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct MadeVersion {
    /// The ARK of the object.
    #[schema(example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// The number of the version, from 1.
    pub(crate) version: u32,
}

/// The objects of a catalogue.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    catalogue: Catalogue,
    /// `None` where files cannot be read.
    contents: Option<ObjectReader>,
    /// `None` if there is no mill.
    copied: Option<Copied>,
}

impl Objects {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self { catalogue, contents: None, copied: None }
    }

    /// A page of the objects that match.
    ///
    /// # Errors
    /// For a filter that is not one, and when the catalogue cannot be read.
    pub(crate) async fn list(&self, filter: &ObjectFilter) -> Result<ObjectList, ViewError> {
        filter.check()?;
        let one =
            |object: Option<Object>| ObjectList { items: object.iter().map(ObjectItem::from).collect(), next: None };
        if !filter.ark.trim().is_empty() {
            let ark = parsed("ark", &filter.ark)?;
            return Ok(one(self.catalogue.object(ark.as_str()).await.map_err(|error| unavailable(&error))?));
        }
        if !filter.local_id.trim().is_empty() {
            let owner = parsed("owner", &filter.owner)?;
            let found = self.catalogue.object_by_local_id(owner.as_str(), filter.local_id.trim());
            return Ok(one(found.await.map_err(|error| unavailable(&error))?));
        }
        let collection = Some(filter.collection.trim()).filter(|collection| !collection.is_empty());
        let limit = filter.limit.get();
        // One more shows whether there is a next page.
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let (title, after) = (filter.title.trim(), &*filter.after);
        let found = if title.is_empty() {
            self.catalogue.objects(collection, after, most).await
        } else {
            self.catalogue.objects_by_title(collection, title, after, most).await
        };
        let mut found = found.map_err(|error| unavailable(&error))?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|object| object.ark.clone());
        Ok(ObjectList { items: found.iter().map(ObjectItem::from).collect(), next })
    }

    /// An object by its ARK, with those of its files.
    ///
    /// # Errors
    /// When there is none, or no such version of it, and when the catalogue cannot be read.
    pub(crate) async fn object(&self, ark: &str, filter: &FileFilter) -> Result<ObjectDetail, ViewError> {
        let catalogue = &self.catalogue;
        let object = self.one(ark).await?;
        let version = number(&object, filter.version)?;
        let (versions, files, local_ids, copies, bit_errors) = tokio::join!(
            catalogue.versions(&object.ark, None, VERSIONS),
            // One more shows whether there is a next page.
            catalogue.files(&object.ark, version, &filter.after, FILES + 1),
            catalogue.local_ids(&object.owner, &object.ark, "", FILES),
            Box::pin(self.copies(&object)),
            Box::pin(self.bit_errors(&object)),
        );
        let OfObject { shown: bit_errors, count: bit_error_count } = bit_errors?;
        let mut files = files.map_err(|error| unavailable(&error))?;
        let (embargo_end, embargo_problem) = match self.embargo(&object, version).await {
            Ok(end) => (end, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let has_more = files.len() > FILES as usize;
        files.truncate(FILES as usize);
        Ok(ObjectDetail {
            object: ObjectItem::from(&object),
            embargo_end,
            embargo_problem,
            local_ids: local_ids.map_err(|error| unavailable(&error))?,
            versions: versions.map_err(|error| unavailable(&error))?.iter().map(ObjectVersion::from).collect(),
            version,
            next_file: files.last().filter(|_| has_more).map(|file| file.path.clone()),
            files: Box::pin(self.proven(&object, &files)).await?,
            copies: copies?,
            bit_error_count,
            bit_errors,
        })
    }

    /// The version that a job made; `None` as long as it is not recorded.
    ///
    /// # Errors
    /// When the catalogue cannot be read, or does not answer soon.
    pub(crate) async fn made_by(&self, job: Uuid) -> Result<Option<MadeVersion>, ViewError> {
        let made = timeout(SOON, self.catalogue.version_of_job(job)).await.map_err(ViewError::late)?;
        Ok(made.map_err(|error| unavailable(&error))?.map(|(ark, version)| MadeVersion { ark, version }))
    }

    /// The copies of an object by its ARK.
    ///
    /// # Errors
    /// When there is none, and when the catalogue cannot be read.
    pub(crate) async fn copies_of(&self, ark: &str) -> Result<Vec<ObjectCopy>, ViewError> {
        Box::pin(self.copies(&self.one(ark).await?)).await
    }

    async fn one(&self, ark: &str) -> Result<Object, ViewError> {
        let none = || {
            let what = quoted(ark);
            ViewError::not_found(format!(
                "There is no object “{what}” in the catalogue. An ARK has the form ark:/NAAN/NAME."
            ))
        };
        let name: Ark = ark.parse().map_err(|_| none())?;
        self.catalogue.object(name.as_str()).await.map_err(|error| unavailable(&error))?.ok_or_else(none)
    }
}

/// The number of a version that an object has.
fn number(object: &Object, version: VersionNumber) -> Result<u32, ViewError> {
    let newest = object.current_version;
    let number = if version.is_usual() { newest } else { u32::try_from(version.get()).unwrap_or(u32::MAX) };
    if number > newest {
        let why = format!("{} has no version {number}; its newest is {newest}.", object.ark);
        return Err(ViewError::not_found(why));
    }
    Ok(number)
}

fn parsed(name: &str, text: &str) -> Result<Ark, ViewError> {
    text.trim().parse().map_err(|why| ViewError::value_because(name, text, why))
}

fn unavailable(error: &queuekeeper_catalogue::Error) -> ViewError {
    ViewError::Unavailable(format!("The catalogue cannot be read: {error}."))
}

impl From<&Object> for ObjectItem {
    fn from(object: &Object) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            ark: object.ark.clone(),
            owner: object.owner.clone(),
            collection: object.collection.clone(),
            title: text(&object.title),
            creator: text(&object.creator),
            date: text(&object.date),
            created: object.created,
            modified: object.modified,
            current_version: object.current_version,
        }
    }
}

impl From<&Version> for ObjectVersion {
    fn from(version: &Version) -> Self {
        Self {
            number: version.number,
            job: version.job.to_string(),
            deposit: version.batch.map(queuekeeper_ingest::spec::id_of),
            submitter: version.submitter.clone(),
            file_count: version.file_count,
            size_bytes: version.byte_count,
            ingested: version.ingested,
        }
    }
}

impl From<&File> for ObjectFile {
    fn from(file: &File) -> Self {
        let digest = file.digests.strongest();
        Self {
            path: file.path.clone(),
            size_bytes: file.size,
            digest: digest.map(|digest| format!("{}:{}", digest.algorithm(), digest.hex())).unwrap_or_default(),
            media_type: file.media_type.clone().unwrap_or_default(),
            proofs: Vec::new(),
        }
    }
}
