//! `queuekeeper mill policy`: the policies of accounts.

use std::path::PathBuf;

use clap::Args;
use queuekeeper_mill::policy::{self, ACCOUNTS_FILE, Editable, Pair, WaitingChange, policy_file};
use queuekeeper_store::StoreFamilies;

use super::ConfigArgs;
use super::session::{MillActArgs, MillSession};
use crate::cli::UsageError;
use crate::cli::commands::commands;
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::{self, Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::count;
use crate::server;
use crate::views::mill::{Mill, NewPolicyView, PlanItem, PlanView, PolicyText};
use crate::words::{counted, size};

/// Check the policies of accounts, preview a change, or put a waiting change into force
#[derive(Clone, Debug, Args)]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

commands! {
    enum PolicyCommand {
        Check(CheckArgs),
        Plan(PlanArgs),
        Apply(ApplyArgs),
    }
}

/// Check the policy files, and show which copies each would stop maintaining
///
/// Additions in a file are in force as soon as mill run has read it. A change that would stop maintaining copies waits
/// for mill policy apply. Exits with 1 if a file cannot be used.
#[derive(Clone, Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Show what a policy would do in place of the one in force: items and bytes to copy, and copies that would no longer
/// be maintained
///
/// Figures are taken from the content index. Exits with 1 if the policy cannot be carried out.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
struct PlanArgs {
    /// The account
    #[arg(value_name = "ACCOUNT")]
    account: String,

    /// A policy file to examine, instead of the account's own
    #[arg(value_name = "FILE")]
    policy: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Put the policy file of an account into force, even if it stops maintaining copies
///
/// No copy is deleted: it stays as it is, but no longer follows its source.
#[derive(Clone, Debug, Args)]
struct ApplyArgs {
    /// The account
    #[arg(value_name = "ACCOUNT")]
    account: String,

    #[command(flatten)]
    act: MillActArgs,
}

impl PolicyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        self.command.run().await
    }
}

impl CheckArgs {
    async fn run(self) -> anyhow::Result<()> {
        let (file, config) = self.config.read()?;
        let catalogue = server::catalogue::open(file.stores()).await?;
        let source = server::mill::source(&config, file.stores(), &StoreFamilies::default()).await?;
        let mut wrong = Vec::new();
        for account in config.accounts.values() {
            let name = &account.name;
            match policy::open(&catalogue, &source, account).await {
                Ok(Editable { is_listed: false, now: Ok(_), .. }) => output::write(&format!("{}\n", unlisted(name)))?,
                Ok(Editable { file, other_keys, now, .. }) => {
                    let (error, waiting) = match now {
                        Ok(now) => (now.error.or(file.err()), now.waiting),
                        Err(error) => (Some(error), Vec::new()),
                    };
                    if let Some(error) = error {
                        wrong.push(format!("{name}: {error}"));
                    } else if waiting.is_empty() {
                        output::write(&format!(
                            "{name}: its policy file is valid, and no copy would stop being maintained\n"
                        ))?;
                    }
                    for waiting in &waiting {
                        output::write(&format!("{name}: {}\n", waiting_line(waiting)))?;
                    }
                    for key in other_keys {
                        output::note(&format!(
                            "{name}: its policy file has the unknown key {key:?}, which has no effect"
                        ));
                    }
                }
                Err(error) => wrong.push(format!("{name}: {error}")),
            }
        }
        if let Some(why) = policy::stray_accounts(&source, &config.accounts).await {
            wrong.push(why);
        }
        catalogue.close().await;
        if wrong.is_empty() { Ok(()) } else { Err(CommandError::new(FAILED, wrong.join("; ")).into()) }
    }
}

impl PlanArgs {
    async fn run(self) -> anyhow::Result<()> {
        let view = async |mill: &Mill| {
            let new = if let Some(path) = &self.policy {
                let wrong = |why: &dyn std::fmt::Display| UsageError(format!("{}: {why}", path.display()));
                let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
                let policy = policy::read_policy(&bytes).map_err(|error| wrong(&error))?;
                NewPolicyView { is_listed: true, policy: PolicyText::from(&policy) }
            } else {
                let detail = mill.policy(&self.account).await.map_err(CommandError::from)?;
                if let Some(error) = detail.error {
                    return Err(CommandError::new(FAILED, error).into());
                }
                NewPolicyView { is_listed: detail.is_listed, policy: detail.file.unwrap_or_default() }
            };
            let plan = mill.plan(&self.account, &new).await.map_err(CommandError::from)?;
            Ok((plan, new.is_listed))
        };
        let (plan, is_listed) = self.config.with_mill(view).await?;
        self.output.show(&plan, |screen| {
            if !is_listed {
                screen.say(&unlisted(&self.account));
            }
            show_plan(&plan, screen);
        })?;
        let of = self.policy.as_ref().map_or_else(|| policy_file(&self.account), |path| path.display().to_string());
        let problems = plan.problems.join("; ");
        if problems.is_empty() { Ok(()) } else { Err(CommandError::new(FAILED, format!("{of}: {problems}")).into()) }
    }
}

/// That an account is copied nowhere, whatever its policy file says.
fn unlisted(account: &str) -> String {
    format!("{account}: not in the list of accounts, {ACCOUNTS_FILE}: nothing is copied, regardless of its policy file")
}

fn show_plan(plan: &PlanView, screen: &mut Screen) {
    let table = |items: &[PlanItem]| {
        let mut table = Table::new([
            Column::rest("SPACE"),
            Column::new("FROM"),
            Column::new("TO"),
            Column::number("ITEMS"),
            Column::number("SIZE"),
            Column::number("THERE ALREADY"),
        ]);
        for item in items {
            let PlanItem { space, source, destination, items, bytes, copied_items, .. } = item;
            let cells = [space.clone(), source.clone(), destination.clone()];
            let [space, source, destination] = cells;
            table.row([space, source, destination, count(*items), size(*bytes), count(*copied_items)]);
        }
        table
    };
    if plan.begins.is_empty() && plan.ends.is_empty() {
        screen.say("nothing would change");
        return;
    }
    let (items, bytes) = (counted(plan.items_to_copy, "item", "items"), size(plan.bytes_to_copy));
    screen.say(&format!("to be copied: about {items}, {bytes}"));
    screen.table(&table(&plan.begins));
    screen.say(&format!(
        "no longer maintained, but not deleted: {}",
        counted(plan.items_no_longer_kept, "item", "items")
    ));
    screen.table(&table(&plan.ends));
}

fn waiting_line(waiting: &WaitingChange) -> String {
    let pairs = |pairs: &std::collections::BTreeSet<Pair>| {
        let texts: Vec<_> = pairs.iter().map(ToString::to_string).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    };
    let space = waiting.space.as_ref().map_or_else(|| "all other spaces".to_owned(), |space| format!("space {space}"));
    format!(
        "{space}: copies that an admin has to allow to stop: {}; that would begin instead: {}",
        pairs(&waiting.ends),
        pairs(&waiting.begins)
    )
}

impl ApplyArgs {
    async fn run(self) -> anyhow::Result<()> {
        let apply = async |MillSession { actions, actor, reason, .. }: &MillSession| {
            actions.apply_policy(&self.account, actor, reason).await.map_err(CommandError::from)?;
            output::write(&format!("{}: the policy file is in force\n", self.account))
        };
        self.act.with_session(apply).await
    }
}
