//! The playground: specifications that viewers edit, checked against recordings.
//!
//! A specification of a viewer may need any time and memory. The program therefore brings a [`Checker`], whose checks are
//! bounded and can be cut off.

use std::fmt::Debug;
use std::sync::{MutexGuard, TryLockError};

use rondel_spec::{Diagnostic, Severity, Sources};
use serde_json::{Value, json};

use crate::answer::Problem;
use crate::api::{Answer, member};
use crate::page::Page;

/// Largest specification and largest messages, in bytes.
const SPECIFICATION: usize = 100_000;
const MESSAGES: usize = 1 << 20;
/// Checks and saves per second, and at once after a pause.
pub(crate) const RATE: f64 = 2.0;
pub(crate) const BURST: f64 = 10.0;

/// Checks of specifications that viewers have edited.
pub trait Checker: Debug + Send + Sync {
    /// Returns the names of the recordings.
    fn recordings(&self) -> Vec<String>;

    /// Returns the name of the file into which viewers may save the specification, if they may.
    fn file(&self) -> Option<String>;

    /// Checks a specification, within limits of time and memory. Returns the result as the API describes it.
    ///
    /// # Errors
    /// The reason why there is none, for viewers.
    fn check(&self, specification: &str, trace: Trace<'_>) -> Result<Value, String>;

    /// Writes a specification into the [file](Checker::file).
    ///
    /// # Errors
    /// The reason why it is not written.
    fn save(&self, specification: &str) -> Result<(), String>;
}

/// Messages to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace<'t> {
    /// A recording, by its position.
    Recording(usize),
    /// JSON lines.
    Messages(&'t str),
}

/// Name, description, specification and messages of each example.
const EXAMPLES: &[[&str; 4]] = &[
    [
        "Limits and implications",
        "If speed exceeds 10, the brake must have been pressed within the last 2 seconds. Raise the limit to 15: nothing is violated any more.",
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
        "Every request is answered within 2 seconds: an operator of the future delays the verdict until it is certain. Add an answer to the messages at 3 s.",
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

impl Page {
    /// Returns the recordings and the examples.
    pub(crate) fn playground(&self) -> Answer {
        let checker = self.checker()?;
        let examples: Vec<Value> = (EXAMPLES.iter())
            .map(|[name, about, specification, messages]| {
                json!({"name": name, "about": about, "specification": specification, "messages": messages})
            })
            .collect();
        Ok(json!({"recordings": checker.recordings(), "file": checker.file(), "examples": examples}))
    }

    /// Checks the specification of a viewer.
    pub(crate) fn attempt(&self, body: &Value, now: i64) -> Answer {
        let checker = self.checker()?;
        let specification = limited(body, "specification", SPECIFICATION)?;
        let trace = match body.get("recording") {
            None | Some(Value::Null) => Trace::Messages(limited(body, "messages", MESSAGES)?),
            Some(recording) => {
                let position = checker.recordings().iter().position(|own| recording == own.as_str());
                Trace::Recording(position.ok_or_else(|| Problem::unknown("there is no such recording"))?)
            }
        };
        self.guard.attempt(now)?;
        let _checking = self.reserve()?;
        checker.check(specification, trace).map_err(|why| Problem::new(422, why))
    }

    /// Saves the specification of a viewer.
    pub(crate) fn save(&self, body: &Value, now: i64) -> Answer {
        let checker = self.checker()?;
        let Some(file) = checker.file() else {
            return Err(Problem::new(403, "saving is not allowed: `--save-to FILE` allows it"));
        };
        let specification = limited(body, "specification", SPECIFICATION)?;
        self.guard.attempt(now)?;
        // One at a time, so that the file has the text of one viewer.
        let _saving = self.reserve()?;
        checker.save(specification).map_err(|why| Problem::new(500, why))?;
        Ok(json!({"file": file}))
    }

    /// Reserves the playground for one check or one save. Nothing waits for another viewer: requests that wait would keep
    /// all others from being answered.
    fn reserve(&self) -> Result<MutexGuard<'_, ()>, Problem> {
        match self.checking.try_lock() {
            Ok(reserved) => Ok(reserved),
            // A check that has panicked leaves no state.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Problem::new(429, "the playground checks for another viewer: try again in a second"))
            }
        }
    }

    fn checker(&self) -> Result<&dyn Checker, Problem> {
        self.settings.playground.as_deref().ok_or_else(|| {
            Problem::new(
                403,
                "there is no playground here: `rondel check --page` and `rondel page --recording FILE` have one",
            )
        })
    }
}

/// A text of a body, of limited length.
fn limited<'b>(body: &'b Value, name: &str, most: usize) -> Result<&'b str, Problem> {
    let text = member(body, name)?;
    match text.len() > most {
        true => Err(Problem::new(413, format!("`{name}` has at most {most} bytes"))),
        false => Ok(text),
    }
}

/// The diagnostics of a text as the API describes them; offsets are characters of the file that imports the others.
pub fn diagnostics_json(diagnostics: &[Diagnostic], sources: &Sources) -> Vec<Value> {
    let start = sources.main_start();
    let text = sources.text().get(start..).unwrap_or_default();
    diagnostics.iter().map(|diagnostic| diagnostic_json(diagnostic, text, start, sources)).collect()
}

fn diagnostic_json(diagnostic: &Diagnostic, text: &str, start: usize, sources: &Sources) -> Value {
    let offset = |offset: usize| {
        let mut at = offset.saturating_sub(start).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (begin, end) = (offset(diagnostic.span.start), offset(diagnostic.span.end));
    let before = text.get(..begin).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let message = match diagnostic.span.start < start {
        // The text has no place for it.
        true => format!("{}: {}", sources.place(diagnostic.span.start).file, diagnostic.message),
        false => diagnostic.message.clone(),
    };
    json!({
        "severity": severity,
        "code": diagnostic.code.as_str(),
        "message": message,
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
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;
    use std::sync::Arc;

    use rondel_spec::{ParseOptions, parse_sources};

    use super::*;
    use crate::guard::Access;
    use crate::page::{Kind, Settings, lock};

    /// A checker that panics on one text.
    #[derive(Debug)]
    struct Panicking;

    impl Checker for Panicking {
        fn recordings(&self) -> Vec<String> {
            vec!["a.jsonl".to_owned()]
        }

        fn file(&self) -> Option<String> {
            Some("a.rondel".to_owned())
        }

        fn check(&self, specification: &str, _: Trace<'_>) -> Result<Value, String> {
            assert_ne!(specification, "panic");
            Ok(json!({}))
        }

        fn save(&self, _: &str) -> Result<(), String> {
            Ok(())
        }
    }

    /// A page with this playground. Its store is not read.
    fn page() -> Page {
        Page::new(Settings {
            kind: Kind::Check,
            name: None,
            store: PathBuf::from("missing.db"),
            series: None,
            access: Access::local("127.0.0.1:0".parse().unwrap()),
            playground: Some(Arc::new(Panicking)),
            version: String::new(),
            features: Vec::new(),
            signals: Vec::new(),
        })
    }

    fn statuses(page: &Page) -> [Option<u16>; 2] {
        let body = json!({"specification": "", "recording": "a.jsonl"});
        [page.attempt(&body, 0), page.save(&body, 0)].map(|answer| answer.err().map(|problem| problem.status))
    }

    #[test]
    fn busy_playground_refuses_checks_and_saves() {
        let page = page();
        let checking = lock(&page.checking);
        assert_eq!(statuses(&page), [Some(429); 2]);
        drop(checking);
        assert_eq!(statuses(&page), [None; 2]);
    }

    #[test]
    fn playground_goes_on_after_a_panic() {
        let page = page();
        let body = json!({"specification": "panic", "recording": "a.jsonl"});
        assert!(catch_unwind(AssertUnwindSafe(|| page.attempt(&body, 0))).is_err());
        assert!(page.checking.is_poisoned());
        assert_eq!(statuses(&page), [None; 2]);
    }

    fn diagnostics(text: &str) -> Vec<Value> {
        let sources = Sources::alone("playground", text);
        diagnostics_json(&parse_sources(&sources, &ParseOptions::default(), None).diagnostics, &sources)
    }

    #[test]
    fn mistakes_have_places() {
        let found = diagnostics("# ä\ntopic a { x: int }\nproperty p = a.y > 0\n");
        assert_eq!((&found[0]["severity"], &found[0]["line"]), (&json!("error"), &json!(3)));
        assert!(found[0]["column"].as_u64().unwrap() >= 14);
        assert!(found[0]["end"].as_u64() > found[0]["start"].as_u64());
        let imported = diagnostics("use std.patterns\nproperty p = nothing.x\n");
        assert_eq!(imported[0]["line"], json!(2), "libraries stand before the text: {imported:?}");
    }

    #[test]
    fn examples_have_no_mistakes() {
        for [name, _, specification, _] in EXAMPLES {
            assert_eq!(diagnostics(specification), Vec::<Value>::new(), "{name}");
        }
    }
}
