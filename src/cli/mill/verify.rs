//! `queuekeeper mill verify`: a check of content at once.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use queuekeeper_mill::bit::verify::{Said, Scope, Totals};
use queuekeeper_store::error::shortened;
use queuekeeper_store::{Key, SpaceName};

use super::{ConfigArgs, checks};
use crate::cli::actor::AuditArgs;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND, NOT_PROVEN};
use crate::cli::meter::Lines;
use crate::cli::output;
use crate::cli::words::count;
use crate::config::MillConfig;
use crate::server;
use crate::views::mill;
use crate::words::{counted, size};

/// Check content now: read it, and compare it with its store, the content index and the audit log
///
/// One line for each item that is wrong or could not be checked. Results are recorded like those of a loop: proofs, and
/// bit errors for what is wrong. Content is read regardless of the proof that is configured for the store. Exits with 7
/// if anything is wrong or could not be checked.
///
/// With --background, the workers of the mill do the same; mill checks shows their progress and what they found.
#[derive(Clone, Debug, Args)]
pub(super) struct VerifyArgs {
    /// An item, a space, or all content of an account in a store; the store by its name, or by its number in policies
    #[arg(
        value_name = "ACCOUNT/STORE[/SPACE[/KEY]]",
        value_parser = OsStringValueParser::new().try_map(|text| Named::parse(&text))
    )]
    what: Named,

    /// Have it checked by workers, beside the loop of checks, without waiting for the result
    #[arg(long)]
    background: bool,

    /// Show how much would be read and what that costs, without checking anything
    #[arg(long, requires = "background")]
    dry_run: bool,

    /// The reason, which is recorded in the audit file and in the catalogue
    #[arg(long, value_name = "TEXT", requires = "background")]
    reason: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    audit: AuditArgs,
}

/// What is to be checked, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    account: String,
    store: String,
    space: Option<SpaceName>,
    key: Option<Key>,
}

impl Named {
    pub(super) fn parse(text: &OsString) -> Result<Self, String> {
        let parts: Vec<_> = text.as_bytes().splitn(4, |byte| *byte == b'/').collect();
        let part = |at: usize| parts.get(at).copied().filter(|part| !part.is_empty());
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let (account, store) = part(0).zip(part(1)).ok_or("name an account and a store: ACCOUNT/STORE")?;
        let space = part(2).map(|space| text(space).parse()).transpose();
        let space = space.map_err(|error| format!("the space has an {error}"))?;
        if space.is_none() && parts.len() > 3 {
            return Err("name the space that the item is in: ACCOUNT/STORE/SPACE/KEY".to_owned());
        }
        let key = part(3).map(Key::new).transpose().map_err(|error| error.to_string())?;
        Ok(Self { account: text(account), store: text(store), space, key })
    }

    /// What it is by the configuration.
    ///
    /// # Errors
    /// For an account or a store that does not exist.
    pub(super) fn scope(self, config: &MillConfig) -> Result<Scope, CommandError> {
        let Self { account, store, space, key } = self;
        let known = mill::account(&config.accounts, &account)?;
        let store = mill::store_of(known, &store)?;
        Ok(Scope { account, store, space, key })
    }

    /// The same, of content of users.
    ///
    /// # Errors
    /// As [`Self::scope`], and for a space that is reserved.
    pub(super) fn scope_of_content(self, config: &MillConfig) -> Result<Scope, CommandError> {
        let scope = self.scope(config)?;
        scope.space.as_ref().map_or(Ok(()), mill::check_content)?;
        Ok(scope)
    }
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.config.read()?;
        let scope = self.what.scope_of_content(&config)?;
        if self.background {
            return checks::ask(&scope, self.dry_run, self.reason, self.config, self.audit).await;
        }
        let checker = server::mill::checker(&config, file.stores(), [&scope.store]).await?;
        let catalogue = checker.catalogue.clone();
        let mut lines = Lines::new();
        let mut say = |said: Said| match said {
            Said::Progress(totals) => lines.progress(|| summary(&totals)),
            Said::Wrong(space, key, verdict) => lines.write(&format!("{}: {verdict}\n", name(&scope, &space, &key))),
            Said::Unchecked(space, key, why) => {
                lines.write(&format!("{}: not checked: {why}\n", name(&scope, &space, &key)));
            }
        };
        let outcome = checker.verify(&scope, &mut say).await;
        catalogue.close().await;
        lines.end()?;
        let totals = outcome.map_err(|why| CommandError::new(FAILED, why))?;
        if totals == Totals::default() && scope.space.is_some() {
            let why = match scope.key {
                Some(_) => "there is no such item, and no record of it",
                None => "there is no such space, or it is empty, and has no records",
            };
            return Err(CommandError::new(NOT_FOUND, why).into());
        }
        output::write(&format!("{}\n", summary(&totals)))?;
        if totals.wrong > 0 || totals.unchecked > 0 {
            let why = format!("{} wrong, {} not checked", count(totals.wrong), count(totals.unchecked));
            return Err(CommandError::new(NOT_PROVEN, why).into());
        }
        Ok(())
    }
}

fn summary(totals: &Totals) -> String {
    let Totals { proven, bytes, wrong, unchecked } = totals;
    let (proven, bytes) = (counted(*proven, "item", "items"), size(*bytes));
    format!("{proven} proven by reading {bytes}, {} wrong, {} not checked", count(*wrong), count(*unchecked))
}

/// `ACCOUNT/STORE/SPACE/KEY`, on one line.
fn name(scope: &Scope, space: &SpaceName, key: &Key) -> String {
    format!("{}/{}/{space}/{}", scope.account, scope.store, shortened(&key.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_is_an_item_a_space_or_all_of_a_store() {
        let parse = |text: &str| Named::parse(&OsString::from(text));
        let of = |space: Option<&str>, key: Option<&str>| Named {
            account: "a".to_owned(),
            store: "1".to_owned(),
            space: space.map(|space| space.parse().unwrap()),
            key: key.map(|key| key.parse().unwrap()),
        };
        assert_eq!(parse("a/1").unwrap(), of(None, None));
        assert_eq!(parse("a/1/").unwrap(), of(None, None));
        assert_eq!(parse("a/1/theses").unwrap(), of(Some("theses"), None));
        assert_eq!(parse("a/1/theses/b/c").unwrap(), of(Some("theses"), Some("b/c")));
        for wrong in ["", "a", "a/", "/1", "a/1/..", "a/1//b", "a/1//"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
