//! The faults of a batch.

use super::finding::{FaultFinding, NodeSet, Sink};
use super::item::{
    HOLDS_OTHER, LACKS_ZNODE, LockFacts, UNKNOWN_STATUS, by_shape, by_time, detect_bare, detect_item_lock, known,
};
use super::limits::may_be_locked;
use super::{Fault, Limits, detect_folder};
use crate::id::BatchId;
use crate::path::{BatchNode, Path};
use crate::state::{BatchState, JobOutcome, State};

/// What is known of a batch.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and none is set by position")]
pub struct BatchFacts<'a> {
    /// Its id.
    pub id: BatchId,
    /// The znodes that are there, by [`BatchNode`].
    pub present: NodeSet,
    /// Of these, the ones that hold something else than they should.
    pub malformed: NodeSet,
    /// Of these, the ones that are not readable with these credentials, and not reported.
    pub denied: NodeSet,
    /// Its state; `None` for one that is missing or not known.
    pub state: Option<BatchState>,
    /// Whether its status is spelled as the daemons do.
    pub is_canonical: bool,
    /// When it entered its state, in milliseconds by the servers' clock; `i64::MAX` where that is not known.
    pub entered_ms: i64,
    /// When its znode was created, likewise.
    pub created_ms: i64,
    /// How many jobs are referenced in each folder, in the order of [`JobOutcome::ALL`]; `None` for one that is not
    /// there.
    pub references: [Option<u32>; 4],
    /// A child of a reference to one of its jobs, as far as that is known.
    pub below_reference: Option<&'a str>,
    /// The UUID that its submission carries; empty for none.
    pub uuid: &'a str,
    /// Whether that UUID leads to it; `None` where that is unknown.
    pub is_found_by_uuid: Option<bool>,
    /// Whether all daemons are stopped by an admin, so that no report can be due.
    pub is_paused: bool,
    /// The lock on it.
    pub lock: Option<LockFacts>,
    /// Whether it is Deleted because it was withdrawn: our cleanup removes it.
    pub is_withdrawn: bool,
    /// Whether a process with daemons of ours says that it gave it back, to create its jobs later.
    pub is_given_back: bool,
}

impl BatchFacts<'_> {
    fn hint(&self) -> Option<i64> {
        known(self.entered_ms).or(known(self.created_ms))
    }

    fn node(&self, node: BatchNode) -> Path {
        Path::BatchNode(self.id, node)
    }
}

/// Detects the faults of a batch.
pub fn detect_batch(batch: &BatchFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    if batch.present.is_empty() {
        return;
    }
    if batch.present.is_bare(BatchNode::Lock as u8) {
        return detect_bare(&Path::Batch(batch.id), batch.created_ms, limits, sink);
    }
    detect_form(batch, limits, sink);
    detect_end(batch, limits, sink);
    for (outcome, children) in JobOutcome::ALL.into_iter().zip(batch.references) {
        detect_folder(&Path::BatchOutcome(batch.id, outcome), children.unwrap_or(0).into(), limits, sink);
    }
    if let Some(lock) = batch.lock {
        let at_rest = batch.state.is_some_and(|state| !may_be_locked(state));
        let entered_ms = known(batch.entered_ms).unwrap_or(lock.created_ms);
        let limit = limits.batch_lock.get(batch.state);
        detect_item_lock(lock, &batch.node(BatchNode::Lock), entered_ms, at_rest, limit, limits, sink);
    }
    if !batch.uuid.is_empty() && batch.is_found_by_uuid == Some(false) {
        // A purge may delete the UUID first, and then thousands of jobs.
        let leaves = batch.state.is_some_and(State::is_final);
        let lasting = if leaves { limits.clean_up } else { limits.grace };
        let how = "The UUID of its submission does not lead to it.";
        let nodes = || vec![batch.node(BatchNode::Submission), Path::BatchUuid(batch.uuid.into())];
        sink(by_shape(Fault::DanglingUuid, how, lasting, known(batch.created_ms), &nodes));
    }
}

/// Whether the Java daemons can load it. They do without a submission, and not with one that is not JSON.
fn detect_form(batch: &BatchFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    const READ: [BatchNode; 2] = [BatchNode::Status, BatchNode::Submission];
    let mut report = |how, hint, nodes: &dyn Fn() -> Vec<Path>| {
        sink(by_shape(Fault::UnloadableBatch, how, limits.grace, hint, nodes));
    };
    let missing = |node: &BatchNode| !batch.present.has(*node as u8);
    if missing(&BatchNode::Status) {
        let nodes = || vec![batch.node(BatchNode::Status)];
        report(LACKS_ZNODE, known(batch.created_ms), &nodes);
    }
    let malformed = |node: &BatchNode| batch.malformed.has(*node as u8);
    if READ.iter().any(malformed) {
        let nodes = || READ.into_iter().filter(malformed).map(|node| batch.node(node)).collect();
        report(HOLDS_OTHER, batch.hint(), &nodes);
    } else if batch.present.minus(batch.denied).has(BatchNode::Status as u8) && !batch.is_canonical {
        report(UNKNOWN_STATUS, batch.hint(), &|| vec![batch.node(BatchNode::Status)]);
    }
    if batch.state == Some(BatchState::Held) && missing(&BatchNode::States) {
        let nodes = || vec![batch.node(BatchNode::Status), batch.node(BatchNode::States)];
        report("It is held and has no states.", batch.hint(), &nodes);
    }
}

/// The fix where no daemon does the next step of a batch.
const CHECK_DAEMON: &str =
    "Check whether the batch daemon is running and whether its log shows why it does not reach the batch.";

/// Whether it will come to its report and its cleanup.
fn detect_end(batch: &BatchFacts<'_>, limits: &Limits, sink: &mut Sink<'_>) {
    let Some(state) = batch.state else { return };
    let folder = Path::BatchOutcome(batch.id, JobOutcome::Processing);
    let status_and_folder = || vec![batch.node(BatchNode::Status), folder.clone()];
    let processing = batch.references[JobOutcome::Processing as usize];
    let is_due = state.is_worked_on() && processing == Some(0);
    if is_due && batch.lock.is_none() && !batch.is_paused {
        let how = "All its jobs are finished, and no daemon reports it.";
        let mark = batch.entered_ms.cast_unsigned();
        let finding = by_shape(Fault::OverdueBatch, how, limits.report, None, &status_and_folder);
        sink(FaultFinding { mark, fix: Some(CHECK_DAEMON), ..finding });
    }
    if let (BatchState::Processing, Some(lock)) = (state, batch.lock) {
        let how = "Its jobs have been in creation for hours.";
        let from_ms = known(batch.entered_ms).unwrap_or(lock.created_ms).max(lock.created_ms);
        let nodes = || vec![batch.node(BatchNode::Status), batch.node(BatchNode::Lock)];
        let fix = Some("Check the log of the daemon that holds its lock. If that daemon has ended, break the lock.");
        let finding = by_time(Fault::OverdueBatch, how, from_ms, from_ms, limits.batch_processing, &nodes);
        sink(FaultFinding { fix, ..finding });
    }
    let is_begun = batch.present.has(BatchNode::States as u8) && batch.lock.is_none() && processing.is_none();
    if is_begun && state.is_worked_on() && !batch.is_given_back {
        let how = "It was acquired and has no batch-processing: the daemon that creates its jobs ended before that.";
        let nodes = || vec![batch.node(BatchNode::States), folder.clone()];
        let fix = Some("Repair it: its empty states are removed, so that a daemon acquires it again.");
        let finding = by_shape(Fault::UnfinishedCreation, how, limits.creation, batch.hint(), &nodes);
        sink(FaultFinding { fix, ..finding });
    }
    let is_over = matches!(state, BatchState::Completed | BatchState::Failed | BatchState::Deleted);
    if is_over && processing.is_none() && !batch.is_withdrawn {
        let how = "It has no batch-processing, without which the daemons' cleanup skips it.";
        let fix = Some(if state == BatchState::Deleted {
            "Purge it by name, or create batch-processing, so that it is cleaned up."
        } else {
            "Create batch-processing, so that it is reported again or cleaned up."
        });
        let finding = by_shape(Fault::OverdueBatch, how, limits.grace, batch.hint(), &status_and_folder);
        sink(FaultFinding { fix, ..finding });
    }
    detect_contradictions(batch, state, limits, sink);
    if state == BatchState::Deleted && processing == Some(0) {
        let how = "It is deleted and has an empty batch-processing, as if its report were due.";
        sink(by_shape(Fault::DeletedBatchBlocksReporting, how, limits.grace, batch.hint(), &status_and_folder));
    }
}

/// Whether its znodes contradict each other.
fn detect_contradictions(batch: &BatchFacts<'_>, state: BatchState, limits: &Limits, sink: &mut Sink<'_>) {
    let status = || batch.node(BatchNode::Status);
    let open = [JobOutcome::Processing, JobOutcome::Failed];
    let is_open = |outcome: &JobOutcome| batch.references[*outcome as usize].is_some_and(|jobs| jobs > 0);
    if state == BatchState::Completed && open.iter().any(is_open) {
        let how = "It is Completed and has unfinished jobs.";
        let folders = open.into_iter().filter(is_open).map(|outcome| Path::BatchOutcome(batch.id, outcome));
        let nodes: Vec<_> = std::iter::once(status()).chain(folders).collect();
        let nodes = || nodes.clone();
        let finding = by_shape(Fault::ContradictingBatch, how, limits.grace, batch.hint(), &nodes);
        sink(FaultFinding { fix: Some("Finish or delete its unfinished jobs."), ..finding });
    }
    let is_acquired = batch.present.has(BatchNode::States as u8);
    if state == BatchState::Pending && !is_acquired && batch.lock.is_none() && !batch.is_paused {
        let how = "It is Pending, and no daemon takes it.";
        let mark = batch.entered_ms.cast_unsigned();
        let nodes = || vec![status()];
        let finding = by_shape(Fault::ContradictingBatch, how, limits.report, None, &nodes);
        sink(FaultFinding { mark, fix: Some(CHECK_DAEMON), ..finding });
    }
    if let Some(child) = batch.below_reference {
        let how = "A reference to a job has children.";
        let nodes = || vec![Path::Unexpected(child.into())];
        let finding = by_shape(Fault::ContradictingBatch, how, limits.grace, None, &nodes);
        sink(FaultFinding { fix: Some("Delete the children of the reference by hand."), ..finding });
    }
}
