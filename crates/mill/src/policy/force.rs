//! The policies that are in force: what the files say, but for what waits for an admin.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use queuekeeper_catalogue::Catalogue;

use super::{
    ACCOUNTS_FILE, Drift, Policy, PolicySource, WaitingChange, check, drift, policy_file, read_accounts, read_policy,
    write_policy,
};
use crate::account::Account;
use crate::users::MILL;

/// The policies of accounts, by the account's name. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub struct Policies(Arc<RwLock<BTreeMap<String, Option<Arc<Policy>>>>>);

impl Policies {
    /// The policy of an account; `None` where it is not known: what the account wants copied has to wait then.
    #[must_use]
    pub fn get(&self, account: &str) -> Option<Arc<Policy>> {
        self.0.read().get(account).cloned().flatten()
    }

    /// Whether it is known which policy an account has, or that it has none which can be read.
    #[must_use]
    pub fn is_settled(&self, account: &str) -> bool {
        self.0.read().contains_key(account)
    }

    /// Replaces the policy of an account.
    pub fn set(&self, account: &str, policy: Policy) {
        self.0.write().insert(account.to_owned(), Some(Arc::new(policy)));
    }

    /// The file of an account cannot be read, and there was none before; a policy that is known stays.
    pub fn set_unreadable(&self, account: &str) {
        self.0.write().entry(account.to_owned()).or_default();
    }
}

/// Why it is not known which policy an account has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Its file cannot be read, and there is no policy from before: one sentence that names the file.
    #[error("{0}")]
    File(String),
    /// The catalogue is away, or another process changes the policy: one sentence. Asked again, it may be known.
    #[error("{0}")]
    Catalogue(String),
}

/// The policy of an account that is in force, and what its file says that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The policy.
    pub policy: Policy,
    /// What waits for an admin.
    pub waiting: Vec<WaitingChange>,
    /// Why the file was not read, where there is a policy from before.
    pub error: Option<String>,
}

/// The policy of an account, and what of it is not recorded yet.
pub(super) struct Read {
    last: Option<u64>,
    known: Option<Policy>,
    pub(super) now: InForce,
}

/// What the policy of an account comes to, by its file and what was in force before. Nothing is written.
///
/// # Errors
/// As for [`in_force`].
pub async fn read(catalogue: &Catalogue, source: &PolicySource, account: &Account) -> Result<InForce, PolicyError> {
    compare(catalogue, source, account).await.map(|read| read.now)
}

/// Reads the policy of an account and brings it into force, as far as that needs no admin. Where the file is gone or
/// cannot be read, the policy that was in force stays.
///
/// # Errors
/// With a sentence that names the file, where there is no policy from before; and when the catalogue is away.
pub async fn in_force(catalogue: &Catalogue, source: &PolicySource, account: &Account) -> Result<InForce, PolicyError> {
    let Read { last, known, now } = compare(catalogue, source, account).await?;
    if known.as_ref() != Some(&now.policy) {
        let reason = match known {
            None => "its file was read for the first time",
            Some(_) => "its file was changed; these additions were applied",
        };
        let content = write_policy(&now.policy);
        let recorded = catalogue.record_policy(&account.name, last, MILL, reason, &content).await;
        if !recorded.map_err(|error| PolicyError::Catalogue(error.to_string()))? {
            let why = format!("the policy of {} was changed at the same time; reading it again", account.name);
            return Err(PolicyError::Catalogue(why));
        }
    }
    Ok(now)
}

pub(super) async fn compare(
    catalogue: &Catalogue,
    source: &PolicySource,
    account: &Account,
) -> Result<Read, PolicyError> {
    let (last, known) = known(catalogue, account).await.map_err(PolicyError::Catalogue)?;
    let now = match (found(source, account).await, &known) {
        (Ok(found), None) => InForce { policy: found, waiting: Vec::new(), error: None },
        (Ok(found), Some(known)) => {
            let Drift { in_force, waiting } = drift(known, &found, &account.store_ids());
            InForce { policy: in_force, waiting, error: None }
        }
        (Err(error), Some(known)) => InForce { policy: known.clone(), waiting: Vec::new(), error: Some(error) },
        (Err(error), None) => return Err(PolicyError::File(error)),
    };
    Ok(Read { last, known, now })
}

/// Brings what the file of an account says into force, whatever it ends.
///
/// # Errors
/// With a sentence that says why it is not.
pub async fn apply(
    catalogue: &Catalogue,
    source: &PolicySource,
    account: &Account,
    user: &str,
    reason: &str,
) -> Result<Policy, String> {
    let (last, known) = known(catalogue, account).await?;
    let found = found(source, account).await?;
    if known.as_ref() != Some(&found) {
        let recorded = catalogue.record_policy(&account.name, last, user, reason, &write_policy(&found)).await;
        if !recorded.map_err(|error| error.to_string())? {
            return Err(format!(
                "the policy of {} was changed at the same time; review it and try again",
                account.name
            ));
        }
    }
    Ok(found)
}

/// The number of the policy that is in force, and the policy.
async fn known(catalogue: &Catalogue, account: &Account) -> Result<(Option<u64>, Option<Policy>), String> {
    let last = catalogue.policies(&account.name, None, 1).await.map_err(|error| error.to_string())?.pop();
    let policy = last.as_ref().map(|last| read_policy(last.content.as_bytes())).transpose();
    let policy = policy.map_err(|error| format!("the recorded policy of {}: {error}", account.name))?;
    Ok((last.map(|last| last.id), policy))
}

/// Whether the list names accounts that the configuration does not have while it lacks some that are there: a misspelt
/// name. One sentence; `None` where it does not, or cannot be read.
pub async fn stray_accounts(source: &PolicySource, accounts: &BTreeMap<String, Account>) -> Option<String> {
    let list = source.read(ACCOUNTS_FILE).await.ok()??;
    let listed = read_accounts(&list).ok()?;
    let quoted = |names: Vec<&String>| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let strangers: Vec<_> = listed.iter().filter(|name| !accounts.contains_key(*name)).collect();
    let lacking: Vec<_> = accounts.keys().filter(|name| !listed.contains(*name)).collect();
    let is_stray = !strangers.is_empty() && !lacking.is_empty();
    is_stray.then(|| {
        format!(
            "{ACCOUNTS_FILE} names {}, which is not in the configuration, but not {}, of which nothing is copied",
            quoted(strangers),
            quoted(lacking)
        )
    })
}

/// What the file of an account says. An account that the list does not have is copied nowhere.
async fn found(source: &PolicySource, account: &Account) -> Result<Policy, String> {
    let list = source.read(ACCOUNTS_FILE).await?.ok_or_else(|| format!("{ACCOUNTS_FILE}: there is no such file"))?;
    let accounts = read_accounts(&list).map_err(|error| format!("{ACCOUNTS_FILE}: {error}"))?;
    if !accounts.contains(&account.name) {
        return Ok(Policy::default());
    }
    let name = policy_file(&account.name);
    let file = source.read(&name).await?.ok_or_else(|| format!("{name}: there is no such file"))?;
    let policy = read_policy(&file).map_err(|error| format!("{name}: {error}"))?;
    match check(&policy, &account.store_ids()).as_slice() {
        [] => Ok(policy),
        [problem] => Err(format!("{name}: {problem}")),
        [problem, rest @ ..] => Err(format!("{name}: {problem}, and {} more problems", rest.len())),
    }
}
