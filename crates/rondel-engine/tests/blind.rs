//! A monitor with notices of missed messages never contradicts one that received all of them: random
//! properties in all time models, random messages, some of them lost, late or sent during an outage.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-engine --test blind` runs one seed alone, `RONDEL_CASES` multiplies
//! them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod blind {
    pub(crate) mod formulas;
    pub(crate) mod stream;
}

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use blind::formulas::specification;
use blind::stream::{Message, Notice, Step, blind, messages, write};
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Timestamp, TopicId, Verdict};
use rondel_spec::{Spec, TimeModel};
use rondel_testkit::Random;

/// The subject of a verdict: property, instance, and message or time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Message(u32, String, usize),
    /// Twice the time; one more for the interval after it.
    Time(u32, String, i64),
}

/// A verdict: its subject, the step at which it was emitted, and whether by a message.
#[derive(Clone, Debug, PartialEq)]
struct Judged {
    about: About,
    verdict: Verdict,
    changed: bool,
    at_step: usize,
}

/// Step of the verdicts that are emitted just before a notice.
const BEFORE_NOTICE: usize = usize::MAX - 1;

/// The verdicts of a monitor over these steps, in blocks of this size; with `resumes`, restored from a
/// snapshot after each.
fn run(
    spec: &Spec,
    program: &Arc<Program>,
    steps: &[Step],
    every: bool,
    size: usize,
    resumes: bool,
) -> Vec<Judged> {
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(every);
    let mut all = Vec::new();
    let mut block = Block::new(program.layout());
    // The message of each event, and its step.
    let mut events: Vec<(usize, usize)> = Vec::new();
    let flush = |monitor: &mut Monitor,
                 block: &mut Block,
                 events: &[(usize, usize)],
                 at_step: usize,
                 all: &mut Vec<Judged>| {
        if block.is_empty() {
            return;
        }
        let first = monitor.position();
        monitor.step(block);
        note(spec, monitor, events, first as usize, at_step, all);
        block.clear();
        if resumes {
            let bytes = monitor.snapshot();
            *monitor = Monitor::restore(program.clone(), &bytes).unwrap();
            monitor.report_every(every);
        }
    };
    for (at_step, step) in steps.iter().enumerate() {
        match step {
            Step::Message { message, number, time, is_forgotten } => {
                let row = block.push(TopicId(message.topic as u32), Timestamp::from_nanos(*time));
                write(&mut block, row, program, message, *is_forgotten);
                events.push((*number, at_step));
                if block.len() >= size {
                    flush(&mut monitor, &mut block, &events, at_step, &mut all);
                }
            }
            Step::Notice(notice) => {
                flush(&mut monitor, &mut block, &events, at_step, &mut all);
                match notice {
                    Notice::Miss(topics, from, until, reached) => {
                        if let Some(reached) = reached {
                            monitor.advance(Timestamp::from_nanos(*reached));
                            note(spec, &monitor, &events, 0, BEFORE_NOTICE, &mut all);
                        }
                        monitor.miss(topics, Timestamp::from_nanos(*from), *until);
                        note(spec, &monitor, &events, 0, at_step, &mut all);
                    }
                    Notice::See(topics, until) => monitor.see(topics, *until),
                }
            }
        }
    }
    flush(&mut monitor, &mut block, &events, steps.len(), &mut all);
    all
}

fn note(
    spec: &Spec,
    monitor: &Monitor,
    events: &[(usize, usize)],
    first: usize,
    at_step: usize,
    all: &mut Vec<Judged>,
) {
    for report in monitor.reports() {
        let property = &spec.properties[report.property as usize];
        let key = monitor.key(report);
        let key = if key.is_empty() { String::new() } else { format!("{key:?}") };
        let time = report.about.unwrap_or(report.time).as_nanos();
        let by_message = property.time == TimeModel::Steps || report.at_event && report.about.is_none();
        let own = report.row.and_then(|row| events.get(first + usize::from(row)));
        let before = own.or(events.get(report.step as usize)).filter(|_| at_step != BEFORE_NOTICE);
        let at_step = before.map_or(at_step, |(_, step)| *step);
        let about = match events.get((report.step - report.back.min(report.step)) as usize) {
            Some(&(message, _)) if by_message && property.slice.is_none() => {
                About::Message(report.property, key, message)
            }
            _ if property.time == TimeModel::Steps && property.slice.is_some() => {
                match own.filter(|_| report.back == 0) {
                    Some((message, _)) => About::Message(report.property, key, *message),
                    None => continue,
                }
            }
            _ => About::Time(report.property, key, 2 * time + i64::from(report.after)),
        };
        all.push(Judged { about, verdict: report.verdict, changed: report.changed, at_step });
    }
}

/// Number of comparisons.
#[derive(Default)]
struct Counts {
    cases: u64,
    compared: u64,
    definite: u64,
    /// Verdicts withheld that the complete monitor decides.
    withheld: u64,
}

fn case(numbers: &mut Random, counts: &mut Counts) -> Result<(), String> {
    let topics = 2 + numbers.int(2) as usize;
    let text = specification(numbers, topics);
    let Some(spec) = rondel_spec::parse(&text).spec else { return Ok(()) };
    let Ok(program) = Program::compile(&spec) else { return Ok(()) };
    let program = Arc::new(program);
    counts.cases += 1;
    let all: Vec<Message> = messages(numbers, topics);
    let whole: Vec<Step> = all
        .iter()
        .enumerate()
        .map(|(number, message)| Step::Message {
            message: *message,
            number,
            time: message.time,
            is_forgotten: false,
        })
        .collect();
    let (steps, hidden) = blind(numbers, &all, topics);
    let expected = run(&spec, &program, &whole, true, 64, false);
    // Formatting preserves the meaning.
    let formatted = rondel_spec::format(&text).unwrap();
    let again = rondel_spec::parse(&formatted).spec.ok_or_else(|| format!("{text}\nas {formatted}"))?;
    let of_formatted = run(&again, &Arc::new(Program::compile(&again).unwrap()), &whole, true, 64, false);
    if expected != of_formatted {
        return Err(format!("{text}\nand {formatted} differ:\n{expected:?}\n{of_formatted:?}"));
    }
    let size = numbers.pick(&[1, 3, 64]);
    let found = run(&spec, &program, &steps, true, size, false);
    let mut truth: BTreeMap<&About, Vec<Verdict>> = BTreeMap::new();
    for judged in &expected {
        truth.entry(&judged.about).or_default().push(judged.verdict);
    }
    for judged in &found {
        // Verdicts between a missed message and its notice can be wrong. So can those by time alone after the
        // last message before.
        let is_hidden =
            |hidden: &Range<usize>| hidden.contains(&judged.at_step) || judged.at_step + 1 == hidden.start;
        if judged.at_step == BEFORE_NOTICE || hidden.iter().any(is_hidden) {
            continue;
        }
        let Some(truth) = truth.get(&judged.about) else { continue };
        counts.compared += 1;
        let opposite = match judged.verdict {
            Verdict::Satisfied => Verdict::Violated,
            Verdict::Violated => Verdict::Satisfied,
            Verdict::Inconclusive => {
                counts.withheld += u64::from(!truth.contains(&Verdict::Inconclusive));
                continue;
            }
        };
        counts.definite += 1;
        if truth.iter().all(|verdict| *verdict == opposite) {
            let shown: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
            return Err(format!("{text}\n{judged:?}\nbut {truth:?}\n{}", shown.join("\n")));
        }
    }
    // Neither the block size nor snapshots make a difference.
    let changes = |size, resumes| -> Vec<(About, Verdict)> {
        let all = run(&spec, &program, &steps, false, size, resumes);
        all.into_iter().filter(|judged| judged.changed).map(|judged| (judged.about, judged.verdict)).collect()
    };
    let once = changes(64, false);
    for (size, resumes) in [(1, false), (5, true)] {
        let again = changes(size, resumes);
        let sorted = |mut all: Vec<(About, Verdict)>| {
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        };
        if sorted(once.clone()) != sorted(again.clone()) {
            return Err(format!("{text}\nin blocks of {size}: {again:?}\nbut {once:?}\n{steps:?}"));
        }
    }
    Ok(())
}

#[test]
fn missed_messages_cause_no_wrong_verdict() {
    let seeds = rondel_testkit::seeds("blind", 1600);
    let (mut counts, total) = (Counts::default(), seeds.left());
    for seed in seeds {
        if let Err(why) = case(&mut Random::new(seed), &mut counts) {
            panic!("{why}");
        }
    }
    let Counts { cases, compared, definite, withheld } = counts;
    println!("{cases} specifications, {compared} verdicts, {definite} definite, {withheld} withheld");
    // A monitor that is always inconclusive would never contradict.
    assert!(total < 200 || cases > total / 2, "{cases} of {total} specifications compile");
    assert!(total < 200 || compared > 50 * total, "{compared} verdicts are compared");
    assert!(total < 200 || definite > compared * 3 / 5, "{definite} of {compared} verdicts are definite");
    assert!(total < 200 || withheld < compared / 3, "{withheld} of {compared} verdicts are withheld");
}
