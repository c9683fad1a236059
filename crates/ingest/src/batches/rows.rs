//! The rows of a batch, as jobs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Seek as _};
use std::sync::Arc;

use queuekeeper_queue::id::{JobId, Priority};
use queuekeeper_queue::{NewJob, NextRows};
use queuekeeper_store::{Algorithm, Digest, Digests};
use serde_json::Value;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::submission::BatchSpec;
use crate::blocking::blocking;
use crate::fetch::Expected;
use crate::file_root::{self, FileRoot};
use crate::manifest::{Limits, ManifestRow, PROBLEMS_BYTES, Reader};
use crate::parts::{self, Part};
use crate::profile::Profile;
use crate::services::Services;
use crate::spec::VOLUME;
use crate::spec::{job_uuid, uuid_of};
use crate::step::StepError;
use crate::url::ContentUrl;
use crate::working::secret::{keep_url, whole_url};

/// How many rows are kept ready: as many as go into a transaction.
const READY: usize = 1_000;

/// The largest manifest of a batch, in bytes.
const MOST_MANIFEST_BYTES: u64 = 256 << 20;

/// What exists of a submission's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Existing {
    /// The first row that has none.
    pub(super) next: u64,
    /// That of the last row.
    pub(super) last: Option<JobId>,
}

/// The rows of a batch from the first one on, without the last.
pub(super) struct Rows {
    spec: BatchSpec,
    profile: Arc<Profile>,
    /// The volume that its directory is on.
    volume: Uuid,
    batch: std::path::PathBuf,
    digest: String,
    /// How many it has, and the whole manifest.
    total: u64,
    in_manifest: u64,
    batches: u64,
    last: Option<ManifestRow>,
    coming: Option<mpsc::Receiver<ManifestRow>>,
    /// The row that the first of `ready` is.
    at: u64,
    ready: Vec<NewJob>,
}

impl Rows {
    /// Saves and validates the manifest; a submission that is none has one row.
    pub(super) async fn open(services: &Services, profile: &Arc<Profile>, spec: &BatchSpec) -> Result<Self, StepError> {
        let batch = services.working.batch(&spec.id);
        let mut rows = Self {
            spec: spec.clone(),
            profile: Arc::clone(profile),
            volume: services.working.volume(),
            batch,
            digest: String::new(),
            total: 1,
            in_manifest: 1,
            batches: 1,
            last: None,
            coming: None,
            at: 0,
            ready: Vec::new(),
        };
        if !spec.kind.is_batch() {
            // It is the package of the only job, which fetches it.
            rows.spec.url = rows.spec.url.as_ref().map(|url| whole_url(&rows.batch, url)).transpose()?;
            "single".clone_into(&mut rows.digest);
            return Ok(rows);
        }
        let file = rows.manifest(services).await?;
        let failed = |error: io::Error| StepError::working("read the manifest", &error);
        let form = spec.kind.manifest();
        let algorithms = [Algorithm::Sha256].into_iter().chain(spec.digest.iter().map(Digest::algorithm));
        let algorithms: Vec<_> = algorithms.collect();
        let size = spec.part.as_ref().map_or(services.settings.most_jobs, |part| part.rows);
        let first = spec.part.as_ref().map_or(0, Part::first_row);
        let end = first + size;
        let (checked, digests, last) = blocking(move || -> io::Result<_> {
            let (_, digests) = file_root::digests(&file, algorithms)?;
            (&file).rewind()?;
            let mut reader = Reader::new(BufReader::new(&file), Limits::default(), form);
            let (mut at, mut last) = (0, None);
            for (_, row) in reader.by_ref() {
                if at < end {
                    last = Some(row);
                }
                at += 1;
            }
            let summary = reader.finish();
            (&file).rewind()?;
            Ok((summary.map(|summary| (summary, file)), digests, last))
        })
        .await?
        .map_err(failed)?;
        // Before what is wrong in it: that may be why.
        let given: Digests = spec.digest.iter().cloned().collect();
        if let Some((expected, found)) = given.difference(&digests) {
            let (name, algorithm) = (crate::name::shown(&spec.file_name), expected.algorithm());
            let why = format_args!("manifest {name:?}: expected the {algorithm} digest {expected}, found {found}");
            return Err(StepError::permanent(why));
        }
        let (summary, file) = checked.map_err(|error| StepError::Permanent(error.in_full(PROBLEMS_BYTES)))?;
        rows.digest = digests.get(Algorithm::Sha256).map(Digest::hex).unwrap_or_default();
        if spec.part.as_ref().is_some_and(|part| part.digest != rows.digest || summary.rows <= first) {
            let name = crate::name::shown(&spec.file_name);
            let why = "the manifest differs from the one of the deposit when this batch was created";
            return Err(StepError::permanent(format_args!("{name:?}: {why}")));
        }
        rows.in_manifest = summary.rows;
        rows.batches = parts::batches_of(summary.rows, size);
        rows.total = summary.rows.min(end) - first;
        rows.last = Some(last.ok_or_else(|| StepError::permanent("the manifest has no rows"))?);
        let (send, coming) = mpsc::channel(READY);
        let [first, count] = [first, rows.total - 1].map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        tokio::task::spawn_blocking(move || {
            let reader = Reader::new(BufReader::new(file), Limits::default(), form);
            for (_, row) in reader.skip(first).take(count) {
                if send.blocking_send(row).is_err() {
                    return;
                }
            }
        });
        rows.coming = Some(coming);
        Ok(rows)
    }

    /// The manifest, in the batch's directory: it lies there, or is fetched to it.
    async fn manifest(&self, services: &Services) -> Result<File, StepError> {
        let failed = |error: io::Error| StepError::working("read the manifest", &error);
        std::fs::create_dir_all(&self.batch).map_err(failed)?;
        // Its URLs may be presigned.
        let file_root = Arc::new(FileRoot::open(&self.batch, &self.batch).map_err(failed)?.private());
        if let Some(url) = &self.spec.url {
            let expected = Expected { size: None, most_bytes: MOST_MANIFEST_BYTES, digests: Digests::default() };
            // What was fetched by an attempt before is the manifest whose jobs were begun.
            if file_root.file(&self.spec.file_name).map_err(failed)?.is_none() {
                let (fetcher, url) = (services.fetcher(&self.profile)?, whole_url(&self.batch, url)?);
                fetcher.fetch(&url, &expected, &file_root, &self.spec.file_name, &Arc::default()).await?;
                file_root.sync_folders([self.spec.file_name.as_str()]).map_err(failed)?;
            }
        }
        let missing = || {
            let (name, at) = (crate::name::shown(&self.spec.file_name), &self.spec.id);
            StepError::permanent(format_args!(
                "the working storage has no manifest {name:?} (in {at}); deposit it again"
            ))
        };
        file_root.file(&self.spec.file_name).map_err(failed)?.ok_or_else(missing)
    }

    /// How many rows there are.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// How many rows the manifest has, with those of the other parts of its deposit.
    pub(super) fn in_manifest(&self) -> u64 {
        self.in_manifest
    }

    /// How many batches these are.
    pub(super) fn batches(&self) -> u64 {
        self.batches
    }

    /// The digest of the manifest.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The job of the last row.
    pub(super) fn last_job(&self) -> Result<NewJob, StepError> {
        if let Some(row) = &self.last {
            return self.job(self.total - 1, row);
        }
        let own = self.spec.payload().chain(self.spec.url.iter().map(|url| ("payload_url", url_value(url))));
        self.finish(0, self.spec.job(0, own), self.spec.url.as_ref())
    }

    /// Finds the jobs of the rows from one on among those of the batch, by their ids: they were created in their order.
    /// A batch whose jobs another program has created has all of them.
    pub(super) fn existing(&self, next: u64, configurations: &BTreeMap<JobId, Vec<u8>>) -> Existing {
        let known = configurations.iter().filter_map(|(job, data)| Some((job_uuid(data)?, *job)));
        let mut known: BTreeMap<Uuid, JobId> = known.collect();
        let last = self.total.saturating_sub(1);
        let mut end = None;
        let mut first_missing = None;
        for row in 0..=last {
            let job = known.remove(&uuid_of(&self.spec.job_id(row), "jid-"));
            if job.is_none() && row >= next {
                first_missing.get_or_insert(row);
            }
            if row == last {
                end = job;
            }
        }
        match known.pop_first() {
            Some((_, foreign)) => Existing { next: last, last: Some(foreign) },
            None => Existing { next: first_missing.unwrap_or(last), last: end },
        }
    }

    /// Leaves out the rows whose jobs exist.
    pub(super) async fn skip(&mut self, rows: u64) {
        let Some(coming) = &mut self.coming else { return };
        for _ in 0..rows {
            if coming.recv().await.is_none() {
                break;
            }
        }
        self.at = rows;
    }

    /// Gets the next rows ready, as many as a transaction takes.
    pub(super) async fn fill(&mut self) -> Result<(), StepError> {
        while self.ready.len() < READY {
            let Some(coming) = &mut self.coming else { break };
            let Some(row) = coming.recv().await else {
                self.coming = None;
                break;
            };
            let job = self.job(self.at + self.ready.len() as u64, &row)?;
            self.ready.push(job);
        }
        Ok(())
    }

    /// The rows that are ready, as jobs.
    pub(super) fn next<'a>(&'a self, last: &'a NewJob, most_children: Option<i32>) -> NextRows<'a> {
        let (digest, all, has_end) = (&*self.digest, self.total, self.coming.is_none());
        NextRows { digest, all, jobs: &self.ready, last, has_end, most_children }
    }

    /// So many of the jobs exist now.
    pub(super) fn advance(&mut self, jobs: u64) {
        self.at += jobs;
        self.ready.drain(..usize::try_from(jobs).unwrap_or(0).min(self.ready.len()));
    }

    fn job(&self, at: u64, row: &ManifestRow) -> Result<NewJob, StepError> {
        let mut own: Vec<(&'static str, Value)> = vec![("filename", row.name.clone().into())];
        own.extend(row.url.as_ref().map(|url| ("payload_url", url_value(url))));
        own.extend(row.size.map(|size| ("size", size.to_string().into())));
        if let Some(digest) = &row.digest {
            own.push(("digestType", digest.algorithm().to_string().into()));
            own.push(("digestValue", digest.hex().into()));
        }
        let texts =
            [("objectID", &row.primary_id), ("creator", &row.creator), ("title", &row.title), ("date", &row.date)];
        own.extend(texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?.into()))));
        if !row.local_ids.is_empty() {
            own.push(("localID", row.local_ids.join(";").into()));
        }
        self.finish(at, self.spec.job(at, own), row.url.as_ref())
    }

    /// Keeps a secret query in the job's directory, which is on this volume, and completes the job.
    fn finish(
        &self,
        at: u64,
        mut configuration: serde_json::Map<String, Value>,
        url: Option<&ContentUrl>,
    ) -> Result<NewJob, StepError> {
        if let Some(url) = url.filter(|url| url.has_query()) {
            let directory = self.batch.join(self.spec.job_id(at));
            let kept = keep_url(&directory, url);
            kept.map_err(|error| StepError::working("keep a presigned URL", &error))?;
            configuration.insert(VOLUME.to_owned(), self.volume.to_string().into());
        }
        let priority = Priority::new(self.profile.priority(self.in_manifest).into()).unwrap_or_default();
        let data = serde_json::to_vec(&configuration).map_err(StepError::permanent)?;
        Ok(NewJob::new(data).with_priority(priority))
    }
}

/// A URL as a znode may have it: without its query.
fn url_value(url: &ContentUrl) -> Value {
    url.without_query().into()
}
