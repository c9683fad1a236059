//! Bit errors: what is wrong with copies, and what can be done about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{BitError, Evidence};
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::repair_stops::RepairStop;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::report::Statement;
use queuekeeper_mill::bit::requested::offers;
use queuekeeper_mill::bit::verdict::{Fixity, Offer, Remedy};
use queuekeeper_mill::bit::waits::{Wait, Waits};
use queuekeeper_store::Digest;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Mill, ViewError, unavailable};
use crate::actions::mill::Resolution;
use crate::views::parameter::Within;
use crate::words::counted;

/// How many bit errors a page has.
type Limit = Within<1, 1000, 200>;

/// Which bit errors; without an account, those of the first that has any.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ErrorFilter {
    /// Those of this account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those with a number above this: `next` of the previous page.
    #[param(value_type = Option<u64>)]
    pub(crate) after: u64,
    /// How many to show at most, 1 to 1,000.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// Open bit errors.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ErrorList {
    /// The accounts that have any, with how many.
    pub(crate) accounts: BTreeMap<String, u64>,
    /// The account of those that are listed; empty if there are none.
    pub(crate) account: String,
    /// Those of a page, by number: the order in which they were found.
    pub(crate) errors: Vec<BitErrorItem>,
    /// Where automatic repairs are stopped.
    pub(crate) stops: Vec<StopItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// What is wrong with a copy.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct BitErrorItem {
    /// Its number.
    pub(crate) number: u64,
    /// The account.
    pub(crate) account: String,
    /// The store.
    pub(crate) store: String,
    /// The space, as the account names it.
    pub(crate) space: String,
    /// The key, with escapes for invisible characters.
    pub(crate) key: String,
    /// The key, percent-encoded.
    pub(crate) key_encoded: String,
    /// The names of what was found; empty if what was seen contradicts itself.
    #[schema(example = json!(["content_damaged"]))]
    pub(crate) findings: Vec<String>,
    /// What was found, in words.
    #[schema(example = "content damaged")]
    pub(crate) detail: String,
    /// What it waits for: `worker`, `in_progress`, `retry`, `hours`, `store`, `paused`, `held`, `no_good_copy`,
    /// `failed`, `dropped`, `no_task`, `stopped`, `repaired_lately`, `too_many`, `policy`, `write_once`,
    /// `changed_outside`, `conflict`, `records`, `no_checksum`, `no_repair`, `unreadable`.
    #[schema(example = "policy")]
    pub(crate) waits_for: &'static str,
    /// The same in sentences: why it is not repaired yet.
    pub(crate) why: String,
    /// What an operator does about it, or that it goes on by itself: sentences.
    pub(crate) fix: String,
    /// What is recorded of the content, by the strongest digest that was found of it, too; empty where there is no
    /// record.
    #[schema(example = "4 bytes, sha256:88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589")]
    pub(crate) expected: String,
    /// What was found of it, by the same digest; `missing` where there was no content, empty where that was not seen.
    pub(crate) actual: String,
    /// What was seen and what is recorded.
    pub(crate) proof: ErrorProof,
    /// Whether an operator may have it repaired from another copy now.
    pub(crate) is_repairable: bool,
    /// What may be decided now; empty while something that was decided has not ended.
    pub(crate) resolutions: Vec<ResolutionItem>,
    /// When the repair of the copy was requested that has not ended; null for none.
    pub(crate) repair_started: Option<Timestamp>,
    /// When it was found first.
    pub(crate) found: Timestamp,
    /// When it was found last.
    pub(crate) seen: Timestamp,
    /// How often it was found.
    pub(crate) times: u64,
}

/// A stop of automatic repairs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct StopItem {
    /// The store; empty for all of them.
    pub(crate) store: String,
    /// Who stopped them: `mill` if too many failed, or too many copies were wrong at once.
    pub(crate) user: String,
    /// Why: one sentence.
    pub(crate) reason: String,
    /// Since when.
    pub(crate) since: Timestamp,
}

impl StopItem {
    fn new(stop: RepairStop) -> Self {
        let RepairStop { store, user, reason, since } = stop;
        Self { store: store.map(|store| store.to_string()).unwrap_or_default(), user, reason, since }
    }
}

/// What the last check found of a copy, and what is recorded of it: each a size with a digest, `missing`, or empty if
/// it was not checked or has no record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct ErrorProof {
    /// The content, as it was read.
    #[schema(example = "4 bytes, md5:5bbf5a52328e7439ae6e719dfe712200")]
    pub(crate) content: String,
    /// The store's checksum.
    pub(crate) provider: String,
    /// The content index.
    pub(crate) index: String,
    /// The audit log.
    pub(crate) audit: String,
}

impl ErrorProof {
    pub(super) fn of(evidence: &Evidence) -> Self {
        let Evidence { content, provider, index, audit } = evidence;
        let [content, provider, index, audit] = [content, provider, index, audit].map(|kept| seen(kept.as_deref()));
        Self { content, provider, index, audit }
    }
}

/// What may be decided about a bit error.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ResolutionItem {
    /// Its name.
    #[schema(example = "repair")]
    pub(crate) name: &'static str,
    /// What it does, as a sentence.
    pub(crate) does: &'static str,
    /// The role that it requires.
    #[schema(example = "operator")]
    pub(crate) role: &'static str,
}

impl Mill {
    /// Open bit errors.
    ///
    /// # Errors
    /// For an account that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn errors(&self, filter: &ErrorFilter) -> Result<ErrorList, ViewError> {
        let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
        let mut accounts = BTreeMap::new();
        for ((counter, scope), open) in figures {
            let (Some((account, _store)), Ok(open @ 1..)) = (scope.split_once('/'), u64::try_from(open)) else {
                continue;
            };
            if counter == Counter::BitErrors {
                *accounts.entry(account.to_owned()).or_insert(0) += open;
            }
        }
        let stops = self.catalogue().repair_stops().await.map_err(|error| unavailable(&error))?;
        let stops = stops.into_iter().map(StopItem::new).collect();
        let name = if filter.account.is_empty() {
            let Some(first) = self.accounts().find(|account| accounts.contains_key(&account.name)) else {
                return Ok(ErrorList { accounts, account: String::new(), errors: Vec::new(), stops, next: None });
            };
            &first.name
        } else {
            &filter.account
        };
        let (account, limit) = (self.account(name)?, filter.limit.get());
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let found = self.catalogue().bit_errors(&account.name, filter.after, most).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let has_more = found.len() > limit;
        let found = found.into_iter().take(limit).collect();
        let errors = BitErrorItem::of_account(self.catalogue(), account, found).await?;
        let next = errors.last().filter(|_| has_more).map(|error| error.number);
        Ok(ErrorList { accounts, account: account.name.clone(), errors, stops, next })
    }
}

impl BitErrorItem {
    /// Open bit errors of an account, with why they wait.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub(crate) async fn of_account(
        catalogue: &Catalogue,
        account: &Account,
        errors: Vec<BitError>,
    ) -> Result<Vec<Self>, ViewError> {
        if errors.is_empty() {
            return Ok(Vec::new());
        }
        let waits = Waits::read(catalogue, Timestamp::now()).await.map_err(|error| unavailable(&error))?;
        let mut items = Vec::with_capacity(errors.len());
        for error in errors {
            let wait = waits.of(account, &error).await.map_err(|error| unavailable(&error))?;
            items.push(Self::new(error, account, wait));
        }
        Ok(items)
    }

    fn new(error: BitError, account: &Account, wait: Wait) -> Self {
        let Wait { reason, why, act, may_decide } = wait;
        let (advice, resolutions) = match offers(account, &error) {
            Ok(offers) if may_decide => (advice(&offers), resolutions(&offers)),
            Err(_) if may_decide => (String::new(), resolutions(&[])),
            Ok(_) | Err(_) => (String::new(), Vec::new()),
        };
        let fix = [act, advice].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        let (expected, actual) = compared(&error.evidence);
        let proof = ErrorProof::of(&error.evidence);
        let BitError { id, store, item, findings, detail, found, seen, times, repair_started, .. } = error;
        Self {
            number: id,
            account: account.name.clone(),
            store: store.to_string(),
            space: account.of_store(&item.space).unwrap_or_else(|| item.space.clone()).to_string(),
            key: item.key.to_string(),
            key_encoded: item.key.encoded(),
            findings,
            detail,
            waits_for: reason.as_str(),
            why,
            fix,
            expected,
            actual,
            proof,
            is_repairable: resolutions.iter().any(|item| item.name == Resolution::Repair.as_str()),
            resolutions,
            repair_started,
            found,
            seen,
            times,
        }
    }
}

/// What is recorded and what was found, both by the strongest digest that they have in common.
fn compared(evidence: &Evidence) -> (String, String) {
    let Evidence { content, provider, index, audit } = evidence;
    let read = |kept: &Option<String>| match kept.as_deref().map(Statement::read) {
        Some(Ok(Statement::Fixity(fixity))) => Some(fixity),
        Some(Ok(Statement::None | Statement::Same | Statement::Missing) | Err(_)) | None => None,
    };
    let (recorded, seen_as) = (read(index).or_else(|| read(audit)), read(content).or_else(|| read(provider)));
    let (Some(recorded), Some(found)) = (&recorded, &seen_as) else {
        let first = |kept: [&Option<String>; 2]| {
            kept.into_iter().map(|kept| seen(kept.as_deref())).find(|text| !text.is_empty()).unwrap_or_default()
        };
        return (first([index, audit]), first([content, provider]));
    };
    let common = found.digests.iter().filter(|digest| recorded.digests.get(digest.algorithm()).is_some()).last();
    let by = |fixity: &Fixity| match common {
        Some(digest) => stated(fixity.size, fixity.digests.get(digest.algorithm())),
        None => stated(fixity.size, fixity.digests.strongest()),
    };
    (by(recorded), by(found))
}

/// A size with a digest.
fn stated(size: u64, digest: Option<&Digest>) -> String {
    let digest = digest.map_or("no digest".to_owned(), |digest| format!("{}:{digest}", digest.algorithm()));
    format!("{}, {digest}", counted(size, "byte", "bytes"))
}

/// What may be decided, of the remedies that are possible.
fn resolutions(offers: &[Offer]) -> Vec<ResolutionItem> {
    let possible = offers.iter().filter_map(|offer| Resolution::of(offer.remedy)).chain([Resolution::Drop]);
    let item = |of: Resolution| ResolutionItem { name: of.as_str(), does: of.help(), role: of.role().label() };
    possible.map(item).collect()
}

/// What was kept of what one source said, in words.
fn seen(kept: Option<&str>) -> String {
    match kept.map(Statement::read).transpose() {
        Ok(None | Some(Statement::None | Statement::Same)) => String::new(),
        Ok(Some(Statement::Missing)) => "missing".to_owned(),
        Ok(Some(Statement::Fixity(fixity))) => stated(fixity.size, fixity.digests.strongest()),
        Err(why) => format!("not readable: {why}"),
    }
}

/// What can be done, of the remedies that are possible.
fn advice(offers: &[Offer]) -> String {
    let sentence = |offer: &Offer| match offer.remedy {
        Remedy::RepairFromCopy => "It can be repaired from another copy.",
        Remedy::RewriteInPlace => "The content is right: writing it again makes the store compute a new checksum.",
        Remedy::WriteToProvider => "Report it to the provider of the store.",
        Remedy::CorrectIndex => {
            "The content index is corrected from the audit log once the content has been read and is right."
        }
        Remedy::AppendEvent if offer.only_by_asking => {
            "Once the content is known to be right, the audit log can be corrected."
        }
        Remedy::AppendEvent => "The missing event is appended once the content has been read and is right.",
        Remedy::Adopt => "If the content is wanted, adopt it; otherwise, delete it.",
        Remedy::AcceptChange => "If the change was intended, it can be accepted.",
    };
    if offers.is_empty() {
        return "Nothing proves which content is right: compare the copies, and store the right content again."
            .to_owned();
    }
    offers.iter().map(sentence).collect::<Vec<_>>().join(" ")
}
