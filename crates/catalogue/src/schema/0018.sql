-- What a task waits for whose store cannot be read now: a restore, or the next day's budget.
ALTER TABLE tasks ADD COLUMN waits_for {text};
CREATE INDEX tasks_restore ON tasks (account, destination, id) WHERE state = 'restore';

-- How many restores the mill asked a store for, and how many bytes it read from it, by the minute in which that was allowed.
CREATE TABLE budget_uses (
    store {text} NOT NULL,
    minute {int} NOT NULL,
    restores {int} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (store, minute)
){table_by_key};

-- The items whose restore was allowed, until they are read. It may not have been asked for, where a process died.
CREATE TABLE restores (
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    allowed {int} NOT NULL,
    asked {int},
    PRIMARY KEY (store, space, key)
){table_by_key};
