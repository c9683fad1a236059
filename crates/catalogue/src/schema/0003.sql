-- Jobs that may have begun to write a version of an object, until the version is recorded.
CREATE TABLE object_intents (
    job {uuid} PRIMARY KEY,
    ark {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    begun {int} NOT NULL
){table_by_key};
CREATE INDEX object_intents_by_begun ON object_intents (begun, job);
