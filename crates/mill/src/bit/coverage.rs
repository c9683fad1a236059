//! What a report covers: how much of a space is proven, and how much is not.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

use super::verdict::Proof;

/// How much of a space: a number of items, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many items.
    pub items: u64,
    /// How many bytes these have.
    pub bytes: u64,
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { items: self.items.saturating_add(other.items), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

/// What became of the items of a space in one run. Each item that the store listed is in one part besides `stored`:
/// that of its last check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// What the store listed, and what it had by the time of a check of its own.
    pub stored: Amount,
    /// Proven by reading.
    pub read: Amount,
    /// Proven by a checksum that the store keeps.
    pub provider: Amount,
    /// Looked at and not proven, with nothing wrong.
    pub unproven: Amount,
    /// Stored, recorded, and something is wrong with it.
    pub failed: Amount,
    /// Stored, and not recorded.
    pub foreign: Amount,
    /// Left out of this run as it is configured, by why.
    pub skipped: BTreeMap<String, Amount>,
    /// To be read, and not read as its store keeps it from that, by why.
    #[serde(default)]
    pub unread: BTreeMap<String, Amount>,
    /// Content of jobs that have not recorded it yet.
    #[serde(default)]
    pub being_stored: Amount,
    /// Deleted since it was listed.
    pub gone: Amount,
    /// Its check has not ended, or never began.
    pub never_reached: Amount,
    /// Its check failed for good: it is in the dead letters.
    pub dead: Amount,
    /// Its check is not there any more, and had no result in this run: it was dropped, or done after the run.
    #[serde(default)]
    pub dropped: Amount,
    /// Recorded, and not stored: with the bytes that are recorded.
    pub missing: Amount,
}

/// What a report says of a space as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportResult {
    /// Every item has the proof that its policy asks for.
    Success,
    /// Nothing is known to be wrong, and not every item has that proof.
    Incomplete,
    /// Something is wrong.
    Failure,
}

impl ReportResult {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::Success, Self::Incomplete, Self::Failure];

    /// The name in reports, metrics and the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Incomplete => "incomplete",
            Self::Failure => "failure",
        }
    }
}

/// A part of a coverage: its name, why where it was skipped, and how much it is.
pub type Part<'a> = (&'static str, Option<&'a str>, Amount);

/// A reason why a report is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The part of the coverage that it is of.
    pub part: &'static str,
    /// The result that it leads to.
    pub result: ReportResult,
    /// How many items it is of.
    pub items: u64,
    /// The words that follow on their number.
    pub words: &'static str,
}

impl Coverage {
    /// What was listed and is in no part: nothing is known of it.
    #[must_use]
    pub fn unaccounted(&self) -> Amount {
        let of_listed = self.known_parts().filter(|(name, ..)| !matches!(*name, "stored" | "missing"));
        let known: Amount = of_listed.map(|(.., amount)| amount).sum();
        Amount {
            items: self.stored.items.saturating_sub(known.items),
            bytes: self.stored.bytes.saturating_sub(known.bytes),
        }
    }

    /// What the report says as a whole, by the least proof that the policy asks for.
    #[must_use]
    pub fn result(&self, requested: Proof) -> ReportResult {
        self.lacks(requested).into_iter().map(|lack| lack.result).max().unwrap_or(ReportResult::Success)
    }

    /// Whether it covers every item as the policy asks for, whatever is wrong with some.
    #[must_use]
    pub fn is_complete(&self, requested: Proof) -> bool {
        self.lacks(requested).into_iter().all(|lack| lack.result != ReportResult::Incomplete)
    }

    /// Why the report is no success, what is wrong first.
    #[must_use]
    pub fn lacks(&self, requested: Proof) -> Vec<Lack> {
        use ReportResult::{Failure, Incomplete};
        let unread = self.unread.values().copied().sum();
        let too_weak = if requested > Proof::Provider { self.provider } else { Amount::default() };
        let lacks = [
            ("failed", Failure, self.failed, "not as recorded"),
            ("missing", Failure, self.missing, "recorded and missing"),
            ("foreign", Failure, self.foreign, "stored and not recorded"),
            ("being_stored", Incomplete, self.being_stored, "of jobs that have not recorded them yet"),
            ("dead", Incomplete, self.dead, "not checked, as the check is in the dead letters"),
            ("dropped", Incomplete, self.dropped, "not checked, as the check was dropped or came after the loop"),
            ("never_reached", Incomplete, self.never_reached, "never reached"),
            ("unproven", Incomplete, self.unproven, "unproven: not read, and without a checksum of the store"),
            ("unread", Incomplete, unread, "not read, as their store keeps them in an archive or has no budget left"),
            ("provider", Incomplete, too_weak, "proven by the provider alone, and to be read"),
            ("unaccounted", Incomplete, self.unaccounted(), "listed, with nothing known of it"),
        ];
        let lacks = lacks.into_iter().filter(|(_, _, amount, _)| amount.items > 0);
        lacks.map(|(part, result, amount, words)| Lack { part, result, items: amount.items, words }).collect()
    }

    /// Each part, those that were skipped or not read by why.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.known_parts().chain([("unaccounted", None, self.unaccounted())])
    }

    /// The same without what is in no part.
    fn known_parts(&self) -> impl Iterator<Item = Part<'_>> {
        let Self { stored, read, provider, unproven, failed, foreign, .. } = self;
        let Self { being_stored, gone, never_reached, dead, dropped, missing, .. } = self;
        let before = [
            ("stored", *stored),
            ("read", *read),
            ("provider", *provider),
            ("unproven", *unproven),
            ("failed", *failed),
            ("foreign", *foreign),
            ("being_stored", *being_stored),
            ("gone", *gone),
            ("never_reached", *never_reached),
            ("dead", *dead),
            ("dropped", *dropped),
            ("missing", *missing),
        ];
        let skipped = self.skipped.iter().map(|(why, amount)| ("skipped", Some(why.as_str()), *amount));
        let unread = self.unread.iter().map(|(why, amount)| ("unread", Some(why.as_str()), *amount));
        before.into_iter().map(|(name, amount)| (name, None, amount)).chain(skipped).chain(unread)
    }

    /// The coverage as lines of a table: part, why, items, bytes.
    pub(super) fn lines(&self) -> impl Iterator<Item = [String; 4]> {
        self.parts().map(|(part, why, Amount { items, bytes })| {
            [part.to_owned(), why.unwrap_or_default().to_owned(), items.to_string(), bytes.to_string()]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Amount = Amount { items: 1, bytes: 10 };

    fn with(change: impl Fn(&mut Coverage)) -> Coverage {
        let mut coverage = Coverage { stored: ONE + ONE, read: ONE, ..Coverage::default() };
        change(&mut coverage);
        coverage
    }

    #[test]
    fn a_report_is_a_success_only_where_every_item_has_the_proof_that_its_policy_asks_for() {
        use ReportResult::{Failure, Incomplete, Success};
        for (coverage, read, provider) in [
            (with(|coverage| coverage.read = ONE + ONE), Success, Success),
            (with(|coverage| coverage.provider = ONE), Incomplete, Success),
            (with(|coverage| coverage.gone = ONE), Success, Success),
            (with(|coverage| coverage.skipped = BTreeMap::from([("its turn".to_owned(), ONE)])), Success, Success),
            (with(|coverage| coverage.unproven = ONE), Incomplete, Incomplete),
            (with(|coverage| coverage.unread = [("archived".to_owned(), ONE)].into()), Incomplete, Incomplete),
            (with(|coverage| coverage.never_reached = ONE), Incomplete, Incomplete),
            (with(|coverage| coverage.dead = ONE), Incomplete, Incomplete),
            (with(|coverage| coverage.being_stored = ONE), Incomplete, Incomplete),
            (with(|coverage| (coverage.read, coverage.dropped) = (ONE + ONE, ONE)), Incomplete, Incomplete),
            (with(|_| {}), Incomplete, Incomplete),
            (with(|coverage| coverage.failed = ONE), Failure, Failure),
            (with(|coverage| coverage.foreign = ONE), Failure, Failure),
            (with(|coverage| (coverage.read, coverage.missing) = (ONE + ONE, ONE)), Failure, Failure),
            // More is checked than was listed: items were added meanwhile.
            (with(|coverage| coverage.read = ONE + ONE + ONE), Success, Success),
            // Nothing is checked, since all checks died.
            (Coverage { stored: ONE, dead: ONE, ..Coverage::default() }, Incomplete, Incomplete),
            (Coverage::default(), Success, Success),
            // What is wrong comes before what is not known.
            (Coverage { stored: ONE, missing: ONE, ..Coverage::default() }, Failure, Failure),
        ] {
            assert_eq!(
                (coverage.result(Proof::Read), coverage.result(Proof::Provider)),
                (read, provider),
                "{coverage:?}"
            );
            assert_eq!(coverage.lacks(Proof::Read).is_empty(), read == Success, "{coverage:?}");
            let kept = serde_json::to_string(&coverage).unwrap();
            assert_eq!(serde_json::from_str::<Coverage>(&kept).unwrap(), coverage);
        }
    }

    #[test]
    fn each_part_of_a_coverage_is_a_line_and_what_is_in_none_is_counted() {
        let mut coverage = with(|coverage| coverage.stored = Amount { items: 9, bytes: 100 });
        coverage.skipped.insert("its turn is in another loop".to_owned(), ONE);
        let lines: Vec<_> = coverage.lines().map(|line| line.join("|")).collect();
        assert_eq!(
            lines,
            [
                "stored||9|100",
                "read||1|10",
                "provider||0|0",
                "unproven||0|0",
                "failed||0|0",
                "foreign||0|0",
                "being_stored||0|0",
                "gone||0|0",
                "never_reached||0|0",
                "dead||0|0",
                "dropped||0|0",
                "missing||0|0",
                "skipped|its turn is in another loop|1|10",
                "unaccounted||7|80",
            ]
        );
        let words: Vec<_> = coverage.lacks(Proof::Read).into_iter().map(|lack| (lack.items, lack.words)).collect();
        assert_eq!(words, [(7, "listed, with nothing known of it")]);
        coverage.failed = ONE;
        assert!(!coverage.is_complete(Proof::Read));
        (coverage.read, coverage.stored) = (ONE, Amount { items: 3, bytes: 30 });
        assert!(coverage.is_complete(Proof::Read) && coverage.result(Proof::Read) == ReportResult::Failure);
    }
}
