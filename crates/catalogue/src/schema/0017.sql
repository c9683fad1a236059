-- Checks that people ask for: the newest of each space of a store, and of each item, which has a key. What it found, and how far it
-- is: a space is gone through up to a marker.
CREATE TABLE asked_checks (
    id {id},
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    user_name {text} NOT NULL,
    reason {text} NOT NULL,
    asked {int} NOT NULL,
    items {int} NOT NULL,
    bytes {int} NOT NULL,
    marker {bytes},
    is_listed {flag} NOT NULL,
    proven {int} NOT NULL,
    proven_bytes {int} NOT NULL,
    wrong {int} NOT NULL,
    unproven {int} NOT NULL,
    gone {int} NOT NULL,
    changed {int} NOT NULL,
    UNIQUE (account, store, space, key)
){table};
CREATE INDEX asked_checks_by_time ON asked_checks (account, id);

-- Their items that are checked one by one, until that is done.
CREATE TABLE asked_items (
    asked {int} NOT NULL REFERENCES asked_checks (id),
    key {bytes} NOT NULL,
    PRIMARY KEY (asked, key)
){table_by_key};

-- The newest comparison of what a store lists of a space and the content index that was kept: what it came to as JSON, and where its
-- table lies.
CREATE TABLE comparisons (
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    started {int} NOT NULL,
    ended {int} NOT NULL,
    differing {int} NOT NULL,
    result {text} NOT NULL,
    place {text} NOT NULL,
    PRIMARY KEY (account, space, store)
){table_by_key};
