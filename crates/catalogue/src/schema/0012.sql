-- What a repair does, and the content that was seen when it was decided.
ALTER TABLE repairs ADD COLUMN remedy {text} NOT NULL DEFAULT 'repair_from_copy';
ALTER TABLE repairs ADD COLUMN content {text};

-- Where no repair starts by itself: in a store, or with an empty name in all of them. A stop that has ended stays: what failed before
-- that does not count any more.
CREATE TABLE repair_stops (
    store {text} PRIMARY KEY,
    user_name {text} NOT NULL,
    reason {text} NOT NULL,
    since {int} NOT NULL,
    ended {int}
){table_by_key};
