-- Of the items that are checked one by one, those that were neither listed nor there when they were: a later check of the run may
-- find them.
ALTER TABLE bit_items ADD COLUMN is_missing {flag} NOT NULL DEFAULT FALSE;
