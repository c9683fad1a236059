//! Archives whose time is over, and access requests that have ended.

use std::sync::Arc;

use queuekeeper_queue::Error;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::State;
use tracing::{info, warn};

use super::before;
use crate::access::Deliveries;
use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::step::StepError;

/// Removes the archives whose links have expired.
pub(super) async fn deliveries(session: &Session) -> Result<(), StepError> {
    let services = &session.services;
    let Some(settings) = services.settings.access.clone() else { return Ok(()) };
    let Some(store) = services.stores.get(&settings.store) else { return Ok(()) };
    session.fence.pass().await;
    let removed = Deliveries::new(Arc::clone(store), settings).remove_expired(now()).await;
    let removed = removed.map_err(StepError::temporary)?;
    if removed > 0 {
        info!(removed, "removed archives whose links have expired");
    }
    services.metrics.cleaned("delivery", removed);
    Ok(())
}

/// Purges the requests that were completed or deleted long enough ago.
pub(super) async fn requests(session: &Session) -> Result<(), Error> {
    let (queue, before) = (&session.queue, before(session.services.settings.cleanup.after));
    for access in AccessQueue::ALL {
        for id in queue.requests(*access).await? {
            if !session.may_take(Daemon::Cleanup) {
                return Ok(());
            }
            let request = match queue.load_request(*access, id).await {
                Ok(request) => request,
                Err(Error::Missing(_)) => continue,
                Err(error) => return Err(error),
            };
            let is_final = request.state().is_some_and(State::is_final);
            if !is_final || request.lock().is_some() || request.entered().is_none_or(|entered| entered > before) {
                continue;
            }
            match queue.purge_request(&request).await {
                Ok(()) => {
                    info!(request = %id, queue = access.name(), "removed a finished access request");
                    session.services.metrics.cleaned("request", 1);
                }
                Err(error) if error.is_connection() => return Err(error),
                Err(error) => {
                    warn!(request = %id, queue = access.name(), %error, "cannot remove an access request yet");
                }
            }
        }
    }
    Ok(())
}
