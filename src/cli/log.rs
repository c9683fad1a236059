//! The log: to standard error, as text for people or as JSON for programs.

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How to log.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// The least important messages to log
    #[arg(
        long = "log.level",
        env = "QUEUEKEEPER_LOG_LEVEL",
        hide_env_values = true,
        value_name = "LEVEL",
        default_value = "info"
    )]
    level: Level,

    /// How a message is written
    #[arg(
        long = "log.format",
        env = "QUEUEKEEPER_LOG_FORMAT",
        hide_env_values = true,
        value_name = "FORMAT",
        default_value = "text"
    )]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogArgs {
    /// Begins to log. A second time in a process it does nothing.
    pub fn begin(&self) {
        let level = match self.level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        };
        // What libraries say is for those who mend them: the client library warns of each failed handshake, and we say
        // once, and why, that there is no connection.
        let libraries = match self.level {
            Level::Error | Level::Warn | Level::Info => LevelFilter::ERROR,
            Level::Debug => LevelFilter::WARN,
            Level::Trace => LevelFilter::DEBUG,
        };
        let filter = Targets::new().with_default(libraries).with_target("queuekeeper", level);
        let registry = tracing_subscriber::registry().with(filter);
        let begun = match self.format {
            Format::Text => {
                let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
                registry.with(fmt::layer().with_writer(std::io::stderr).with_ansi(is_terminal)).try_init()
            }
            Format::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init(),
        };
        // A test that runs several servers in one process has a log already.
        drop(begun);
    }
}

/// Begins to log what whoever typed a command must know beside its answer: warnings and errors of ours, as plain lines.
pub(super) fn begin_for_people() {
    let filter = Targets::new().with_target("queuekeeper", LevelFilter::WARN);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false).without_time();
    drop(tracing_subscriber::registry().with(filter).with(lines).try_init());
}
