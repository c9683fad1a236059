//! Objects in which a writer left something that was stopped, and whose job has not recorded its version: `object repair`,
//! by what the catalogue says was intended.

use queuekeeper_catalogue::object_intents::ObjectIntent;
use queuekeeper_queue::Error;
use queuekeeper_queue::path::LockFolder;
use queuekeeper_store::ocfl::{Abandoned, Repaired, Root};
use queuekeeper_store::{SpaceName, StoreName};
use tracing::{info, warn};

use super::before;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::step::StepError;

/// How many intents are listed at a time.
const PAGE: u32 = 500;

/// Repairs the objects of jobs that reserved them long enough ago. A job that goes on later stores its content again.
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
                warn!(%ark, %store, %job, %error, "an object cannot be repaired");
            }
        }
        last = Some(newest);
    }
}

/// Repairs an object, unless it is being stored. One whose job may still go on is looked at again.
async fn one(session: &Session, intent: &ObjectIntent) -> Result<(), StepError> {
    let lock = match session.queue.lock_object(LockFolder::Storage, &intent.ark).await {
        Err(Error::Conflict(_)) => return Ok(()),
        other => other?,
    };
    let repaired = in_store(session, intent).await;
    let released = session.queue.unlock(&lock).await;
    let Some(Repaired { restored, finished, removed, left }) = repaired? else { return Ok(()) };
    released?;
    if restored || finished || removed > 0 {
        let ObjectIntent { ark, store, job, .. } = intent;
        info!(%ark, %store, %job, restored, finished, removed, "an object was repaired in which a writer was stopped");
        session.services.metrics.cleaned("object", 1);
    }
    if left.is_empty() && intent.begun_ms <= before(session.services.settings.cleanup.after).as_millisecond() {
        session.fence.pass().await;
        session.services.catalogue.end_object_intent(intent).await?;
    }
    Ok(())
}

/// What was repaired; `None` where this process does not have the store.
async fn in_store(session: &Session, intent: &ObjectIntent) -> Result<Option<Repaired>, StepError> {
    let name: StoreName = intent.store.parse().map_err(StepError::permanent)?;
    let space: SpaceName = intent.space.parse().map_err(StepError::permanent)?;
    let Some(store) = session.services.stores.get(&name) else { return Ok(None) };
    session.fence.pass().await;
    let Some(root) = Root::open_existing(std::sync::Arc::clone(store), space).await? else {
        return Ok(Some(Repaired::default()));
    };
    let object = root.object(&intent.ark)?;
    session.fence.pass().await;
    let abandoned = Abandoned::Since(before(session.services.settings.cleanup.objects_after));
    Ok(Some(object.repair(&abandoned).await?))
}
