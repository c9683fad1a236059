-- The chain of the reports of each account: the seal of each names the hash of the one before it.
CREATE TABLE bit_seals (
    account {text} NOT NULL,
    number {int} NOT NULL,
    run {int} NOT NULL,
    place {text} NOT NULL,
    seal {text} NOT NULL,
    is_stored {flag} NOT NULL,
    PRIMARY KEY (account, number)
){table_by_key};
CREATE UNIQUE INDEX bit_seals_by_run ON bit_seals (run);
CREATE INDEX bit_seals_left ON bit_seals (account, number) WHERE NOT is_stored;

-- Where each chain ends.
CREATE TABLE bit_seal_heads (
    account {text} PRIMARY KEY,
    number {int} NOT NULL,
    place {text} NOT NULL,
    hash {text} NOT NULL
){table_by_key};
