//! `queuekeeper object request`: an object as an archive, by the access daemon.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use jiff::Timestamp;
use queuekeeper_ingest::access::{Extent, FindError, Format, RequestError, Requested, RequestedArchive};
use queuekeeper_queue::Queue;
use queuekeeper_queue::state::AccessState;
use serde::Serialize;
use uuid::Uuid;

use super::repair::check_queue;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND};
use crate::cli::output::{OutputArgs, Screen, Spinner, without_csv};
use crate::cli::repository::{ObjectName, Repository, RepositoryArgs};
use crate::cli::zookeeper::of_data;
use crate::cli::{UsageError, ZooKeeperArgs};
use crate::server::standalone::DataDirectory;
use crate::words::{moment, size};

/// How often a request is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Request an object as an archive, which the access daemon delivers
///
/// It creates an access request in the queue, as the button on the page of the object does. The daemon writes the
/// location of the archive into the token of the request; `queuekeeper access` and the page /access show its progress.
/// Exits with 4 if there is no such object or version, and, with --wait, with 1 if the request fails.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct RequestArgs {
    #[command(flatten)]
    name: ObjectName,

    /// The number of the version [default: the newest one]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,

    /// The format of the archive
    #[arg(
        long,
        value_name = "FORM",
        default_value = "zip",
        value_parser = PossibleValuesParser::new(["zip", "tar"]).try_map(|text| text.parse::<Format>())
    )]
    archive: Format,

    /// The files: all of the version, or only those that were deposited
    #[arg(
        long,
        value_name = "FILES",
        default_value = "full",
        value_parser = PossibleValuesParser::new(["full", "producer"]).try_map(|text| text.parse::<Extent>())
    )]
    content: Extent,

    /// Wait until it is completed, and print the link
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,

    #[command(flatten)]
    zookeeper: ZooKeeperArgs,
}

/// A request, and what has become of it.
#[derive(Debug, Serialize)]
struct Receipt {
    ark: String,
    version: u32,
    queue: &'static str,
    request: String,
    /// The token that it can be found by.
    token: String,
    requested_bytes: u64,
    /// Its state, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<AccessStateName>,
    /// Where the archive is, where it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

/// The name of a state, as in the API.
type AccessStateName = &'static str;

impl RequestArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let repository = self.repository.open().await?;
        let made = Box::pin(self.make(&repository)).await;
        repository.catalogue.close().await;
        let (receipt, failure) = made?;
        self.output.show(&receipt, |screen| receipt.show(screen))?;
        failure.map_or(Ok(()), |why| Err(CommandError::new(FAILED, why).into()))
    }

    /// The receipt, and why the request failed, where it did.
    async fn make(&self, repository: &Repository) -> anyhow::Result<(Receipt, Option<String>)> {
        let none = "archives cannot be delivered: the file of --config.file has no key access";
        let settings = repository.access().ok_or_else(|| UsageError::flag("--config.file", none))?;
        let object = repository.find(&self.name).await?;
        let zookeeper = match &self.repository.data {
            Some(data) => of_data(&DataDirectory::new(data.clone()))?,
            None => self.zookeeper.clone().config()?,
        };
        let queue = Queue::new(zookeeper.connect().await.map_err(CommandError::from)?).with_acl(zookeeper.acl.clone());
        check_queue(&queue, repository.catalogue.id()).await?;
        let wanted = RequestedArchive {
            token: Uuid::now_v7().to_string(),
            ark: object.ark.parse()?,
            version: self.version,
            format: self.archive,
            extent: self.content,
        };
        let token = wanted.token.clone();
        let made =
            queuekeeper_ingest::access::request(&queue, &repository.catalogue, settings, wanted, Timestamp::now());
        let made = made.await.map_err(failed)?;
        let mut receipt = Receipt {
            ark: object.ark,
            version: made.version,
            queue: made.queue.name(),
            request: made.id.to_string(),
            token,
            requested_bytes: made.bytes,
            state: None,
            url: None,
            expires: None,
        };
        let failure = if self.wait { receipt.follow(&queue, &made).await? } else { None };
        Ok((receipt, failure))
    }
}

impl Receipt {
    /// Waits until it has ended; the answer is why it failed, where it did.
    async fn follow(&mut self, queue: &Queue, made: &Requested) -> anyhow::Result<Option<String>> {
        let _spinner = Spinner::start("waiting for the archive");
        loop {
            let request = queue.load_request(made.queue, made.id).await.map_err(CommandError::from)?;
            let state = request.state();
            self.state = state.map(queuekeeper_queue::state::State::label);
            match state {
                Some(AccessState::Completed) => {
                    let token = request.content().value;
                    (self.url, self.expires) = (Some(token.url.into_owned()), token.expires);
                    return Ok(None);
                }
                Some(AccessState::Failed | AccessState::Deleted) => {
                    let said = request.status().value.message.into_owned();
                    let end = if state == Some(AccessState::Failed) { "failed" } else { "was deleted" };
                    return Ok(Some(format!("{} {end}: {said}", made.id)));
                }
                Some(AccessState::Pending | AccessState::Processing) | None => tokio::time::sleep(LOOK).await,
            }
        }
    }

    fn show(&self, screen: &mut Screen) {
        screen.say(&format!("{}, version {}", self.ark, self.version));
        screen.fact("request", &format!("{}/{}", self.queue, self.request));
        screen.fact("token", &self.token);
        screen.fact("size", &size(self.requested_bytes));
        screen.fact("state", self.state.unwrap_or_default());
        screen.fact("link", self.url.as_deref().unwrap_or_default());
        let expires = self.expires.map(moment);
        screen.fact("valid until", &expires.unwrap_or_default());
    }
}

fn failed(error: RequestError) -> CommandError {
    match error {
        RequestError::Find(FindError::Catalogue(error)) => CommandError::new(FAILED, error.to_string()),
        RequestError::Find(error) => CommandError::new(NOT_FOUND, error.to_string()),
        RequestError::Queue(error) => CommandError::from(error),
    }
}
