//! Objects in which a writer left something that was stopped, and whose job has not recorded its version: `object
//! repair`, by what the catalogue says was intended.
//!
//! The lock of an object is held only while a folder of content is given up. What is removed afterwards is in use by no
//! one, whenever the removal comes: this process may be stopped in the middle of it for longer than its session lasts,
//! and the job go on meanwhile under another name.

use std::sync::Arc;

use queuekeeper_catalogue::object_intents::ObjectIntent;
use queuekeeper_queue::Error;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_store::ocfl::{Abandoned, Object, Repaired, Root};
use queuekeeper_store::{Guarded, Noted, SpaceName, Store, StoreName};
use tracing::{info, warn};
use uuid::Uuid;

use super::before;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::recorded;
use crate::step::StepError;

/// How many intents are listed at a time.
const PAGE: u32 = 500;

/// Repairs the objects of jobs that wrote to them long enough ago. A job that goes on later stores its content again.
pub(super) async fn repair(session: &Session) -> Result<(), StepError> {
    let (catalogue, settings) = (&session.services.catalogue, &session.services.settings.cleanup);
    let mut last: Option<ObjectIntent> = None;
    loop {
        let page = catalogue.object_intents(settings.objects_after, last.as_ref(), PAGE).await?;
        let Some(newest) = page.last().cloned() else { return Ok(()) };
        for intent in page {
            if !session.may_take(Daemon::Cleanup) {
                return Ok(());
            }
            if let Err(error) = one(session, &intent).await {
                let ObjectIntent { ark, store, job, .. } = &intent;
                warn!(%ark, %store, %job, %error, "cannot repair an object");
            }
        }
        last = Some(newest);
    }
}

/// Repairs an object, as far as the job of the intent left something, which is given up first. One that is being stored
/// is looked at again, and so is one whose job may still go on.
async fn one(session: &Session, intent: &ObjectIntent) -> Result<(), StepError> {
    let space: SpaceName = intent.space.parse().map_err(StepError::permanent)?;
    let object = match find(session, intent, &space).await? {
        ObjectPlace::Elsewhere => return Ok(()),
        ObjectPlace::Empty => None,
        ObjectPlace::Has(object) => Some(object),
    };
    let (mut given_up, in_use) = session.services.catalogue.content_folders(intent.job).await?;
    let mut left = Vec::new();
    if let Some(object) = object {
        let idle = object.idle_since(before(session.services.settings.cleanup.objects_after)).await?;
        if idle.contains(&in_use) {
            if !give_up(session, intent, in_use).await? {
                return Ok(());
            }
            given_up.push(in_use);
        }
        let repaired = repair_recorded(session, &object, &space, given_up).await?;
        let Repaired { restored, finished, removed, .. } = repaired;
        if restored || finished || removed > 0 {
            let ObjectIntent { ark, store, job, .. } = intent;
            info!(%ark, %store, %job, restored, finished, removed, "repaired an object after an interrupted write");
            session.services.metrics.cleaned("object", 1);
        }
        left = repaired.left;
    }
    let is_old = intent.begun_ms <= before(session.services.settings.cleanup.after).as_millisecond();
    if is_old && !left.contains(&in_use) {
        session.fence.pass().await;
        session.services.catalogue.end_object_intent(intent).await?;
    }
    Ok(())
}

/// Repairs an object and records what that changed, and what writers changed before they died.
async fn repair_recorded(
    session: &Session,
    object: &Object,
    space: &SpaceName,
    given_up: Vec<Uuid>,
) -> Result<Repaired, StepError> {
    let catalogue = &session.services.catalogue;
    let noted = Arc::new(Noted::new(Arc::clone(object.store())));
    let object = object.clone().in_store(Arc::clone(&noted) as Arc<dyn Store>);
    let repaired = object.repair(&Abandoned::Folders(given_up)).await;
    recorded::settle(catalogue, &noted).await?;
    let repaired = repaired?;
    recorded::compare(catalogue, noted.store(), space, object.root()).await?;
    Ok(repaired)
}

/// Gives a folder of the job up; `false` where the object is being stored, or the job has stored content meanwhile.
async fn give_up(session: &Session, intent: &ObjectIntent, content: Uuid) -> Result<bool, StepError> {
    let lock = match session.queue.lock_object(LockFolder::Storage, &intent.ark).await {
        Err(Error::Conflict(_)) => return Ok(false),
        other => other?,
    };
    session.fence.pass().await;
    let is_given_up = session.services.catalogue.give_up_content(content, Some(intent)).await;
    let released = session.queue.unlock(&lock).await;
    let is_given_up = is_given_up?;
    released?;
    Ok(is_given_up)
}

/// Where the object of an intent is.
enum ObjectPlace {
    /// In a store that this process does not have.
    Elsewhere,
    /// Nowhere: its space has no objects.
    Empty,
    Has(Object),
}

async fn find(session: &Session, intent: &ObjectIntent, space: &SpaceName) -> Result<ObjectPlace, StepError> {
    let name: StoreName = intent.store.parse().map_err(StepError::permanent)?;
    let Some(store) = session.services.stores.get(&name) else { return Ok(ObjectPlace::Elsewhere) };
    let store = Arc::new(Guarded::new(Arc::clone(store), Arc::new(session.fence.clone())));
    let Some(root) = Root::open_existing(store, space.clone()).await? else { return Ok(ObjectPlace::Empty) };
    Ok(ObjectPlace::Has(root.object(&intent.ark)?))
}
