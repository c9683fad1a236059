-- Jobs that may have begun to write a version of an object, until the version is recorded.
CREATE TABLE object_intents (
    job {uuid} PRIMARY KEY,
    ark {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    begun {int} NOT NULL
){table_by_key};
CREATE INDEX object_intents_by_begun ON object_intents (begun, job);

-- Objects by the beginning of their titles, of all and of a collection: of the characters that an index takes for certain,
-- without the case of ASCII letters.
CREATE INDEX objects_by_title ON objects (lower(substr(title, 1, 200)), ark);
CREATE INDEX objects_of_collection_by_title ON objects (collection, lower(substr(title, 1, 200)), ark);

-- Of a deposit that became several batches: each of the others, by its number from 2 on, with the first.
ALTER TABLE deposits ADD COLUMN part_of {uuid};
ALTER TABLE deposits ADD COLUMN part {int};
CREATE INDEX deposits_by_first ON deposits (part_of, part) WHERE part_of IS NOT NULL;
