//! The file of `--config.file`: roles of users and tokens, what depositors may do, of which spaces stores may send
//! messages, the rules for alerts, the stores with their catalogue, where access requests are delivered to, and how
//! many workers the daemons have.
//!
//! Reading the queue needs no such file; without it no actions are allowed. Each part of the file has a module below
//! this one, and a key in [`Keys`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use queuekeeper_ingest::settings::WorkerBounds;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::source::{FileError, Files, Sources, refuse, yaml};
use super::{OfOneQueue, Users, WebFile};
use crate::actions::Role;
use crate::actions::deposit::Allowance;
use crate::actions::store_events::EventSource;
use crate::alerts::Rules;

mod access;
mod catalogue;
mod cold;
mod depositors;
mod mill;
mod rules;
mod secret;
mod store_events;
mod stores;
mod tokens;
mod workers;

pub use catalogue::CatalogueUrl;
pub use mill::{MillConfig, PolicyPlace};
pub use secret::{Secret, SecretError};
pub use stores::StoreSettings;
pub use tokens::{Presented, Token, TokenHash, TokenLine, TokenLineError, Tokens, expiry};
pub use workers::worker_bounds;

/// The contents of the file and of those that it refers to, checked.
#[derive(Clone)]
pub struct ConfigFile {
    path: PathBuf,
    sources: Sources,
    roles: BTreeMap<String, UserRole>,
    tokens: Arc<Tokens>,
    rules: Rules,
    stores: StoreSettings,
    depositors: BTreeMap<String, Allowance>,
    workers: WorkerBounds,
    mill: Option<MillConfig>,
    store_events: BTreeMap<String, EventSource>,
}

/// Where something stands, for errors: the file, and the line.
type FileLine<'a> = (&'a Path, u64);

/// The role of a user in the file.
#[derive(Clone, Copy)]
struct UserRole {
    role: Role,
    /// Its place, for errors.
    line: u64,
}

/// The keys of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    users: Option<BTreeMap<String, Spanned<String>>>,
    tokens_file: Option<Spanned<String>>,
    alerts: Option<rules::Keys>,
    stores: Option<BTreeMap<String, Spanned<stores::StoreKeys>>>,
    catalogue: Option<catalogue::Keys>,
    access: Option<access::Keys>,
    depositors: Option<BTreeMap<String, Spanned<depositors::Keys>>>,
    workers: Option<BTreeMap<String, Spanned<workers::Numbers>>>,
    mill: Option<mill::Keys>,
    store_events: Option<BTreeMap<String, Spanned<store_events::Keys>>>,
}

impl ConfigFile {
    /// Reads the file and those that it refers to by relative paths.
    ///
    /// # Errors
    /// When one of them cannot be read or is not valid.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::read_with(path, true)
    }

    /// The same for what reads stores alone: the mill of the file need not have a catalogue.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_for_stores(path: &Path) -> Result<Self, FileError> {
        Self::read_with(path, false)
    }

    fn read_with(path: &Path, needs_catalogue: bool) -> Result<Self, FileError> {
        let mut files = Files::default();
        let bytes = files.read(path)?;
        let keys: Keys = yaml(path, &bytes)?;
        let mut roles = BTreeMap::new();
        for (name, role) in keys.users.unwrap_or_default() {
            let line = role.referenced.line();
            let role = role.value.parse();
            let role = role.map_err(|error| refuse(path, line, format!("users: {name}: {error}")))?;
            roles.insert(name, UserRole { role, line });
        }
        let tokens = match keys.tokens_file {
            None => Tokens::default(),
            Some(file) if file.value.is_empty() => {
                return Err(refuse(path, file.referenced.line(), "tokens_file is empty"));
            }
            Some(file) => Tokens::read(&path.parent().unwrap_or(Path::new("")).join(file.value), &mut files)?,
        };
        let rules = keys.alerts.map(|keys| rules::check(path, keys)).transpose()?.unwrap_or_default();
        let stores = StoreSettings::check(path, keys.stores.unwrap_or_default(), keys.catalogue, &mut files)?;
        let stores = match keys.access {
            None => stores,
            Some(keys) => {
                let settings = access::check(path, keys, &stores)?;
                stores.with_access(settings)
            }
        };
        let of_role = |role| -> BTreeMap<_, _> {
            let users = roles.iter().filter(|(_, given)| given.role == role);
            users.map(|(name, given)| (name.clone(), (path, given.line))).chain(tokens.of_role(role)).collect()
        };
        let depositors = depositors::check(path, keys.depositors.unwrap_or_default(), &of_role(Role::Depositor))?;
        let senders = of_role(Role::StoreEvents);
        let store_events = store_events::check(path, keys.store_events.unwrap_or_default(), &senders, &stores)?;
        let workers = workers::check(path, keys.workers.unwrap_or_default())?;
        let mill = keys.mill.map(|keys| mill::check(path, keys, &stores, needs_catalogue)).transpose()?;
        let (path, tokens) = (path.to_owned(), Arc::new(tokens));
        Ok(Self {
            path,
            sources: files.sources(),
            roles,
            tokens,
            rules,
            stores,
            depositors,
            workers,
            mill,
            store_events,
        })
    }

    /// A configuration that is in no file: that of a repository in one directory.
    #[must_use]
    pub fn local(directory: &Path, stores: StoreSettings, mill: MillConfig) -> Self {
        Self {
            path: directory.to_owned(),
            sources: Files::default().sources(),
            roles: BTreeMap::new(),
            tokens: Arc::default(),
            rules: Rules::default(),
            stores,
            depositors: BTreeMap::new(),
            workers: WorkerBounds::default(),
            mill: Some(mill),
            store_events: BTreeMap::new(),
        }
    }

    /// Reads everything again; `None` if nothing has changed.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_again(&self) -> Result<Option<Self>, FileError> {
        if self.sources.are_unchanged() { Ok(None) } else { Self::read(&self.path).map(Some) }
    }

    /// Checks it against the users of the web configuration.
    ///
    /// # Errors
    /// When it has a role for an unknown user, or a token has the name of a user: the audit trail could not distinguish
    /// the two.
    pub fn check_users(&self, web: Option<&WebFile>) -> Result<(), FileError> {
        let no_users = Users::default();
        let users = web.map_or(&no_users, |web| web.users());
        if let Some((name, given)) = self.roles.iter().find(|(name, _)| users.hash(name).is_none()) {
            let who = if users.is_empty() { "has no users" } else { "has no such user" };
            let why = format!(
                "users: {name}: the web configuration {who}; users are defined in basic_auth_users of --web.config.file"
            );
            return Err(refuse(&self.path, given.line, why));
        }
        self.tokens.differ_from(users)
    }

    /// Checks that it names nothing that belongs to one queue.
    ///
    /// # Errors
    /// When it does.
    pub fn check_for_deployments(&self) -> Result<(), OfOneQueue> {
        let refuse = |what| Err(OfOneQueue { flag: "--config.file", what });
        if self.mill.is_some() {
            return refuse("the mill that it names");
        }
        if self.stores.catalogue().is_some() {
            return refuse("the catalogue that it names");
        }
        if self.stores.access().is_some() {
            return refuse("the store for access requests that it names");
        }
        Ok(())
    }

    /// Logs which of the sections that a process applies at its start only differ from those that it has in use.
    pub fn log_unapplied(&self, in_use: &Self) {
        let (own, used) = (&self.stores, &in_use.stores);
        let differing = [
            ("stores", !own.has_stores_of(used)),
            ("catalogue", own.catalogue() != used.catalogue()),
            ("access", own.access() != used.access()),
            ("mill", self.mill != in_use.mill),
        ];
        let names: Vec<_> = differing.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
        if !names.is_empty() {
            let (path, names) = (self.path.display(), names.join(", "));
            tracing::warn!(%path, "the configuration has changed in what takes effect after a restart: {names}");
        }
    }

    /// The mill's accounts and policies, where it has any.
    #[must_use]
    pub fn mill(&self) -> Option<&MillConfig> {
        self.mill.as_ref()
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The role of a user; viewer by default.
    #[must_use]
    pub fn role(&self, user: &str) -> Role {
        self.roles.get(user).map_or(Role::Viewer, |given| given.role)
    }

    /// What a depositor may do; `None` for who is none.
    #[must_use]
    pub fn allowance(&self, name: &str) -> Option<Allowance> {
        self.depositors.get(name).cloned()
    }

    /// Of what a user or token may send messages of a store; `None` where it may send none.
    #[must_use]
    pub fn event_source(&self, name: &str) -> Option<&EventSource> {
        self.store_events.get(name)
    }

    /// The tokens.
    #[must_use]
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// The rules for alerts.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The stores and the catalogue.
    #[must_use]
    pub fn stores(&self) -> &StoreSettings {
        &self.stores
    }

    /// How many workers daemons have, of those that are named.
    #[must_use]
    pub fn workers(&self) -> &WorkerBounds {
        &self.workers
    }

    /// How many users have a role in the file.
    #[must_use]
    pub fn users(&self) -> usize {
        self.roles.len()
    }

    /// Whether any user or token may request actions.
    #[must_use]
    pub fn allows_actions(&self) -> bool {
        let roles = self.roles.values().map(|given| given.role);
        roles.chain(self.tokens.roles()).any(|role| role > Role::Viewer)
    }
}

impl fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFile").field("path", &self.path).finish_non_exhaustive()
    }
}
