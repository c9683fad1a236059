-- Of a deposit that became several batches: each of the others, by its number from 2 on, with the first.
ALTER TABLE deposits ADD COLUMN part_of {uuid};
ALTER TABLE deposits ADD COLUMN part {int};
CREATE INDEX deposits_by_first ON deposits (part_of, part) WHERE part_of IS NOT NULL;
