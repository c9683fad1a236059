//! Checks on request, by workers: of an item, or of a space, page by page.
//!
//! They read everything, whatever the policy of the store asks for, as a check in the foreground does, and wait for no
//! round. A page ends in time, so that a worker has the next one of the same space only after what waits beside it.

use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::bit::{CheckedPart, RequestedPart};
use queuekeeper_catalogue::tasks::{TakenTask, TaskKind, TaskOutcome};
use queuekeeper_store::Key;
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::store::Item;

use super::checker::{CheckedSpace, Checker, said};
use super::item::Ended;
use super::page::Range;
use super::policy::ProofPolicy;
use crate::worker::{CHANGING, Lease, Processed, Processor};

/// With so many items of a space that wait to be checked one by one, its next page waits, too.
const MOST_ALONE: u64 = 1_000;

/// How long it waits then.
const WAIT: Duration = Duration::from_secs(10);

/// Carries out checks on request.
pub struct RequestedChecks(pub Checker);

#[async_trait]
impl Processor for RequestedChecks {
    fn kind(&self) -> TaskKind {
        TaskKind::Check
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.0.requested_task(task, lease).await.unwrap_or_else(|why| TaskOutcome::Failed(why).into())
    }
}

impl Checker {
    async fn requested_task(&self, task: &TakenTask, lease: &Lease) -> Result<Processed, String> {
        let place = match self.place(&task.subject, lease)? {
            Ok(place) => CheckedSpace { policy: ProofPolicy::Read, ..place },
            Err(wait) => return Ok(wait.into()),
        };
        match &task.subject.key {
            Some(key) => self.requested_item(task, &place, key, lease).await,
            None => self.requested_page(task, &place, lease).await,
        }
    }

    async fn requested_item(
        &self,
        task: &TakenTask,
        place: &CheckedSpace,
        key: &Key,
        lease: &Lease,
    ) -> Result<Processed, String> {
        let item = Item::new(place.space.clone(), key.clone());
        let checked = match self.check(place, &item, true, lease).await? {
            Ended::Checked(checked) => *checked,
            Ended::NotYet(NotYet { why, after, .. }) => return Ok(TaskOutcome::Restore(after, why).into()),
            Ended::Changing | Ended::Later => return Ok(TaskOutcome::PutOff(CHANGING).into()),
        };
        let (part, follow_ups) = self.part(&task.subject, place, None, checked).await?;
        let part = CheckedPart { requested: Some(RequestedPart::default()), ..part };
        Ok(Processed { outcome: TaskOutcome::Done, follow_ups, checked: Some(part) })
    }

    async fn requested_page(&self, task: &TakenTask, place: &CheckedSpace, lease: &Lease) -> Result<Processed, String> {
        let (subject, store) = (&task.subject, place.store.name());
        let requested =
            self.catalogue.requested_check(&subject.account, store, &subject.space, None).await.map_err(said)?;
        let Some(requested) = requested.filter(|requested| !requested.is_listed) else {
            return Ok(TaskOutcome::Done.into());
        };
        if requested.pending >= MOST_ALONE {
            return Ok(TaskOutcome::PutOff(WAIT).into());
        }
        let range = Range { behind: requested.marker.as_ref(), last: None, number: 0 };
        let page = self.check_page(place, &range, lease).await?;
        if let Some(NotYet { why, after, .. }) = page.not_yet {
            return Ok(TaskOutcome::Restore(after, why).into());
        }
        let part = CheckedPart {
            requested: Some(RequestedPart { is_of_space: true, rest: page.rest, alone: page.alone }),
            ..CheckedPart::of(subject.account.clone(), store.clone(), page.right)
        };
        Ok(Processed { outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: Some(part) })
    }
}
