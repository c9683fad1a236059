//! Faults, how each is made, and what is left of it when it is repaired or purged.

use queuekeeper_queue::fault::Fault;

use super::tree::Do::{self, Delete, Gone, Make, MakeEphemeral, Set};

/// A fault, what shows it, how it is made, and how the tree differs from the healthy one once it is repaired.
pub(super) type Case = (Fault, &'static str, &'static [Do], &'static [Do]);

pub(super) const JOB: &str = "/jobs/jid0000000001";
pub(super) const ENTRY: &str = "/jobs/states/pending/05-jid0000000001";
pub(super) const REFERENCE: &str = "/batches/bid0000000000/states/batch-processing/jid0000000001";
pub(super) const STATUS: &str = "/jobs/jid0000000001/status";
pub(super) const PRIORITY: &str = "/jobs/jid0000000001/priority";
pub(super) const BID: &str = "/jobs/jid0000000001/bid";
/// A status that is made anew.
pub(super) const NEW_STATUS: &str =
    r#"{"status":"Pending","last_modified":"x","last_successful_status":null,"retry_count":0,"message":""}"#;

/// More than a repair may give up, and nothing that it could keep.
pub(super) const LARGE: &str = {
    static BYTES: [u8; 17 << 10] = [b'x'; 17 << 10];
    match str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => unreachable!(),
    }
};

pub(super) const CASES: &[Case] = &[
    (Fault::OrphanEntry, JOB, &[Delete(ENTRY), Make("/jobs/states/storing/05-jid0000000001", "")], &[]),
    (Fault::OrphanEntry, JOB, &[Make("/jobs/states/storing/77-jid0000000001", "")], &[]),
    (
        Fault::StrayEntry,
        "/jobs/jid0000000099",
        &[Make("/jobs/states/pending/05-jid0000000099", ""), Make("/jobs/states/held/104-jid0000000099", "")],
        &[],
    ),
    (Fault::DuplicateEntry, JOB, &[Make("/jobs/states/pending/07-jid0000000001", "")], &[]),
    (Fault::MissingEntry, JOB, &[Delete(ENTRY)], &[]),
    (
        Fault::PriorityOutOfRange,
        JOB,
        &[
            Set("/jobs/jid0000000001/priority", "100"),
            Delete(ENTRY),
            Make("/jobs/states/pending/100-jid0000000001", ""),
        ],
        &[Set("/jobs/jid0000000001/priority", "99"), Gone(ENTRY), Make("/jobs/states/pending/99-jid0000000001", "")],
    ),
    (
        Fault::PriorityOutOfRange,
        JOB,
        &[
            Set("/jobs/jid0000000001/priority", " -7 "),
            Delete(ENTRY),
            Make("/jobs/states/pending/-7-jid0000000001", ""),
        ],
        &[Set("/jobs/jid0000000001/priority", "0"), Gone(ENTRY), Make("/jobs/states/pending/00-jid0000000001", "")],
    ),
    (Fault::PriorityOutOfRange, JOB, &[Make("/jobs/states/pending/100-jid0000000001", "")], &[]),
    (Fault::DuplicateReference, JOB, &[Make("/batches/bid0000000000/states/batch-failed/jid0000000001", "")], &[]),
    (Fault::MissingReference, JOB, &[Delete(REFERENCE)], &[]),
    (
        Fault::MissingReference,
        JOB,
        &[Delete(REFERENCE), Make("/batches/bid0000000001/states/batch-deleted/jid0000000001", "")],
        &[],
    ),
    (
        Fault::MissingReference,
        "/jobs/jid0000000099",
        &[Make("/batches/bid0000000000/states/batch-failed/jid0000000099", "")],
        &[],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(STATUS, r#"{"status":"pending","retry_count":2,"message":"m","by":"ruby"}"#)],
        &[Set(
            STATUS,
            r#"{"status":"Pending","last_modified":"x","last_successful_status":null,"retry_count":2,"message":"m","by":"ruby"}"#,
        )],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(
            STATUS,
            r#"{"status":" Pending ","last_modification_date":"y","last_successful_status":"provisioning","message":"m"}"#,
        )],
        &[Set(
            STATUS,
            r#"{"status":"Pending","last_modified":"x","last_successful_status":"Provisioning","retry_count":0,"message":"m"}"#,
        )],
    ),
    (Fault::UnloadableJob, JOB, &[Set(STATUS, "garbage")], &[Set(STATUS, NEW_STATUS)]),
    (
        Fault::UnloadableJob,
        "/jobs/jid0000000003",
        &[Delete("/jobs/jid0000000003/status")],
        &[Set(
            "/jobs/jid0000000003/status",
            r#"{"status":"Storing","last_modified":"x","last_successful_status":"Processing","retry_count":0,"message":""}"#,
        )],
    ),
    (Fault::UnloadableJob, JOB, &[Delete("/jobs/jid0000000001/space_needed")], &[]),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set("/jobs/jid0000000001/space_needed", "5\n")],
        &[Set("/jobs/jid0000000001/space_needed", "5")],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Make("/jobs/jid0000000001/metadata", "[]"), Make("/jobs/jid0000000001/identifiers", "ark:/1/1")],
        &[Make("/jobs/jid0000000001/metadata", "{}"), Make("/jobs/jid0000000001/identifiers", "{}")],
    ),
    (
        Fault::UnloadableJob,
        JOB,
        &[Set(PRIORITY, "high"), Delete(ENTRY), Make("/jobs/states/pending/07-jid0000000001", "")],
        &[Set(PRIORITY, "7"), Gone(ENTRY), Make("/jobs/states/pending/07-jid0000000001", "")],
    ),
    (Fault::UnloadableJob, JOB, &[Delete(PRIORITY), Delete(ENTRY)], &[Gone(ENTRY)]),
    (Fault::UnloadableJob, JOB, &[Delete(BID)], &[]),
    (Fault::UnloadableJob, JOB, &[Set(BID, " bid0000000000")], &[]),
    (
        Fault::UnloadableJob,
        JOB,
        &[
            Set(BID, "bid0000000001"),
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
            Delete("/batches/bid0000000001/states"),
        ],
        &[
            Set(BID, "bid0000000001"),
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Gone("/batches/bid0000000001/states/batch-deleted"),
        ],
    ),
    (
        Fault::UnloadableRequest,
        "/access/small/qid0000000000",
        &[Set("/access/small/qid0000000000/status", r#"{"status":"pending","by":"ruby"}"#)],
        &[Set(
            "/access/small/qid0000000000/status",
            r#"{"status":"Pending","last_modified":"x","message":"","by":"ruby"}"#,
        )],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000000",
        &[Set("/batches/bid0000000000/status", r#"{"status":"update-reporting","message":"m"}"#)],
        &[Set("/batches/bid0000000000/status", r#"{"status":"UpdateReporting","last_modified":"x","message":"m"}"#)],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000000",
        &[Set("/batches/bid0000000000/status", "no json")],
        &[Set("/batches/bid0000000000/status", r#"{"status":"Reporting","last_modified":"x","message":""}"#)],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000001",
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Held"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
            Delete("/batches/bid0000000001/states"),
        ],
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Held"}"#),
            Gone("/batches/bid0000000001/states/batch-deleted"),
        ],
    ),
    (
        Fault::DeletedBatchBlocksReporting,
        "/batches/bid0000000001",
        &[Make("/batches/bid0000000001/states/batch-processing", "")],
        &[],
    ),
    (
        Fault::OverdueBatch,
        "/batches/bid0000000001",
        &[Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#)],
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Failed"}"#),
            Make("/batches/bid0000000001/states/batch-processing", ""),
        ],
    ),
    (Fault::DanglingUuid, "/batch-uuids/uuid-0", &[Set("/batch-uuids/uuid-0", "bid0000000000\n")], &[]),
    (Fault::DanglingUuid, "/batch-uuids/u9", &[Make("/batch-uuids/u9", "bid99999")], &[]),
    (
        Fault::OverdueBatch,
        "/batches/bid0000000001",
        &[Set("/batches/bid0000000001/status", r#"{"status":"Completed"}"#)],
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Completed"}"#),
            Make("/batches/bid0000000001/states/batch-processing", ""),
        ],
    ),
    (Fault::MalformedName, "/jobs/states/pending/05-", &[Make("/jobs/states/pending/05-", "")], &[]),
    (Fault::MalformedName, "/jobs/states/held/abc", &[Make("/jobs/states/held/abc", "whose?")], &[]),
    (
        Fault::UnfinishedCreation,
        "/batches/bid0000000001",
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Pending","message":"m"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
        ],
        &[
            Gone("/batches/bid0000000001/states"),
            Set("/batches/bid0000000001/status", r#"{"status":"Pending","message":"m"}"#),
        ],
    ),
    (
        Fault::UnfinishedCreation,
        "/batches/bid0000000001",
        &[
            Set("/batches/bid0000000001/status", r#"{"status":"Processing","last_modified":"y","message":"m"}"#),
            Delete("/batches/bid0000000001/states/batch-deleted"),
        ],
        &[
            Gone("/batches/bid0000000001/states"),
            Set("/batches/bid0000000001/status", r#"{"status":"Pending","last_modified":"x","message":"m"}"#),
        ],
    ),
    (
        Fault::UnloadableBatch,
        "/batches/bid0000000001",
        &[
            Delete("/batches/bid0000000001/submission"),
            Set("/batches/bid0000000001/status", r#"{"status":"deleted","last_modified":"y"}"#),
        ],
        &[
            Gone("/batches/bid0000000001/submission"),
            Set("/batches/bid0000000001/status", r#"{"status":"Deleted","last_modified":"x","message":""}"#),
        ],
    ),
    (Fault::DanglingUuid, "/batch-uuids/u9", &[Make("/batch-uuids/u9", "bid0000000077")], &[]),
    (Fault::DanglingUuid, "/batches/bid0000000000", &[Delete("/batch-uuids/uuid-0")], &[]),
    (Fault::DanglingUuid, "/batches/bid0000000000", &[Set("/batch-uuids/uuid-0", "nobody")], &[]),
    (Fault::LeakedLock, "/jobs/jid0000000004", &[MakeEphemeral("/jobs/jid0000000004/lock")], &[]),
    (Fault::LeakedLock, JOB, &[Make("/jobs/jid0000000001/lock", "")], &[]),
    (Fault::LeakedLock, "/batches/bid0000000001", &[MakeEphemeral("/batches/bid0000000001/lock")], &[]),
    (Fault::LeakedLock, "/access/small/qid0000000000", &[MakeEphemeral("/access/small/qid0000000000/lock")], &[]),
    (Fault::LeakedLock, "/locks/inventory/ark_1_1", &[Make("/locks/inventory/ark_1_1", "")], &[]),
    (Fault::LeakedStorageLock, "/locks/storage/ark_1_99", &[Make("/locks/storage/ark_1_99", "")], &[]),
];

/// What shows a fault that nothing in the tree repairs, how it is made, what the refusal names, and what a purge
/// removes.
pub(super) type Beyond = (&'static str, &'static [Do], &'static str, &'static [Do]);

pub(super) const JOB_GONE: &[Do] = &[Gone(JOB), Gone(ENTRY), Gone(REFERENCE)];

pub(super) const BEYOND_REPAIR: &[Beyond] = &[
    (JOB, &[Set("/jobs/jid0000000001/configuration", "no json")], "configuration is not JSON", JOB_GONE),
    (JOB, &[Make("/jobs/jid0000000001/metadata", LARGE)], "metadata holds 17408 bytes, more than the audit", JOB_GONE),
    (JOB, &[Set(STATUS, LARGE)], "status holds 17408 bytes", JOB_GONE),
    (JOB, &[Set(BID, "bid0000000066")], "its batch bid0000000066 is gone", JOB_GONE),
    (JOB, &[Set(STATUS, r#"{"status":"Teleporting","retry_count":0}"#)], "unknown state, Teleporting", JOB_GONE),
    (
        JOB,
        &[Set(STATUS, "garbage"), Delete(ENTRY)],
        "status is not JSON (line 1, column 1), and its queue entry and reference show different states",
        JOB_GONE,
    ),
    (JOB, &[Delete(STATUS), Make("/jobs/states/storing/05-jid0000000001", "")], "status does not exist", JOB_GONE),
    (
        JOB,
        &[Delete(BID), Make("/batches/bid0000000001/states/batch-deleted/jid0000000001", "")],
        "bid does not exist, and not exactly one batch refers to the job",
        JOB_GONE,
    ),
    (
        "/access/small/qid0000000000",
        &[Set("/access/small/qid0000000000/token", "no json")],
        "token is not JSON",
        &[Gone("/access/small/qid0000000000")],
    ),
    (
        "/batches/bid0000000001",
        &[Delete("/batches/bid0000000001/status")],
        "status does not exist",
        &[Gone("/batches/bid0000000001"), Gone("/batch-uuids/uuid-1")],
    ),
    (
        "/jobs/jid0000000050",
        &[
            Make("/jobs/jid0000000050", ""),
            Make("/jobs/jid0000000050/lock", ""),
            Make("/jobs/states/pending/05-jid0000000050", ""),
        ],
        "Purge it by name",
        &[],
    ),
    ("/batches/bid0000000050", &[Make("/batches/bid0000000050", "")], "Purge it by name", &[]),
    ("/access/small/qid0000000050", &[Make("/access/small/qid0000000050", "")], "Purge it by name", &[]),
];
