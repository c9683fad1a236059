//! What is done to a healthy tree, and what shows it.

use queuekeeper_queue::fault::Fault;

/// One change of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Do {
    Make(&'static str, &'static str),
    MakeEphemeral(&'static str),
    Set(&'static str, &'static str),
    Delete(&'static str),
}
use Do::{Delete, Make, MakeEphemeral, Set};

/// What is made, how it is repaired, what shows it, and one of the nodes that are named.
pub(crate) type Case = (&'static [Fault], &'static [Do], &'static [Do], &'static str, &'static str);

const HELD_BY_OPERATOR: &str = r#"{"status":"Held","last_successful_status":null,"retry_count":0,"message":"By alice with queuekeeper: a court order"}"#;

const PENDING: &str = r#"{"status":"Pending","retry_count":0}"#;

pub(crate) const CASES: &[Case] = &[
    (
        &[Fault::OrphanEntry],
        &[Delete("/jobs/states/completed/05-jid0000000008"), Make("/jobs/states/pending/05-jid0000000008", "")],
        &[Delete("/jobs/states/pending/05-jid0000000008")],
        "/jobs/jid0000000008",
        "/jobs/states/pending/05-jid0000000008",
    ),
    (
        &[Fault::StrayEntry],
        &[Make("/jobs/states/pending/05-jid0000000099", "")],
        &[Delete("/jobs/states/pending/05-jid0000000099")],
        "/jobs/jid0000000099",
        "/jobs/states/pending/05-jid0000000099",
    ),
    (
        &[Fault::DuplicateEntry],
        &[Make("/jobs/states/pending/07-jid0000000000", "")],
        &[Delete("/jobs/states/pending/07-jid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/states/pending/07-jid0000000000",
    ),
    (
        &[Fault::OrphanEntry],
        &[Make("/jobs/states/storing/05-jid0000000000", "")],
        &[Delete("/jobs/states/storing/05-jid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/states/storing/05-jid0000000000",
    ),
    (
        &[Fault::MissingEntry],
        &[Delete("/jobs/states/pending/05-jid0000000000")],
        &[Make("/jobs/states/pending/05-jid0000000000", "")],
        "/jobs/jid0000000000",
        "/jobs/states/pending/05-jid0000000000",
    ),
    (
        &[Fault::MissingEntry],
        &[Set("/jobs/jid0000000001/priority", "7")],
        &[Set("/jobs/jid0000000001/priority", "5")],
        "/jobs/jid0000000001",
        "/jobs/states/estimating/07-jid0000000001",
    ),
    (
        &[Fault::DuplicateReference],
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000000", "")],
        &[Delete("/batches/bid0000000000/states/batch-failed/jid0000000000")],
        "/jobs/jid0000000000",
        "/batches/bid0000000000/states/batch-failed/jid0000000000",
    ),
    (
        &[Fault::MissingReference],
        &[Delete("/batches/bid0000000000/states/batch-processing/jid0000000000")],
        &[Make("/batches/bid0000000000/states/batch-processing/jid0000000000", "")],
        "/jobs/jid0000000000",
        "/batches/bid0000000000/states/batch-processing/jid0000000000",
    ),
    (
        &[Fault::MissingReference],
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000099", "")],
        &[Delete("/batches/bid0000000000/states/batch-failed/jid0000000099")],
        "/jobs/jid0000000099",
        "/batches/bid0000000000/states/batch-failed/jid0000000099",
    ),
    (
        &[Fault::UnloadableJob],
        &[Delete("/jobs/jid0000000003/space_needed")],
        &[Make("/jobs/jid0000000003/space_needed", "0")],
        "/jobs/jid0000000003",
        "/jobs/jid0000000003/space_needed",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"pending","retry_count":0}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"Pending"}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/status", r#"{"status":"Teleporting","retry_count":0}"#)],
        &[Set("/jobs/jid0000000000/status", PENDING)],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::UnloadableJob],
        &[Make("/jobs/jid0000000004/metadata", "[]")],
        &[Delete("/jobs/jid0000000004/metadata")],
        "/jobs/jid0000000004",
        "/jobs/jid0000000004/metadata",
    ),
    (
        &[Fault::UnloadableJob],
        &[Set("/jobs/jid0000000003/priority", "5\n")],
        &[Set("/jobs/jid0000000003/priority", "5")],
        "/jobs/jid0000000003",
        "/jobs/jid0000000003/priority",
    ),
    (
        &[Fault::MissingReference, Fault::UnloadableJob],
        &[Set("/jobs/jid0000000000/bid", "bid0000000066")],
        &[Set("/jobs/jid0000000000/bid", "bid0000000000")],
        "/jobs/jid0000000000",
        "/jobs/jid0000000000/bid",
    ),
    (
        &[Fault::UnloadableBatch],
        &[Set("/batches/bid0000000000/submission", "no json")],
        &[Set("/batches/bid0000000000/submission", r#"{"batchID":"uuid-0"}"#)],
        "/batches/bid0000000000",
        "/batches/bid0000000000/submission",
    ),
    (
        &[Fault::UnloadableBatch],
        &[
            Make("/batches/bid0000000007", ""),
            Make("/batches/bid0000000007/submission", "{}"),
            Make("/batches/bid0000000007/status", r#"{"status":"Held"}"#),
        ],
        &[Make("/batches/bid0000000007/states", "")],
        "/batches/bid0000000007",
        "/batches/bid0000000007/states",
    ),
    (
        &[Fault::UnloadableRequest],
        &[
            Make("/access/small/qid0000000000", ""),
            Make("/access/small/qid0000000000/status", r#"{"status":"Pending"}"#),
            Make("/access/small/qid0000000000/token", "no json"),
        ],
        &[Set("/access/small/qid0000000000/token", "")],
        "/access/small/qid0000000000",
        "/access/small/qid0000000000/token",
    ),
    (
        &[Fault::UnfinishedCreation],
        &[Make("/jobs/jid0000000050", "")],
        &[Delete("/jobs/jid0000000050")],
        "/jobs/jid0000000050",
        "/jobs/jid0000000050",
    ),
    (
        &[Fault::UnfinishedCreation],
        &[Make("/batches/bid0000000050", "")],
        &[Delete("/batches/bid0000000050")],
        "/batches/bid0000000050",
        "/batches/bid0000000050",
    ),
    (
        &[Fault::UnfinishedCreation],
        &[
            Make("/batches/bid0000000051", ""),
            Make("/batches/bid0000000051/status", r#"{"status":"Processing"}"#),
            Make("/batches/bid0000000051/states", ""),
        ],
        &[
            Make("/batches/bid0000000051/states/batch-processing", ""),
            Set("/batches/bid0000000051/status", r#"{"status":"Completed"}"#),
        ],
        "/batches/bid0000000051",
        "/batches/bid0000000051/states",
    ),
    (
        &[Fault::MalformedName],
        &[Make("/jobs/states/pending/05-", "")],
        &[Delete("/jobs/states/pending/05-")],
        "/jobs/states/pending/05-",
        "/jobs/states/pending/05-",
    ),
    (
        &[Fault::MalformedName],
        &[Make("/jobs/states/pending/99_jid0000000000", "")],
        &[Delete("/jobs/states/pending/99_jid0000000000")],
        "/jobs/states/pending/99_jid0000000000",
        "/jobs/states/pending/99_jid0000000000",
    ),
    (
        &[Fault::MalformedName],
        &[Make("/jobs/jid77777", ""), Make("/jobs/jid77777/status", PENDING)],
        &[Delete("/jobs/jid77777/status"), Delete("/jobs/jid77777")],
        "/jobs/jid77777",
        "/jobs/jid77777",
    ),
    (
        &[Fault::MalformedName],
        // The entry of a UUID leads to it, and dangles no more than the batch does.
        &[Make("/batches/bid99999", ""), Make("/batch-uuids/u9", "bid99999")],
        &[Delete("/batch-uuids/u9"), Delete("/batches/bid99999")],
        "/batches/bid99999",
        "/batches/bid99999",
    ),
    (
        &[Fault::ContradictingBatch],
        &[Set("/batches/bid0000000000/status", r#"{"status":"Completed"}"#)],
        &[Set("/batches/bid0000000000/status", r#"{"status":"Reporting"}"#)],
        "/batches/bid0000000000",
        "/batches/bid0000000000/states/batch-processing",
    ),
    (
        &[Fault::ContradictingBatch],
        // Also where it was there before anybody looked: below a batch that has ended references are looked at.
        &[
            Make("/batches/bid0000000000/states/batch-processing/jid0000000000/x", ""),
            Set("/batches/bid0000000000/status", r#"{"status":"Completed"}"#),
        ],
        &[
            Delete("/batches/bid0000000000/states/batch-processing/jid0000000000/x"),
            Set("/batches/bid0000000000/status", r#"{"status":"Reporting"}"#),
        ],
        "/batches/bid0000000000",
        "/batches/bid0000000000/states/batch-processing/jid0000000000/x",
    ),
    (
        &[Fault::ContradictingBatch],
        &[Make("/batches/bid0000000052", ""), Make("/batches/bid0000000052/status", r#"{"status":"Pending"}"#)],
        &[Set("/batches/bid0000000052/status", r#"{"status":"Held"}"#), Make("/batches/bid0000000052/states", "")],
        "/batches/bid0000000052",
        "/batches/bid0000000052/status",
    ),
    (
        &[Fault::PriorityOutOfRange],
        &[
            Set("/jobs/jid0000000000/priority", "100"),
            Delete("/jobs/states/pending/05-jid0000000000"),
            Make("/jobs/states/pending/100-jid0000000000", ""),
        ],
        &[
            Set("/jobs/jid0000000000/priority", "5"),
            Make("/jobs/states/pending/05-jid0000000000", ""),
            Delete("/jobs/states/pending/100-jid0000000000"),
        ],
        "/jobs/jid0000000000",
        "/jobs/states/pending/100-jid0000000000",
    ),
    (
        &[Fault::LeakedLock],
        &[MakeEphemeral("/jobs/jid0000000009/lock")],
        &[Delete("/jobs/jid0000000009/lock")],
        "/jobs/jid0000000009",
        "/jobs/jid0000000009/lock",
    ),
    (
        &[Fault::LeakedLock],
        &[Make("/jobs/jid0000000003/lock", "")],
        &[Delete("/jobs/jid0000000003/lock")],
        "/jobs/jid0000000003",
        "/jobs/jid0000000003/lock",
    ),
    (
        &[Fault::LeakedLock],
        &[Make("/locks/inventory/ark_1_1", "")],
        &[Delete("/locks/inventory/ark_1_1")],
        "/locks/inventory/ark_1_1",
        "/locks/inventory/ark_1_1",
    ),
    (
        &[Fault::LeakedStorageLock],
        // The object of the job in Storing is being stored, and that of no job is not.
        &[Make("/locks/storage/ark_1_5", ""), Make("/locks/storage/ark_1_99", "")],
        &[Delete("/locks/storage/ark_1_99"), Delete("/locks/storage/ark_1_5")],
        "/locks/storage/ark_1_99",
        "/locks/storage/ark_1_99",
    ),
    (
        &[Fault::DeletedBatchBlocksReporting],
        &[
            Make("/batches/bid0000000003", ""),
            Make("/batches/bid0000000003/submission", "{}"),
            Make("/batches/bid0000000003/status", r#"{"status":"Deleted"}"#),
            Make("/batches/bid0000000003/states", ""),
            Make("/batches/bid0000000003/states/batch-processing", ""),
        ],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#)],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::OverdueBatch],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Reporting"}"#)],
        &[Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#)],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::OverdueBatch],
        &[
            Delete("/batches/bid0000000003/states/batch-processing"),
            Set("/batches/bid0000000003/status", r#"{"status":"Failed"}"#),
        ],
        &[
            Make("/batches/bid0000000003/states/batch-processing", ""),
            Set("/batches/bid0000000003/status", r#"{"status":"Completed"}"#),
        ],
        "/batches/bid0000000003",
        "/batches/bid0000000003/states/batch-processing",
    ),
    (
        &[Fault::HeldCollectionBacklog],
        &[Make("/locks/collections/c0", "")],
        &[Delete("/locks/collections/c0")],
        "/locks/collections/c0",
        "/jobs/jid0000000000/status",
    ),
    (
        &[Fault::HeldCollectionBacklog],
        &[Delete("/locks/collections/c10")],
        &[Make("/locks/collections/c10", "")],
        "/locks/collections/c10",
        "/jobs/jid0000000010/status",
    ),
    // What an operator holds by itself needs no hold of its collection.
    (
        &[Fault::HeldCollectionBacklog],
        &[Delete("/locks/collections/c10")],
        &[Set("/jobs/jid0000000010/status", HELD_BY_OPERATOR)],
        "/locks/collections/c10",
        "/jobs/jid0000000010/status",
    ),
    (
        &[Fault::DanglingUuid],
        &[Make("/batch-uuids/u9", "bid0000000077")],
        &[Delete("/batch-uuids/u9")],
        "/batch-uuids/u9",
        "/batch-uuids/u9",
    ),
    (
        &[Fault::DanglingUuid],
        &[Delete("/batch-uuids/uuid-0")],
        &[Make("/batch-uuids/uuid-0", "bid0000000000")],
        "/batches/bid0000000000",
        "/batch-uuids/uuid-0",
    ),
    (
        &[Fault::DanglingUuid],
        &[Set("/batch-uuids/uuid-0", "bid0000000000\n")],
        &[Set("/batch-uuids/uuid-0", "bid0000000000")],
        "/batch-uuids/uuid-0",
        "/batch-uuids/uuid-0",
    ),
    (
        &[Fault::RetriesExhausted],
        &[Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":3}"#)],
        &[Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":2}"#)],
        "/jobs/jid0000000009",
        "/jobs/jid0000000009/status",
    ),
];
