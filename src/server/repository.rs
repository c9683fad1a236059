//! What a server shows, takes and gives of the repository behind the queue: objects, deposits, and what was requested.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use queuekeeper_ingest::access::Deliveries;
use queuekeeper_ingest::contents::{ObjectReader, OpenStore};
use queuekeeper_ingest::services::Services;
use queuekeeper_store::StoreFamilies;

use super::tasks::Tasks;
use super::{catalogue, ingest};
use crate::actions::Actions;
use crate::actions::access::AccessRequests;
use crate::actions::deposit::Intake;
use crate::actions::mill::MillActions;
use crate::actions::store_events::StoreEvents;
use crate::config::{Config, RepositoryParts};
use crate::metrics::mill::MillFamilies;
use crate::views::mill::{Measured, Mill};
use crate::views::objects::{Objects, Places};
use crate::web;

/// The objects, where there is a catalogue; what takes deposits, where they are taken; and the archives that access
/// requests got.
pub(super) struct Repository {
    objects: Option<Objects>,
    intake: Option<Intake>,
    deliveries: Option<Arc<Deliveries>>,
    requests: Option<AccessRequests>,
    events: Option<StoreEvents>,
    mill: Option<(Mill, MillActions)>,
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
        // Those of this process say where their links lead.
        let access = daemons.and_then(|services| services.settings.access.clone());
        let deliveries = match access.or_else(|| stores.access().cloned()) {
            None => None,
            Some(access) => {
                let store = match daemons.and_then(|services| services.stores.get(&access.store).cloned()) {
                    Some(open) => Some(open),
                    None => Box::pin(stores.open(&access.store, &StoreFamilies::default())).await.transpose()?,
                };
                store.map(|store| Arc::new(Deliveries::new(store, access)))
            }
        };
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
            (None, Some(_)) => Some(catalogue::open(&stores).await?),
            (None, None) => None,
        };
        if let Some(catalogue) = &catalogue {
            actions.know(catalogue);
        }
        let opened = services.as_ref().map(|services| services.stores.clone()).unwrap_or_default();
        // Where an object lies follows from the profile of its collection.
        let settings_of_stores = stores.clone();
        let open: OpenStore = Arc::new(move |name| {
            let stores = stores.clone();
            Box::pin(async move { stores.open(&name, &StoreFamilies::default()).await })
        });
        let contents = services.as_ref().map(|services| ObjectReader::new(Arc::clone(services), open));
        let settings = deliveries.as_ref().map(|deliveries| deliveries.settings().clone());
        let requests = settings.zip(catalogue.clone());
        let requests = requests.map(|(settings, catalogue)| AccessRequests::new(actions.clone(), catalogue, settings));
        let objects = catalogue.clone().map(Objects::new);
        let settings_of_mill = config.mill.as_ref().or_else(|| config.file.as_ref()?.mill());
        let objects = objects.map(|objects| match (contents, settings_of_mill) {
            (Some(contents), Some(mill)) => {
                let reader = contents.clone();
                let places: Places = Arc::new(move |collection| reader.place(collection));
                objects.with_contents(contents).with_copies(mill.accounts.clone(), places)
            }
            (Some(contents), None) => objects.with_contents(contents),
            // Where objects lie is in the profiles.
            (None, _) => objects,
        });
        let mill = match (settings_of_mill, &catalogue) {
            (Some(mill), Some(catalogue)) => {
                let shown = Box::pin(super::mill::shown(catalogue, mill, &settings_of_stores, opened)).await?;
                let changed = super::mill::changed(catalogue, mill, &settings_of_stores);
                Some((shown, MillActions::new(actions, changed)))
            }
            (_, _) => None,
        };
        let events = catalogue.zip(settings_of_mill);
        let events = events.map(|(catalogue, mill)| StoreEvents::new(catalogue, mill.accounts.clone()));
        let intake = services.map(|services| Intake::new(actions.clone(), services));
        Ok(Self { objects, intake, deliveries, requests, events, mill })
    }

    /// Has the figures of the mill be exported, as a task.
    pub(super) fn measure(&self, registry: &mut Registry, tasks: &mut Tasks) {
        let Some((mill, _)) = self.mill.clone() else { return };
        let families = MillFamilies::register(registry);
        tasks.spawn("the figures of the mill", |shutdown| async {
            mill.measure(families, Measured::All, shutdown).await;
            Ok(())
        });
    }

    /// What there is.
    pub(super) fn parts(&self) -> RepositoryParts {
        RepositoryParts {
            deposits: self.intake.is_some(),
            objects: self.objects.is_some(),
            deliveries: self.deliveries.is_some(),
            mill: self.mill.is_some(),
        }
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
        if let Some(deliveries) = self.deliveries {
            state = state.with_deliveries(deliveries);
        }
        if let Some(events) = self.events {
            state = state.with_store_events(events);
        }
        if let Some(requests) = self.requests {
            state = state.with_requests(requests);
        }
        if let Some((mill, actions)) = self.mill {
            state = state.with_mill(mill, actions);
        }
        state
    }
}
