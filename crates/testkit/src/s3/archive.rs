//! Classes of storage in which objects are archived: they are read once they were restored.

use std::collections::BTreeMap;
use std::time::SystemTime;

use parking_lot::Mutex;
use s3s::{S3Result, s3_error};

use super::S3Server;
use super::bucket::Version;

/// The classes in which an object has to be restored before it is read.
const ARCHIVES: [&str; 2] = ["GLACIER", "DEEP_ARCHIVE"];

/// How far the restore of a version is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restore {
    UnderWay,
    Ended,
}

/// The restores that were asked for, by bucket, key, and the time of the version.
#[derive(Debug, Default)]
pub(super) struct Restores(Mutex<BTreeMap<(String, String, SystemTime), Restore>>);

impl Restores {
    /// Begins to restore a version that was not.
    pub(super) fn begin(&self, bucket: String, key: String, version: &Version) -> S3Result<()> {
        let mut restores = self.0.lock();
        let of = (bucket, key, version.modified);
        if restores.get(&of) == Some(&Restore::UnderWay) {
            return Err(s3_error!(RestoreAlreadyInProgress, "Object restore is already in progress"));
        }
        restores.entry(of).or_insert(Restore::UnderWay);
        Ok(())
    }

    fn of(&self, bucket: &str, key: &str, version: &Version) -> Option<Restore> {
        self.0.lock().get(&(bucket.to_owned(), key.to_owned(), version.modified)).copied()
    }

    /// Refuses to read what is archived and was not restored.
    pub(super) fn check(&self, bucket: &str, key: &str, version: &Version) -> S3Result<()> {
        if !is_archived(version) || self.of(bucket, key, version) == Some(Restore::Ended) {
            return Ok(());
        }
        let why = "The operation is not valid for the object's storage class";
        Err(s3_error!(InvalidObjectState, "{why}"))
    }

    /// The header `x-amz-restore`, where a restore was asked for.
    pub(super) fn header(&self, bucket: &str, key: &str, version: &Version) -> Option<String> {
        Some(match self.of(bucket, key, version)? {
            Restore::UnderWay => r#"ongoing-request="true""#.to_owned(),
            Restore::Ended => r#"ongoing-request="false", expiry-date="Fri, 21 Dec 2040 00:00:00 GMT""#.to_owned(),
        })
    }
}

pub(super) fn is_archived(version: &Version) -> bool {
    version.object.as_ref().is_some_and(|object| ARCHIVES.contains(&object.storage_class()))
}

impl S3Server {
    /// Ends the restores that are under way: their objects can be read from now on. The answer is how many these were.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn end_restores(&self) -> usize {
        let mut restores = self.shared.restores.0.lock();
        let under_way = restores.values_mut().filter(|restore| **restore == Restore::UnderWay);
        under_way.map(|restore| *restore = Restore::Ended).count()
    }

    /// Lets the days pass for which restored copies can be read.
    pub fn expire_restores(&self) {
        self.shared.restores.0.lock().retain(|_, restore| *restore == Restore::UnderWay);
    }
}
