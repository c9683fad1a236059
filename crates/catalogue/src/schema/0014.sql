-- How many items and bytes the store listed in the pages that were checked, for each minute of the last day and each run: the rate
-- of a loop. Written when deltas are folded.
CREATE TABLE checked_in_minute (
    minute {int} NOT NULL,
    run {int} NOT NULL,
    items {int} NOT NULL,
    bytes {int} NOT NULL,
    PRIMARY KEY (minute, run)
){table_by_key};
