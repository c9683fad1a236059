-- Repairs of copies: who started each and why, from which copy, under which key the damaged content is kept, and how it ended.
CREATE TABLE repairs (
    id {id},
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    user_name {text} NOT NULL,
    is_automatic {flag} NOT NULL,
    reason {text} NOT NULL,
    started {int} NOT NULL,
    source {text},
    kept_as {text},
    ended {int},
    outcome {text},
    detail {text}
){table};
CREATE UNIQUE INDEX repairs_open ON repairs (store, space, key) WHERE ended IS NULL;
CREATE INDEX repairs_by_item ON repairs (store, space, key, id);
CREATE INDEX repairs_by_account ON repairs (account, id);
CREATE INDEX repairs_automatic ON repairs (store, started) WHERE is_automatic;

-- The report on a run: when it was stored, its result, and where it lies.
ALTER TABLE bit_runs ADD COLUMN reported {int};
ALTER TABLE bit_runs ADD COLUMN result {text};
ALTER TABLE bit_runs ADD COLUMN report {text};
