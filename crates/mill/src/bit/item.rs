//! The check of one item: of what was not plainly right, or what is requested.
//!
//! The store is looked at, then what is recorded is read again: a copy of which the record changed meanwhile is looked
//! at later. What may be a change that is not recorded yet waits for a next round; bytes are called damaged after a
//! second reading. What is wrong is written down as a bit error, and waits for a decision; nothing is changed here,
//! neither content nor record.

use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, ItemRecords};
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::store::Item;

use super::checker::{CheckedSpace, Checker, said};
use super::decide::decide;
use super::evidence;
use super::intended::is_being_stored;
use super::look::{self, Reading};
use super::verdict::{CheckVerdict, CopyFinding, Look, Next, Sighting, Sources};
use crate::worker::{CHANGING, Lease, Processed, Processor};

/// How long a check usually waits for the next round.
pub const ROUND: Duration = Duration::from_mins(5);

/// The last of so many rounds gives the verdict.
const ROUNDS: u32 = 3;

/// Checks single items.
pub struct ItemChecks(pub Checker);

/// What a check of one item came to.
pub(super) enum Ended {
    /// It is checked.
    Checked(Box<Checked>),
    /// It cannot be decided yet.
    Later,
    /// It is being changed.
    Changing,
    /// It can be read later.
    NotYet(NotYet),
}

/// What a look at an item came to.
enum Looked {
    /// What all sources say, and whether it is archived, so that the content says nothing.
    Sources(Box<Sources>, bool),
    /// It is changed while it is looked at.
    Changing,
    /// It can be read later.
    NotYet(NotYet),
}

/// The outcome of a check, in its own words and in those of the catalogue.
pub(super) struct Checked {
    pub(super) verdict: CheckVerdict,
    pub(super) item: CheckedItem,
}

#[async_trait]
impl Processor for ItemChecks {
    fn kind(&self) -> TaskKind {
        TaskKind::Bit
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.0.item_task(task, lease).await.unwrap_or_else(|why| TaskOutcome::Failed(why).into())
    }
}

impl Checker {
    async fn item_task(&self, task: &TakenTask, lease: &Lease) -> Result<Processed, String> {
        let place = match self.place(&task.subject, lease)? {
            Ok(place) => place,
            Err(wait) => return Ok(wait.into()),
        };
        let key = task.subject.key.clone().ok_or_else(|| "the task names no item".to_owned())?;
        let item = Item::new(place.space.clone(), key);
        let checked = match self.check(&place, &item, task.rounds + 1 >= ROUNDS, lease).await? {
            Ended::Changing => return Ok(TaskOutcome::PutOff(CHANGING).into()),
            Ended::Later => return Ok(TaskOutcome::Later(self.round).into()),
            Ended::NotYet(NotYet { why, after, .. }) => return Ok(TaskOutcome::Restore(after, why).into()),
            Ended::Checked(checked) => *checked,
        };
        let TaskSubject { account, space, .. } = &task.subject;
        let run = self.catalogue.open_bit_run(account, place.store.name(), space).await.map_err(said)?;
        let (part, follow_ups) = self.part(&task.subject, &place, run, checked).await?;
        Ok(Processed { outcome: TaskOutcome::Done, follow_ups, checked: Some(part) })
    }

    /// What is written down of a check, and requested after it.
    pub(super) async fn part(
        &self,
        subject: &TaskSubject,
        place: &CheckedSpace,
        run: Option<u64>,
        checked: Checked,
    ) -> Result<(CheckedPart, Vec<NewTask>), String> {
        let Checked { verdict, item } = checked;
        let (account, store) = (subject.account.clone(), place.store.name().clone());
        let mut part = CheckedPart { run, ..CheckedPart::of(account, store.clone(), Vec::new()) };
        let mut follow_ups = Vec::new();
        // A job records what it stores once all of a version is there. What was recorded before is not its work.
        if verdict.findings.iter().eq([&CopyFinding::NotRecorded])
            && is_being_stored(&self.catalogue, &store, &item.item).await?
        {
            part.is_being_stored = true;
        } else {
            if item.wrong.is_some() {
                let key = Some(item.item.key.clone());
                let subject = TaskSubject { kind: TaskKind::BitError, key, ..subject.clone() };
                follow_ups.push(NewTask { queue: TaskQueue::BitError, subject, source: None });
            }
            part.items.push(item);
        }
        Ok((part, follow_ups))
    }

    /// Checks one item.
    pub(super) async fn check(
        &self,
        place: &CheckedSpace,
        item: &Item,
        is_last_round: bool,
        lease: &Lease,
    ) -> Result<Ended, String> {
        let may_read = place.policy.may_read();
        let (mut reads, mut is_second) = (may_read, false);
        loop {
            let before = self.records(place, item).await?;
            let (sources, is_archived) = match self.look(place, item, before.as_ref(), reads, lease).await? {
                Looked::Sources(sources, is_archived) => (*sources, is_archived),
                Looked::Changing => return Ok(Ended::Changing),
                Looked::NotYet(not_yet) => return Ok(Ended::NotYet(not_yet)),
            };
            // Between a change and its record, the one who looks finds both apart.
            let is_changing = self.catalogue.is_changing(place.store.name(), item).await.map_err(said)?;
            if is_changing || self.records(place, item).await? != before {
                return Ok(Ended::Changing);
            }
            let may_read = may_read && !is_archived;
            let answer = decide(&sources, Look { may_read, is_second, is_last_round });
            match answer.next {
                Next::End if is_archived && answer.verdict.is_nothing_wrong() => {
                    let (verdict, item) = evidence::unread(item.clone(), before.as_ref(), &sources);
                    return Ok(Ended::Checked(Box::new(Checked { verdict, item })));
                }
                Next::End => {
                    let item = evidence::checked(item.clone(), before.as_ref(), &sources, &answer.verdict);
                    return Ok(Ended::Checked(Box::new(Checked { verdict: answer.verdict, item })));
                }
                Next::Later => return Ok(Ended::Later),
                Next::Read => {
                    is_second = sources.content != Sighting::NotLooked || sources.store == Sighting::Missing;
                    reads = true;
                }
            }
        }
    }

    async fn records(&self, place: &CheckedSpace, item: &Item) -> Result<Option<ItemRecords>, String> {
        self.catalogue.records_of_item(place.store.name(), item).await.map_err(said)
    }

    /// What all sources say of an item.
    async fn look(
        &self,
        place: &CheckedSpace,
        item: &Item,
        records: Option<&ItemRecords>,
        reads: bool,
        lease: &Lease,
    ) -> Result<Looked, String> {
        let (store, state) = look::ask(&place.store, item).await?;
        lease.progressed();
        let (index, audit) = (evidence::index(records), evidence::audit(records));
        let mut sources = Sources { content: Sighting::NotLooked, store, index, audit };
        let mut is_archived = false;
        match state {
            None if reads => sources.content = Sighting::Missing,
            Some(state) if reads => match look::read(&place.store, item, &state, &sources, lease).await {
                Reading::Read { content, store } => {
                    (sources.content, sources.store) = (Sighting::Present(content), Sighting::Present(store));
                }
                Reading::Missing => sources.content = Sighting::Missing,
                Reading::Changed => return Ok(Looked::Changing),
                Reading::Archived => is_archived = true,
                Reading::NotYet(not_yet) => return Ok(Looked::NotYet(not_yet)),
                Reading::Unreadable(why) | Reading::Failed(why) => return Err(why),
            },
            None | Some(_) => {}
        }
        Ok(Looked::Sources(Box::new(sources), is_archived))
    }
}
