//! What a server shows and takes of the repository behind the queue: objects, and deposits.

use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::step::Services;

use super::ingest;
use super::tasks::Tasks;
use crate::actions::Actions;
use crate::actions::deposit::Intake;
use crate::config::{Config, RepositoryParts};
use crate::views::objects::Objects;
use crate::web;

/// The catalogue, where there is one, and what takes deposits, where they are taken.
pub(super) struct Repository {
    catalogue: Option<Catalogue>,
    intake: Option<Intake>,
}

impl Repository {
    /// Opens what is configured; daemons of this process have theirs open.
    ///
    /// # Errors
    /// One line that names what cannot be opened.
    pub(super) async fn open(
        config: &Config,
        daemons: Option<&Arc<Services>>,
        actions: &Actions,
    ) -> anyhow::Result<Self> {
        let stores = config.file.as_ref().map(|file| file.stores().clone()).unwrap_or_default();
        let services = match (daemons, &config.deposits) {
            (Some(services), _) => Some(Arc::clone(services)),
            (None, Some(deposits)) => {
                let threshold = config.storage.as_ref().map(|storage| storage.threshold);
                Some(ingest::for_deposits(&stores, deposits, threshold).await?)
            }
            (None, None) => None,
        };
        let catalogue = match (&services, stores.catalogue()) {
            (Some(services), _) => Some(services.catalogue.clone()),
            (None, Some(url)) => Some(Catalogue::open(url.expose()).await?),
            (None, None) => None,
        };
        let intake = services.map(|services| Intake::new(actions.clone(), services));
        Ok(Self { catalogue, intake })
    }

    /// What there is.
    pub(super) fn parts(&self) -> RepositoryParts {
        RepositoryParts { deposits: self.intake.is_some(), objects: self.catalogue.is_some() }
    }

    /// Removes abandoned uploads as a task.
    pub(super) fn sweep(&self, tasks: &mut Tasks) {
        let Some(intake) = self.intake.clone() else { return };
        tasks.spawn("the sweep of uploads", |shutdown| async {
            intake.sweep(shutdown).await;
            Ok(())
        });
    }

    /// Has the pages and the API show it.
    pub(super) fn show(self, mut state: web::State) -> web::State {
        if let Some(catalogue) = self.catalogue {
            state = state.with_objects(Objects::new(catalogue));
        }
        if let Some(intake) = self.intake {
            state = state.with_intake(intake);
        }
        state
    }
}
