//! What checks have found of a copy, by what the catalogue keeps of what they saw.

use queuekeeper_catalogue::bit::{BitError, Evidence};

use super::decide::decide;
use super::report::Statement;
use super::verdict::{CheckVerdict, Fixity, Look, Sighting, Sources};

/// What the check found that found this last, by what was kept of what it saw.
///
/// # Errors
/// With one sentence, where that is not readable.
pub(super) fn verdict_of(error: &BitError) -> Result<CheckVerdict, String> {
    let sources =
        sources(&error.evidence).map_err(|why| format!("what was seen of {} is not readable: {why}", error.item))?;
    // It was decided already that this counts.
    let look = Look { may_read: true, is_second: true, is_last_round: true };
    Ok(decide(&sources, look).verdict)
}

/// What a check saw, of what was kept of it.
fn sources(evidence: &Evidence) -> Result<Sources, serde_json::Error> {
    let Evidence { content, provider, index, audit } = evidence;
    Ok(Sources {
        content: sighting(content.as_deref())?,
        store: sighting(provider.as_deref())?,
        index: record(index.as_deref())?,
        audit: record(audit.as_deref())?,
    })
}

pub(super) fn sighting(kept: Option<&str>) -> Result<Sighting, serde_json::Error> {
    Ok(match kept.map(Statement::read).transpose()?.unwrap_or_default() {
        Statement::None | Statement::Same => Sighting::NotLooked,
        Statement::Missing => Sighting::Missing,
        Statement::Fixity(fixity) => Sighting::Present(fixity),
    })
}

fn record(kept: Option<&str>) -> Result<Option<Fixity>, serde_json::Error> {
    Ok(match kept.map(Statement::read).transpose()?.unwrap_or_default() {
        Statement::Fixity(fixity) => Some(fixity),
        Statement::None | Statement::Same | Statement::Missing => None,
    })
}
