//! How old the proofs of copies are, and whether that is within the limit.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::proofs::{DAY, ProofFigure, UNPROVEN};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::lists::SpaceLists;
use queuekeeper_mill::bit::producer::PRODUCER;
use queuekeeper_mill::policy::StoreId;
use queuekeeper_store::{SpaceName, StoreName};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Mill, ViewError, unavailable};
use crate::metrics::mill::ProofFigures;
use crate::views::show::counted;

/// The kinds of proof, with that of items that have none.
pub(crate) const KINDS: [&str; 3] = ["read", "provider", UNPROVEN];

/// The proofs of what a store has of a space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct CopyProofs {
    /// How many items have which proof, and how old the oldest is; kinds that no item has are left out.
    pub(crate) kinds: Vec<ProofItem>,
    /// The beginning of the day, in UTC, of the oldest proof, or of the oldest content that has none; null where there
    /// is no item.
    pub(crate) oldest: Option<Timestamp>,
    /// How that compares with the limit.
    pub(crate) age: ProofAge,
    /// How old a proof may become; null if no loop checks the space.
    pub(crate) max_age_seconds: Option<u64>,
}

impl CopyProofs {
    /// In words, with its numbers; empty if there is no item.
    pub(crate) fn words(&self, now: Timestamp) -> String {
        let (unproven, proven): (Vec<_>, Vec<_>) = self.kinds.iter().partition(|kind| kind.proof == UNPROVEN);
        let proven = proven.iter().map(|kind| kind.oldest).min();
        let proven = proven.map(|oldest| format!("oldest proof {}", days_ago(oldest, now)));
        let unproven = unproven.first().map(|kind| {
            format!("{} never proven, written {}", counted(kind.items, "item", "items"), days_ago(kind.oldest, now))
        });
        proven.into_iter().chain(unproven).collect::<Vec<_>>().join("; ")
    }
}

/// How many days ago one began.
fn days_ago(day: Timestamp, now: Timestamp) -> String {
    match now.duration_since(day).as_hours() / 24 {
        ..=0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    }
}

/// How many items have a proof of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ProofItem {
    /// The kind: `read` or `provider`; `none` of items that were never proven.
    #[schema(example = "read")]
    pub(crate) proof: String,
    /// How many items.
    pub(crate) items: u64,
    /// The beginning of the day, in UTC, of the oldest of these proofs; of items without one, on which the oldest of
    /// them was written.
    pub(crate) oldest: Timestamp,
}

/// How old proofs are. They are dated by the day, so each limit is passed for certain a day later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProofAge {
    /// There is no item.
    #[default]
    Empty,
    /// No loop checks it: the lists of the producer leave it out, or none has run.
    Unchecked,
    /// Within half of the limit: the time from one loop to the next.
    Fresh,
    /// Within the limit.
    Ageing,
    /// Older than the limit.
    TooOld,
}

impl ProofAge {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Empty => "no items",
            Self::Unchecked => "not checked",
            Self::Fresh => "fresh",
            Self::Ageing => "ageing",
            Self::TooOld => "too old",
        }
    }

    fn new(oldest: Timestamp, limit: Option<Duration>, now: Timestamp) -> Self {
        let Some(limit) = limit else { return Self::Unchecked };
        let age = Duration::try_from(now.duration_since(oldest)).unwrap_or_default().saturating_sub(DAY);
        match age {
            age if age > limit => Self::TooOld,
            age if age > limit / 2 => Self::Ageing,
            _ => Self::Fresh,
        }
    }
}

/// The proofs of all copies, as of now.
pub(super) struct Proofs {
    /// By the store, and the space as the store names it.
    figures: BTreeMap<(StoreName, SpaceName), Vec<ProofFigure>>,
    max_age: Option<Duration>,
    lists: SpaceLists,
    now: Timestamp,
}

impl Mill {
    pub(super) async fn proofs(&self, now: Timestamp) -> Result<Proofs, ViewError> {
        let error = |error: queuekeeper_catalogue::Error| unavailable(&error);
        let mut figures = BTreeMap::<_, Vec<_>>::new();
        for of in self.catalogue().proof_figures().await.map_err(error)? {
            figures.entry((of.store.clone(), of.space.clone())).or_default().push(of);
        }
        let rules = self.catalogue().check_rules(PRODUCER).await.map_err(error)?;
        let list = |lines: Option<&str>| lines.unwrap_or_default().parse().unwrap_or_default();
        let lists = SpaceLists {
            include: list(rules.as_ref().map(|rules| rules.include.as_str())),
            exclude: list(rules.as_ref().map(|rules| rules.exclude.as_str())),
        };
        Ok(Proofs { figures, max_age: rules.map(|rules| rules.max_age), lists, now })
    }
}

impl Proofs {
    /// Those of a space in a store.
    pub(super) fn of_copy(&self, account: &Account, store: (&StoreId, &StoreName), space: &SpaceName) -> CopyProofs {
        let ours = account.in_stores(space).and_then(|space| self.figures.get(&(store.1.clone(), space)));
        let item = |of: &ProofFigure| ProofItem { proof: of.proof.clone(), items: of.items, oldest: of.oldest };
        let kinds: Vec<_> = ours.into_iter().flatten().map(item).collect();
        let oldest = kinds.iter().map(|kind| kind.oldest).min();
        let limit = self.limit(account, store, space);
        CopyProofs {
            oldest,
            age: oldest.map_or(ProofAge::Empty, |oldest| ProofAge::new(oldest, limit, self.now)),
            max_age_seconds: limit.map(|limit| limit.as_secs()),
            kinds,
        }
    }

    /// How old a proof may become; `None` where nothing is checked.
    fn limit(&self, account: &Account, (id, store): (&StoreId, &StoreName), space: &SpaceName) -> Option<Duration> {
        let is_checked = !space.is_reserved() && self.lists.wants(account, (id, store.as_str()), space);
        self.max_age.filter(|_| is_checked)
    }

    /// What is exported of a store of an account. The oldest is that of the spaces that are checked.
    pub(super) fn of_store(&self, account: &Account, store: (&StoreId, &StoreName)) -> ProofFigures {
        let mut figures = ProofFigures {
            account: account.name.clone(),
            store: store.1.to_string(),
            max_age: self.max_age,
            kinds: KINDS.map(|kind| (kind, 0, None)),
        };
        for of in self.figures.values().flatten().filter(|of| of.store == *store.1) {
            let Some(space) = account.of_store(&of.space).filter(|space| !space.is_reserved()) else { continue };
            let kind = figures.kinds.iter_mut().find(|(kind, ..)| *kind == of.proof);
            let Some((_, items, oldest)) = kind else { continue };
            *items += of.items;
            if self.limit(account, store, &space).is_some() {
                *oldest = Some(oldest.map_or(of.oldest, |oldest: Timestamp| oldest.min(of.oldest)));
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64, hour: i64) -> Timestamp {
        Timestamp::from_second(day * 86_400 + hour * 3_600).unwrap()
    }

    #[test]
    fn a_limit_is_passed_when_the_whole_day_of_the_proof_is_beyond_it() {
        let age = |limit, now| ProofAge::new(at(100, 0), Some(DAY * limit), now);
        assert_eq!(age(60, at(100, 1)), ProofAge::Fresh);
        assert_eq!(age(60, at(131, 0)), ProofAge::Fresh);
        assert_eq!(age(60, at(131, 1)), ProofAge::Ageing);
        assert_eq!(age(60, at(161, 0)), ProofAge::Ageing);
        assert_eq!(age(60, at(161, 1)), ProofAge::TooOld);
        assert_eq!(age(60, at(99, 0)), ProofAge::Fresh, "of a clock that is behind");
        assert_eq!(ProofAge::new(at(100, 0), None, at(900, 0)), ProofAge::Unchecked);
    }

    #[test]
    fn words_have_the_oldest_proof_and_what_was_never_proven() {
        let kind = |proof: &str, items, day| ProofItem { proof: proof.to_owned(), items, oldest: at(day, 0) };
        let words = |kinds| CopyProofs { kinds, ..CopyProofs::default() }.words(at(100, 5));
        assert_eq!(words(vec![]), "");
        assert_eq!(words(vec![kind("read", 2, 100)]), "oldest proof today");
        assert_eq!(words(vec![kind("read", 2, 99), kind("provider", 7, 58)]), "oldest proof 42 days ago");
        assert_eq!(
            words(vec![kind("none", 1200, 99), kind("read", 1, 90)]),
            "oldest proof 10 days ago; 1,200 items never proven, written 1 day ago"
        );
    }
}
