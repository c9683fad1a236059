//! The mill: its queues and loops, what waits for an operator, and the copies of every space.
//!
//! Every figure is a counter of the catalogue, so that none of this costs more with more items.

mod causes;
mod checks;
mod comparisons;
mod errors;
mod figures;
mod items;
mod key;
mod open_errors;
mod pauses;
mod policies;
mod problems;
mod producers;
mod proofs;
mod queues;
mod report_files;
mod report_names;
mod reports;
mod requested;
mod spaces;
mod tasks;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::{PolicySource, StoreId};
use queuekeeper_mill::prices::Prices;
use queuekeeper_store::{SpaceName, StoreName};

pub(crate) use checks::{CheckItem, proof_words};
pub(crate) use comparisons::{ComparisonFilter, ComparisonItem, ComparisonList};
pub(crate) use errors::{BitErrorItem, ErrorFilter, ErrorList, ErrorProof, ResolutionItem, StopItem};
pub(crate) use figures::Measured;
pub(crate) use items::{
    AsideItem, CopyItem, EventItem, ItemDetail, ItemFilter, ItemList, ItemName, ItemTask, SpaceItem,
};
pub(crate) use key::KeyText;
pub(crate) use open_errors::open_bit_errors;
pub(crate) use pauses::PauseItem;
pub(crate) use policies::{
    HistoryItem, NewPolicyView, PairView, PlanItem, PlanView, PolicyDetail, PolicyList, PolicyText, SpacePairs,
    WaitingView,
};
pub(crate) use producers::{ForecastItem, MorselItem, ProducerItem};
pub(crate) use proofs::ProofAge;
pub(crate) use queues::{
    BudgetItem, BudgetPart, LimitItem, MillOverview, QueueItem, RATE_MINUTES, WorkerItem, no_process,
};
pub(crate) use report_files::{OpenReport, OpenStore, ReportFile, ReportFormat};
pub(crate) use reports::{
    CoveragePart, FailedItem, ReportDetail, ReportFilter, ReportItem, ReportList, ReportPage, StoredFile, tag,
};
pub(crate) use requested::{CheckFilter, CheckList, CheckPlan, CheckScope, RequestedCheckItem};
pub(crate) use spaces::{CopyState, SpaceCopies, SpaceCopy, SpaceFilter, SpaceList};
pub(crate) use tasks::{DeadFilter, DeadGroup, DeadList, DecisionItem, ErrorItem, HeldFilter, HeldList, TaskItem};

use self::open_errors::LastAnswer;
use super::error::{ViewError, quoted};

/// The mill of a configuration; cheap to clone.
#[derive(Clone)]
pub(crate) struct Mill(Arc<Parts>);

struct Parts {
    catalogue: Catalogue,
    accounts: BTreeMap<String, Account>,
    source: PolicySource,
    prices: Prices,
    open: OpenStore,
    open_errors: LastAnswer,
}

impl fmt::Debug for Mill {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Mill").field("accounts", &self.0.accounts).finish_non_exhaustive()
    }
}

impl Mill {
    /// The mill of these accounts, with their policies to be read, what reading costs, and stores to be opened.
    pub(crate) fn new(
        catalogue: Catalogue,
        accounts: BTreeMap<String, Account>,
        source: PolicySource,
        prices: Prices,
        open: OpenStore,
    ) -> Self {
        Self(Arc::new(Parts { catalogue, accounts, source, prices, open, open_errors: LastAnswer::default() }))
    }

    fn prices(&self) -> &Prices {
        &self.0.prices
    }

    fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.0.accounts.values()
    }

    /// The names of all accounts.
    pub(crate) fn account_names(&self) -> Vec<String> {
        self.0.accounts.keys().cloned().collect()
    }

    fn account(&self, name: &str) -> Result<&Account, ViewError> {
        account(&self.0.accounts, name)
    }
}

/// The account with this name.
///
/// # Errors
/// Where there is none, or no name.
pub(crate) fn account<'a>(accounts: &'a BTreeMap<String, Account>, name: &str) -> Result<&'a Account, ViewError> {
    if name.is_empty() {
        return Err(missing("account"));
    }
    let none = || {
        let known: Vec<_> = accounts.keys().cloned().collect();
        ViewError::not_found(format!("There is no account “{}” in the configuration.", quoted(name))).allowing(known)
    };
    accounts.get(name).ok_or_else(none)
}

/// A store of an account, by its name or by the number that policies have.
///
/// # Errors
/// Where it has no such store, or none is named.
pub(crate) fn store_of(account: &Account, name: &str) -> Result<StoreName, ViewError> {
    if name.is_empty() {
        return Err(missing("store"));
    }
    let by_number = account.stores.get(&StoreId(name.to_owned()));
    let found = by_number.or_else(|| account.stores.values().find(|store| store.as_str() == name));
    let none = || {
        let known: BTreeSet<_> = account.stores.values().map(ToString::to_string).collect();
        ViewError::not_found(format!("{} has no store “{}”.", account.name, quoted(name))).allowing(known)
    };
    found.cloned().ok_or_else(none)
}

/// That a space is for content of users.
///
/// # Errors
/// Where it is reserved.
pub(crate) fn check_content(space: &SpaceName) -> Result<(), ViewError> {
    if space.is_reserved() {
        return Err(ViewError::not_found(format!("The space “{space}” is reserved and has no content of users.")));
    }
    Ok(())
}

fn missing(parameter: &str) -> ViewError {
    ViewError::parameter(format!("The parameter “{parameter}” is missing.")).of(parameter)
}

/// A space of an account, and as its stores name it.
fn space(account: &Account, name: &str) -> Result<(SpaceName, SpaceName), ViewError> {
    let none = || ViewError::not_found(format!("“{}” is not a valid name of a space.", quoted(name)));
    let space: SpaceName = name.parse().map_err(|_| none())?;
    let in_stores = account.in_stores(&space).ok_or_else(none)?;
    Ok((space, in_stores))
}

fn unavailable(error: &queuekeeper_catalogue::Error) -> ViewError {
    ViewError::Unavailable(format!("The catalogue cannot be read: {error}."))
}
