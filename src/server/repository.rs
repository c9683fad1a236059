//! What a server shows and takes of the repository behind the queue: objects, and deposits.

use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::contents::{Contents, OpenStore};
use queuekeeper_ingest::step::Services;
use queuekeeper_store::StoreFamilies;

use super::ingest;
use super::tasks::Tasks;
use crate::actions::Actions;
use crate::actions::deposit::Intake;
use crate::config::{Config, RepositoryParts};
use crate::views::objects::Objects;
use crate::web;

/// The objects, where there is a catalogue, and what takes deposits, where they are taken.
pub(super) struct Repository {
    objects: Option<Objects>,
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
        // Where an object lies follows from the profile of its collection.
        let open: OpenStore = Arc::new(move |name| {
            let stores = stores.clone();
            Box::pin(async move { stores.open(&name, &StoreFamilies::default()).await })
        });
        let contents = services.as_ref().map(|services| Contents::new(Arc::clone(services), open));
        let objects = catalogue.map(Objects::new);
        let objects = objects.map(|objects| match contents {
            Some(contents) => objects.with_contents(contents),
            None => objects,
        });
        let intake = services.map(|services| Intake::new(actions.clone(), services));
        Ok(Self { objects, intake })
    }

    /// What there is.
    pub(super) fn parts(&self) -> RepositoryParts {
        RepositoryParts { deposits: self.intake.is_some(), objects: self.objects.is_some() }
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
        if let Some(objects) = self.objects {
            state = state.with_objects(objects);
        }
        if let Some(intake) = self.intake {
            state = state.with_intake(intake);
        }
        state
    }
}
