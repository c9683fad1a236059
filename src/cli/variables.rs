//! The environment variables of flags, made from the flags' names.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};

use super::headings;

/// Gives each flag that configures something the variable of its name. Help does not show values: they may be secret.
pub(super) fn of_flags(command: Command) -> Command {
    let name = command.get_name().to_owned();
    command.mut_args(|argument| match variable(&name, &argument) {
        // Once a process for each flag, and there for as long as the command is.
        Some(variable) => argument.env(&*variable.leak()).hide_env_values(true),
        None => argument,
    })
}

/// The variable of a flag; `None` for one that is decided anew each time: to say yes for good would be dangerous.
fn variable(command: &str, argument: &Arg) -> Option<String> {
    let long = argument.get_long()?;
    // Of the mill, only what runs for good: the command `mill run`.
    let is_mill = command == "run";
    let is_service =
        is_mill || matches!(command, "serve" | "demo" | "standalone" | "ingest" | "token" | "dump" | "load");
    if !is_service && !long.contains('.') && long != "zookeeper" {
        return None;
    }
    // What only the demo has is under its own name, and so is its ZooKeeper: that of `serve` may be production's. So is
    // what another command has under the same name with another meaning: the audit file of `serve` is rotated by one
    // process alone.
    let prefix = match argument.get_help_heading() {
        // How content is checked is the same for the loop and for requested checks.
        _ if long.starts_with("bit.") => "QUEUEKEEPER_MILL",
        // `--workers` of `ingest` and `--data` of `standalone` mean something else.
        None if is_mill && long != "config.file" => "QUEUEKEEPER_MILL",
        Some(headings::PROBES) if is_mill => "QUEUEKEEPER_MILL",
        Some(headings::DEMO) => "QUEUEKEEPER_DEMO",
        Some(headings::AUDIT) => "QUEUEKEEPER_CLI",
        Some(headings::DUMP) => "QUEUEKEEPER_DUMP",
        // Beside a sidecar on the same host.
        Some(headings::PROBES) => "QUEUEKEEPER_INGEST",
        Some(headings::LOAD) => "QUEUEKEEPER_LOAD",
        Some(_) | None => "QUEUEKEEPER",
    };
    Some(format!("{prefix}_{}", long.replace(['.', '-'], "_").to_uppercase()))
}

/// Adds to an error of the command line which variables stand for flags that it names: they are not visible on the
/// command line.
pub(super) fn blamed(mut error: clap::Error, command: &Command) -> clap::Error {
    let named = [ContextKind::InvalidArg, ContextKind::PriorArg].into_iter().filter_map(|kind| error.get(kind));
    let named = named.flat_map(|value| match value {
        ContextValue::String(flag) => vec![flag.as_str()],
        ContextValue::Strings(flags) => flags.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    });
    let hints: Vec<_> = hints(named, command).into_iter().map(Into::into).collect();
    if !hints.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(hints));
    }
    error
}

/// The same for a message of our own about flags, as `--storage.path`, `--a and --b` or `--zookeeper.tls-*`: in
/// parentheses after a space; empty where no variable stands for one.
pub(super) fn blame(flags: &str, command: &Command) -> String {
    let hints: Vec<_> = hints(flags.split(' '), command).into_iter().collect();
    if hints.is_empty() { String::new() } else { format!(" ({})", hints.join(", ")) }
}

/// Which variables stand for these flags, one sentence each.
fn hints<'a>(flags: impl Iterator<Item = &'a str>, command: &Command) -> BTreeSet<String> {
    let given = given_command(command);
    let longs = flags.filter_map(|flag| flag.strip_prefix("--")?.split([' ', '=']).next());
    let variables = longs.flat_map(|long| set_for(given, long));
    variables.map(|variable| format!("{variable} is set in the environment")).collect()
}

/// Whether the flag is on the command line, which precedes its variable.
fn is_given(long: &str) -> bool {
    let is_it = |given: &OsStr| {
        let given = given.to_str().and_then(|given| given.strip_prefix("--")).unwrap_or_default();
        given.split('=').next() == Some(long)
    };
    std::env::args_os().any(|given| is_it(&given))
}

/// The command on the command line: two commands may give one flag different variables.
fn given_command(command: &Command) -> &Command {
    let below = |above, word: OsString| Command::find_subcommand(above, word).unwrap_or(above);
    std::env::args_os().skip(1).fold(command, below)
}

/// The variable of a command's flag, where it is set and the flag is not given; of a pattern, those of all its flags.
fn set_for(command: &Command, long: &str) -> Vec<String> {
    let is_meant = |own: &str| long.strip_suffix('*').map_or(own == long, |start| own.starts_with(start));
    let flags =
        command.get_arguments().filter(|flag| flag.get_long().is_some_and(|own| is_meant(own) && !is_given(own)));
    let set = flags.filter_map(|flag| flag.get_env().filter(|variable| std::env::var_os(variable).is_some()));
    set.map(|variable| variable.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// What there is in the environments of installations: none of these may change by accident.
    const VARIABLES: [&str; 95] = [
        "QUEUEKEEPER_ACCESS_LIFETIME",
        "QUEUEKEEPER_AUDIT_FILE",
        "QUEUEKEEPER_AUDIT_FILES",
        "QUEUEKEEPER_AUDIT_SIZE",
        "QUEUEKEEPER_CLEANUP_AFTER",
        "QUEUEKEEPER_CLEANUP_SHARE",
        "QUEUEKEEPER_CLI_AUDIT_FILE",
        "QUEUEKEEPER_CONFIG_FILE",
        "QUEUEKEEPER_DAEMONS",
        "QUEUEKEEPER_DATA",
        "QUEUEKEEPER_DEMO_JOBS",
        "QUEUEKEEPER_DEMO_RATE",
        "QUEUEKEEPER_DEMO_SEED",
        "QUEUEKEEPER_DEMO_WITH_PROMETHEUS",
        "QUEUEKEEPER_DEMO_ZOOKEEPER",
        "QUEUEKEEPER_DEPOSITS_PROFILES",
        "QUEUEKEEPER_DEPOSITS_WORKING",
        "QUEUEKEEPER_DOWNLOAD_CONNECTIONS",
        "QUEUEKEEPER_DOWNLOAD_CONNECTIONS_PER_HOST",
        "QUEUEKEEPER_DUMP_OUTPUT",
        "QUEUEKEEPER_DUMP_REDACT",
        "QUEUEKEEPER_EXPIRES",
        "QUEUEKEEPER_FAULTS_BATCH_PROCESSING",
        "QUEUEKEEPER_FAULTS_GRACE",
        "QUEUEKEEPER_FAULTS_JOB_LOCK",
        "QUEUEKEEPER_FAULTS_PAUSE",
        "QUEUEKEEPER_FAULTS_REPORT",
        "QUEUEKEEPER_FAULTS_RETRIES",
        "QUEUEKEEPER_FAULTS_STUCK",
        "QUEUEKEEPER_HASH",
        "QUEUEKEEPER_INGEST_WEB_LISTEN_ADDRESS",
        "QUEUEKEEPER_LOAD_LARGEST_NUMBER",
        "QUEUEKEEPER_LOAD_RESUME",
        "QUEUEKEEPER_LOG_FORMAT",
        "QUEUEKEEPER_LOG_LEVEL",
        "QUEUEKEEPER_MAIL_CA_FILE",
        "QUEUEKEEPER_MAIL_COPY_TO",
        "QUEUEKEEPER_MAIL_CREDENTIALS_FILE",
        "QUEUEKEEPER_MAIL_DIRECTORY",
        "QUEUEKEEPER_MAIL_FROM",
        "QUEUEKEEPER_MAIL_REPLY_TO",
        "QUEUEKEEPER_MAIL_SERVER",
        "QUEUEKEEPER_MAIL_TLS",
        "QUEUEKEEPER_METRICS_COLLECTIONS",
        "QUEUEKEEPER_MILL_BIT_EXCLUDE",
        "QUEUEKEEPER_MILL_BIT_INCLUDE",
        "QUEUEKEEPER_MILL_BIT_MAX_AGE",
        "QUEUEKEEPER_MILL_BIT_SPACES",
        "QUEUEKEEPER_MILL_BRAKE_ITEMS",
        "QUEUEKEEPER_MILL_BRAKE_PERCENT",
        "QUEUEKEEPER_MILL_DATA",
        "QUEUEKEEPER_MILL_DELETE_AFTER",
        "QUEUEKEEPER_MILL_FREQUENCY",
        "QUEUEKEEPER_MILL_PRODUCE",
        "QUEUEKEEPER_MILL_QUEUES",
        "QUEUEKEEPER_MILL_QUEUE_LIMIT",
        "QUEUEKEEPER_MILL_THOROUGH_EVERY",
        "QUEUEKEEPER_MILL_WEB_LISTEN_ADDRESS",
        "QUEUEKEEPER_MILL_WORKERS",
        "QUEUEKEEPER_MIRROR_CLOCK_INTERVAL",
        "QUEUEKEEPER_MIRROR_DRIFT_INTERVAL",
        "QUEUEKEEPER_MIRROR_DROP_AFTER",
        "QUEUEKEEPER_MIRROR_READ_BUDGET",
        "QUEUEKEEPER_MIRROR_SESSION_ADDRESSES",
        "QUEUEKEEPER_MIRROR_STALE_AFTER",
        "QUEUEKEEPER_NO_JAVA_READERS",
        "QUEUEKEEPER_PROFILES",
        "QUEUEKEEPER_PROMETHEUS_MATCHERS",
        "QUEUEKEEPER_PROMETHEUS_URL",
        "QUEUEKEEPER_RETRY_WITHIN",
        "QUEUEKEEPER_ROLE",
        "QUEUEKEEPER_SERVE_WORKING",
        "QUEUEKEEPER_SERVE_WORKING_ALLOW",
        "QUEUEKEEPER_SERVE_WORKING_URL",
        "QUEUEKEEPER_SHUTDOWN_TIMEOUT",
        "QUEUEKEEPER_SPACE_LARGE",
        "QUEUEKEEPER_SPACE_UNKNOWN",
        "QUEUEKEEPER_STORAGE_PATH",
        "QUEUEKEEPER_STORAGE_THRESHOLD",
        "QUEUEKEEPER_WEB_CONFIG_FILE",
        "QUEUEKEEPER_WEB_EXTERNAL_URL",
        "QUEUEKEEPER_WEB_LISTEN_ADDRESS",
        "QUEUEKEEPER_WEB_ROUTE_PREFIX",
        "QUEUEKEEPER_WEB_TELEMETRY_PATH",
        "QUEUEKEEPER_WORKERS",
        "QUEUEKEEPER_WORKING",
        "QUEUEKEEPER_ZOOKEEPER",
        "QUEUEKEEPER_ZOOKEEPER_ACL",
        "QUEUEKEEPER_ZOOKEEPER_AUTH_FILE",
        "QUEUEKEEPER_ZOOKEEPER_CONNECTION_TIMEOUT",
        "QUEUEKEEPER_ZOOKEEPER_SESSION_TIMEOUT",
        "QUEUEKEEPER_ZOOKEEPER_TLS_CA_FILE",
        "QUEUEKEEPER_ZOOKEEPER_TLS_CERT_FILE",
        "QUEUEKEEPER_ZOOKEEPER_TLS_ENABLED",
        "QUEUEKEEPER_ZOOKEEPER_TLS_KEY_FILE",
    ];

    /// What the packages and examples configure services by.
    const PACKAGED: [&str; 4] = [
        include_str!("../../packaging/debian/queuekeeper.default"),
        include_str!("../../packaging/image/config.json"),
        include_str!("../../packaging/compose/compose.yml"),
        include_str!("../../packaging/kubernetes/queuekeeper.yaml"),
    ];

    #[test]
    fn every_variable_of_the_packages_is_one() {
        let is_of_name = |c: char| c.is_ascii_uppercase() || c == '_';
        let names = PACKAGED.iter().flat_map(|text| text.split(|c| !is_of_name(c)));
        let named: Vec<_> = names.filter(|name| name.starts_with("QUEUEKEEPER_")).collect();
        assert!(named.len() > PACKAGED.len(), "{named:?}");
        let unknown: Vec<_> = named.into_iter().filter(|name| !VARIABLES.contains(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    fn with_those_below(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().flat_map(with_those_below);
        std::iter::once(command).chain(below).collect()
    }

    #[test]
    fn every_flag_that_configures_has_its_variable_and_no_other_has_one() {
        let command = crate::cli::command();
        let mut variables = BTreeSet::new();
        for subcommand in command.get_subcommands().flat_map(with_those_below) {
            for argument in subcommand.get_arguments() {
                let Some(variable) = argument.get_env() else {
                    let configures = argument.get_long().is_some_and(|long| long.contains('.'));
                    assert!(!configures, "{}: {argument}", subcommand.get_name());
                    continue;
                };
                assert!(argument.is_hide_env_values_set(), "{argument}");
                variables.insert(variable.to_str().unwrap().to_owned());
            }
        }
        assert_eq!(variables.iter().collect::<Vec<_>>(), VARIABLES);
        let jobs = command.find_subcommand("jobs").unwrap();
        let run = command.find_subcommand("mill").unwrap().find_subcommand("run").unwrap();
        let lacks: Vec<_> =
            run.get_arguments().filter(|flag| flag.get_long().is_some() && flag.get_env().is_none()).collect();
        assert!(lacks.is_empty(), "{lacks:?}");
        for (flag, variable) in [("yes", None), ("all", None), ("servers", Some("QUEUEKEEPER_ZOOKEEPER"))] {
            let argument = jobs.get_arguments().find(|argument| argument.get_id() == flag).unwrap();
            assert_eq!(argument.get_env().and_then(|variable| variable.to_str()), variable, "{flag}");
        }
    }
}
