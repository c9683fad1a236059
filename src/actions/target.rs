//! The targets of actions.

use std::fmt;
use std::str::FromStr;

use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId, RequestId};
use queuekeeper_queue::path::{self, AccessQueue, Path};
use queuekeeper_store::StoreName;

/// A kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetKind {
    /// A job.
    Job,
    /// A batch.
    Batch,
    /// An access request.
    Request,
    /// A queue that can be paused.
    Queue,
    /// A collection.
    Collection,
    /// A store.
    Store,
    /// A lock.
    Lock,
    /// A fault.
    Fault,
    /// All batches.
    Batches,
}

impl TargetKind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::Job,
        Self::Batch,
        Self::Request,
        Self::Queue,
        Self::Collection,
        Self::Store,
        Self::Lock,
        Self::Fault,
        Self::Batches,
    ];

    /// The noun with its article.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Job => "a job",
            Self::Batch => "a batch",
            Self::Request => "an access request",
            Self::Queue => "a queue",
            Self::Collection => "a collection",
            Self::Store => "a store",
            Self::Lock => "a lock",
            Self::Fault => "a fault",
            Self::Batches => "all batches",
        }
    }
}

/// The target of an action.
///
/// Its text, as in pages, the API, the command line and the audit file: `jid0000000042`, `bid0000000042`,
/// `small/qid0000000042`, `queue:ingest`, `collection:merritt_demo`, `store:main`, `lock:/jobs/jid0000000042/lock`,
/// `fault:orphan_entry:/jobs/jid0000000042`, `batches`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A job.
    Job(JobId),
    /// A batch.
    Batch(BatchId),
    /// An access request.
    Request(AccessQueue, RequestId),
    /// A queue that can be paused.
    Queue(path::QueueName),
    /// A collection, by its mnemonic.
    Collection(Box<str>),
    /// A store, by its name in the configuration.
    Store(StoreName),
    /// A lock, by its path.
    Lock(Path),
    /// A fault, and the item that shows it.
    Fault(Fault, Path),
    /// All batches.
    Batches,
}

/// The text is not the name of a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownTarget(&'static str);

impl Target {
    /// The kind of the target.
    #[must_use]
    pub fn kind(&self) -> TargetKind {
        match self {
            Self::Job(_) => TargetKind::Job,
            Self::Batch(_) => TargetKind::Batch,
            Self::Request(..) => TargetKind::Request,
            Self::Queue(_) => TargetKind::Queue,
            Self::Collection(_) => TargetKind::Collection,
            Self::Store(_) => TargetKind::Store,
            Self::Lock(_) => TargetKind::Lock,
            Self::Fault(..) => TargetKind::Fault,
            Self::Batches => TargetKind::Batches,
        }
    }

    /// The path of its page, below the root; `None` if it has none.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        match self {
            Self::Job(id) => Some(format!("jobs/{id}")),
            Self::Batch(id) => Some(format!("batches/{id}")),
            Self::Request(..) => Some("access".to_owned()),
            Self::Queue(_) | Self::Collection(_) | Self::Lock(_) => Some("locks".to_owned()),
            Self::Store(_) => Some("locks#stores".to_owned()),
            Self::Fault(fault, _) => Some(format!("faults?fault={fault}")),
            Self::Batches => Some("batches".to_owned()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "{id}"),
            Self::Batch(id) => write!(f, "{id}"),
            Self::Request(queue, id) => write!(f, "{}/{id}", queue.name()),
            Self::Queue(queue) => write!(f, "queue:{}", queue.name()),
            Self::Collection(mnemonic) => write!(f, "collection:{mnemonic}"),
            Self::Store(name) => write!(f, "store:{name}"),
            Self::Lock(path) => write!(f, "lock:{path}"),
            Self::Fault(fault, path) => write!(f, "fault:{fault}:{path}"),
            Self::Batches => f.write_str("batches"),
        }
    }
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, UnknownTarget> {
        if text == "batches" {
            return Ok(Self::Batches);
        }
        if let Some((kind, rest)) = text.split_once(':') {
            return Self::of_kind(kind, rest);
        }
        if let Some((queue, id)) = text.split_once('/') {
            let queue =
                AccessQueue::from_name(queue).ok_or(UnknownTarget("expected small or large as the access queue"))?;
            let id = id.parse().map_err(|_| UnknownTarget("expected a request as small/qid0000000042"))?;
            return Ok(Self::Request(queue, id));
        }
        let (job, batch) = (text.parse().map(Self::Job), text.parse().map(Self::Batch));
        job.or(batch).map_err(|_| {
            UnknownTarget(
                "expected a job such as jid0000000042, a batch such as bid0000000042, a request such as small/qid0000000042, queue:ingest, collection:MNEMONIC, store:NAME, lock:PATH, fault:NAME:PATH or batches",
            )
        })
    }
}

impl Target {
    fn of_kind(kind: &str, rest: &str) -> Result<Self, UnknownTarget> {
        let path = |text: &str| {
            let path = Path::parse(text);
            // A path that the grammar truncates is not the one that was named.
            if path.to_string() == text { Ok(path) } else { Err(UnknownTarget("not the path of a znode of the queue")) }
        };
        match kind {
            "queue" => path::QueueName::from_name(rest)
                .map(Self::Queue)
                .ok_or(UnknownTarget("expected one of the queues ingest, accessSmall and accessLarge")),
            "collection" => {
                let hold = Path::hold(rest).ok_or(UnknownTarget("not a valid mnemonic of a collection"));
                hold.map(|_| Self::Collection(rest.into()))
            }
            "store" => rest.parse().map(Self::Store).map_err(|_| UnknownTarget("not a valid name of a store")),
            "lock" => {
                let lock = path(rest)?;
                lock.is_lock().then_some(Self::Lock(lock)).ok_or(UnknownTarget("not the path of a lock"))
            }
            "fault" => {
                let (fault, item) = rest.split_once(':').ok_or(UnknownTarget("expected a fault as fault:NAME:PATH"))?;
                let fault = Fault::from_label(fault).ok_or(UnknownTarget("unknown fault"))?;
                path(item).map(|item| Self::Fault(fault, item))
            }
            _ => Err(UnknownTarget("expected queue, collection, store, lock or fault before the colon")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_parsed_from_the_text_that_it_is_displayed_as_and_no_other_text_is_one() {
        for text in [
            "jid0000000042",
            "bid0000000007",
            "small/qid0000000001",
            "large/qid0000000002",
            "queue:ingest",
            "queue:accessSmall",
            "collection:merritt_demo_content",
            "collection:a:b",
            "store:main",
            "lock:/jobs/jid0000000042/lock",
            "lock:/locks/storage/ark_99999_fk4",
            "fault:orphan_entry:/jobs/jid0000000042",
            "fault:dangling_uuid:/batch-uuids/bid-9c1a:0b5e",
            "batches",
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            assert!(target.actions().next().is_some());
        }
        for text in [
            "",
            "jid42",
            "qid0000000001",
            "medium/qid0000000001",
            "small/jid0000000001",
            "queue:Ingest",
            "collection:",
            "collection:a/b",
            "collection:..",
            "store:",
            "store:a/b",
            "store:..",
            "lock:",
            "lock:jobs",
            "lock:/jobs",
            "lock:/jobs//jid0000000001/lock",
            "lock:/jobs/jid0000000042/lock/deeper",
            "fault:orphan_entry",
            "fault:nothing:/jobs/jid0000000042",
            "fault:orphan_entry:/etc/passwd",
            "table:jobs",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
