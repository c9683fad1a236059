//! Profiles: what holds for the deposits of a collection, one YAML file each.
//!
//! ```yaml
//! name: merritt_demo                # the collection's mnemonic
//! collections: [ark:/99999/fk4coll] # what its objects are members of
//! owner: ark:/99999/fk4owner
//! store: main                       # a store of the configuration
//! account: main                     # of the mill; as name where absent
//! space: merritt_demo               # as name where absent
//! node: 1                           # the store's number in store.mode; 1 where absent
//! minter: {kind: ezid, shoulder: "ark:/99999/fk4", url: "https://ezid.example.edu"} # or {kind: noid, shoulder: ..}
//! notification: {addresses: [ingest@example.edu], queued: false}
//! callback: https://depositor.example.edu/callback
//! priority: 5                       # by the number of jobs where absent
//! hosts: [data.example.edu, "*.example.org"] # any public host where absent
//! internal_hosts: ["working.internal:8080"]
//! credentials_file: merritt_demo.credentials
//! report: {mail: true, suppress: false}
//! ```

mod credentials;
mod file;
mod import;
mod keys;
pub(crate) mod properties;
mod set;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use queuekeeper_store::{SpaceName, StoreName};

use crate::ark::{Ark, Shoulder};
use crate::url::{ContentUrl, Guard, HostPattern};

pub use credentials::{Credentials, Login};
pub use import::{ImportSettings, Imported, import};
pub use set::{Changes, Profiles, SetError};

/// The lowest priority that the queue knows.
const LAST_PRIORITY: u8 = 99;

/// A profile, checked.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The mnemonic of the collection: `profile` of a job's configuration.
    pub name: SpaceName,
    /// The ARKs of the collections that objects become members of.
    pub collections: Vec<Ark>,
    /// The owner of the objects and of their local ids.
    pub owner: Ark,
    /// The store that objects go to.
    pub store: StoreName,
    /// The account of the mill.
    pub account: String,
    /// The space whose root is the OCFL root.
    pub space: SpaceName,
    /// The number of the store in `store.mode`.
    pub node: u32,
    /// Where ARKs come from.
    pub minter: Minter,
    /// The addresses that reports go to where a deposit names none.
    pub addresses: Vec<String>,
    /// Whether these also get a mail when a submission was queued.
    pub is_mailed_when_queued: bool,
    /// The URL that completed jobs are reported to.
    pub callback: Option<ContentUrl>,
    /// The priority of all jobs, if it is fixed.
    pub fixed_priority: Option<u8>,
    /// The hosts from which content is fetched; `None` for all that are public.
    pub hosts: Option<Vec<HostPattern>>,
    /// Hosts of ours, which may have private addresses.
    pub internal_hosts: Vec<HostPattern>,
    /// The users and passwords for hosts.
    pub credentials: Credentials,
    /// Whether reports are mailed.
    pub is_report_mailed: bool,
    /// Whether no report is mailed of a batch that completed without failures.
    pub is_success_suppressed: bool,
}

/// Where ARKs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Minter {
    /// They are made here and registered nowhere.
    Noid(Shoulder),
    /// They are made here and registered with EZID.
    Ezid {
        /// The beginning of their names.
        shoulder: Shoulder,
        /// The service, without `/id/` and `/shoulder/`.
        url: ContentUrl,
        /// What else is said of identifiers there, and how they are made.
        options: Box<EzidOptions>,
    },
}

/// What a profile says of identifiers at EZID, besides where that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EzidOptions {
    /// What their target begins with, which ends with the ARK: where objects are seen. EZID has a page of its own for
    /// those without one.
    pub target: Option<ContentUrl>,
    /// The user of EZID who owns them; the one who registers them where none is named.
    pub owner: Option<String>,
    /// Whether EZID makes the names: the shoulder allows nothing else.
    pub mints: bool,
}

impl Minter {
    /// The beginning of names.
    #[must_use]
    pub fn shoulder(&self) -> &Shoulder {
        match self {
            Self::Noid(shoulder) | Self::Ezid { shoulder, .. } => shoulder,
        }
    }
}

/// Why a profile is invalid: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{at}: {why}", path.display(), at = line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct ProfileError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub why: String,
}

impl ProfileError {
    fn new(path: &Path, line: u64, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line).filter(|line| *line > 0), why: why.into() }
    }
}

impl Profile {
    /// The priority of the jobs of a batch: the fixed one, else `int(10 ln n + 5)` for n jobs as Java's daemons have
    /// it, so that a large batch does not starve small ones.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut, from 5 to 99")]
    pub fn priority(&self, jobs: u64) -> u8 {
        let by_number = (10.0 * (jobs.max(1) as f64).ln() + 5.0).min(f64::from(LAST_PRIORITY)) as u8;
        self.fixed_priority.unwrap_or(by_number)
    }

    /// What may be fetched for this collection.
    #[must_use]
    pub fn guard(&self) -> Guard {
        Guard::new(self.hosts.clone(), self.internal_hosts.clone())
    }
}
