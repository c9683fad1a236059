//! The command line and the exit codes.

use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::views::show::visible;
use commands::commands;

mod access;
mod act;
mod actions;
mod actor;
mod batch;
mod batches;
mod catalogue;
pub mod check;
mod client;
mod collection;
mod commands;
mod completion;
mod config;
mod daemons;
mod dashboards;
pub mod demo;
#[cfg(test)]
mod documented;
pub mod dump;
mod exit;
mod failures;
mod faults;
mod headings;
mod ingest;
mod job;
mod jobs;
mod listen;
pub mod load;
mod lock;
mod locks;
mod log;
mod mail;
mod man_pages;
mod meter;
mod mill;
mod object;
mod output;
mod paging;
mod password;
mod probe;
mod profiles;
mod prompt;
mod queue;
mod repository;
mod rules;
pub mod serve;
mod standalone;
mod status;
mod stops;
mod store;
mod submit;
pub mod token;
mod variables;
mod verbs;
mod words;
mod zookeeper;

pub use exit::{BAD_USAGE, FAILED};
pub use log::LogArgs;
pub use zookeeper::ZooKeeperArgs;

/// A thread that hangs in the kernel, as in a dead file system, is not waited for longer than this at the end.
const THREADS_LIMIT: Duration = Duration::from_millis(200);

/// Show, run and repair a Merritt-style ingest queue in ZooKeeper: status page, metrics, daemons, copies and fixity
#[derive(Debug, Parser)]
#[command(name = "queuekeeper", subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

commands! {
    enum Command {
        Serve(serve::ServeArgs),
        Demo(demo::DemoArgs),
        Standalone(standalone::StandaloneArgs),
        Ingest(ingest::IngestArgs),
        Submit(submit::SubmitArgs),
        Dump(dump::DumpArgs),
        Load(load::LoadArgs),
        Status(status::StatusArgs),
        Jobs(jobs::JobsArgs),
        Job(job::JobArgs),
        Failures(failures::FailuresArgs),
        Batches(batches::BatchesArgs),
        Batch(batch::BatchArgs),
        Access(access::AccessArgs),
        Locks(locks::LocksArgs),
        Lock(lock::LockArgs),
        Daemons(daemons::DaemonsArgs),
        Queue(queue::QueueArgs),
        Collection(collection::CollectionArgs),
        Faults(faults::FaultsArgs),
        Dashboards(dashboards::DashboardsArgs) at_once,
        CheckWebConfig(check::CheckArgs) at_once,
        Completion(completion::CompletionArgs) at_once,
        ManPages(man_pages::ManPagesArgs) at_once,
        Probe(probe::ProbeArgs),
        CheckConfig(check::CheckConfigArgs),
        Rules(rules::RulesArgs),
        Store(store::StoreArgs),
        Object(object::ObjectArgs),
        Catalogue(catalogue::CatalogueArgs),
        Mill(mill::MillArgs),
        Profiles(profiles::ProfilesArgs) at_once,
        Token(token::TokenArgs) at_once,
        Password(password::PasswordArgs) at_once,
    }
}

/// A command that cannot start because of its arguments or a missing program: one line, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// An error that names the wrong flag, why it is wrong, and the environment variable that set it.
    pub fn flag(flag: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("{flag}: {why}{}", variables::blame(flag, &command())))
    }

    /// An error of a command that would prompt, and has no terminal for that.
    fn unprompted(action: &str) -> Self {
        Self(format!("no terminal to prompt on: pass --yes to {action} without a prompt"))
    }
}

/// Runs the command line and returns the exit code.
#[must_use]
pub fn run() -> ExitCode {
    let matches = command().try_get_matches();
    let matches = matches.unwrap_or_else(|error| conceal(variables::blamed(error, &command())).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match block_on(cli.command.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = if error.downcast_ref::<UsageError>().is_some() {
                BAD_USAGE
            } else {
                error.downcast_ref::<exit::CommandError>().map_or(FAILED, |error| error.code)
            };
            // Not through the log, which may be JSON or not started yet: the message is for the user at the terminal.
            // It may contain text from znodes.
            let line = visible(&format!("error: {}", exit::with_causes(&error)));
            let _ = writeln!(std::io::stderr(), "{line}");
            ExitCode::from(code)
        }
    }
}

/// Makes a wrong value safe to show: without the part before an `@` that may be the login of a URL, since values may
/// come from the environment and errors end up in logs; and with control characters escaped. A mail address is shown as
/// it is.
fn conceal(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let login = value.rsplit_once('@').filter(|(before, _)| before.contains([':', '/']));
        let shown = login.map_or_else(|| value.clone(), |(_, behind)| format!("…@{behind}"));
        error.insert(ContextKind::InvalidValue, ContextValue::String(visible(&shown)));
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && name.starts_with("ark:")
    {
        let hint = format!("an object is shown by 'object show {}'", visible(name));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

fn command() -> clap::Command {
    use crate::metrics::build;

    static VERSION: LazyLock<String> = LazyLock::new(|| {
        format!("{} (revision {} of {}, rustc {})", build::VERSION, build::revision(), build::date(), build::rustc())
    });
    completed(Cli::command().version(VERSION.as_str()))
}

/// The flags for servers, paths and limits that the short help of `serve` shows, since most installations set them.
const COMMON: [&str; 9] = [
    "zookeeper.auth-file",
    "web.listen-address",
    "web.external-url",
    "web.config.file",
    "config.file",
    "audit.file",
    "storage.path",
    "metrics.collections",
    "log.level",
];

/// Adds what all commands have: variables, exit codes, and a short help without what is rarely set.
fn completed(command: clap::Command) -> clap::Command {
    let command = variables::of_flags(command).after_long_help(exit::CODES);
    let is_server = command.get_name() == "serve";
    let is_common = |long: &str| !long.contains('.') || (is_server && COMMON.contains(&long));
    let brief = |argument: clap::Arg| {
        let is_common = argument.get_long().is_none_or(is_common);
        if is_common { argument } else { argument.hide_short_help(true) }
    };
    let command = if command.get_name() == "demo" { command } else { command.mut_args(brief) };
    command.mut_subcommands(completed)
}

fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        // A file may reach the limit of its size (`ulimit -f`). Without a listener that ends the process; with one, the
        // write fails, and says so.
        let _too_large = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        work.await
    });
    runtime.shutdown_timeout(THREADS_LIMIT);
    outcome
}

/// A token that SIGTERM, SIGINT and SIGHUP cancel, and the task that waits for them; it ends when the token is
/// cancelled. A process that was started to go on when its terminal is gone, as by nohup, does so.
///
/// # Errors
/// When the signals cannot be listened to.
pub fn on_signal() -> std::io::Result<(CancellationToken, tokio::task::JoinHandle<()>)> {
    let hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
    on_signals(hangup)
}

/// The same for a server, which SIGHUP does not end: these are given besides.
///
/// # Errors
/// When the signals cannot be listened to.
pub(crate) fn on_signal_and_hangups() -> std::io::Result<(CancellationToken, tokio::task::JoinHandle<()>, Signal)> {
    let hangups = signal(SignalKind::hangup())?;
    let (shutdown, waiting) = on_signals(None)?;
    Ok((shutdown, waiting, hangups))
}

/// Completes at the second SIGTERM or SIGINT from now on: what is under way is not waited for then.
///
/// # Errors
/// When the signals cannot be listened to.
pub(crate) fn second_signal() -> std::io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    })
}

fn on_signals(hangup: Option<Signal>) -> std::io::Result<(CancellationToken, tokio::task::JoinHandle<()>)> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = CancellationToken::new();
    let cancel = shutdown.clone();
    let waiting = tokio::spawn(async move {
        let hung_up = async {
            match hangup {
                Some(mut hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hung_up => "SIGHUP",
            () = cancel.cancelled() => return,
        };
        tracing::info!(signal = name, "ending");
        cancel.cancel();
    });
    Ok((shutdown, waiting))
}

/// Whether the process was started with SIGHUP ignored.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_first_signal_in(&status, "SigIgn:")
}

/// Whether the mask of that name has the first signal, which is SIGHUP everywhere.
fn is_first_signal_in(status: &str, name: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u128::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_found_in_what_the_system_says_of_the_process() {
        for (mask, expected) in [("0000000000000001", true), ("0000000000001001", true), ("0000000000001000", false)] {
            let status = format!("SigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
            assert_eq!(is_first_signal_in(&status, "SigIgn:"), expected, "{mask}");
        }
        assert!(!is_first_signal_in("", "SigIgn:"));
    }

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }

    /// The lines of the short help of each command, on a terminal of 80 columns.
    fn short_helps(command: clap::Command) -> Vec<(String, Vec<String>)> {
        let mut command = command.term_width(80);
        let help = command.render_help().to_string();
        let own = (command.get_name().to_owned(), help.lines().map(str::to_owned).collect());
        let below: Vec<_> = command.get_subcommands().cloned().collect();
        [own].into_iter().chain(below.into_iter().flat_map(short_helps)).collect()
    }

    #[test]
    fn the_short_help_of_every_command_has_less_than_60_lines_and_begins_with_what_is_most_used() {
        let helps = short_helps(command());
        assert!(helps.len() > 20);
        for (name, lines) in &helps {
            assert!(lines.len() < 60, "{name}: {} lines:\n{}", lines.len(), lines.join("\n"));
            let longest = lines.iter().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{name}: {}", lines.join("\n"));
        }
        let of = |name: &str| helps.iter().find(|(other, _)| other == name).unwrap().1.join("\n");
        let jobs = of("jobs");
        let places = ["--output", "--state", "--limit", "--reason", "--zookeeper"].map(|flag| jobs.find(flag).unwrap());
        assert!(places.is_sorted(), "{jobs}");
        let (serve, flags) = (of("serve"), command());
        let serve_flags = flags.find_subcommand("serve").unwrap();
        for flag in COMMON {
            assert!(serve.contains(&format!("--{flag} ")), "{flag}: {serve}");
            assert!(serve_flags.get_arguments().any(|argument| argument.get_long() == Some(flag)), "{flag}");
        }
        assert!(!serve.contains("--zookeeper.tls-ca-file") && !serve.contains("Exit codes"), "{serve}");
    }

    #[test]
    fn no_line_of_the_exit_codes_is_wrapped_again() {
        assert!(exit::CODES.lines().all(|line| line.chars().count() <= 80));
    }
}
