//! Which findings may be repaired from another copy, who may start that, and which copy is good enough.

use std::fmt;
use std::str::FromStr;

use queuekeeper_catalogue::repair_stops::MOST_A_DAY;

use super::decide::is_same;
use super::verdict::{CheckResult, CheckVerdict, CopyFinding, Fixity, Remedy, Sighting, Sources};

/// Who starts the repairs at a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairMode {
    /// An operator.
    #[default]
    Ask,
    /// The mill, where that is safe.
    Automatic,
}

impl RepairMode {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Automatic => "automatic",
        }
    }
}

impl FromStr for RepairMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Ask, Self::Automatic].into_iter().find(|mode| mode.as_str() == text);
        known.ok_or_else(|| format!("expected ask or automatic, not {text:?}"))
    }
}

/// What is set and known of the store of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairLimits {
    /// Who starts its repairs.
    pub mode: RepairMode,
    /// Whether it is declared to be written once.
    pub is_write_once: bool,
    /// How many repairs were started automatically there in the last 24 hours.
    pub started_today: u64,
}

/// Who may start the repair of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RepairStart {
    /// The mill may, at once.
    Automatic,
    /// An operator has to start it.
    Manual(ManualRepairReason),
    /// It is nothing that another copy repairs.
    Never,
}

/// Why an operator has to start a repair. As text, a sentence without a full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ManualRepairReason {
    /// The content was changed outside: it may be what a user wants.
    ChangedOutside,
    /// What was seen contradicts itself.
    Conflict,
    /// The content index and the audit log do not agree on what is right.
    Records,
    /// The store keeps no checksum that confirms what is right.
    NoChecksum,
    /// The store is written once.
    WriteOnce,
    /// Too many repairs were started there within a day.
    TooMany,
    /// It is configured so.
    Mode,
}

impl fmt::Display for ManualRepairReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChangedOutside => to.write_str("the content was changed by another program"),
            Self::Conflict => to.write_str("the evidence is contradictory"),
            Self::Records => to.write_str("content index and audit log do not agree on what is right"),
            Self::NoChecksum => to.write_str("the store keeps no checksum that confirms what is right"),
            Self::WriteOnce => to.write_str("the store is configured as write_once"),
            Self::TooMany => write!(to, "{MOST_A_DAY} repairs were started automatically in this store within a day"),
            Self::Mode => to.write_str("automatic repairs are not configured for this store"),
        }
    }
}

/// Who may start the repair of what a check has found.
#[must_use]
pub fn start(verdict: &CheckVerdict, limits: &RepairLimits) -> RepairStart {
    let Some(offer) = verdict.offers.iter().find(|offer| offer.remedy == Remedy::RepairFromCopy) else {
        return RepairStart::Never;
    };
    let has = |finding| verdict.findings.contains(&finding);
    let is_of_record = || verdict.findings.iter().any(|finding| finding.is_of_record());
    let why = if has(CopyFinding::ChangedOutside) {
        ManualRepairReason::ChangedOutside
    } else if matches!(verdict.result, CheckResult::Error(_)) {
        ManualRepairReason::Conflict
    } else if offer.only_by_asking && (has(CopyFinding::ContentMissing) || is_of_record()) {
        ManualRepairReason::Records
    } else if offer.only_by_asking {
        ManualRepairReason::NoChecksum
    } else if limits.is_write_once {
        ManualRepairReason::WriteOnce
    } else if limits.mode == RepairMode::Ask {
        ManualRepairReason::Mode
    } else if limits.started_today >= MOST_A_DAY {
        ManualRepairReason::TooMany
    } else {
        return RepairStart::Automatic;
    };
    RepairStart::Manual(why)
}

/// Why a copy is not good enough to repair another one from it. As text, what follows on its name in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotGood {
    /// Its content was not read.
    NotRead,
    /// It is missing.
    Missing,
    /// The content index or the audit log does not have it.
    NotRecorded,
    /// Its content is not what both record of it.
    NotAsRecorded,
    /// Its content is not what is recorded of the copy that is to be repaired.
    Other,
}

impl fmt::Display for NotGood {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::NotRead => "was not read",
            Self::Missing => "does not have it",
            Self::NotRecorded => "has it, but not with a record in both the content index and the audit log",
            Self::NotAsRecorded => "has other content than recorded for it",
            Self::Other => "has other content than recorded for the copy to be repaired",
        })
    }
}

/// Whether a copy, read just now, is what is recorded of it and of the copy that is to be repaired.
///
/// # Errors
/// With the reason why it may not be used.
pub fn check_good(copy: &Sources, target: &Sources) -> Result<(), NotGood> {
    let content = match &copy.content {
        Sighting::NotLooked => return Err(NotGood::NotRead),
        Sighting::Missing => return Err(NotGood::Missing),
        Sighting::Present(content) => content,
    };
    let is = |record: &Fixity| is_same(content, record) == Some(true);
    match (&copy.index, copy.audit()) {
        (Some(index), Some(audit)) if is(index) && is(audit) => {}
        (Some(_), Some(_)) => return Err(NotGood::NotAsRecorded),
        (None, _) | (_, None) => return Err(NotGood::NotRecorded),
    }
    let of_target = [target.index.as_ref(), target.audit()];
    let has_record = of_target.iter().any(Option::is_some);
    if has_record && of_target.into_iter().flatten().all(is) { Ok(()) } else { Err(NotGood::Other) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use queuekeeper_store::{Algorithm, Digest};

    use super::super::decide::decide;
    use super::super::verdict::{Look, Offer};
    use super::*;

    fn fixity(letter: u8) -> Fixity {
        let digest = |algorithm, bytes| Digest::new(algorithm, &vec![letter; bytes]).unwrap();
        let digests = [digest(Algorithm::Md5, 16), digest(Algorithm::Sha256, 32)].into_iter().collect();
        Fixity { size: 7, digests }
    }

    fn present(letter: u8) -> Sighting {
        Sighting::Present(fixity(letter))
    }

    fn sources(content: Sighting, store: Sighting, index: Option<u8>, audit: Option<u8>) -> Sources {
        Sources { content, store, index: index.map(fixity), audit: audit.map(fixity) }
    }

    fn found(content: Sighting, store: Sighting, index: Option<u8>, audit: Option<u8>) -> CheckVerdict {
        let look = Look { may_read: true, is_second: true, is_last_round: true };
        decide(&sources(content, store, index, audit), look).verdict
    }

    const AUTOMATIC: RepairLimits =
        RepairLimits { mode: RepairMode::Automatic, is_write_once: false, started_today: MOST_A_DAY - 1 };

    #[test]
    fn only_damage_and_loss_of_which_all_records_agree_are_repaired_automatically() {
        use RepairStart::{Automatic, Manual, Never};
        use Sighting::{Missing, NotLooked};
        let bare = || Sighting::Present(Fixity { size: 7, digests: queuekeeper_store::Digests::default() });
        let (x, y) = (Some(b'x'), Some(b'y'));
        for (verdict, expected) in [
            (found(present(b'y'), present(b'x'), x, x), Automatic),
            (found(Missing, Missing, x, x), Automatic),
            (found(NotLooked, Missing, x, x), Automatic),
            (found(present(b'y'), bare(), x, x), Manual(ManualRepairReason::NoChecksum)),
            (found(present(b'y'), present(b'x'), None, x), Manual(ManualRepairReason::Records)),
            (found(present(b'y'), present(b'x'), x, None), Manual(ManualRepairReason::Records)),
            (found(Missing, Missing, x, None), Manual(ManualRepairReason::Records)),
            (found(Missing, Missing, x, y), Manual(ManualRepairReason::Records)),
            (found(present(b'y'), present(b'y'), x, x), Manual(ManualRepairReason::ChangedOutside)),
            (found(present(b'y'), present(b'y'), None, x), Manual(ManualRepairReason::ChangedOutside)),
            (found(present(b'y'), present(b'z'), x, x), Manual(ManualRepairReason::Conflict)),
            (found(present(b'x'), present(b'y'), x, x), Never),
            (found(NotLooked, present(b'y'), x, x), Never),
            (found(present(b'x'), present(b'x'), x, y), Never),
            (found(present(b'x'), present(b'x'), None, None), Never),
            (found(Missing, present(b'x'), x, x), Never),
            (found(present(b'x'), present(b'x'), x, x), Never),
            (found(Missing, Missing, None, None), Never),
        ] {
            assert_eq!(start(&verdict, &AUTOMATIC), expected, "{verdict:?}");
        }
    }

    #[test]
    fn a_store_that_is_written_once_or_configured_so_or_has_a_wave_of_damage_waits_for_an_operator() {
        let damaged = found(present(b'y'), present(b'x'), Some(b'x'), Some(b'x'));
        for (limits, why) in [
            (RepairLimits { is_write_once: true, ..AUTOMATIC }, ManualRepairReason::WriteOnce),
            (RepairLimits { mode: RepairMode::Ask, ..AUTOMATIC }, ManualRepairReason::Mode),
            (RepairLimits { started_today: MOST_A_DAY, ..AUTOMATIC }, ManualRepairReason::TooMany),
            (RepairLimits::default(), ManualRepairReason::Mode),
        ] {
            assert_eq!(start(&damaged, &limits), RepairStart::Manual(why));
        }
        // No limit makes automatic what is not.
        let outside = found(present(b'y'), present(b'y'), Some(b'x'), Some(b'x'));
        assert_eq!(
            start(&outside, &RepairLimits { started_today: 0, ..AUTOMATIC }),
            RepairStart::Manual(ManualRepairReason::ChangedOutside)
        );
        // An offer is what counts, whatever the findings are.
        let offers = vec![Offer { remedy: Remedy::WriteToProvider, only_by_asking: false }];
        assert_eq!(start(&CheckVerdict { offers, ..damaged }, &AUTOMATIC), RepairStart::Never);
    }

    #[test]
    fn a_good_copy_was_read_and_is_what_both_records_of_both_copies_say() {
        use Sighting::{Missing, NotLooked};
        let (x, y) = (Some(b'x'), Some(b'y'));
        let good = sources(present(b'x'), NotLooked, x, x);
        for (target, expected) in [
            ((x, x), Ok(())),
            ((x, None), Ok(())),
            ((None, x), Ok(())),
            ((None, None), Err(NotGood::Other)),
            ((y, y), Err(NotGood::Other)),
            ((x, y), Err(NotGood::Other)),
            ((y, x), Err(NotGood::Other)),
        ] {
            let target = sources(present(b'y'), present(b'x'), target.0, target.1);
            assert_eq!(check_good(&good, &target), expected, "{target:?}");
        }
        let target = sources(present(b'y'), present(b'x'), x, x);
        for (copy, why) in [
            (sources(NotLooked, present(b'x'), x, x), NotGood::NotRead),
            (sources(Missing, Missing, x, x), NotGood::Missing),
            (sources(present(b'x'), present(b'x'), None, x), NotGood::NotRecorded),
            (sources(present(b'x'), present(b'x'), x, None), NotGood::NotRecorded),
            (sources(present(b'y'), present(b'y'), x, x), NotGood::NotAsRecorded),
            (sources(present(b'x'), present(b'x'), x, y), NotGood::NotAsRecorded),
            (sources(present(b'y'), present(b'y'), y, y), NotGood::Other),
        ] {
            assert_eq!(check_good(&copy, &target), Err(why), "{copy:?}");
        }
        // An event without a digest proves nothing.
        let empty = Fixity { size: 7, digests: queuekeeper_store::Digests::default() };
        let unproven = Sources { audit: Some(empty), ..good };
        assert_eq!(check_good(&unproven, &target), Err(NotGood::NotRecorded));
    }

    #[test]
    fn modes_are_read_as_they_are_written_and_reasons_differ() {
        for mode in [RepairMode::Ask, RepairMode::Automatic] {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert!("Automatic".parse::<RepairMode>().is_err());
        let all = [
            ManualRepairReason::ChangedOutside,
            ManualRepairReason::Conflict,
            ManualRepairReason::Records,
            ManualRepairReason::NoChecksum,
            ManualRepairReason::WriteOnce,
            ManualRepairReason::TooMany,
            ManualRepairReason::Mode,
        ];
        assert_eq!(all.map(|why| why.to_string()).into_iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
