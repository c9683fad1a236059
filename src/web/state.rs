//! What handlers need: the mirror, the actions, the configuration.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use prometheus_client::registry::Registry;

use queuekeeper_ingest::access::Deliveries;

use super::http::context::{HttpContext, ServerContext};
use super::http::problem::Problem;
use super::reload::Reloader;
use crate::actions::Actions;
use crate::actions::access::AccessRequests;
use crate::actions::deposit::Intake;
use crate::actions::mill::MillActions;
use crate::actions::store_events::StoreEvents;
use crate::alerts::Alerts;
use crate::config;
use crate::metrics::http::Known;
use crate::metrics::working_storage::MeasuredStorage;
use crate::mirror::{Freshness, MirrorStore, Summary};
use crate::prometheus::Prometheus;
use crate::views::job::JobDetail;
use crate::views::mill::Mill;
use crate::views::objects::Objects;
use crate::views::overview::OpenBitErrors;
use crate::views::{ViewError, ViewSource};

/// What a server has once, however many queues it serves: connections, logins, the metrics of requests, and the files
/// that it reloads.
#[derive(Clone, Debug)]
pub struct Front {
    pub(super) server: Arc<ServerContext>,
    pub(super) reloader: Arc<Reloader>,
}

impl Front {
    /// Registers the families of requests, logins and reloads.
    pub(super) fn with_routes<'a>(
        registry: &mut Registry,
        config: &config::Config,
        routes: impl IntoIterator<Item = Known<'a>>,
    ) -> Self {
        let server = Arc::new(ServerContext::register(registry, config, routes));
        Self { server, reloader: Arc::new(Reloader::register(registry, config)) }
    }

    /// Checks at once whether the files of the configuration have changed, without waiting for the next interval.
    pub fn reload(&self) {
        self.reloader.request();
    }
}

/// What the handlers need; cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: MirrorStore,
    pub(super) registry: Registry,
    pub(super) storage: Option<MeasuredStorage>,
    /// `None` for a read-only server.
    pub(super) actions: Option<Actions>,
    /// Empty for a server without one.
    pub(super) prometheus: OnceLock<Prometheus>,
    /// Empty for a server without rules.
    pub(super) alerts: OnceLock<Alerts>,
    /// Empty for a server that takes no deposits.
    pub(super) intake: OnceLock<Intake>,
    /// Empty for a server without a catalogue.
    pub(super) objects: OnceLock<Objects>,
    /// Empty for a server that answers no links of access requests.
    pub(super) deliveries: OnceLock<Arc<Deliveries>>,
    /// Empty for a server that makes no access requests.
    pub(super) requests: OnceLock<AccessRequests>,
    pub(super) store_events: OnceLock<StoreEvents>,
    /// Empty for a server without a mill.
    pub(super) mill: OnceLock<(Mill, MillActions)>,
    pub(super) config: config::Config,
    pub(super) http: Arc<HttpContext>,
    pub(super) reloader: Arc<Reloader>,
}

/// What every page is rendered from, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// The server's clock.
    pub now: Timestamp,
    /// The connect string.
    pub servers: String,
    /// The path of the metrics.
    pub telemetry_path: String,
    /// Where the pages are among those of several queues.
    pub deployments: Option<config::Deployments>,
    /// A notice for all users of this server.
    pub notice: Option<&'static str>,
    /// What there is of the repository behind the queue.
    pub repository: config::RepositoryParts,
    /// The freshness of the mirror.
    pub freshness: Freshness,
    /// The figures; `None` before the first walk.
    pub summary: Option<Summary>,
}

impl State {
    /// The state of the pages of a queue. `registry` is complete: what is registered later is not served.
    #[must_use]
    pub fn behind(
        front: &Front,
        config: config::Config,
        store: MirrorStore,
        storage: Option<MeasuredStorage>,
        actions: Option<Actions>,
        registry: Registry,
    ) -> Self {
        let http = Arc::new(HttpContext::new(config.web.clone(), Arc::clone(&front.server)));
        let reloader = Arc::clone(&front.reloader);
        let (alerts, prometheus) = (OnceLock::new(), OnceLock::new());
        let (intake, objects) = (OnceLock::new(), OnceLock::new());
        let (deliveries, requests, mill) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let shared = Shared {
            store,
            registry,
            storage,
            actions,
            prometheus,
            alerts,
            intake,
            objects,
            deliveries,
            requests,
            store_events: OnceLock::new(),
            mill,
            config,
            http,
            reloader,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Asks this server for figures of the past, too.
    #[must_use]
    pub fn with_prometheus(self, prometheus: Prometheus) -> Self {
        // It is new, so that there is none yet.
        let _ = self.shared.prometheus.set(prometheus);
        self
    }

    /// Where figures of more than six hours are; `None` for nowhere.
    pub(super) fn prometheus(&self) -> Option<&Prometheus> {
        self.shared.prometheus.get()
    }

    /// Accepts alerts, too.
    #[must_use]
    pub fn with_alerts(self, alerts: Alerts) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.alerts.set(alerts);
        self
    }

    /// Takes deposits, too.
    #[must_use]
    pub fn with_intake(self, intake: Intake) -> Self {
        // It is new, so that there is none yet.
        let _ = self.shared.intake.set(intake);
        self
    }

    /// Shows the objects of a catalogue, too.
    #[must_use]
    pub(crate) fn with_objects(self, objects: Objects) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.objects.set(objects);
        self
    }

    /// Answers the links of access requests, too.
    #[must_use]
    pub(crate) fn with_deliveries(self, deliveries: Arc<Deliveries>) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.deliveries.set(deliveries);
        self
    }

    /// Takes messages of stores, too.
    #[must_use]
    pub(crate) fn with_store_events(self, events: StoreEvents) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.store_events.set(events);
        self
    }

    /// What takes messages of stores.
    ///
    /// # Errors
    /// Where this server takes none.
    pub(super) fn store_events(&self) -> Result<&StoreEvents, Problem> {
        let none = || Problem::missing("This server has no mill: name its accounts in the file of --config.file.");
        self.shared.store_events.get().ok_or_else(none)
    }

    /// Makes access requests, too.
    #[must_use]
    pub(crate) fn with_requests(self, requests: AccessRequests) -> Self {
        // It is new, so that there are none yet.
        let _ = self.shared.requests.set(requests);
        self
    }

    /// Shows the mill, too, and takes actions on it.
    #[must_use]
    pub(crate) fn with_mill(self, mill: Mill, actions: MillActions) -> Self {
        // It is new, so that there is none yet.
        let _ = self.shared.mill.set((mill, actions));
        self
    }

    /// The mill.
    ///
    /// # Errors
    /// Where this server has none.
    pub(super) fn mill(&self) -> Result<&Mill, Problem> {
        self.mill_and_actions().map(|(mill, _)| mill)
    }

    /// What people may do to the mill.
    ///
    /// # Errors
    /// Where this server has none.
    pub(super) fn mill_actions(&self) -> Result<&MillActions, Problem> {
        self.mill_and_actions().map(|(_, actions)| actions)
    }

    fn mill_and_actions(&self) -> Result<&(Mill, MillActions), Problem> {
        let none = || Problem::missing("This server has no mill: configure one in the file of --config.file.");
        self.shared.mill.get().ok_or_else(none)
    }

    /// What is known of open bit errors; nothing where this server has no mill.
    pub(super) async fn bit_errors(&self) -> OpenBitErrors {
        match self.shared.mill.get() {
            Some((mill, _)) => mill.open_bit_errors().await,
            None => OpenBitErrors::NotRead,
        }
    }

    /// What makes access requests.
    ///
    /// # Errors
    /// Where this server makes none.
    pub(super) fn requests(&self) -> Result<&AccessRequests, Problem> {
        let none = || Problem::missing("This server has no delivery store: name one in the file of --config.file.");
        self.shared.requests.get().ok_or_else(none)
    }

    /// The archives that access requests got.
    ///
    /// # Errors
    /// Where this server answers no links to them.
    pub(super) fn deliveries(&self) -> Result<&Deliveries, Problem> {
        let none = || Problem::missing("This server has no delivery store: name one in the file of --config.file.");
        self.shared.deliveries.get().map(|deliveries| &**deliveries).ok_or_else(none)
    }

    /// The objects of the catalogue.
    ///
    /// # Errors
    /// Where this server has none.
    pub(super) fn objects(&self) -> Result<&Objects, Problem> {
        let none = || Problem::missing("This server has no catalogue: name one in the file of --config.file.");
        self.shared.objects.get().ok_or_else(none)
    }

    /// A job by its id, with its znodes, and with what it made where this server has a catalogue.
    ///
    /// # Errors
    /// When there is no such job.
    pub(super) async fn job(&self, name: &str, now: Timestamp) -> Result<JobDetail, ViewError> {
        let job = self.source().job(name, now).await?;
        Ok(match self.shared.objects.get() {
            Some(objects) => job.with_object(objects).await,
            None => job,
        })
    }

    /// The mirror.
    pub(super) fn shared_store(&self) -> &MirrorStore {
        &self.shared.store
    }

    /// Checks at once whether the files of the configuration have changed, without waiting for the next interval.
    pub fn reload(&self) {
        self.shared.reloader.request();
    }

    /// What connections and layers share.
    pub(super) fn http(&self) -> &Arc<HttpContext> {
        &self.shared.http
    }

    /// What every page is rendered from, at `now`.
    pub(super) fn view(&self, now: Timestamp) -> View {
        let Shared { store, config, .. } = &*self.shared;
        View {
            now,
            servers: config.zookeeper.servers.to_string(),
            telemetry_path: config.web.telemetry_path.as_str().to_owned(),
            notice: config.web.loopback.as_ref().map(|loopback| loopback.notice),
            repository: config.web.repository,
            deployments: config.web.deployments.clone(),
            freshness: store.freshness(),
            summary: self.source().summary(now).ok(),
        }
    }

    /// What views are made from.
    pub(super) fn source(&self) -> ViewSource<'_> {
        let Shared { store, storage, alerts, config, .. } = &*self.shared;
        ViewSource {
            store,
            storage: storage.as_ref(),
            alerts: alerts.get(),
            servers: &config.zookeeper.servers,
            stalled_after: config.mirror.stalled_after,
        }
    }
}
