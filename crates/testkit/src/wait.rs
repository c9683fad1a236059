//! Waiting for what another process or task does, with a limit instead of a sleep for luck.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How much of a limit one look uses up at most.
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// How much longer than its limit something is waited for at most, whatever the looks take.
const MOST_LIMITS: u32 = 5;

/// Polls `condition` until it is true. A look that takes longer than half a second uses up half a second of the limit:
/// on a busy machine, what is waited for is held up as well. To measure how long something took is another thing.
///
/// # Panics
/// With `what` when it is not true within `limit`, or five times that where looks take long.
pub async fn eventually(limit: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
    eventually_some(limit, what, async || condition().await.then_some(())).await;
}

/// Polls `find` until it returns a value, and returns that; looks count as in [`eventually`].
///
/// # Panics
/// With `what` when there is nothing within `limit`, or five times that where looks take long.
pub async fn eventually_some<T>(limit: Duration, what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let (mut left, start) = (limit, Instant::now());
    loop {
        let began = Instant::now();
        let longest = (limit * MOST_LIMITS).saturating_sub(start.elapsed()).max(LONGEST_LOOK);
        match timeout(longest, find()).await {
            Ok(Some(found)) => return found,
            Ok(None) if !left.is_zero() => {}
            Ok(None) | Err(_) => panic!("not within {limit:?} (waited {:?}): {what}", start.elapsed()),
        }
        sleep(Duration::from_millis(10)).await;
        left = left.saturating_sub(began.elapsed().min(LONGEST_LOOK));
    }
}
