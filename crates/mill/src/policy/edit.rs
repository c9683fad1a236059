//! Changing the policy of an account: what a change would do, and saving it where no other user has changed it
//! meanwhile.

use std::collections::BTreeSet;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_store::{Algorithm, Hashers, SpaceName, StoreName};

use super::file::rewrite_policy;
use super::force::{InForce, compare};
use super::{
    ACCOUNTS_FILE, Pair, Policy, PolicySource, check, other_keys, policy_file, read_accounts, read_policy,
    write_accounts, write_policy,
};
use crate::account::Account;

/// The policy of an account as an editor shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Editable {
    /// What a change is made to: another one of the files, or of what is in force, has another version.
    pub version: String,
    /// Whether the list of accounts has this one.
    pub is_listed: bool,
    /// What the account's own file says; empty where there is none, and `Err` where it cannot be used, with why.
    pub file: Result<Policy, String>,
    /// The keys of that file which are not of a policy: another program's, or misspelt.
    pub other_keys: Vec<String>,
    /// What is in force, and what waits; `Err` where there is nothing in force, with why.
    pub now: Result<InForce, String>,
}

/// What the policy of an account is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPolicy {
    /// Whether the list of accounts has this one: one that it does not have is copied nowhere.
    pub is_listed: bool,
    /// What the account's own file says.
    pub policy: Policy,
}

impl NewPolicy {
    /// What is in force by that.
    #[must_use]
    pub fn effect(&self) -> Policy {
        if self.is_listed { self.policy.clone() } else { Policy::default() }
    }
}

/// What a change does to one pair of stores of a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairChange {
    /// The space.
    pub space: SpaceName,
    /// The store to copy from.
    pub source: StoreName,
    /// The store to copy to.
    pub destination: StoreName,
    /// How many items the source has, by the content index.
    pub items: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// How many the destination has.
    pub copied_items: u64,
    /// Their size in bytes.
    pub copied_bytes: u64,
}

/// What a change would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Copies that would be made, and kept.
    pub begins: Vec<PairChange>,
    /// Copies that would no longer be kept. None of them is deleted.
    pub ends: Vec<PairChange>,
}

/// Why a change was not saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// It cannot be carried out: what is wrong with it.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
    /// Another user changed the policy meanwhile. Nothing was written.
    #[error("the policy of {0} was changed after this preview; review it and repeat the change")]
    Conflict(String),
    /// A file or the catalogue could not be read or written.
    #[error("{0}")]
    Failed(String),
}

/// Reads the policy of an account for an editor.
///
/// # Errors
/// With a sentence that names the file that cannot be read, and where the list of accounts has another form.
pub async fn open(catalogue: &Catalogue, source: &PolicySource, account: &Account) -> Result<Editable, String> {
    let files = Files::read(source, account).await?;
    let last = catalogue.policies(&account.name, None, 1).await.map_err(|error| error.to_string())?.pop();
    let now = compare(catalogue, source, account).await.map(|read| read.now).map_err(|error| error.to_string());
    Ok(Editable {
        version: files.version(last.map(|last| last.id)),
        is_listed: files.is_listed(account),
        file: files.policy(),
        other_keys: files.policy.as_deref().map(other_keys).unwrap_or_default().into_keys().collect(),
        now,
    })
}

/// What would come of a policy in place of the one in force, by the figures of the catalogue.
#[must_use]
pub fn plan(account: &Account, before: &Policy, after: &Policy, figures: &Figures) -> Plan {
    let mut spaces: BTreeSet<SpaceName> = before.named().union(&after.named()).map(|space| (*space).clone()).collect();
    spaces.extend(account.spaces(figures));
    let mut plan = Plan::default();
    for space in spaces {
        let (before, after) = (before.pairs(&space), after.pairs(&space));
        let change = |pair: &Pair| change(account, &space, pair, figures);
        plan.begins.extend(after.difference(before).filter_map(change));
        plan.ends.extend(before.difference(after).filter_map(change));
    }
    plan
}

fn change(account: &Account, space: &SpaceName, pair: &Pair, figures: &Figures) -> Option<PairChange> {
    let (source, destination) =
        (account.stores.get(&pair.source)?.clone(), account.stores.get(&pair.destination)?.clone());
    let of = |counter, store| account.figure(figures, counter, store, space);
    Some(PairChange {
        items: of(Counter::SpaceItems, &source),
        bytes: of(Counter::SpaceBytes, &source),
        copied_items: of(Counter::SpaceItems, &destination),
        copied_bytes: of(Counter::SpaceBytes, &destination),
        space: space.clone(),
        source,
        destination,
    })
}

/// Writes the files of an account, and brings what they say into force with all that it ends, where the version is
/// still the one that the change was made to.
///
/// # Errors
/// See [`SaveError`].
pub async fn save(
    catalogue: &Catalogue,
    source: &PolicySource,
    account: &Account,
    version: &str,
    new: &NewPolicy,
    (user, reason): (&str, &str),
) -> Result<(), SaveError> {
    let problems = check(&new.policy, &account.store_ids());
    if !problems.is_empty() {
        return Err(SaveError::Invalid(problems.iter().map(ToString::to_string).collect()));
    }
    let failed = |why: &dyn ToString| SaveError::Failed(why.to_string());
    let conflict = || SaveError::Conflict(account.name.clone());
    let _alone = source.lock().await.map_err(|why| failed(&why))?;
    let files = Files::read(source, account).await.map_err(|why| failed(&why))?;
    let last = catalogue.policies(&account.name, None, 1).await.map_err(|error| failed(&error))?.pop();
    let last = last.map(|last| last.id);
    if files.version(last) != version {
        return Err(conflict());
    }
    // Where this process dies between two of these steps, the mill finds files that were changed: what they add is
    // done, and what they take away waits for an admin.
    let text = rewrite_policy(&new.policy, files.policy.as_deref().unwrap_or_default());
    if files.policy.as_deref() != Some(text.as_bytes()) && (new.is_listed || files.policy.is_some()) {
        let name = policy_file(&account.name);
        let wrote = source.write(&name, files.policy.as_deref(), &text).await.map_err(|why| failed(&why))?;
        wrote.then_some(()).ok_or_else(conflict)?;
    }
    let mut accounts = files.accounts.clone();
    let is_changed = if new.is_listed { accounts.insert(account.name.clone()) } else { accounts.remove(&account.name) };
    if is_changed {
        let list = files.list.as_deref();
        let wrote = source.write(ACCOUNTS_FILE, list, &write_accounts(&accounts)).await.map_err(|why| failed(&why))?;
        wrote.then_some(()).ok_or_else(conflict)?;
    }
    let content = write_policy(&new.effect());
    let recorded = catalogue.record_policy(&account.name, last, user, reason, &content).await;
    recorded.map_err(|error| failed(&error))?.then_some(()).ok_or_else(conflict)
}

/// The files of an account as they are.
struct Files {
    list: Option<Vec<u8>>,
    accounts: BTreeSet<String>,
    policy: Option<Vec<u8>>,
    name: String,
}

impl Files {
    async fn read(source: &PolicySource, account: &Account) -> Result<Self, String> {
        let list = source.read(ACCOUNTS_FILE).await?;
        let accounts = list.as_deref().map(read_accounts).transpose();
        let accounts = accounts.map_err(|error| format!("{ACCOUNTS_FILE}: {error}"))?.unwrap_or_default();
        let name = policy_file(&account.name);
        Ok(Self { policy: source.read(&name).await?, list, accounts, name })
    }

    fn is_listed(&self, account: &Account) -> bool {
        self.accounts.contains(&account.name)
    }

    fn policy(&self) -> Result<Policy, String> {
        let policy = self.policy.as_deref().map(read_policy).transpose();
        policy.map(Option::unwrap_or_default).map_err(|error| format!("{}: {error}", self.name))
    }

    /// The number of the policy in force, and a digest of both files.
    fn version(&self, last: Option<u64>) -> String {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        for file in [&self.list, &self.policy] {
            let file = file.as_deref();
            hashers.update(&[u8::from(file.is_some())]);
            hashers.update(&file.map_or(0, <[u8]>::len).to_be_bytes());
            hashers.update(file.unwrap_or_default());
        }
        let digests = hashers.finish();
        let hex = digests.get(Algorithm::Sha256).map(queuekeeper_store::Digest::hex).unwrap_or_default();
        format!("{}-{}", last.unwrap_or(0), &hex[..hex.len().min(32)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::StoreId;

    fn account() -> Account {
        let store = |id: &str, name: &str| (StoreId(id.to_owned()), name.parse().unwrap());
        let stores = [store("1", "main"), store("2", "replica"), store("3", "far")].into();
        Account { name: "one".to_owned(), stores, prefix: Some("one".to_owned()), ..Account::default() }
    }

    fn policy(text: &str) -> Policy {
        read_policy(text.as_bytes()).unwrap()
    }

    const TO_2: &str = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;

    #[test]
    fn a_plan_names_each_copy_that_begins_or_ends_with_what_both_stores_have() {
        let figure = |counter, scope: &str, figure| ((counter, scope.to_owned()), figure);
        let figures = Figures::from([
            figure(Counter::SpaceItems, "main/one.theses", 5),
            figure(Counter::SpaceBytes, "main/one.theses", 50),
            figure(Counter::SpaceItems, "replica/one.theses", 2),
            figure(Counter::SpaceItems, "main/two.theses", 9),
        ]);
        let after =
            policy(r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "3"}], "spacesToIgnore": ["tmp"]}"#);
        let plan = plan(&account(), &policy(TO_2), &after, &figures);
        let line = |change: &PairChange| {
            let PairChange { space, source, destination, items, bytes, copied_items, .. } = change;
            format!("{space} {source} {destination} {items} {bytes} {copied_items}")
        };
        assert_eq!(plan.begins.iter().map(line).collect::<Vec<_>>(), ["theses main far 5 50 0"]);
        assert_eq!(
            plan.ends.iter().map(line).collect::<Vec<_>>(),
            ["theses main replica 5 50 2", "tmp main replica 0 0 0"]
        );
    }

    #[tokio::test]
    async fn a_change_is_saved_once_and_only_to_what_it_was_made_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let catalogue = Catalogue::open(&format!("sqlite:{}", path("catalogue.db").display())).await.unwrap();
        std::fs::create_dir(path("policies")).unwrap();
        let source = PolicySource::Directory(path("policies"));
        let account = account();
        let open = || async { open(&catalogue, &source, &account).await.unwrap() };
        let save = async |version: &str, new: &NewPolicy| {
            save(&catalogue, &source, &account, version, new, ("ada", "asked for")).await
        };
        let new = NewPolicy { is_listed: true, policy: policy(TO_2) };

        let before = open().await;
        assert!(!before.is_listed && before.now.is_err());
        assert_eq!(save(&before.version, &new).await, Ok(()));
        let saved = open().await;
        assert_eq!((saved.is_listed, saved.file.as_ref()), (true, Ok(&new.policy)));
        assert_eq!(saved.now, Ok(InForce { policy: new.policy.clone(), waiting: Vec::new(), error: None }));
        // Twice, by a user who saw it before, and after the file was changed by hand.
        assert_eq!(save(&before.version, &new).await, Err(SaveError::Conflict("one".to_owned())));
        let file = path("policies/one-duplication-policy.json");
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(save(&saved.version, &new).await, Err(SaveError::Conflict("one".to_owned())));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");

        let circle = policy(r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "1"}]}"#);
        let now = open().await;
        assert_eq!(now.now.unwrap().waiting.len(), 1);
        let refused = save(&now.version, &NewPolicy { is_listed: true, policy: circle }).await;
        assert_eq!(refused, Err(SaveError::Invalid(vec!["default policy: store 1 is copied to itself".to_owned()])));
        // What ends needs no other consent than that of who saves it; the file of an account that is removed stays.
        assert_eq!(save(&now.version, &NewPolicy { is_listed: false, policy: policy(TO_2) }).await, Ok(()));
        let now = open().await;
        assert_eq!((now.is_listed, now.now.unwrap().policy), (false, Policy::default()));
        assert_eq!(now.file, Ok(policy(TO_2)));
        let history = catalogue.policies("one", None, 9).await.unwrap();
        assert_eq!(history.iter().map(|policy| policy.user.as_str()).collect::<Vec<_>>(), ["ada", "ada"]);
    }
}
