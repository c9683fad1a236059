//! `queuekeeper mill policies`: what is in force, and what was.

use clap::Args;
use jiff::Timestamp;

use super::ConfigArgs;
use crate::cli::output::{OutputArgs, Screen, without_csv};
use crate::cli::words::ago;
use crate::views::mill::{Mill, PairView, PolicyDetail, PolicyList, PolicyText};

/// Show the policies in force, pending changes, and earlier policies
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct PoliciesArgs {
    /// The account; without it, all of them
    #[arg(value_name = "ACCOUNT")]
    account: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl PoliciesArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let view = async |mill: &Mill| match &self.account {
            Some(account) => mill.policy(account).await.map(|detail| PolicyList { items: vec![detail] }),
            None => mill.policies().await,
        };
        let list = self.config.ask(view).await?;
        self.output.show(&list, |screen| {
            for detail in &list.items {
                show(detail, screen);
            }
        })
    }
}

fn show(detail: &PolicyDetail, screen: &mut Screen) {
    let now = Timestamp::now();
    let listed = if detail.is_listed { "" } else { " (not in the list of accounts: nothing is copied)" };
    screen.say(&format!("{}{listed}", detail.account));
    match &detail.in_force {
        Some(policy) => show_policy(policy, detail, screen),
        None => screen.beneath("no policy is in force: nothing is copied"),
    }
    if let Some(error) = &detail.error {
        screen.entry_beneath(&format!("a file cannot be used: {error}"));
    }
    for waiting in &detail.waiting {
        let space = waiting.space.as_deref().unwrap_or("all other spaces");
        let (ends, begins) = (pairs(&waiting.ends, detail), pairs(&waiting.begins, detail));
        screen.entry_beneath(&format!("{space}: waiting to end: {ends}; to begin in its place: {begins}"));
    }
    for item in &detail.history {
        let (user, reason) = (&item.user, &item.reason);
        screen.entry_beneath(&format!("{}, {} ago by {user}: {reason}", item.number, ago(Some(item.time), now)));
    }
}

fn show_policy(policy: &PolicyText, detail: &PolicyDetail, screen: &mut Screen) {
    screen.entry_beneath(&format!("all other spaces: {}", pairs(&policy.defaults, detail)));
    for own in &policy.spaces {
        screen.entry_beneath(&format!("{}: {}", own.space, pairs(&own.pairs, detail)));
    }
    if !policy.ignored.is_empty() {
        screen.entry_beneath(&format!("ignored: {}", policy.ignored.join(", ")));
    }
}

fn pairs(pairs: &[PairView], detail: &PolicyDetail) -> String {
    let store = |id: &String| detail.stores.get(id).cloned().unwrap_or_else(|| format!("store {id}"));
    let words: Vec<_> =
        pairs.iter().map(|pair| format!("{} to {}", store(&pair.source), store(&pair.destination))).collect();
    if words.is_empty() { "no copy".to_owned() } else { words.join(", ") }
}
