//! Why something is not moving.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::insight;

/// Why something is not moving, or that it is moving.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DiagnosisView {
    /// The verdict: `moving`, `waiting` for its turn, `stopped` until something changes, or `done`.
    #[schema(example = "waiting")]
    pub(crate) verdict: &'static str,
    /// The verdict in a sentence.
    pub(crate) headline: String,
    /// The causes, the most decisive first.
    pub(crate) causes: Vec<CauseView>,
}

/// A cause. Texts from znodes in its sentences are cut, and invisible characters are escaped.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CauseView {
    /// Its name; that of a fault if it is one.
    #[schema(example = "behind_others")]
    pub(crate) kind: &'static str,
    /// The cause in a sentence, with figures.
    pub(crate) sentence: String,
    /// The evidence and the consequences; may be empty.
    pub(crate) evidence: String,
    /// How to fix it; absent if nothing needs to be fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<&'static str>,
    /// Since when it holds; null if unknown.
    pub(crate) since: Option<Timestamp>,
    /// Znodes to look at, at most five.
    pub(crate) items: Vec<String>,
    /// How many more there are.
    pub(crate) more_items: u64,
}

impl From<&insight::Diagnosis> for DiagnosisView {
    fn from(diagnosis: &insight::Diagnosis) -> Self {
        Self {
            verdict: diagnosis.verdict.label(),
            headline: diagnosis.headline.clone(),
            causes: diagnosis.causes.iter().map(CauseView::from).collect(),
        }
    }
}

impl From<&insight::Cause> for CauseView {
    fn from(cause: &insight::Cause) -> Self {
        Self {
            kind: cause.kind.label(),
            sentence: cause.sentence.clone(),
            evidence: cause.evidence.clone(),
            fix: cause.fix,
            since: cause.since,
            items: cause.items.iter().map(ToString::to_string).collect(),
            more_items: cause.more,
        }
    }
}
