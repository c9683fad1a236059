//! Processing: the object's identifier, the files that describe it, and the manifest that storing goes by.

use std::io;
use std::path::PathBuf;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use queuekeeper_catalogue::identifiers::{Request, Reserved};
use queuekeeper_catalogue::inventory::Object;
use queuekeeper_catalogue::{Error as CatalogueError, ErrorKind};
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::state::JobState;
use queuekeeper_queue::{JobChange, JobValue};
use queuekeeper_store::{Algorithm, Digest};
use serde_json::{Map, Value};
use tracing::warn;
use url::Url;

use super::system::{self, Description, Provenance};
use crate::ark::Ark;
use crate::blocking::blocking;
use crate::ezid::Ezid;
use crate::file_root::{self, FileRoot};
use crate::files;
use crate::manifest::{AddWriter, ListedFiles};
use crate::metadata::{MetadataError, ProducerMetadata};
use crate::profile::Minter;
use crate::spec::Package;
use crate::step::{JobAtWork, StepError};
use crate::warnings;
use crate::working::PRODUCER;
use crate::working::{JobDirectory, sync_folder_of};

/// The folder of the files that ingest adds.
pub const SYSTEM: &str = "system";

/// The manifest of a version, in [`SYSTEM`].
pub const MANIFEST: &str = "mrt-manifest.txt";

/// The manifest as it was submitted, in [`SYSTEM`] where there was one: it is no row of [`MANIFEST`].
const SUBMISSION: &str = "mrt-submission-manifest.txt";

/// How often an ARK is derived again where the name is taken: the chance of one is 1 in 10^17.
const DERIVATIONS: u32 = 16;

/// Assigns the identifier, and writes the files of ingest.
///
/// # Errors
/// When a local id belongs to another object, an id is no ARK, or catalogue or disk cannot be written.
pub async fn process(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    let producer = producer_metadata(work).await?;
    let ark = identify(work, &producer).await?;
    let object = check_owner(work, ark.as_str()).await?;
    let description = Description::new(work.spec, &producer, object.as_ref());
    let is_retrieved = work.spec.primary_id.is_none() && object.is_some();
    let url = write_files(work, &description, &producer, (ark.as_str(), is_retrieved)).await?;
    let [who, what, when] = description.terms().map(system::cut);
    let metadata = JobValue::Metadata { who, what, when, location: ark.to_string() };
    let encoded = utf8_percent_encode(ark.as_str(), NON_ALPHANUMERIC);
    let action = if work.spec.is_update { "update" } else { "add" };
    let mode = format!("{action}/{}/{encoded}", work.profile.node);
    let identifiers = JobValue::Identifiers { ark: ark.to_string(), local_ids: work.spec.local_ids.clone() };
    Ok(JobChange::success().with_value(identifiers).with_value(metadata).with_value(JobValue::Store {
        manifest_url: url,
        mode,
        delete: None,
    }))
}

/// What the deposited files say of the object; nothing where they are gone.
pub(super) async fn producer_metadata(work: &JobAtWork<'_>) -> Result<ProducerMetadata, StepError> {
    let producer = work.directory.path().join(PRODUCER);
    let read = move || match FileRoot::open(&producer, &producer) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ProducerMetadata::default()),
        Err(error) => Err(StepError::working("open the deposited files", &error)),
        Ok(root) => ProducerMetadata::read(&root).map_err(|error| match error {
            MetadataError::Read { .. } => StepError::temporary(format_args!("working storage: {error}")),
            MetadataError::Embargo(_) => StepError::permanent(error),
        }),
    };
    blocking(read).await?
}

/// The ARK: the one that the depositor named, that of the local ids, or a new one.
async fn identify(work: &JobAtWork<'_>, producer: &ProducerMetadata) -> Result<Ark, StepError> {
    let (spec, profile) = (work.spec, &work.profile);
    let named = spec.primary_id.as_deref().map(str::parse::<Ark>).transpose().map_err(StepError::permanent)?;
    for derivation in 0..DERIVATIONS {
        let candidate = match (&named, &profile.minter) {
            (Some(named), _) => named.clone(),
            (None, Minter::Ezid { shoulder, url, options }) if options.mints => {
                // One that it has, by itself or by a local id, is not made again.
                let owner = profile.owner.as_str();
                let reserved = work.services.catalogue.reserved(spec.uuid, owner, &spec.local_ids).await;
                match reserved.map_err(|error| of_local_ids(work, error))? {
                    Some(ark) => ark.parse().map_err(StepError::permanent)?,
                    None => Ezid { url, options }.mint(work, shoulder).await?,
                }
            }
            (None, minter) => minter.shoulder().derive(spec.uuid, derivation),
        };
        let request = Request {
            job: spec.uuid,
            owner: profile.owner.to_string(),
            local_ids: spec.local_ids.clone(),
            candidate: candidate.to_string(),
            is_registered: matches!(profile.minter, Minter::Noid(_)),
            place: (profile.store.to_string(), profile.space.to_string()),
        };
        work.fence.pass().await;
        match work.services.catalogue.reserve(&request).await.map_err(|error| of_local_ids(work, error))? {
            Reserved::Ark { ark, is_registered } => {
                let found: Ark = ark.parse().map_err(StepError::permanent)?;
                if let Some(named) = named.as_ref().filter(|named| **named != found) {
                    let other = match work.services.catalogue.object(found.as_str()).await? {
                        Some(object) if is_of(work, &object) => found.to_string(),
                        _ => "another object".to_owned(),
                    };
                    let ids = spec.local_ids.join("; ");
                    let why = format_args!("the local ids {ids:?} belong to {other}, but the deposit names {named}");
                    warn!(job = %work.job.id(), %found, %named, "the local ids of a deposit belong to another object");
                    return Err(StepError::permanent(why));
                }
                if let (false, Minter::Ezid { url, options, .. }) = (is_registered, &profile.minter) {
                    let description = Description::new(spec, producer, None);
                    Ezid { url, options }.register(work, &description, &found).await?;
                    work.services.catalogue.registered(found.as_str()).await?;
                }
                return Ok(found);
            }
            // An object that exists has the name that the depositor gave: this is its next version.
            Reserved::Collision { owner } if named.is_some() => {
                // Its job may not have recorded the object yet.
                return match owner.filter(|owner| *owner != profile.owner.as_str()) {
                    None => Ok(candidate),
                    Some(other) => {
                        let why = format_args!(
                            "{candidate} is reserved by a job of another owner; if that job has failed, resume this one a day later"
                        );
                        warn!(job = %work.job.id(), ark = %candidate, owner = %other, "an ARK is reserved by another owner");
                        Err(StepError::permanent(why))
                    }
                };
            }
            Reserved::Collision { .. } => {}
        }
    }
    Err(StepError::temporary(format_args!("{DERIVATIONS} identifiers in a row belong to other jobs")))
}

/// Local ids of different objects. Which these are, the depositor may not know: they may be of any collection of the
/// owner.
fn of_local_ids(work: &JobAtWork<'_>, error: CatalogueError) -> StepError {
    let ErrorKind::Refused(why) = &error.kind else { return error.into() };
    warn!(job = %work.job.id(), %why, "the local ids of a deposit belong to different objects");
    StepError::permanent(format_args!("the local ids {:?} belong to different objects", work.spec.local_ids.join("; ")))
}

/// Whether an object is of the owner and the collection of the deposit.
fn is_of(work: &JobAtWork<'_>, object: &Object) -> bool {
    object.owner == work.profile.owner.as_str() && object.collection == work.profile.name.as_str()
}

/// An object is changed by deposits of its owner and collection only: the catalogue would refuse what has been stored
/// by then. The answer is the object, where it exists. Whose it is otherwise, the depositor may not know, nor its ARK
/// where the local ids led to it.
pub(super) async fn check_owner(work: &JobAtWork<'_>, ark: &str) -> Result<Option<Object>, StepError> {
    let collection = work.profile.name.as_str();
    match work.services.catalogue.object(ark).await? {
        Some(object) if !is_of(work, &object) => {
            let Object { owner, collection: of, .. } = &object;
            warn!(job = %work.job.id(), %ark, %owner, collection = %of, "a deposit is for an object that is not in its collection");
            Err(StepError::Permanent(if work.spec.primary_id.is_some() {
                format!("{ark} is not an object of collection {collection}")
            } else {
                let ids = work.spec.local_ids.join("; ");
                format!("the local ids {ids:?} belong to an object that is not in collection {collection}")
            }))
        }
        object => Ok(object),
    }
}

/// The files that describe the object, besides `mrt-dc.xml`.
fn texts(work: &JobAtWork<'_>, description: &Description, from: Provenance<'_>) -> [(&'static str, String); 5] {
    let (spec, profile) = (work.spec, &work.profile);
    [
        ("mrt-erc.txt", description.erc(from.ark)),
        ("mrt-ingest.txt", system::ingest(spec, profile, description, from)),
        ("mrt-owner.txt", system::owner(profile)),
        ("mrt-membership.txt", system::membership(profile)),
        ("mrt-mom.txt", system::mom(spec, from.ark)),
    ]
}

/// Writes the files that describe the object, and the manifest of the version: a row for each file of `producer/` and
/// `system/`. Its URL is the answer. `ark` is the object's, and whether it was found by the local ids.
async fn write_files(
    work: &JobAtWork<'_>,
    description: &Description,
    producer: &ProducerMetadata,
    (ark, is_retrieved): (&str, bool),
) -> Result<String, StepError> {
    let failed = |error: io::Error| StepError::working("write the files of ingest", &error);
    let base = match &work.services.settings.working_url {
        Some(url) => url.join(&format!("{}/{}/", work.spec.batch, work.spec.job)).map_err(io::Error::other),
        None => work.directory.url(),
    };
    let base = base.map_err(failed)?;
    let system = work.directory.path().join(SYSTEM);
    let (directory, url) = (work.directory.clone(), base.to_string());
    let temporary = work.directory.helper(&format!("manifest-{}", uuid::Uuid::new_v4()));
    let has_manifest = work.spec.package == Package::Manifest
        || work.spec.package == Package::Container
            && work.directory.path().join(PRODUCER).join(ListedFiles::FILE_NAME).is_file();
    let from = Provenance { agent: &work.services.settings.agent, ark, is_retrieved, has_manifest };
    let (target, texts) = (system.join(MANIFEST), texts(work, description, from));
    let (kept, mut warnings) = (work.directory.clone(), producer.warnings.clone());
    let (description, ark) = (description.clone(), ark.to_owned());
    // Where the session is lost meanwhile, this goes on beside the next attempt. Both write the same, unless the
    // profile was changed between them: then the manifest of the one may not fit the files of the other, and the job
    // fails in Storing by a digest, until it is resumed at Processing.
    let written = blocking(move || -> io::Result<bool> {
        let Some(files) = files::read(&directory)? else { return Ok(false) };
        std::fs::create_dir_all(&system)?;
        let (dublin_core, cut) = description.dublin_core(&ark);
        warnings.extend(cut);
        warnings::write(&kept, JobState::Processing, &warnings)?;
        let mut texts = texts.into_iter().chain([("mrt-dc.xml", dublin_core)]);
        texts.try_for_each(|(name, text)| JobDirectory::write(&system.join(name), text.as_bytes()))?;
        let file = std::fs::File::create(&temporary)?;
        let mut manifest = AddWriter::new(io::BufWriter::new(file), base)?;
        for file in files {
            let file = file?;
            let digest = sha256(&file.digests)?;
            manifest
                .write(&format!("{PRODUCER}/{}", file.name), file.size, digest, file.media_type)
                .map_err(io::Error::other)?;
        }
        for name in system_files(&system)? {
            let (size, digests) = file_root::digests(&std::fs::File::open(system.join(&name))?, [Algorithm::Sha256])?;
            let media_type = system::media_type_of_system_file(&name);
            manifest
                .write(&format!("{SYSTEM}/{name}"), size, sha256(&digests)?, Some(media_type.to_owned()))
                .map_err(io::Error::other)?;
        }
        manifest.finish()?.into_inner()?.sync_all()?;
        std::fs::rename(&temporary, &target)?;
        // It is where the texts are: one sync for all.
        sync_folder_of(&target)?;
        Ok(true)
    });
    // A job whose version is recorded has nothing left to store, and its files were removed.
    if !written.await?.map_err(failed)? && !work.is_recorded().await? {
        let at = work.directory.shown();
        let why = format_args!("the working storage has no files of this job (in {at}); resume it at Downloading");
        return Err(StepError::permanent(why));
    }
    Ok(format!("{url}{SYSTEM}/{MANIFEST}"))
}

/// The URL of the job's directory as its manifest has it: that of another host, or of another program, is as good as
/// ours, since files are read beneath the directory.
pub(super) fn base(work: &JobAtWork<'_>) -> io::Result<Url> {
    let store: Map<String, Value> =
        serde_json::from_slice(work.job.job.data(JobNode::Store).unwrap_or_default()).unwrap_or_default();
    let url = store.get("manifest_url").and_then(Value::as_str).unwrap_or_default();
    let directory = url.strip_suffix(MANIFEST).and_then(|url| url.strip_suffix('/')?.strip_suffix(SYSTEM));
    match directory.and_then(|url| Url::parse(url).ok()) {
        Some(url) => Ok(url),
        None => work.directory.url(),
    }
}

fn sha256(digests: &queuekeeper_store::Digests) -> io::Result<Digest> {
    let missing = || io::Error::other("the list of files has no SHA-256");
    digests.get(Algorithm::Sha256).cloned().ok_or_else(missing)
}

/// The names of the files of ingest that an object keeps, in their order.
fn system_files(folder: &PathBuf) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("a file of ingest has no name"))?;
        if entry.file_type()?.is_file() && name != MANIFEST && name != SUBMISSION && !name.contains(".new") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
