//! Where an object lies: its collection in the catalogue, the store and the space in the collection's profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::inventory::Object;
use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_ingest::ark::Ark;
use queuekeeper_ingest::profile::Profiles;
use queuekeeper_ingest::rebuild::NamedRoot;
use queuekeeper_store::ocfl::{self, Root};
use queuekeeper_store::{SpaceName, Store, StoreFamilies, StoreName};

use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND};
use crate::config::{ConfigFile, MillConfig, StoreSettings};
use crate::server::standalone::DataDirectory;
use crate::views::objects::Objects;

/// Where the catalogue, the stores and the profiles are.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct RepositoryArgs {
    /// The directory of a standalone repository
    #[arg(long = "data", value_name = "DIR", conflicts_with_all = ["config_file", "profiles"])]
    pub(in crate::cli) data: Option<PathBuf>,

    /// The file with the stores and the catalogue
    #[arg(long = "config.file", value_name = "FILE", requires = "profiles")]
    config_file: Option<PathBuf>,

    /// The directory of the collections' profiles
    #[arg(
        long = "profiles",
        value_name = "DIR",
        requires = "config_file",
        env = "QUEUEKEEPER_PROFILES",
        hide_env_values = true
    )]
    profiles: Option<PathBuf>,
}

/// Which object.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct ObjectName {
    /// The object's ARK, or a local id
    #[arg(value_name = "ARK|LOCAL-ID")]
    pub(in crate::cli) name: String,

    /// The ARK of the owner of the local id, if several owners use it
    #[arg(long, value_name = "ARK")]
    owner: Option<Ark>,
}

/// The catalogue, with what leads from its rows to the stores.
pub(in crate::cli) struct Repository {
    pub(in crate::cli) catalogue: Catalogue,
    stores: StoreSettings,
    profiles: Profiles,
}

/// An object where it lies.
pub(in crate::cli) struct Located {
    pub(in crate::cli) store: Arc<dyn Store>,
    pub(in crate::cli) space: SpaceName,
    pub(in crate::cli) object: ocfl::Object,
}

impl RepositoryArgs {
    /// Opens the catalogue, which must exist, and reads the profiles.
    pub(in crate::cli) async fn open(&self) -> anyhow::Result<Repository> {
        let (flag, stores, _) = self.settings()?;
        let Some(url) = stores.catalogue() else {
            return Err(UsageError::flag(flag, "there is no catalogue in it").into());
        };
        if let Some(path) = url.missing() {
            return Err(CommandError::new(NOT_FOUND, format!("catalogue {}: there is none", path.display())).into());
        }
        self.create().await
    }

    /// The same; a catalogue that does not exist is created.
    pub(in crate::cli) async fn create(&self) -> anyhow::Result<Repository> {
        let (flag, stores, profiles) = self.settings()?;
        let Some(url) = stores.catalogue() else {
            return Err(UsageError::flag(flag, "there is no catalogue in it").into());
        };
        let flag = if self.data.is_some() { "--data" } else { "--profiles" };
        let profiles = Profiles::read(profiles).map_err(|error| UsageError::flag(flag, error))?;
        let catalogue = Catalogue::open(url.expose()).await;
        let catalogue = catalogue.map_err(|error| CommandError::new(FAILED, error.to_string()))?;
        Ok(Repository { catalogue, stores, profiles })
    }

    /// The mill of the configuration, if it has one.
    pub(in crate::cli) fn mill(&self) -> anyhow::Result<Option<MillConfig>> {
        if let Some(data) = &self.data {
            return Ok(Some(DataDirectory::new(data.clone()).mill()?));
        }
        let Some(file) = &self.config_file else { return Ok(None) };
        let file = ConfigFile::read(file).map_err(|error| UsageError::flag("--config.file", error))?;
        Ok(file.mill().cloned())
    }

    /// The flag that names the stores, the stores, and the directory of the profiles.
    fn settings(&self) -> anyhow::Result<(&'static str, StoreSettings, PathBuf)> {
        if let Some(data) = &self.data {
            let data = DataDirectory::new(data.clone());
            return Ok(("--data", data.stores()?, data.profiles()));
        }
        let (Some(file), Some(profiles)) = (&self.config_file, &self.profiles) else {
            let why =
                "name a repository with --data, or the stores with --config.file and the profiles with --profiles";
            return Err(UsageError::flag("--data", why).into());
        };
        let file = ConfigFile::read(file).map_err(|error| UsageError::flag("--config.file", error))?;
        Ok(("--config.file", file.stores().clone(), profiles.clone()))
    }
}

impl Repository {
    /// Where access requests are delivered to.
    pub(in crate::cli) fn access(&self) -> Option<&AccessSettings> {
        self.stores.access()
    }

    /// The object of that name, as the catalogue has it.
    ///
    /// A local id is looked up among the owners of the profiles, unless one is named.
    pub(in crate::cli) async fn find(&self, name: &ObjectName) -> anyhow::Result<Object> {
        let failed = |error: queuekeeper_catalogue::Error| CommandError::new(FAILED, error.to_string());
        let ObjectName { name, owner } = name;
        if let Ok(ark) = name.parse::<Ark>() {
            let none = || CommandError::new(NOT_FOUND, format!("the catalogue has no object {ark}"));
            return Ok(self.catalogue.object(ark.as_str()).await.map_err(failed)?.ok_or_else(none)?);
        }
        let owners: BTreeSet<String> = match owner {
            Some(owner) => [owner.as_str().to_owned()].into(),
            None => self.profiles.iter().map(|profile| profile.owner.as_str().to_owned()).collect(),
        };
        let mut found = Vec::new();
        for owner in &owners {
            found.extend(self.catalogue.object_by_local_id(owner, name).await.map_err(failed)?);
        }
        if found.len() > 1 {
            let owners: Vec<_> = found.iter().map(|object| object.owner.as_str()).collect();
            let why = format!("{name:?} is a local id of several owners; name one with --owner: {}", owners.join(", "));
            return Err(UsageError::flag("--owner", why).into());
        }
        let none = || {
            let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
            CommandError::new(NOT_FOUND, format!("the catalogue has no object with the local id {name:?} of {owners}"))
        };
        Ok(found.pop().ok_or_else(none)?)
    }

    /// The store and the space of a collection's objects; `None` where it has no valid profile.
    pub(in crate::cli) fn place_of(&self, collection: &str) -> Option<String> {
        self.profiles.get(collection).map(|profile| format!("{}/{}", profile.store, profile.space))
    }

    /// Shows the copies of objects, too, where there is a mill.
    pub(in crate::cli) fn with_copies(&self, objects: Objects, mill: Option<MillConfig>) -> Objects {
        let Some(mill) = mill else { return objects };
        let profiles = self.profiles.iter();
        let roots: BTreeMap<_, _> = profiles
            .map(|profile| (profile.name.to_string(), (profile.store.clone(), profile.space.clone())))
            .collect();
        objects.with_copies(mill.accounts, Arc::new(move |collection| roots.get(collection).cloned()))
    }

    /// The object with an ARK of a collection.
    pub(in crate::cli) async fn locate(&self, ark: &str, collection: &str) -> anyhow::Result<Located> {
        let failed = |why: String| CommandError::new(FAILED, why);
        let profile = self.profiles.get(collection).ok_or_else(|| {
            failed(format!(
                "{ark} is in the collection {collection:?}, which has no valid profile, so its store is unknown"
            ))
        })?;
        let (store, space) = (self.store(&profile.store).await?, profile.space.clone());
        let root =
            Root::open_existing(Arc::clone(&store), space.clone()).await.map_err(|error| failed(error.to_string()))?;
        let Some(root) = root else {
            return Err(failed(format!("the space {}/{space} is empty; {ark} should be there", profile.store)).into());
        };
        let object = root.object(ark).map_err(|error| failed(error.to_string()))?;
        Ok(Located { store, space, object })
    }

    /// Where there are items of an object, among the roots of all profiles, whether the catalogue has it or not.
    pub(in crate::cli) async fn search(&self, ark: &str) -> anyhow::Result<Vec<Located>> {
        let failed = |why: String| CommandError::new(FAILED, why);
        let roots: BTreeSet<_> = self.profiles.iter().map(|it| (it.store.clone(), it.space.clone())).collect();
        let mut found = Vec::new();
        for (store, space) in roots {
            let store = self.store(&store).await?;
            let Some(root) = Root::open_existing(Arc::clone(&store), space.clone())
                .await
                .map_err(|error| failed(error.to_string()))?
            else {
                continue;
            };
            let object = root.object(ark).map_err(|error| failed(error.to_string()))?;
            let prefix = format!("{}/", object.root());
            let first = store.list(&space, prefix.as_bytes(), None).try_next().await;
            if first.map_err(|error| failed(error.to_string()))?.is_some() {
                found.push(Located { store, space, object });
            }
        }
        Ok(found)
    }

    /// The storage roots of all profiles, and the names of spaces that have no items.
    pub(in crate::cli) async fn roots(&self) -> anyhow::Result<(Vec<NamedRoot>, Vec<String>)> {
        let spaces: BTreeSet<_> = self.profiles.iter().map(|it| (it.store.clone(), it.space.clone())).collect();
        let (mut roots, mut empty) = (Vec::new(), Vec::new());
        for (store, space) in spaces {
            let name = format!("{store}/{space}");
            let opened = Root::open_existing(self.store(&store).await?, space).await;
            match opened.map_err(|error| CommandError::new(FAILED, error.to_string()))? {
                Some(root) => roots.push(NamedRoot { name, root }),
                None => empty.push(name),
            }
        }
        Ok((roots, empty))
    }

    async fn store(&self, name: &StoreName) -> anyhow::Result<Arc<dyn Store>> {
        let failed = |why: String| CommandError::new(FAILED, why);
        let opened = self.stores.open(name, &StoreFamilies::default()).await;
        let opened = opened
            .ok_or_else(|| failed(format!("a profile names the store {name}, which is not in the configuration")))?;
        Ok(opened.map_err(|error| failed(error.to_string()))?)
    }
}

impl Located {
    /// `STORE/SPACE/ROOT`
    pub(in crate::cli) fn place(&self) -> String {
        format!("{}/{}/{}", self.store.name(), self.space, self.object.root())
    }

    /// Says that the store does not have what the catalogue has.
    pub(in crate::cli) fn nothing_there(&self, ark: &str) -> String {
        format!("the catalogue has {ark}, but no complete version of it is in {}", self.place())
    }
}
