-- Version 2: decisions of operators, and muting.

ALTER TABLE verdicts ADD COLUMN because_of TEXT; -- property because of whose violation this one is muted

-- Silences, also past ones.
CREATE TABLE silences (
    id INTEGER PRIMARY KEY,
    property TEXT NOT NULL,         -- name, in every series
    parameters TEXT NOT NULL,       -- JSON object of the parameters with a chosen value; {} for all instances
    "from" INTEGER NOT NULL,
    until INTEGER NOT NULL,
    set_by TEXT NOT NULL,
    comment TEXT NOT NULL DEFAULT '',
    removed_by TEXT                 -- operator who ended it before its time
);

-- Actions of operators, in order.
CREATE TABLE actions (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    operator TEXT NOT NULL,
    kind TEXT NOT NULL,             -- ack, silence, unsilence
    members TEXT NOT NULL,          -- JSON object that describes it
    is_audited INTEGER NOT NULL DEFAULT 0 -- 1: it is in an audit file
);
CREATE INDEX actions_unaudited ON actions (id) WHERE NOT is_audited;

-- Version 1 stored ends before begins where clocks stepped back.
UPDATE violations SET end = max(begin, end), unknown = max(0, min(unknown, max(begin, end) - begin))
WHERE end IS NOT NULL AND end - begin < unknown;
UPDATE violations SET stale = max(begin + unknown, stale) WHERE end IS NULL AND stale - begin < unknown;
UPDATE violations SET unknown = last - begin WHERE end IS NULL AND stale IS NULL AND last - begin < unknown;
