-- The mill's tasks, in place of a table that nothing had written to yet.
DROP TABLE tasks;

-- One open task for each kind, subject and destination. The subject is an item, a space where the key is empty, or a page of a
-- space from that key on. The home is the queue that the task belongs to while it lies in the dead letters.
CREATE TABLE tasks (
    id {id},
    queue {text} NOT NULL,
    home {text} NOT NULL,
    kind {text} NOT NULL,
    account {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    destination {text} NOT NULL,
    source {text} NOT NULL,
    generation {int} NOT NULL,
    state {text} NOT NULL,
    visible {int} NOT NULL,
    holder {uuid},
    worker {text},
    attempts {int} NOT NULL,
    rounds {int} NOT NULL,
    errors {text} NOT NULL,
    is_released {flag} NOT NULL,
    is_put_off {flag} NOT NULL,
    created {int} NOT NULL,
    UNIQUE (account, space, key, kind, destination)
){table};
-- What is dead or held is never visible.
CREATE INDEX tasks_by_time ON tasks (queue, account, visible, id);
CREATE INDEX tasks_taken ON tasks (queue, id) WHERE holder IS NOT NULL;
CREATE INDEX tasks_held ON tasks (account, destination, id) WHERE state = 'held';

-- How many items of a space were deleted or overwritten by the mill, by the minute in which it was allowed.
CREATE TABLE effects (
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    minute {int} NOT NULL,
    number {int} NOT NULL,
    PRIMARY KEY (account, store, space, minute)
){table_by_key};

-- Items are counted by space, too.
INSERT INTO counters (name, scope, value)
    SELECT 'space_items', copies.store || '/' || items.space, COUNT(*)
    FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted
    GROUP BY copies.store || '/' || items.space;

-- What the mill kept of an item before it deleted it or wrote over it: a copy in a space of the same store, under this key.
CREATE TABLE asides (
    id {id},
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    kept_as {text} NOT NULL UNIQUE,
    reason {text} NOT NULL,
    time {int} NOT NULL
){table};
CREATE INDEX asides_by_item ON asides (store, space, key, id);
CREATE INDEX asides_by_time ON asides (time, id);

-- How far who follows the audit log has come.
CREATE TABLE followers (
    name {text} PRIMARY KEY,
    seq {int} NOT NULL
){table_by_key};

-- Deletions of what a loop has found are tasks like the others, which look at both sides.
ALTER TABLE morsels DROP COLUMN is_deletes_done;

-- What people decided of tasks that waited for them.
CREATE TABLE decisions (
    id {id},
    time {int} NOT NULL,
    user_name {text} NOT NULL,
    decision {text} NOT NULL,
    reason {text} NOT NULL,
    task {int} NOT NULL,
    account {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    kind {text} NOT NULL,
    destination {text} NOT NULL
){table};
CREATE INDEX decisions_by_item ON decisions (account, space, key, id);
