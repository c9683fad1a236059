//! `queuekeeper mill run`: its workers and its producer.

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::TaskQueue;
use queuekeeper_mill::bit::item::ROUND;
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::run::MillSettings;

use super::ConfigArgs;
use super::bit_flags::BitArgs;
use super::loop_period::loop_period;
use crate::cli::mail::MailArgs;
use crate::cli::{LogArgs, headings, on_signal};
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
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    workers: u16,

    /// The queues from which tasks are taken, in this order; every tenth time, another queue comes first
    ///
    /// Without it, all of them: audit, duplication-high, bit-error, duplication-low, bit-integrity, bit-report.
    #[arg(
        hide_default_value = true,
        long,
        value_name = "QUEUE",
        value_delimiter = ',',
        default_value = "audit,duplication-high,bit-error,duplication-low,bit-integrity,bit-report",
        value_parser = queue
    )]
    queues: Vec<TaskQueue>,

    /// The loops that this process may lead: copies, checks of all content, counts of spaces
    #[arg(long, value_name = "PRODUCER", value_delimiter = ',', default_value = "duplication,bit,stats")]
    produce: Vec<LoopName>,

    /// The time from the beginning of one loop of copies to the beginning of the next
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = loop_period)]
    frequency: PrometheusDuration,

    /// The number of waiting tasks at which a loop waits
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    queue_limit: u64,

    /// Check every item, not only those that differ, once in this many loops; 0 for never
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    thorough_every: u64,

    /// How long a copy is kept after its source was deleted, and how long content that was deleted or overwritten in a
    /// copy is kept aside
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    delete_after: PrometheusDuration,

    /// The number of items of a space that may be deleted or overwritten in a store within a day; the larger of this
    /// and --brake.percent applies
    #[arg(long = "brake.items", value_name = "NUMBER", default_value_t = 100)]
    brake_items: u32,

    /// The same as a percentage of the items of the space
    #[arg(
        long = "brake.percent",
        value_name = "NUMBER",
        default_value_t = 5,
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
        let bit = self.bit.settings(self.queue_limit)?;
        let mail = ReportMail {
            settings: self.mail.settings(None)?,
            pages: self.external_url.map(|url| url.to_string().trim_end_matches('/').to_owned()),
            ..ReportMail::default()
        };
        let settings = MillSettings {
            workers: self.workers.into(),
            is_duplicating: self.produce.contains(&LoopName::Duplication),
            is_counting: self.produce.contains(&LoopName::Stats),
            bit: self.produce.contains(&LoopName::Bit).then_some(bit),
            queues: self.queues,
            round: ROUND,
            frequency: self.frequency.get(),
            most_waiting: self.queue_limit,
            thorough_every: self.thorough_every,
            delete_after: self.delete_after.get(),
            limit: BrakeLimit { items: self.brake_items, percent: self.brake_percent },
        };
        let listeners = server::listen(&self.listen_address).await?;
        let outcome = Box::pin(server::mill::run(&config, file.stores(), (settings, mail), listeners, &shutdown)).await;
        shutdown.cancel();
        signals.await.context("the task that waits for signals failed")?;
        outcome
    }
}
