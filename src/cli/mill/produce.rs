//! `queuekeeper mill produce`: what a producer does, once.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_mill::bit::producer::PRODUCER as BIT;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::producer::{PRODUCER, Step};
use queuekeeper_mill::run::{MillSettings, SEES_DUE};
use queuekeeper_store::StoreFamilies;

use super::ConfigArgs;
use super::bit_flags::BitArgs;
use super::loop_flags::LoopArgs;
use crate::cli::exit::{BAD_USAGE, CommandError, FAILED};
use crate::cli::{UsageError, on_signal, output};
use crate::config::MillConfig;
use crate::server;
use crate::words::{counted, length};

/// Create due tasks once, as mill run does regularly, then exit
///
/// For cron, beside workers that run elsewhere. A loop that is not due is not begun; a loop in progress is continued,
/// whichever process began it, until it is done or --queue-limit is reached.
///
/// With --now, the next loop of copies or checks is due now, and with it the reports on the integrity of all spaces:
/// the process that leads the loop begins it within a minute, once the last one is done, and this command prints where
/// the reports will be. It changes nothing else, and is safe while a mill is running. If that process has died, another
/// one begins the loop within six minutes. With --once as well, this command does what is due itself, unless another
/// process leads.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("queue_limit", |limit| limit.help("The number of waiting tasks at which this command stops")))]
pub(super) struct ProduceArgs {
    /// What to do: request missing copies, checks of all content, counts of spaces, or one task for each account that
    /// does nothing; or remove what no longer needs to be kept aside
    #[arg(value_name = "PRODUCER")]
    producer: ProducerName,

    /// Do what is due, and exit
    #[arg(long, required_unless_present = "now")]
    once: bool,

    /// Begin the next loop of copies, or of checks with their reports, although it is not due, as soon as the last one
    /// is done
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    loops: LoopArgs,

    #[command(flatten)]
    bit: BitArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProducerName {
    Duplication,
    Bit,
    Stats,
    Asides,
    Noop,
}

impl ProduceArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let (file, config) = self.config.read()?;
        let looping = match self.producer {
            ProducerName::Duplication => Some(PRODUCER),
            ProducerName::Bit => Some(BIT),
            ProducerName::Stats | ProducerName::Asides | ProducerName::Noop => None,
        };
        let due = match looping {
            Some(producer) if self.now => Some(Due { producer, config: &config }),
            None if self.now => {
                let why = format!("--now is for duplication and bit, which have loops; {} has none", self.producer);
                return Err(CommandError::new(BAD_USAGE, why).into());
            }
            Some(_) | None => None,
        };
        if let Some(due) = due.as_ref().filter(|_| !self.once) {
            let catalogue = server::catalogue::open(file.stores()).await?;
            let said = async {
                catalogue.request_loop(due.producer).await?;
                due.said(&catalogue).await
            };
            let said = said.await;
            catalogue.close().await;
            return output::write(&format!("{}: {}\n", self.producer, said?));
        }
        let settings = self.settings()?;
        let (families, metrics) = (StoreFamilies::default(), MillMetrics::default());
        let mill = server::mill::open(&config, file.stores(), settings, &families, metrics).await?;
        let catalogue = mill.catalogue.clone();
        if let Some(due) = &due {
            catalogue.request_loop(due.producer).await?;
        }
        let (stop, _signals) = on_signal().context("cannot listen to signals")?;
        let produced = match self.producer {
            ProducerName::Duplication => match mill.produce_once(&stop).await {
                Ok(step) => step_said(&step, due.as_ref(), &catalogue).await,
                Err(why) => Err(why),
            },
            ProducerName::Bit => match mill.check_once(&stop).await {
                Ok(step) => step_said(&step, due.as_ref(), &catalogue).await,
                Err(why) => Err(why),
            },
            ProducerName::Stats => mill.stats_once().await.map(|number| match number {
                Some(number) => format!("{} to be counted", counted(number as u64, "space is", "spaces are")),
                None => "spaces were already counted within the last day".to_owned(),
            }),
            ProducerName::Asides => mill.asides_once().await.map(|removed| match removed {
                Some(removed) => removed.to_string(),
                None => "content that is kept aside was already checked within the last day".to_owned(),
            }),
            ProducerName::Noop => mill
                .noop_once()
                .await
                .map(|number| counted(number as u64, "task that does nothing", "tasks that do nothing")),
        };
        catalogue.close().await;
        match produced {
            Ok(said) => output::write(&format!("{}: {said}\n", self.producer)),
            Err(why) => Err(CommandError::new(FAILED, why).into()),
        }
    }

    fn settings(&self) -> Result<MillSettings, UsageError> {
        let settings = self.loops.settings();
        let bit = self.bit.settings(settings.most_waiting)?;
        Ok(MillSettings { bit: Some(bit), ..settings })
    }
}

impl fmt::Display for ProducerName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Duplication => "duplication",
            Self::Bit => "bit",
            Self::Stats => "stats",
            Self::Asides => "asides",
            Self::Noop => "noop",
        })
    }
}

/// A loop that is due now.
struct Due<'a> {
    producer: &'static str,
    config: &'a MillConfig,
}

impl Due<'_> {
    /// When it begins, and where its reports will be.
    async fn said(&self, catalogue: &Catalogue) -> Result<String, queuekeeper_catalogue::Error> {
        let state = catalogue.loop_state(self.producer).await?;
        let is_checking = self.producer == BIT && !catalogue.open_bit_runs().await?.is_empty();
        let soon = length(SEES_DUE);
        let when = match state {
            Some(state) if state.is_led && state.started.is_some() && (state.ended.is_none() || is_checking) => {
                format!(
                    "loop {} is still running; the leader starts the next one within {soon} of its end",
                    state.number
                )
            }
            Some(state) if state.is_led => format!("the leader starts the next loop within {soon}"),
            Some(_) | None => format!(
                "no process leads; the next loop starts within {soon} of queuekeeper mill run, or now with --once --now"
            ),
        };
        let mut said = when;
        if self.producer == BIT {
            let reports = self.config.accounts.values().filter_map(|account| {
                let (store, space) = account.primary().zip(account.admin_space())?;
                Some(format!("{store}/{space}/bit-integrity"))
            });
            let reports = reports.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
            said = format!(
                "{said}. Its report on each space is written below {reports} as soon as the checks of that space have ended; \
                 queuekeeper mill reports lists it"
            );
        }
        if !catalogue.pauses().await?.is_empty() {
            said += ". What is paused is left out; queuekeeper mill queues shows the pauses";
        }
        Ok(said)
    }
}

/// What became of a loop.
async fn step_said(step: &Step, due: Option<&Due<'_>>, catalogue: &Catalogue) -> Result<String, String> {
    match (step, due) {
        (Step::Follows, Some(due)) => due.said(catalogue).await.map_err(|error| error.to_string()),
        _ => Ok(said(step)),
    }
}

fn said(step: &Step) -> String {
    match step {
        Step::Idle | Step::Advanced => "the loop is done, and the next one is not due".to_owned(),
        Step::Stopped => "stopped before the loop was done; another process continues it".to_owned(),
        Step::Follows => "another process leads the loop".to_owned(),
        Step::Checking => "the requested checks have not ended".to_owned(),
        Step::Full => "--queue-limit is reached".to_owned(),
        Step::Paused(spaces) => {
            let spaces = counted(*spaces as u64, "paused space remains", "paused spaces remain");
            format!("only {spaces}; queuekeeper mill queues shows by whom")
        }
        Step::Stuck(spaces) => {
            let spaces = counted(*spaces as u64, "space", "spaces");
            format!("{spaces} cannot be scanned; queuekeeper mill queues shows why")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};
    use queuekeeper_mill::bit::producer::BitSettings;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        produce: ProduceArgs,
    }

    #[test]
    fn no_flag_gives_the_default_settings_and_the_queue_limit_stops_the_command() {
        let cli = Cli::try_parse_from(["x", "bit", "--once", "--config.file=config.yml"]).unwrap();
        let expected = MillSettings { bit: Some(BitSettings::default()), ..MillSettings::default() };
        assert_eq!(cli.produce.settings().unwrap(), expected);
        let command = Cli::command();
        let limit = command.get_arguments().find(|argument| argument.get_long() == Some("queue-limit")).unwrap();
        assert!(limit.get_help().unwrap().to_string().ends_with("this command stops"));
    }
}
