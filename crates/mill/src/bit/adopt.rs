//! Adoption: what a space of a store has, and no record knows of, is taken into the record.
//!
//! Each item is read, and recorded as it was read, by an event in the name of the one who asks for it. Whatever has a
//! record keeps it, also where the store has something else, and where the record is that it was deleted: that is for a
//! check, and for a decision. What was adopted has a record, so that the next adoption goes on where one was broken
//! off.

use std::collections::BTreeSet;

use queuekeeper_catalogue::bit::ItemRecords;
use queuekeeper_catalogue::tasks::{TaskKind, TaskOutcome, TaskSubject};
use queuekeeper_store::store::{Item, Listed};
use queuekeeper_store::{Digests, Key};
use tokio::time::sleep;

use super::checker::{CheckedSpace, Checker, said};
use super::decide::is_same;
use super::evidence;
use super::intended::is_being_stored;
use super::page::{Range, is_listed_as_recorded};
use super::read_copy::ReadCopy;
use super::verdict::{Fixity, Remedy, Sighting};
use super::verify::{CHANGING, Scope};
use crate::account::Account;
use crate::worker::{Lease, Processed, Stop};

/// What is said while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdoptSaid {
    /// So far.
    Progress(Adopted),
    /// An item is left as it is: one sentence without a full stop.
    Left(Key, String),
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Items that are taken into the record.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items that have a record, and are listed as it says.
    pub recorded: u64,
    /// Items that are left as they are, though the record does not have what the store has.
    pub left: u64,
}

/// What the record has of an item that a store lists.
enum Known {
    /// Nothing.
    Nothing,
    /// The same.
    Same,
    /// Something else: one sentence without a full stop.
    Other(&'static str),
}

fn known(listed: &Listed, records: Option<&ItemRecords>) -> Known {
    let has_record = records.is_some_and(|records| records.index.is_some() || records.audit.is_some());
    if !has_record {
        return Known::Nothing;
    }
    if evidence::index(records).is_none() && evidence::audit(records).is_none() {
        return Known::Other("it was deleted, but exists again: mill errors lists it once it is checked");
    }
    if is_listed_as_recorded(listed, records) {
        return Known::Same;
    }
    Known::Other("it differs from its record in the listing: mill verify checks it")
}

impl Checker {
    /// Takes what a space has and no record knows of into the record, in the name of a user; without one, only counts
    /// it.
    ///
    /// # Errors
    /// With one sentence, where the scope is no space of an account in a store, the store cannot be listed, or the
    /// catalogue written. What was adopted until then is recorded.
    pub async fn adopt(
        &self,
        scope: &Scope,
        user: Option<&str>,
        say: &mut (dyn FnMut(AdoptSaid) + Send),
    ) -> Result<Adopted, String> {
        let Scope { store, space: Some(space), key: None, .. } = scope else {
            return Err("a space is adopted as a whole".to_owned());
        };
        let account = self.account_of(scope)?;
        if space.is_reserved() {
            return Err(format!("the space {space} is reserved and has no content of users"));
        }
        let subject = TaskSubject {
            kind: TaskKind::Bit,
            account: account.name.clone(),
            space: space.clone(),
            key: None,
            destination: Some(store.clone()),
        };
        let place = self.place_of(account, &subject)?;
        let (mut adopted, mut behind) = (Adopted::default(), None);
        loop {
            let range = Range { behind: behind.as_ref(), last: None, number: 0 };
            let keys = self.keys(&place, &range, &Lease::unlimited()).await?;
            for (key, of_key) in &keys.known {
                let Some(listed) = &of_key.listed else { continue };
                let left = match (known(listed, of_key.records.as_ref()), user) {
                    (Known::Same, _) => {
                        adopted.recorded += 1;
                        continue;
                    }
                    (Known::Other(why), _) => Err(why.to_owned()),
                    (Known::Nothing, None) => {
                        let content = Fixity { size: listed.size, digests: Digests::default() };
                        self.why_not(&place, account, key, &content).await?.map_or(Ok(listed.size), Err)
                    }
                    (Known::Nothing, Some(user)) => self.adopt_item(&place, account, key, user).await?,
                };
                match left {
                    Ok(bytes) => (adopted.items, adopted.bytes) = (adopted.items + 1, adopted.bytes + bytes),
                    Err(why) => {
                        adopted.left += 1;
                        say(AdoptSaid::Left(key.clone(), why));
                    }
                }
                say(AdoptSaid::Progress(adopted));
            }
            say(AdoptSaid::Progress(adopted));
            match keys.cut {
                Some(cut) => behind = Some(cut),
                None => return Ok(adopted),
            }
        }
    }

    /// Why content without a record is not adopted with all others of its space: a job is about to record it, or
    /// another copy is recorded as something else, so that an operator decides about it alone.
    async fn why_not(
        &self,
        place: &CheckedSpace,
        account: &Account,
        key: &Key,
        content: &Fixity,
    ) -> Result<Option<String>, String> {
        let (store, item) = (place.store.name(), Item::new(place.space.clone(), key.clone()));
        if is_being_stored(&self.catalogue, store, &item).await? {
            return Ok(Some("a job is storing it and has not recorded it yet".to_owned()));
        }
        let others: BTreeSet<_> = account.stores.values().filter(|other| *other != store).collect();
        for other in others {
            let records = self.catalogue.records_of_item(other, &item).await.map_err(said)?;
            let recorded = [evidence::index(records.as_ref()), evidence::audit(records.as_ref())];
            if recorded.iter().flatten().any(|recorded| is_same(content, recorded) == Some(false)) {
                let why = format!(
                    "its copy in {other} is recorded with other content: once mill verify has checked it, resolve its bit error"
                );
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Takes one item into the record: its bytes, or why it is left as it is.
    async fn adopt_item(
        &self,
        place: &CheckedSpace,
        account: &Account,
        key: &Key,
        user: &str,
    ) -> Result<Result<u64, String>, String> {
        let item = Item::new(place.space.clone(), key.clone());
        for _look in 0..CHANGING.0 {
            match self.read_and_record(place, account, &item, user).await {
                Ok(done) => return Ok(done),
                Err(Stop::Failed(why)) => return Ok(Err(why)),
                Err(Stop::Ended(Processed { outcome: TaskOutcome::Restore(_, why), .. })) => {
                    return Ok(Err(format!("it {why}")));
                }
                Err(Stop::Ended(_)) => sleep(CHANGING.1).await,
            }
        }
        Ok(Err("it is being changed".to_owned()))
    }

    async fn read_and_record(
        &self,
        place: &CheckedSpace,
        account: &Account,
        item: &Item,
        user: &str,
    ) -> Result<Result<u64, String>, Stop> {
        let seen = ReadCopy::read(self, place, item, &Digests::default(), &Lease::unlimited()).await?;
        let verdict = seen.verdict();
        let (Sighting::Present(content), true) =
            (&seen.sources.content, verdict.offers.iter().any(|offer| offer.remedy == Remedy::Adopt))
        else {
            return Ok(Err(verdict.to_string()));
        };
        if let Some(why) = self.why_not(place, account, &item.key, content).await? {
            return Ok(Err(why));
        }
        let bytes = content.size;
        let seen = self.record(place, item, seen, Remedy::Adopt, user).await?;
        let part = seen.part(&account.name, place, item, &seen.verdict());
        self.catalogue.record_checks(&part, Vec::new()).await.map_err(said)?;
        Ok(Ok(bytes))
    }
}
