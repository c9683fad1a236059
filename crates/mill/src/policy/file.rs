//! The files, as text.

use std::collections::{BTreeMap, BTreeSet};

use queuekeeper_store::SpaceName;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Pair, Policy};

/// The file with the names of all accounts that have a policy.
pub const ACCOUNTS_FILE: &str = "duplication-accounts.json";

/// The longest file that is read, in bytes: some 50,000 spaces with policies of their own.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// How much of a key is like another one that is taken for a misspelt form of it.
const MISSPELT: f64 = 0.75;

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is too long.
    #[error("{0} bytes long; a policy file has at most {MOST_BYTES}")]
    TooLong(usize),
    /// It is no text.
    #[error("not UTF-8 text")]
    NoText,
    /// It is no JSON, or has another form.
    #[error("{0}")]
    Form(String),
    /// It has a key that is nearly one of a policy: read over, what it says would be taken away.
    #[error("the key {found:?} is unknown; use {meant}, or remove it")]
    Misspelt {
        /// The key.
        found: String,
        /// What it nearly is.
        meant: String,
    },
    /// It names an account that can have no file.
    #[error("an account's name has 1 to 63 letters, digits, '-' and '_', not {0:?}")]
    Account(String),
}

/// The name of an account's policy file.
#[must_use]
pub fn policy_file(account: &str) -> String {
    format!("{account}-duplication-policy.json")
}

/// A policy as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    #[serde(default)]
    space_duplication_store_policies: BTreeMap<SpaceName, Vec<Pair>>,
    #[serde(default)]
    default_policies: Vec<Pair>,
    #[serde(default)]
    spaces_to_ignore: Vec<SpaceName>,
}

/// Reads an account's policy.
///
/// # Errors
/// With a sentence that says what is wrong, and in which line.
pub fn read_policy(bytes: &[u8]) -> Result<Policy, FileError> {
    let Form { space_duplication_store_policies, default_policies, spaces_to_ignore } = read(bytes)?;
    let misspelt = other_keys(bytes).into_keys().find_map(|found| Some((nearly(&found)?, found)));
    if let Some((meant, found)) = misspelt {
        return Err(FileError::Misspelt { found: found.chars().take(100).collect(), meant });
    }
    let own = |(space, pairs): (_, Vec<_>)| (space, pairs.into_iter().collect());
    Ok(Policy {
        defaults: default_policies.into_iter().collect(),
        spaces: space_duplication_store_policies.into_iter().map(own).collect(),
        ignored: spaces_to_ignore.into_iter().collect(),
    })
}

/// What a policy file has besides a policy: keys of another program, or misspelt ones. Of a file that is no policy,
/// nothing.
#[must_use]
pub fn other_keys(bytes: &[u8]) -> BTreeMap<String, Value> {
    let mut keys: BTreeMap<String, Value> = read(bytes).unwrap_or_default();
    let ours = our_keys();
    keys.retain(|key, _| !ours.contains(key));
    keys
}

/// The keys of a policy.
fn our_keys() -> Vec<String> {
    let Ok(Value::Object(ours)) = serde_json::to_value(form(&Policy::default())) else { return Vec::new() };
    ours.into_iter().map(|(key, _)| key).collect()
}

/// The key that the author of this one meant to write.
fn nearly(key: &str) -> Option<String> {
    let like =
        |ours: &String| strsim::normalized_damerau_levenshtein(&ours.to_lowercase(), &key.to_lowercase()) >= MISSPELT;
    our_keys().into_iter().find(like)
}

/// A policy as its file's text.
#[must_use]
pub fn write_policy(policy: &Policy) -> String {
    write(&form(policy))
}

/// A policy as its file's text, with what the file had besides a policy.
pub(super) fn rewrite_policy(policy: &Policy, before: &[u8]) -> String {
    let mut keys = other_keys(before);
    if let Ok(Value::Object(ours)) = serde_json::to_value(form(policy)) {
        keys.extend(ours);
    }
    write(&keys)
}

fn form(policy: &Policy) -> Form {
    let list = |pairs: &BTreeSet<Pair>| pairs.iter().cloned().collect();
    Form {
        space_duplication_store_policies: policy
            .spaces
            .iter()
            .map(|(space, pairs)| (space.clone(), list(pairs)))
            .collect(),
        default_policies: list(&policy.defaults),
        spaces_to_ignore: policy.ignored.iter().cloned().collect(),
    }
}

/// Reads the names of the accounts that have a policy.
///
/// # Errors
/// With a sentence that says what is wrong, and in which line.
pub fn read_accounts(bytes: &[u8]) -> Result<BTreeSet<String>, FileError> {
    let names: BTreeSet<String> = read(bytes)?;
    match names.iter().find(|name| !is_account_name(name)) {
        Some(wrong) => Err(FileError::Account(wrong.chars().take(100).collect())),
        None => Ok(names),
    }
}

/// Names of accounts as their file's text.
#[must_use]
pub fn write_accounts(accounts: &BTreeSet<String>) -> String {
    write(accounts)
}

/// Whether an account may have this name, which becomes a part of a file's name: 1 to 63 letters, digits, `-` and `_`.
#[must_use]
pub fn is_account_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&name.len()) && name.bytes().all(is_plain)
}

/// JSON is read as YAML, which has it as a part, and takes the comma behind the last item that Mill's own sample has.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileError> {
    if bytes.len() > MOST_BYTES {
        return Err(FileError::TooLong(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_invalid| FileError::NoText)?;
    let options = serde_saphyr::options! { with_snippet: false };
    let error = |error: serde_saphyr::Error| FileError::Form(error.to_string().lines().collect::<Vec<_>>().join(" "));
    // A file that is being written is empty at first.
    let document: Option<T> =
        serde_saphyr::from_str_with_options(text.trim_start_matches('\u{feff}'), options).map_err(error)?;
    document.ok_or_else(|| FileError::Form("it is empty".to_owned()))
}

fn write(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("lists and maps with text as keys are JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::StoreId;

    fn pair(source: &str, destination: &str) -> Pair {
        Pair { source: StoreId(source.to_owned()), destination: StoreId(destination.to_owned()) }
    }

    #[test]
    fn a_policy_with_commas_too_many_is_read_and_written_as_json() {
        let text = r#"{"spaceDuplicationStorePolicies": {"spaceA": [{"srcStoreId": "1", "destStoreId": "2"},]},
            "defaultPolicies": [{"srcStoreId": "1", "destStoreId": "3"},], "spacesToIgnore": ["tmp"], "other": [1],}"#;
        let policy = read_policy(text.as_bytes()).unwrap();
        let space = |name: &str| name.parse::<SpaceName>().unwrap();
        assert_eq!(policy.pairs(&space("spaceA")), &BTreeSet::from([pair("1", "2")]));
        assert_eq!(policy.pairs(&space("spaceB")), &BTreeSet::from([pair("1", "3")]));
        assert!(policy.pairs(&space("tmp")).is_empty() && policy.pairs(&space("x-admin")).is_empty());
        let written = write_policy(&policy);
        assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{written}");
        assert_eq!(read_policy(written.as_bytes()).unwrap(), policy);
        assert_eq!(read_policy(b"{}").unwrap(), Policy::default());
        // What is not ours is named, and stays when ours is written.
        assert_eq!(other_keys(text.as_bytes()).into_keys().collect::<Vec<_>>(), ["other"]);
        let rewritten = rewrite_policy(&Policy::default(), text.as_bytes());
        assert_eq!(read_policy(rewritten.as_bytes()).unwrap(), Policy::default());
        assert_eq!(other_keys(rewritten.as_bytes()), other_keys(text.as_bytes()));
    }

    #[test]
    fn what_is_no_policy_is_refused_in_one_line() {
        let nested = "[".repeat(100_000);
        let bomb = "{\"a\": &a [1,1,1,1,1,1,1,1], \"b\": &b [*a,*a,*a,*a,*a,*a], \"c\": [*b,*b,*b,*b,*b,*b,*b,*b]}";
        for wrong in [
            "",
            "[]",
            "null",
            "{",
            "{\"defaultPolicies\": 1}",
            "{\"defaultPolicies\": [{\"srcStoreId\": \"1\"}]}",
            "{\"spacesToIgnore\": [\"a/b\"]}",
            "{\"spacesToIgnore\": [\"..\"]}",
            "{\"defaultPolicies\": [], \"defaultPolicies\": []}",
            "{\"defaultPolicy\": []}",
            "{\"spacesToIgnor\": []}",
            "{\"space_duplication_store_policies\": {}}",
            &nested,
        ] {
            let error =
                read_policy(wrong.as_bytes()).map(|policy| format!("{wrong}: {policy:?}")).unwrap_err().to_string();
            assert!(!error.is_empty() && !error.contains('\n') && error.len() < 500, "{error}");
        }
        // What is not ours in it is passed over, however it is written.
        assert!(read_policy(bomb.as_bytes()).is_ok());
        assert_eq!(other_keys(bomb.as_bytes()).into_keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(other_keys(nested.as_bytes()).is_empty());
        assert_eq!(read_policy(b"\xff"), Err(FileError::NoText));
        assert_eq!(read_policy(&vec![b' '; MOST_BYTES + 1]), Err(FileError::TooLong(MOST_BYTES + 1)));
    }

    #[test]
    fn accounts_are_names_that_files_can_have() {
        let accounts = read_accounts(br#"["account1", "account2",]"#).unwrap();
        assert_eq!(accounts, BTreeSet::from(["account1".to_owned(), "account2".to_owned()]));
        assert_eq!(read_accounts(write_accounts(&accounts).as_bytes()).unwrap(), accounts);
        assert_eq!(policy_file("account1"), "account1-duplication-policy.json");
        for wrong in ["../account", "", "a b", "a.b"] {
            let text = serde_json::to_string(&[wrong]).unwrap();
            assert_eq!(read_accounts(text.as_bytes()), Err(FileError::Account(wrong.to_owned())));
        }
    }
}
