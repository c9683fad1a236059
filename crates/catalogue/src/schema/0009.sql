-- What people paused of the mill's work: an account, a store, or an account in a store; an empty name stands for all of them. A
-- pause that has ended is kept until its tasks wait for workers again.
CREATE TABLE mill_pauses (
    id {id},
    account {text} NOT NULL,
    store {text} NOT NULL,
    user_name {text} NOT NULL,
    reason {text} NOT NULL,
    time {int} NOT NULL,
    is_ended {flag} NOT NULL
){table};
CREATE UNIQUE INDEX mill_pauses_in_force ON mill_pauses (account, store) WHERE NOT is_ended;

-- The pause that keeps a task from workers. Such a task is never visible.
ALTER TABLE tasks ADD COLUMN pause {int};
CREATE INDEX tasks_paused ON tasks (pause, id) WHERE pause IS NOT NULL;
