//! The results as the document has them: JSON for its scripts, with times in seconds since the beginning of the recording.

use serde::Serialize;
use serde_json::{Value, json};

use super::About;
use super::signals::{Track, Window, track};
use crate::plot::shown_changes;
use crate::results::{Change, Claim, EvidencePoint, Judged, Outcome, Recording, Results, Violation};

/// Numbers of verdicts in timelines, as in the API of the page.
const SATISFIED: u8 = 0;
const VIOLATED: u8 = 1;
const INCONCLUSIVE: u8 = 2;
const NONE: u8 = 3;

/// Limits for a property in a recording.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Values of a signal before a violation.
    values: usize,
    violations: usize,
    /// Changes of the verdict.
    changes: usize,
}

/// Limits from none to those of the largest checks. The first whose document is small enough are used.
const LIMITS: [Limits; 9] = [
    Limits { values: usize::MAX, violations: usize::MAX, changes: usize::MAX },
    Limits { values: 96, violations: usize::MAX, changes: 1_000 },
    Limits { values: 32, violations: usize::MAX, changes: 500 },
    Limits { values: 12, violations: usize::MAX, changes: 250 },
    Limits { values: 6, violations: usize::MAX, changes: 120 },
    Limits { values: 6, violations: 10, changes: 120 },
    Limits { values: 4, violations: 5, changes: 60 },
    Limits { values: 2, violations: 2, changes: 30 },
    Limits { values: 0, violations: 0, changes: 10 },
];

/// Values of a signal over a whole recording, at most.
const WHOLE: usize = 2_000;

#[derive(Serialize)]
struct Document<'r> {
    version: &'r str,
    specification: &'r str,
    files: Vec<File<'r>>,
    command: Option<&'r str>,
    /// A sentence about what was left out.
    shortened: Option<String>,
    properties: Vec<Property<'r>>,
    recordings: Vec<Part<'r>>,
}

#[derive(Serialize)]
struct File<'r> {
    name: &'r str,
    text: &'r str,
}

#[derive(Serialize)]
struct Property<'r> {
    name: &'r str,
    file: Option<&'r str>,
    line: Option<usize>,
    text: &'r str,
    severity: Option<&'r str>,
    requirements: &'r [String],
}

/// A recording.
#[derive(Serialize)]
struct Part<'r> {
    name: &'r str,
    problem: Option<&'r str>,
    remarks: &'r [String],
    events: u64,
    /// Time of the first message, in seconds.
    begin: Option<f64>,
    /// Time from the first message to the last.
    length: f64,
    losses: Vec<Lost<'r>>,
    properties: Vec<Found<'r>>,
    signals: Vec<Track<'r>>,
}

#[derive(Serialize)]
struct Lost<'r> {
    from: f64,
    until: f64,
    properties: &'r [String],
}

/// The result of a property in a recording.
#[derive(Serialize)]
struct Found<'r> {
    outcome: Outcome,
    remark: &'r str,
    vacuous: &'r [String],
    is_asserted: bool,
    count: u64,
    /// Time for which it was violated.
    violated: Option<f64>,
    /// When the verdict changes, and to which.
    times: Vec<f64>,
    verdicts: Vec<u8>,
    violations: Vec<Explained<'r>>,
    signals: Vec<Track<'r>>,
}

/// A violation.
#[derive(Serialize)]
struct Explained<'r> {
    time: f64,
    certain: f64,
    parameters: &'r str,
    values: &'r [(String, String)],
    /// Names of the values of each time point.
    names: Vec<&'r str>,
    /// Time points: time, whether after it, topic, and the values.
    points: Vec<Vec<Value>>,
}

/// The results in at most this many bytes, if shortening achieves that.
pub(super) fn fitting(results: &Results, about: &About, room: usize) -> String {
    let mut json = String::new();
    for (i, limits) in LIMITS.into_iter().enumerate() {
        json = text(&document(results, about, limits, i > 0));
        if json.len() <= room {
            break;
        }
    }
    json
}

/// JSON for a script element: without `<`, no text can end the element.
fn text(document: &Document<'_>) -> String {
    // A structure of texts and numbers always has a JSON form.
    serde_json::to_string(document).unwrap_or_default().replace('<', "\\u003c")
}

/// Seconds from the beginning of a recording.
pub(super) fn since(begin: i64, time: i64) -> f64 {
    time.saturating_sub(begin) as f64 / 1e9
}

fn document<'r>(results: &'r Results, about: &'r About, limits: Limits, is_shortened: bool) -> Document<'r> {
    let file = |(name, text): &'r (String, String)| File { name, text };
    Document {
        version: &results.version,
        specification: &results.specification,
        files: about.files.iter().map(file).collect(),
        command: about.command.as_deref(),
        shortened: is_shortened.then(|| limits.sentence()),
        properties: results.properties.iter().map(property).collect(),
        recordings: results.recordings.iter().map(|recording| part(recording, limits)).collect(),
    }
}

impl Limits {
    fn sentence(self) -> String {
        let Limits { values, violations, changes } = self;
        let violations = violations.min(Judged::MOST_VIOLATIONS);
        format!(
            "So that the file stays below 1 MB, it has at most {violations} violations of a property in a recording, \
             {values} values of a signal before each, as ranges, and about {changes} changes of the verdict."
        )
    }
}

fn property(claim: &Claim) -> Property<'_> {
    Property {
        name: &claim.name,
        file: claim.file.as_deref(),
        line: claim.place.map(|place| place.line),
        text: &claim.text,
        severity: claim.severity.as_deref(),
        requirements: &claim.requirements,
    }
}

fn part(recording: &Recording, limits: Limits) -> Part<'_> {
    let begin = recording.begin.unwrap_or(0);
    let lost = recording.losses.iter().map(|loss| Lost {
        from: since(begin, loss.from_ns),
        until: since(begin, loss.until_ns),
        properties: &loss.properties,
    });
    let whole = recording.signals.iter().filter_map(|signal| {
        let most = limits.values.max(10).saturating_mul(8).min(WHOLE);
        track(vec![Window { signal, end: None }], "", begin, most)
    });
    Part {
        name: &recording.name,
        problem: recording.problem.as_deref(),
        remarks: &recording.remarks,
        events: recording.events,
        begin: recording.begin.map(|begin| since(0, begin)),
        length: recording.end.map_or(0.0, |end| since(begin, end)),
        losses: lost.collect(),
        properties: recording.properties.iter().map(|judged| found(judged, begin, limits)).collect(),
        signals: whole.collect(),
    }
}

fn found(judged: &Judged, begin: i64, limits: Limits) -> Found<'_> {
    let changes = thinned(shown_changes(judged), limits.changes);
    let violations =
        judged.violations.get(..limits.violations.min(judged.violations.len())).unwrap_or_default();
    Found {
        outcome: judged.outcome,
        remark: &judged.remark,
        vacuous: &judged.vacuous,
        is_asserted: judged.is_asserted,
        count: judged.count,
        violated: judged.violated_ns.map(|violated| since(0, violated)),
        times: changes.iter().map(|change| since(begin, change.time_ns)).collect(),
        verdicts: changes.iter().map(|change| number(change.verdict)).collect(),
        violations: violations.iter().map(|violation| explained(violation, begin)).collect(),
        signals: tracks(violations, begin, limits.values),
    }
}

fn number(verdict: Outcome) -> u8 {
    match verdict {
        Outcome::Satisfied => SATISFIED,
        Outcome::Violated => VIOLATED,
        Outcome::Inconclusive => INCONCLUSIVE,
        Outcome::Vacuous => NONE,
    }
}

fn explained(violation: &Violation, begin: i64) -> Explained<'_> {
    let names = violation.evidence.first().map(|point| point.values.iter().map(|(name, _)| name.as_str()));
    let point = |point: &EvidencePoint| {
        let place = [json!(since(begin, point.time_ns)), json!(u8::from(point.after)), json!(point.topic)];
        place.into_iter().chain(point.values.iter().map(|(_, value)| json!(value))).collect::<Vec<Value>>()
    };
    Explained {
        time: since(begin, violation.time_ns),
        certain: since(begin, violation.certain_ns),
        parameters: &violation.parameters,
        values: &violation.values,
        names: names.into_iter().flatten().collect(),
        points: violation.evidence.iter().map(point).collect(),
    }
}

/// The signals before violations: one for each field and instance, in the order of the first violation.
fn tracks(violations: &[Violation], begin: i64, values: usize) -> Vec<Track<'_>> {
    let mut groups: Vec<(&str, &str, Vec<Window<'_>>)> = Vec::new();
    for violation in violations {
        for signal in &violation.signals {
            let (name, parameters) = (signal.name.as_str(), violation.parameters.as_str());
            let window = Window { signal, end: Some(violation.time_ns) };
            match groups.iter_mut().find(|group| (group.0, group.1) == (name, parameters)) {
                Some(group) => group.2.push(window),
                None => groups.push((name, parameters, vec![window])),
            }
        }
    }
    let groups = groups.into_iter();
    groups.filter_map(|(_, parameters, windows)| track(windows, parameters, begin, values)).collect()
}

/// At most about this many changes: each of some successive ones keeps its worst verdict and its last one.
fn thinned(changes: Vec<Change>, most: usize) -> Vec<Change> {
    if changes.len() <= most {
        return changes;
    }
    let size = (2 * changes.len()).div_ceil(most.max(1)).max(1);
    let mut kept = Vec::new();
    for together in changes.chunks(size) {
        let (Some(first), Some(last)) = (together.first(), together.last()) else { continue };
        let worst = together.iter().map(|change| change.verdict).max().unwrap_or(first.verdict);
        kept.push(Change { verdict: worst, ..*first });
        kept.extend((last.verdict != worst).then_some(*last));
    }
    kept
}
