//! `queuekeeper mill status`: the queues, and what stands still.

use clap::Args;
use jiff::Timestamp;
use queuekeeper_catalogue::loops::Morsel;
use queuekeeper_catalogue::space_stats::SpaceStats;
use queuekeeper_catalogue::tasks::QueueFigures;
use queuekeeper_mill::account::Account;
use queuekeeper_mill::policy::{self, InForce};
use queuekeeper_mill::producer::PRODUCER;
use queuekeeper_store::StoreFamilies;
use serde_json::{Value, json};

use super::PlaceArgs;
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::{OutputArgs, Screen, without_csv};
use crate::cli::words::moment;
use crate::mirror::words::size;
use crate::server;

/// Of how many spaces of an account it is shown what they have.
const MOST_SPACES: u32 = 1000;

/// Show how many tasks each queue has, how far the loop is, what spaces have, and what policies wait for an admin
///
/// Exits with 1 where something stands still: dead letters, held tasks, spaces that cannot be gone through, policies that cannot
/// be read.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct StatusArgs {
    #[command(flatten)]
    place: PlaceArgs,

    #[command(flatten)]
    output: OutputArgs,
}

impl StatusArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.place.read()?;
        let catalogue = server::mill::catalogue(file.stores()).await?;
        let queues = catalogue.task_figures().await?;
        let morsels = catalogue.morsels(PRODUCER).await?;
        let source = server::mill::source(&config, file.stores(), &StoreFamilies::default()).await?;
        let mut policies = Vec::new();
        for account in config.accounts.values() {
            policies.push((account, policy::read(&catalogue, &source, account).await));
        }
        let mut spaces = Vec::new();
        for account in config.accounts.keys() {
            spaces.extend(catalogue.space_stats(account, MOST_SPACES).await?);
        }
        catalogue.close().await;
        let problems = problems(&queues, &morsels, &policies);
        let answer = json!({
            "queues": queues.iter().map(queue_json).collect::<Vec<_>>(),
            "morsels_left": morsels.len(),
            "spaces": spaces.iter().map(space_json).collect::<Vec<_>>(),
            "problems": problems,
        });
        self.output.show(&answer, |screen: &mut Screen| {
            for of in &queues {
                let QueueFigures { waiting, taken, held, dead, .. } = of;
                let line = format!(
                    "{:<17} {waiting} waiting, of these {taken} in work; {held} held; {dead} dead",
                    of.queue.as_str()
                );
                screen.say(&line);
            }
            let left = morsels.len();
            screen.say(&if left == 0 {
                "the loop is done".to_owned()
            } else {
                format!("left of the loop: {left} spaces")
            });
            let now = Timestamp::now();
            for of in &spaces {
                let SpaceStats { store, space, items, bytes, time, .. } = of;
                let when = moment(Some(*time), now);
                screen.say(&format!("{store}/{space}: {items} items, {}, counted {when}", size(*bytes)));
            }
            for problem in &problems {
                screen.entry(problem);
            }
        })?;
        match problems.first() {
            None => Ok(()),
            Some(problem) => Err(CommandError::new(FAILED, problem.clone()).into()),
        }
    }
}

fn queue_json(of: &QueueFigures) -> Value {
    let QueueFigures { queue, waiting, taken, held, dead } = of;
    json!({ "queue": queue.as_str(), "waiting": waiting, "in_work": taken, "held": held, "dead": dead })
}

fn space_json(of: &SpaceStats) -> Value {
    let SpaceStats { account, store, space, time, items, bytes } = of;
    json!({ "account": account, "store": store, "space": space, "counted": time, "items": items, "size_bytes": bytes })
}

fn problems(
    queues: &[QueueFigures],
    morsels: &[Morsel],
    policies: &[(&Account, Result<InForce, String>)],
) -> Vec<String> {
    let mut problems = Vec::new();
    let sum = |of: fn(&QueueFigures) -> u64| queues.iter().map(of).sum::<u64>();
    let (held, dead) = (sum(|of| of.held), sum(|of| of.dead));
    if held > 0 {
        problems.push(format!("{held} held: look at them with queuekeeper mill tasks --held, then retry or drop them"));
    }
    if dead > 0 {
        problems.push(format!("{dead} dead: look at them with queuekeeper mill tasks, then retry or drop them"));
    }
    for morsel in morsels {
        if let Some(error) = &morsel.error {
            let Morsel { account, space, source, destination, .. } = morsel;
            problems.push(format!("{account}/{space} from {source} to {destination} does not go on: {error}"));
        }
    }
    for (account, read) in policies {
        match read {
            Ok(InForce { waiting, error, .. }) => {
                if let Some(error) = error {
                    problems.push(format!("{}: {error}; the last policy stays in force", account.name));
                }
                if !waiting.is_empty() {
                    let name = &account.name;
                    problems.push(format!(
                        "{name}: its policy file takes away copies: queuekeeper mill policy apply {name}"
                    ));
                }
            }
            Err(error) => problems.push(format!("{} is copied nowhere: {error}", account.name)),
        }
    }
    problems
}
