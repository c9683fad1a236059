//! The batches of the further parts of a deposit.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use queuekeeper_queue::{Error, LockedBatch};
use serde_json::Value;
use tracing::info;
use uuid::Uuid;

use super::rows::Rows;
use super::submission::BatchSpec;
use crate::blocking::blocking;
use crate::clock::now;
use crate::daemon::Daemon;
use crate::engine::session::Session;
use crate::parts::{Part, uuid_of_part};
use crate::spec::id_of;
use crate::step::StepError;

/// Creates the batches of the further parts of a deposit, where it has more than one and they do not exist. Each finds
/// the manifest in its own directory.
pub(super) async fn create(
    session: &Arc<Session>,
    batch: &LockedBatch,
    spec: &BatchSpec,
    rows: &Rows,
) -> Result<(), StepError> {
    if spec.part.is_some() {
        return Ok(());
    }
    let (services, queue) = (&session.services, &session.queue);
    let (count, size) = (rows.batches(), services.settings.most_jobs);
    for number in 2..=count {
        let part = Part { of: spec.id.clone(), number, count, rows: size, digest: rows.digest().to_owned() };
        let uuid = uuid_of_part(spec.uuid, number);
        let (id, objects) = (id_of(uuid), size.min(rows.in_manifest() - part.first_row()));
        if queue.find_batch(&id).await?.is_some() {
            // An attempt before has made it: it may have ended since, and its directory be removed.
            continue;
        }
        session.fence.pass().await;
        let [from, to] = [&spec.id, &id].map(|id| services.working.batch(id));
        let name = spec.file_name.clone();
        let shared = blocking(move || share(&from, &to, &name)).await?;
        shared.map_err(|error| StepError::working("link the manifest", &error))?;
        services.catalogue.record_part(spec.uuid, number, uuid, objects).await?;
        let data = Value::Object(part.submission(spec.all())).to_string();
        match queue.create_batch_beside(batch, data.as_bytes(), now()).await {
            Ok(made) => {
                info!(batch = %batch.batch.id, part = number, parts = count, %made, "created a part of a deposit");
            }
            // An attempt before has made it.
            Err(Error::Conflict(_)) if queue.find_batch(&id).await?.is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
    if count > 1 {
        session.wake(Daemon::Batch).notify_one();
    }
    Ok(())
}

/// Lets a file of a directory be in another one, too.
fn share(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    share_by(from, to, name, |file, link| fs::hard_link(file, link))
}

fn share_by(
    from: &Path,
    to: &Path,
    name: &str,
    link_file: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (file, link) = (from.join(name), to.join(name));
    let folder = link.parent().unwrap_or(to);
    fs::create_dir_all(folder)?;
    match link_file(&file, &link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if has_no_links(&error) => copy(&file, &link)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Another process has completed the deposit, and removed the directories of both batches.
            for folder in folder.ancestors().take_while(|folder| folder.starts_with(to)) {
                let _not_empty = fs::remove_dir(folder);
            }
            return Err(error);
        }
        linked => linked?,
    }
    let mut folders = link.ancestors().skip(1).take_while(|folder| folder.starts_with(to)).chain(to.parent());
    folders.try_for_each(|folder| File::open(folder)?.sync_all())
}

/// Whether the file system makes no hard link, or none of this file.
fn has_no_links(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::PermissionDenied | K::CrossesDevices | K::TooManyLinks | K::Unsupported)
}

/// Copies a file, which appears whole.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    // Helper files of ours begin with a dot.
    let new = to.with_file_name(format!(".{}", Uuid::now_v7()));
    let copied =
        fs::copy(from, &new).and_then(|_bytes| File::open(&new)?.sync_all()).and_then(|()| fs::rename(&new, to));
    copied.inspect_err(|_| drop(fs::remove_file(&new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_shared_once_and_outlives_the_directory_that_it_came_from() {
        let directory = tempfile::tempdir().unwrap();
        let [from, to] = ["bid-1", "bid-2"].map(|name| directory.path().join(name));
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/m.checkm"), "rows").unwrap();
        for _ in 0..2 {
            share(&from, &to, "a/m.checkm").unwrap();
        }
        fs::remove_dir_all(&from).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/m.checkm")).unwrap(), "rows");
        assert_eq!(share(&from, &to, "other").unwrap_err().kind(), io::ErrorKind::NotFound);
        // Nothing is made for one that is gone.
        let gone = directory.path().join("bid-3");
        assert_eq!(share(&from, &gone, "a/m.checkm").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!gone.exists() && to.exists());
    }

    #[test]
    fn a_manifest_is_copied_where_the_file_system_makes_no_hard_links() {
        use rustix::io::Errno;
        let directory = tempfile::tempdir().unwrap();
        let [from, to] = ["bid-1", "bid-2"].map(|name| directory.path().join(name));
        fs::create_dir_all(&from).unwrap();
        fs::write(from.join("m.checkm"), "rows").unwrap();
        for errno in [Errno::PERM, Errno::XDEV, Errno::MLINK, Errno::NOTSUP, Errno::OPNOTSUPP] {
            share_by(&from, &to, "m.checkm", |_, _| Err(errno.into())).unwrap();
            assert_eq!(fs::read_to_string(to.join("m.checkm")).unwrap(), "rows", "{errno}");
            assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
            fs::remove_dir_all(&to).unwrap();
        }
        assert!(share_by(&from, &to, "m.checkm", |_, _| Err(Errno::NOSPC.into())).is_err());
    }
}
