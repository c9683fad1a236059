-- How many copies in each space of a store have an open bit error, from now on counted as they are opened and ended.
INSERT INTO counters (name, scope, value)
    SELECT 'space_bit_errors', store || '/' || space, COUNT(*) FROM bit_errors WHERE ended IS NULL GROUP BY store, space;
