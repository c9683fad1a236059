-- Folders of jobs' content that were given up: what is in them was removed or is being removed, and nothing is stored there
-- again.
CREATE TABLE given_up_content (
    content {uuid} PRIMARY KEY,
    given_up {int} NOT NULL
){table_by_key};
