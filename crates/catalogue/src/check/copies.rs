//! Whether the content index, and the witness beside it, say what the audit log says.

use queuekeeper_store::Key;
use queuekeeper_store::error::shortened;

use super::{CatalogueFinding, MOST_FINDINGS, RESTORE};
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// A statement whose rows are copies of which something is wrong: their store, space and key.
struct CopyRule {
    sql: &'static str,
    what: &'static str,
    fix: &'static str,
}

const LOOK: &str = "check the integrity of that store: its content shows which of the two is right";

/// The event of each entry of a table, as `last`, and the one that wrote the content which is known after it, as
/// `written`: a deletion and new properties keep size and digests.
macro_rules! with_events {
    ($table:literal, $wrong:literal) => {
        concat!(
            "SELECT known.store, items.space, items.key FROM ",
            $table,
            " AS known JOIN items ON items.id = known.item
            LEFT JOIN audit_log AS last ON last.seq = known.seq AND last.store = known.store
                AND last.space = items.space AND last.key = items.key
            LEFT JOIN audit_log AS written ON written.seq = CASE
                WHEN last.change IN ('add', 'update', 'copy') THEN last.seq
                ELSE (SELECT MAX(earlier.seq) FROM audit_log AS earlier
                    WHERE earlier.store = known.store AND earlier.space = items.space AND earlier.key = items.key
                        AND earlier.seq < known.seq AND earlier.change IN ('add', 'update', 'copy')) END
            WHERE last.seq IS NULL OR last.change = 'observed'
                OR written.seq IS NULL OR written.size <> known.size OR written.digests <> known.digests
                OR (known.is_deleted <> (last.change = 'delete') AND last.change <> 'properties')",
            $wrong,
            " LIMIT $1"
        )
    };
}

/// The argument `$1` of each is the limit.
const RULES: &[CopyRule] = &[
    CopyRule {
        sql: "SELECT copies.store, items.space, items.key FROM copies JOIN items ON items.id = copies.item
            LEFT JOIN audit_head ON audit_head.item = copies.item AND audit_head.store = copies.store
            WHERE audit_head.seq IS NULL OR audit_head.seq <> copies.seq LIMIT $1",
        what: "the content index and the last event of a copy differ:",
        fix: LOOK,
    },
    CopyRule {
        sql: "SELECT audit_head.store, items.space, items.key
            FROM audit_head JOIN items ON items.id = audit_head.item
            LEFT JOIN copies ON copies.item = audit_head.item AND copies.store = audit_head.store
            WHERE copies.item IS NULL LIMIT $1",
        what: "the content index lacks a copy that has an event:",
        fix: RESTORE,
    },
    CopyRule {
        // The entity tag is the last one that is known: an event of new properties may have none.
        sql: with_events!(
            "copies",
            " OR known.etag IS DISTINCT FROM CASE last.change WHEN 'delete' THEN NULL
                    WHEN 'properties' THEN COALESCE(last.etag, known.etag) ELSE last.etag END
                OR (last.change <> 'delete' AND known.properties IS DISTINCT FROM
                    CASE WHEN last.change = 'properties' THEN last.properties END)"
        ),
        what: "the content index differs from the audit log for a copy:",
        fix: RESTORE,
    },
    CopyRule {
        sql: with_events!("audit_head", ""),
        what: "the record of the last event of a copy (audit_head) differs from the audit log:",
        fix: RESTORE,
    },
    CopyRule {
        sql: "SELECT copies.store, items.space, items.key FROM copies JOIN items ON items.id = copies.item
            WHERE (copies.proof IS NULL) <> (copies.proven IS NULL) OR copies.proof NOT IN ('read', 'provider')
                OR (copies.proof IS NOT NULL AND copies.is_deleted) LIMIT $1",
        what: "a copy has a proof without a time, of an unknown kind, or of content that was deleted:",
        fix: RESTORE,
    },
    CopyRule {
        sql: "SELECT store, space, key FROM bit_errors WHERE ended IS NULL AND NOT EXISTS (
                SELECT 1 FROM bit_log JOIN items ON items.id = bit_log.item
                WHERE items.space = bit_errors.space AND items.key = bit_errors.key
                    AND bit_log.store = bit_errors.store AND bit_log.result = bit_errors.result) LIMIT $1",
        what: "a copy has a bit error (bit_errors) that is not in the log of checks:",
        fix: RESTORE,
    },
];

pub(super) async fn check(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    for rule in RULES {
        for row in session.rows(rule.sql, values![MOST_FINDINGS]).await? {
            let item = session.decode(item(&row, 0))?;
            findings.push(CatalogueFinding { what: format!("{} {item}", rule.what), fix: rule.fix });
        }
    }
    Ok(())
}

/// `STORE/SPACE/KEY` of three columns, counted from `at`; `STORE/SPACE` where the key is none.
pub(super) fn item(row: &DatabaseRow, at: usize) -> Result<String, sqlx::Error> {
    let (store, space) = (row.get::<String>(at)?, row.get::<String>(at + 1)?);
    let key = Key::new(row.get::<Vec<u8>>(at + 2)?);
    let key = key.map(|key| format!("/{}", shortened(&key.to_string()))).unwrap_or_default();
    Ok(format!("{store}/{space}{key}"))
}
