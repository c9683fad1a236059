//! Recording: the version in the inventory.

use std::collections::HashMap;
use std::io::BufReader;

use queuekeeper_catalogue::ErrorKind;
use queuekeeper_catalogue::inventory::{File, NewVersion};
use queuekeeper_queue::JobChange;

use super::processing::{self, MANIFEST, SYSTEM};
use super::storing;
use super::system::{self, Description};
use crate::blocking::blocking;
use crate::manifest::{Limits, Reader};
use crate::step::{JobAtWork, StepError};

/// How many files of the version before are read at a time.
const PAGE: u32 = 1_000;

/// Records the version that storing wrote, by what the object itself says; once for each job.
///
/// # Errors
/// When the object has no version of this job, or the catalogue refuses.
pub async fn record(work: &JobAtWork<'_>) -> Result<JobChange, StepError> {
    let ark = storing::ark(work)?;
    let object = storing::root(work).await?.object(&ark)?;
    let missing = || StepError::permanent(format_args!("{ark} has no version of this job; resume it at Storing"));
    let snapshot = object.read().await?.ok_or_else(missing)?;
    let inventory = snapshot.inventory();
    let number = inventory.version_of(work.spec.uuid).ok_or_else(missing)?;
    let info = inventory.version(number).ok_or_else(missing)?;
    let before = if work.spec.is_update { work.services.catalogue.object(&ark).await? } else { None };
    let producer = processing::producer_metadata(work).await?;
    let description = Description::new(work.spec, &producer, before.as_ref());
    let [creator, title, date] =
        [&description.who, &description.what, &description.when].map(|term| term.as_deref().map(system::cut));
    let new = NewVersion {
        ark: ark.clone(),
        owner: work.profile.owner.to_string(),
        collection: work.profile.name.to_string(),
        title,
        creator,
        date,
        number,
        job: work.spec.uuid,
        batch: Some(work.spec.batch_uuid),
        submitter: info.user.map(|user| user.name.clone()).unwrap_or_default(),
        message: info.message.unwrap_or_default().to_owned(),
        local_ids: work.spec.local_ids.clone(),
    };
    let Some(facts) = facts(work, &ark, number).await? else {
        // The tree was restored as it was before this job was completed.
        if work.is_recorded().await? {
            return Ok(JobChange::success());
        }
        let at = work.directory.shown();
        return Err(StepError::permanent(format_args!(
            "the working storage has no manifest of this job (in {at}); resume it at Downloading"
        )));
    };
    let before = number - 1;
    let mut recorded = Vec::new();
    for file in inventory.files(number) {
        let file = file?;
        let (size, media_type) = match facts.get(&file.path) {
            Some((size, media_type)) => (*size, media_type.clone()),
            // The version before was not recorded here: the store knows the size.
            None => (snapshot.open(number, &file.path).await?.properties.size, None),
        };
        let is_new = inventory.file(before, &file.path)?.is_none_or(|old| old.digest != file.digest);
        recorded.push(File {
            path: file.path,
            content_path: file.content_path,
            size,
            media_type,
            is_billable: is_new,
            digests: std::iter::once(file.digest).collect(),
        });
    }
    work.fence.pass().await;
    match work.services.catalogue.record_version(&new, recorded).await {
        Ok(_) => Ok(JobChange::success()),
        Err(error) if matches!(error.kind, ErrorKind::Refused(_)) => Err(StepError::permanent(error)),
        Err(error) => Err(error.into()),
    }
}

/// Sizes and media types by logical path: of the files that this job wrote, by its manifest, and of those that it
/// carried over, by the version before. `None` where the manifest is gone.
async fn facts(
    work: &JobAtWork<'_>,
    ark: &str,
    number: u32,
) -> Result<Option<HashMap<String, (u64, Option<String>)>>, StepError> {
    let mut facts = HashMap::new();
    if work.spec.is_update && number > 1 {
        let mut after = String::new();
        loop {
            let files = work.services.catalogue.files(ark, number - 1, &after, PAGE).await?;
            let Some(last) = files.last() else { break };
            after.clone_from(&last.path);
            facts.extend(files.into_iter().map(|file| (file.path, (file.size, file.media_type))));
        }
    }
    let failed = |error: std::io::Error| StepError::working("read the manifest", &error);
    let base = processing::base(work).map_err(failed)?;
    let path = work.directory.path().join(SYSTEM).join(MANIFEST);
    let rows = blocking(move || {
        let source = match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut reader = Reader::add(BufReader::new(source), Limits::default(), base);
        let rows: Vec<_> = reader.by_ref().map(|(_, row)| (row.name, (row.size.unwrap_or(0), row.mime_type))).collect();
        Ok(Some(reader.finish().map(|_| rows)))
    });
    let Some(rows) = rows.await?.map_err(failed)? else { return Ok(None) };
    facts.extend(rows.map_err(StepError::permanent)?);
    Ok(Some(facts))
}
