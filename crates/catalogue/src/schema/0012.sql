-- What a repair does, and the content that was seen when it was decided.
ALTER TABLE repairs ADD COLUMN remedy {text} NOT NULL DEFAULT 'repair_from_copy';
ALTER TABLE repairs ADD COLUMN content {text};
