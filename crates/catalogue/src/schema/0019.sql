-- The items of a run that are checked one by one, until that is done: with the bytes that the store listed, else those that are
-- recorded. What was requested before counts as listed, with no bytes.
CREATE TABLE bit_items (
    run {int} NOT NULL REFERENCES bit_runs (id),
    key {bytes} NOT NULL,
    bytes {int} NOT NULL,
    is_listed {flag} NOT NULL,
    PRIMARY KEY (run, key)
){table_by_key};
INSERT INTO bit_items (run, key, bytes, is_listed) SELECT bit_runs.id, tasks.key, 0, TRUE
    FROM bit_runs JOIN tasks ON tasks.account = bit_runs.account AND tasks.destination = bit_runs.store
        AND tasks.space = bit_runs.space AND tasks.kind = 'BIT'
    WHERE bit_runs.reported IS NULL AND NOT bit_runs.is_forgotten;

-- Checks that were asked for are forgotten some time after they ended.
CREATE INDEX asked_checks_by_change ON asked_checks (changed);

-- Of the pages of a run that has ended, those that waited for their store are unread in its report, also when they are checked
-- later. The next run begins behind the first page that was not checked: its origin.
ALTER TABLE bit_pages ADD COLUMN is_unread {flag} NOT NULL DEFAULT FALSE;
ALTER TABLE bit_pages ADD COLUMN is_checked {flag} NOT NULL DEFAULT FALSE;
ALTER TABLE bit_runs ADD COLUMN origin {bytes};
