//! Tests inside a specification: their messages through a monitor, and what came compared with what
//! was expected.

use rondel_decode::lines::Lines;
use rondel_engine::Monitor;
use rondel_event::{Block, TimeUnit, Timestamp, Value, Verdict};
use rondel_spec::{Expectation, Test};

use crate::evidence::{Evidence, Witness};
use crate::output;
use crate::specification::Specification;

/// How often time is let go on after the last message. A machine that goes round and round by itself
/// would never come to an end.
const LONGEST: usize = 10_000;

/// A verdict that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The property, by its position.
    pub property: u32,
    /// The values of its keys, where it has some.
    pub keys: Vec<Value>,
    /// The verdict.
    pub verdict: Verdict,
    /// When it became certain.
    pub time: Timestamp,
    /// The time that it is about, where that is another.
    pub about: Option<Timestamp>,
    /// Whether it may hold only from just after that time on, as time brought it.
    pub after: bool,
    /// The message that brought it; otherwise time itself did.
    pub message: Option<usize>,
    /// Why it is so, for people, where that is asked for.
    pub evidence: Option<String>,
}

impl Given {
    /// The time that it is about.
    fn about(&self) -> Timestamp {
        self.about.unwrap_or(self.time)
    }
}

/// What became of a test.
#[derive(Clone, Debug)]
pub struct Ran {
    /// All verdicts, where they differ from the one before, in the order in which they came.
    pub given: Vec<Given>,
    /// The expectations that were not met, by their positions.
    pub unmet: Vec<usize>,
    /// Messages that could not be read, with what is wrong.
    pub unreadable: Vec<String>,
    /// How many values had another type than the specification reads.
    pub mistyped: u64,
    /// Whether time could have gone on for ever.
    pub endless: bool,
}

impl Ran {
    /// Whether it came as expected.
    pub fn is_ok(&self) -> bool {
        self.unmet.is_empty() && self.unreadable.is_empty()
    }
}

/// Runs a test of a specification.
///
/// After the last message time goes on to where the test ends; if it does not say where, until nothing
/// is left that time could bring.
pub fn run(specification: &Specification, test: &Test, witness: Option<&mut Witness>) -> Ran {
    let mut witness = witness;
    if let Some(witness) = &mut witness {
        witness.restart();
    }
    let mut monitor = Monitor::new(specification.program.clone());
    let mut block = Block::new(specification.program.layout());
    let mut lines = Lines::new(&specification.trace_topics(), false, TimeUnit::Seconds);
    let mut ran =
        Ran { given: Vec::new(), unmet: Vec::new(), unreadable: Vec::new(), mistyped: 0, endless: false };
    for (i, message) in test.messages.iter().enumerate() {
        let topic = &specification.spec.topics[message.topic.index()].name;
        // A name always has a JSON form.
        let topic = serde_json::to_string(topic).unwrap_or_default();
        let line =
            format!("{{\"topic\":{topic},\"time\":{},\"data\":{}}}\n", message.time, message.json.trim());
        if let Err(error) = lines.decode(line.as_bytes(), 0, line.len(), &mut block) {
            ran.unreadable.push(format!("{}: {}", message.json, error.kind));
        }
        let first = monitor.position();
        monitor.step(&block);
        ran.take(Some((&block, first)), &monitor, Some(i), &mut witness);
        block.clear();
    }
    let mut until = test.messages.iter().map(|message| message.time).max();
    match test.end {
        // What becomes certain at the end has still to be seen.
        Some(end) => {
            until = until.max(Some(end));
            let end = Timestamp::from_nanos(end.as_nanos().saturating_add(1));
            monitor.advance(end);
            ran.take(None, &monitor, None, &mut witness);
        }
        None => {
            let mut steps = 0;
            let mut last = None;
            while let Some(due) = monitor.next_deadline().filter(|due| last.is_none_or(|last| *due > last)) {
                if steps == LONGEST {
                    ran.endless = true;
                    break;
                }
                monitor.advance(due);
                until = until.max(Some(Timestamp::from_nanos(due.as_nanos().saturating_sub(1))));
                ran.take(None, &monitor, None, &mut witness);
                steps += 1;
                last = Some(due);
            }
        }
    }
    monitor.end();
    let before = ran.given.len();
    ran.take(None, &monitor, None, &mut witness);
    // That time went on a little further is of no interest.
    for given in &mut ran.given[before..] {
        given.time = until.map_or(given.time, |until| given.time.min(until));
    }
    ran.mistyped = lines.mistyped();
    ran.unmet = (0..test.expectations.len()).filter(|i| !ran.meets(&test.expectations[*i])).collect();
    ran
}

impl Ran {
    fn take(
        &mut self,
        block: Option<(&Block, u64)>,
        monitor: &Monitor,
        message: Option<usize>,
        witness: &mut Option<&mut Witness>,
    ) {
        let mut give = |given: &output::Given<'_>| {
            let output::Given { report, keys, evidence, .. } = given;
            let text = |evidence: &Evidence<'_>| {
                let mut text = Vec::new();
                evidence.text(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            };
            if report.changed {
                self.given.push(Given {
                    property: report.property,
                    keys: keys.to_vec(),
                    verdict: report.verdict,
                    time: report.time,
                    about: report.about,
                    after: !report.at_event,
                    message: message.filter(|_| report.row.is_some()),
                    evidence: evidence.as_ref().map(text),
                });
            }
        };
        match witness {
            Some(witness) => witness.take(block, monitor, give),
            None => {
                let mut keys = Vec::new();
                for report in monitor.reports() {
                    give(&output::Given::new(report, monitor, None, &mut keys));
                }
            }
        }
    }

    /// Whether what came is what was expected.
    pub fn meets(&self, expectation: &Expectation) -> bool {
        let Expectation { never, verdict, at, .. } = expectation;
        let came = match at {
            None => self.of(expectation).any(|given| given.verdict == *verdict),
            Some(at) => self.at(expectation, *at).contains(verdict),
        };
        came != *never
    }

    /// The verdicts on what an expectation is about.
    pub fn of<'a>(&'a self, expectation: &'a Expectation) -> impl Iterator<Item = &'a Given> {
        self.given.iter().filter(|given| {
            given.property == expectation.property
                && (expectation.keys.is_empty() || given.keys == expectation.keys)
        })
    }

    /// The verdicts that stand at a time, that begin right after it, and that were given at it.
    fn at(&self, expectation: &Expectation, at: Timestamp) -> Vec<Verdict> {
        let begins = |given: &Given| given.about() == at || given.about.is_some() && given.time == at;
        let mut found: Vec<Verdict> = self.of(expectation).filter(|g| begins(g)).map(|g| g.verdict).collect();
        // Of every instance the last one before, unless it was another already at that time.
        let mut standing: Vec<&Given> = Vec::new();
        for given in self.of(expectation).filter(|given| given.about() < at) {
            match standing.iter_mut().find(|known| known.keys == given.keys) {
                Some(known) => *known = given,
                None => standing.push(given),
            }
        }
        standing.retain(|known| {
            let mut here =
                self.of(expectation).filter(|given| given.about() == at && given.keys == known.keys);
            here.all(|given| given.after)
        });
        found.extend(standing.iter().map(|given| given.verdict));
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn given(at: i64, after: bool, verdict: Verdict) -> Given {
        Given {
            property: 0,
            keys: Vec::new(),
            verdict,
            time: Timestamp::from_nanos(at),
            about: None,
            after,
            message: None,
            evidence: None,
        }
    }

    fn meets(given: &[Given], verdict: Verdict, at: Option<i64>) -> bool {
        let ran = Ran {
            given: given.to_vec(),
            unmet: Vec::new(),
            unreadable: Vec::new(),
            mistyped: 0,
            endless: false,
        };
        let at = at.map(Timestamp::from_nanos);
        let expectation = Expectation { property: 0, keys: Vec::new(), never: false, verdict, at, offset: 0 };
        let met = ran.meets(&expectation);
        assert_ne!(met, ran.meets(&Expectation { never: true, ..expectation }));
        met
    }

    #[test]
    fn a_verdict_stands_until_the_next() {
        use Verdict::{Inconclusive, Satisfied, Violated};
        let came = [given(10, false, Satisfied), given(20, false, Violated), given(30, true, Satisfied)];
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
            assert_eq!(meets(&came, verdict, at), expected, "{verdict:?} at {at:?}");
        }
    }

    #[test]
    fn time_goes_on_after_the_last_message() {
        let text = "topic beat { n: int } property alive = once[0, 2 s] on(beat)";
        let specification = Specification::from_text(text, "alive.rondel").unwrap();
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
        let came = |test: &Test| {
            let ran = run(&specification, test, None);
            assert!(ran.is_ok() && ran.mistyped == 0 && !ran.endless);
            ran.given.iter().map(|g| (g.time.to_string(), g.verdict, g.message)).collect::<Vec<_>>()
        };
        let first = ("1".to_owned(), Verdict::Satisfied, Some(0));
        let silent = ("4".to_owned(), Verdict::Violated, None);
        assert_eq!(came(&test), [first.clone(), silent.clone()]);
        test.end = Some(Timestamp::from_nanos(3_999_999_999));
        assert_eq!(came(&test), std::slice::from_ref(&first));
        test.end = Some(Timestamp::from_nanos(4_000_000_000));
        assert_eq!(came(&test), [first, silent]);
        test.messages[0].json = "{".into();
        assert!(!run(&specification, &test, None).is_ok());
    }

    #[test]
    fn what_is_about_another_time_was_also_given_at_its_own() {
        let about = |time, at, verdict| Given {
            about: Some(Timestamp::from_nanos(at)),
            ..given(time, false, verdict)
        };
        let came = [about(5, 5, Verdict::Satisfied), about(12, 10, Verdict::Violated)];
        assert!(meets(&came, Verdict::Violated, Some(12)));
        assert!(meets(&came, Verdict::Violated, Some(10)));
        assert!(meets(&came, Verdict::Satisfied, Some(9)));
        assert!(!meets(&came, Verdict::Violated, Some(9)));
    }
}
