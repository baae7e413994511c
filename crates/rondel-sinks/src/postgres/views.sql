-- Views. Columns with `_ns` contain the same times in nanoseconds. Columns without a value are NULL.

CREATE VIEW state AS
SELECT s.name AS series, p.name AS property, p.severity, nullif(t.parameters, '{}') AS parameters,
       CASE t.verdict WHEN 0 THEN 'satisfied' WHEN 1 THEN 'violated' ELSE 'inconclusive' END AS verdict,
       time_of(t.since) AS since, time_of(t.time) AS latest,
       (SELECT r."end" IS NULL FROM runs r WHERE r.series = s.id ORDER BY r.id DESC LIMIT 1) AS is_observed,
       v.id AS violation,
       CASE WHEN v.acknowledged_until IS NULL OR v.acknowledged_until > extract(epoch FROM now()) * 1e9
            THEN v.acknowledged_by END AS acknowledged_by,
       t.time AS time_ns, t.since AS since_ns
FROM states t
JOIN properties p ON p.id = t.property
JOIN series s ON s.id = p.series
LEFT JOIN violations v ON v.property = t.property AND v.instance = t.instance AND v."end" IS NULL;

CREATE VIEW all_violations AS
SELECT v.id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE WHEN v."end" IS NOT NULL THEN 'ended' WHEN v.stale IS NOT NULL THEN 'stale' ELSE 'open' END AS status,
       time_of(v.begin) AS begin, time_of(v.last) AS last, time_of(v."end") AS "end",
       v.ended_by, v.count,
       ((coalesce(v."end", v.stale, greatest(v.last, s.latest))::numeric - v.begin - v.unknown) / 1e9)::double precision AS seconds,
       v.worst, v.acknowledged_by, time_of(v.acknowledged_at) AS acknowledged_at,
       time_of(v.acknowledged_until) AS acknowledged_until, v.comment,
       (SELECT d.because_of FROM verdicts d WHERE d.run = v.run AND d.seq = v.verdict) AS because_of,
       v.begin AS time_ns, v."end" AS end_ns
FROM violations v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series;

CREATE VIEW open_violations AS
SELECT v.id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE WHEN v.stale IS NOT NULL THEN 'stale' ELSE 'open' END AS status,
       time_of(v.begin) AS begin, time_of(v.last) AS last,
       v.count, v.worst,
       CASE WHEN v.acknowledged_until IS NULL OR v.acknowledged_until > extract(epoch FROM now()) * 1e9
            THEN v.acknowledged_by END AS acknowledged_by,
       time_of(v.acknowledged_at) AS acknowledged_at, time_of(v.acknowledged_until) AS acknowledged_until, v.comment,
       (SELECT d.because_of FROM verdicts d WHERE d.run = v.run AND d.seq = v.verdict) AS because_of,
       -- A value is compared as in the store of SQLite: as number or boolean, or as text.
       (SELECT time_of(max(q.until)) FROM silences q WHERE q.property = p.name
        AND q.until > extract(epoch FROM now()) * 1e9
        AND NOT EXISTS (SELECT 1 FROM jsonb_each(q.parameters) j WHERE NOT coalesce(
            v.parameters -> j.key = j.value OR v.parameters ->> j.key = j.value #>> '{}', false))) AS silenced_until,
       v.begin AS time_ns
FROM violations v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series
WHERE v."end" IS NULL;

CREATE VIEW violations_per_day AS
SELECT s.name AS series, p.name AS property, p.severity, date '1970-01-01' + d.day::integer AS day,
       d.violations, d.recoveries, d.violated / 1e9::double precision AS violated_seconds, d.verdicts,
       greatest(d.day::numeric * 86400000000000, -9223372036854775808)::bigint AS time_ns
FROM days d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
WHERE d.violations > 0;

CREATE VIEW time_in_violation AS
SELECT s.name AS series, p.name AS property, p.severity, d.violations, coalesce(o.open, 0) AS open,
       ((d.violated + coalesce(o.violated, 0)) / 1e9)::double precision AS seconds
FROM (SELECT property, sum(violations)::bigint AS violations, sum(violated) AS violated FROM days GROUP BY property) d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
LEFT JOIN (SELECT v.property, count(*) AS open, sum(greatest(0, s.latest::numeric - v.since)) AS violated
           FROM violations v JOIN properties p ON p.id = v.property JOIN series s ON s.id = p.series
           WHERE v."end" IS NULL GROUP BY v.property) o ON o.property = d.property
WHERE d.violations > 0;

CREATE VIEW time_to_recovery AS
SELECT s.name AS series, p.name AS property, p.severity, d.recoveries,
       (d.recovery / 1e9 / d.recoveries)::double precision AS mean_seconds,
       d.longest / 1e9::double precision AS longest_seconds
FROM (SELECT property, sum(recoveries)::bigint AS recoveries, sum(recovery) AS recovery, max(longest) AS longest
      FROM days GROUP BY property) d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
WHERE d.recoveries > 0;

CREATE VIEW all_verdicts AS
SELECT v.seq, v.id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE v.verdict WHEN 0 THEN 'satisfied' WHEN 1 THEN 'violated' ELSE 'inconclusive' END AS verdict,
       time_of(v.time) AS time, time_of(v.about) AS about, time_of(v.reported) AS reported,
       v.lap, v.step, v.robustness, v.quantified, v.explanation,
       v.latency / 1e9::double precision AS latency, v.missing, v.because_of,
       v.run, v.time AS time_ns, v.about AS about_ns, v.reported AS reported_ns
FROM verdicts v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series;

CREATE VIEW all_runs AS
SELECT r.id, s.name AS series, r.kind, time_of(r.begin) AS begin, time_of(r."end") AS "end",
       r.status, r.specification, r.specification_hash, r.configuration, r.configuration_hash, r.version, r.host,
       r.verdicts, r.repeated, time_of(r.reported) AS reported, r.begin AS time_ns
FROM runs r JOIN series s ON s.id = r.series;

CREATE VIEW all_losses AS
SELECT l.id, s.name AS series, l.run, l.reason, l.subject, l.count,
       time_of(l."from") AS "from", time_of(l.until) AS until,
       l."from" AS time_ns
FROM losses l JOIN runs r ON r.id = l.run JOIN series s ON s.id = r.series;

CREATE VIEW present_silences AS
SELECT q.id, q.property, nullif(q.parameters, '{}') AS parameters, time_of(q."from") AS "from", time_of(q.until) AS until,
       q.set_by, nullif(q.comment, '') AS comment, q."from" AS time_ns
FROM silences q
WHERE q.until > extract(epoch FROM now()) * 1e9;

CREATE VIEW all_actions AS
SELECT a.id, time_of(a.at) AS at, a.operator, a.kind, a.members, a.is_audited, a.at AS time_ns
FROM actions a;
