//! `queuekeeper catalogue rebuild`: makes the inventory again from what lies in the stores.

use std::fs::File;

use clap::Args;
use queuekeeper_ingest::rebuild::{Note, RebuildError, Totals, rebuild};
use serde::Serialize;

use super::failed;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, IN_PART, REFUSED};
use crate::cli::output::{OutputArgs, Screen, Spinner, is_attended, without_csv};
use crate::cli::prompt::Interrupts;
use crate::cli::repository::{Repository, RepositoryArgs};
use crate::server::standalone::DataDirectory;
use crate::words::counted;

/// How many notes are listed; the others are counted.
const MOST_LISTED: usize = 1000;

/// Rebuild the inventory from the objects in the stores of the profiles, after a catalogue was lost or damaged
///
/// A catalogue that does not exist is created; a damaged file is moved away first, with its -wal and -shm. Missing rows
/// are added and rows that differ are corrected; rows of objects and versions that no store has are listed, and never
/// removed. An object that cannot be recorded is skipped, and the reason printed; so is one that cannot be read from
/// its store, but after 20 of these in a row the command ends. After an interruption, the same command resumes. At the
/// end it checks the catalogue, as `catalogue check` does.
///
/// What no store has cannot be rebuilt: deposits, mails, the audit log, and the media types of deposited files. Added
/// rows have the times at which the versions were stored.
///
/// A newly created catalogue has a new UUID, which daemons refuse as long as the znode /queuekeeper/catalogue has that
/// of the lost one: delete that znode when no process has the lost one open. With --data, which is refused while the
/// repository runs, the next start of the repository accepts the new one.
///
/// Exits with 1 if the check finds something or a store is not reachable, and with 6 if something was skipped or could
/// not be read, or if there are rows without an object.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct RebuildArgs {
    /// Do not prompt
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    catalogue: String,
    id: String,
    /// The spaces that were read, and those without any item.
    spaces: Vec<String>,
    empty: Vec<String>,
    objects: u64,
    versions_same: u64,
    versions_added: u64,
    versions_corrected: u64,
    counters_corrected: u64,
    /// What was skipped, what could not be read, and rows of which no store has anything; at most 1,000 of each are
    /// listed.
    skipped: Notes,
    unreadable: Notes,
    unfounded: Notes,
    /// What the check of the catalogue found.
    findings: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct Notes {
    count: u64,
    listed: Vec<NoteRow>,
}

#[derive(Debug, Serialize)]
struct NoteRow {
    what: String,
    why: String,
}

impl RebuildArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if !self.yes && !is_attended() {
            return Err(UsageError::unprompted("rebuild").into());
        }
        let data = self.repository.data.clone().map(DataDirectory::new);
        let _unused = data.as_ref().map(unused).transpose()?;
        let interrupts = Interrupts::listen()?;
        if !self.yes {
            interrupts.confirm("Add and correct rows of the catalogue from the contents of the stores?").await?;
        }
        let repository = self.repository.create().await?;
        let rebuilt = Box::pin(self.rebuild(&repository, &interrupts)).await;
        interrupts.close().await;
        let id = repository.catalogue.id();
        repository.catalogue.close().await;
        let report = rebuilt?;
        if let Some(data) = &data {
            data.note_rebuilt(id)?;
        }
        self.output.show(&report, |screen| report.show(screen))?;
        report.outcome()
    }

    async fn rebuild(&self, repository: &Repository, interrupts: &Interrupts) -> anyhow::Result<Report> {
        let (roots, empty) = interrupts.unless(Box::pin(repository.roots())).await??;
        if roots.is_empty() {
            let why = "the spaces of the profiles have no objects; nothing was done";
            return Err(CommandError::new(REFUSED, why).into());
        }
        let [mut skipped, mut unreadable, mut unfounded] = [(); 3].map(|()| Notes::default());
        let spinner = Spinner::start("reading objects");
        let work = rebuild(&repository.catalogue, &roots, |note| match note {
            Note::Skipped { what, why } => skipped.add(what, why),
            Note::Unreadable { what, why } => {
                // At once: it may end before there is a report.
                spinner.note(&format!("cannot read {what}: {why}"));
                unreadable.add(what, why);
            }
            Note::Unfounded { ark, what } => unfounded.add(ark, what),
        });
        let totals = tokio::select! {
            biased;
            () = interrupts.wait() => {
                let why = "interrupted; what was done is kept, and the same command resumes";
                return Err(CommandError::new(IN_PART, why).into());
            }
            ended = work => ended,
        };
        let Totals { objects, same, added, corrected, counters, .. } = totals.map_err(|error| match error {
            RebuildError::Catalogue(error) => failed(error),
            error => CommandError::new(FAILED, format!("{error}; the same command resumes")),
        })?;
        drop(spinner);
        let spinner = Spinner::start("checking the catalogue");
        let findings = repository.catalogue.check().await.map_err(failed)?;
        drop(spinner);
        Ok(Report {
            catalogue: repository.catalogue.place().to_owned(),
            id: repository.catalogue.id().to_string(),
            spaces: roots.into_iter().map(|named| named.name).collect(),
            empty,
            objects,
            versions_same: same,
            versions_added: added,
            versions_corrected: corrected,
            counters_corrected: counters,
            skipped,
            unreadable,
            unfounded,
            findings: findings.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The lock of a repository that does not run: what is stored and not recorded yet would be recorded without its media
/// types.
fn unused(data: &DataDirectory) -> anyhow::Result<File> {
    let why = || format!("{} is used by another process; stop the repository first", data.path().display());
    Ok(data.lock_unused()?.ok_or_else(|| CommandError::new(REFUSED, why()))?)
}

impl Notes {
    fn add(&mut self, what: String, why: String) {
        self.count += 1;
        if self.listed.len() < MOST_LISTED {
            self.listed.push(NoteRow { what, why });
        }
    }

    fn show(&self, screen: &mut Screen, heading: &str) {
        if self.count > 0 {
            screen.gap();
            screen.say(heading);
        }
        for NoteRow { what, why } in &self.listed {
            screen.entry(&format!("{what}: {why}"));
        }
    }
}

impl Report {
    fn show(&self, screen: &mut Screen) {
        screen.say(&format!("catalogue {}", self.catalogue));
        screen.fact("UUID", &self.id);
        screen.fact("read", &self.spaces.join(", "));
        if !self.empty.is_empty() {
            screen.fact("empty", &self.empty.join(", "));
        }
        screen.fact("objects", &self.objects.to_string());
        let [added, corrected, same] = [self.versions_added, self.versions_corrected, self.versions_same];
        screen.fact("versions", &format!("{added} added, {corrected} corrected, {same} were right"));
        if self.counters_corrected > 0 {
            screen.fact("counters", &format!("{} corrected", self.counters_corrected));
        }
        self.skipped.show(screen, &format!("{} skipped:", self.skipped.count));
        let objects = counted(self.unreadable.count, "object", "objects");
        self.unreadable.show(screen, &format!("{objects} could not be read:"));
        let rows = counted(self.unfounded.count, "object has", "objects have");
        self.unfounded.show(screen, &format!("{rows} rows have no content in the stores and were kept:"));
        screen.gap();
        for finding in &self.findings {
            screen.entry(finding);
        }
        if self.findings.is_empty() {
            screen.say("The check of the catalogue found nothing wrong.");
        }
    }

    fn outcome(&self) -> anyhow::Result<()> {
        if !self.findings.is_empty() {
            let findings = counted(self.findings.len() as u64, "finding", "findings");
            return Err(CommandError::new(FAILED, format!("catalogue {}: {findings}", self.catalogue)).into());
        }
        if self.skipped.count + self.unreadable.count + self.unfounded.count > 0 {
            let why = format!(
                "catalogue {}: {} skipped, {} could not be read, and {} with rows but no content",
                self.catalogue,
                self.skipped.count,
                counted(self.unreadable.count, "object", "objects"),
                counted(self.unfounded.count, "object", "objects")
            );
            return Err(CommandError::new(IN_PART, why).into());
        }
        Ok(())
    }
}
