//! Taking deposits: who may make one, how much of it there is room for, and the batch that it becomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use queuekeeper_catalogue::deposits::{Deposit, NewDeposit as Recorded};
use queuekeeper_ingest::deposit::{DepositError, NewDeposit, Receipt, Upload};
use queuekeeper_ingest::profile::Profile;
use queuekeeper_ingest::spec::id_of;
use queuekeeper_ingest::withdrawal::{WITHDRAWN, taken_back};
use queuekeeper_queue::record::WithdrawnNote;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::quota::Added;
use super::request::{Checked, DepositRequest};
use super::shared::{Intake, Payload, Sender, disk, is_refused, is_theirs, refused, unavailable};
use super::upload::{Note, Uploading};
use super::{Allowance, Past, Taken, uuid_for};
use crate::actions::audit::{ActionId, Finished, Record};
use crate::actions::{Actor, Reason, Refusal};

/// How old the known profiles may be.
const PROFILES_AGE: Duration = Duration::from_secs(5);

/// How many dry runs may fetch a manifest at a time: each may need as much disk as the largest manifest.
static CHECKS: Semaphore = Semaphore::const_new(4);

/// For how long a dry run requests the URLs of a manifest.
const REQUESTS: Duration = Duration::from_secs(4);

/// How long a dry run may take: less than a request of the API.
const CHECK: Duration = Duration::from_secs(8);

/// How many names an error lists.
const NAMED: usize = 20;

impl Intake {
    /// The names of the profiles that a depositor may deposit for.
    #[must_use]
    pub fn profiles(&self, allowance: &Allowance) -> Vec<String> {
        self.read_again();
        let profiles = self.shared.services.profiles.read();
        let names = profiles.iter().map(|profile| profile.name.to_string());
        names.filter(|name| allowance.profiles.as_ref().is_none_or(|of| of.contains(name))).collect()
    }

    /// Whether there is such a profile now.
    pub(super) fn has_profile(&self, name: &str) -> bool {
        self.read_again();
        self.shared.services.profiles.read().get(name).is_some()
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
        let uuid = uuid_for(&actor.name, key);
        if key.is_some()
            && let Some(known) = self.deposit(uuid, actor).await?
            && let Some(past) = self.past(&known).await?
        {
            return match past {
                Past::Withdrawn => Ok(Taken::Withdrawn(id_of(uuid))),
                // Whether it is the same deposit cannot be seen any more.
                Past::Removed => Err(Refusal::conflict(past.why(&id_of(uuid)))),
            };
        }
        self.check_quota(actor, allowance, Added::bytes(request.size.unwrap_or(0))).await?;
        if is_dry_run {
            let (unrequested, batches) = self.look(&profile, &checked, request.size).await?;
            return Ok(Taken::WouldBeTaken { unrequested, batches });
        }
        let sender = Sender::of(actor, allowance, key);
        if let Some(url) = checked.url {
            return self.make(uuid, &checked.new, Payload::At(url), sender).await.map(Taken::Made);
        }
        // The same deposit may have been made before: there is nothing to upload then.
        let queue = self.shared.actions.shared.queue_of(&self.shared.services.catalogue).await?;
        if key.is_some()
            && let Some(batch) = queue.find_batch(&id_of(uuid)).await?
        {
            checked.new.check_same_size(&queue, batch, request.size).await?;
            let kind = checked.new.kind_of(&[]);
            return Ok(Taken::Made(Receipt { batch, id: id_of(uuid), kind }));
        }
        // One that goes on has its room already.
        let working = self.shared.services.working.clone();
        let held = disk("look for the upload", move || Upload::held_by(&working, uuid)).await?;
        self.check_room(request.size.unwrap_or(0).saturating_sub(held)).await?;
        let note = Note { depositor: actor.name.clone(), key: key.map(str::to_owned), request };
        let (depositor, size) = (note.depositor.clone(), note.request.size);
        let mut upload = self.open(uuid).await?;
        let offset = upload.offset();
        // It holds texts and numbers.
        let text = serde_json::to_vec(&note).unwrap_or_default();
        let other = disk("keep the deposit", move || {
            // What has come is of the request that began it.
            let began = upload.note()?.and_then(|note| serde_json::from_slice::<Note>(&note).ok());
            if let Some(other) = began.and_then(|began| note.request.difference(&began.request)) {
                return Ok(Some(other));
            }
            upload.announce(size.unwrap_or(0))?;
            upload.set_note(&text).map(|()| None)
        });
        if let Some(what) = other.await? {
            return Err(DepositError::Other { id: id_of(uuid), what }.into());
        }
        Ok(Taken::Uploading(Uploading { id: id_of(uuid), depositor, offset, size }))
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
        let made = async {
            let (checked, _) = self.check(request, actor, allowance)?;
            let (upload, added) = measured(upload, &checked.new).await?;
            // One with a key may have been made before, and counts already.
            if key.is_none() {
                self.check_quota(actor, allowance, added).await?;
            }
            let sender = Sender::of(actor, allowance, key);
            self.make(uuid, &checked.new, Payload::Uploaded(upload), sender).await
        };
        self.or_discard(uuid, made).await
    }

    /// Makes a deposit of an upload that nothing can go on with: all of it comes again. What was kept for a batch that
    /// may exist is no upload any more.
    pub(super) async fn or_discard(
        &self,
        uuid: Uuid,
        made: impl Future<Output = Result<Receipt, Refusal>>,
    ) -> Result<Receipt, Refusal> {
        let made = made.await;
        if made.is_err() {
            self.discard(uuid).await;
        }
        made
    }

    /// A deposit that was made; `None` where there is none of this depositor.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn deposit(&self, uuid: Uuid, actor: &Actor) -> Result<Option<Deposit>, Refusal> {
        let found = self.shared.services.catalogue.deposit(uuid).await.map_err(|error| unavailable(&error))?;
        Ok(found.filter(|found| is_theirs(&found.deposit.depositor, actor)))
    }

    /// The further parts of a deposit.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn parts(&self, deposit: &Deposit) -> Result<Vec<Deposit>, Refusal> {
        if deposit.part_of.is_some() {
            return Ok(Vec::new());
        }
        let parts = self.shared.services.catalogue.parts(deposit.deposit.batch).await;
        parts.map_err(|error| unavailable(&error))
    }

    /// How a deposit has ended that cannot be made again; `None` where its batch is in the queue and was not withdrawn,
    /// where it was refused, and where its batch may not have been made.
    async fn past(&self, known: &Deposit) -> Result<Option<Past>, Refusal> {
        let outcome = known.outcome.as_ref().map(|(outcome, _)| outcome.as_str());
        if outcome == Some(WITHDRAWN) {
            return Ok(Some(Past::Withdrawn));
        }
        let queue = self.shared.actions.shared.connected.queue_at_hand()?;
        let Some(batch) = queue.find_batch(&id_of(known.deposit.batch)).await? else {
            return Ok(outcome
                .filter(|outcome| !is_refused(outcome) && taken_back(outcome).is_none())
                .map(|_| Past::Removed));
        };
        if outcome.is_some() {
            return Ok(None);
        }
        // The request that withdrew it may not have recorded that yet.
        let batch = queue.load_batch(batch).await?;
        Ok(WithdrawnNote::of_batch(batch.state(), &batch.message()).map(|_| Past::Withdrawn))
    }

    /// The deposits of the caller, the newest first, at most `limit`, each with its further parts.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn deposits(&self, actor: &Actor, limit: u32) -> Result<Vec<(Deposit, Vec<Deposit>)>, Refusal> {
        let (catalogue, name) = (&self.shared.services.catalogue, &actor.name);
        let found = catalogue.deposits(name, None, limit).await.map_err(|error| unavailable(&error))?;
        let Some(oldest) = found.last() else { return Ok(Vec::new()) };
        let parts = catalogue.parts_since(name, oldest.received).await.map_err(|error| unavailable(&error))?;
        let mut parts_of = BTreeMap::<Uuid, Vec<Deposit>>::new();
        for part in parts {
            let Some((first, _)) = part.part_of else { continue };
            parts_of.entry(first).or_default().push(part);
        }
        let mut with_parts = |deposit: Deposit| {
            let mut parts = parts_of.remove(&deposit.deposit.batch).unwrap_or_default();
            parts.sort_unstable_by_key(|part| part.part_of);
            (deposit, parts)
        };
        Ok(found.into_iter().map(&mut with_parts).collect())
    }

    /// Checks what is requested, and whether the depositor may.
    pub(super) fn check(
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
            return Err(Refusal::Invalid(format!(
                "profile: you may not deposit for {name:?}; your profiles: {known}{more}"
            )));
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
                tracing::warn!(%error, "deposits continue with the previous profiles");
            }
        }
    }

    /// Checks the content at a URL as the daemons would, for a deposit that is not made, or whether there is room for
    /// it. Gives how many URLs of its manifest were not requested, for want of time or since there are too many, and
    /// how many batches its rows become.
    async fn look(
        &self,
        profile: &Arc<Profile>,
        checked: &Checked,
        size: Option<u64>,
    ) -> Result<(u64, Option<u64>), Refusal> {
        let Some(url) = &checked.url else { return self.check_room(size.unwrap_or(0)).await.map(|()| (0, None)) };
        let fetcher = self.shared.services.fetcher(profile);
        let fetcher = fetcher.map_err(|error| Refusal::Failed(format!("{error:?}")))?;
        let _one = CHECKS.try_acquire().map_err(|_| {
            let why = "other dry runs are being checked; try again in some seconds".to_owned();
            Refusal::TooMuch { why, retry_after: Some(REQUESTS) }
        })?;
        let scratch = disk("create a directory for the manifest", tempfile::tempdir).await?;
        let found = checked.new.check_url(url, &fetcher, scratch.path(), REQUESTS);
        let late = |_| Refusal::Unavailable(format!("url: not checked within {} s", CHECK.as_secs()));
        let found = tokio::time::timeout(CHECK, found).await.map_err(late)?;
        let found = found.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
        if problems.is_empty() {
            return Ok((found.unrequested, found.batches));
        }
        let more = if found.has_more { "; and more" } else { "" };
        Err(Refusal::Invalid(format!("url: {}{more}", problems.join("; "))))
    }

    /// Makes the deposit, with a record before and after.
    pub(super) async fn make(
        &self,
        uuid: Uuid,
        new: &NewDeposit,
        payload: Payload,
        sender: Sender<'_>,
    ) -> Result<Receipt, Refusal> {
        let Sender { actor, depositor, allowance, key, reason } = sender;
        let (payload, added) = match payload {
            Payload::Uploaded(upload) => {
                let (upload, added) = measured(upload, new).await?;
                (Payload::Uploaded(upload), added)
            }
            // How many objects a manifest has, the daemon says that reads it.
            Payload::At(url) => (Payload::At(url), Added::bytes(0)),
        };
        let known = self.deposit(uuid, actor).await?;
        if let Some(known) = &known
            && let Some(past) = self.past(known).await?
        {
            if let Payload::Uploaded(upload) = payload {
                disk("remove the upload", move || upload.remove()).await?;
            }
            return Err(Refusal::conflict(past.why(&id_of(uuid))));
        }
        let queue = self.shared.actions.shared.queue_of(&self.shared.services.catalogue).await?;
        let reason = reason.as_deref().or(new.note.as_deref()).and_then(|text| Reason::new(text).ok());
        let reason = reason.map_or_else(|| Reason::new(&format!("deposit of {}", new.file_name)), Ok);
        let reason = reason.map_err(|error| Refusal::Invalid(error.to_string()))?;
        let (Added { objects, bytes }, profile) = (added, new.profile.clone());
        let recorded = Recorded { batch: uuid, depositor, idempotency_key: key, profile, objects, bytes };
        if let Err(refusal) = self.record_within(allowance, &recorded).await {
            // One with a key is sent again, and its upload goes on.
            if let (None, Payload::Uploaded(upload)) = (&recorded.idempotency_key, payload) {
                disk("remove the upload", move || upload.remove()).await?;
            }
            return Err(refusal);
        }
        let (began, id) = (Instant::now(), ActionId::new(Timestamp::now()));
        let audit = &self.shared.actions.shared.audit;
        let requested = Record::requested(id, Timestamp::now(), actor, "deposit", &reason);
        if let Err(why) = audit.write(requested.on(vec![id_of(uuid)])).await {
            let refusal = Refusal::from(why);
            self.end_refused(uuid, known.as_ref(), &refusal).await;
            return Err(refusal);
        }
        let made = match payload {
            Payload::At(url) => new.refer(&queue, Some(&self.shared.services.working), uuid, &url).await,
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
            tracing::error!(deposit = %id_of(uuid), "{why}; the outcome of a deposit was not recorded");
        }
        if let Err(refusal @ (Refusal::Invalid(_) | Refusal::Failed(_) | Refusal::Unavailable(_))) = &made {
            self.end_refused(uuid, known.as_ref(), refusal).await;
        }
        made
    }

    /// Records that a deposit was refused, unless it was made before.
    async fn end_refused(&self, uuid: Uuid, known: Option<&Deposit>, refusal: &Refusal) {
        if known.is_none_or(|known| known.outcome.as_ref().is_some_and(|(outcome, _)| is_refused(outcome))) {
            let ended = self.shared.services.catalogue.deposit_ended(uuid, &refused(refusal)).await;
            ended.unwrap_or_else(|error| tracing::warn!(%error, "cannot close a refused deposit in the catalogue"));
        }
    }
}

/// What an upload adds to what was sent.
async fn measured(upload: Upload, new: &NewDeposit) -> Result<(Upload, Added), Refusal> {
    let new = new.clone();
    disk("read the upload", move || {
        let mut upload = upload;
        let added = Added { objects: upload.objects(&new)?, bytes: upload.offset() };
        Ok((upload, added))
    })
    .await
}

impl From<DepositError> for Refusal {
    fn from(error: DepositError) -> Self {
        match error {
            DepositError::Name { .. } | DepositError::Manifest { .. } | DepositError::Digest { .. } => {
                Self::Invalid(error.to_string())
            }
            DepositError::Other { .. } => Self::OtherRequest(error.to_string()),
            DepositError::Disk { .. } => Self::Failed(format!("working storage: {error}; the deposit was not made")),
            DepositError::Queue(error) => error.into(),
        }
    }
}
