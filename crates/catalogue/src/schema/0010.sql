-- Bit integrity. The log of checks, in place of a table that nothing had written to yet: failures are kept for good, successes
-- until the report of their run is stored.
DROP TABLE bit_log;
CREATE TABLE bit_log (
    id {id},
    time {int} NOT NULL,
    item {int} NOT NULL REFERENCES items (id),
    store {text} NOT NULL,
    run {int},
    result {text} NOT NULL,
    findings {text},
    proof {text},
    content {text},
    provider {text},
    content_index {text},
    audit {text},
    detail {text}
){table};
CREATE INDEX bit_log_by_item ON bit_log (item, store, id);
CREATE INDEX bit_log_by_run ON bit_log (run, result, id);

-- One space of a store in one loop: when it began, when all its checks had been requested, and when they had ended.
CREATE TABLE bit_runs (
    id {id},
    loop {int} NOT NULL,
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    asked {text} NOT NULL,
    started {int} NOT NULL,
    listed {int},
    ended {int},
    is_forgotten {flag} NOT NULL,
    UNIQUE (account, store, space, loop)
){table};
CREATE INDEX bit_runs_open ON bit_runs (account, store, space) WHERE ended IS NULL;
CREATE INDEX bit_runs_kept ON bit_runs (id) WHERE NOT is_forgotten;

-- The pages of a run that are not checked: keys above one and up to another, or to the end of the space.
CREATE TABLE bit_pages (
    run {int} NOT NULL REFERENCES bit_runs (id),
    behind {bytes} NOT NULL,
    last {bytes},
    items {int} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (run, behind)
){table_by_key};

-- How many items and bytes of a run had which result; what is not folded yet is in the deltas.
CREATE TABLE bit_counts (
    run {int} NOT NULL REFERENCES bit_runs (id),
    result {text} NOT NULL,
    items {int} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (run, result)
){table_by_key};
CREATE TABLE bit_deltas (
    id {id},
    run {int} NOT NULL REFERENCES bit_runs (id),
    result {text} NOT NULL,
    items {int} NOT NULL,
    bytes {int} NOT NULL
){table};
CREATE INDEX bit_deltas_by_run ON bit_deltas (run, result);

-- What was found wrong, one row for an item until that has ended.
CREATE TABLE bit_errors (
    id {id},
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    run {int},
    result {text} NOT NULL,
    findings {text} NOT NULL,
    content {text},
    provider {text},
    content_index {text},
    audit {text},
    detail {text} NOT NULL,
    found {int} NOT NULL,
    seen {int} NOT NULL,
    times {int} NOT NULL,
    ended {int},
    outcome {text}
){table};
CREATE UNIQUE INDEX bit_errors_open ON bit_errors (store, space, key) WHERE ended IS NULL;
CREATE INDEX bit_errors_of_account ON bit_errors (account, id) WHERE ended IS NULL;

-- Whether checks of a space have not ended: those that failed for good have.
CREATE INDEX tasks_bit ON tasks (account, destination, space) WHERE kind IN ('BIT', 'BIT_PAGE') AND state <> 'dead';
