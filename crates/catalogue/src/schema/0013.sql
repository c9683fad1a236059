-- What the report on a run says: its coverage as JSON, whether every item has the proof that its policy asks for as far as nothing is
-- wrong with it, and whether it is the newest report on its space. Of reports from before, only what follows from the result is known.
ALTER TABLE bit_runs ADD COLUMN coverage {text};
ALTER TABLE bit_runs ADD COLUMN is_complete {flag};
ALTER TABLE bit_runs ADD COLUMN is_newest {flag} NOT NULL DEFAULT FALSE;
UPDATE bit_runs SET is_complete = (result = 'success') WHERE result IN ('success', 'incomplete');
UPDATE bit_runs SET is_newest = TRUE WHERE reported IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM bit_runs AS later WHERE later.account = bit_runs.account AND later.store = bit_runs.store
        AND later.space = bit_runs.space AND later.loop > bit_runs.loop AND later.reported IS NOT NULL);
CREATE INDEX bit_runs_reported ON bit_runs (id) WHERE reported IS NOT NULL;
CREATE INDEX bit_runs_reported_of_account ON bit_runs (account, id) WHERE reported IS NOT NULL;
CREATE INDEX bit_runs_reported_of_space ON bit_runs (space, id) WHERE reported IS NOT NULL;
CREATE INDEX bit_runs_unsuccessful ON bit_runs (id) WHERE is_newest AND result <> 'success';
