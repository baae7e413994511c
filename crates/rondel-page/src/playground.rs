//! The playground: messages checked against a text, with diagnostics, verdicts and signals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TimeUnit;
use rondel_runtime::{ManualClock, Options, Session, Signal};
use rondel_spec::{Diagnostic, ParseOptions, Severity, Sources, parse_sources};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::sampling::StoredSignal;

/// Largest specification and largest messages, in bytes.
const SPECIFICATION: usize = 100_000;
const MESSAGES: usize = 1 << 20;
/// Bytes of messages between two looks at the clock.
const PART: usize = 16 << 10;
/// Time limit of a check.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of verdicts.
const VERDICTS: usize = 10_000;
/// Memory of the instances of each `for each`, in bytes.
const INSTANCES: usize = 64 << 20;
/// Width of signals.
const WIDTH: usize = 2000;

/// Name, description, specification and messages of each example.
const EXAMPLES: &[[&str; 4]] = &[
    [
        "Limits and implications",
        "If speed exceeds 10, the brake must have been pressed within the last 2 seconds.",
        "topic speed { value: float }\ntopic brake { pressed: bool }\n\n\
         @severity(\"high\")\nproperty braking = speed.value > 10 -> once[0, 2 s] brake.pressed\n",
        "{\"topic\": \"speed\", \"time\": 0, \"data\": {\"value\": 8}}\n\
         {\"topic\": \"brake\", \"time\": 1, \"data\": {\"pressed\": true}}\n\
         {\"topic\": \"brake\", \"time\": 1.5, \"data\": {\"pressed\": false}}\n\
         {\"topic\": \"speed\", \"time\": 2, \"data\": {\"value\": 12}}\n\
         {\"topic\": \"speed\", \"time\": 4, \"data\": {\"value\": 13}}\n\
         {\"topic\": \"speed\", \"time\": 5, \"data\": {\"value\": 7}}\n",
    ],
    [
        "Requests and answers",
        "Every request is answered within 2 seconds: an operator of the future delays the verdict until it is certain.",
        "topic ask\ntopic answer\n\nproperty answered = on(ask) -> eventually[0, 2 s] on(answer)\n",
        "{\"topic\": \"ask\", \"time\": 0}\n{\"topic\": \"answer\", \"time\": 1}\n{\"topic\": \"ask\", \"time\": 2}\n\
         {\"topic\": \"answer\", \"time\": 9}\n{\"topic\": \"ask\", \"time\": 10}\n",
    ],
    [
        "One instance per parameter",
        "Each robot has its own verdict: `for each` begins an instance for every value of the parameter.",
        "topic pose { robot: int, x: float }\n\nproperty inside for each robot in pose.robot = abs(pose.x) < 5\n",
        "{\"topic\": \"pose\", \"time\": 0, \"data\": {\"robot\": 1, \"x\": 1}}\n\
         {\"topic\": \"pose\", \"time\": 1, \"data\": {\"robot\": 2, \"x\": 6}}\n\
         {\"topic\": \"pose\", \"time\": 2, \"data\": {\"robot\": 1, \"x\": 2}}\n\
         {\"topic\": \"pose\", \"time\": 3, \"data\": {\"robot\": 2, \"x\": 4}}\n",
    ],
];

/// The examples as the API describes them.
pub(crate) fn examples() -> Value {
    let example = |[name, about, specification, messages]: &[&str; 4]| json!({"name": name, "about": about, "specification": specification, "messages": messages});
    json!({"examples": EXAMPLES.iter().map(example).collect::<Vec<_>>()})
}

/// Checks messages against a specification.
pub(crate) fn check(specification: &str, messages: &str) -> Result<Value, Problem> {
    for (what, text, most) in
        [("specification", specification, SPECIFICATION), ("messages", messages, MESSAGES)]
    {
        if text.len() > most {
            return Err(Problem::new(413, format!("`{what}` has at most {most} bytes")));
        }
    }
    let sources = Sources::alone("playground", specification);
    let outcome = parse_sources(&sources, &ParseOptions::default(), None);
    // Imported libraries stand before the text.
    let start = sources.main_start();
    let diagnostics: Vec<Value> = outcome
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic_json(diagnostic, specification, start))
        .collect();
    let mut result = json!({"diagnostics": diagnostics, "verdicts": [], "has_more": false, "signals": []});
    let Some(spec) = outcome.spec else { return Ok(result) };
    let options = Options {
        explain: true,
        courses: true,
        instance_bytes: INSTANCES,
        clock: Arc::new(ManualClock::default()),
        ..Options::default()
    };
    match Session::new(&spec, options) {
        Ok(mut session) => run(&mut session, messages, &mut result),
        Err(error) => result["error"] = json!(error.to_string()),
    }
    Ok(result)
}

/// Runs a session over lines, and adds verdicts, signals and the first error to a result.
fn run(session: &mut Session, messages: &str, result: &mut Value) {
    let mut text = messages.as_bytes().to_vec();
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let (began, mut lines) = (Instant::now(), session.lines(TimeUnit::Seconds));
    let (mut at, mut error) = (0, None);
    let mut verdicts = Verdicts::default();
    while at < text.len() && error.is_none() {
        // Whole lines.
        let part = text.len().min(at + PART);
        let end = text.get(part..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        let end = end.map_or(text.len(), |more| part + more + 1);
        while at < end && error.is_none() {
            match session.push_lines(&mut lines, &text, at, end) {
                Ok(next) if next > at => at = next,
                Ok(_) => at = end,
                Err(wrong) => {
                    error = Some(format!("line {}, character {}: {}", wrong.line, wrong.column, wrong.kind));
                }
            }
            verdicts.take(session);
        }
        if began.elapsed() > LIMIT {
            error = Some(format!("the check takes longer than {} s: shorten the messages", LIMIT.as_secs()));
        }
    }
    session.finish();
    verdicts.take(session);
    if let Some(error) = error {
        result["error"] = json!(error);
    }
    let (signals, _) = session.courses();
    let signals: Vec<StoredSignal> = signals.into_iter().map(StoredSignal::from).collect();
    let from = signals.iter().filter_map(|signal| signal.values.first()).map(|(time, _)| *time).min();
    let until = signals.iter().filter_map(|signal| signal.values.last()).map(|(time, _)| *time).max();
    let (from, until) = (from.unwrap_or(0), until.unwrap_or(0));
    let signals: Vec<Value> = signals.iter().map(|signal| signal.json(from, until, WIDTH)).collect();
    result["signals"] = json!(signals);
    result["has_more"] = json!(verdicts.has_more);
    result["verdicts"] = json!(verdicts.all);
}

/// Verdicts of a session.
#[derive(Default)]
struct Verdicts {
    all: Vec<Value>,
    has_more: bool,
    json: Vec<u8>,
}

impl Verdicts {
    fn take(&mut self, session: &mut Session) {
        for report in session.reports() {
            if self.all.len() >= VERDICTS {
                self.has_more = true;
                continue;
            }
            self.json.clear();
            report.json(&mut self.json);
            // Reports write JSON.
            self.all.extend(serde_json::from_slice::<Value>(&self.json));
        }
    }
}

impl From<Signal> for StoredSignal {
    fn from(signal: Signal) -> StoredSignal {
        let Signal { name, thresholds, values, .. } = signal;
        let values = values.into_iter().map(|(time, value)| (time.as_nanos(), value)).collect();
        StoredSignal { name, thresholds, values }
    }
}

/// A diagnostic as the API describes it; offsets are characters of the text, which begins at `start`.
fn diagnostic_json(diagnostic: &Diagnostic, text: &str, start: usize) -> Value {
    let characters = |offset: usize| {
        let mut at = offset.saturating_sub(start).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (begin, end) = (characters(diagnostic.span.start), characters(diagnostic.span.end));
    let before = text.get(..begin).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    json!({
        "severity": severity,
        "code": diagnostic.code.as_str(),
        "message": diagnostic.message,
        "start": before.chars().count(),
        "end": text.get(..end).unwrap_or_default().chars().count(),
        "line": before.matches('\n').count() + 1,
        "column": before.get(line_start..).unwrap_or_default().chars().count() + 1,
        "help": diagnostic.help,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_checked() {
        for [name, _, specification, messages] in EXAMPLES {
            let result = check(specification, messages).unwrap();
            assert_eq!(result["diagnostics"], json!([]), "{name}");
            assert_eq!(result["error"], Value::Null, "{name}");
            let verdicts = result["verdicts"].as_array().unwrap();
            assert!(verdicts.iter().any(|verdict| verdict["verdict"] == "violated"), "{name}: {verdicts:?}");
        }
        let with_signals = check(EXAMPLES[0][2], EXAMPLES[0][3]).unwrap();
        assert!(
            with_signals["signals"].as_array().unwrap().iter().any(|signal| signal["name"] == "speed.value")
        );
    }

    #[test]
    fn mistakes_have_places() {
        let result = check("# ä\ntopic a { x: int }\nproperty p = a.y > 0\n", "").unwrap();
        let found = &result["diagnostics"][0];
        assert_eq!((&found["severity"], &found["line"]), (&json!("error"), &json!(3)));
        assert!(found["column"].as_u64().unwrap() >= 14 && found["end"].as_u64() > found["start"].as_u64());
        assert_eq!(result["verdicts"], json!([]));
    }

    #[test]
    fn wrong_and_large_input_is_refused() {
        let text = "topic a { x: int }\nproperty p = a.x > 0\n";
        let result = check(text, "{\"topic\": \"a\", \"time\": 1, \"data\": {\"x\": 1}}\nnot JSON").unwrap();
        assert!(result["error"].as_str().unwrap().starts_with("line 2"), "{result}");
        assert_eq!(
            result["verdicts"].as_array().map(Vec::len),
            Some(1),
            "lines before the error are checked"
        );
        assert_eq!(check(&"#".repeat(SPECIFICATION + 1), "").unwrap_err().status, 413);
        assert_eq!(check(text, &" ".repeat(MESSAGES + 1)).unwrap_err().status, 413);
        assert_eq!(check("", "").unwrap()["verdicts"], json!([]));
    }
}
