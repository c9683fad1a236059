//! Setting the numbers of workers: by the load, and by what an operator has changed.

use std::sync::Arc;

use tracing::info;

use super::session::Session;
use crate::daemon::Daemon;
use crate::settings::WorkerBounds;

/// Counts the workers that there are in the beginning.
pub(super) fn count(session: &Session) {
    for (daemon, workers) in session.all_workers() {
        session.services.metrics.set_workers(daemon, workers.number());
    }
}

/// Waits until the load or an operator has changed numbers of workers; the answer is how many there are now.
pub(super) async fn follow(session: &Session) -> Vec<(Daemon, usize)> {
    let services = &session.services;
    let mut bounds = services.workers.subscribe();
    loop {
        let changed = set_bounds(session, &bounds.borrow_and_update().clone());
        if !changed.is_empty() {
            return changed;
        }
        tokio::select! {
            Ok(()) = bounds.changed() => continue,
            () = tokio::time::sleep(services.settings.adjust_workers) => {}
        }
        let changed: Vec<(Daemon, usize)> =
            session.all_workers().filter_map(|(daemon, workers)| Some((daemon, workers.adjust()?))).collect();
        for (daemon, number) in &changed {
            info!(%daemon, workers = number, "adjusted the number of workers to the load");
            services.metrics.set_workers(*daemon, *number);
        }
        if !changed.is_empty() {
            return changed;
        }
    }
}

/// Gives daemons the bounds that are set now; the answer is how many workers those have whose bounds were others.
fn set_bounds(session: &Session, bounds: &WorkerBounds) -> Vec<(Daemon, usize)> {
    let mut changed = Vec::new();
    for (daemon, workers) in session.all_workers() {
        let Some(busy) = bounds.get(&daemon).and_then(|bounds| workers.set_bounds(bounds)) else { continue };
        let permits = workers.permits();
        if busy > 0 {
            session.spawn(async move {
                for _ in 0..busy {
                    if let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                        permit.forget();
                    }
                }
            });
        }
        let number = workers.number();
        info!(%daemon, workers = number, "changed the number of workers");
        session.services.metrics.set_workers(daemon, number);
        changed.push((daemon, number));
    }
    changed
}
