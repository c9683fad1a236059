//! A check at once, in the foreground: of an item, a space, or all that an account has in a store.
//!
//! It reads everything, whatever the policy of the store asks for, and waits for no round: what is wrong is said at
//! once, and written down as what a loop finds.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, NOTHING};
use queuekeeper_catalogue::tasks::{TaskKind, TaskSubject};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};
use tokio::time::sleep;

use super::checker::{CheckedSpace, Checker, said};
use super::item::Ended;
use super::page::Range;
use super::policy::ProofPolicy;
use super::verdict::CheckVerdict;
use crate::account::Account;
use crate::worker::Lease;

/// How often an item that is being changed is looked at, and how long after each look.
pub(super) const CHANGING: (u32, Duration) = (10, Duration::from_secs(1));

/// How many parts of what is too old to be kept a check forgets at its end, so that it ends soon.
const MOST_FORGOTTEN: u32 = 10;

/// What is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The account.
    pub account: String,
    /// The store.
    pub store: StoreName,
    /// The space, as the account names it; `None` for all.
    pub space: Option<SpaceName>,
    /// The item; `None` for all of the space.
    pub key: Option<Key>,
}

/// What is said while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// So far.
    Progress(Totals),
    /// Something is wrong with an item, in the space as the account names it.
    Wrong(SpaceName, Key, CheckVerdict),
    /// An item is not checked: one sentence.
    Unchecked(SpaceName, Key, String),
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Items that are proven.
    pub proven: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Items with which something is wrong.
    pub wrong: u64,
    /// Items that could not be checked.
    pub unchecked: u64,
}

impl Totals {
    /// Adds an item with which nothing is wrong.
    fn add(&mut self, subject: &TaskSubject, checked: &CheckedItem, say: &mut (dyn FnMut(Said) + Send)) {
        match checked.unread {
            None => (self.proven, self.bytes) = (self.proven + 1, self.bytes + checked.bytes),
            Some(why) => {
                self.unchecked += 1;
                say(Said::Unchecked(subject.space.clone(), checked.item.key.clone(), why.to_owned()));
            }
        }
    }
}

impl Checker {
    /// Checks what is in a scope, and says what is wrong as it is found.
    ///
    /// # Errors
    /// With one sentence, where there is no such scope, or a store cannot be listed, or the catalogue written. What was
    /// checked until then is written.
    pub async fn verify(&self, scope: &Scope, say: &mut (dyn FnMut(Said) + Send)) -> Result<Totals, String> {
        let account = self.account_of(scope)?;
        let spaces = match &scope.space {
            Some(space) => vec![space.clone()],
            None if scope.key.is_some() => return Err("a key needs the name of its space".to_owned()),
            None => self.spaces(account, &scope.store).await?,
        };
        let mut totals = Totals::default();
        for space in spaces {
            let subject = TaskSubject {
                kind: TaskKind::Bit,
                account: account.name.clone(),
                space,
                key: None,
                destination: Some(scope.store.clone()),
            };
            let place = self.place_of(account, &subject)?;
            match &scope.key {
                Some(key) => self.verify_item(&place, &subject, key, &mut totals, say).await?,
                None => self.verify_space(&place, &subject, &mut totals, say).await?,
            }
        }
        for _part in 0..MOST_FORGOTTEN {
            match self.catalogue.forget_checks().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // What was checked holds all the same.
                Err(error) => {
                    tracing::warn!(%error, "cannot delete old checks now");
                    break;
                }
            }
        }
        Ok(totals)
    }

    /// The account of a scope, which has its store.
    pub(super) fn account_of(&self, scope: &Scope) -> Result<&Account, String> {
        let account = self.accounts.get(&scope.account);
        let account = account.ok_or_else(|| format!("there is no account {:?} in the configuration", scope.account))?;
        if !account.stores.values().any(|name| *name == scope.store) {
            return Err(format!("{} is not a store of {}", scope.store, account.name));
        }
        Ok(account)
    }

    /// The spaces of an account that a store has, or of which the index knows items there.
    pub(super) async fn spaces(&self, account: &Account, store: &StoreName) -> Result<Vec<SpaceName>, String> {
        let figures = self.catalogue.counters().await.map_err(said)?;
        let opened = self.stores.get(&account.name, store, &Lease::unlimited())?;
        let listed = opened.spaces().await.map_err(|error| error.to_string())?;
        let mut spaces = account.spaces_in(&figures, store);
        spaces.extend(listed.iter().filter_map(|space| account.of_store(space)));
        Ok(spaces.into_iter().filter(|space| !space.is_reserved()).collect())
    }

    pub(super) fn place_of(&self, account: &Account, subject: &TaskSubject) -> Result<CheckedSpace, String> {
        let space = account.require_space(&subject.space)?;
        let name = subject.require_destination()?;
        let store = self.stores.get(&account.name, name, &Lease::unlimited())?;
        Ok(CheckedSpace { store: Arc::clone(&store), space, policy: ProofPolicy::Read })
    }

    async fn verify_space(
        &self,
        place: &CheckedSpace,
        subject: &TaskSubject,
        totals: &mut Totals,
        say: &mut (dyn FnMut(Said) + Send),
    ) -> Result<(), String> {
        let mut behind = None;
        loop {
            let range = Range { behind: behind.as_ref(), last: None, number: 0 };
            let page = self.check_page(place, &range, &Lease::unlimited()).await?;
            if let Some(not_yet) = page.not_yet {
                return Err(format!("the check of {} {not_yet}", place.space));
            }
            for checked in &page.right {
                totals.add(subject, checked, say);
            }
            let (account, store) = (subject.account.clone(), place.store.name().clone());
            let part = CheckedPart::of(account, store, page.right);
            self.catalogue.record_checks(&part, Vec::new()).await.map_err(said)?;
            say(Said::Progress(*totals));
            for key in page.alone {
                self.verify_item(place, subject, &key, totals, say).await?;
            }
            match page.rest {
                Some(rest) => behind = Some(rest),
                None => return Ok(()),
            }
        }
    }

    async fn verify_item(
        &self,
        place: &CheckedSpace,
        subject: &TaskSubject,
        key: &Key,
        totals: &mut Totals,
        say: &mut (dyn FnMut(Said) + Send),
    ) -> Result<(), String> {
        let item = Item::new(place.space.clone(), key.clone());
        let mut why = "it is being changed".to_owned();
        for _look in 0..CHANGING.0 {
            match self.check(place, &item, true, &Lease::unlimited()).await {
                Ok(Ended::Checked(checked)) => {
                    let verdict = checked.verdict.clone();
                    let (part, then) = self.part(subject, place, None, *checked).await?;
                    match part.items.first() {
                        Some(checked) if checked.wrong.is_some() => {
                            totals.wrong += 1;
                            say(Said::Wrong(subject.space.clone(), key.clone(), verdict));
                        }
                        Some(checked) if checked.result == NOTHING => {}
                        Some(checked) => totals.add(subject, checked, say),
                        None => {
                            totals.unchecked += 1;
                            let why = "a job is storing it and has not recorded it yet".to_owned();
                            say(Said::Unchecked(subject.space.clone(), key.clone(), why));
                        }
                    }
                    return self.catalogue.record_checks(&part, then).await.map_err(said);
                }
                Ok(Ended::Changing | Ended::Later) => sleep(CHANGING.1).await,
                Ok(Ended::NotYet(not_yet)) => {
                    why = format!("it {not_yet}");
                    break;
                }
                Err(error) => {
                    why = error;
                    break;
                }
            }
        }
        totals.unchecked += 1;
        say(Said::Unchecked(subject.space.clone(), key.clone(), why));
        Ok(())
    }
}
