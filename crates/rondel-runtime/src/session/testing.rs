//! The tests in a specification: their messages go through a session, and the verdicts are compared with
//! the expected ones.

use rondel_event::{Timestamp, Value, Verdict};
use rondel_spec::{Expectation, Test};

use super::snapshot::saved::StartError;
use super::{Session, SessionPlan, Stamp};
use crate::report::Report;
use crate::statistics::PropertyStatistics;
use crate::statistics::omission::Omission;

/// The number of deadlines after the last message. A machine that repeats by itself has no last one.
const LONGEST: usize = 10_000;

/// The number of columns of explanations.
const WIDTH: usize = 96;

/// A verdict of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Came {
    /// The property, by its position.
    pub property: u32,
    /// The values of its parameters.
    pub parameters: Vec<Value>,
    /// The verdict.
    pub verdict: Verdict,
    /// When it became certain.
    pub time: Timestamp,
    /// The time that it is about, where that is another.
    pub about: Option<Timestamp>,
    /// Whether it may hold only from just after that time on, because time alone decided it.
    pub after: bool,
    /// The message that decided it; none if time did.
    pub message: Option<usize>,
    /// The explanation in text, of a violation that is explained.
    pub explanation: Option<String>,
}

impl Came {
    fn new(report: &Report<'_>, message: Option<usize>) -> Came {
        let text = |explanation: &crate::Explanation| {
            let mut text = Vec::new();
            explanation.text(WIDTH, &mut |time| (format!("{time} s"), None), &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        Came {
            property: report.property().position,
            parameters: report.parameters().to_vec(),
            verdict: report.verdict(),
            time: report.time(),
            about: report.about(),
            after: report.step().is_none(),
            message: message.filter(|_| report.at_message()),
            explanation: report.explanation().map(text),
        }
    }

    /// The time that it is about.
    fn about(&self) -> Timestamp {
        self.about.unwrap_or(self.time)
    }
}

/// The outcome of a test.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// All verdicts that differ from the one before, in order.
    pub came: Vec<Came>,
    /// The expectations that were not met, by their positions.
    pub unmet: Vec<usize>,
    /// The messages that could not be decoded, with the reason.
    pub undecodable: Vec<String>,
    /// The messages and values that were not evaluated, by reason and topic.
    pub not_evaluated: Vec<Omission>,
    /// For each property whether its verdicts depend on such messages.
    pub incomplete: Vec<bool>,
    /// Whether deadlines were left at the limit.
    pub endless: bool,
}

/// Runs a test. The plan must evaluate messages as they come, with the times that they are stamped with.
///
/// After the last message time passes up to the end of the test, or without an end until no deadline is left.
///
/// # Errors
/// [`StartError`] when the session does not start.
pub fn run(plan: &SessionPlan, test: &Test) -> Result<Outcome, StartError> {
    let mut session = plan.start()?;
    let mut outcome = Outcome::default();
    for (i, message) in test.messages.iter().enumerate() {
        let pushed = session.push(message.topic, Stamp::at(message.time), message.json.as_bytes());
        if let Err(error) = pushed {
            outcome.undecodable.push(format!("{}: {error}", message.json));
        }
        session.flush();
        outcome.take(&mut session, Some(i));
    }
    let mut until = test.messages.iter().map(|message| message.time).max();
    match test.end {
        // Verdicts that become certain at the end count too.
        Some(end) => {
            until = until.max(Some(end));
            session.advance(Timestamp::from_nanos(end.as_nanos().saturating_add(1)));
            outcome.take(&mut session, None);
        }
        None => {
            let mut last = None;
            for steps in 0.. {
                let Some(due) = session.deadline().filter(|due| last.is_none_or(|last| *due > last)) else {
                    break;
                };
                if steps == LONGEST {
                    outcome.endless = true;
                    break;
                }
                session.advance(due);
                until = until.max(Some(Timestamp::from_nanos(due.as_nanos().saturating_sub(1))));
                outcome.take(&mut session, None);
                last = Some(due);
            }
        }
    }
    session.finish();
    let before = outcome.came.len();
    outcome.take(&mut session, None);
    // The final advance must not show in the times.
    for came in &mut outcome.came[before..] {
        came.time = until.map_or(came.time, |until| came.time.min(until));
    }
    let summary = session.summary();
    outcome.not_evaluated = summary.omitted();
    let is_incomplete = |property: &PropertyStatistics| property.is_incomplete || property.unchecked > 0;
    outcome.incomplete = summary.properties.iter().map(is_incomplete).collect();
    outcome.unmet = (0..test.expectations.len()).filter(|i| !outcome.meets(&test.expectations[*i])).collect();
    Ok(outcome)
}

impl Outcome {
    /// Whether the test passed.
    pub fn is_ok(&self) -> bool {
        self.unmet.is_empty() && self.undecodable.is_empty()
    }

    fn take(&mut self, session: &mut Session, message: Option<usize>) {
        let changed = session.reports().filter(|report| report.changed());
        self.came.extend(changed.map(|report| Came::new(&report, message)));
    }

    /// Whether an expectation is met. An expectation about an instance that never existed is not met; neither is one
    /// that an event never happened to a property without any verdict, or whose verdicts depend on omitted messages.
    pub fn meets(&self, expectation: &Expectation) -> bool {
        let Expectation { never, verdict, at, .. } = expectation;
        let may_have_come = *never
            && *verdict != Verdict::Inconclusive
            && self.incomplete.get(expectation.property as usize) == Some(&true);
        if may_have_come || self.other_keys(expectation).is_some() {
            return false;
        }
        let holds = match at {
            None => self.of(expectation).any(|came| came.verdict == *verdict),
            Some(at) => self.at(expectation, *at).contains(verdict),
        };
        holds != *never
    }

    /// The parameters of the property's instances, if an expectation is about an instance that never existed.
    pub fn other_keys(&self, expectation: &Expectation) -> Option<Vec<&[Value]>> {
        if self.of(expectation).next().is_some() || expectation.keys.is_empty() && !expectation.never {
            return None;
        }
        let mut keys: Vec<&[Value]> = Vec::new();
        for came in self.came.iter().filter(|came| came.property == expectation.property) {
            if !keys.contains(&came.parameters.as_slice()) {
                keys.push(&came.parameters);
            }
        }
        Some(keys)
    }

    /// The verdicts that an expectation is about.
    pub fn of<'a>(&'a self, expectation: &'a Expectation) -> impl Iterator<Item = &'a Came> {
        self.came.iter().filter(|came| {
            came.property == expectation.property
                && (expectation.keys.is_empty() || came.parameters == expectation.keys)
        })
    }

    /// The verdicts that hold at a time, that begin right after it, and that became certain at it.
    fn at(&self, expectation: &Expectation, at: Timestamp) -> Vec<Verdict> {
        let begins = |came: &Came| came.about() == at || came.about.is_some() && came.time == at;
        let mut found: Vec<Verdict> = self.of(expectation).filter(|g| begins(g)).map(|g| g.verdict).collect();
        // For every instance its last verdict before that time, unless another one began at it.
        let mut standing: Vec<&Came> = Vec::new();
        for came in self.of(expectation).filter(|came| came.about() < at) {
            match standing.iter_mut().find(|known| known.parameters == came.parameters) {
                Some(known) => *known = came,
                None => standing.push(came),
            }
        }
        standing.retain(|known| {
            let mut here =
                self.of(expectation).filter(|came| came.about() == at && came.parameters == known.parameters);
            here.all(|came| came.after)
        });
        found.extend(standing.iter().map(|came| came.verdict));
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn came(at: i64, after: bool, verdict: Verdict) -> Came {
        Came {
            property: 0,
            parameters: Vec::new(),
            verdict,
            time: Timestamp::from_nanos(at),
            about: None,
            after,
            message: None,
            explanation: None,
        }
    }

    fn meets(came: &[Came], verdict: Verdict, at: Option<i64>) -> bool {
        let ran = Outcome { came: came.to_vec(), ..Outcome::default() };
        let at = at.map(Timestamp::from_nanos);
        let expectation = Expectation { property: 0, keys: Vec::new(), never: false, verdict, at, offset: 0 };
        let met = ran.meets(&expectation);
        assert_ne!(met, ran.meets(&Expectation { never: true, ..expectation }));
        met
    }

    #[test]
    fn a_verdict_holds_until_the_next() {
        use Verdict::{Inconclusive, Satisfied, Violated};
        let all = [came(10, false, Satisfied), came(20, false, Violated), came(30, true, Satisfied)];
        for (verdict, at, expected) in [
            (Satisfied, None, true),
            (Inconclusive, None, false),
            (Satisfied, Some(9), false),
            (Satisfied, Some(10), true),
            (Satisfied, Some(19), true),
            (Violated, Some(19), false),
            (Violated, Some(20), true),
            (Satisfied, Some(20), false),
            (Violated, Some(30), true),
            (Satisfied, Some(30), true),
            (Violated, Some(31), false),
            (Satisfied, Some(1000), true),
        ] {
            assert_eq!(meets(&all, verdict, at), expected, "{verdict:?} at {at:?}");
        }
    }

    #[test]
    fn an_instance_that_never_existed_meets_nothing() {
        let key = |text: &str| vec![Value::String(text.into())];
        let of = |text, verdict| Came { parameters: key(text), ..came(1, false, verdict) };
        let all = vec![of("a", Verdict::Satisfied), of("b", Verdict::Violated), of("a", Verdict::Violated)];
        let ran = Outcome { came: all, ..Outcome::default() };
        let verdict = Verdict::Violated;
        let expectation =
            |text, never| Expectation { property: 0, keys: key(text), never, verdict, at: None, offset: 0 };
        for (text, never, expected) in
            [("a", true, false), ("b", false, true), ("aa", true, false), ("aa", false, false)]
        {
            assert_eq!(ran.meets(&expectation(text, never)), expected, "{text} {never}");
        }
        assert_eq!(ran.other_keys(&expectation("b", true)), None);
        assert_eq!(ran.other_keys(&expectation("aa", true)), Some(vec![&key("a")[..], &key("b")[..]]));
    }

    #[test]
    fn time_passes_after_the_last_message() {
        let text = "topic beat { n: int } property alive = once[0, 2 s] on(beat)";
        let spec = rondel_spec::parse(text).spec.unwrap();
        let plan = SessionPlan::new(&spec, crate::Options::default()).unwrap();
        let message = |seconds: i64| rondel_spec::TestMessage {
            time: Timestamp::from_nanos(seconds * 1_000_000_000),
            topic: rondel_event::TopicId(0),
            json: r#"{"n": 1}"#.into(),
        };
        let mut test = Test {
            name: "t".into(),
            offset: 0,
            messages: vec![message(1), message(2)],
            end: None,
            expectations: Vec::new(),
        };
        let verdicts = |test: &Test| {
            let ran = run(&plan, test).unwrap();
            assert!(ran.is_ok() && ran.not_evaluated.is_empty() && !ran.endless);
            ran.came.iter().map(|g| (g.time.to_string(), g.verdict, g.message)).collect::<Vec<_>>()
        };
        let first = ("1".to_owned(), Verdict::Satisfied, Some(0));
        let silent = ("4".to_owned(), Verdict::Violated, None);
        assert_eq!(verdicts(&test), [first.clone(), silent.clone()]);
        test.end = Some(Timestamp::from_nanos(3_999_999_999));
        assert_eq!(verdicts(&test), std::slice::from_ref(&first));
        test.end = Some(Timestamp::from_nanos(4_000_000_000));
        assert_eq!(verdicts(&test), [first, silent]);
        test.messages[0].json = "{".into();
        assert!(!run(&plan, &test).unwrap().is_ok());
    }

    #[test]
    fn delayed_verdicts_also_match_their_decision_time() {
        let about =
            |time, at, verdict| Came { about: Some(Timestamp::from_nanos(at)), ..came(time, false, verdict) };
        let all = [about(5, 5, Verdict::Satisfied), about(12, 10, Verdict::Violated)];
        assert!(meets(&all, Verdict::Violated, Some(12)));
        assert!(meets(&all, Verdict::Violated, Some(10)));
        assert!(meets(&all, Verdict::Satisfied, Some(9)));
        assert!(!meets(&all, Verdict::Violated, Some(9)));
    }
}
