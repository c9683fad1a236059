//! Why something is not moving.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::insight;

/// Why something is not moving, or that it is.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Diagnosis {
    /// What it comes to: `moving`, `waiting` for its turn, `stopped` until something changes, or `done`.
    #[schema(example = "waiting")]
    pub(crate) verdict: &'static str,
    /// The same in a sentence.
    pub(crate) headline: String,
    /// Why, the most decisive first.
    pub(crate) causes: Vec<Cause>,
}

/// One reason. Texts of znodes in its sentences are cut, with escapes for what does not show.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Cause {
    /// Which; the name of a fault where it is one.
    #[schema(example = "behind_others")]
    pub(crate) kind: &'static str,
    /// What is the case, in a sentence with its figures.
    pub(crate) sentence: String,
    /// What shows it and what follows from it; empty where there is no more to say.
    pub(crate) evidence: String,
    /// What repairs it; absent where nothing has to be repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<&'static str>,
    /// Since when.
    pub(crate) since: Option<Timestamp>,
    /// Znodes to look at, at most five.
    pub(crate) items: Vec<String>,
    /// How many more there are.
    pub(crate) more_items: u64,
}

impl From<&insight::Diagnosis> for Diagnosis {
    fn from(diagnosis: &insight::Diagnosis) -> Self {
        Self {
            verdict: diagnosis.verdict.label(),
            headline: diagnosis.headline.clone(),
            causes: diagnosis.causes.iter().map(Cause::from).collect(),
        }
    }
}

impl From<&insight::Cause> for Cause {
    fn from(cause: &insight::Cause) -> Self {
        Self {
            kind: cause.kind.label(),
            sentence: cause.sentence.clone(),
            evidence: cause.evidence.clone(),
            remedy: cause.remedy,
            since: cause.since,
            items: cause.items.iter().map(ToString::to_string).collect(),
            more_items: cause.more,
        }
    }
}
