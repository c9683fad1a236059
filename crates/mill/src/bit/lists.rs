//! Lists of what is checked and what is not, as the `DuraCloud` Mill has them: a line is `/account/store/space`.

use std::fmt;
use std::str::FromStr;

use queuekeeper_store::SpaceName;

use crate::account::Account;
use crate::policy::StoreId;

/// A part of a line: a name, or what names begin with before a `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Name(String),
    Prefix(String),
}

impl Part {
    fn read(text: &str) -> Result<Self, String> {
        let part = match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Name(text.to_owned()),
        };
        match &part {
            Self::Name(name) if name.is_empty() => Err("a part is empty".to_owned()),
            Self::Name(name) | Self::Prefix(name) if name.contains('*') => {
                Err(format!("in {text:?} a * is not at the end"))
            }
            Self::Name(_) | Self::Prefix(_) => Ok(part),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

/// Lines of a list: `/account/store/space`, where each part is a name, `*` for any, or the beginning of names and `*`;
/// a store is named, or has the number that policies have. Empty lines and what comes behind a `#` say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceList(Vec<[Part; 3]>);

impl SpaceList {
    /// Whether a line names a space of an account in a store.
    #[must_use]
    pub fn has(&self, account: &Account, store: (&StoreId, &str), space: &SpaceName) -> bool {
        self.0.iter().any(|[of_account, of_store, of_space]| {
            of_account.matches(&account.name)
                && (of_store.matches(&store.0.0) || of_store.matches(store.1))
                && of_space.matches(space.as_str())
        })
    }

    /// Whether it has no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => to.write_str(name),
            Self::Prefix(prefix) => write!(to, "{prefix}*"),
        }
    }
}

/// Its lines, without what says nothing.
impl fmt::Display for SpaceList {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|[account, store, space]| writeln!(to, "/{account}/{store}/{space}"))
    }
}

impl FromStr for SpaceList {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        let mut lines = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
            if !line.is_empty() {
                lines.push(read(line).map_err(|why| ListError { line: number, why })?);
            }
        }
        Ok(Self(lines))
    }
}

fn read(line: &str) -> Result<[Part; 3], String> {
    let form = || format!("expected /account/store/space, not {line:?}");
    let parts: Vec<_> = line.strip_prefix('/').ok_or_else(form)?.split('/').collect();
    let [account, store, space] = parts[..] else { return Err(form()) };
    Ok([Part::read(account)?, Part::read(store)?, Part::read(space)?])
}

/// A line that is none of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// Its number, from 1 on.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for ListError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for ListError {}

/// What the bit producer goes through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceLists {
    /// What is checked; without a line, everything.
    pub include: SpaceList,
    /// What of that is not.
    pub exclude: SpaceList,
}

impl SpaceLists {
    /// Whether a space of an account in a store is checked.
    #[must_use]
    pub fn wants(&self, account: &Account, store: (&StoreId, &str), space: &SpaceName) -> bool {
        let is_included = self.include.is_empty() || self.include.has(account, store, space);
        is_included && !self.exclude.has(account, store, space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(include: &str, exclude: &str, account: &str, store: (&str, &str), space: &str) -> bool {
        let lists = SpaceLists { include: include.parse().unwrap(), exclude: exclude.parse().unwrap() };
        let account = Account { name: account.to_owned(), ..Account::default() };
        lists.wants(&account, (&StoreId(store.0.to_owned()), store.1), &space.parse().unwrap())
    }

    #[test]
    fn a_space_is_checked_where_a_line_includes_it_and_none_excludes_it() {
        let main = ("1", "main");
        assert!(wants("", "", "account1", main, "theses"));
        assert!(wants("# all\n\n  /*/*/*  # of all\n", "", "account1", main, "theses"));
        assert!(wants("/account1/1/theses", "", "account1", main, "theses"));
        assert!(wants("/account1/main/the*", "", "account1", main, "theses"));
        for (account, store, space) in
            [("account2", main, "theses"), ("account1", ("2", "replica"), "theses"), ("account1", main, "maps")]
        {
            assert!(!wants("/account1/1/theses", "", account, store, space), "{account} {store:?} {space}");
        }
        assert!(!wants("", "/*/*/tmp*", "account1", main, "tmp-1"));
        assert!(!wants("/account1/*/*", "/*/1/*", "account1", main, "theses"));
        assert!(wants("/account1/*/*", "/*/1/*", "account1", ("2", "replica"), "theses"));
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        let list: SpaceList = "# some\n /account1/*/the* # these\n\n/*/1/maps".parse().unwrap();
        assert_eq!(list.to_string(), "/account1/*/the*\n/*/1/maps\n");
        assert_eq!(list.to_string().parse::<SpaceList>().unwrap(), list);
    }

    #[test]
    fn a_line_that_says_something_else_is_refused_with_its_number() {
        for wrong in ["account1/1/theses", "/account1/1", "/account1/1/theses/key", "/a*b/1/x", "/account1//x", "/a/1/"]
        {
            let error = format!("/a/b/c\n{wrong}").parse::<SpaceList>().unwrap_err();
            assert!(error.to_string().starts_with("line 2: "), "{wrong}: {error}");
        }
    }
}
