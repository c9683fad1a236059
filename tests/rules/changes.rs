//! Changes of how rules act, requested again where a busy ZooKeeper does not answer in time.

use queuekeeper::alerts::NotChanged;
use queuekeeper_testkit::wait::eventually_some;
use queuekeeper_zookeeper::coordination::CoordinationError;

use super::world::LIMIT;

/// What becomes of a change of how rules act, once ZooKeeper answers in time.
pub(crate) async fn answered(change: impl AsyncFn() -> Result<(), NotChanged>) -> Result<(), NotChanged> {
    eventually_some(LIMIT, "ZooKeeper answers", async || match change().await {
        Err(NotChanged::Coordination(CoordinationError::NotConnected | CoordinationError::Unanswered(_))) => None,
        outcome => Some(outcome),
    })
    .await
}

/// Changes how rules act. An attempt that is not answered may have done it.
pub(crate) async fn changed(change: impl AsyncFn() -> Result<(), NotChanged>) {
    match answered(change).await {
        Ok(()) | Err(NotChanged::Already(_)) => {}
        Err(error) => panic!("{error}"),
    }
}
