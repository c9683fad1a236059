//! A copy that was read just now for what is to be done about it.

use queuekeeper_catalogue::bit::{CheckedPart, ItemRecords};
use queuekeeper_catalogue::tasks::TaskOutcome;
use queuekeeper_store::Digests;
use queuekeeper_store::archive::NotYet;
use queuekeeper_store::store::{Item, Properties};

use super::checker::{CheckedSpace, Checker};
use super::decide::decide;
use super::evidence;
use super::look::{self, ARCHIVED, Reading};
use super::verdict::{CheckResult, CheckVerdict, Fixity, Look, Proof, Sighting, Sources};
use crate::missing::unless_missing;
use crate::worker::{CHANGING, Lease, Stop};

/// A copy as it was read.
pub(super) struct ReadCopy {
    pub(super) sources: Sources,
    pub(super) properties: Option<Properties>,
    pub(super) records: Option<ItemRecords>,
}

impl ReadCopy {
    /// Reads a copy, hashed by the algorithms of others, too, and what is recorded of it.
    pub(super) async fn read(
        checker: &Checker,
        place: &CheckedSpace,
        item: &Item,
        others: &Digests,
        lease: &Lease,
    ) -> Result<Self, Stop> {
        let (catalogue, store) = (&checker.catalogue, &place.store);
        let records = catalogue.records_of_item(store.name(), item).await?;
        let properties = unless_missing(store, &item.space, || store.head(item)).await?.flatten();
        lease.progressed();
        let (index, audit) = (evidence::index(records.as_ref()), evidence::audit(records.as_ref()));
        let mut sources = Sources { content: Sighting::Missing, store: Sighting::Missing, index, audit };
        if let Some(properties) = &properties {
            let mut wanted = sources.clone();
            let others = Fixity { size: properties.size, digests: others.clone() };
            wanted.index.get_or_insert(others.clone()).digests.extend(others.digests.iter().cloned());
            match look::read(store, item, &properties.etag, &wanted, lease).await {
                Reading::Read { content, store } => {
                    (sources.content, sources.store) = (Sighting::Present(content), Sighting::Present(store));
                }
                Reading::Missing | Reading::Changed => return Err(TaskOutcome::PutOff(CHANGING).into()),
                Reading::NotYet(NotYet { why, after, .. }) => return Err(TaskOutcome::Restore(after, why).into()),
                Reading::Archived => return Err(Stop::Failed(format!("{item} in {}: {ARCHIVED}", store.name()))),
                Reading::Unreadable(why) | Reading::Failed(why) => return Err(Stop::Failed(why)),
            }
        }
        // Between a change and its record, the one who looks finds both apart.
        let is_changing = catalogue.is_changing(store.name(), item).await?;
        if is_changing || catalogue.records_of_item(store.name(), item).await? != records {
            return Err(TaskOutcome::PutOff(CHANGING).into());
        }
        Ok(Self { sources, properties, records })
    }

    /// The same content with what is recorded of it by now.
    pub(super) async fn recorded_by_now(
        self,
        checker: &Checker,
        place: &CheckedSpace,
        item: &Item,
    ) -> Result<Self, Stop> {
        let records = checker.catalogue.records_of_item(place.store.name(), item).await?;
        let (index, audit) = (evidence::index(records.as_ref()), evidence::audit(records.as_ref()));
        Ok(Self { sources: Sources { index, audit, ..self.sources }, records, ..self })
    }

    pub(super) fn verdict(&self) -> CheckVerdict {
        // It is read for something that was decided before: this look counts.
        decide(&self.sources, Look { may_read: true, is_second: true, is_last_round: true }).verdict
    }

    /// All digests that are recorded of the copy.
    pub(super) fn recorded(&self) -> Digests {
        let records = [self.sources.index.as_ref(), self.sources.audit()];
        records.into_iter().flatten().flat_map(|record| record.digests.iter().cloned()).collect()
    }

    /// The look as a check, outside of runs.
    pub(super) fn part(&self, account: &str, place: &CheckedSpace, item: &Item, verdict: &CheckVerdict) -> CheckedPart {
        let checked = evidence::checked(item.clone(), self.records.as_ref(), &self.sources, verdict);
        CheckedPart::of(account.to_owned(), place.store.name().clone(), vec![checked])
    }
}

/// Whether the bytes were read and nothing is wrong.
pub(super) fn is_proven(verdict: &CheckVerdict) -> bool {
    verdict.result == CheckResult::Success && verdict.proof == Some(Proof::Read)
}
