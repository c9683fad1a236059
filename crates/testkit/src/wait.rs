//! Waiting for what another process or task does, with a deadline instead of a sleep for luck.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Asks `condition` again and again until it says yes.
///
/// # Panics
/// With `what` when it has not said yes within `limit`.
pub async fn eventually(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually_some(limit, what, async || condition().await.then_some(())).await;
}

/// Asks `find` again and again until it gives something, and gives that.
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
