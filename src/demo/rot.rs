//! Rot: now and then a byte of a copy changes on disk. The mill's loop finds it, and an operator has the copy repaired
//! from the other one, unless a visitor was faster.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::index::IndexedItem;
use queuekeeper_catalogue::{Catalogue, Error};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::lists::SpaceLists;
use queuekeeper_mill::bit::producer::BitSettings;
use queuekeeper_mill::bit::requested::{RemedyError, RemedyRequest, request_remedy};
use queuekeeper_mill::bit::verdict::Remedy;
use queuekeeper_mill::run::MillSettings;
use queuekeeper_store::SpaceName;
use queuekeeper_store::store::Item;
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::pace::Pace;
use super::world::World;
use crate::config::MillConfig;
use crate::server::standalone;

/// The collections whose copies rot, and are checked again and again: their files are neither large nor many. To read
/// all copies every minute would be too much.
const ROTTING: [&str; 2] = ["harbor_newspapers", "oral_history_av"];

/// The store in which copies rot. The other one serves readers.
const STORE: &str = "copies";

/// From the beginning of a loop of checks to that of the next one, in seconds at the natural rate.
const LOOP_SECONDS: f64 = 30.0;

/// The same at least, at any rate.
const LEAST_LOOP: Duration = Duration::from_secs(10);

/// When something rots first, and how long after a repair it does again.
const FIRST_SECONDS: f64 = 60.0;
const AGAIN_SECONDS: f64 = 90.0;

/// For how many seconds a bit error is left to visitors.
const LEFT_SECONDS: f64 = 30.0;

/// The same at least, at any rate.
const LEAST_LEFT: Duration = Duration::from_secs(4);

/// How long it may take until something is found, or repaired: after that it is left alone.
const MOST_SECONDS: f64 = 600.0;

/// How many seconds a check waits for the next round: no loop begins before the one under way has ended.
const ROUND_SECONDS: f64 = 5.0;

/// How often it is seen whether something was found, or repaired, or may rot.
const LOOK: Duration = Duration::from_millis(500);

/// How the mill of the demo works: as that of one machine, with a loop of checks that is fast and short. Repairs write
/// over damaged content, and the brake is not to hold those of a long day.
pub(super) fn mill_settings(pace: Pace) -> MillSettings {
    let include = ROTTING.map(|space| format!("/*/*/{space}\n")).concat();
    let include = include.parse().expect("the list is constant");
    let lists = SpaceLists { include, ..SpaceLists::default() };
    let bit = BitSettings { lists, max_age: between_loops(pace) * 2, ..BitSettings::default() };
    let limit = BrakeLimit { items: 10_000, ..BrakeLimit::default() };
    MillSettings { bit: Some(bit), round: pace.time(ROUND_SECONDS).max(LOOK), limit, ..standalone::mill_settings() }
}

fn between_loops(pace: Pace) -> Duration {
    pace.time(LOOP_SECONDS).max(LEAST_LOOP)
}

fn left(pace: Pace) -> Duration {
    pace.time(LEFT_SECONDS).max(LEAST_LEFT)
}

/// When something rots first, within what time that is found, and how long it is left to visitors.
pub(super) fn times(pace: Pace) -> [Duration; 3] {
    [pace.time(FIRST_SECONDS), between_loops(pace) * 3 / 2, left(pace)]
}

/// What lets copies rot, and has them repaired.
pub(super) struct Rot {
    catalogue: Catalogue,
    account: Option<Account>,
    copies: PathBuf,
    dice: Dice,
    pace: Pace,
}

impl Rot {
    /// That of the copies in a directory.
    pub(super) fn new(world: &World, catalogue: &Catalogue, mill: &MillConfig, copies: PathBuf) -> Self {
        let account = mill.accounts.values().next().cloned();
        Self { catalogue: catalogue.clone(), account, copies, dice: Dice::new(world.seed, "rot"), pace: world.pace }
    }

    /// Lets one copy after the other rot; never returns.
    pub(super) async fn go_on(mut self) {
        sleep(self.pace.time(FIRST_SECONDS)).await;
        loop {
            match self.rot().await {
                Ok(true) => sleep(self.pace.time(AGAIN_SECONDS)).await,
                Ok(false) => sleep(LOOK).await,
                Err(error) => {
                    tracing::warn!(%error, "cannot continue with a damaged copy of the demo");
                    sleep(self.pace.time(AGAIN_SECONDS)).await;
                }
            }
        }
    }

    /// Lets a copy rot, if there is one, and returns once it is repaired.
    async fn rot(&mut self) -> Result<bool, RemedyError> {
        let Some(account) = self.account.clone() else { return Ok(false) };
        let Some(item) = self.pick().await? else { return Ok(false) };
        let (path, place) = (self.path(&item), self.dice.float(0.0, 1.0));
        match path.map(|path| flip(&path, place)) {
            Some(Ok(at)) => tracing::info!(store = STORE, %item, at, "a byte of a copy rotted on disk"),
            Some(Err(error)) => {
                tracing::warn!(store = STORE, %item, %error, "cannot damage a copy of the demo");
                return Ok(true);
            }
            None => return Ok(false),
        }
        let Some(found) = self.until(&item, |error| error.is_some()).await? else { return Ok(true) };
        if let Some(error) = found {
            tracing::info!(number = error.id, %item, "the mill found a rotten copy");
        }
        sleep(left(self.pace)).await;
        let found = self.error(&item).await?;
        if let Some(error) = found.filter(|error| error.repair_started.is_none()) {
            let reason = "a byte of this copy rotted, and the other copy is good";
            let request = RemedyRequest { remedy: Remedy::RepairFromCopy, user: "operator", reason, source: None };
            request_remedy(&self.catalogue, &account, &error, request).await?;
        }
        if self.until(&item, |error| error.is_none()).await?.is_some() {
            tracing::info!(%item, "a rotten copy was repaired from the other one");
        }
        Ok(true)
    }

    /// An item of which both copies are there, and that nothing changes any more.
    async fn pick(&mut self) -> Result<Option<Item>, Error> {
        let mut found = Vec::new();
        for space in ROTTING {
            let space: SpaceName = space.parse().expect("the name is constant");
            let items = self.catalogue.items_with_prefix(&space, b"", None, 1_000).await?;
            found.extend(items.into_iter().filter(is_copied).map(|item| Item::new(space.clone(), item.key)));
        }
        Ok((!found.is_empty()).then(|| self.dice.pick(&found).clone()))
    }

    /// The file of an item's copy; `None` where its key does not name one below the directory.
    fn path(&self, item: &Item) -> Option<PathBuf> {
        let key = Path::new(item.key.as_str()?);
        let is_below = key.components().all(|part| matches!(part, Component::Normal(_)));
        is_below.then(|| self.copies.join(item.space.as_str()).join(key))
    }

    async fn error(&self, item: &Item) -> Result<Option<BitError>, Error> {
        self.catalogue.bit_error(&STORE.parse().expect("the name is constant"), item).await
    }

    /// Waits for what is known of a copy; `None` where that took too long.
    async fn until(
        &self,
        item: &Item,
        is_it: fn(Option<&BitError>) -> bool,
    ) -> Result<Option<Option<BitError>>, Error> {
        let end = Instant::now() + self.pace.time(MOST_SECONDS).max(LEAST_LEFT * 15);
        while Instant::now() < end {
            let error = self.error(item).await?;
            if is_it(error.as_ref()) {
                return Ok(Some(error));
            }
            sleep(LOOK).await;
        }
        tracing::warn!(%item, "a rotten copy of the demo was not found or not repaired in time");
        Ok(None)
    }
}

/// Whether it is a file that a depositor has sent, with content in both stores.
fn is_copied(item: &IndexedItem) -> bool {
    let is_sent = item.key.as_str().is_some_and(|key| key.contains("/producer/"));
    let copies = item.copies.iter().filter(|copy| !copy.is_deleted && copy.size > 0);
    is_sent && copies.clone().count() > 1 && copies.clone().any(|copy| copy.store.as_str() == STORE)
}

/// Inverts the bits of the byte of a file that is so far from its beginning, 0 to 1, as a bad disk would: the file's
/// time of change stays. The answer is which byte that is.
fn flip(path: &Path, place: f64) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let facts: fs::Metadata = file.metadata()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies within the file")]
    let at = ((facts.len() as f64 * place) as u64).min(facts.len().saturating_sub(1));
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&[!byte[0]], at)?;
    file.set_modified(facts.modified()?)?;
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rot_changes_one_byte_and_neither_size_nor_time() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("file");
        fs::write(&path, [7; 100]).unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        for (place, at) in [(0.0, 0), (0.5, 50), (1.0, 99)] {
            let good = fs::read(&path).unwrap();
            assert_eq!(flip(&path, place).unwrap(), at);
            let rotten = fs::read(&path).unwrap();
            let differing: Vec<_> = (0..100).filter(|at| good[*at] != rotten[*at]).collect();
            assert_eq!(differing, [usize::try_from(at).unwrap()]);
        }
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        fs::write(&path, "").unwrap();
        assert!(flip(&path, 0.5).is_err());
    }
}
