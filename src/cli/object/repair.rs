//! `queuekeeper object repair`: finishes or removes what a writer left that was stopped.

mod held;

use std::sync::Arc;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use queuekeeper_ingest::ark::Ark;
use queuekeeper_ingest::engine::CATALOGUE;
use queuekeeper_queue::Queue;
use queuekeeper_store::ocfl::{Abandoned, OcflError, Repaired, Root};
use queuekeeper_store::{Error, ErrorKind, Guarded, Store, WriteGuard};
use serde::Serialize;
use uuid::Uuid;

use crate::cli::exit::{CommandError, FAILED, IN_PART, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, Screen, Spinner, is_attended, without_csv};
use crate::cli::prompt::Interrupts;
use crate::cli::repository::{Located, ObjectName, Repository, RepositoryArgs};
use crate::cli::zookeeper::of_data;
use crate::cli::{UsageError, ZooKeeperArgs, store};
use crate::server::standalone::DataDirectory;
use crate::views::PrometheusDuration;
use crate::words::counted;
use held::Held;

/// Finish or roll back an interrupted write
///
/// It shows what it will do, and prompts; a sound object is not changed. Content that an inventory names is never
/// changed: `object verify` finds damaged content, which this command does not repair. An object whose first version
/// was never recorded is found by its ARK in the spaces of all profiles.
///
/// Meanwhile it holds the object's lock in the queue, and it is refused while a job stores the object. With --data, the
/// queue is the running repository's; a repository that is not running cannot be started meanwhile. After SIGINT,
/// SIGTERM or SIGHUP, and when its session with ZooKeeper is lost, it begins no further write, and shows what is left;
/// the same command resumes.
///
/// Exits with 0 if the object is sound or was repaired, with 3 if it is being stored or nothing could be removed yet,
/// and with 6 if content was left that a job may still be storing, or if it was stopped after it had begun.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct RepairArgs {
    #[command(flatten)]
    name: ObjectName,

    /// Show what would be done, without doing it
    #[arg(long)]
    dry_run: bool,

    /// Do not prompt
    #[arg(long)]
    yes: bool,

    /// Remove content for a version that was never completed if its job has stored nothing for this long
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    abandoned_after: PrometheusDuration,

    /// Do not lock the object in the queue: only if no daemon stores to its store
    #[arg(long, conflicts_with = "data")]
    without_queue: bool,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,

    #[command(flatten)]
    zookeeper: ZooKeeperArgs,
}

/// What was found, and what was done.
#[derive(Debug, Serialize)]
struct Report {
    ark: String,
    store: String,
    space: String,
    /// Where the object lies in the space.
    root: String,
    /// Whether this is only what would be done.
    dry_run: bool,
    restored: bool,
    finished: bool,
    /// How many items were removed that no inventory names.
    removed: u64,
    /// Jobs whose content was left.
    left: Vec<Uuid>,
    /// The number of the newest version; null where there is none.
    version: Option<u32>,
}

impl RepairArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if !self.yes && !self.dry_run && !is_attended() {
            return Err(UsageError::unprompted("repair").into());
        }
        let repository = self.repository.open().await?;
        let interrupts = Interrupts::listen()?;
        let repaired = Box::pin(self.repair(&repository, &interrupts)).await;
        interrupts.close().await;
        repository.catalogue.close().await;
        let report = repaired?;
        self.output.show(&report, |screen| report.show(screen))?;
        if report.left.is_empty() {
            return Ok(());
        }
        let (ark, jobs) = (&report.ark, counted(report.left.len() as u64, "job", "jobs"));
        let code = if report.is_change() && !self.dry_run { IN_PART } else { REFUSED };
        let why = format!("{ark}: content of {jobs} may still be in use; try again later, or see --abandoned-after");
        Err(CommandError::new(code, why).into())
    }

    async fn repair(&self, repository: &Repository, interrupts: &Interrupts) -> anyhow::Result<Report> {
        let (ark, located) = interrupts.unless(Box::pin(self.find(repository))).await??;
        let spinner = Spinner::start("reading the object");
        let planned = interrupts.unless(self.plan(&located)).await?;
        drop(spinner);
        let planned = Report::new(&ark, &located, true, planned.map_err(failed)?).await?;
        if self.dry_run || !planned.is_change() {
            return Ok(Report { dry_run: self.dry_run, ..planned });
        }
        if !self.yes {
            let mut screen = Screen::beside();
            planned.show(&mut screen);
            screen.print();
            interrupts.confirm("Repair it?").await?;
        }
        let held = interrupts.unless(self.hold(&ark, repository.catalogue.id())).await??;
        let repaired = held.during(Box::pin(self.change(repository, interrupts, &located, &held))).await;
        held.release().await;
        Report::new(&ark, &located, false, repaired?).await
    }

    async fn change(
        &self,
        repository: &Repository,
        interrupts: &Interrupts,
        located: &Located,
        held: &Held,
    ) -> anyhow::Result<Repaired> {
        // Asked before a write is announced to the audit log, and again when it is about to be made.
        let [announced, made] = [(); 2].map(|()| held.guard(interrupts.token()));
        let store: Arc<dyn Store> = Arc::new(Guarded::new(Arc::clone(&located.store), made.clone()));
        let opened = store::audited(store, &repository.catalogue, interrupts);
        let audited = interrupts.unless(Box::pin(opened)).await??;
        let guarded = Arc::new(Guarded::new(audited, Arc::clone(&announced) as Arc<dyn WriteGuard>));
        let root = Root::open(guarded, located.space.clone()).await.map_err(failed)?;
        let object = root.object(located.object.id()).map_err(failed)?;
        let before = made.begun();
        let spinner = Spinner::start("repairing the object");
        let idle = located.object.idle_since(self.instant()).await.map_err(failed)?;
        for content in &idle {
            // From then on a job that goes on stores under another name.
            if let Err(why) = announced.pass().await {
                return Err(self.stopped(located, &why, false).await.into());
            }
            repository.catalogue.give_up_content(*content, None).await?;
        }
        let repaired = object.repair(&Abandoned::Folders(idle)).await;
        drop(spinner);
        match repaired {
            Err(OcflError::Store(Error { kind: ErrorKind::Stopped(why), .. })) => {
                Err(self.stopped(located, &why, made.begun() > before).await.into())
            }
            repaired => Ok(repaired.map_err(failed)?),
        }
    }

    /// Shows what is left of a repair that was stopped.
    async fn stopped(&self, located: &Located, why: &str, has_begun: bool) -> CommandError {
        let ark = located.object.id();
        let mut screen = Screen::beside();
        screen.say("Left to be done:");
        let left = async {
            let planned = self.plan(located).await.map_err(failed)?;
            Report::new(ark, located, true, planned).await
        };
        match left.await {
            Ok(left) => left.show(&mut screen),
            Err(error) => screen.entry(&format!("it cannot be read: {error}")),
        }
        screen.print();
        let (code, done) = if has_begun { (IN_PART, "it was done in part") } else { (REFUSED, "nothing was done") };
        CommandError::new(code, format!("{ark}: {why}; {done}, and the same command resumes"))
    }

    /// The object where it lies, also one that the catalogue does not have.
    async fn find(&self, repository: &Repository) -> anyhow::Result<(String, Located)> {
        let ark = self.name.name.parse::<Ark>();
        match (repository.find(&self.name).await, ark) {
            (Ok(recorded), _) => {
                let located = repository.locate(&recorded.ark, &recorded.collection).await?;
                Ok((recorded.ark, located))
            }
            (Err(error), Ok(ark)) if error.downcast_ref().is_some_and(|it: &CommandError| it.code == NOT_FOUND) => {
                let mut found = repository.search(ark.as_str()).await?;
                let located = match found.len() {
                    0 => {
                        let why = format!("{error}, and none of its content is in the spaces of the profiles");
                        return Err(CommandError::new(NOT_FOUND, why).into());
                    }
                    1 => found.remove(0),
                    _ => {
                        let places: Vec<_> = found.iter().map(Located::place).collect();
                        let why = format!("{error}, and it is in several places: {}", places.join(", "));
                        return Err(CommandError::new(REFUSED, why).into());
                    }
                };
                Ok((ark.to_string(), located))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// What would be done now.
    async fn plan(&self, located: &Located) -> Result<Repaired, OcflError> {
        let idle = located.object.idle_since(self.instant()).await?;
        located.object.plan_repair(&Abandoned::Folders(idle)).await
    }

    /// Before which a job must have stored something last for that to be removed.
    fn instant(&self) -> Timestamp {
        let after = SignedDuration::try_from(self.abandoned_after.get()).unwrap_or(SignedDuration::MAX);
        Timestamp::now().checked_sub(after).unwrap_or(Timestamp::MIN)
    }

    /// Keeps daemons from storing the object.
    async fn hold(&self, ark: &str, catalogue: Uuid) -> anyhow::Result<Held> {
        let zookeeper = match &self.repository.data {
            Some(data) => {
                let data = DataDirectory::new(data.clone());
                if let Some(lock) = data.lock_unused()? {
                    return Ok(Held::Directory(lock));
                }
                of_data(&data)?
            }
            None if self.without_queue => return Ok(Held::Nothing),
            None => self.zookeeper.clone().config()?,
        };
        Held::in_queue(&zookeeper, ark, catalogue).await
    }
}

/// Checks that the daemons of a queue write into this catalogue: those of others have nothing to do with its objects.
pub(super) async fn check_queue(queue: &Queue, catalogue: Uuid) -> anyhow::Result<()> {
    let why = match queue.client().get_data(CATALOGUE).await {
        Ok((data, _)) if data == catalogue.to_string().as_bytes() => return Ok(()),
        Ok(_) => format!("the daemons of this queue use another catalogue than {catalogue} ({CATALOGUE})"),
        Err(zookeeper_client::Error::NoNode) => {
            format!("no daemon of queuekeeper has worked on this queue ({CATALOGUE})")
        }
        Err(error) => return Err(CommandError::new(FAILED, format!("cannot read {CATALOGUE}: {error}")).into()),
    };
    let fix = "check --zookeeper and its chroot, or set --without-queue while nothing stores objects";
    Err(CommandError::new(REFUSED, format!("{why}, so its locks do not protect the object; {fix}")).into())
}

impl Report {
    async fn new(ark: &str, located: &Located, dry_run: bool, repaired: Repaired) -> anyhow::Result<Self> {
        let Repaired { restored, finished, removed, left } = repaired;
        let snapshot = located.object.read().await.map_err(failed)?;
        Ok(Self {
            ark: ark.to_owned(),
            store: located.store.name().to_string(),
            space: located.space.to_string(),
            root: located.object.root().to_owned(),
            dry_run,
            restored,
            finished,
            removed,
            left,
            version: snapshot.map(|snapshot| snapshot.inventory().head()),
        })
    }

    fn is_change(&self) -> bool {
        self.restored || self.finished || self.removed > 0
    }

    fn show(&self, screen: &mut Screen) {
        screen.say(&self.ark);
        screen.fact("lies in", &format!("{}/{}/{}", self.store, self.space, self.root));
        let newest = self.version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
        screen.fact("newest", &newest);
        let said = |done: &'static str, planned: &'static str| if self.dry_run { planned } else { done };
        if self.restored {
            let verb = said("was restored", "would be restored");
            screen.entry(&format!("the inventory at its root {verb} from that of its newest complete version"));
        }
        if self.finished {
            let verb = said("was finished", "would be finished");
            screen
                .entry(&format!("a version whose inventory is written {verb}: root inventory, sidecars, declaration"));
        }
        if self.removed > 0 {
            let items = counted(self.removed, "item", "items");
            let verb = said("removed", "to be removed");
            screen.entry(&format!("{items} that no inventory names: {verb}"));
        }
        for job in &self.left {
            screen.entry(&format!(
                "content of job {job} for a version that was not completed: left, because it is recent"
            ));
        }
        if !self.is_change() && self.left.is_empty() {
            screen.fact("result", "nothing needs to be repaired");
        }
    }
}

fn failed(error: OcflError) -> CommandError {
    match error {
        OcflError::Store(error) => store::failed(&error),
        error => CommandError::new(FAILED, error.to_string()),
    }
}
