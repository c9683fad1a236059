//! The command line: what it takes, and what the process ends with.

use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio_util::sync::CancellationToken;

pub mod check;
pub mod demo;
mod log;
pub mod serve;
mod zookeeper;

pub use log::LogArgs;
pub use zookeeper::ZooKeeperArgs;

/// The process could not go on, or could not begin although its usage was right.
pub const FAILED: u8 = 1;

/// A flag, a value or a file that it names was wrong, or something is not installed.
pub const BAD_USAGE: u8 = 2;

/// A thread that hangs in the kernel, as in a dead file system, is not waited for longer than this at the end.
const THREADS_LIMIT: Duration = Duration::from_millis(200);

const EXIT_CODES: &str = "\
Exit codes:
  0  ended by SIGTERM or SIGINT, or nothing was left to do
  1  failed while running, such as an address that cannot be listened on
  2  a wrong flag, value or file named by one, or something that is not installed";

/// Watches a Merritt-style ingest queue in ZooKeeper and serves it as Prometheus metrics and a status page.
#[derive(Debug, Parser)]
#[command(name = "queuekeeper", after_help = EXIT_CODES, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(after_help = EXIT_CODES)]
    // Boxed, since it has many more flags than the others.
    Serve(Box<serve::ServeArgs>),
    #[command(after_help = EXIT_CODES)]
    Demo(demo::DemoArgs),
    #[command(after_help = EXIT_CODES)]
    CheckWebConfig(check::CheckArgs),
}

/// A command that cannot begin, because of what it was told or of what is not there: one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// Says which flag is wrong, and why.
    pub fn flag(flag: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("{flag}: {why}"))
    }
}

/// Reads the command line, does what it says and gives back what the process ends with.
#[must_use]
pub fn run() -> ExitCode {
    let matches = command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match cli.command {
        Command::Serve(args) => block_on(args.run()),
        Command::Demo(args) => block_on(args.run()),
        Command::CheckWebConfig(args) => args.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let is_usage = error.downcast_ref::<UsageError>().is_some();
            // The log may be JSON, or not begun yet: what ends the process is for whoever started it.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(if is_usage { BAD_USAGE } else { FAILED })
        }
    }
}

fn command() -> clap::Command {
    use crate::metrics::build;

    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} (revision {}, rustc {})", build::VERSION, build::revision(), build::rustc()));
    Cli::command().version(VERSION.as_str())
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(THREADS_LIMIT);
    outcome
}

/// A token that SIGTERM and SIGINT cancel, and the task that waits for them; it ends when the token is cancelled.
///
/// # Errors
/// When the signals cannot be listened to.
pub fn on_signal() -> std::io::Result<(CancellationToken, tokio::task::JoinHandle<()>)> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = CancellationToken::new();
    let cancel = shutdown.clone();
    let waiting = tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = cancel.cancelled() => return,
        };
        tracing::info!(signal = name, "ending");
        cancel.cancel();
    });
    Ok((shutdown, waiting))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together_and_every_flag_has_its_variable() {
        let command = command();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands() {
            for argument in subcommand.get_arguments() {
                let Some(long) = argument.get_long().filter(|long| !matches!(*long, "help" | "version")) else {
                    continue;
                };
                // What only the demo has is under its own name, and so is its ZooKeeper: that of `serve` may be
                // production's.
                let is_demo = argument.get_help_heading() == Some("Demo");
                let prefix = if is_demo { "QUEUEKEEPER_DEMO" } else { "QUEUEKEEPER" };
                let expected = format!("{prefix}_{}", long.replace(['.', '-'], "_").to_uppercase());
                let variable = argument.get_env().and_then(|name| name.to_str());
                assert_eq!(variable, Some(expected.as_str()), "--{long}");
            }
        }
    }
}
