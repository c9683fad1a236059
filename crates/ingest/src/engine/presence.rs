//! Our own znodes of a process: which catalogue the queue has, and which daemons run where.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_queue::path::Path;
use queuekeeper_queue::record::DaemonNote;
use tracing::warn;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::adjust;
use super::session::Session;
use crate::services::Services;

/// The folder of our own znodes.
const OWN: &str = "/queuekeeper";

/// The znode with the UUID of the catalogue.
pub const CATALOGUE: &str = "/queuekeeper/catalogue";

/// After which time it is written again what could not be.
const WRITTEN_AGAIN: Duration = Duration::from_secs(5);

/// Why the daemons of this process must not work on a queue.
#[derive(Debug, thiserror::Error)]
#[error(
    "the queue has catalogue {expected} ({CATALOGUE}), but this process is configured with {found}: two catalogues would become two inventories; use the same one everywhere. If the first one is lost, see queuekeeper catalogue rebuild --help"
)]
pub struct WrongCatalogue {
    expected: String,
    found: Uuid,
}

/// The catalogue of a queue, as its daemons have written it; `None` where none has worked on it.
///
/// # Errors
/// When it cannot be read.
pub async fn catalogue(client: &Client) -> Result<Option<String>, Error> {
    match client.get_data(CATALOGUE).await {
        Ok((data, _)) => Ok(Some(crate::name::shown(&String::from_utf8_lossy(&data)))),
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has a queue take a catalogue instead of the one that its daemons have had, which is lost. One that has had none
/// takes the first that comes.
///
/// # Errors
/// When it cannot be written.
pub async fn replace_catalogue(client: &Client, catalogue: Uuid) -> Result<(), Error> {
    match client.set_data(CATALOGUE, catalogue.to_string().as_bytes(), None).await {
        Ok(_) | Err(Error::NoNode) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks that a queue has this catalogue, or gives it this one where it has none. Trouble with the connection says
/// nothing: it is checked again by the next session.
///
/// # Errors
/// When the queue has another one.
pub(super) async fn check_catalogue(
    client: &Client,
    services: &Services,
    acls: &Acls<'_>,
) -> Result<(), WrongCatalogue> {
    let found = services.catalogue.id();
    let persistent = CreateMode::Persistent.with_acls(*acls);
    for _ in 0..2 {
        match client.get_data(CATALOGUE).await {
            Ok((data, _)) if data == found.to_string().as_bytes() => return Ok(()),
            Ok((data, _)) => {
                let expected = crate::name::shown(&String::from_utf8_lossy(&data));
                return Err(WrongCatalogue { expected, found });
            }
            Err(Error::NoNode) => {
                folder(client, OWN, acls).await;
                match client.create(CATALOGUE, found.to_string().as_bytes(), &persistent).await {
                    Ok(_) => return Ok(()),
                    // Another process was faster: read what it wrote.
                    Err(Error::NodeExists) => {}
                    Err(error) => {
                        warn!(%error, "cannot write {CATALOGUE}");
                        return Ok(());
                    }
                }
            }
            Err(error) => {
                warn!(%error, "cannot read {CATALOGUE}");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Says which daemons run here, by a znode that ends with the session; the answer is what it says.
pub(super) async fn announce(client: &Client, services: &Arc<Services>, acls: &Acls<'_>) -> DaemonNote {
    folder(client, OWN, acls).await;
    folder(client, &Path::daemons().to_string(), acls).await;
    // Here, so that it does not depend on how long a download takes whether it is there.
    folder(client, &Path::progresses().to_string(), acls).await;
    let workers = services.workers.borrow().clone();
    let note = DaemonNote {
        host: host(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: Timestamp::now(),
        volume: services.working.volume().to_string(),
        workers: workers
            .iter()
            .map(|(daemon, bounds)| (daemon.name().to_owned(), u32::try_from(*bounds.start()).unwrap_or(u32::MAX)))
            .collect(),
        mail: None,
        waits: Vec::new(),
    };
    let path = Path::daemon(client.session_id().0).to_string();
    let ephemeral = CreateMode::Ephemeral.with_acls(*acls);
    if let Err(error) = client.create(&path, &note.encode(), &ephemeral).await {
        warn!(%error, "cannot write {path}; the daemons continue");
    }
    note
}

/// Keeps what the process says of itself current, until it is dropped.
pub(super) async fn keep_current(session: &Session, client: &Client, mut note: DaemonNote) {
    adjust::count(session);
    let mut mail = session.services.waiting_mail.follow();
    let mut waits = session.waits.subscribe();
    // What was found before this session is news for it.
    let mut is_written = mail.borrow().is_none();
    loop {
        tokio::select! {
            changed = adjust::follow(session) => {
                for (daemon, workers) in changed {
                    note.workers.insert(daemon.name().to_owned(), u32::try_from(workers).unwrap_or(u32::MAX));
                }
            }
            Ok(()) = mail.changed() => {}
            Ok(()) = waits.changed() => {}
            () = tokio::time::sleep(WRITTEN_AGAIN), if !is_written => {}
        }
        note.mail.clone_from(&mail.borrow_and_update());
        note.waits.clone_from(&waits.borrow_and_update());
        is_written = update(client, &note).await;
    }
}

async fn update(client: &Client, note: &DaemonNote) -> bool {
    let path = Path::daemon(client.session_id().0).to_string();
    let written = client.set_data(&path, &note.encode(), None).await;
    if let Err(error) = &written {
        warn!(%error, "cannot update {path}; its contents are outdated");
    }
    written.is_ok()
}

async fn folder(client: &Client, path: &str, acls: &Acls<'_>) {
    match client.create(path, &[], &CreateMode::Persistent.with_acls(*acls)).await {
        Ok(_) | Err(Error::NodeExists) => {}
        Err(error) => warn!(%error, "cannot create {path}"),
    }
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
