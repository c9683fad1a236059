//! One batch.

use jiff::Timestamp;

use super::{BatchStanding, Outlook};
use crate::insight::{self, Forecast};
use crate::views::ViewSource;
use crate::views::diagnosis::DiagnosisView;
use crate::views::error::{ViewError, quoted};
use crate::views::faults::FaultItem;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{BatchNode, Path};

impl ViewSource<'_> {
    /// A batch, by its id or the UUID of its submission.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn batch(&self, name: &str, now: Timestamp) -> Result<BatchStanding, ViewError> {
        let (store, id) = (self.store, self.batch_id(name)?);
        let gone = || ViewError::not_found(format!("The batch “{id}” has just been purged."));
        let found = store.batch(id).ok_or_else(gone)?;
        let locked_since = store.locked_since(&Path::BatchNode(id, BatchNode::Lock));
        let faults = store.faults_of(&Path::Batch(id), now, self.space_left()).unwrap_or_default();
        let faults = faults.iter().map(FaultItem::new).collect();
        let known = insight::why_batch(store, id, self.volume(), now);
        let diagnosis = known.as_ref().map(|(diagnosis, _)| DiagnosisView::from(diagnosis));
        let forecast = known.map_or(Forecast::Unknown, |(_, forecast)| forecast);
        let rates = store.batch_rates(id).filter(|_| forecast != Forecast::Stale);
        let outlook = Outlook::new(forecast, rates, now);
        let holder = found.batch.lock.map(|lock| lock.session);
        let address = holder.and_then(|session| self.address(session));
        let history = self.batch_history(id, now);
        let standing = BatchStanding::new(found, locked_since, outlook, faults, diagnosis, history, address);
        Ok(BatchStanding { warned: self.warned(id, now), ..standing })
    }

    /// The batch of an id or UUID.
    ///
    /// # Errors
    /// When there is none, or before the first walk.
    pub(crate) fn batch_id(&self, name: &str) -> Result<BatchId, ViewError> {
        let store = self.store;
        if store.batch_collections().is_none() {
            return Err(ViewError::NoMirror);
        }
        let by_id = name.parse().ok().filter(|id| store.batch(*id).is_some());
        by_id.or_else(|| store.batch_of_uuid(name)).ok_or_else(|| {
            let error = ViewError::not_found(format!("There is no batch with the id or UUID “{}” now.", quoted(name)));
            // A well-formed id needs no hint about its form: its batch has been removed, or never existed.
            if name.parse::<BatchId>().is_ok() {
                return error;
            }
            error.allowing(["bid and ten digits, such as bid0000000042", "the UUID of its submission"])
        })
    }
}
