//! Waiting for what another process or task does, with a deadline instead of a sleep for luck.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How much of a limit one look uses up at most.
const LONGEST_LOOK: Duration = Duration::from_millis(500);

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
    let mut left = limit;
    loop {
        let began = Instant::now();
        if let Some(found) = find().await {
            return found;
        }
        assert!(!left.is_zero(), "not within {limit:?}: {what}");
        sleep(Duration::from_millis(10)).await;
        // A look that took long counts as a short one: on a busy machine, what is waited for was held up as well.
        left = left.saturating_sub(began.elapsed().min(LONGEST_LOOK));
    }
}
