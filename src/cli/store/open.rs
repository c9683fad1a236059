//! The stores of the configuration, opened when they are needed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::store::Capabilities;
use queuekeeper_store::{Audited, Error, ErrorKind, Store, StoreFamilies, StoreName};

use super::ConfigArgs;
use crate::cli::UsageError;
use crate::cli::actor::actor;
use crate::cli::exit::{BAD_USAGE, CommandError, FAILED, NOT_FOUND, REFUSED, UNKNOWN};
use crate::cli::output::note;
use crate::cli::prompt::Interrupts;
use crate::config::ConfigFile;

/// A temporary file, or an upload, that has not been written to for so long is of a process that was killed.
const LEFT_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// The stores and the catalogue of a configuration.
pub(super) struct Stores {
    file: ConfigFile,
}

/// A store that may be changed, and the catalogue that records it.
pub(super) struct Writable {
    pub(super) store: Arc<dyn Store>,
    pub(super) catalogue: Catalogue,
}

impl ConfigArgs {
    /// Reads the configuration.
    pub(super) fn stores(&self) -> Result<Stores, UsageError> {
        let file = ConfigFile::read(&self.config_file).map_err(|error| UsageError::flag("--config.file", error))?;
        Ok(Stores { file })
    }
}

impl Stores {
    /// A store, to read from.
    pub(super) async fn read(&self, name: &StoreName) -> anyhow::Result<Arc<dyn Store>> {
        let settings = self.file.stores();
        let Some(opened) = settings.open(name, &StoreFamilies::default()).await else {
            let names: Vec<_> = settings.names().map(StoreName::as_str).collect();
            let there =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            let why = format!("there is no store {name} in {}; {there}", self.file.path().display());
            return Err(UsageError::flag("--config.file", why).into());
        };
        Ok(opened.map_err(|error| failed(&error))?)
    }

    /// A store, to change it. A signal ends it, and what it waits for.
    pub(super) async fn write(&self, name: &StoreName, interrupts: &Interrupts) -> anyhow::Result<Writable> {
        interrupts.unless(Box::pin(self.open_to_write(name, interrupts))).await?
    }

    async fn open_to_write(&self, name: &StoreName, interrupts: &Interrupts) -> anyhow::Result<Writable> {
        let store = self.read(name).await?;
        let catalogue = self.catalogue().await?;
        let store = audited(store, &catalogue, interrupts).await?;
        Ok(Writable { store, catalogue })
    }

    /// The catalogue, to read from it: `None` where there is none, or it cannot be opened, which is noted.
    pub(super) async fn known(&self) -> Option<Catalogue> {
        let url = self.file.stores().catalogue().filter(|url| url.missing().is_none())?;
        match Catalogue::open(url.expose()).await {
            Ok(catalogue) => Some(catalogue),
            Err(error) => {
                note(&format!("{error}; the content is compared only with the store's checksums"));
                None
            }
        }
    }

    /// The catalogue.
    async fn catalogue(&self) -> anyhow::Result<Catalogue> {
        let Some(url) = self.file.stores().catalogue() else {
            let why = format!("{} names no catalogue, which is required to record changes", self.file.path().display());
            return Err(UsageError::flag("--config.file", why).into());
        };
        let opened = Catalogue::open(url.expose()).await;
        Ok(opened.map_err(|error| CommandError::new(FAILED, error.to_string()))?)
    }
}

/// A store of which every change is recorded in a catalogue, after what killed processes have left is settled.
pub(in crate::cli) async fn audited(
    store: Arc<dyn Store>,
    catalogue: &Catalogue,
    interrupts: &Interrupts,
) -> Result<Arc<dyn Store>, CommandError> {
    let name = store.name().clone();
    // Which conditions hold decides how a change is kept from overwriting another one.
    let capabilities = match probe(&*store).await {
        // A probe writes. What frees space works all the same, and what needs some fails by its own name.
        Err(Error { kind: ErrorKind::Full, .. }) => Capabilities::default(),
        probed => probed.map_err(|error| failed(&error))?,
    };
    let audited = Audited::new(store, &capabilities, Arc::new(catalogue.clone()), actor().name);
    let audited = audited.with_abort(interrupts.token());
    audited.resolve_left().await.map_err(|error| CommandError::new(FAILED, error.to_string()))?;
    if let Err(error) = audited.sweep(Timestamp::now() - LEFT_AFTER).await {
        tracing::warn!(store = %name, "cannot remove temporary files of killed processes: {error}");
    }
    Ok(Arc::new(audited))
}

/// Probes a store, and removes the bucket that it made for that, or says that it cannot.
pub(in crate::cli) async fn probe(store: &dyn Store) -> Result<Capabilities, Error> {
    let probed = store.probe().await;
    if let Err(error) = store.remove_probe_bucket().await {
        note(&format!("a bucket was created for the probe and could not be removed; remove it: {error}"));
    }
    probed
}

impl Writable {
    /// Ends the connections to the catalogue.
    pub(super) async fn close(self) {
        self.catalogue.close().await;
    }
}

/// A failure of a store with its exit code.
pub(in crate::cli) fn failed(error: &Error) -> CommandError {
    let code = match error.kind {
        ErrorKind::NotFound | ErrorKind::NoSpace => NOT_FOUND,
        ErrorKind::Unsupported(_) => BAD_USAGE,
        ErrorKind::Precondition
        | ErrorKind::NotEmpty
        | ErrorKind::Stopped(_)
        | ErrorKind::Reserved(_)
        | ErrorKind::Held(_) => REFUSED,
        ErrorKind::Unknown(_) => UNKNOWN,
        _ => FAILED,
    };
    CommandError::new(code, error.to_string())
}
