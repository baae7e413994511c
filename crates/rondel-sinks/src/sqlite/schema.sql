-- Version 1. Times are nanoseconds: event times (`time`, `begin`, …) from the zero of the messages, on a network the Unix
-- epoch; `reported`, `recorded` and those of runs and losses are times of day since the Unix epoch.

-- Runs of one deployment, which continue each other.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    latest INTEGER                  -- event time that is reached
);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,       -- 16 bytes, chosen by the run
    series INTEGER NOT NULL REFERENCES series,
    kind TEXT NOT NULL,             -- run, check, test
    resumes INTEGER NOT NULL,       -- 1: from a snapshot
    begin INTEGER NOT NULL,
    end INTEGER,
    status TEXT,                    -- how it ended; 'aborted': a later run of its series found it without an end
    specification TEXT NOT NULL,
    specification_hash TEXT NOT NULL,
    configuration TEXT NOT NULL,
    configuration_hash TEXT NOT NULL,
    version TEXT NOT NULL,
    host TEXT NOT NULL,
    lap INTEGER NOT NULL DEFAULT 1,
    latest INTEGER,                 -- event time that is reached
    reported INTEGER,               -- time of day of that
    verdicts INTEGER NOT NULL DEFAULT 0,
    repeated INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_of_series ON runs (series);

CREATE TABLE properties (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL REFERENCES series,
    name TEXT NOT NULL,
    severity TEXT NOT NULL DEFAULT '',
    requirement TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL DEFAULT '',  -- in the specification
    instances INTEGER NOT NULL DEFAULT 0, -- rows in states
    UNIQUE (series, name)
);

CREATE TABLE verdicts (
    seq INTEGER PRIMARY KEY,        -- order of storing
    id BLOB,                        -- 16 bytes; NULL if the run gives none
    run INTEGER NOT NULL,
    property INTEGER NOT NULL,
    parameters TEXT NOT NULL,       -- JSON object; {} without parameters
    verdict INTEGER NOT NULL,       -- 0 satisfied, 1 violated, 2 inconclusive
    time INTEGER NOT NULL,          -- event time at which it became certain
    about INTEGER,                  -- event time that it is about, if another
    is_after INTEGER NOT NULL,      -- 1: about the open interval after that time
    reported INTEGER NOT NULL,
    lap INTEGER NOT NULL,
    step INTEGER,
    robustness REAL,
    quantified TEXT,                -- values of quantified variables, JSON object
    explanation TEXT,               -- JSON array
    latency INTEGER,                -- of a chain
    missing TEXT                    -- topic that a chain did not reach
);
-- Equal ids have equal times, so that this index grows at its end.
CREATE UNIQUE INDEX verdicts_once ON verdicts (time, id, property);

CREATE TABLE violations (
    id INTEGER PRIMARY KEY,
    property INTEGER NOT NULL,
    parameters TEXT NOT NULL,
    run INTEGER NOT NULL,           -- in which it began
    lap INTEGER NOT NULL,
    begin INTEGER NOT NULL,
    last INTEGER NOT NULL,          -- last violated verdict
    count INTEGER NOT NULL,         -- violated verdicts
    since INTEGER,                  -- begin of the present violated interval; NULL if stale or ended
    stale INTEGER,                  -- since when the property is inconclusive; NULL if known
    unknown INTEGER NOT NULL,       -- total of inconclusive intervals
    end INTEGER,                    -- NULL while it is open
    ended_by TEXT,                  -- satisfied, lap, or once: a property that is judged once
    worst REAL,                     -- least robustness
    verdict INTEGER NOT NULL,       -- verdicts.seq of the first
    recorded INTEGER NOT NULL,
    acknowledged_by TEXT,
    acknowledged_at INTEGER,
    acknowledged_until INTEGER,     -- NULL: until it ends
    comment TEXT
);
CREATE INDEX violations_open ON violations (property, parameters, since) WHERE end IS NULL;
CREATE INDEX violations_of_property ON violations (property, begin);

-- Present verdict of every instance, of at most 10,000 instances of a property.
CREATE TABLE states (
    property INTEGER NOT NULL,
    parameters TEXT NOT NULL,
    verdict INTEGER NOT NULL,
    since INTEGER NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (property, parameters)
) WITHOUT ROWID;

-- Figures by property and day on which violations began, in UTC. They stay when verdicts are removed.
CREATE TABLE days (
    property INTEGER NOT NULL,
    day INTEGER NOT NULL,           -- since 1970-01-01
    verdicts INTEGER NOT NULL DEFAULT 0,
    violations INTEGER NOT NULL DEFAULT 0,
    recoveries INTEGER NOT NULL DEFAULT 0,
    violated INTEGER NOT NULL DEFAULT 0,  -- nanoseconds in violation, without open intervals
    recovery INTEGER NOT NULL DEFAULT 0,  -- nanoseconds in violation of those that ended
    longest INTEGER NOT NULL DEFAULT 0,   -- longest of them
    PRIMARY KEY (property, day)
) WITHOUT ROWID;

CREATE TABLE losses (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    reason TEXT NOT NULL,
    subject TEXT NOT NULL,          -- topic or sink
    count INTEGER NOT NULL,
    "from" INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE INDEX losses_of_run ON losses (run);
