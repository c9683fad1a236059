//! The checks of an item's copies, as a history of their proofs.

use jiff::Timestamp;
use queuekeeper_catalogue::bit::{LoggedCheck, SUCCESS};
use serde::Serialize;
use utoipa::ToSchema;

/// A check of a copy.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CheckItem {
    /// Its number.
    pub(crate) number: u64,
    /// When it ended.
    pub(crate) time: Timestamp,
    /// In which store.
    pub(crate) store: String,
    /// `success`, `unproven`, `failure` or `error`.
    #[schema(example = "success")]
    pub(crate) result: String,
    /// How the content was proven: `read` or `provider`; null if it was not.
    #[schema(example = "read")]
    pub(crate) proof: Option<String>,
    /// What was found; empty if nothing is wrong.
    pub(crate) findings: Vec<String>,
    /// What is wrong, as a sentence; null if nothing is.
    pub(crate) detail: Option<String>,
}

impl CheckItem {
    /// Whether it found nothing wrong, and proved the content.
    pub(crate) fn is_success(&self) -> bool {
        self.result == SUCCESS
    }

    /// What came of it, in words.
    pub(crate) fn words(&self) -> String {
        match (self.is_success(), &self.proof) {
            (true, Some(proof)) => format!("proven by {}", proof_words(proof)),
            _ => self.result.clone(),
        }
    }
}

/// A kind of proof, in words: the rest of a sentence after *by*.
pub(crate) fn proof_words(proof: &str) -> &str {
    match proof {
        "read" => "reading",
        "provider" => "the provider's checksum",
        other => other,
    }
}

impl From<LoggedCheck> for CheckItem {
    fn from(check: LoggedCheck) -> Self {
        let LoggedCheck { id, time, store, result, proof, findings, detail, .. } = check;
        Self { number: id, time, store: store.to_string(), result, proof, findings, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_success_is_called_a_proof() {
        let words = |result: &str, proof: Option<&str>| {
            let check = CheckItem {
                number: 1,
                time: Timestamp::UNIX_EPOCH,
                store: "main".to_owned(),
                result: result.to_owned(),
                proof: proof.map(str::to_owned),
                findings: Vec::new(),
                detail: None,
            };
            check.words()
        };
        assert_eq!(words("success", Some("read")), "proven by reading");
        assert_eq!(words("success", Some("provider")), "proven by the provider's checksum");
        assert_eq!(words("failure", Some("read")), "failure");
        assert_eq!(words("unproven", None), "unproven");
    }
}
