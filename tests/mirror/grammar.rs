//! The tree's grammar once more, by splitting paths: the mirror's own must not judge itself.

/// What a znode is, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// It is there, and holds others.
    Folder,
    /// Only its name counts, and nothing below it: a batch UUID.
    Uuid,
    /// A job.
    Job(String),
    /// A child of a job.
    JobNode(String, String),
    /// A queue entry, and the job that it names.
    Entry(String),
    /// A batch.
    Batch(String),
    /// A child of a batch.
    BatchNode(String, String),
    /// A folder of references.
    Outcome(String, usize),
    /// A reference: batch, folder, job.
    Reference(String, usize, String),
    /// An access request, by queue and id.
    Request(String),
    /// A child of one.
    RequestNode(String, String),
    /// A lock below `/locks`, by the label of its kind.
    Lock(&'static str),
    /// No part of the queue.
    Foreign,
    /// None of these.
    Unexpected,
}

pub(crate) const OUTCOMES: [&str; 4] = ["batch-processing", "batch-failed", "batch-completed", "batch-deleted"];

pub(crate) const JOB_NODES: [&str; 11] = [
    "bid",
    "configuration",
    "status",
    "priority",
    "space_needed",
    "identifiers",
    "identifier",
    "metadata",
    "store",
    "inventory",
    "lock",
];

const BATCH_NODES: [&str; 5] = ["submission", "status", "status-report", "lock", "states"];

const JOB_STATES: [(&str, &str); 12] = [
    ("Pending", "pending"),
    ("Estimating", "estimating"),
    ("Provisioning", "provisioning"),
    ("Downloading", "downloading"),
    ("Processing", "processing"),
    ("Storing", "storing"),
    ("Recording", "recording"),
    ("Notify", "notify"),
    ("Completed", "completed"),
    ("Failed", "failed"),
    ("Held", "held"),
    ("Deleted", "deleted"),
];

const BATCH_STATES: [(&str, &str); 8] = [
    ("Pending", "pending"),
    ("Processing", "processing"),
    ("Reporting", "reporting"),
    ("UpdateReporting", "update-reporting"),
    ("Completed", "completed"),
    ("Failed", "failed"),
    ("Held", "held"),
    ("Deleted", "deleted"),
];

const ACCESS_STATES: [(&str, &str); 5] = [
    ("Pending", "pending"),
    ("Processing", "processing"),
    ("Completed", "completed"),
    ("Failed", "failed"),
    ("Deleted", "deleted"),
];

/// Whose states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Job,
    Batch,
    Access,
}

impl Machine {
    pub(crate) fn states(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Job => &JOB_STATES,
            Self::Batch => &BATCH_STATES,
            Self::Access => &ACCESS_STATES,
        }
    }

    /// The state's name and label for a status text in any spelling.
    pub(crate) fn state(self, text: &str) -> Option<(&'static str, &'static str)> {
        let alike = |(name, label): &&(&str, &str)| text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(label);
        self.states().iter().find(alike).copied()
    }
}

pub(crate) fn is_known_folder(name: &str) -> bool {
    JOB_STATES.iter().any(|(_, label)| *label == name)
}

pub(crate) fn is_id(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).filter(|digits| digits.len() == 10);
    digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()) && digits.parse::<u32>().is_ok())
}

fn entry(name: &str) -> Option<String> {
    let (priority, job) = name.rsplit_once('-')?;
    let number: i32 = priority.parse().ok()?;
    (is_id(job, "jid") && format!("{number:02}-{job}") == name).then(|| job.to_owned())
}

pub(crate) fn kind(path: &str) -> NodeKind {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let text = |text: &str| text.to_owned();
    let outcome = |name: &str| OUTCOMES.iter().position(|outcome| *outcome == name);
    match parts[..] {
        // Longer than a state may be called: ZooKeeper takes names of which two fill a request.
        ["jobs", "states", folder, ..] if folder.len() > 255 => NodeKind::Unexpected,
        ["zookeeper" | "queuekeeper", ..] => NodeKind::Foreign,
        []
        | ["batch-uuids" | "batches" | "jobs" | "access" | "locks"]
        | ["jobs", "states"]
        | ["jobs", "states", _]
        | ["access", "small" | "large"]
        | ["locks", "queue" | "collections" | "storage" | "inventory" | "localid"]
        | ["locks", "queue", "localid"] => NodeKind::Folder,
        ["batch-uuids", _] => NodeKind::Uuid,
        ["batches", bid] if is_id(bid, "bid") => NodeKind::Batch(text(bid)),
        ["batches", bid, node] if is_id(bid, "bid") && BATCH_NODES.contains(&node) => {
            NodeKind::BatchNode(text(bid), text(node))
        }
        ["batches", bid, "states", folder] if is_id(bid, "bid") => {
            outcome(folder).map_or(NodeKind::Unexpected, |outcome| NodeKind::Outcome(text(bid), outcome))
        }
        ["batches", bid, "states", folder, jid] if is_id(bid, "bid") && is_id(jid, "jid") => {
            outcome(folder).map_or(NodeKind::Unexpected, |outcome| NodeKind::Reference(text(bid), outcome, text(jid)))
        }
        ["jobs", "states", _, name] => entry(name).map_or(NodeKind::Unexpected, NodeKind::Entry),
        ["jobs", jid] if is_id(jid, "jid") => NodeKind::Job(text(jid)),
        ["jobs", jid, node] if is_id(jid, "jid") && JOB_NODES.contains(&node) => {
            NodeKind::JobNode(text(jid), text(node))
        }
        ["access", queue @ ("small" | "large"), qid] if is_id(qid, "qid") => {
            NodeKind::Request(format!("{queue}/{qid}"))
        }
        ["access", queue @ ("small" | "large"), qid, node @ ("token" | "status" | "lock")] if is_id(qid, "qid") => {
            NodeKind::RequestNode(format!("{queue}/{qid}"), text(node))
        }
        ["locks", "queue", "localid", _] | ["locks", "localid", _] => NodeKind::Lock("localid"),
        ["locks", "queue", "ingest" | "accessSmall" | "accessLarge"] => NodeKind::Lock("queue"),
        ["locks", "collections", _] => NodeKind::Lock("collection"),
        ["locks", "storage", _] => NodeKind::Lock("storage"),
        ["locks", "inventory", _] => NodeKind::Lock("inventory"),
        _ => NodeKind::Unexpected,
    }
}
