//! Why a bit error is not repaired yet, and what an operator does about that: the one place for the words of pages, API
//! and command line.

use jiff::Timestamp;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::pauses::MillPause;
use queuekeeper_catalogue::repair_stops::{COOLDOWN, MOST_A_DAY, RepairStop, span};
use queuekeeper_catalogue::repairs::Repair;
use queuekeeper_catalogue::tasks::{OpenTask, TaskKind, TaskState};
use queuekeeper_catalogue::{Catalogue, Error};
use queuekeeper_store::StoreName;

use super::decisions::{Plan, plan};
use super::repair::{ManualRepairReason, RepairStart};
use super::repairer::NO_GOOD_COPY;
use super::verdict::Remedy;
use crate::account::Account;
use crate::users::MILL;
use crate::why::CopyTasks;
use crate::words::moment;

/// What a bit error waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// A worker: what is to be done is decided, and its task waits in a queue.
    Worker,
    /// The end of what a worker does now.
    InProgress,
    /// The next attempt, after one that failed.
    Retry,
    /// The hours of its store.
    Hours,
    /// A restore from an archive, or the budget of a store.
    Store,
    /// The end of a pause.
    Paused,
    /// A decision: the brake holds its repair.
    Held,
    /// An operator: no other copy is good enough.
    NoGoodCopy,
    /// An operator: what was to be done failed in every attempt.
    Failed,
    /// An operator: what was decided has no task any more.
    Dropped,
    /// A check: what the mill does by itself has no task.
    NoTask,
    /// The end of a stop of automatic repairs.
    Stopped,
    /// An operator: this copy was repaired automatically lately.
    RepairedLately,
    /// An operator, for what a repair may not decide by itself.
    Manual(ManualRepairReason),
    /// An operator: no repair by itself is known for what was found.
    NoRepair,
    /// An operator: what the check saw cannot be read.
    Unreadable,
}

impl WaitReason {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::InProgress => "in_progress",
            Self::Retry => "retry",
            Self::Hours => "hours",
            Self::Store => "store",
            Self::Paused => "paused",
            Self::Held => "held",
            Self::NoGoodCopy => "no_good_copy",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::NoTask => "no_task",
            Self::Stopped => "stopped",
            Self::RepairedLately => "repaired_lately",
            Self::Manual(ManualRepairReason::ChangedOutside) => "changed_outside",
            Self::Manual(ManualRepairReason::Conflict) => "conflict",
            Self::Manual(ManualRepairReason::Records) => "records",
            Self::Manual(ManualRepairReason::NoChecksum) => "no_checksum",
            Self::Manual(ManualRepairReason::WriteOnce) => "write_once",
            Self::Manual(ManualRepairReason::TooMany) => "too_many",
            Self::Manual(ManualRepairReason::Mode) => "policy",
            Self::NoRepair => "no_repair",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Why a bit error waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What for.
    pub reason: WaitReason,
    /// The same in sentences.
    pub why: String,
    /// What an operator does about it, or that it goes on by itself: sentences; empty where that is only what can be
    /// decided about the bit error.
    pub act: String,
    /// Whether something may be decided about the bit error now: nothing that was decided is under way.
    pub may_decide: bool,
}

/// What bit errors may wait for, as of one instant.
#[derive(Clone, Debug)]
pub struct Waits<'a> {
    catalogue: &'a Catalogue,
    stops: Vec<RepairStop>,
    pauses: Vec<MillPause>,
    now: Timestamp,
}

impl<'a> Waits<'a> {
    /// As of now.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn read(catalogue: &'a Catalogue, now: Timestamp) -> Result<Self, Error> {
        let (stops, pauses) = (catalogue.repair_stops().await?, catalogue.pauses().await?);
        Ok(Self { catalogue, stops, pauses, now })
    }

    /// Why an open bit error of an account waits.
    ///
    /// # Errors
    /// When the catalogue cannot be read.
    pub async fn of(&self, account: &Account, error: &BitError) -> Result<Wait, Error> {
        let BitError { store, item, .. } = error;
        let Some(space) = account.of_store(&item.space) else {
            return Ok(unreadable(&format!("the space {} is not the account's", item.space)));
        };
        let tasks = self.catalogue.tasks_of_item(&account.name, &space, &item.key).await?;
        let copy = CopyTasks {
            account,
            key: &item.key,
            source: store,
            destination: store,
            tasks: &tasks,
            pauses: &self.pauses,
        };
        let of_kind = |kind| {
            tasks.iter().find(|open| {
                let subject = &open.task.subject;
                subject.kind == kind && subject.destination.as_ref() == Some(store)
            })
        };
        if error.repair_started.is_some()
            && let Some(repair) = self.catalogue.open_repair(store, item).await?
        {
            return Ok(self.of_repair(&repair, of_kind(TaskKind::Repair), &copy));
        }
        self.of_plan(error, of_kind(TaskKind::BitError), &copy).await
    }

    /// Why a repair that was started has not ended.
    fn of_repair(&self, repair: &Repair, task: Option<&OpenTask>, copy: &CopyTasks<'_>) -> Wait {
        let what = match Remedy::named(&repair.remedy) {
            Some(Remedy::RewriteInPlace) => "The rewriting of its content",
            Some(Remedy::CorrectIndex | Remedy::AppendEvent) => "The correction of its record",
            Some(Remedy::Adopt) => "Its adoption",
            Some(Remedy::AcceptChange) => "The acceptance of its change",
            Some(Remedy::RepairFromCopy | Remedy::WriteToProvider) | None => "Its repair from another copy",
        };
        let who = if repair.is_automatic { "the mill" } else { &repair.user };
        let Some(open) = task else {
            return Wait {
                reason: WaitReason::Dropped,
                why: format!("{what}, which {who} requested, has no task any more."),
                act: "Make a new decision, or drop the bit error.".to_owned(),
                may_decide: true,
            };
        };
        let may_decide = open.state == TaskState::Dead;
        let (reason, act) = self.of_task(open, copy);
        let stops = self.stops_in(copy.destination);
        let has_begun = !repair.is_automatic || repair.source.is_some();
        let is_going_on = matches!(reason, WaitReason::Worker | WaitReason::Retry | WaitReason::Hours);
        if !has_begun && is_going_on && !stops.is_empty() {
            let (why, act) = stopped(&stops);
            let why = format!("{what}, which the mill requested, has not begun. {why}");
            return Wait { reason: WaitReason::Stopped, why, act, may_decide };
        }
        let why = ended(format!("{what}, which {who} requested, {}", copy.of_task(open, self.now)));
        Wait { reason, why, act, may_decide }
    }

    /// Why nothing was started.
    async fn of_plan(&self, error: &BitError, task: Option<&OpenTask>, copy: &CopyTasks<'_>) -> Result<Wait, Error> {
        let (store, account) = (&error.store, copy.account);
        let today = self.catalogue.automatic_repairs_today(store).await?;
        let start = match plan(account, error, today) {
            Err(why) => return Ok(unreadable(&why)),
            Ok(Plan::Record(Remedy::Adopt)) => return Ok(self.by_itself("takes it into the record", task, copy)),
            Ok(Plan::Record(_)) => return Ok(self.by_itself("corrects the record", task, copy)),
            Ok(Plan::Repair(start)) => start,
        };
        let (reason, why, act) = match start {
            RepairStart::Automatic => {
                let stops = self.stops_in(store);
                if !stops.is_empty() {
                    let (why, act) = stopped(&stops);
                    (WaitReason::Stopped, why, act)
                } else if self.catalogue.was_repaired_lately(store, &error.item).await? {
                    let why = format!(
                        "This copy was already repaired automatically within the last {}, so an operator has to decide.",
                        span(COOLDOWN)
                    );
                    (WaitReason::RepairedLately, why, String::new())
                } else {
                    return Ok(self.by_itself("repairs it from another copy", task, copy));
                }
            }
            RepairStart::Manual(ManualRepairReason::TooMany) => {
                let at = task.filter(|open| open.state == TaskState::Waiting).and_then(|open| open.visible);
                let again =
                    at.filter(|at| *at > self.now).map(|at| format!("The mill checks this again at {}.", moment(at)));
                let why = format!(
                    "{MOST_A_DAY} repairs were started automatically in {store} within 24 hours, which is the limit."
                );
                (WaitReason::Manual(ManualRepairReason::TooMany), why, again.unwrap_or_default())
            }
            RepairStart::Manual(why) => (WaitReason::Manual(why), manual(why, store, account), String::new()),
            RepairStart::Never => {
                let why = "The mill has no automatic repair for this.".to_owned();
                (WaitReason::NoRepair, why, String::new())
            }
        };
        Ok(Wait { reason, why, act, may_decide: true })
    }

    /// Why what the mill does by itself is not done.
    fn by_itself(&self, does: &str, task: Option<&OpenTask>, copy: &CopyTasks<'_>) -> Wait {
        let Some(open) = task else {
            return Wait {
                reason: WaitReason::NoTask,
                why: format!("The mill {does} automatically once it has a task for it, and no such task is open."),
                act: "A check of the copy requests one: queuekeeper mill verify with --background, or Check now on the page \
                      of the item."
                    .to_owned(),
                may_decide: true,
            };
        };
        let (reason, act) = self.of_task(open, copy);
        let why = ended(format!("The mill {does} automatically: its task {}", copy.of_task(open, self.now)));
        Wait { reason, why, act, may_decide: true }
    }

    /// What a task waits for, and what an operator does about that.
    fn of_task(&self, open: &OpenTask, copy: &CopyTasks<'_>) -> (WaitReason, String) {
        let number = open.task.id;
        let failure = open.task.errors.last().map(|last| last.error.as_str());
        let has_no_copy = failure.is_some_and(|why| why.starts_with(NO_GOOD_COPY));
        let retry = format!("queuekeeper mill retry {number} --reason TEXT, or /mill/dead-letters");
        let is_ahead = open.visible.is_some_and(|at| at > self.now);
        let has_worker = open.worker.is_some() && is_ahead;
        match open.state {
            TaskState::Held => {
                let act = format!(
                    "It is released by queuekeeper mill retry {number} --reason TEXT, or dropped by queuekeeper mill drop \
                     {number} --reason TEXT; /mill/held does both, too."
                );
                return (WaitReason::Held, act);
            }
            TaskState::Dead if has_no_copy => {
                let act = format!("Once another store has a good copy, an operator retries it: {retry}.");
                return (WaitReason::NoGoodCopy, act);
            }
            TaskState::Dead => {
                return (WaitReason::Failed, format!("Once the cause is fixed, an operator retries it: {retry}."));
            }
            TaskState::Waiting | TaskState::Paused | TaskState::Restore => {}
        }
        let account = &copy.account.name;
        let pause = self.pauses.iter().find(|pause| pause.scope.stops(account, [copy.destination]));
        let (reason, act) = match (open.state, pause) {
            _ if has_worker => (WaitReason::InProgress, "No action is needed.".to_owned()),
            (_, Some(pause)) => {
                let account = pause.scope.account().map(|account| format!(" --account {account}")).unwrap_or_default();
                let store = pause.scope.store().map(|store| format!(" --store {store}")).unwrap_or_default();
                let act = format!(
                    "An operator ends the pause: queuekeeper mill resume{account}{store} --reason TEXT, or on /mill."
                );
                (WaitReason::Paused, act)
            }
            (TaskState::Restore, None) => (WaitReason::Store, "No action is needed.".to_owned()),
            (_, None) if is_ahead && failure.is_some() => {
                let act =
                    "It is retried automatically; after the last attempt it is a dead letter and needs an operator.";
                (if has_no_copy { WaitReason::NoGoodCopy } else { WaitReason::Retry }, act.to_owned())
            }
            (_, None) => {
                let closed = copy.account.closed_until(None, copy.destination, self.now);
                let is_closed = is_ahead && closed.is_some();
                let act = "It continues as soon as a process of the mill takes tasks of the queue bit-error, which \
                           queuekeeper mill queues shows.";
                (if is_closed { WaitReason::Hours } else { WaitReason::Worker }, act.to_owned())
            }
        };
        (reason, act)
    }

    /// The stops in force in a store.
    fn stops_in(&self, store: &StoreName) -> Vec<&RepairStop> {
        self.stops.iter().filter(|stop| stop.store.as_ref().is_none_or(|stopped| stopped == store)).collect()
    }
}

fn unreadable(why: &str) -> Wait {
    let why = format!("The mill cannot determine what to do: {why}.");
    let act = "The item has to be inspected manually.".to_owned();
    Wait { reason: WaitReason::Unreadable, why, act, may_decide: true }
}

/// That automatic repairs are stopped, and how they are resumed; of one stop or two.
fn stopped(stops: &[&RepairStop]) -> (String, String) {
    let sentence = |stop: &&RepairStop| {
        let store = stop.store.as_ref().map_or("all stores".to_owned(), ToString::to_string);
        let user = if stop.user == MILL { "the mill" } else { &stop.user };
        let why =
            format!("Automatic repairs in {store} were stopped by {user} at {}: {}", moment(stop.since), stop.reason);
        let of = stop.store.as_ref().map(|store| format!(" {store}")).unwrap_or_default();
        (ended(why), format!("queuekeeper mill resume-repairs{of} --reason TEXT"))
    };
    let (why, commands): (Vec<_>, Vec<_>) = stops.iter().map(sentence).unzip();
    (why.join(" "), format!("They are resumed by {}, or on /mill/errors.", commands.join(" and ")))
}

/// Why an operator has to start a repair.
fn manual(why: ManualRepairReason, store: &StoreName, account: &Account) -> String {
    let name = &account.name;
    match why {
        ManualRepairReason::Mode => {
            format!(
                "Repairs in {store} are started by an operator, because the account {name} does not have repair: automatic there."
            )
        }
        ManualRepairReason::WriteOnce => {
            format!(
                "The account {name} declares {store} as write_once, so the mill does not repair copies there automatically."
            )
        }
        ManualRepairReason::ChangedOutside => {
            "Another program changed the content, perhaps on purpose, so the mill does not repair it automatically."
                .to_owned()
        }
        ManualRepairReason::Conflict => {
            "The observations contradict each other, so the mill does not repair the copy automatically.".to_owned()
        }
        ManualRepairReason::Records => {
            "Content index and audit log disagree, so the mill does not repair the copy automatically.".to_owned()
        }
        ManualRepairReason::NoChecksum => {
            format!(
                "The store {store} keeps no checksum that confirms the records, so the mill does not repair the copy automatically."
            )
        }
        ManualRepairReason::TooMany => ended(why.to_string()),
    }
}

/// A sentence with its full stop; what another part said at its end may have one.
fn ended(text: String) -> String {
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}
