//! `queuekeeper submit`: a deposit.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use queuekeeper_ingest::deposit::{NewDeposit, Receipt};
use queuekeeper_ingest::directory::WorkingStorage;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{BatchReport, Queue};
use queuekeeper_store::Digest;
use serde_json::json;
use uuid::Uuid;

use super::exit::{CommandError, FAILED, REFUSED};
use super::output::{OutputArgs, Spinner, without_csv};
use super::{UsageError, ZooKeeperArgs};
use crate::actions::deposit::read_digest;
use crate::server::standalone::DataDirectory;

mod check;

/// How often the batch is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(200);

/// Deposit a file or what lies at a URL
///
/// A file is copied to the working storage before the batch is created. What it is follows from --type, else from its
/// first lines or its name: a manifest, a container (.zip, .tar, ..), or a file.
///
/// With --wait, exits with 1 if a job failed. With --check, exits with 3 if something is wrong.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct SubmitArgs {
    /// The file, - for standard input, or an http or https URL
    #[arg(value_name = "FILE|URL")]
    payload: String,

    /// The collection's profile
    #[arg(long = "profile", value_name = "NAME")]
    profile: String,

    /// The directory of a standalone repository
    #[arg(long = "data", value_name = "DIR", conflicts_with = "working")]
    data: Option<PathBuf>,

    /// The working storage of the daemons
    #[arg(long = "working", value_name = "DIR", required_unless_present_any = ["data", "check"])]
    working: Option<PathBuf>,

    /// What it is: file, container, object-manifest, single-file-batch-manifest, container-batch-manifest or
    /// batch-manifest
    #[arg(long = "type", value_name = "TYPE", help_heading = "Deposit")]
    kind: Option<DepositType>,

    /// The name of the file [default: the last part of its path]
    #[arg(long = "name", value_name = "NAME", help_heading = "Deposit")]
    name: Option<String>,

    /// The title of the object
    #[arg(long = "title", value_name = "TEXT", help_heading = "Deposit")]
    title: Option<String>,

    /// The creator of the object
    #[arg(long = "creator", value_name = "TEXT", help_heading = "Deposit")]
    creator: Option<String>,

    /// The date of the object
    #[arg(long = "date", value_name = "TEXT", help_heading = "Deposit")]
    date: Option<String>,

    /// The ARK of an object that exists
    #[arg(long = "ark", value_name = "ARK", help_heading = "Deposit")]
    ark: Option<String>,

    /// An id by which the owner knows the object; may be repeated
    #[arg(long = "local-id", value_name = "ID", help_heading = "Deposit")]
    local_ids: Vec<String>,

    /// Keep the object's other files, and add or replace these
    #[arg(long = "update", help_heading = "Deposit")]
    update: bool,

    /// The digest of the file, as sha256:HEX
    #[arg(long = "digest", value_name = "ALGORITHM:HEX", value_parser = read_digest, help_heading = "Deposit")]
    digest: Option<Digest>,

    /// The UUID of the batch: the same deposit made again with it is the same batch [default: a new one]
    #[arg(long = "uuid", value_name = "UUID", help_heading = "Deposit")]
    uuid: Option<Uuid>,

    /// Wait until the batch is reported
    #[arg(long = "wait")]
    wait: bool,

    /// Deposit nothing, and print what is wrong: with the name, the digest and the lines of a manifest, and URLs that
    /// cannot be reached
    ///
    /// What lies at a URL is read as a manifest where --type says that it is one. Of a manifest, the first 10,000 URLs are
    /// requested, for two minutes at most.
    #[arg(long = "check", conflicts_with_all = ["wait", "uuid"])]
    check: bool,

    /// The directory of the collections' profiles, for --check [default: that of --data]
    #[arg(long = "profiles", value_name = "DIR", requires = "check")]
    profiles: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    zookeeper: ZooKeeperArgs,
}

impl SubmitArgs {
    /// Makes the deposit, and waits for its report where that is requested.
    ///
    /// # Errors
    /// When it is refused, cannot be made, or a job of it failed.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if self.check {
            return self.check().await;
        }
        let (zookeeper, working) = self.place()?;
        let url = self.url()?;
        let deposit = self.deposit(url.as_ref())?;
        let queue = Queue::new(zookeeper.connect().await?);
        let uuid = self.uuid.unwrap_or_else(Uuid::new_v4);
        let made = if let Some(url) = &url {
            deposit.refer(&queue, uuid, url).await
        } else {
            let storage = WorkingStorage::open(&working)
                .with_context(|| format!("cannot use {} as the working storage", working.display()))?;
            Box::pin(deposit.upload(&queue, &storage, uuid, self.open()?)).await
        };
        let receipt = made.map_err(|error| CommandError::new(REFUSED, error.to_string()))?;
        let report = if self.wait { Some(followed(&queue, receipt.batch).await?) } else { None };
        let arks = match &report {
            Some((_, report)) => arks(&queue, report).await?,
            None => Vec::new(),
        };
        self.print(&receipt, report.as_ref(), &arks)?;
        match report {
            Some((BatchState::Failed, report)) => {
                let why = first_failure(&queue, receipt.batch, &report).await?;
                Err(CommandError::new(FAILED, why).into())
            }
            _ => Ok(()),
        }
    }

    /// ZooKeeper, and the working storage.
    fn place(&self) -> anyhow::Result<(queuekeeper_zookeeper::Config, PathBuf)> {
        let config = self.zookeeper.clone().config()?;
        let Some(data) = &self.data else { return Ok((config, self.working.clone().unwrap_or_default())) };
        let data = DataDirectory::new(data.clone());
        Ok((super::zookeeper::of_data(&data)?, data.working()))
    }

    fn url(&self) -> Result<Option<ContentUrl>, UsageError> {
        if !self.payload.starts_with("http://") && !self.payload.starts_with("https://") {
            return Ok(None);
        }
        self.payload.parse().map(Some).map_err(|error| UsageError::flag("FILE|URL", error))
    }

    fn deposit(&self, url: Option<&ContentUrl>) -> Result<NewDeposit, UsageError> {
        let of_path = || Path::new(&self.payload).file_name().and_then(|name| name.to_str()).map(ToOwned::to_owned);
        let derived = match url {
            Some(url) => url.file_name(),
            None if self.payload == "-" => None,
            None => of_path(),
        };
        let file_name = self.name.clone().or(derived);
        let why = "the file has no name of its own; give it one";
        Ok(NewDeposit {
            profile: self.profile.clone(),
            kind: self.kind,
            file_name: file_name.ok_or_else(|| UsageError::flag("--name", why))?,
            submitter: super::actor::actor().name,
            title: self.title.clone(),
            creator: self.creator.clone(),
            date: self.date.clone(),
            note: None,
            primary_id: self.ark.clone(),
            local_ids: self.local_ids.clone(),
            digest: self.digest.clone(),
            notification: None,
            is_update: self.update,
        })
    }

    fn open(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        if self.payload == "-" {
            return Ok(Box::new(std::io::stdin()));
        }
        Ok(Box::new(self.file()?))
    }

    fn file(&self) -> anyhow::Result<File> {
        let file = File::open(&self.payload).with_context(|| format!("cannot read {}", self.payload))?;
        if file.metadata()?.is_dir() {
            let why = format!("{} is a directory; pack it as .zip or .tar", self.payload);
            return Err(UsageError::flag("FILE|URL", why).into());
        }
        Ok(file)
    }

    fn print(
        &self,
        receipt: &Receipt,
        report: Option<&(BatchState, BatchReport)>,
        arks: &[String],
    ) -> anyhow::Result<()> {
        let mut value = json!({
            "batch": receipt.batch.to_string(), "id": receipt.id, "type": receipt.kind.to_string(),
        });
        if let Some((state, report)) = report {
            value["state"] = state.to_string().into();
            value["completed"] = report.completed.len().into();
            value["failed"] = report.failed.len().into();
            value["arks"] = arks.into();
        }
        let mut lines = vec![format!("{} ({}) of type {}", receipt.batch, receipt.id, receipt.kind)];
        if let Some((state, report)) = report {
            lines.push(format!("{state}: {} completed, {} failed", report.completed.len(), report.failed.len()));
            lines.extend(arks.iter().cloned());
        }
        self.output.show(&value, |screen| lines.iter().for_each(|line| screen.say(line)))
    }
}

/// Waits for a batch's report.
async fn followed(queue: &Queue, batch: BatchId) -> anyhow::Result<(BatchState, BatchReport)> {
    let spinner = Spinner::start("waiting for the report");
    let ended = loop {
        let loaded = queue.load_batch(batch).await?;
        match loaded.check_loadable()? {
            state @ (BatchState::Completed | BatchState::Failed | BatchState::Deleted) => break state,
            _ => tokio::time::sleep(LOOK).await,
        }
    };
    drop(spinner);
    Ok((ended, queue.batch_report(batch).await?))
}

/// The ARKs of a batch's objects.
async fn arks(queue: &Queue, report: &BatchReport) -> anyhow::Result<Vec<String>> {
    let mut arks = Vec::new();
    for id in &report.completed {
        let job = queue.load_job(*id).await?;
        arks.push(job.identifiers().value.ark.into_owned());
    }
    Ok(arks)
}

/// What the first failed job failed by, or the batch itself where it came to no jobs.
async fn first_failure(queue: &Queue, batch: BatchId, report: &BatchReport) -> anyhow::Result<String> {
    let Some(id) = report.failed.first() else {
        let loaded = queue.load_batch(batch).await?;
        return Ok(format!("{batch} failed: {}", loaded.message()));
    };
    let job = queue.load_job(*id).await?;
    let why = job.status().value.message.into_owned();
    Ok(match report.failed.len() {
        1 => format!("{id} failed: {why}"),
        more => format!("{more} jobs failed, the first, {id}: {why}"),
    })
}
