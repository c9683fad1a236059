//! The mill's accounts and where their policies are, in the file of `--config.file`.

mod limits;
mod prices;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use queuekeeper_mail::address::{self, MOST_RECIPIENTS};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_mill::policy::{StoreId, is_account_name};
use queuekeeper_mill::prices::Prices;
use queuekeeper_store::store::PROBE_SPACE;
use queuekeeper_store::{SpaceName, StoreName};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::source::{FileError, refuse};
use super::StoreSettings;

/// The keys of the mill.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    accounts: BTreeMap<String, Spanned<AccountKeys>>,
    policies: Spanned<PolicyKeys>,
    prices: Option<prices::Keys>,
}

/// The keys of an account.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountKeys {
    stores: BTreeMap<String, Spanned<String>>,
    prefix: Option<Spanned<String>>,
    primary: Option<Spanned<String>>,
    admin_space: Option<Spanned<String>>,
    #[serde(default)]
    mail: Vec<Spanned<String>>,
    limits: Option<BTreeMap<String, Spanned<limits::Keys>>>,
}

/// Where policies are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyKeys {
    directory: Option<PathBuf>,
    store: Option<String>,
    space: Option<String>,
}

/// The accounts of the mill, and where their policies are.
#[derive(Clone, Debug, PartialEq)]
pub struct MillConfig {
    /// The accounts, by name.
    pub accounts: BTreeMap<String, Account>,
    /// Where their policies are.
    pub policies: PolicyPlace,
    /// What providers charge for reading.
    pub prices: Prices,
}

/// Where policies are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// In a directory.
    Directory(PathBuf),
    /// In a space of a store.
    Space(StoreName, SpaceName),
}

/// Checks them against the stores of the file, and where it is needed, that there is a catalogue.
pub(super) fn check(
    path: &Path,
    keys: Keys,
    stores: &StoreSettings,
    needs_catalogue: bool,
) -> Result<MillConfig, FileError> {
    let at = |line: u64, why: &dyn fmt::Display| refuse(path, line, format!("mill: {why}"));
    let known = |name: &str| {
        let store: StoreName = name.parse().map_err(|error| format!("{error}"))?;
        if stores.names().any(|known| *known == store) {
            Ok(store)
        } else {
            Err(format!("there is no {store} below stores"))
        }
    };
    let mut accounts = BTreeMap::<String, Account>::new();
    for (name, keys) in keys.accounts {
        let line = keys.referenced.line();
        let wrong = |line: u64, why: &dyn fmt::Display| at(line, &format_args!("accounts: {name}: {why}"));
        if !is_account_name(&name) {
            return Err(wrong(line, &"a name has 1 to 63 letters, digits, '-' and '_'"));
        }
        let mut own = BTreeMap::new();
        for (id, store) in keys.value.stores {
            let store = known(&store.value).map_err(|why| wrong(store.referenced.line(), &why))?;
            own.insert(StoreId(id), store);
        }
        let prefix = keys.value.prefix.map(|prefix| {
            let is_valid = is_account_name(&prefix.value);
            let why = "a prefix has 1 to 63 letters, digits, '-' and '_'";
            if is_valid { Ok(prefix.value) } else { Err(wrong(prefix.referenced.line(), &why)) }
        });
        let named = own.values().cloned().collect();
        let limits = limits::check(keys.value.limits.unwrap_or_default(), &named);
        let mut limits = limits.map_err(|(line, why)| wrong(line, &why))?;
        for store in &named {
            let cold = stores.cold(store);
            if cold.is_limited() {
                limits.entry(store.clone()).or_default().cold = cold;
            }
        }
        let primary = keys.value.primary.map(|id| primary(&id.value, &own).map_err(|why| (id.referenced.line(), why)));
        let primary = primary.transpose().map_err(|(line, why)| wrong(line, &why))?;
        let admin_space = keys.value.admin_space.map(|space| {
            let line = space.referenced.line();
            admin_space(&space.value).map_err(|why| wrong(line, &format_args!("admin_space: {why}")))
        });
        if let Some(more) = keys.value.mail.get(MOST_RECIPIENTS) {
            let line = more.referenced.line();
            return Err(wrong(line, &format_args!("mail: at most {MOST_RECIPIENTS} addresses are allowed")));
        }
        let mail = keys.value.mail.into_iter().map(|text| {
            let checked = address::check(&text.value).map(|_| text.value);
            checked.map_err(|error| wrong(text.referenced.line(), &format_args!("mail: {error}")))
        });
        let account = Account {
            name: name.clone(),
            stores: own,
            prefix: prefix.transpose()?,
            primary,
            admin_space: admin_space.transpose()?,
            mail: mail.collect::<Result<_, _>>()?,
            limits,
        };
        if account.admin_space().is_none() {
            let why = "admin_space: with the prefix before it, it is too long for the name of a space";
            return Err(wrong(line, &why));
        }
        if let Some(other) = accounts.values().find(|other| share(other, &account)) {
            let why = format!(
                "it shares a store with {} and needs a prefix of its own: otherwise, spaces would belong to both",
                other.name
            );
            return Err(wrong(line, &why));
        }
        accounts.insert(name, account);
    }
    if needs_catalogue && stores.catalogue().is_none() {
        return Err(at(
            keys.policies.referenced.line(),
            &"it requires a catalogue for its tasks, and the file names none",
        ));
    }
    let line = keys.policies.referenced.line();
    let policies = match keys.policies.value {
        PolicyKeys { directory: Some(directory), store: None, space: None } => {
            PolicyPlace::Directory(path.parent().unwrap_or(Path::new("")).join(directory))
        }
        PolicyKeys { directory: None, store: Some(store), space: Some(space) } => {
            let store = known(&store).map_err(|why| at(line, &format_args!("policies: {why}")))?;
            let space = space.parse().map_err(|error| at(line, &format_args!("policies: {error}")))?;
            PolicyPlace::Space(store, space)
        }
        _ => return Err(at(line, &"policies: expected a directory, or a store and a space")),
    };
    let prices = keys.prices.map(|keys| prices::check(keys, known)).transpose();
    let prices = prices.map_err(|(line, why)| at(line, &why))?.unwrap_or_default();
    Ok(MillConfig { accounts, policies, prices })
}

/// The number of a store of the account.
fn primary(written: &str, stores: &BTreeMap<StoreId, StoreName>) -> Result<StoreId, String> {
    let id = StoreId(written.to_owned());
    if stores.contains_key(&id) {
        return Ok(id);
    }
    let known = stores.keys().map(|id| format!("{:?}", id.0)).collect::<Vec<_>>().join(", ");
    Err(format!("primary: {written:?} is not the number of one of its stores; expected one of {known}"))
}

/// A space that only the mill may change.
fn admin_space(written: &str) -> Result<SpaceName, String> {
    let space = written.parse::<SpaceName>().map_err(|error| error.to_string())?;
    if !space.is_reserved() {
        return Err(format!("its name must begin with {}, so that no other user can write there", SpaceName::RESERVED));
    }
    if [ASIDE, PROBE_SPACE].contains(&space.as_str()) {
        return Err(format!("{space} is used for something else"));
    }
    Ok(space)
}

/// Whether a space could be of both accounts.
fn share(one: &Account, other: &Account) -> bool {
    let has_common = one.stores.values().any(|store| other.stores.values().any(|same| same == store));
    has_common && (one.prefix.is_none() || other.prefix.is_none() || one.prefix == other.prefix)
}

#[cfg(test)]
mod tests;
