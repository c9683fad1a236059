//! What depositors may do, in the file of `--config.file`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::source::{FileError, refuse};
use super::FileLine;
use crate::actions::deposit::Allowance;

/// The keys of a depositor.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    profiles: Vec<String>,
    bytes_per_day: Option<u64>,
    objects_per_day: Option<u64>,
    deposits_per_day: Option<u64>,
    deposits_per_minute: Option<u64>,
}

/// Checks that exactly those who are depositors have an entry. `depositors` are the users and tokens of that role, each
/// with its place for errors.
pub(super) fn check(
    path: &Path,
    keys: BTreeMap<String, Spanned<Keys>>,
    depositors: &BTreeMap<String, FileLine<'_>>,
) -> Result<BTreeMap<String, Allowance>, FileError> {
    let unnamed = depositors.iter().find(|(name, _)| !keys.contains_key(*name));
    if let Some((name, (file, line))) = unnamed {
        let why = format!(
            "{name} has the role depositor, but no entry below depositors, such as {name}: {{profiles: [demo]}}"
        );
        return Err(refuse(file, *line, why));
    }
    let mut allowances = BTreeMap::new();
    for (name, keys) in keys {
        let line = keys.referenced.line();
        let Keys { profiles, bytes_per_day, objects_per_day, deposits_per_day, deposits_per_minute } = keys.value;
        if !depositors.contains_key(&name) {
            return Err(refuse(path, line, format!("depositors: no user or token {name} has the role depositor")));
        }
        if profiles.is_empty() {
            return Err(refuse(path, line, format!("depositors: {name}: profiles is empty")));
        }
        let limits = [
            ("bytes_per_day", bytes_per_day),
            ("objects_per_day", objects_per_day),
            ("deposits_per_day", deposits_per_day),
            ("deposits_per_minute", deposits_per_minute),
        ];
        if let Some((key, _)) = limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
            let why = format!(
                "depositors: {name}: {key} is 0, which allows no deposits; remove it for no limit, or remove the role depositor from {name}"
            );
            return Err(refuse(path, line, why));
        }
        let profiles: BTreeSet<_> = profiles.into_iter().collect();
        let allowance = Allowance {
            profiles: Some(profiles),
            bytes_per_day,
            objects_per_day,
            deposits_per_day,
            deposits_per_minute,
        };
        allowances.insert(name, allowance);
    }
    Ok(allowances)
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;
    use crate::actions::Role;
    use crate::config::{Secret, TokenLine};

    fn read(text: &str) -> Result<ConfigFile, String> {
        let directory = tempfile::tempdir().unwrap();
        let token = TokenLine::new("lab", Role::Depositor, None, &Secret::make()).unwrap();
        std::fs::write(directory.path().join("tokens.yml"), token.to_string()).unwrap();
        let path = directory.path().join("config.yml");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(&path).map_err(|error| error.to_string().replace(&directory.path().display().to_string(), ""))
    }

    #[test]
    fn each_depositor_has_an_entry_and_nobody_else() {
        let file = "tokens_file: tokens.yml\nusers: {bob: depositor}\n";
        let both = format!(
            "{file}depositors:\n  lab: {{profiles: [a, b], bytes_per_day: 1000, objects_per_day: 20, deposits_per_minute: 3}}\n  bob: {{profiles: [a]}}\n"
        );
        let allowance = read(&both).unwrap().allowance("lab").unwrap();
        assert_eq!((allowance.bytes_per_day, allowance.deposits_per_day), (Some(1_000), None));
        assert_eq!((allowance.objects_per_day, allowance.deposits_per_minute), (Some(20), Some(3)));
        assert_eq!(allowance.profiles.unwrap().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read(&both).unwrap().allowance("alice"), None);
        for (text, expected) in [
            (file.to_owned(), "/config.yml, line 2: bob has the role depositor, but no entry below depositors"),
            (
                format!("{file}depositors: {{bob: {{profiles: [a]}}}}"),
                "/tokens.yml, line 1: lab has the role depositor, but no entry below depositors",
            ),
            (format!("{both}  eve: {{profiles: [a]}}"), "depositors: no user or token eve has the role depositor"),
            (both.replace("[a]", "[]"), "depositors: bob: profiles is empty"),
            (both.replace("bytes_per_day", "bytes"), "the key bytes is unknown"),
            (
                both.replace("objects_per_day: 20", "objects_per_day: 0"),
                "lab: objects_per_day is 0, which allows no deposits",
            ),
            (both.replace("minute: 3", "minute: 0"), "remove it for no limit"),
        ] {
            let why = read(&text).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
