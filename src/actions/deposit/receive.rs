//! Taking the content of deposits.

use std::fmt;
use std::time::Duration;

use axum::body::Bytes;
use futures::{Stream, StreamExt as _};
use queuekeeper_ingest::deposit::{Upload, abandoned};
use queuekeeper_ingest::spec::id_of;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::quota::larger_than;
use super::request::DepositRequest;
use super::shared::{Intake, MOST_UPLOADS, Payload, Sender, disk, is_theirs};
use super::upload::{Note, Uploading};
use super::{Allowance, Taken};
use crate::actions::{Actor, Refusal};
use crate::words::size;

/// How many bytes are written at once.
const PIECE: usize = 1 << 20;

/// After how many bytes the room is looked at again.
const LOOK_AGAIN: u64 = 64 << 20;

/// How long a client may send nothing.
const SILENCE: Duration = Duration::from_mins(1);

/// After how long without a byte an upload is removed.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);

/// How often abandoned uploads are looked for.
const SWEEP: Duration = Duration::from_hours(1);

impl Intake {
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
            let why = format!("{} bytes were received; continue from there, not from {offset}", upload.offset());
            return Err(Refusal::conflict(why));
        }
        let size = note.request.size;
        let upload = self.receive(upload, body, size, allowance).await?;
        let offset = upload.offset();
        if size.is_some_and(|size| offset < size) {
            let depositor = note.depositor;
            return Ok(Taken::Uploading(Uploading { id: id_of(uuid), depositor, offset, size }));
        }
        let (checked, _) = self.check(&note.request, actor, allowance)?;
        let sender = Sender { actor, depositor: note.depositor, allowance, key: note.key, reason: None };
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
        // Before anything comes that could not become a batch.
        self.shared.actions.shared.queue_of(&self.shared.services.catalogue).await?;
        // What a request with the same key has left that was broken off is of no use: all of it comes again.
        let left = self.open(uuid).await?;
        disk("remove the upload", move || left.remove()).await?;
        let upload = self.open(uuid).await?;
        let received = self.receive(upload, body, None, allowance).await;
        if received.is_err() {
            self.discard(uuid).await;
        }
        received
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
        Ok(note.map(|Note { depositor, request, .. }| {
            (Uploading { id: id_of(uuid), depositor, offset, size: request.size }, request)
        }))
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

    /// Writes a body behind what has come.
    async fn receive<E: fmt::Display>(
        &self,
        upload: Upload,
        body: impl Stream<Item = Result<Bytes, E>>,
        announced: Option<u64>,
        allowance: &Allowance,
    ) -> Result<Upload, Refusal> {
        let Ok(_turn) = self.shared.uploads.try_acquire() else {
            let why = format!("{MOST_UPLOADS} uploads are in progress; try again in a moment");
            return Err(Refusal::Unavailable(why));
        };
        // What was announced has its room already, where the file system could give it.
        let has_room = announced.is_some_and(|size| upload.held() >= size);
        let (mut upload, mut piece, mut looked_at) = (upload, Vec::with_capacity(PIECE), 0);
        let mut body = std::pin::pin!(body);
        loop {
            let next = tokio::time::timeout(SILENCE, body.next()).await;
            let next = next.map_err(|_| broken_off(&format!("no data was received for {} s", SILENCE.as_secs())));
            let (failed, is_end) = match next {
                Ok(Some(Ok(bytes))) => {
                    piece.extend_from_slice(&bytes);
                    (None, false)
                }
                Ok(None) => (None, true),
                Ok(Some(Err(error))) => (Some(broken_off(&error.to_string())), true),
                Err(refusal) => (Some(refusal), true),
            };
            let come = upload.offset() + piece.len() as u64;
            if let Some(most) = announced.filter(|most| come > *most) {
                return Err(Refusal::Invalid(format!(
                    "more data was received than the {} that were announced",
                    size(most)
                )));
            }
            if let Some(most) = allowance.bytes_per_day.filter(|most| come > *most) {
                return Err(larger_than(most));
            }
            if piece.len() >= PIECE || (is_end && !piece.is_empty()) {
                if !has_room && come.saturating_sub(looked_at) >= LOOK_AGAIN {
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
            tracing::info!(deposit = %id_of(uuid), "removed an abandoned upload");
        }
        Ok(())
    }

    /// Removes an upload, unless a request has it.
    pub(super) async fn discard(&self, uuid: Uuid) {
        let working = self.shared.services.working.clone();
        let removed = disk("remove the upload", move || Upload::find(&working, uuid)?.map_or(Ok(()), Upload::remove));
        if let Err(refusal) = removed.await {
            tracing::warn!(deposit = %id_of(uuid), %refusal, "cannot remove an abandoned upload");
        }
    }

    pub(super) async fn open(&self, uuid: Uuid) -> Result<Upload, Refusal> {
        let working = self.shared.services.working.clone();
        disk("begin the upload", move || Upload::open(&working, uuid)).await
    }

    async fn find(&self, uuid: Uuid, actor: &Actor) -> Result<(Upload, Note), Refusal> {
        let working = self.shared.services.working.clone();
        let found = disk("continue the upload", move || {
            let Some(upload) = Upload::find(&working, uuid)? else { return Ok(None) };
            let note = upload.note()?.and_then(|note| serde_json::from_slice::<Note>(&note).ok());
            Ok(note.map(|note| (upload, note)))
        });
        let found = found.await?.filter(|(_, note)| is_theirs(&note.depositor, actor));
        found.ok_or_else(|| Refusal::Missing(format!("there is no upload {}", id_of(uuid))))
    }
}

fn broken_off(why: &str) -> Refusal {
    Refusal::Unavailable(format!(
        "the upload was interrupted: {why}; the received data is kept for a day, so the upload can be continued"
    ))
}
