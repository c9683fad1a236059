//! What was seen of a copy, as the catalogue keeps it, and what the catalogue says of one.

use std::collections::BTreeSet;

use queuekeeper_catalogue::bit::{CheckedItem, Evidence, ItemRecords, Observed, Wrong};
use queuekeeper_store::Item;
use serde_json::json;

use super::look::ARCHIVED;
use super::verdict::{CheckResult, CheckVerdict, CopyFinding, Fixity, Proof, Sighting, Sources};
use crate::users::CHECK;

/// What the content index says; nothing of a copy that was deleted.
pub(super) fn index(records: Option<&ItemRecords>) -> Option<Fixity> {
    let index = records?.index.as_ref().filter(|index| !index.is_deleted)?;
    Some(Fixity { size: index.size, digests: index.digests.clone() })
}

/// What the last settled event of the audit log says; nothing of a copy that was deleted.
pub(super) fn audit(records: Option<&ItemRecords>) -> Option<Fixity> {
    let audit = records?.audit.as_ref().filter(|audit| !audit.is_deleted)?;
    Some(Fixity { size: audit.size, digests: audit.digests.clone() })
}

/// The outcome of a check as the catalogue keeps it. Of a success, what was seen is what the record says.
pub(super) fn checked(
    item: Item,
    records: Option<&ItemRecords>,
    sources: &Sources,
    verdict: &CheckVerdict,
) -> CheckedItem {
    let is_wrong = matches!(verdict.result, CheckResult::Failure | CheckResult::Error(_));
    let record = |record: &Option<Fixity>| record.as_ref().filter(|_| is_wrong).map(fixity);
    let evidence = Evidence {
        content: sighting(&sources.content),
        provider: sighting(&sources.store),
        index: record(&sources.index),
        audit: record(&sources.audit),
    };
    let wrong = is_wrong.then(|| Wrong {
        findings: verdict.findings.iter().map(|finding| finding.as_str()).collect(),
        detail: verdict.to_string(),
        observed: verdict.findings.iter().any(|finding| finding.is_observed()).then(|| observed(sources)),
    });
    CheckedItem {
        item,
        id: records.map(|records| records.id),
        bytes: bytes(sources),
        result: verdict.result.as_str(),
        proof: verdict.proof.map(Proof::as_str),
        seq: records.and_then(|records| records.index.as_ref()).map(|index| index.seq),
        evidence,
        wrong,
        is_missing: verdict.findings.contains(&CopyFinding::ContentMissing),
        unread: None,
    }
}

/// The outcome of a check that was to read what is archived: nothing is wrong by what can be seen, and nothing is
/// proven.
pub(super) fn unread(item: Item, records: Option<&ItemRecords>, sources: &Sources) -> (CheckVerdict, CheckedItem) {
    let (findings, offers) = (BTreeSet::new(), Vec::new());
    let verdict = CheckVerdict { result: CheckResult::Unproven, findings, proof: None, offers };
    let checked = CheckedItem { unread: Some(ARCHIVED), ..checked(item, records, sources, &verdict) };
    (verdict, checked)
}

/// What the store has that no record explains.
fn observed(sources: &Sources) -> Observed {
    let seen = [&sources.content, &sources.store].into_iter().find_map(|sighting| match sighting {
        Sighting::Present(fixity) => Some(fixity),
        Sighting::Missing | Sighting::NotLooked => None,
    });
    Observed {
        user: CHECK.to_owned(),
        size: seen.map(|seen| seen.size),
        digests: seen.map(|seen| seen.digests.clone()).unwrap_or_default(),
    }
}

/// The size of what the store has; where it has nothing, of what is recorded.
fn bytes(sources: &Sources) -> u64 {
    let seen = [&sources.content, &sources.store].into_iter().find_map(|sighting| match sighting {
        Sighting::Present(fixity) => Some(fixity.size),
        Sighting::Missing | Sighting::NotLooked => None,
    });
    let recorded = [&sources.index, &sources.audit].into_iter().flatten().map(|fixity| fixity.size).next();
    seen.or(recorded).unwrap_or(0)
}

fn sighting(sighting: &Sighting) -> Option<String> {
    match sighting {
        Sighting::NotLooked => None,
        Sighting::Missing => Some(json!({"missing": true}).to_string()),
        Sighting::Present(seen) => Some(fixity(seen)),
    }
}

fn fixity(fixity: &Fixity) -> String {
    json!({"size": fixity.size, "digests": &fixity.digests}).to_string()
}
