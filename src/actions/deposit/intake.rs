//! Taking deposits: who may make one, how much of it there is room for, and the batch that it becomes.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures::{Stream, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use queuekeeper_catalogue::deposits::{Deposit, NewDeposit as Recorded};
use queuekeeper_ingest::deposit::{DepositError, NewDeposit, Receipt, Upload, abandoned, id_of};
use queuekeeper_ingest::profile::Profile;
use queuekeeper_ingest::step::Services;
use queuekeeper_ingest::url::ContentUrl;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::request::{Checked, DepositRequest};
use super::upload::{Note, Uploading};
use super::{Allowance, Taken, uuid_for};
use crate::actions::audit::{ActionId, Finished, Record};
use crate::actions::{Actions, Actor, Reason, Refusal};
use crate::mirror::words::size;

/// How many requests may upload at once.
const MOST_UPLOADS: usize = 64;

/// Up to which part of the threshold of the working storage uploads are taken: the rest is for what the daemons do.
const UPLOADS_SHARE: f64 = 0.6;

/// How many bytes are written at once.
const PIECE: usize = 1 << 20;

/// After how many bytes the room is looked at again.
const LOOK_AGAIN: u64 = 64 << 20;

/// How long a client may send nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// How old the known profiles may be.
const PROFILES_AGE: Duration = Duration::from_secs(5);

/// After how long without a byte an upload is removed.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);

/// How often abandoned uploads are looked for.
const SWEEP: Duration = Duration::from_hours(1);

/// How many names an error lists.
const NAMED: usize = 20;

/// Takes deposits; cheap to clone.
#[derive(Clone)]
pub struct Intake {
    shared: Arc<Shared>,
}

struct Shared {
    actions: Actions,
    services: Arc<Services>,
    uploads: Semaphore,
    read_again: Mutex<Option<Instant>>,
}

impl fmt::Debug for Intake {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Intake({})", self.shared.services.working.root().display())
    }
}

/// Where the content of a deposit is.
enum Payload {
    At(ContentUrl),
    Uploaded(Upload),
}

/// Who makes a deposit, and under which key.
struct Sender<'a> {
    actor: &'a Actor,
    allowance: &'a Allowance,
    key: Option<String>,
}

impl Intake {
    /// Takes deposits for the profiles, the catalogue and the working storage of these services.
    #[must_use]
    pub fn new(actions: Actions, services: Arc<Services>) -> Self {
        let (uploads, read_again) = (Semaphore::new(MOST_UPLOADS), Mutex::new(None));
        Self { shared: Arc::new(Shared { actions, services, uploads, read_again }) }
    }

    /// The names of the profiles that a depositor may deposit for.
    #[must_use]
    pub fn profiles(&self, allowance: &Allowance) -> Vec<String> {
        self.read_again();
        let profiles = self.shared.services.profiles.read();
        let names = profiles.iter().map(|profile| profile.name.to_string());
        names.filter(|name| allowance.profiles.as_ref().is_none_or(|of| of.contains(name))).collect()
    }

    /// Begins a deposit: of what lies at a URL it is made at once, else an upload begins, or goes on, under the key.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn begin(
        &self,
        request: DepositRequest,
        actor: &Actor,
        allowance: &Allowance,
        key: Option<&str>,
        is_dry_run: bool,
    ) -> Result<Taken, Refusal> {
        let (checked, profile) = self.check(&request, actor, allowance)?;
        self.check_quota(actor, allowance, request.size.unwrap_or(0)).await?;
        if is_dry_run {
            self.look(&profile, &checked, request.size).await?;
            return Ok(Taken::WouldBeTaken);
        }
        let uuid = uuid_for(&actor.name, key);
        let sender = Sender { actor, allowance, key: key.map(str::to_owned) };
        if let Some(url) = checked.url {
            return self.make(uuid, &checked.new, Payload::At(url), sender).await.map(Taken::Made);
        }
        // The same deposit may have been made before: there is nothing to upload then.
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        if key.is_some()
            && let Some(batch) = queue.find_batch(&id_of(uuid)).await?
        {
            let kind = checked.new.kind_of(&[]);
            return Ok(Taken::Made(Receipt { batch, id: id_of(uuid), kind }));
        }
        self.check_room(request.size.unwrap_or(0)).await?;
        let note = Note { depositor: actor.name.clone(), key: key.map(str::to_owned), request };
        let size = note.request.size;
        let upload = self.open(uuid).await?;
        let offset = upload.offset();
        // It holds texts and numbers.
        let text = serde_json::to_vec(&note).unwrap_or_default();
        disk("keep the deposit", move || upload.set_note(&text)).await?;
        Ok(Taken::Uploading(Uploading { id: id_of(uuid), offset, size }))
    }

    /// Appends to an upload, from an offset on that must be how much has come; the deposit is made once all of it has.
    ///
    /// # Errors
    /// Why it is refused; what has come stays.
    pub async fn append<E: fmt::Display>(
        &self,
        uuid: Uuid,
        offset: u64,
        body: impl Stream<Item = Result<Bytes, E>>,
        actor: &Actor,
        allowance: &Allowance,
    ) -> Result<Taken, Refusal> {
        let (upload, note) = self.find(uuid, actor).await?;
        if upload.offset() != offset {
            let why = format!("{} bytes have come; go on from there, not from {offset}", upload.offset());
            return Err(Refusal::conflict(why));
        }
        let size = note.request.size;
        let upload = self.receive(upload, body, size, allowance).await?;
        let offset = upload.offset();
        if size.is_some_and(|size| offset < size) {
            return Ok(Taken::Uploading(Uploading { id: id_of(uuid), offset, size }));
        }
        let (checked, _) = self.check(&note.request, actor, allowance)?;
        let sender = Sender { actor, allowance, key: note.key };
        self.make(uuid, &checked.new, Payload::Uploaded(upload), sender).await.map(Taken::Made)
    }

    /// Takes content whose deposit is described only behind it, as in a form.
    ///
    /// # Errors
    /// Why it is refused; nothing of it is left then.
    pub async fn take_first<E: fmt::Display>(
        &self,
        uuid: Uuid,
        body: impl Stream<Item = Result<Bytes, E>>,
        allowance: &Allowance,
    ) -> Result<Upload, Refusal> {
        self.check_room(0).await?;
        let upload = self.open(uuid).await?;
        let received = self.receive(upload, body, None, allowance).await;
        if received.is_err() {
            self.discard(uuid).await;
        }
        received
    }

    /// Makes a deposit of content that was taken first.
    ///
    /// # Errors
    /// Why it is refused; nothing of it is left then, unless the outcome is not known.
    pub async fn make_of(
        &self,
        uuid: Uuid,
        upload: Upload,
        request: &DepositRequest,
        key: Option<&str>,
        actor: &Actor,
        allowance: &Allowance,
    ) -> Result<Receipt, Refusal> {
        let checked = match self.check(request, actor, allowance) {
            Ok((checked, _)) => checked,
            Err(refusal) => {
                disk("remove the upload", move || upload.remove()).await?;
                return Err(refusal);
            }
        };
        let sender = Sender { actor, allowance, key: key.map(str::to_owned) };
        self.make(uuid, &checked.new, Payload::Uploaded(upload), sender).await
    }

    /// An upload under way, by the id of its deposit; `None` where there is none of this depositor.
    ///
    /// # Errors
    /// When the working storage cannot be read.
    pub async fn uploading(&self, uuid: Uuid, actor: &Actor) -> Result<Option<(Uploading, DepositRequest)>, Refusal> {
        let working = self.shared.services.working.clone();
        let found = disk("read the upload", move || Upload::look(&working, uuid)).await?;
        let Some((offset, note)) = found else { return Ok(None) };
        let note = note.and_then(|note| serde_json::from_slice::<Note>(&note).ok());
        let note = note.filter(|note| is_theirs(&note.depositor, actor));
        Ok(note.map(|note| (Uploading { id: id_of(uuid), offset, size: note.request.size }, note.request)))
    }

    /// A deposit that was made; `None` where there is none of this depositor.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn deposit(&self, uuid: Uuid, actor: &Actor) -> Result<Option<Deposit>, Refusal> {
        let found = self.shared.services.catalogue.deposit(uuid).await.map_err(unavailable)?;
        Ok(found.filter(|found| is_theirs(&found.deposit.depositor, actor)))
    }

    /// The deposits of the caller, the newest first, at most `limit`.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn deposits(&self, actor: &Actor, limit: u32) -> Result<Vec<Deposit>, Refusal> {
        self.shared.services.catalogue.deposits(&actor.name, None, limit).await.map_err(unavailable)
    }

    /// Gives up an upload that is not complete. Gives whether there was one of this depositor.
    ///
    /// # Errors
    /// When it cannot be removed, or another request writes to it.
    pub async fn give_up(&self, uuid: Uuid, actor: &Actor) -> Result<bool, Refusal> {
        match self.find(uuid, actor).await {
            Ok((upload, _)) => disk("remove the upload", move || upload.remove()).await.map(|()| true),
            Err(Refusal::Missing(_)) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Removes uploads to which nothing was added for a day, until `shutdown`.
    pub async fn sweep(self, shutdown: CancellationToken) {
        let sweep = async {
            loop {
                if let Err(error) = self.sweep_once().await {
                    tracing::warn!(%error, "cannot remove abandoned uploads");
                }
                tokio::time::sleep(SWEEP).await;
            }
        };
        shutdown.run_until_cancelled(sweep).await;
    }

    async fn sweep_once(&self) -> Result<(), Refusal> {
        let working = self.shared.services.working.clone();
        let ids = disk("list the uploads", move || abandoned(&working, ABANDONED_AFTER)).await?;
        for uuid in ids.iter().filter_map(|id| id.strip_prefix("bid-")?.parse().ok()) {
            self.discard(uuid).await;
            tracing::info!(deposit = %id_of(uuid), "an upload that was broken off was removed");
        }
        Ok(())
    }

    /// Removes an upload, unless a request has it.
    async fn discard(&self, uuid: Uuid) {
        let working = self.shared.services.working.clone();
        let removed = disk("remove the upload", move || Upload::find(&working, uuid)?.map_or(Ok(()), Upload::remove));
        if let Err(refusal) = removed.await {
            tracing::warn!(deposit = %id_of(uuid), %refusal, "an upload stays");
        }
    }

    async fn open(&self, uuid: Uuid) -> Result<Upload, Refusal> {
        let working = self.shared.services.working.clone();
        disk("begin the upload", move || Upload::open(&working, uuid)).await
    }

    async fn find(&self, uuid: Uuid, actor: &Actor) -> Result<(Upload, Note), Refusal> {
        let working = self.shared.services.working.clone();
        let found = disk("take up the upload", move || {
            let Some(upload) = Upload::find(&working, uuid)? else { return Ok(None) };
            let note = upload.note()?.and_then(|note| serde_json::from_slice::<Note>(&note).ok());
            Ok(note.map(|note| (upload, note)))
        });
        let found = found.await?.filter(|(_, note)| is_theirs(&note.depositor, actor));
        found.ok_or_else(|| Refusal::Missing(format!("there is no upload {}", id_of(uuid))))
    }

    /// Checks what is requested, and whether the depositor may.
    fn check(
        &self,
        request: &DepositRequest,
        actor: &Actor,
        allowance: &Allowance,
    ) -> Result<(Checked, Arc<Profile>), Refusal> {
        let checked = request.check(&actor.name)?;
        let name = &checked.new.profile;
        let may = allowance.profiles.as_ref().is_none_or(|profiles| profiles.contains(name));
        self.read_again();
        let profile = self.shared.services.profiles.read().get(name).cloned().filter(|_| may);
        let Some(profile) = profile else {
            let mut known = self.profiles(allowance);
            let more = known.len().saturating_sub(NAMED);
            known.truncate(NAMED);
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return Err(Refusal::Invalid(format!("profile: there is no {name:?} for you; there is {known}{more}")));
        };
        if let Some(url) = &checked.url {
            let refused = |why| Refusal::Invalid(format!("url: {why}"));
            profile.guard().check(url.reveal()).map_err(|why| refused(why.to_string()))?;
        }
        Ok((checked, profile))
    }

    fn read_again(&self) {
        let mut read = self.shared.read_again.lock();
        if read.is_none_or(|at| at.elapsed() > PROFILES_AGE) {
            *read = Some(Instant::now());
            // What is wrong with a file, the daemons and check-config say.
            if let Err(error) = self.shared.services.profiles.write().read_again() {
                tracing::warn!(%error, "deposits go by the profiles as they were");
            }
        }
    }

    /// Whether the content can be had at its URL, for a deposit that is not made.
    async fn look(&self, profile: &Arc<Profile>, checked: &Checked, size: Option<u64>) -> Result<(), Refusal> {
        let Some(url) = &checked.url else { return self.check_room(size.unwrap_or(0)).await };
        let fetcher = self.shared.services.fetcher(profile);
        let fetcher = fetcher.map_err(|error| Refusal::Failed(format!("{error:?}")))?;
        fetcher.size(url).await.map_err(|error| Refusal::Invalid(format!("url: {error}")))?;
        Ok(())
    }

    async fn check_quota(&self, actor: &Actor, allowance: &Allowance, bytes: u64) -> Result<(), Refusal> {
        if allowance.bytes_per_day.is_none() && allowance.deposits_per_day.is_none() {
            return Ok(());
        }
        let since = Timestamp::now() - SignedDuration::from_hours(24);
        let sent = self.shared.services.catalogue.deposited_since(&actor.name, since).await.map_err(unavailable)?;
        if allowance.deposits_per_day.is_some_and(|most| sent.deposits >= most) {
            let most = sent.deposits;
            return Err(Refusal::TooMuch(format!(
                "{most} deposits were made in the last 24 hours; that is your limit"
            )));
        }
        if let Some(most) = allowance.bytes_per_day.filter(|most| sent.bytes.saturating_add(bytes) > *most) {
            let sent = size(sent.bytes);
            let why =
                format!("{sent} were uploaded in the last 24 hours; with this, it is more than your {}", size(most));
            return Err(Refusal::TooMuch(why));
        }
        Ok(())
    }

    /// Whether so many bytes more may be uploaded.
    async fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        let working = self.shared.services.working.clone();
        let (total, free) = disk("measure the working storage", move || working.space()).await?;
        let most = (total as f64) * self.shared.services.settings.space.threshold * UPLOADS_SHARE;
        if (total.saturating_sub(free).saturating_add(bytes)) as f64 <= most {
            return Ok(());
        }
        let why = format!(
            "there is no room for {}: uploads are taken while {:.0} % of the working storage is used at most",
            if bytes > 0 { size(bytes) } else { "an upload".to_owned() },
            most / (total as f64).max(1.0) * 100.0
        );
        Err(Refusal::NoRoom(why))
    }

    /// Writes a body behind what has come.
    async fn receive<E: fmt::Display>(
        &self,
        upload: Upload,
        body: impl Stream<Item = Result<Bytes, E>>,
        announced: Option<u64>,
        allowance: &Allowance,
    ) -> Result<Upload, Refusal> {
        let Ok(_turn) = self.shared.uploads.try_acquire() else {
            let why = format!("{MOST_UPLOADS} uploads are under way; try again in a moment");
            return Err(Refusal::Unavailable(why));
        };
        let most = [announced, allowance.bytes_per_day].into_iter().flatten().min();
        let (mut upload, mut piece, mut looked_at) = (upload, Vec::with_capacity(PIECE), 0);
        let mut body = std::pin::pin!(body);
        loop {
            let next = tokio::time::timeout(SILENCE, body.next()).await;
            let next = next.map_err(|_| broken_off(format!("nothing came for {} s", SILENCE.as_secs())));
            let (failed, is_end) = match next {
                Ok(Some(Ok(bytes))) => {
                    piece.extend_from_slice(&bytes);
                    (None, false)
                }
                Ok(None) => (None, true),
                Ok(Some(Err(error))) => (Some(broken_off(error.to_string())), true),
                Err(refusal) => (Some(refusal), true),
            };
            let come = upload.offset() + piece.len() as u64;
            if let Some(most) = most.filter(|most| come > *most) {
                return Err(Refusal::Invalid(format!("more than {} came", size(most))));
            }
            if piece.len() >= PIECE || (is_end && !piece.is_empty()) {
                if come.saturating_sub(looked_at) >= LOOK_AGAIN {
                    self.check_room(0).await?;
                    looked_at = come;
                }
                (upload, piece) = disk("write the upload", move || {
                    upload.write(&piece)?;
                    piece.clear();
                    Ok((upload, piece))
                })
                .await?;
            }
            // What has come is kept: the next request goes on behind it.
            match failed {
                Some(refusal) => return Err(refusal),
                None if is_end => return Ok(upload),
                None => {}
            }
        }
    }

    /// Makes the deposit, with a record before and after.
    async fn make(
        &self,
        uuid: Uuid,
        new: &NewDeposit,
        payload: Payload,
        sender: Sender<'_>,
    ) -> Result<Receipt, Refusal> {
        let Sender { actor, allowance, key } = sender;
        let bytes = if let Payload::Uploaded(upload) = &payload { upload.offset() } else { 0 };
        let known = self.deposit(uuid, actor).await?;
        if known.is_none() {
            self.check_quota(actor, allowance, bytes).await?;
        }
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        let catalogue = &self.shared.services.catalogue;
        let recorded = Recorded {
            batch: uuid,
            depositor: actor.name.clone(),
            idempotency_key: key,
            profile: new.profile.clone(),
            objects: 1,
            bytes,
        };
        catalogue.record_deposit(&recorded).await.map_err(unavailable)?;
        let (began, id) = (Instant::now(), ActionId::new(Timestamp::now()));
        let audit = &self.shared.actions.shared.audit;
        let reason = new.note.as_deref().and_then(|note| Reason::new(note).ok());
        let reason = reason.map_or_else(|| Reason::new(&format!("deposit of {}", new.file_name)), Ok);
        let reason = reason.map_err(|error| Refusal::Invalid(error.to_string()))?;
        let requested = Record::requested(id, Timestamp::now(), actor, "deposit", &reason);
        audit.write(requested.on(vec![id_of(uuid)])).await?;
        let made = match payload {
            Payload::At(url) => new.refer(&queue, uuid, &url).await,
            Payload::Uploaded(upload) => Box::pin(new.submit_upload(&queue, uuid, upload)).await,
        };
        let made = made.map_err(Refusal::from);
        let finished = Finished {
            outcome: made.as_ref().map_or_else(Refusal::label, |_| "done"),
            detail: Some(made.as_ref().map_or_else(ToString::to_string, |receipt| receipt.batch.to_string())),
            ..Finished::default()
        };
        let outcome = Record::outcome(id, Timestamp::now(), actor.source, began.elapsed(), finished);
        if let Err(why) = audit.write(outcome).await {
            tracing::error!(deposit = %id_of(uuid), "{why}; the outcome of a deposit is not recorded");
        }
        if let Err(refusal @ (Refusal::Invalid(_) | Refusal::Failed(_))) = &made
            && known.is_none()
        {
            let ended = catalogue.deposit_ended(uuid, &format!("refused: {refusal}")).await;
            ended.unwrap_or_else(|error| tracing::warn!(%error, "a refused deposit stays open in the catalogue"));
        }
        made
    }
}

/// Whether a deposit is one that a caller may see: depositors see their own.
fn is_theirs(depositor: &str, actor: &Actor) -> bool {
    depositor == actor.name || actor.role > crate::actions::Role::Depositor
}

fn broken_off(why: String) -> Refusal {
    Refusal::Unavailable(format!("the upload was broken off: {why}; what has come is kept for a day, go on from there"))
}

fn unavailable(error: queuekeeper_catalogue::Error) -> Refusal {
    if error.is_temporary() {
        Refusal::Unavailable(format!("the catalogue: {error}; nothing was done, try again"))
    } else {
        Refusal::conflict(error.to_string())
    }
}

impl From<DepositError> for Refusal {
    fn from(error: DepositError) -> Self {
        match error {
            DepositError::Name { .. } | DepositError::Digest { .. } => Self::Invalid(error.to_string()),
            DepositError::Disk { .. } => Self::Failed(format!("working storage: {error}; the deposit was not made")),
            DepositError::Queue(error) => error.into(),
        }
    }
}

/// Works on the disk, in a thread that may wait for it.
async fn disk<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten() {
        Ok(done) => Ok(done),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(Refusal::conflict("another request is uploading this deposit; wait for it, or try again later"))
        }
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(Refusal::NoRoom(format!("cannot {what}: the working storage is full")))
        }
        Err(error) => Err(Refusal::Failed(format!("working storage: cannot {what}: {error}"))),
    }
}
