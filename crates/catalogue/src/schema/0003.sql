-- Objects by the beginning of their titles, of all and of a collection: of the characters that an index takes for certain,
-- without the case of ASCII letters.
CREATE INDEX objects_by_title ON objects (lower(substr(title, 1, 200)), ark);
CREATE INDEX objects_of_collection_by_title ON objects (collection, lower(substr(title, 1, 200)), ark);
