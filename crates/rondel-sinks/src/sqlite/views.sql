-- Views. Times are texts in UTC; columns with `_ns` contain the same in nanoseconds.
-- Columns without a value are NULL. An acknowledgement that has expired has no `acknowledged_by`, but in `all_violations`.

CREATE VIEW state AS
SELECT s.name AS series, p.name AS property, p.severity, nullif(t.parameters, '{}') AS parameters,
       CASE t.verdict WHEN 0 THEN 'satisfied' WHEN 1 THEN 'violated' ELSE 'inconclusive' END AS verdict,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.since / 1e9, 'unixepoch') AS since,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.time / 1e9, 'unixepoch') AS latest,
       (SELECT r.end IS NULL FROM runs r WHERE r.series = s.id ORDER BY r.id DESC LIMIT 1) AS is_observed,
       v.id AS violation,
       CASE WHEN v.acknowledged_until IS NULL OR v.acknowledged_until > (julianday('now') - 2440587.5) * 86400e9
            THEN v.acknowledged_by END AS acknowledged_by,
       t.time AS time_ns, t.since AS since_ns
FROM states t
JOIN properties p ON p.id = t.property
JOIN series s ON s.id = p.series
LEFT JOIN violations v ON v.property = t.property AND v.parameters = t.parameters AND v.end IS NULL;

CREATE VIEW all_violations AS
SELECT v.id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE WHEN v.end IS NOT NULL THEN 'ended' WHEN v.stale IS NOT NULL THEN 'stale' ELSE 'open' END AS status,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.begin / 1e9, 'unixepoch') AS begin,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.last / 1e9, 'unixepoch') AS last,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.end / 1e9, 'unixepoch') AS end,
       v.ended_by, v.count,
       (coalesce(v.end, v.stale, max(v.last, coalesce(s.latest, v.last))) - v.begin - v.unknown) / 1e9 AS seconds, v.worst,
       v.acknowledged_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.acknowledged_at / 1e9, 'unixepoch') AS acknowledged_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.acknowledged_until / 1e9, 'unixepoch') AS acknowledged_until, v.comment,
       (SELECT d.because_of FROM verdicts d WHERE d.seq = v.verdict) AS because_of,
       v.begin AS time_ns, v.end AS end_ns
FROM violations v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series;

CREATE VIEW open_violations AS
SELECT v.id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE WHEN v.stale IS NOT NULL THEN 'stale' ELSE 'open' END AS status,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.begin / 1e9, 'unixepoch') AS begin,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.last / 1e9, 'unixepoch') AS last,
       v.count, v.worst,
       CASE WHEN v.acknowledged_until IS NULL OR v.acknowledged_until > (julianday('now') - 2440587.5) * 86400e9
            THEN v.acknowledged_by END AS acknowledged_by,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.acknowledged_at / 1e9, 'unixepoch') AS acknowledged_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.acknowledged_until / 1e9, 'unixepoch') AS acknowledged_until, v.comment,
       (SELECT d.because_of FROM verdicts d WHERE d.seq = v.verdict) AS because_of,
       -- As `Silences::is_silenced` decides.
       (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', max(q.until) / 1e9, 'unixepoch') FROM silences q
        WHERE q.property = p.name AND q.until > (julianday('now') - 2440587.5) * 86400e9
        -- json_each has booleans as 1 and 0.
        AND NOT EXISTS (SELECT 1 FROM
            (SELECT key, CASE WHEN type IN ('true', 'false') THEN type ELSE value END AS value FROM json_each(q.parameters)) j
            WHERE NOT EXISTS (SELECT 1 FROM
                (SELECT key, CASE WHEN type IN ('true', 'false') THEN type ELSE value END AS value
                 FROM json_each(v.parameters)) w
                WHERE w.key = j.key AND (w.value = j.value OR CAST(w.value AS TEXT) = CAST(j.value AS TEXT))))) AS silenced_until,
       v.begin AS time_ns
FROM violations v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series
WHERE v.end IS NULL;

CREATE VIEW violations_per_day AS
SELECT s.name AS series, p.name AS property, p.severity, date(d.day * 86400, 'unixepoch') AS day,
       d.violations, d.recoveries, d.violated / 1e9 AS violated_seconds, d.verdicts,
       d.day * 86400000000000 AS time_ns
FROM days d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
WHERE d.violations > 0;

CREATE VIEW time_in_violation AS
SELECT s.name AS series, p.name AS property, p.severity, d.violations, coalesce(o.open, 0) AS open,
       (d.violated + coalesce(o.violated, 0)) / 1e9 AS seconds
FROM (SELECT property, sum(violations) AS violations, total(violated) AS violated FROM days GROUP BY property) d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
LEFT JOIN (SELECT v.property, count(*) AS open, total(max(0, s.latest - v.since)) AS violated
           FROM violations v JOIN properties p ON p.id = v.property JOIN series s ON s.id = p.series
           WHERE v.end IS NULL GROUP BY v.property) o ON o.property = d.property
WHERE d.violations > 0;

CREATE VIEW time_to_recovery AS
SELECT s.name AS series, p.name AS property, p.severity, d.recoveries,
       d.recovery / 1e9 / d.recoveries AS mean_seconds, d.longest / 1e9 AS longest_seconds
FROM (SELECT property, sum(recoveries) AS recoveries, total(recovery) AS recovery, max(longest) AS longest
      FROM days GROUP BY property) d
JOIN properties p ON p.id = d.property
JOIN series s ON s.id = p.series
WHERE d.recoveries > 0;

CREATE VIEW all_verdicts AS
SELECT v.seq, lower(hex(v.id)) AS id, s.name AS series, p.name AS property, p.severity, nullif(v.parameters, '{}') AS parameters,
       CASE v.verdict WHEN 0 THEN 'satisfied' WHEN 1 THEN 'violated' ELSE 'inconclusive' END AS verdict,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.time / 1e9, 'unixepoch') AS time,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.about / 1e9, 'unixepoch') AS about,
       strftime('%Y-%m-%dT%H:%M:%fZ', v.reported / 1e9, 'unixepoch') AS reported,
       v.lap, v.step, v.robustness, v.quantified, v.explanation, v.latency / 1e9 AS latency, v.missing, v.because_of,
       v.run, v.time AS time_ns, v.about AS about_ns, v.reported AS reported_ns
FROM verdicts v
JOIN properties p ON p.id = v.property
JOIN series s ON s.id = p.series;

CREATE VIEW all_runs AS
SELECT r.id, s.name AS series, r.kind,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.begin / 1e9, 'unixepoch') AS begin,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.end / 1e9, 'unixepoch') AS end,
       r.status, r.specification, r.specification_hash, r.configuration, r.configuration_hash, r.version, r.host,
       r.verdicts, r.repeated, strftime('%Y-%m-%dT%H:%M:%fZ', r.reported / 1e9, 'unixepoch') AS reported,
       r.begin AS time_ns
FROM runs r JOIN series s ON s.id = r.series;

CREATE VIEW all_losses AS
SELECT l.id, s.name AS series, l.run, l.reason, l.subject, l.count,
       strftime('%Y-%m-%dT%H:%M:%fZ', l."from" / 1e9, 'unixepoch') AS "from",
       strftime('%Y-%m-%dT%H:%M:%fZ', l.until / 1e9, 'unixepoch') AS until,
       l."from" AS time_ns
FROM losses l JOIN runs r ON r.id = l.run JOIN series s ON s.id = r.series;

CREATE VIEW present_silences AS
SELECT q.id, q.property, nullif(q.parameters, '{}') AS parameters,
       strftime('%Y-%m-%dT%H:%M:%fZ', q."from" / 1e9, 'unixepoch') AS "from",
       strftime('%Y-%m-%dT%H:%M:%fZ', q.until / 1e9, 'unixepoch') AS until, q.set_by, nullif(q.comment, '') AS comment,
       q."from" AS time_ns
FROM silences q
WHERE q.until > (julianday('now') - 2440587.5) * 86400e9;

CREATE VIEW all_actions AS
SELECT a.id, strftime('%Y-%m-%dT%H:%M:%fZ', a.at / 1e9, 'unixepoch') AS at, a.operator, a.kind, a.members,
       a.is_audited, a.at AS time_ns
FROM actions a;
