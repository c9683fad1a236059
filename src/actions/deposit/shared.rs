//! What the parts of taking deposits share.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use queuekeeper_catalogue::deposits::REFUSED;
use queuekeeper_ingest::deposit::Upload;
use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::url::ContentUrl;
use tokio::sync::Semaphore;

use super::Allowance;
use crate::actions::{Actions, Actor, Refusal, Role};

/// How many requests may upload at once, those of all depositors together.
pub(super) const MOST_UPLOADS: usize = 64;

/// Takes deposits; cheap to clone.
#[derive(Clone)]
pub struct Intake {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) actions: Actions,
    pub(super) services: Arc<Services>,
    pub(super) uploads: Semaphore,
    pub(super) read_again: Mutex<Option<Instant>>,
}

impl fmt::Debug for Intake {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Intake({})", self.shared.services.working.root().display())
    }
}

/// Where the content of a deposit is.
pub(super) enum Payload {
    At(ContentUrl),
    Uploaded(Upload),
}

/// Who makes a deposit, and under which key.
pub(super) struct Sender<'a> {
    pub(super) actor: &'a Actor,
    /// Whose deposit it is.
    pub(super) depositor: String,
    pub(super) allowance: &'a Allowance,
    pub(super) key: Option<String>,
    /// Why, for the audit trail; the note of the deposit, without it.
    pub(super) reason: Option<String>,
}

impl<'a> Sender<'a> {
    /// A caller who makes a deposit of their own.
    pub(super) fn of(actor: &'a Actor, allowance: &'a Allowance, key: Option<&str>) -> Self {
        Self { actor, depositor: actor.name.clone(), allowance, key: key.map(str::to_owned), reason: None }
    }
}

impl Intake {
    /// Takes deposits for the profiles, the catalogue and the working storage of these services.
    #[must_use]
    pub fn new(actions: Actions, services: Arc<Services>) -> Self {
        let (uploads, read_again) = (Semaphore::new(MOST_UPLOADS), Mutex::new(None));
        Self { shared: Arc::new(Shared { actions, services, uploads, read_again }) }
    }
}

/// Whether a deposit is one that a caller may see: depositors see their own.
pub(super) fn is_theirs(depositor: &str, actor: &Actor) -> bool {
    depositor == actor.name || actor.role > Role::Depositor
}

/// The outcome of a deposit that was refused.
pub(super) fn refused(refusal: &Refusal) -> String {
    format!("{REFUSED}{refusal}")
}

/// Whether that is the outcome of a deposit that was refused.
pub(crate) fn is_refused(outcome: &str) -> bool {
    outcome.starts_with(REFUSED)
}

pub(super) fn unavailable(error: &queuekeeper_catalogue::Error) -> Refusal {
    Refusal::of_catalogue(error)
}

/// Works on the disk, in a thread that may wait for it.
pub(super) async fn disk<T: Send + 'static>(
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
