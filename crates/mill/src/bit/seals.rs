//! The seal of a report: it names the files of the report by their hashes, and the seal before it in the chain of the
//! account.
//!
//! The seal is a JSON document beside the report. Its hash is the SHA-256 of its bytes, so that any program can follow
//! the chain.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_catalogue::tasks::TaskSubject;
use queuekeeper_store::store::{Chunks, Item, Put, Store, UserProperties};
use queuekeeper_store::{Algorithm, Digest, Error, ErrorKind, Hashers, StoreName};
use serde::{Deserialize, Serialize};

use super::checker::{Checker, said};
use crate::worker::Lease;

/// How the key of a seal ends.
pub const ENDING: &str = "seal.json";

/// What a seal says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealDocument {
    /// The account.
    pub account: String,
    /// Its number in the chain of the account, from 1.
    pub number: u64,
    /// The seal before it; `None` for the first.
    pub previous: Option<PreviousSeal>,
    /// Where the report is: `STORE/SPACE/KEY`, without the ending.
    pub report: String,
    /// The result of the report.
    pub result: String,
    /// When the checks of the report had ended.
    pub ended: Timestamp,
    /// The files of the report, by their endings.
    pub files: BTreeMap<String, SealedFile>,
}

/// The seal before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousSeal {
    /// Where its report is: `STORE/SPACE/KEY`, without the ending.
    pub report: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// A file of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFile {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl SealedFile {
    /// What was hashed with SHA-256.
    pub(super) fn of(hashers: Hashers) -> Self {
        let bytes = hashers.bytes();
        let sha256 = hashers.finish().get(Algorithm::Sha256).map(Digest::hex).unwrap_or_default();
        Self { bytes, sha256 }
    }

    /// What is read now.
    pub(super) async fn read(mut content: Chunks) -> io::Result<Self> {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        while let Some(chunk) = content.try_next().await? {
            hashers.update(&chunk);
        }
        Ok(Self::of(hashers))
    }
}

impl SealDocument {
    /// The document as it is stored.
    pub(super) fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("text, numbers and maps of text are JSON");
        text + "\n"
    }
}

impl Checker {
    /// Stores the seals of the reports on a space beside them: those of which a process has recorded the report, and no
    /// more.
    pub(super) async fn store_seals(&self, subject: &TaskSubject, lease: &Lease) -> Result<(), String> {
        let store = subject.require_destination()?;
        let account = &subject.account;
        for seal in self.catalogue.seals_left(account, store, &subject.space).await.map_err(said)? {
            let (store, item) = located(&format!("{}.{ENDING}", seal.place))?;
            let reports = self.stores.get(account, &store, lease)?;
            let content = stream::iter([Ok(Bytes::from(seal.text))]).boxed();
            write(reports.as_ref(), &item, content, "application/json", lease).await?;
            self.catalogue.seal_is_stored(account, seal.number).await.map_err(said)?;
        }
        Ok(())
    }
}

/// The item at `STORE/SPACE/KEY`, with its store.
pub(super) fn located(place: &str) -> Result<(StoreName, Item), String> {
    let wrong = || format!("{place:?} is not STORE/SPACE/KEY");
    let mut parts = place.splitn(3, '/');
    let mut part = || parts.next().ok_or_else(wrong);
    let store = part()?.parse().map_err(|_invalid| wrong())?;
    let item = Item::new(part()?.parse().map_err(|_invalid| wrong())?, part()?.parse().map_err(|_invalid| wrong())?);
    Ok((store, item))
}

/// Writes a file; the answer is what was written.
pub(super) async fn write(
    store: &dyn Store,
    item: &Item,
    content: Chunks,
    content_type: &str,
    lease: &Lease,
) -> Result<SealedFile, String> {
    let (progress, hashers) = (lease.clone(), Arc::new(Mutex::new(Hashers::new([Algorithm::Sha256]))));
    let hashed = Arc::clone(&hashers);
    let content = content.inspect_ok(move |chunk| {
        progress.progressed();
        hashed.lock().update(chunk);
    });
    let user = UserProperties { content_type: Some(content_type.to_owned()), ..UserProperties::default() };
    let put = Put { user, abort: lease.ended().clone(), ..Put::default() };
    match store.put(item, content.boxed(), put).await {
        // It was done, and its record follows.
        Ok(_) | Err(Error { kind: ErrorKind::Unrecorded(_), .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    let hashers = std::mem::replace(&mut *hashers.lock(), Hashers::new([]));
    Ok(SealedFile::of(hashers))
}
