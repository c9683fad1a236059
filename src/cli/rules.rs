//! `queuekeeper rules`: what may be done about alerts, checked and tried.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;

use super::client::ClientArgs;
use super::exit::{Ending, FAILED};
use super::output::{Screen, write};
use super::serve::volume::VolumeArgs;
use super::{UsageError, block_on};
use crate::alerts::{Mode, Trial};
use crate::config::ConfigFile;
use crate::metrics::storage::Space;
use queuekeeper_zookeeper::coordination::Coordination;

/// No message of Alertmanager is larger, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// How many items are named of each alert.
const NAMED: usize = 20;

/// Check the rules by which alerts act, or try what they would do now
#[derive(Clone, Debug, Args)]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Check(CheckArgs),
    // Boxed, since it has the flags of a command that looks at the queue.
    Test(Box<TestArgs>),
}

/// Check the rules of files for --config.file, and say what each of them does
#[derive(Clone, Debug, Args)]
struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Say what the rules would do about alerts now, and do nothing
#[derive(Clone, Debug, Args)]
struct TestArgs {
    /// The file for --config.file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What Alertmanager sends: the JSON of its webhook; - for standard input
    #[arg(long, value_name = "FILE")]
    alert: PathBuf,

    #[command(flatten)]
    volume: VolumeArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl RulesArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Check(args) => args.run(),
            Command::Test(args) => block_on(args.run()),
        }
    }
}

impl CheckArgs {
    /// # Errors
    /// When a file cannot be taken ([`UsageError`]).
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
                        (0, _) => format!("{} is right, and has no rules", path.display()),
                        (1, _) => format!("{} is right: 1 rule", path.display()),
                        (all, acting) => format!("{} is right: {all} rules, {acting} of them acting", path.display()),
                    });
                    for rule in &rules.rules {
                        screen.say(&format!(
                            "  {} ({}): on {}, {}",
                            rule.name,
                            rule.mode.label(),
                            rule.alert,
                            rule.remedy.label()
                        ));
                    }
                    write(screen.text())?;
                }
                Err(error) => wrong.push(error.to_string()),
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(UsageError(wrong.join("\n")).into()) }
    }
}

/// What would come of one alert by one rule, as a program reads it.
#[derive(Debug, Serialize)]
struct TrialView {
    alert: String,
    fingerprint: String,
    rule: Option<String>,
    /// `would_act`, or why not.
    outcome: &'static str,
    is_dry: bool,
    detail: String,
    targets: Vec<String>,
}

impl TestArgs {
    /// # Errors
    /// When a file cannot be taken ([`UsageError`]) or the queue cannot be read.
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
        let trials = self.client.ask(async |link| {
            let store = link.store(true).await?;
            let seen = Coordination::over(link.client.clone()).read().await;
            let seen =
                seen.map_err(|error| Ending::new(FAILED, format!("what rules remember cannot be read: {error}")))?;
            let trials = Trial::all(file.rules(), &body, &store, space, &seen, Timestamp::now());
            Ok(trials.map_err(|error| UsageError(format!("{}: {error}", self.alert.display())))?)
        });
        let views: Vec<_> = trials.await?.into_iter().map(TrialView::from).collect();
        self.client.output.show(&views, |screen| show(&views, screen))
    }
}

impl From<Trial> for TrialView {
    fn from(trial: Trial) -> Self {
        let Trial { alert, fingerprint, rule, is_dry, outcome, detail, targets } = trial;
        Self { alert, fingerprint, rule, outcome: outcome.unwrap_or("would_act"), is_dry, detail, targets }
    }
}

fn show(trials: &[TrialView], screen: &mut Screen) {
    if trials.is_empty() {
        screen.say("The message holds no alert.");
    }
    for trial in trials {
        let rule = trial.rule.as_deref().unwrap_or("no rule");
        let dry = if trial.is_dry { ", which only tells" } else { "" };
        screen.say(&format!("{} ({}), {rule}{dry}: {}", trial.alert, trial.fingerprint, trial.outcome));
        screen.beneath(&trial.detail);
        for target in trial.targets.iter().take(NAMED) {
            screen.beneath(target);
        }
        if trial.targets.len() > NAMED {
            screen.beneath(&format!("and {} more", trial.targets.len() - NAMED));
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let refuse = |error: std::io::Error| UsageError::flag("--alert", format!("{}: {error}", path.display()));
    if path.as_os_str() == "-" {
        std::io::stdin().take(LARGEST + 1).read_to_end(&mut body).map_err(refuse)?;
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut body)).map_err(refuse)?;
    }
    if body.len() as u64 > LARGEST {
        return Err(UsageError::flag("--alert", "it is larger than 1 MiB, the most that is taken").into());
    }
    Ok(body)
}
