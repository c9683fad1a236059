//! What a look at a copy has proven: a pure function of what was seen.
//!
//! Two sources are equal when size and all common algorithms agree. Without a common algorithm they say nothing of each
//! other, unless their sizes differ.

use std::collections::BTreeSet;

use super::verdict::{
    Answer, CheckResult, CheckVerdict, Conflict, CopyFinding, Fixity, Look, Next, Offer, Proof, Remedy, Sighting,
    Sources,
};

/// What a look at a copy has found, and whether to look again before that counts.
#[must_use]
pub fn decide(sources: &Sources, look: Look) -> Answer {
    let verdict = verdict(sources);
    let is_unread = sources.content == Sighting::NotLooked && sources.store != Sighting::Missing;
    let next = next(&verdict, is_unread, look);
    Answer { verdict, next }
}

fn verdict(sources: &Sources) -> CheckVerdict {
    use Sighting::{Missing, NotLooked, Present};
    let recorded = Recorded { index: sources.index.as_ref(), audit: sources.audit() };
    match (&sources.content, &sources.store) {
        (Missing, Missing | NotLooked) | (NotLooked, Missing) => recorded.gone(),
        (Missing, Present(_)) | (Present(_), Missing) => conflict(Conflict::MissingAndPresent, recorded.lacking(), []),
        (NotLooked, NotLooked) => ended(CheckResult::Unproven, recorded.lacking(), None, []),
        (NotLooked, Present(store)) => there(&PresentItem { content: None, store: Some(store) }, &recorded),
        (Present(content), NotLooked) => there(&PresentItem { content: Some(content), store: None }, &recorded),
        (Present(content), Present(store)) => {
            there(&PresentItem { content: Some(content), store: Some(store) }, &recorded)
        }
    }
}

/// Whether both are of the same content, as far as they tell.
pub(super) fn is_same(one: &Fixity, other: &Fixity) -> Option<bool> {
    if one.size == other.size { one.digests.agree(&other.digests) } else { Some(false) }
}

/// What is recorded of the copy.
struct Recorded<'a> {
    index: Option<&'a Fixity>,
    audit: Option<&'a Fixity>,
}

impl Recorded<'_> {
    /// What is to be found where only one of both has the copy.
    fn lacking(&self) -> Option<CopyFinding> {
        match (self.index, self.audit) {
            (None, Some(_)) => Some(CopyFinding::IndexWrong),
            (Some(_), None) => Some(CopyFinding::AuditAbsent),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// The verdict where the store has nothing.
    fn gone(&self) -> CheckVerdict {
        let is_agreed = match (self.index, self.audit) {
            (None, None) => return ended(CheckResult::Nothing, [CopyFinding::Absent], None, []),
            (Some(index), Some(audit)) => is_same(index, audit) == Some(true),
            (Some(_), None) | (None, Some(_)) => false,
        };
        let repair = Offer { remedy: Remedy::RepairFromCopy, only_by_asking: !is_agreed };
        let findings = [CopyFinding::ContentMissing].into_iter().chain(self.lacking());
        ended(CheckResult::Failure, findings, None, [repair])
    }
}

/// What was seen of an item that is there.
struct PresentItem<'a> {
    content: Option<&'a Fixity>,
    store: Option<&'a Fixity>,
}

impl PresentItem<'_> {
    /// Whether the content is what a record says.
    fn is_content(&self, record: &Fixity) -> Option<bool> {
        self.content.and_then(|content| is_same(content, record))
    }

    /// Whether what the store says is what a record says. Where it has no checksum, its size counts only as long as the
    /// content was not read.
    fn is_store(&self, record: &Fixity) -> Option<bool> {
        let store = self.store.filter(|store| self.content.is_none() || !store.digests.is_empty());
        store.and_then(|store| is_same(store, record))
    }

    /// Whether what the store says is the content.
    fn is_consistent(&self) -> Option<bool> {
        self.content.zip(self.store).and_then(|(content, store)| is_same(content, store))
    }

    /// Whether everything that was seen is what a record says.
    fn equals(&self, record: &Fixity) -> bool {
        match self.content {
            Some(_) => self.is_content(record) == Some(true) && self.is_store(record) != Some(false),
            None => self.is_store(record) == Some(true),
        }
    }

    /// Whether what was seen is one of two records, and not the other.
    fn tells_apart(&self, one: &Fixity, other: &Fixity) -> bool {
        let of = |record| if self.content.is_some() { self.is_content(record) } else { self.is_store(record) };
        matches!((of(one), of(other)), (Some(true), Some(false)) | (Some(false), Some(true)))
    }

    /// Whether content and store agree on something that is neither of two records.
    fn is_other(&self, one: &Fixity, other: &Fixity) -> bool {
        self.is_consistent() == Some(true)
            && [one, other]
                .into_iter()
                .all(|record| self.is_content(record) == Some(false) && self.is_store(record) != Some(true))
    }
}

/// The verdict where the store has the item.
fn there(seen: &PresentItem<'_>, recorded: &Recorded<'_>) -> CheckVerdict {
    let (record, finding) = match (recorded.index, recorded.audit) {
        (None, None) => return unrecorded(seen),
        (Some(one), None) | (None, Some(one)) => (one.clone(), recorded.lacking()),
        (Some(index), Some(audit)) => match is_same(index, audit) {
            Some(true) if !seen.tells_apart(index, audit) => (both(index, audit), None),
            None if [index, audit].into_iter().all(|record| seen.is_content(record) == Some(true)) => {
                (both(index, audit), None)
            }
            Some(true) | None => return conflict(Conflict::IndexAndAudit, [], []),
            Some(false) => match (seen.equals(index), seen.equals(audit)) {
                (false, true) => (audit.clone(), Some(CopyFinding::IndexWrong)),
                (true, false) => (index.clone(), Some(CopyFinding::AuditWrong)),
                (false, false) if seen.is_other(index, audit) => return changed_outside(None),
                (true, true) | (false, false) => return conflict(Conflict::IndexAndAudit, [], []),
            },
        },
    };
    compared(seen, &record, finding)
}

/// What two that agree say together.
fn both(index: &Fixity, audit: &Fixity) -> Fixity {
    let mut both = audit.clone();
    both.digests.extend(index.digests.iter().cloned());
    both
}

/// The verdict where no record has the item.
fn unrecorded(seen: &PresentItem<'_>) -> CheckVerdict {
    if seen.is_consistent() == Some(false) {
        return conflict(Conflict::ContentAndStore, [], []);
    }
    let adopt = Offer { remedy: Remedy::Adopt, only_by_asking: false };
    ended(CheckResult::Failure, [CopyFinding::NotRecorded], None, [adopt])
}

/// The verdict where the content is another one than recorded, and the store says so, too.
fn changed_outside(of_record: Option<CopyFinding>) -> CheckVerdict {
    let offers = [Remedy::AcceptChange, Remedy::RepairFromCopy].map(|remedy| Offer { remedy, only_by_asking: true });
    let findings = [CopyFinding::ChangedOutside].into_iter().chain(of_record);
    ended(CheckResult::Failure, findings, None, offers)
}

/// The verdict by what was seen and what is right, with what is wrong with the record.
fn compared(seen: &PresentItem<'_>, record: &Fixity, of_record: Option<CopyFinding>) -> CheckVerdict {
    let (content, store, consistent) = (seen.is_content(record), seen.is_store(record), seen.is_consistent());
    match (content, store, consistent) {
        (Some(true), Some(false), _) | (Some(true), _, Some(false)) => {
            proven(Proof::Read, Some(CopyFinding::StoreChecksumWrong), of_record)
        }
        (Some(true), Some(true) | None, Some(true) | None) => proven(Proof::Read, None, of_record),
        (Some(false), Some(true), Some(true)) | (Some(false), Some(false), Some(false) | None) => {
            let repair = Offer { remedy: Remedy::RepairFromCopy, only_by_asking: true };
            conflict(Conflict::All, of_record, [repair])
        }
        (Some(false), Some(false) | None, Some(true)) => changed_outside(of_record),
        (Some(false), Some(true) | None, Some(false) | None) => {
            let only_by_asking = store.is_none() || of_record.is_some();
            let repair = Offer { remedy: Remedy::RepairFromCopy, only_by_asking };
            let findings = [CopyFinding::ContentDamaged].into_iter().chain(of_record);
            ended(CheckResult::Failure, findings, None, [repair])
        }
        (None, _, Some(false)) => conflict(Conflict::ContentAndStore, of_record, []),
        (None, Some(true), Some(true) | None) => proven(Proof::Provider, None, of_record),
        (None, Some(false), Some(true) | None) => {
            let letter = Offer { remedy: Remedy::WriteToProvider, only_by_asking: true };
            let findings = [CopyFinding::StoreChecksumDiffers].into_iter().chain(of_record);
            ended(CheckResult::Failure, findings, None, [letter])
        }
        (None, None, Some(true) | None) => ended(CheckResult::Unproven, of_record, None, []),
    }
}

/// The verdict where the bytes are proven, with what is wrong nevertheless.
fn proven(proof: Proof, of_store: Option<CopyFinding>, of_record: Option<CopyFinding>) -> CheckVerdict {
    let findings: BTreeSet<_> = of_store.into_iter().chain(of_record).collect();
    if findings.is_empty() {
        return ended(CheckResult::Success, [CopyFinding::Proven], Some(proof), []);
    }
    let of_store = of_store.into_iter().flat_map(|_wrong| {
        [Remedy::RewriteInPlace, Remedy::WriteToProvider].map(|remedy| Offer { remedy, only_by_asking: true })
    });
    let of_record = of_record.filter(|_wrong| proof == Proof::Read).and_then(|wrong| match wrong {
        CopyFinding::IndexWrong => Some(Offer { remedy: Remedy::CorrectIndex, only_by_asking: false }),
        CopyFinding::AuditAbsent => Some(Offer { remedy: Remedy::AppendEvent, only_by_asking: false }),
        CopyFinding::AuditWrong => Some(Offer { remedy: Remedy::AppendEvent, only_by_asking: true }),
        CopyFinding::Proven
        | CopyFinding::ContentDamaged
        | CopyFinding::StoreChecksumWrong
        | CopyFinding::StoreChecksumDiffers
        | CopyFinding::ContentMissing
        | CopyFinding::NotRecorded
        | CopyFinding::ChangedOutside
        | CopyFinding::Absent => None,
    });
    ended(CheckResult::Failure, findings, Some(proof), of_store.chain(of_record))
}

fn conflict(
    conflict: Conflict,
    findings: impl IntoIterator<Item = CopyFinding>,
    offers: impl IntoIterator<Item = Offer>,
) -> CheckVerdict {
    ended(CheckResult::Error(conflict), findings, None, offers)
}

/// A verdict. What is not proven is a failure where there is a finding.
fn ended(
    result: CheckResult,
    findings: impl IntoIterator<Item = CopyFinding>,
    proof: Option<Proof>,
    offers: impl IntoIterator<Item = Offer>,
) -> CheckVerdict {
    let findings: BTreeSet<_> = findings.into_iter().collect();
    let is_wrong = result == CheckResult::Unproven && !findings.is_empty();
    let result = if is_wrong { CheckResult::Failure } else { result };
    CheckVerdict { result, findings, proof, offers: offers.into_iter().collect() }
}

/// What to do after a look that ended so. Bytes are called wrong only after a second reading; what may be a change that
/// is not recorded yet, only at the last round.
fn next(verdict: &CheckVerdict, is_unread: bool, look: Look) -> Next {
    let wait = if look.is_last_round { Next::End } else { Next::Later };
    let again = if look.is_second { Next::End } else { Next::Read };
    let read_or = |other| if is_unread && look.may_read { Next::Read } else { other };
    let after = |finding: &CopyFinding| match finding {
        CopyFinding::Proven | CopyFinding::Absent | CopyFinding::StoreChecksumWrong => Next::End,
        CopyFinding::IndexWrong | CopyFinding::AuditWrong | CopyFinding::AuditAbsent => read_or(Next::End),
        CopyFinding::ContentDamaged => again,
        CopyFinding::StoreChecksumDiffers => read_or(wait),
        CopyFinding::ContentMissing | CopyFinding::NotRecorded | CopyFinding::ChangedOutside => wait,
    };
    match verdict.result {
        CheckResult::Success | CheckResult::Unproven | CheckResult::Nothing => Next::End,
        CheckResult::Error(_) if is_unread => read_or(wait),
        CheckResult::Error(_) => again,
        // What waits for the bytes comes before what waits for the record.
        CheckResult::Failure => {
            let of_bytes = verdict.findings.iter().filter(|finding| !finding.is_of_record());
            let of_record = verdict.findings.iter().filter(|finding| finding.is_of_record());
            of_bytes.chain(of_record).map(after).find(|next| *next != Next::End).unwrap_or(Next::End)
        }
    }
}

#[cfg(test)]
mod tests;
