//! `queuekeeper rules`: checks and tests the rules for alerts.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::UsageError;
use super::client::ClientArgs;
use super::commands::commands;
use super::exit::{CommandError, FAILED};
use super::output::{Screen, without_csv, write};
use super::serve::volume::VolumeArgs;
use crate::alerts::{MAX_MESSAGE_BYTES, Mode, RuleTest};
use crate::config::ConfigFile;
use crate::metrics::working_storage::Space;
use crate::words::size;
use queuekeeper_zookeeper::coordination::Coordination;

/// How many targets of each alert are listed.
const NAMED: usize = 20;

/// Check the rules for alerts, or test what they would do now
#[derive(Clone, Debug, Args)]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    enum Command {
        Check(CheckArgs) at_once,
        Test(TestArgs),
    }
}

/// Check the rules in files for --config.file, and list them
#[derive(Clone, Debug, Args)]
struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Show what the rules would do about alerts now, without doing it
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
struct TestArgs {
    /// The file for --config.file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The message of Alertmanager, as the JSON of its webhook; - for standard input
    #[arg(long, value_name = "FILE")]
    alert: PathBuf,

    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl RulesArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        self.command.run().await
    }
}

impl CheckArgs {
    /// # Errors
    /// When a file is not valid ([`UsageError`]).
    fn run(&self) -> anyhow::Result<()> {
        let mut wrong: Vec<String> = Vec::new();
        for path in &self.files {
            match ConfigFile::read(path) {
                Ok(file) => {
                    let rules = file.rules();
                    let acting = rules.rules.iter().filter(|rule| rule.mode == Mode::Enforce).count();
                    let mut screen = Screen::new();
                    let all = rules.rules.len();
                    screen.say(&match (all, acting) {
                        (0, _) => format!("{} is valid and has no rules", path.display()),
                        (1, _) => format!("{} is valid: 1 rule", path.display()),
                        (all, acting) => {
                            format!("{} is valid: {all} rules, {acting} of them enforcing", path.display())
                        }
                    });
                    for rule in &rules.rules {
                        screen.item(
                            "  - ",
                            &format!(
                                "{} ({}): on {}, {}",
                                rule.name,
                                rule.mode.label(),
                                rule.alert,
                                rule.action.label()
                            ),
                        );
                    }
                    write(screen.text())?;
                }
                Err(error) => wrong.push(error.to_string()),
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(UsageError(wrong.join("\n")).into()) }
    }
}

/// The response of one rule to one alert, as JSON.
#[derive(Debug, Serialize)]
struct RuleTestView {
    alert: String,
    fingerprint: String,
    rule: Option<String>,
    /// `would_act`, or the outcome.
    outcome: &'static str,
    is_dry: bool,
    detail: String,
    targets: Vec<String>,
}

impl TestArgs {
    /// # Errors
    /// When a file is not valid ([`UsageError`]) or the queue cannot be read.
    async fn run(self) -> anyhow::Result<()> {
        let file = ConfigFile::read(&self.file).map_err(|error| UsageError(error.to_string()))?;
        let body = read(&self.alert)?;
        let space = match self.volume.clone().volume() {
            None => None,
            Some(volume) => {
                let space = Space::of(&volume.path).map_err(|error| UsageError::flag("--storage.path", error))?;
                Some(space.left_below(volume.threshold))
            }
        };
        let tests = self.client.ask(async |link| {
            let store = link.store(true).await?;
            let seen = Coordination::over(link.client.clone()).read().await;
            let seen = seen
                .map_err(|error| CommandError::new(FAILED, format!("cannot read the state of the rules: {error}")))?;
            let tests = RuleTest::all(file.rules(), &body, &store, space, &seen, Timestamp::now());
            Ok(tests.map_err(|error| UsageError(format!("{}: {error}", self.alert.display())))?)
        });
        let views: Vec<_> = tests.await?.into_iter().map(RuleTestView::from).collect();
        self.client.output.show(&views, |screen| show(&views, screen))
    }
}

impl From<RuleTest> for RuleTestView {
    fn from(test: RuleTest) -> Self {
        let RuleTest { alert, fingerprint, rule, is_dry, outcome, detail, targets } = test;
        Self { alert, fingerprint, rule, outcome: outcome.unwrap_or("would_act"), is_dry, detail, targets }
    }
}

fn show(tests: &[RuleTestView], screen: &mut Screen) {
    if tests.is_empty() {
        screen.say("The message contains no alerts.");
    }
    for test in tests {
        let rule = test.rule.as_deref().unwrap_or("no rule");
        let dry = if test.is_dry { " (dry run)" } else { "" };
        screen.entry(&format!("{} ({}), {rule}{dry}: {}", test.alert, test.fingerprint, test.outcome));
        screen.beneath(&test.detail);
        for target in test.targets.iter().take(NAMED) {
            screen.entry_beneath(target);
        }
        if test.targets.len() > NAMED {
            screen.beneath(&format!("and {} more", test.targets.len() - NAMED));
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let (mut body, limit) = (Vec::new(), MAX_MESSAGE_BYTES as u64);
    let refuse = |error: std::io::Error| UsageError::flag("--alert", format!("{}: {error}", path.display()));
    if path.as_os_str() == "-" {
        std::io::stdin().take(limit + 1).read_to_end(&mut body).map_err(refuse)?;
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut body)).map_err(refuse)?;
    }
    if body.len() > MAX_MESSAGE_BYTES {
        return Err(UsageError::flag("--alert", format!("larger than the limit of {}", size(limit))).into());
    }
    Ok(body)
}
