//! `queuekeeper mill run`: its workers and its producer.

use std::sync::LazyLock;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::TaskQueue;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::run::MillSettings;

use super::ConfigArgs;
use super::bit_flags::BitArgs;
use super::loop_flags::LoopArgs;
use crate::cli::mail::MailArgs;
use crate::cli::{LogArgs, UsageError, headings, on_signal};
use crate::config::{ExternalUrl, ListenAddress, PrometheusDuration};
use crate::server;

/// Run the mill's workers and loops until stopped
///
/// Any number of such processes, on any number of hosts, share the work if the catalogue is in PostgreSQL; one of them
/// leads each loop. Changes by daemons and queuekeeper store are copied within seconds, all others by the next loop.
#[derive(Clone, Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,

    /// The number of tasks that are processed at the same time
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = MillSettings::WORKERS,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    workers: u16,

    #[arg(
        hide_default_value = true,
        long,
        value_name = "QUEUE",
        value_delimiter = ',',
        default_value = DEFAULT_QUEUES.as_str(),
        value_parser = queue,
        help = OF_QUEUES,
        long_help = help_of_queues()
    )]
    queues: Vec<TaskQueue>,

    /// The loops that this process may lead: copies, checks of all content, counts of spaces
    #[arg(long, value_name = "PRODUCER", value_delimiter = ',', default_value = DEFAULT_LOOPS.as_str())]
    produce: Vec<LoopName>,

    #[command(flatten)]
    loops: LoopArgs,

    /// How long a copy is kept after its source was deleted, and how long content that was deleted or overwritten in a
    /// copy is kept aside
    #[arg(
        long,
        value_name = "DURATION",
        default_value_t = PrometheusDuration::from(MillSettings::default().delete_after)
    )]
    delete_after: PrometheusDuration,

    /// The number of items of a space that may be deleted or overwritten in a store within a day; the larger of this
    /// and --brake.percent applies
    #[arg(long = "brake.items", value_name = "NUMBER", default_value_t = BrakeLimit::default().items)]
    brake_items: u32,

    /// The same as a percentage of the items of the space
    #[arg(
        long = "brake.percent",
        value_name = "NUMBER",
        default_value_t = BrakeLimit::default().percent,
        value_parser = clap::value_parser!(u32).range(0..=100)
    )]
    brake_percent: u32,

    #[command(flatten)]
    bit: BitArgs,

    #[command(flatten)]
    mail: MailArgs,

    /// The URL under which users reach the pages, for links in mails on reports
    #[arg(long = "web.external-url", value_name = "URL", help_heading = "Mail")]
    external_url: Option<ExternalUrl>,

    /// The address of metrics and probes: host:port, or :port for every interface; may be repeated
    #[arg(
        long = "web.listen-address",
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = "127.0.0.1:12183",
        help_heading = headings::PROBES
    )]
    listen_address: Vec<ListenAddress>,

    #[command(flatten)]
    log: LogArgs,
}

/// A loop that a process may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoopName {
    Duplication,
    Bit,
    Stats,
}

/// The default of `--produce`, all of them, as it would be written.
static DEFAULT_LOOPS: LazyLock<String> = LazyLock::new(|| {
    let names = LoopName::value_variants().iter().filter_map(LoopName::to_possible_value);
    names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(",")
});

/// The short help of `--queues`.
const OF_QUEUES: &str =
    "The queues from which tasks are taken, in this order; every tenth time, another queue comes first";

/// The default of `--queues`, as it would be written.
static DEFAULT_QUEUES: LazyLock<String> = LazyLock::new(|| default_queues().join(","));

fn default_queues() -> Vec<&'static str> {
    MillSettings::default().queues.into_iter().map(TaskQueue::as_str).collect()
}

/// The help of `--queues`, with all of them.
fn help_of_queues() -> String {
    format!("{OF_QUEUES}\n\nWithout it, all of them: {}.", default_queues().join(", "))
}

/// A queue that workers take tasks from.
fn queue(name: &str) -> Result<TaskQueue, String> {
    let queues = TaskQueue::ALL.into_iter().filter(|queue| *queue != TaskQueue::DeadLetter);
    let known: Vec<_> = queues.clone().map(TaskQueue::as_str).collect();
    let found = queues.into_iter().find(|queue| queue.as_str() == name);
    found.ok_or_else(|| format!("expected one or more of {}", known.join(",")))
}

impl RunArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.log.begin();
        let (shutdown, signals) = on_signal().context("cannot listen to signals")?;
        let (file, config) = self.config.read()?;
        let settings = self.settings()?;
        let mail = ReportMail {
            settings: self.mail.settings(None)?,
            pages: self.external_url.map(|url| url.to_string().trim_end_matches('/').to_owned()),
            ..ReportMail::default()
        };
        let listeners = server::listen(&self.listen_address).await?;
        let outcome = Box::pin(server::mill::run(&config, file.stores(), (settings, mail), listeners, &shutdown)).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome
    }

    fn settings(&self) -> Result<MillSettings, UsageError> {
        let settings = self.loops.settings();
        let bit = self.bit.settings(settings.most_waiting)?;
        Ok(MillSettings {
            workers: self.workers.into(),
            queues: self.queues.clone(),
            is_duplicating: self.produce.contains(&LoopName::Duplication),
            is_counting: self.produce.contains(&LoopName::Stats),
            bit: self.produce.contains(&LoopName::Bit).then_some(bit),
            delete_after: self.delete_after.get(),
            limit: BrakeLimit { items: self.brake_items, percent: self.brake_percent },
            ..settings
        })
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
        run: RunArgs,
    }

    #[test]
    fn no_flag_gives_the_default_settings() {
        let cli = Cli::try_parse_from(["x", "--config.file=config.yml"]).unwrap();
        let expected = MillSettings { bit: Some(BitSettings::default()), ..MillSettings::default() };
        assert_eq!(cli.run.settings().unwrap(), expected);
    }

    #[test]
    fn the_default_and_the_help_have_each_queue_that_is_worked_on() {
        let command = Cli::command();
        let queues = command.get_arguments().find(|argument| argument.get_long() == Some("queues")).unwrap();
        let help = queues.get_long_help().unwrap().to_string();
        let cli = Cli::try_parse_from(["x", "--config.file=config.yml"]).unwrap();
        for queue in TaskQueue::ALL {
            let is_worked_on = queue != TaskQueue::DeadLetter;
            assert_eq!(help.contains(queue.as_str()), is_worked_on, "{help}");
            assert_eq!(cli.run.queues.contains(&queue), is_worked_on, "{}", queue.as_str());
        }
        assert!(help.starts_with(OF_QUEUES) && help.contains(": audit, ") && help.ends_with('.'), "{help}");
    }
}
