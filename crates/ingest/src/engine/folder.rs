//! Waking daemons when a folder changes.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;
use zookeeper_client::{Client, Error};

/// How often a folder is listed at most.
const SHORTEST: Duration = Duration::from_millis(50);

/// How much longer for each child: a list of 40,000 is a megabyte.
const FOR_EACH: Duration = Duration::from_micros(20);

/// After a failed look.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Watches the children of a folder by one-shot watches, and wakes a daemon at each change, until it is dropped. The
/// client must have no recursive watch.
pub(super) async fn watch(client: &Client, folder: &str, wake: &Notify) {
    loop {
        let began = Instant::now();
        let children = match client.get_and_watch_children(folder).await {
            Ok((children, _, watcher)) => {
                wake.notify_one();
                watcher.changed().await;
                children.len()
            }
            // It is made with the first znode in it.
            Err(Error::NoNode) => match client.check_and_watch_stat(folder).await {
                Ok((None, watcher)) => {
                    watcher.changed().await;
                    0
                }
                Ok((Some(_), _)) => continue,
                Err(error) => failed(folder, &error).await,
            },
            Err(error) => failed(folder, &error).await,
        };
        wake.notify_one();
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        tokio::time::sleep_until(began.max(Instant::now()) + SHORTEST + FOR_EACH.saturating_mul(children)).await;
    }
}

/// Watches whether a znode exists, and keeps the answer, until it is dropped; `changed` is called after each change.
pub(super) async fn watch_existence(
    client: &Client,
    path: &str,
    exists: &tokio::sync::watch::Sender<bool>,
    changed: impl Fn(),
) {
    loop {
        match client.check_and_watch_stat(path).await {
            Ok((stat, watcher)) => {
                if exists.send_replace(stat.is_some()) != stat.is_some() {
                    changed();
                }
                watcher.changed().await;
            }
            Err(error) => {
                failed(path, &error).await;
            }
        }
    }
}

async fn failed(path: &str, error: &Error) -> usize {
    debug!(path, %error, "cannot watch; daemons look by themselves");
    tokio::time::sleep(AFTER_FAILURE).await;
    0
}
