//! What people call an item: its file, its title and its batch.

use crate::actions::Target;
use crate::views::show::brief;
use crate::web::pages::listing::SHORT;
use crate::web::state::State;

/// What names an item beside its id, as the mirror knows it; empty for what it has none of.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) filename: String,
    pub(super) title: String,
    pub(super) batch: String,
    pub(super) batch_href: String,
}

impl About {
    pub(super) fn new(state: &State, target: &Target, root: &str) -> Self {
        let store = &state.shared.store;
        match target {
            Target::Job(id) => store.job(*id).map_or_else(Self::default, |job| Self {
                filename: brief(&job.filename, SHORT),
                title: brief(&job.title, SHORT),
                batch: job.batch.map(|batch| batch.to_string()).unwrap_or_default(),
                batch_href: job.batch.map(|batch| format!("{root}batches/{batch}")).unwrap_or_default(),
            }),
            Target::Batch(id) => store.batch(*id).map_or_else(Self::default, |found| Self {
                filename: brief(&found.batch.filename, SHORT),
                title: brief(&found.batch.title, SHORT),
                ..Self::default()
            }),
            Target::Request(..)
            | Target::Queue(_)
            | Target::Collection(_)
            | Target::Store(_)
            | Target::Lock(_)
            | Target::Fault(..)
            | Target::Batches => Self::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.filename.is_empty() && self.title.is_empty() && self.batch.is_empty()
    }
}
