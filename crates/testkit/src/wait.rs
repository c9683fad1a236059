//! Waiting for what another process or task does, with a deadline instead of a sleep for luck.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Polls `condition` until it is true.
///
/// # Panics
/// With `what` when it is not true within `limit`.
pub async fn eventually(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually_some(limit, what, async || condition().await.then_some(())).await;
}

/// Polls `find` until it returns a value, and returns that.
///
/// # Panics
/// With `what` when there is nothing within `limit`.
pub async fn eventually_some<T>(limit: Duration, what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = find().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
