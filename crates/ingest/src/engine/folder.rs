//! Waking daemons when a folder changes.

use std::time::Duration;

use queuekeeper_queue::path::EntryName;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::debug;
use zookeeper_client::{Client, Error};

use super::session::Session;

/// How often a folder is listed at most.
const SHORTEST: Duration = Duration::from_millis(50);

/// How much longer for each child: a list of 40,000 is a megabyte.
const FOR_EACH: Duration = Duration::from_micros(20);

/// After a failed look.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Watches the children of a folder by one-shot watches, and wakes a daemon at each change, until it is dropped; in the
/// folder of a state, whose `session` is given, not for jobs that are at work here. The client must have no recursive
/// watch.
pub(super) async fn watch(client: &Client, folder: &str, wake: &Notify, session: Option<&Session>) {
    // After which change of the folder the daemon was woken last.
    let mut seen = None;
    loop {
        let began = Instant::now();
        let children = match client.get_and_watch_children(folder).await {
            Ok((children, stat, changes)) => {
                if seen != Some(stat.cversion) && !are_carried(session, &children) {
                    wake.notify_one();
                }
                changes.changed().await;
                // A job at work here may be what came or went: the list says whether it was that alone.
                let is_news = session.is_none_or(|session| !session.carries_any());
                seen = is_news.then(|| stat.cversion.wrapping_add(1));
                children.len()
            }
            // It is made with the first znode in it.
            Err(Error::NoNode) => match client.check_and_watch_stat(folder).await {
                Ok((None, changes)) => {
                    changes.changed().await;
                    seen = None;
                    0
                }
                Ok((Some(_), _)) => continue,
                Err(error) => failed(folder, &error).await,
            },
            Err(error) => {
                seen = None;
                failed(folder, &error).await
            }
        };
        if seen.is_some() {
            wake.notify_one();
        }
        let children = u32::try_from(children).unwrap_or(u32::MAX);
        tokio::time::sleep_until(began.max(Instant::now()) + SHORTEST + FOR_EACH.saturating_mul(children)).await;
    }
}

/// Whether all children of a state's folder are entries of jobs that are at work here.
fn are_carried(session: Option<&Session>, children: &[String]) -> bool {
    let is_carried =
        |session: &Session, name: &String| EntryName::from_name(name).is_some_and(|entry| session.carries(entry.job));
    session.is_some_and(|session| children.iter().all(|name| is_carried(session, name)))
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
