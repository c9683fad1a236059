//! What a znode says of its job.

use zookeeper_client::Stat;

use super::Jobs;
use crate::mirror::image::columns::NO_PRIORITY;
use crate::mirror::image::row::{LockStat, UNKNOWN_MS, text};
use crate::mirror::read::Found;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::path::JobNode;
use queuekeeper_queue::record::{self, Configuration, Decoded, Identifiers, JobStatus};
use queuekeeper_queue::time;

impl Jobs {
    /// Sets what a node says in the row. Gives whether that changed anything, and whether the value was malformed.
    pub(super) fn set(&mut self, row: u32, node: Option<JobNode>, found: &Found) -> (bool, bool) {
        let (data, stat) = found.node().map_or((None, None), |(data, stat)| (Some(data), Some(stat)));
        let Self { columns, rest, texts, .. } = self;
        let at = row as usize;
        let rest = &mut rest[at];
        let refused = |node| data.is_some_and(|data| record::check_job_node(node, data).is_err());
        match node {
            None => {
                let changed = replace(&mut rest.created_ms, stat.map_or(UNKNOWN_MS, |stat| stat.ctime));
                // A status that is there and not readable dates nothing either.
                if rest.status_version() < 0 {
                    columns.entered_ms[at] = rest.created_ms;
                }
                (changed, false)
            }
            Some(node @ JobNode::Bid) => {
                let batch = data.and_then(|data| record::bid(data).ok());
                (columns.set_batch(at, batch), refused(node))
            }
            Some(node @ JobNode::Priority) => {
                let is_out = data.is_some_and(record::is_priority_out_of_range);
                let is_other = replace(&mut rest.is_priority_out_of_range, is_out);
                let priority = data.and_then(|data| record::priority(data).ok());
                let changed = replace(&mut columns.priority[at], priority.map_or(NO_PRIORITY, Priority::number));
                (changed || is_other, refused(node))
            }
            Some(node @ JobNode::SpaceNeeded) => {
                let space = data.and_then(|data| record::space_needed(data).ok()).flatten();
                (replace(&mut columns.space_needed_bytes[at], space.unwrap_or(0)), refused(node))
            }
            Some(JobNode::Status) => self.set_status(at, data, stat),
            Some(JobNode::Configuration) => {
                let Decoded { value, malformed } = data.map_or_else(nothing, Configuration::decode);
                let submitted = time::read(&value.submission_date).map(jiff::Timestamp::as_millisecond);
                let local_ids = value.local_ids.join("; ");
                let fields = [
                    (text::FILENAME, &*value.filename),
                    (text::TITLE, &*value.title),
                    (text::OBJECT_ID, &*value.object_id),
                    (text::NAMED_LOCAL_IDS, &*local_ids),
                ];
                let changed = [
                    columns.text.set(at, &fields),
                    texts.set(&mut columns.collection[at], &value.collection),
                    texts.set(&mut columns.submitter[at], &value.submitter),
                    replace(&mut rest.submitted_ms, submitted),
                ];
                (changed.contains(&true), data.is_some_and(|data| record::refused(data, malformed).is_err()))
            }
            Some(JobNode::Identifiers) => self.set_identifiers(at, data, [text::ARK, text::LOCAL_IDS]),
            Some(JobNode::Identifier) => self.set_identifiers(at, data, [text::OLD_ARK, text::OLD_LOCAL_IDS]),
            Some(node @ (JobNode::Metadata | JobNode::Store | JobNode::Inventory)) => (false, refused(node)),
            Some(JobNode::Lock) => {
                let lock = stat.map(LockStat::of);
                columns.set_locked(at, lock.is_some());
                (replace(&mut rest.lock, lock.map(Box::new)), false)
            }
        }
    }

    fn set_identifiers(&mut self, at: usize, data: Option<&[u8]>, fields: [usize; 2]) -> (bool, bool) {
        let Decoded { value, malformed } = data.map_or_else(nothing, Identifiers::decode);
        let local_ids = value.local_ids.join("; ");
        let changed = self.columns.text.set(at, &[(fields[0], &*value.ark), (fields[1], &*local_ids)]);
        (changed, data.is_some_and(|data| record::refused(data, malformed).is_err()))
    }

    fn set_status(&mut self, at: usize, data: Option<&[u8]>, stat: Option<&Stat>) -> (bool, bool) {
        let Decoded { value, malformed } = data.map_or_else(nothing, JobStatus::decode);
        let odd = if value.status.is_canonical() { "" } else { &value.status.text };
        let Self { columns, rest, texts, .. } = self;
        let rest = &mut rest[at];
        let is_elsewhere = columns.kind[at].state() != value.status.state;
        columns.set_state(at, value.status.state);
        let changed = [
            is_elsewhere,
            replace(&mut columns.entered_ms[at], stat.map_or(rest.created_ms, |stat| stat.mtime)),
            replace(&mut columns.retries[at], value.retry_count.unwrap_or(0)),
            replace(&mut rest.has_retry_count, value.retry_count.is_some()),
            replace(&mut rest.status_version, stat.map_or(-1, |stat| stat.version)),
            replace(&mut rest.last_successful, value.last_successful),
            replace(&mut rest.is_by_operator, record::is_by_operator(value.status.state, &value.message)),
            texts.set(&mut columns.message[at], &value.message),
            texts.set(&mut rest.status_text, odd),
        ];
        (changed.contains(&true), malformed.is_some())
    }
}

/// What is known of a znode that is not there, or not readable.
fn nothing<T: Default>() -> Decoded<T> {
    Decoded { value: T::default(), malformed: None }
}

fn replace<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
