//! What a request gets: looked up when it is made, and when it is assembled.

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::inventory::{File, Object, Version};
use queuekeeper_queue::id::RequestId;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::{self as queue, Queue};

use super::settings::AccessSettings;
use super::token::{Extent, RequestedArchive};

/// How many rows of files are read at once.
const PAGE: u32 = 1_000;

/// Why there is nothing to be had.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no such object.
    #[error("there is no object {0} in the catalogue")]
    NoObject(String),
    /// The object has no such version.
    #[error("{ark} has no version {number}; its newest is {newest}")]
    NoVersion {
        /// The object.
        ark: String,
        /// The version that is wanted.
        number: u32,
        /// The newest one.
        newest: u32,
    },
    /// The version has no such files.
    #[error("version {number} of {ark} has no files below producer/")]
    NoFiles {
        /// The object.
        ark: String,
        /// The version.
        number: u32,
    },
    /// The catalogue failed.
    #[error(transparent)]
    Catalogue(#[from] queuekeeper_catalogue::Error),
}

/// Why a request was not made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// There is nothing to be had.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The queue failed.
    #[error(transparent)]
    Queue(#[from] queue::Error),
}

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// Its queue.
    pub queue: AccessQueue,
    /// Its id.
    pub id: RequestId,
    /// The number of the version that it gets.
    pub version: u32,
    /// How many bytes the files have.
    pub bytes: u64,
}

/// What a request gets.
pub(super) struct Found {
    pub(super) object: Object,
    pub(super) version: Version,
    /// How many bytes the files have.
    pub(super) bytes: u64,
}

/// Makes a request. It gets the version that is the newest one now, where it names none.
///
/// # Errors
/// When there is no such object, version or file, and when catalogue or queue fail.
pub async fn request(
    queue: &Queue,
    catalogue: &Catalogue,
    settings: &AccessSettings,
    wanted: RequestedArchive,
    now: Timestamp,
) -> Result<Requested, RequestError> {
    let Found { version, bytes, .. } = find(catalogue, &wanted).await?;
    let access = if bytes > settings.small { AccessQueue::Large } else { AccessQueue::Small };
    let token = RequestedArchive { version: Some(version.number), ..wanted }.token(bytes, settings.node, now);
    let id = queue.create_request(access, &token, now).await?;
    Ok(Requested { queue: access, id, version: version.number, bytes })
}

/// Looks up what is wanted.
pub(super) async fn find(catalogue: &Catalogue, wanted: &RequestedArchive) -> Result<Found, FindError> {
    let object = catalogue.object(wanted.ark.as_str()).await?;
    let object = object.ok_or_else(|| FindError::NoObject(wanted.ark.to_string()))?;
    let (ark, newest) = (object.ark.clone(), object.current_version);
    let number = wanted.version.unwrap_or(newest);
    let version = catalogue.versions(&ark, number.checked_add(1), 1).await?.into_iter().next();
    let version = version.filter(|version| version.number == number);
    let version = version.ok_or(FindError::NoVersion { ark, number, newest })?;
    let bytes = match wanted.extent {
        // Those of the whole version are recorded.
        Extent::Full => version.byte_count,
        Extent::Producer => bytes_of(catalogue, &object, number, wanted.extent).await?,
    };
    Ok(Found { object, version, bytes })
}

async fn bytes_of(catalogue: &Catalogue, object: &Object, number: u32, extent: Extent) -> Result<u64, FindError> {
    let (mut after, mut bytes, mut has_some) = (extent.prefix().to_owned(), 0, false);
    loop {
        let page = page(catalogue, object, number, extent, &after).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        has_some = true;
        bytes += page.iter().map(|file| file.size).sum::<u64>();
    }
    if has_some { Ok(bytes) } else { Err(FindError::NoFiles { ark: object.ark.clone(), number }) }
}

/// The next files of a version by their paths, behind one of them; none behind the last.
pub(super) async fn page(
    catalogue: &Catalogue,
    object: &Object,
    version: u32,
    extent: Extent,
    after: &str,
) -> Result<Vec<File>, queuekeeper_catalogue::Error> {
    let mut page = catalogue.files(&object.ark, version, after, PAGE).await?;
    page.retain(|file| file.path.starts_with(extent.prefix()));
    Ok(page)
}
