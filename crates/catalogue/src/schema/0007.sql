-- Bytes are counted by space, and tasks by what they wait for.
INSERT INTO counters (name, scope, value)
    SELECT 'space_bytes', copies.store || '/' || items.space, SUM(copies.size)
    FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted
    GROUP BY copies.store || '/' || items.space;
INSERT INTO counters (name, scope, value)
    SELECT 'waiting_tasks', kind, COUNT(*) FROM tasks WHERE state = 'waiting' GROUP BY kind;
INSERT INTO counters (name, scope, value)
    SELECT 'held_tasks', account || '/' || destination, COUNT(*) FROM tasks WHERE state = 'held'
    GROUP BY account || '/' || destination;
INSERT INTO counters (name, scope, value)
    SELECT 'dead_tasks', account, COUNT(*) FROM tasks WHERE state = 'dead' GROUP BY account;

-- How many tasks of a queue were done, by the minute in which that was counted.
CREATE TABLE done_tasks (
    minute {int} NOT NULL,
    queue {text} NOT NULL,
    number {int} NOT NULL,
    PRIMARY KEY (minute, queue)
){table_by_key};

-- The processes of the mill, each as it reported itself last.
CREATE TABLE mill_processes (
    id {uuid} PRIMARY KEY,
    name {text} NOT NULL,
    workers {int} NOT NULL,
    kinds {text} NOT NULL,
    started {int} NOT NULL,
    seen {int} NOT NULL
){table_by_key};

-- How large a loop and its parts were when it began, and how far they are, in items; and when it ended.
ALTER TABLE loops ADD COLUMN morsels {int} NOT NULL DEFAULT 0;
ALTER TABLE loops ADD COLUMN items {int} NOT NULL DEFAULT 0;
ALTER TABLE loops ADD COLUMN looked {int} NOT NULL DEFAULT 0;
ALTER TABLE loops ADD COLUMN ended {int};
ALTER TABLE morsels ADD COLUMN items {int} NOT NULL DEFAULT 0;
ALTER TABLE morsels ADD COLUMN looked {int} NOT NULL DEFAULT 0;
