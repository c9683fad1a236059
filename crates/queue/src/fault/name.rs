//! Names that the daemons cannot read.

use super::finding::Sink;
use super::item::by_shape;
use super::{Fault, Limits};
use crate::path::Path;

/// Where a misnamed znode lies, which determines its effect on the daemons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misnamed {
    /// In the folder of a state: it is not a queue entry.
    Entry,
    /// Below `/jobs`: it is not a job id.
    Job,
    /// Below `/batches`: it is not a batch id.
    Batch,
}

impl Misnamed {
    /// Whether a znode is misnamed; `None` for any other, among them those with unexpected names elsewhere, which the
    /// daemons never look at.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let Path::Unexpected(_) = path else { return None };
        match path.parent()? {
            Path::StateFolder(_) => Some(Self::Entry),
            Path::Jobs => Some(Self::Job),
            Path::Batches => Some(Self::Batch),
            _ => None,
        }
    }

    fn how(self) -> &'static str {
        match self {
            Self::Entry => "It is not a queue entry, which is named by two digits, - and a job's id.",
            Self::Job => "It is not a job's id, which is jid and ten digits.",
            Self::Batch => "It is not a batch's id, which is bid and ten digits.",
        }
    }
}

/// Detects a name of a znode that the daemons cannot parse.
pub fn detect_name(path: &Path, limits: &Limits, sink: &mut Sink<'_>) {
    if let Some(misnamed) = Misnamed::of(path) {
        sink(by_shape(Fault::MalformedName, misnamed.how(), limits.grace, None, &|| vec![path.clone()]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_daemons_list_can_be_misnamed() {
        let rows = [
            ("/jobs/states/pending/05-", Some(Misnamed::Entry)),
            ("/jobs/states/teleporting/abc", Some(Misnamed::Entry)),
            ("/jobs/states/pending/99_jid0000000001", Some(Misnamed::Entry)),
            ("/jobs/jid77777", Some(Misnamed::Job)),
            ("/batches/bid99999", Some(Misnamed::Batch)),
            ("/jobs/jid0000000001/notes", None),
            ("/batches/bid0000000001/states/batch-odd", None),
            ("/jobs/states/pending/05-jid0000000001", None),
            ("/locks/odd", None),
            ("/odd", None),
        ];
        for (path, misnamed) in rows {
            assert_eq!(Misnamed::of(&Path::parse(path)), misnamed, "{path}");
        }
    }
}
