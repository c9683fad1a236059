-- What spaces had when stores were listed, the last time on each day (of UTC, counted from 1970).
CREATE TABLE space_stats (
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    day {int} NOT NULL,
    time {int} NOT NULL,
    items {int} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (account, store, space, day)
){table_by_key};
