-- When the content of a copy was written, or deleted: since then, what has no proof waits for one.
ALTER TABLE copies ADD COLUMN written {int} NOT NULL DEFAULT 0;
UPDATE copies SET written = COALESCE((
    SELECT audit_log.time FROM items JOIN audit_log ON audit_log.store = copies.store AND audit_log.space = items.space
        AND audit_log.key = items.key AND audit_log.change IN ('add', 'update', 'copy', 'delete')
    WHERE items.id = copies.item ORDER BY audit_log.seq DESC LIMIT 1), (SELECT created FROM catalogue), 0);

-- How many items of a space have a proof of a kind, by the day of that (of UTC, counted from 1970); those that have none, by the
-- day on which their content was written. What is not folded yet is in the deltas.
CREATE TABLE proof_counts (
    store {text} NOT NULL,
    space {text} NOT NULL,
    proof {text} NOT NULL,
    day {int} NOT NULL,
    items {int} NOT NULL,
    PRIMARY KEY (store, space, proof, day)
){table_by_key};
CREATE TABLE proof_deltas (
    id {id},
    store {text} NOT NULL,
    space {text} NOT NULL,
    proof {text} NOT NULL,
    day {int} NOT NULL,
    items {int} NOT NULL
){table};
INSERT INTO proof_counts (store, space, proof, day, items)
    SELECT copies.store, items.space, COALESCE(copies.proof, 'none'), COALESCE(copies.proven, copies.written) / 86400000,
        COUNT(*)
    FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted
    GROUP BY 1, 2, 3, 4;

-- How old a proof may become, in milliseconds, and which spaces are checked, as the producer that leads has it.
ALTER TABLE loops ADD COLUMN max_age {int};
ALTER TABLE loops ADD COLUMN include {text} NOT NULL DEFAULT '';
ALTER TABLE loops ADD COLUMN exclude {text} NOT NULL DEFAULT '';
