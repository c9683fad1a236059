-- The batch that a message is of, by the id that its submission carries, and the profile by which it is delivered.
ALTER TABLE outbox ADD COLUMN batch {text} NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN profile {text} NOT NULL DEFAULT '';
-- What became of its recipients so far: JSON of the sender's.
ALTER TABLE outbox ADD COLUMN settled {text};
-- When it was delivered, or given up.
ALTER TABLE outbox ADD COLUMN ended {int};
UPDATE outbox SET ended = delivered WHERE delivered IS NOT NULL;
CREATE INDEX outbox_ended ON outbox (ended, id) WHERE ended IS NOT NULL;
