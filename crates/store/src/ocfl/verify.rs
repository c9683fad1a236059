//! Reading everything of an object, and comparing.

use std::fmt;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use crate::digest::{Algorithm, Digest, Digests, Hashers};
use crate::ocfl::error::OcflError;
use crate::ocfl::finish::DECLARATION;
use crate::ocfl::inventory::Inventory;
use crate::ocfl::object::{INVENTORY, Object, RootState, SIDECAR, is_absent, read_small};
use crate::sorted::Record;

/// How many findings are listed; the others are counted.
const MOST_FINDINGS: usize = 1000;

/// How many files are read at once.
const AT_A_TIME: usize = 4;

/// What a verification found.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// What is wrong, at most 1,000.
    pub findings: Vec<OcflFinding>,
    /// How many findings there are.
    pub count: u64,
    /// How many files were read.
    pub files: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// Something that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcflFinding {
    /// The file, relative to the root of the object.
    pub file: String,
    /// What is wrong with it.
    pub what: String,
}

/// On one line.
impl fmt::Display for OcflFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}: {}", self.file, self.what)
    }
}

impl Verified {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, file: &str, what: impl Into<String>) {
        self.count += 1;
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(OcflFinding { file: file.to_owned(), what: what.into() });
        }
    }
}

impl Object {
    /// Reads everything of the object: compares the inventories with their sidecars and with each other, the items with
    /// what the inventory names, and all content with its digests. What a living writer is writing is a finding, too.
    ///
    /// # Errors
    /// [`OcflError::Missing`] when the object does not exist, [`OcflError::Damaged`] when no inventory is sound; those
    /// of the store.
    pub async fn verify(&self) -> Result<Verified, OcflError> {
        let mut verified = Verified::default();
        let (inventory, digest) = match self.root_state().await? {
            RootState::Sound(current) => (current.inventory, current.digest),
            RootState::Absent => {
                let newest = self.newest_complete().await?;
                let newest = newest
                    .ok_or_else(|| OcflError::Missing { id: self.id().to_owned(), what: "version".to_owned() })?;
                verified.add(INVENTORY, "it is missing");
                (newest.inventory, newest.digest)
            }
            RootState::Damaged { why, .. } => {
                let newest = self.newest_complete().await?;
                let newest = newest.ok_or_else(|| self.damaged(INVENTORY, why.clone()))?;
                verified.add(INVENTORY, why);
                (newest.inventory, newest.digest)
            }
        };
        self.verify_sidecar(SIDECAR, &digest, &mut verified).await?;
        self.verify_declaration(&mut verified).await?;
        verify_times(&inventory, &mut verified);
        let head = inventory.head();
        let states = self.states(inventory.clone(), head).await?;
        for number in 1..=head {
            self.verify_version(number, &digest, &states, &mut verified).await?;
        }
        self.verify_items(&inventory, &mut verified).await?;
        self.verify_content(&inventory, &mut verified).await?;
        Ok(verified)
    }

    async fn verify_sidecar(&self, file: &str, digest: &Digest, verified: &mut Verified) -> Result<(), OcflError> {
        match self.sidecar(file).await? {
            None => verified.add(file, "it is missing"),
            Some((Err(why), _)) => verified.add(file, why),
            Some((Ok(named), _)) if named != *digest => {
                verified.add(file, format!("it names {named}, and the inventory has {digest}"));
            }
            Some(_) => {}
        }
        Ok(())
    }

    async fn verify_declaration(&self, verified: &mut Verified) -> Result<(), OcflError> {
        let file = "0=ocfl_object_1.1";
        match read_small(&*self.store, &self.item(file), 100).await? {
            None => verified.add(file, "it is missing"),
            Some((text, _)) if text != DECLARATION => verified.add(file, format!("it does not hold {DECLARATION:?}")),
            Some(_) => {}
        }
        Ok(())
    }

    async fn verify_version(
        &self,
        number: u32,
        root_digest: &Digest,
        root_states: &[Option<Digest>],
        verified: &mut Verified,
    ) -> Result<(), OcflError> {
        let head = u32::try_from(root_states.len()).unwrap_or(u32::MAX);
        let file = format!("v{number}/{INVENTORY}");
        let (inventory, digest) = match self.load(&file).await? {
            None => {
                verified.add(&file, "it is missing");
                return Ok(());
            }
            Some((_, Err(why))) => {
                verified.add(&file, why);
                return Ok(());
            }
            Some((_, Ok(loaded))) => loaded,
        };
        self.verify_sidecar(&format!("v{number}/{SIDECAR}"), &digest, verified).await?;
        if inventory.head() != number {
            verified.add(&file, format!("its head is v{}", inventory.head()));
            return Ok(());
        }
        if digest == *root_digest {
            return Ok(());
        }
        if number == head {
            verified.add(&file, "it differs from the root inventory");
        }
        let states = self.states(inventory, number).await?;
        for ((version, state), root_state) in (1_u32..).zip(states).zip(root_states) {
            if state != *root_state {
                verified.add(&file, format!("version {version} has other files than in the root inventory"));
            }
        }
        Ok(())
    }

    /// A digest of the files of each version up to one, on a thread that may be busy for long.
    async fn states(&self, inventory: Inventory, last: u32) -> Result<Vec<Option<Digest>>, OcflError> {
        self.blocking(move || (1..=last).map(|version| inventory.state_digest(version)).collect()).await
    }

    /// Compares the items that are there with those that must be.
    async fn verify_items(&self, inventory: &Inventory, verified: &mut Verified) -> Result<(), OcflError> {
        let mut named = inventory.content_within("");
        let failed = |error| self.temporary(error);
        let missing = |record: &Record, verified: &mut Verified| {
            verified.add(&String::from_utf8_lossy(record.key()), "it is missing");
        };
        let head = inventory.head();
        let mut there = std::pin::pin!(self.list(""));
        while let Some((file, listed)) = there.try_next().await? {
            let path = self.path_of(&listed.key);
            while let Some(record) = named.next_if(|record| record.key() < path).map_err(failed)? {
                missing(&record, verified);
            }
            let is_named = named.next_if(|record| record.key() == path).map_err(failed)?.is_some();
            if !is_named && !is_own(&file, head) {
                verified.add(&file, "no inventory names it");
            }
        }
        while let Some(record) = named.next().transpose().map_err(failed)? {
            missing(&record, verified);
        }
        Ok(())
    }

    /// Reads all content.
    async fn verify_content(&self, inventory: &Inventory, verified: &mut Verified) -> Result<(), OcflError> {
        let wanted = inventory.content_with_fixity().map(|content| async move {
            let (path, digests) = content.map_err(|error| self.temporary(error))?;
            let compared = self.compare(&path, &digests).await?;
            Ok::<_, OcflError>((path, compared))
        });
        let mut compared = std::pin::pin!(stream::iter(wanted).buffered(AT_A_TIME));
        while let Some((path, compared)) = compared.try_next().await? {
            match compared {
                // Said where the items are compared.
                Compared::Missing => continue,
                Compared::Same(bytes) => verified.bytes += bytes,
                Compared::Wrong(what) => verified.add(&path, what),
            }
            verified.files += 1;
        }
        Ok(())
    }

    async fn compare(&self, path: &str, digests: &Digests) -> Result<Compared, OcflError> {
        let item = self.item(path);
        let mut content = match self.store.get(&item, None, None).await {
            Ok(content) => content,
            Err(error) if is_absent(&error) => return Ok(Compared::Missing),
            Err(error) => return Err(error.into()),
        };
        let mut hashers = Hashers::new(digests.iter().map(Digest::algorithm).chain([Algorithm::Sha512]));
        let broken = |error: std::io::Error| self.broken(&item, &error.to_string());
        while let Some(chunk) = content.chunks.try_next().await.map_err(broken)? {
            hashers.update(&chunk);
        }
        let bytes = hashers.bytes();
        let found = hashers.finish();
        Ok(match digests.difference(&found) {
            None => Compared::Same(bytes),
            Some((expected, found)) => {
                let algorithm = expected.algorithm();
                Compared::Wrong(format!("its {algorithm} is {found}, and {expected} in the inventory"))
            }
        })
    }
}

enum Compared {
    Missing,
    /// With this many bytes.
    Same(u64),
    Wrong(String),
}

fn verify_times(inventory: &Inventory, verified: &mut Verified) {
    for info in inventory.versions().filter(|info| info.created.parse::<Timestamp>().is_err()) {
        let what = format!("version {} was created at {:?}, which is no time", info.number, info.created);
        verified.add(INVENTORY, what);
    }
}

/// Whether a file belongs to an object besides its content.
fn is_own(file: &str, head: u32) -> bool {
    match file.split_once('/') {
        None => matches!(file, "0=ocfl_object_1.1" | INVENTORY | SIDECAR),
        Some((folder, file)) => {
            let number = folder.strip_prefix('v').and_then(|digits| digits.parse::<u32>().ok());
            number.is_some_and(|number| (1..=head).contains(&number) && folder == format!("v{number}"))
                && matches!(file, INVENTORY | SIDECAR)
        }
    }
}
