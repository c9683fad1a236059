//! The file of `--config.file`: who may request something, and what may be done about alerts.
//!
//! Reading needs no such file, and without one nobody requests anything. Each part of what may stand in it has a module
//! of its own below this one, and a key in [`Keys`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::source::{FileError, Files, Sources, refuse, yaml};
use super::{Users, WebFile};
use crate::actions::Role;
use crate::alerts::Rules;

mod rules;
mod secret;
mod tokens;

pub use secret::{Secret, SecretError};
pub use tokens::{Presented, Token, TokenHash, TokenLine, TokenLineError, Tokens, expiry};

/// What the file and those that it names say, read and checked.
#[derive(Clone)]
pub struct ConfigFile {
    path: PathBuf,
    sources: Sources,
    roles: BTreeMap<String, Given>,
    tokens: Arc<Tokens>,
    rules: Rules,
}

/// A role that a user was given.
#[derive(Clone, Copy)]
struct Given {
    role: Role,
    /// Where, for whoever has to find it again.
    line: u64,
}

/// The keys that are taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    users: Option<BTreeMap<String, Spanned<String>>>,
    tokens_file: Option<Spanned<String>>,
    alerts: Option<rules::Keys>,
}

impl ConfigFile {
    /// Reads the file and those that it names, whose paths are relative to it.
    ///
    /// # Errors
    /// When one of them cannot be read, or holds what cannot be taken.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut files = Files::default();
        let bytes = files.read(path)?;
        let keys: Keys = yaml(path, &bytes)?;
        let mut roles = BTreeMap::new();
        for (name, role) in keys.users.unwrap_or_default() {
            let line = role.referenced.line();
            let role = role.value.parse();
            let role = role.map_err(|error| refuse(path, line, format!("users: {name}: {error}")))?;
            roles.insert(name, Given { role, line });
        }
        let tokens = match keys.tokens_file {
            None => Tokens::default(),
            Some(file) if file.value.is_empty() => {
                return Err(refuse(path, file.referenced.line(), "tokens_file is empty"));
            }
            Some(file) => Tokens::read(&path.parent().unwrap_or(Path::new("")).join(file.value), &mut files)?,
        };
        let rules = keys.alerts.map(|keys| rules::check(path, keys)).transpose()?.unwrap_or_default();
        Ok(Self { path: path.to_owned(), sources: files.sources(), roles, tokens: Arc::new(tokens), rules })
    }

    /// Reads everything again; `None` where nothing has changed.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_again(&self) -> Result<Option<Self>, FileError> {
        if self.sources.are_unchanged() { Ok(None) } else { Self::read(&self.path).map(Some) }
    }

    /// Whether it goes with the users of the web configuration.
    ///
    /// # Errors
    /// When it gives a role to somebody who is not among them, or a token has the name of one of them: nobody could
    /// tell from the audit which of the two gave an action.
    pub fn goes_with(&self, web: Option<&WebFile>) -> Result<(), FileError> {
        let nobody = Users::default();
        let users = web.map_or(&nobody, |web| web.users());
        if let Some((name, given)) = self.roles.iter().find(|(name, _)| users.hash(name).is_none()) {
            let who = if users.is_empty() { "has no users" } else { "has no such user" };
            let why =
                format!("users: {name}: the web configuration {who}; basic_auth_users of --web.config.file has them");
            return Err(refuse(&self.path, given.line, why));
        }
        self.tokens.differ_from(users)
    }

    /// The file itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The role of a user; a viewer's, where it names none.
    #[must_use]
    pub fn role(&self, user: &str) -> Role {
        self.roles.get(user).map_or(Role::Viewer, |given| given.role)
    }

    /// The tokens.
    #[must_use]
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.tokens
    }

    /// What may be done about alerts.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How many users have a role of their own.
    #[must_use]
    pub fn users(&self) -> usize {
        self.roles.len()
    }

    /// Whether it names anybody who may request something.
    #[must_use]
    pub fn lets_somebody_action(&self) -> bool {
        let roles = self.roles.values().map(|given| given.role);
        roles.chain(self.tokens.roles()).any(|role| role > Role::Viewer)
    }
}

impl fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFile").field("path", &self.path).finish_non_exhaustive()
    }
}
