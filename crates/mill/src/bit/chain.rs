//! Whether the chain of the reports of an account is whole: nothing of it was changed, removed or inserted.
//!
//! The chain is followed from its last seal to the first, as each names the one before it by its place and its hash.
//! What it does not lead to was inserted. Only the store is needed for that; who has the catalogue, or the hash of a
//! seal that was noted earlier, finds also an end that was cut off, and a chain that was written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::TryStreamExt as _;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{BitRun, Seal};
use queuekeeper_store::error::shortened;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Algorithm, Digest, ErrorKind, Hashers, Store, StoreName};

use super::checker::said;
use super::reporter::name;
use super::seals::{ENDING, PreviousSeal, SealDocument, SealedFile, located};
use crate::account::Account;

/// Where reports are, in the space for them.
const REPORTS: &str = "bit-integrity/";

/// No seal is larger: it names a few files. In bytes.
const MOST: u64 = 1 << 20;

/// Who verifies the chain of the reports of an account. Nothing is written.
pub struct ReportChain {
    /// The account.
    pub account: Account,
    /// Its stores, or why one could not be opened.
    pub stores: BTreeMap<StoreName, Result<Arc<dyn Store>, String>>,
    /// The catalogue, which has the seals as well; `None` where the store alone is asked.
    pub catalogue: Option<Catalogue>,
    /// The SHA-256 of a seal, in hexadecimal, which the chain must have.
    pub noted: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainTotals {
    /// How many reports the chain has.
    pub reports: u64,
    /// How much is wrong, or could not be read.
    pub wrong: u64,
    /// The SHA-256 of its last seal, in hexadecimal; `None` where there is none.
    pub last: Option<String>,
}

/// The next seal of the chain.
#[derive(Clone, Debug)]
struct Link {
    number: u64,
    report: String,
    /// `None` where it is not known.
    sha256: Option<String>,
}

/// A seal as it was read.
struct Read {
    sha256: String,
    /// `None` where it is none of this account, or of another place than where it was.
    document: Option<SealDocument>,
}

/// What is kept of a seal until the chain leads to it, which reads it again.
struct Sealed {
    sha256: String,
    /// Its number in the chain; `None` where it is none of this account, or of another place than where it was.
    number: Option<u64>,
}

/// What is in the space for reports.
type Listed = BTreeMap<String, (BTreeSet<String>, Option<Sealed>)>;

/// The verification on its way.
struct Verifying<'a> {
    of: &'a ReportChain,
    listed: Listed,
    visited: BTreeSet<String>,
    has_noted: bool,
    totals: ChainTotals,
    say: &'a mut (dyn FnMut(String) + Send),
}

impl ReportChain {
    /// Follows the chain, reads each file, and says in one line each what is wrong.
    ///
    /// # Errors
    /// With one sentence, where the space for reports cannot be listed or the catalogue not be read.
    pub async fn verify(&self, say: &mut (dyn FnMut(String) + Send)) -> Result<ChainTotals, String> {
        let listed = self.list().await?;
        let (visited, totals) = (BTreeSet::new(), ChainTotals::default());
        let mut verifying = Verifying { of: self, listed, visited, has_noted: false, totals, say };
        // What is sealed meanwhile is in the catalogue now, and its files are found by their places.
        let mut next = match &self.catalogue {
            Some(catalogue) => {
                let head = catalogue.seal_head(&self.account.name).await.map_err(said)?;
                head.map(|head| Link { number: head.number, report: head.place, sha256: Some(head.hash) })
            }
            None => verifying.last(),
        };
        while let Some(link) = next {
            next = verifying.follow(&link).await?;
        }
        verifying.end().await?;
        Ok(verifying.totals)
    }

    fn store(&self, name: &StoreName) -> Result<&Arc<dyn Store>, String> {
        let store = self.stores.get(name).ok_or_else(|| format!("the account has no store {name}"))?;
        store.as_ref().map_err(Clone::clone)
    }

    async fn list(&self) -> Result<Listed, String> {
        let (store, space) = self.account.report_place()?;
        let mut listing = self.store(store)?.list(&space, REPORTS.as_bytes(), None);
        let mut listed = Listed::new();
        loop {
            let entry = match listing.try_next().await {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) if matches!(error.kind, ErrorKind::NoSpace) => break,
                Err(error) => return Err(error.to_string()),
            };
            let key = entry.key.to_string();
            let (folder, file) = key.rsplit_once('/').unwrap_or_default();
            let (report, ending) = file.split_once('.').unwrap_or((file, ""));
            let report = format!("{store}/{space}/{folder}/{report}");
            listed.entry(report).or_default().0.insert(ending.to_owned());
        }
        for (report, (endings, seal)) in &mut listed {
            if endings.contains(ENDING) {
                let read = self.seal(report).await?;
                *seal = read.map(|Read { sha256, document }| Sealed {
                    sha256,
                    number: document.map(|document| document.number),
                });
            }
        }
        Ok(listed)
    }

    /// The seal of a report; `None` where there is none.
    async fn seal(&self, report: &str) -> Result<Option<Read>, String> {
        let Ok((store, item)) = located(&format!("{report}.{ENDING}")) else { return Ok(None) };
        if !self.stores.contains_key(&store) {
            return Ok(None);
        }
        let content = match self.store(&store)?.get(&item, None, None).await {
            Ok(content) => content,
            Err(error) if is_absent(&error.kind) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if content.properties.size > MOST {
            return Ok(Some(Read { sha256: String::new(), document: None }));
        }
        let bytes: Vec<_> = content.chunks.try_collect().await.map_err(|error| error.to_string())?;
        Ok(Some(self.read(report, &bytes.concat())))
    }

    fn read(&self, report: &str, bytes: &[u8]) -> Read {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        hashers.update(bytes);
        let sha256 = hashers.finish().get(Algorithm::Sha256).map(Digest::hex).unwrap_or_default();
        let document = serde_json::from_slice::<SealDocument>(bytes).ok();
        let is_its = |document: &SealDocument| document.account == self.account.name && document.report == report;
        Read { sha256, document: document.filter(is_its) }
    }
}

impl Verifying<'_> {
    fn wrong(&mut self, report: &str, what: &str) {
        self.totals.wrong += 1;
        (self.say)(format!("{}: {what}", shortened(report)));
    }

    /// The seals with their places and numbers that no one has led to, as far as they can be read.
    fn unvisited(&self) -> impl Iterator<Item = (&String, &Sealed, u64)> {
        let seals = self.listed.iter().filter(|(report, _)| !self.visited.contains(*report));
        seals.filter_map(|(report, (_, seal))| {
            let seal = seal.as_ref()?;
            Some((report, seal, seal.number?))
        })
    }

    /// The last seal below a number, by the numbers that the seals have.
    fn highest(&self, below: u64) -> Option<Link> {
        let below = self.unvisited().filter(|(_, _, number)| *number < below);
        let highest = below.max_by_key(|(_, _, number)| *number);
        highest.map(|(report, _, number)| Link { number, report: report.clone(), sha256: None })
    }

    /// The last seal of the store: the one with the highest number.
    fn last(&mut self) -> Option<Link> {
        let last = self.highest(u64::MAX)?;
        let others = self.unvisited().filter(|(report, ..)| **report != last.report);
        let same = others.filter(|(_, _, number)| *number == last.number);
        let same: Vec<_> = same.map(|(report, ..)| report.clone()).collect();
        for report in same {
            let why = format!("it has number {}, as has {}: one of them was inserted", last.number, last.report);
            self.wrong(&report, &why);
            self.visited.insert(report);
        }
        Some(last)
    }

    /// Verifies one report; the answer is the seal before it.
    async fn follow(&mut self, link: &Link) -> Result<Option<Link>, String> {
        let Link { number, report, sha256 } = link;
        self.visited.insert(report.clone());
        self.totals.reports += 1;
        let mut found = self.of.seal(report).await?;
        if found.is_none() {
            found = self.left(*number).await?;
        }
        let Some(found) = found else {
            let what = if self.listed.contains_key(report) { "its seal is missing" } else { "it is missing" };
            self.wrong(report, &format!("{what}; it was report {number}"));
            return self.lost(link, None).await;
        };
        self.has_noted |= self.of.noted.as_ref() == Some(&found.sha256);
        if self.totals.last.is_none() {
            self.totals.last = Some(found.sha256.clone());
        }
        let document = found.document.filter(|document| document.number == *number);
        let is_as_named = sha256.as_ref().is_none_or(|sha256| *sha256 == found.sha256);
        if let Some(document) = document.as_ref().filter(|_| is_as_named) {
            self.files(report, document).await?;
            match &document.previous {
                Some(PreviousSeal { report, sha256 }) if *number > 1 => {
                    return Ok(Some(Link { number: number - 1, report: report.clone(), sha256: Some(sha256.clone()) }));
                }
                None if *number == 1 => return Ok(None),
                Some(_) | None => {}
            }
        }
        self.wrong(report, &format!("its seal was changed; it is report {number}"));
        self.lost(link, document.and_then(|document| document.previous)).await
    }

    /// A seal that its process has not stored yet.
    async fn left(&self, number: u64) -> Result<Option<Read>, String> {
        let seal = self.recorded(number).await?.filter(|seal| !seal.is_stored);
        Ok(seal.map(|seal| self.of.read(&seal.place, seal.text.as_bytes())))
    }

    async fn recorded(&self, number: u64) -> Result<Option<Seal>, String> {
        let Some(catalogue) = &self.of.catalogue else { return Ok(None) };
        catalogue.seal(&self.of.account.name, number).await.map_err(said)
    }

    /// The seal before one that cannot lead to it: as the catalogue has it, or as a seal that was changed says where
    /// that is so; else the next one that there is.
    async fn lost(&mut self, from: &Link, named: Option<PreviousSeal>) -> Result<Option<Link>, String> {
        if from.number == 1 {
            return Ok(None);
        }
        let number = from.number - 1;
        if let Some(seal) = self.recorded(number).await? {
            return Ok(Some(Link { number, sha256: Some(seal.hash()), report: seal.place }));
        }
        let is_so = |named: &PreviousSeal| {
            let mut before = self.unvisited().filter(|(report, ..)| **report == named.report);
            before.any(|(_, seal, of)| seal.sha256 == named.sha256 && of == number)
        };
        if let Some(PreviousSeal { report, sha256 }) = named.filter(is_so) {
            return Ok(Some(Link { number, report, sha256: Some(sha256) }));
        }
        let next = self.highest(from.number);
        let behind = next.as_ref().map_or(0, |next| next.number);
        if behind < number {
            self.wrong(&from.report, &format!("the reports {} to {number} before it are missing", behind + 1));
        }
        Ok(next)
    }

    /// Compares the files of a report with its seal.
    async fn files(&mut self, report: &str, document: &SealDocument) -> Result<(), String> {
        for (ending, sealed) in &document.files {
            let (store, item) = located(&format!("{report}.{ending}"))?;
            match found(self.of.store(&store)?, &item).await {
                Ok(Some(found)) if found == *sealed => {}
                Ok(Some(_)) => self.wrong(report, &format!("the file .{ending} was changed")),
                Ok(None) => self.wrong(report, &format!("the file .{ending} is missing")),
                Err(why) => self.wrong(report, &format!("the file .{ending} could not be read: {why}")),
            }
        }
        let listed = self.listed.get(report).map(|(endings, _)| endings.clone()).unwrap_or_default();
        for ending in listed.iter().filter(|ending| *ending != ENDING && !document.files.contains_key(*ending)) {
            self.wrong(report, &format!("the file .{ending} was inserted"));
        }
        Ok(())
    }

    /// What the chain did not lead to.
    async fn end(&mut self) -> Result<(), String> {
        let others = self.listed.keys().filter(|report| !self.visited.contains(*report));
        let others: Vec<_> = others.cloned().collect();
        for report in others {
            if !self.is_being_written(&report).await? {
                let has_seal = self.listed.get(&report).is_some_and(|(endings, _)| endings.contains(ENDING));
                let what = match (has_seal, &self.of.catalogue) {
                    (true, _) => "it was inserted: no seal of the chain names it",
                    (false, Some(_)) => "it was inserted: it has no seal",
                    (false, None) => "it was inserted, or is being written: it has no seal",
                };
                self.wrong(&report, what);
            }
        }
        if let Some(noted) = self.of.noted.as_ref().filter(|_| !self.has_noted) {
            self.wrong(noted, "no seal of the chain has this hash");
        }
        Ok(())
    }

    /// Whether a report is that on the next run of its space: a process is writing it, or was killed and writes it
    /// again.
    async fn is_being_written(&self, report: &str) -> Result<bool, String> {
        let Some(catalogue) = &self.of.catalogue else { return Ok(false) };
        let Ok((_, item)) = located(report) else { return Ok(false) };
        let key = item.key.to_string();
        let mut parts = key.trim_start_matches(REPORTS).split('/');
        let (store, space) = (parts.next().unwrap_or_default().parse(), parts.next().unwrap_or_default().parse());
        let (Ok(store), Ok(space)) = (store, space) else { return Ok(false) };
        let run = catalogue.unreported_bit_run(&self.of.account.name, &store, &space).await.map_err(said)?;
        let is_its = |run: BitRun| run.ended.is_some_and(|ended| name(&run, ended) == key);
        Ok(run.is_some_and(is_its))
    }
}

/// A file as it is stored; `None` where it is not.
async fn found(store: &Arc<dyn Store>, item: &Item) -> Result<Option<SealedFile>, String> {
    match store.get(item, None, None).await {
        Ok(content) => SealedFile::read(content.chunks).await.map(Some).map_err(|error| error.to_string()),
        Err(error) if is_absent(&error.kind) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn is_absent(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NoSpace)
}
