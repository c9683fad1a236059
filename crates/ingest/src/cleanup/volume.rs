//! Whether the working storage is this tree's: it must say so, and so must the tree.
//!
//! A tree that was lost, or that is a test's, knows none of the batches whose files lie there, and would have them all
//! removed. The znode `/queuekeeper/volumes/UUID` and a file of the volume name each other; they are made together,
//! where there is neither, and where the volume has no batch that the tree does not know. What the tree has taken is
//! cleaned the next time.

use queuekeeper_queue::path::Path;
use queuekeeper_queue::{Error, Transaction};
use serde_json::{Value, json};
use uuid::Uuid;
use zookeeper_client::Error as ReadError;

use super::listed;
use crate::blocking::blocking;
use crate::clock::now;
use crate::engine::session::Session;
use crate::services::Services;
use crate::step::StepError;
use crate::working::TREE_FILE;

/// What this process may do with the volume.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is looked through now, by this process.
    Ours,
    /// It was looked through not long ago, or another process does so.
    NotDue,
    /// It is not to be touched: one sentence.
    Refused(String),
}

/// Takes the turn to look through the volume, if it belongs to this tree.
pub(super) async fn take_turn(session: &Session) -> Result<Turn, StepError> {
    let (services, queue) = (&session.services, &session.queue);
    let (volume, ours, storage) = (services.working.volume(), services.catalogue.id(), services.working.clone());
    let path = Path::volume(&volume.to_string()).expect("a UUID is the name of a znode");
    let failed = |error: std::io::Error| StepError::working("read whose it is", &error);
    let tree = blocking(move || storage.tree()).await?.map_err(failed)?;
    let known = match queue.client().get_data(&path.to_string()).await {
        Ok((data, stat)) => Some((data, stat.version)),
        Err(ReadError::NoNode) => None,
        Err(error) => return Err(StepError::temporary(format_args!("cannot read {path}: {error}"))),
    };
    let root = services.working.root().display();
    let mut transaction = Transaction::new();
    let last = match (known, tree) {
        (_, Some(other)) if other != ours => {
            let why = format!(
                "{root} belongs to the tree of catalogue {other} ({TREE_FILE}), but this one has {ours}: if the catalogue was recreated, write its UUID into the file"
            );
            return Ok(Turn::Refused(why));
        }
        (None, Some(_)) => {
            let why = format!(
                "{root} belongs to this tree, which has no znode for it: create {path} if it is the right volume"
            );
            return Ok(Turn::Refused(why));
        }
        (None, None) => {
            if let Some(why) = foreign(session, &path).await? {
                return Ok(Turn::Refused(why));
            }
            transaction.create(path.clone(), note());
            return match queue.commit(&transaction).await {
                Ok(_) => give(services, ours).await.map(|()| Turn::NotDue),
                // Another process was faster.
                Err(Error::Conflict(_)) => Ok(Turn::NotDue),
                Err(error) => Err(error.into()),
            };
        }
        (Some((data, version)), tree) => {
            // Who made the znode may have ended before the file.
            if tree.is_none() {
                give(services, ours).await?;
            }
            transaction.set(path.clone(), note(), version);
            let data: Value = serde_json::from_slice(&data).unwrap_or_default();
            data.get("cleaned").and_then(Value::as_i64).unwrap_or(0)
        }
    };
    let every = i64::try_from(services.settings.cleanup.directories_every.as_millis()).unwrap_or(i64::MAX);
    if now().as_millisecond().saturating_sub(last) < every {
        return Ok(Turn::NotDue);
    }
    match queue.commit(&transaction).await {
        Ok(_) => Ok(Turn::Ours),
        // Another process was faster.
        Err(Error::Conflict(_) | Error::Missing(_)) => Ok(Turn::NotDue),
        Err(error) => Err(error.into()),
    }
}

/// Why a volume without a claim may be another tree's: it has a batch that this one does not know.
async fn foreign(session: &Session, znode: &Path) -> Result<Option<String>, StepError> {
    let working = session.services.working.clone();
    let failed = |error: std::io::Error| StepError::working("look through it", &error);
    for batch in blocking(move || listed::batches(working.root())).await?.map_err(failed)? {
        if session.queue.find_batch(&batch).await?.is_none() {
            let root = session.services.working.root().display();
            return Ok(Some(format!(
                "{root} has files of batches that are not in this tree, such as {batch}: create {znode} if they belong to it; they are then removed in due time"
            )));
        }
    }
    Ok(None)
}

/// Writes into the volume whose it is.
async fn give(services: &Services, catalogue: Uuid) -> Result<(), StepError> {
    let storage = services.working.clone();
    let failed = |error: std::io::Error| StepError::working("write whose it is", &error);
    blocking(move || storage.give_to(catalogue)).await?.map_err(failed)
}

/// What the znode of a volume has: when it was looked through last, in milliseconds since 1970.
fn note() -> Vec<u8> {
    json!({ "cleaned": now().as_millisecond() }).to_string().into_bytes()
}
