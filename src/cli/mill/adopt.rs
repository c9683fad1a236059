//! `queuekeeper mill adopt`: content that queuekeeper did not write is taken into the record.

use std::ffi::OsString;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use queuekeeper_mill::bit::adopt::{AdoptSaid, Adopted};
use queuekeeper_mill::bit::checker::Checker;
use queuekeeper_mill::bit::verify::Scope;
use queuekeeper_store::error::shortened;

use super::ConfigArgs;
use super::session::{MillActArgs, MillSession};
use super::verify::Named;
use crate::cli::UsageError;
use crate::cli::actor::AuditArgs;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND, NOT_PROVEN};
use crate::cli::meter::Lines;
use crate::cli::output;
use crate::cli::words::count;
use crate::server;
use crate::words::{counted, size};

/// Record the content of a space that has no record yet
///
/// Each item is read and recorded as it was read: as an event in your name, and in the content index. From then on,
/// policies copy it. Items that have a record keep it; each item that is left as it is gets a line. If the command is
/// interrupted, adopted items stay adopted, and the same command resumes. Exits with 7 if any item was left.
#[derive(Clone, Debug, Args)]
pub(super) struct AdoptArgs {
    /// A space of an account in a store; the store by its name, or by its number in policies
    #[arg(
        value_name = "ACCOUNT/STORE/SPACE",
        value_parser = OsStringValueParser::new().try_map(|text: OsString| Named::parse(&text))
    )]
    what: Named,

    /// Show what would be adopted, without changing anything
    #[arg(long)]
    dry_run: bool,

    /// The reason, which is recorded in the audit file
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    reason: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    audit: AuditArgs,
}

impl AdoptArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let Self { what, dry_run, reason, config: named, audit } = self;
        let (file, config) = named.read()?;
        let scope = what.scope_of_content(&config)?;
        if scope.space.is_none() || scope.key.is_some() {
            return Err(UsageError("name a space: ACCOUNT/STORE/SPACE".to_owned()).into());
        }
        let checker = server::mill::checker(&config, file.stores(), [&scope.store]).await?;
        let outcome = if dry_run {
            Box::pin(adopt(&checker, &scope, None)).await.map_err(|why| CommandError::new(FAILED, why).into())
        } else {
            let act = MillActArgs::new(reason.unwrap_or_default(), named, audit);
            act.with_session(async |session| recorded(session, &checker, &scope).await).await
        };
        checker.catalogue.close().await;
        let adopted = outcome?;
        if adopted == Adopted::default() {
            return Err(CommandError::new(NOT_FOUND, "there is no such space, or it is empty").into());
        }
        let verb = if dry_run { "would be adopted" } else { "adopted" };
        output::write(&format!("{}\n", summary(&adopted, verb)))?;
        if adopted.left > 0 {
            let left = counted(adopted.left, "item", "items");
            return Err(CommandError::new(NOT_PROVEN, format!("{left} left as recorded, or unread")).into());
        }
        Ok(())
    }
}

async fn recorded(session: &MillSession, checker: &Checker, scope: &Scope) -> anyhow::Result<Adopted> {
    let MillSession { actions, actor, reason, .. } = session;
    let mut adopted = Adopted::default();
    let work = async {
        adopted = Box::pin(adopt(checker, scope, Some(&actor.name))).await?;
        Ok(summary(&adopted, "adopted"))
    };
    actions.adopt(&name(scope), actor, reason, work).await.map_err(CommandError::from)?;
    Ok(adopted)
}

async fn adopt(checker: &Checker, scope: &Scope, user: Option<&str>) -> Result<Adopted, String> {
    let mut lines = Lines::new();
    let verb = if user.is_some() { "adopted" } else { "would be adopted" };
    let mut say = |said: AdoptSaid| match said {
        AdoptSaid::Progress(adopted) => lines.progress(|| summary(&adopted, verb)),
        AdoptSaid::Left(key, why) => {
            lines.write(&format!("{}/{}: {why}\n", name(scope), shortened(&key.to_string())));
        }
    };
    let outcome = checker.adopt(scope, user, &mut say).await;
    lines.end().map_err(|error| error.to_string())?;
    outcome
}

fn summary(adopted: &Adopted, verb: &str) -> String {
    let Adopted { items, bytes, recorded, left } = adopted;
    let (items, bytes) = (counted(*items, "item", "items"), size(*bytes));
    format!("{items} {verb} with {bytes}, {} recorded before, {} left", count(*recorded), count(*left))
}

/// `ACCOUNT/STORE/SPACE`.
fn name(scope: &Scope) -> String {
    let space = scope.space.as_ref().map_or("", |space| space.as_str());
    format!("{}/{}/{space}", scope.account, scope.store)
}
