-- How long what was put aside is kept, and when and how that ended. What is leaving is not put aside again.
ALTER TABLE asides ADD COLUMN kept_until {int} NOT NULL DEFAULT 0;
ALTER TABLE asides ADD COLUMN is_leaving {flag} NOT NULL DEFAULT FALSE;
ALTER TABLE asides ADD COLUMN ended {int};
ALTER TABLE asides ADD COLUMN outcome {text};
-- What is there was put aside by those who keep it for 30 days.
UPDATE asides SET kept_until = time + 2592000000;
DROP INDEX asides_by_time;
CREATE INDEX asides_by_end ON asides (kept_until, id) WHERE ended IS NULL;
CREATE INDEX asides_by_place ON asides (store, kept_as) WHERE ended IS NULL;
