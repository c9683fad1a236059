//! `queuekeeper mill verify --background` and `mill checks`: content is checked by workers.

use clap::Args;
use jiff::Timestamp;
use queuekeeper_mill::bit::verify::Scope;

use super::ConfigArgs;
use super::session::MillActArgs;
use crate::cli::UsageError;
use crate::cli::actor::AuditArgs;
use crate::cli::exit::CommandError;
use crate::cli::output::{self, Column, OutputArgs, Table, without_csv};
use crate::cli::words::ago;
use crate::views::mill::{CheckFilter, CheckScope, KeyText, RequestedCheckItem};

/// List requested checks, their progress, and what they found
///
/// The last one of each space and item that was requested by mill verify --background, the pages of the mill, or the
/// API.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ChecksArgs {
    /// Checks of this account; without it, of the first account
    #[arg(value_name = "ACCOUNT", default_value = "")]
    account: String,

    /// Checks with a number below this
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl ChecksArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let filter = CheckFilter { account: self.account, before: self.before, ..CheckFilter::default() };
        let list = self.config.ask(async |mill| mill.requested_checks(&filter).await).await?;
        self.output.show(&list, |screen| {
            if !list.items.is_empty() {
                screen.table(&table(&list.items));
            }
        })?;
        if list.items.is_empty() {
            output::note(&match self.before {
                None => "no check has been requested".to_owned(),
                Some(before) => format!("there are no checks with a number below {before}"),
            });
        } else if let Some(before) = list.next {
            output::note(&format!("there are more: --before {before}"));
        }
        Ok(())
    }
}

fn table(checks: &[RequestedCheckItem]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::rest("CHECK OF"),
        Column::new("STORE"),
        Column::new("STATE"),
        Column::rest("RESULT"),
        Column::new("BY"),
        Column::number("REQUESTED"),
        Column::number("LAST"),
    ]);
    for check in checks {
        let key = check.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        table.row([
            format!("{}/{}{key}", check.account, check.space),
            check.store.clone(),
            check.state.replace('_', " "),
            check.words(),
            check.user.clone(),
            ago(Some(check.requested), now),
            ago(Some(check.changed), now),
        ]);
    }
    table
}

/// Has a scope checked by workers; for a dry run only shows what that takes.
pub(super) async fn ask(
    scope: &Scope,
    is_dry_run: bool,
    reason: Option<String>,
    config: ConfigArgs,
    audit: AuditArgs,
) -> anyhow::Result<()> {
    let reason = match reason {
        Some(reason) => reason,
        None if is_dry_run => String::new(),
        None => return Err(UsageError("--background needs a --reason".to_owned()).into()),
    };
    let named = CheckScope {
        account: scope.account.clone(),
        store: scope.store.to_string(),
        space: scope.space.as_ref().map(ToString::to_string).unwrap_or_default(),
        key: KeyText(scope.key.clone()),
    };
    let plan = config.ask(async |mill| mill.plan_check(&named).await).await?;
    if is_dry_run {
        return output::write(&format!("{}\n", plan.words()));
    }
    let act = MillActArgs::new(reason, config, audit);
    let requested = act.with_session(async |session| {
        let requested = session.actions.request_check(&plan.scope, &plan.parts, &session.actor, &session.reason).await;
        requested.map(drop).map_err(|refusal| CommandError::from(refusal).into())
    });
    requested.await?;
    output::write(&format!("requested: {}; mill checks {} shows its progress\n", plan.words(), plan.account))
}
