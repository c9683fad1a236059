//! Runs the mill of a process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::copies::{CopyStanding, CountCopies, StoredObjects};
use queuekeeper_ingest::services::Services;
use queuekeeper_mail::MAIL;
use queuekeeper_mail::delivery::Delivery;
use queuekeeper_mail::metrics::{OutboxMetrics, PREFIX};
use queuekeeper_mail::settings::Route;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::bit::chain::ReportChain;
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::item::ROUND;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::copies::standing;
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::PolicySource;
use queuekeeper_mill::run::{Mill, MillSettings};
use queuekeeper_mill::stores::AccountStores;
use queuekeeper_mill::users::MILL;
use queuekeeper_mill::worker::Times;
use queuekeeper_store::{Audited, SpaceName, Store, StoreFamilies, StoreName};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::catalogue;
use super::tasks::Tasks;
use crate::actions::mill::{MillParts, OpenPolicies};
use crate::config::{MillConfig, PolicyPlace, StoreSettings};
use crate::metrics::mill::MillFamilies;
use crate::views::mill::{Measured, OpenStore};
use crate::{metrics, views, web};

/// How often it is seen whether mails of other processes are due, and how many wait.
const MAILS: Duration = Duration::from_secs(10);

/// Opens what the mill needs: its catalogue, and the stores of all accounts, each so that its changes are recorded.
/// What killed processes left in them is settled first.
///
/// # Errors
/// One line that names what cannot be opened.
pub async fn open(
    config: &MillConfig,
    settings: &StoreSettings,
    mill: MillSettings,
    families: &StoreFamilies,
    metrics: MillMetrics,
) -> anyhow::Result<Mill> {
    let catalogue = catalogue::open(settings).await?;
    let names = config.accounts.values().flat_map(|account| account.stores.values());
    let stores = recorded(config, settings, &catalogue, families, names).await?;
    let source = source(config, settings, families).await?;
    let (accounts, name) = (config.accounts.clone(), worker_name());
    Ok(Mill { catalogue, accounts, source, stores, settings: mill, name, metrics, mail: ReportMail::default() })
}

/// Opens what checks, compares or adopts content at once: the catalogue, and of the stores those that are named, each
/// so that its changes are recorded. What killed processes left in them is settled first. The others need not be there.
///
/// # Errors
/// One line that names what cannot be opened.
pub async fn checker(
    config: &MillConfig,
    settings: &StoreSettings,
    names: impl IntoIterator<Item = &StoreName>,
) -> anyhow::Result<Checker> {
    let catalogue = catalogue::open(settings).await?;
    let stores = recorded(config, settings, &catalogue, &StoreFamilies::default(), names).await?;
    let accounts = config.accounts.clone();
    let stores = AccountStores::new(catalogue.clone(), &accounts, stores, MillMetrics::default());
    Ok(Checker { catalogue, accounts, stores, round: ROUND, clock: Timestamp::now })
}

/// Opens stores so that their changes are recorded.
async fn recorded(
    config: &MillConfig,
    settings: &StoreSettings,
    catalogue: &Catalogue,
    families: &StoreFamilies,
    names: impl IntoIterator<Item = &StoreName>,
) -> anyhow::Result<OpenStores> {
    let (mut stores, admin) = (OpenStores::new(), admin_spaces(config));
    for name in names {
        if !stores.contains_key(name) {
            let bare = bare(settings, name, families).await?;
            stores.insert(name.clone(), audited(bare, catalogue, &admin).await?);
        }
    }
    Ok(stores)
}

/// Runs the mill of a configuration until `shutdown`, and its metrics and probes on the listeners.
///
/// # Errors
/// When something it needs cannot be opened, or it cannot go on.
pub async fn run(
    config: &MillConfig,
    settings: &StoreSettings,
    (mill, mail): (MillSettings, ReportMail),
    listeners: Vec<TcpListener>,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let mut registry = metrics::registry();
    let (families, counted) = (StoreFamilies::register(&mut registry), MillMetrics::register(&mut registry));
    let figures = MillFamilies::register(&mut registry);
    let outbox = OutboxMetrics::new(&[MAIL]);
    outbox.register(registry.sub_registry_with_prefix(PREFIX));
    let mill = Mill { mail: mail.clone(), ..open(config, settings, mill, &families, counted).await? };
    let catalogue = mill.catalogue.clone();
    let shown = shown(&catalogue, config, settings, OpenStores::new()).await?;
    for listener in &listeners {
        let address = listener.local_addr().context("a listener has no address")?;
        tracing::info!(%address, "listening");
    }
    tracing::info!(accounts = config.accounts.len(), workers = mill.settings.workers, "the mill is running");
    let mut tasks = Tasks::new(shutdown);
    tasks.allow(Times::default().grace);
    tasks.spawn("the mill", |shutdown| async {
        Box::pin(mill.run(shutdown)).await;
        Ok(())
    });
    let measured = figures.clone();
    tasks.spawn("the figures of the workers", |shutdown| async {
        shown.measure(measured, Measured::Workers, shutdown).await;
        Ok(())
    });
    spawn_mail(&mut tasks, &catalogue, config, mail, outbox);
    let is_ready = move || {
        if figures.are_known() { Ok(()) } else { Err("the catalogue does not answer".to_owned()) }
    };
    tasks.spawn("the web server", |shutdown| async move {
        Ok(web::process::run(listeners, registry, is_ready, shutdown).await?)
    });
    let outcome = tasks.join().await;
    catalogue.close().await;
    outcome
}

/// Starts sending the mails of the outbox, and counting those that wait.
fn spawn_mail(tasks: &mut Tasks, catalogue: &Catalogue, config: &MillConfig, mail: ReportMail, metrics: OutboxMetrics) {
    let has_recipients = config.accounts.values().any(|account| !account.mail.is_empty());
    if has_recipients && mail.settings.route == Route::None {
        tracing::warn!(
            "neither --mail.server nor --mail.directory is set: mails on reports wait for a process that has one"
        );
    }
    let (sending, counted) = (catalogue.clone(), metrics.clone());
    tasks.spawn("the mails", |shutdown| async move {
        let (stop, stopping) = watch::channel(false);
        let delivery = Delivery {
            catalogue: &sending,
            settings: &mail.settings,
            look_again: MAILS,
            posted: &mail.posted,
            metrics: &counted,
            tried: &|_| {},
        };
        let stopped = async {
            shutdown.cancelled().await;
            stop.send_replace(true);
        };
        tokio::join!(delivery.run(stopping), stopped);
        Ok(())
    });
    let catalogue = catalogue.clone();
    tasks.spawn("the count of mails", |shutdown| async move {
        loop {
            match catalogue.waiting_messages().await {
                Ok(waiting) => {
                    let mails = waiting.into_iter().find(|waiting| waiting.kind == MAIL);
                    metrics.messages(MAIL, mails.map_or((0, Duration::ZERO), |mails| (mails.count, mails.age)));
                }
                Err(error) => tracing::warn!(%error, "cannot count the waiting mails"),
            }
            if shutdown.run_until_cancelled(sleep(MAILS)).await.is_none() {
                return Ok(());
            }
        }
    });
}

/// The mill of a process that has catalogue and stores open already, for its daemons.
///
/// # Errors
/// One line that names what cannot be used.
pub async fn beside(
    config: &MillConfig,
    services: &Services,
    settings: MillSettings,
    metrics: MillMetrics,
) -> anyhow::Result<Mill> {
    let catalogue = services.catalogue.clone();
    let open = |name: &StoreName| {
        let store = services.stores.get(name).cloned();
        store.with_context(|| format!("there is no store {name} in the configuration"))
    };
    let (mut stores, admin) = (BTreeMap::new(), admin_spaces(config));
    for store in config.accounts.values().flat_map(|account| account.stores.values()) {
        if !stores.contains_key(store) {
            stores.insert(store.clone(), audited(open(store)?, &catalogue, &admin).await?);
        }
    }
    let source = match &config.policies {
        PolicyPlace::Directory(directory) => PolicySource::Directory(directory.clone()),
        PolicyPlace::Space(store, space) => PolicySource::Space(open(store)?, space.clone()),
    };
    let (accounts, name) = (config.accounts.clone(), worker_name());
    // Its daemons send what it writes.
    let mail = ReportMail { settings: services.settings.mail.clone(), ..ReportMail::default() };
    Ok(Mill { catalogue, accounts, source, stores, settings, name, metrics, mail })
}

/// Lets daemons say in the report of a batch which copies of its objects there are. It is for services that are new.
pub(crate) fn count_copies_of(config: &MillConfig, services: &Services) {
    let (accounts, catalogue) = (Arc::new(config.accounts.clone()), services.catalogue.clone());
    let count: CountCopies = Arc::new(move |objects: StoredObjects| {
        let (accounts, catalogue) = (Arc::clone(&accounts), catalogue.clone());
        Box::pin(async move {
            let StoredObjects { store, space, folders } = &objects;
            let found = standing(&catalogue, &accounts, (store, space), folders).await;
            let found = found.map_err(|error| error.to_string())?;
            Ok(found.map(|(complete, incomplete)| CopyStanding { complete, incomplete }))
        })
    });
    let _set_once = services.count_copies.set(count);
}

/// The name that the workers of this process have in the history of a task.
fn worker_name() -> String {
    format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id())
}

/// Where policies are, opened.
///
/// # Errors
/// One line that names the store.
pub async fn source(
    config: &MillConfig,
    settings: &StoreSettings,
    families: &StoreFamilies,
) -> anyhow::Result<PolicySource> {
    match &config.policies {
        PolicyPlace::Directory(directory) => Ok(PolicySource::Directory(directory.clone())),
        PolicyPlace::Space(store, space) => {
            Ok(PolicySource::Space(bare(settings, store, families).await?, space.clone()))
        }
    }
}

/// Stores that a process has open.
pub(crate) type OpenStores = BTreeMap<StoreName, Arc<dyn Store>>;

/// What pages, API and command line show of the mill of a configuration, beside a catalogue that is open. Stores that
/// are not open are opened once they are read.
///
/// # Errors
/// One line that names what cannot be opened.
pub(crate) async fn shown(
    catalogue: &Catalogue,
    config: &MillConfig,
    settings: &StoreSettings,
    opened: OpenStores,
) -> anyhow::Result<views::mill::Mill> {
    let source = source(config, settings, &StoreFamilies::default()).await?;
    let settings = settings.clone();
    let open: OpenStore = Arc::new(move |name| {
        let (settings, known) = (settings.clone(), opened.get(&name).cloned());
        Box::pin(async move {
            match known {
                Some(store) => Ok(store),
                None => bare(&settings, &name, &StoreFamilies::default()).await.map_err(|error| error.to_string()),
            }
        })
    });
    Ok(views::mill::Mill::new(catalogue.clone(), config.accounts.clone(), source, config.prices.clone(), open))
}

/// What people change of the mill of a configuration, beside a catalogue that is open.
pub(crate) fn changed(catalogue: &Catalogue, config: &MillConfig, settings: &StoreSettings) -> MillParts {
    let (accounts, of_changes) = (config.accounts.clone(), catalogue.clone());
    let (config, settings) = (config.clone(), settings.clone());
    let open: OpenPolicies = Arc::new(move |user| {
        let (config, settings, catalogue) = (config.clone(), settings.clone(), of_changes.clone());
        Box::pin(async move { source_of(&config, &settings, &catalogue, &user).await })
    });
    MillParts { catalogue: catalogue.clone(), accounts, open }
}

/// The same for changes in the name of a user, which are recorded.
///
/// # Errors
/// One line that names the store.
pub async fn source_of(
    config: &MillConfig,
    settings: &StoreSettings,
    catalogue: &Catalogue,
    user: &str,
) -> anyhow::Result<PolicySource> {
    match &config.policies {
        PolicyPlace::Directory(directory) => Ok(PolicySource::Directory(directory.clone())),
        PolicyPlace::Space(store, space) => {
            let store = bare(settings, store, &StoreFamilies::default()).await?;
            let capabilities = store.probe().await?;
            let audited = Audited::new(store, &capabilities, Arc::new(catalogue.clone()), user);
            Ok(PolicySource::Space(Arc::new(audited.with_owned([space.clone()])), space.clone()))
        }
    }
}

/// What verifies the chain of the reports of an account, without a catalogue. Its stores are only read; one that cannot
/// be opened is missed where a report is in it.
pub async fn report_chain(account: &Account, settings: &StoreSettings, families: &StoreFamilies) -> ReportChain {
    let mut stores = BTreeMap::new();
    for store in account.stores.values() {
        let opened = bare(settings, store, families).await;
        stores.insert(store.clone(), opened.map_err(|error| error.to_string()));
    }
    ReportChain { account: account.clone(), stores, catalogue: None, noted: None }
}

async fn bare(settings: &StoreSettings, name: &StoreName, families: &StoreFamilies) -> anyhow::Result<Arc<dyn Store>> {
    let opened = settings.open(name, families).await;
    Ok(opened.with_context(|| format!("there is no store {name} in the configuration"))??)
}

/// The spaces in which the accounts have their reports, as the stores name them.
fn admin_spaces(config: &MillConfig) -> Vec<SpaceName> {
    config.accounts.values().filter_map(Account::admin_space).collect()
}

async fn audited(store: Arc<dyn Store>, catalogue: &Catalogue, admin: &[SpaceName]) -> anyhow::Result<Arc<dyn Store>> {
    let (capabilities, name) = (store.probe().await?, store.name().clone());
    if let Err(error) = store.remove_probe_bucket().await {
        tracing::warn!(store = %name, "a bucket was created for the probe and could not be removed; remove it: {error}");
    }
    let audited = Audited::new(store, &capabilities, Arc::new(catalogue.clone()), MILL);
    let audited = audited.with_owned(admin.iter().cloned().chain([ASIDE.parse()?]));
    audited.resolve_left().await?;
    Ok(Arc::new(audited))
}
