//! `queuekeeper submit`: a deposit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use queuekeeper_ingest::ark::Ark;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::pack::PackError;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_ingest::profile::{Profile, Profiles};
use queuekeeper_ingest::spec::id_of;
use queuekeeper_ingest::working::WorkingStorage;
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::BatchState;
use queuekeeper_store::Digest;
use serde_json::json;
use uuid::Uuid;

use super::exit::{CommandError, FAILED, REFUSED};
use super::output::{OutputArgs, note, without_csv};
use super::{UsageError, ZooKeeperArgs};
use crate::actions::deposit::{read_digest, read_notification, uuid_for};
use crate::server::standalone::DataDirectory;

mod check;
mod ended;
mod payload;
mod server;

use ended::{Ended, followed};
use payload::Payload;

/// How many empty directories a note names.
const MOST_NAMED: usize = 20;

/// Deposit files, a directory, or the content of a URL
///
/// A single file is deposited as it is. Its type is set by --type, or detected from its first lines or its name: a
/// manifest, a container (.zip, .tar, ..), or a file. A directory, or several files and directories, become one object:
/// they are packed into a .tar while they are sent. Its files are named by their paths, relative to the directory or as
/// given. Anything that is neither a file nor a directory, such as a link, is refused; empty directories are not
/// stored.
///
/// The content goes to the working storage of the daemons (--data, --working), or to a server (--server), where an
/// interrupted upload can be resumed.
///
/// --failed-of deposits the failed rows of a batch again, as the button on its page does; it requires --server.
/// --withdraw withdraws a deposit: all of it or nothing, until the first of its jobs leaves Pending.
///
/// A manifest of more than 40,000 rows becomes several batches; --wait waits for all of them and lists them.
///
/// With --wait, exits with 1 if a job failed. With --check, exits with 3 if something is wrong.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct SubmitArgs {
    /// Files and directories; or one http or https URL; or - for standard input
    #[arg(value_name = "FILE|DIR|URL", required_unless_present_any = ["failed_of", "withdraw"])]
    payload: Vec<String>,

    /// The collection's profile
    #[arg(long = "profile", value_name = "NAME", required_unless_present_any = ["failed_of", "withdraw"])]
    profile: Option<String>,

    /// Instead of a deposit: submit the failed rows of the deposit ID again, as a new batch; repeating this gives the
    /// same batch
    #[arg(
        long = "failed-of",
        value_name = "ID",
        requires = "server",
        conflicts_with_all = ["payload", "profile", "check", "key", "kind", "name", "title", "creator", "date", "ark",
            "local_ids", "note", "notification", "update", "digest"],
    )]
    failed_of: Option<String>,

    /// Instead of a deposit: withdraw the deposit ID, with all its jobs
    #[arg(
        long = "withdraw",
        value_name = "ID",
        requires = "server",
        conflicts_with_all = ["payload", "profile", "check", "key", "kind", "name", "title", "creator", "date", "ark",
            "local_ids", "note", "notification", "update", "digest", "failed_of", "wait"],
    )]
    withdraw: Option<String>,

    /// Why the deposit is withdrawn; required for another user's deposit
    #[arg(
        long = "reason",
        value_name = "TEXT",
        requires = "withdraw",
        conflicts_with = "payload",
        hide_short_help = true
    )]
    reason: Option<String>,

    /// The directory of a standalone repository
    #[arg(long = "data", value_name = "DIR", conflicts_with = "working")]
    data: Option<PathBuf>,

    /// The working storage of the daemons
    #[arg(long = "working", value_name = "DIR", required_unless_present_any = ["data", "check", "server", "failed_of", "withdraw"])]
    working: Option<PathBuf>,

    #[command(flatten)]
    server: server::ServerArgs,

    /// The type of the deposit; detected from content or name unless it is set
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_parser = PossibleValuesParser::new(DepositType::ALL.map(DepositType::as_str))
            .try_map(|text| text.parse::<DepositType>()),
        help_heading = "Deposit"
    )]
    kind: Option<DepositType>,

    /// The name of the file [default: the last part of its path; for several files, files.tar]
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

    /// The ARK of an existing object
    #[arg(long = "ark", value_name = "ARK", help_heading = "Deposit")]
    ark: Option<Ark>,

    /// A local id, by which the owner identifies the object; may be repeated
    #[arg(long = "local-id", value_name = "ID", help_heading = "Deposit")]
    local_ids: Vec<String>,

    /// A note for users, which is kept with the job and in the object's files
    #[arg(long = "note", value_name = "TEXT", help_heading = "Deposit", hide_short_help = true)]
    note: Option<String>,

    /// The addresses that the report is mailed to, separated by commas [default: those of the profile]
    #[arg(long = "notification", value_name = "ADDRESSES", value_parser = read_notification, help_heading = "Deposit", hide_short_help = true)]
    notification: Option<String>,

    /// Keep the object's other files, and add or replace these
    #[arg(long = "update", help_heading = "Deposit")]
    update: bool,

    /// The digest of the file, as sha256:HEX
    #[arg(long = "digest", value_name = "ALGORITHM:HEX", value_parser = read_digest, help_heading = "Deposit", hide_short_help = true)]
    digest: Option<Digest>,

    /// The UUID of the batch: repeating the same deposit with it gives the same batch, and a different deposit is
    /// refused [default: a new one]
    #[arg(
        long = "uuid",
        value_name = "UUID",
        help_heading = "Deposit",
        conflicts_with = "server",
        hide_short_help = true
    )]
    uuid: Option<Uuid>,

    /// Wait until the batch is reported
    #[arg(long = "wait")]
    wait: bool,

    /// Deposit nothing, and print problems: of the name, the digest and the lines of a manifest, and URLs that cannot
    /// be reached
    ///
    /// The content of a URL is read as a manifest if --type sets that it is one. The first 10,000 URLs of a manifest
    /// are requested, for at most 2 minutes. With --server, the server checks the request, the space for the content,
    /// and the content of a URL; it does not get the content of a file.
    #[arg(long = "check", conflicts_with_all = ["wait", "uuid"])]
    check: bool,

    /// The directory of the collections' profiles: a deposit for a profile that is not in it is refused [default: that
    /// of --data]
    #[arg(long = "profiles", value_name = "DIR", hide_short_help = true)]
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
        let makes_deposit = self.failed_of.is_none() && self.withdraw.is_none();
        if let Some(server) = self.server.connect(makes_deposit)? {
            return match (&self.failed_of, &self.withdraw) {
                (Some(id), _) => self.send_failed(&server, id).await,
                (None, Some(id)) => self.send_withdrawal(&server, id).await,
                (None, None) => self.send_to(&server).await,
            };
        }
        if self.check {
            return self.check().await;
        }
        let (zookeeper, working) = self.place()?;
        let payload = self.payload()?;
        let deposit = self.deposit(&payload)?;
        if let Some(directory) = self.profile_directory() {
            profile(&directory, &deposit.profile)?;
        }
        // Before anything is written: that it can be read.
        let content = payload.read_once()?;
        let queue = Queue::new(zookeeper.connect().await?);
        let uuid = self.uuid.unwrap_or_else(|| uuid_for(&deposit.submitter, self.server.key.as_deref()));
        let storage = || {
            WorkingStorage::open(&working)
                .with_context(|| format!("cannot use {} as the working storage", working.display()))
        };
        let made = if let Payload::Url(url) = &payload {
            let storage = if url.has_query() { Some(storage()?) } else { None };
            deposit.refer(&queue, storage.as_ref(), uuid, url).await
        } else {
            let storage = storage()?;
            Box::pin(deposit.upload(&queue, &storage, uuid, content)).await
        };
        let receipt = made.map_err(|error| CommandError::new(REFUSED, error.to_string()))?;
        if !self.wait {
            return self.print(receipt.batch, &receipt.id, Some(receipt.kind), None);
        }
        let mut reports = vec![followed(&queue, receipt.batch).await?];
        // Before the first of its jobs, the batches of all parts were made.
        for number in 2.. {
            let Some(part) = queue.find_batch(&id_of(uuid_of_part(uuid, number))).await? else { break };
            reports.push(followed(&queue, part).await?);
        }
        let ended = Ended::of(&queue, &reports, uuid).await?;
        self.print(receipt.batch, &receipt.id, Some(receipt.kind), Some(&ended))?;
        let Some(failed) = reports.iter().find(|report| report.state == BatchState::Failed) else { return Ok(()) };
        Err(CommandError::new(FAILED, failed.first_failure(&queue).await?).into())
    }

    /// ZooKeeper, and the working storage.
    fn place(&self) -> anyhow::Result<(queuekeeper_zookeeper::Config, PathBuf)> {
        let config = self.zookeeper.clone().config()?;
        let Some(data) = &self.data else { return Ok((config, self.working.clone().unwrap_or_default())) };
        let data = DataDirectory::new(data.clone());
        Ok((super::zookeeper::of_data(&data)?, data.working()))
    }

    /// What is deposited; a note names the directories that are not stored.
    fn payload(&self) -> anyhow::Result<Payload> {
        let payload = match Payload::find(&self.payload) {
            Ok(payload) => payload,
            Err(error) => match error.downcast::<PackError>() {
                Ok(error) if self.check => return Err(self.refused(&error)),
                Ok(error) => return Err(UsageError::flag("FILE|DIR|URL", error).into()),
                Err(error) => return Err(error),
            },
        };
        if let Payload::Pack(pack) = &payload {
            if self.kind.is_some_and(|kind| kind != DepositType::Container) {
                return Err(
                    UsageError::flag("--type", "a directory or several files are deposited as a container").into()
                );
            }
            if self.digest.is_some() {
                let why = "a directory or several files are packed while they are sent, so there is no digest yet";
                return Err(UsageError::flag("--digest", why).into());
            }
            let empty: Vec<_> = pack.empty_folders().take(MOST_NAMED).collect();
            let more = pack.empty_folders().count() - empty.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            if !empty.is_empty() {
                note(&format!("empty directories are not stored: {}{more}", empty.join(", ")));
            }
        }
        Ok(payload)
    }

    /// What is deposited, checked as far as that needs nothing of the content.
    fn deposit(&self, payload: &Payload) -> anyhow::Result<NewDeposit> {
        let (kind, file_name) = match payload {
            Payload::Pack(_) => (Some(DepositType::Container), Some(self.pack_name())),
            _ => (self.kind, self.name.clone().or_else(|| payload.file_name())),
        };
        let why = "the content has no name of its own; set --name";
        let deposit = NewDeposit {
            profile: self.profile.clone().unwrap_or_default(),
            kind,
            file_name: file_name.ok_or_else(|| UsageError::flag("--name", why))?,
            submitter: super::actor::actor().name,
            title: self.title.clone(),
            creator: self.creator.clone(),
            date: self.date.clone(),
            primary_id: self.ark.as_ref().map(|ark| ark.as_str().to_owned()),
            local_ids: self.local_ids.clone(),
            digest: self.digest.clone(),
            note: self.note.clone(),
            notification: self.notification.clone(),
            is_update: self.update,
            ..NewDeposit::default()
        };
        // With --check, it is a problem like others.
        if !self.check {
            deposit.check().map_err(|error| CommandError::new(REFUSED, error.to_string()))?;
        }
        Ok(deposit)
    }

    /// Where the profiles are, if that is known here.
    fn profile_directory(&self) -> Option<PathBuf> {
        let of_data = || self.data.clone().map(|data| DataDirectory::new(data).profiles());
        self.profiles.clone().or_else(of_data)
    }

    /// The name of the container that files and directories become: that of the one directory.
    fn pack_name(&self) -> String {
        let of_directory = || match self.payload.as_slice() {
            [one] => std::fs::canonicalize(one).ok()?.file_name()?.to_str().map(ToOwned::to_owned),
            _ => None,
        };
        let name = self.name.clone().or_else(of_directory).unwrap_or_else(|| "files".to_owned());
        let is_tar = Path::new(&name).extension().is_some_and(|end| end.eq_ignore_ascii_case("tar"));
        if is_tar { name } else { format!("{name}.tar") }
    }

    /// Prints the receipt; the type of failed rows that were submitted again is not known.
    fn print(&self, batch: BatchId, id: &str, kind: Option<DepositType>, ended: Option<&Ended>) -> anyhow::Result<()> {
        let kind = kind.map(|kind| kind.to_string());
        let mut value = json!({"batch": batch.to_string(), "id": id, "type": kind});
        let of_type = kind.map(|kind| format!(" of type {kind}")).unwrap_or_default();
        let mut lines = vec![format!("{batch} ({id}){of_type}")];
        if let Some(Ended { state, completed, failed, parts, arks, warned }) = ended {
            value["state"] = state.clone().into();
            value["completed"] = (*completed).into();
            value["failed"] = (*failed).into();
            value["arks"] = arks.clone().into();
            if !parts.is_empty() {
                value["parts"] = parts.iter().map(ended::Part::as_json).collect();
                lines.extend(parts.iter().map(ToString::to_string));
            }
            lines.push(format!("{state}: {completed} completed, {failed} failed"));
            value["warned"] = warned.as_json();
            lines.extend(arks.iter().cloned());
            lines.extend(warned.lines());
        }
        self.output.show(&value, |screen| lines.iter().for_each(|line| screen.say(line)))
    }
}

/// The profile of that name in a directory.
fn profile(directory: &Path, name: &str) -> anyhow::Result<Arc<Profile>> {
    let profiles = Profiles::read(directory).map_err(|error| UsageError::flag("--profiles", error))?;
    let none = || format!("there is no valid profile {name:?} in {}", directory.display());
    Ok(Arc::clone(profiles.get(name).ok_or_else(|| CommandError::new(REFUSED, none()))?))
}
