//! `queuekeeper mill retry` and `drop`: decisions about held tasks and dead letters.

use clap::Args;

use super::session::{MillActArgs, MillSession};
use crate::actions::mill::{Decided, TaskDecision};
use crate::cli::exit::{CommandError, IN_PART, NOT_FOUND};
use crate::cli::output;

/// Retry dead letters, or release held tasks
///
/// A held task may then exceed the limit once.
#[derive(Clone, Debug, Args)]
pub(super) struct RetryArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Remove dead letters or held tasks without executing them
#[derive(Clone, Debug, Args)]
pub(super) struct DropArgs {
    #[command(flatten)]
    decided: DecidedArgs,
}

/// Which tasks.
#[derive(Clone, Debug, Args)]
struct DecidedArgs {
    /// Numbers of tasks, as mill held and mill dead-letters show them
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,

    #[command(flatten)]
    act: MillActArgs,
}

impl RetryArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.decided.run(Decided::Retry, "waits for a worker").await
    }
}

impl DropArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.decided.run(Decided::Drop, "was dropped").await
    }
}

impl DecidedArgs {
    async fn run(self, decided: Decided, done: &str) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        self.act.with_session(async |session| self.decide(session, decided, done).await).await
    }

    /// Decides of held tasks and of dead letters: each is an action of its own.
    async fn decide(&self, session: &MillSession, decided: Decided, done: &str) -> anyhow::Result<()> {
        let MillSession { actions, actor, reason, .. } = session;
        let undecided = actions.undecided(&self.numbers).await.map_err(CommandError::from)?;
        let waiting: Vec<u64> = undecided.values().flatten().copied().collect();
        let mut missing: Vec<_> = self.numbers.iter().filter(|number| !waiting.contains(number)).copied().collect();
        for (of, numbers) in undecided {
            let decision = TaskDecision { decided, of };
            let entry = actions.decide(decision, &numbers, actor, reason).await.map_err(CommandError::from)?;
            for number in numbers {
                let target = TaskDecision::target(number);
                if entry.not_done.iter().any(|(on, _)| *on == target) {
                    missing.push(number);
                } else {
                    output::write(&format!("task {number} {done}\n"))?;
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let code = if missing.len() < self.numbers.len() { IN_PART } else { NOT_FOUND };
        let missing: Vec<_> = missing.iter().map(u64::to_string).collect();
        let why = format!("neither a dead letter nor held: {}", missing.join(", "));
        Err(CommandError::new(code, why).into())
    }
}
