//! Chains agree with their definitions over the whole trace.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use rondel_engine::{ChainFigures, Distribution, Monitor, Program};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};

const WITHIN: i64 = 50;
const AGE: i64 = 70;
const REACTION: i64 = 60;
const WAIT: i64 = 500;

const TEXT: &str = "
    topic a { s: int } topic b { s: int } topic c { s: int } topic d { s: int }
    chain way = a -> b -> c by s within 50 ns age <= 70 ns reaction <= 60 ns
    @time(points) property young = age(way) < 70 ns and on(d)
    property quick = latency(way) <= 30 ns and on(d)
    property waits = 20 ns < reaction(way)
";

/// A message: time, one of four topics, and stamp.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: i64,
    topic: u32,
    stamp: Option<i64>,
}

/// A stamp with the times at which it reached each topic.
#[derive(Clone, Debug)]
struct Transit {
    stamp: i64,
    reached: Vec<i64>,
}

impl Transit {
    fn set_out(&self) -> i64 {
        self.reached[0]
    }

    fn lives(&self, time: i64) -> bool {
        time - self.set_out() <= WAIT
    }
}

/// An output: its time, and the transit that it ends.
struct Emitted {
    time: i64,
    transit: usize,
}

/// The transits of all stamps, the outputs, and the counts, after these messages.
fn transits(trace: &[Message]) -> (Vec<Transit>, Vec<Emitted>, ChainFigures) {
    let (mut transits, mut outputs) = (Vec::<Transit>::new(), Vec::new());
    let mut figures = ChainFigures { lost: vec![0; 3], ..ChainFigures::default() };
    for message in trace.iter().filter(|message| message.topic < 3) {
        let Some(stamp) = message.stamp else {
            figures.unstamped += 1;
            continue;
        };
        let known = transits.iter().position(|transit| transit.stamp == stamp && transit.lives(message.time));
        match (message.topic, known) {
            (0, None) => {
                transits.push(Transit { stamp, reached: vec![message.time] });
                figures.started += 1;
            }
            (0, Some(_)) => {}
            (_, None) => figures.strays += 1,
            (link, Some(at)) => {
                let transit = &mut transits[at];
                if transit.reached.len() == link as usize {
                    transit.reached.push(message.time);
                    if link == 2 {
                        let latency = message.time - transit.set_out();
                        *(if latency <= WITHIN { &mut figures.in_time } else { &mut figures.late }) += 1;
                    }
                }
                if transit.reached.len() <= link as usize {
                    figures.strays += 1;
                } else if link == 2 {
                    outputs.push(Emitted { time: message.time, transit: at });
                }
            }
        }
    }
    let now = trace.last().map_or(0, |message| message.time);
    for transit in transits.iter().filter(|transit| !transit.lives(now)) {
        if let Some(lost) = figures.lost.get_mut(transit.reached.len()) {
            *lost += 1;
        }
    }
    (transits, outputs, figures)
}

/// Begin of the age and of the reaction time, and the last latency.
fn measured(trace: &[Message]) -> (Option<i64>, Option<i64>, Option<i64>) {
    let (transits, outputs, _) = transits(trace);
    let origin = outputs.last().map(|output| transits[output.transit].set_out());
    let unanswered = |transit: &usize| outputs.iter().all(|output| output.transit < *transit);
    let oldest = (0..transits.len()).find(unanswered).map(|transit| transits[transit].set_out());
    let out = |transit: &Transit| transit.reached.get(2).map(|out| (*out, transit.set_out()));
    // Of several outputs at one time the last message counts.
    let mut latest = None;
    for n in 1..=trace.len() {
        let before = self::transits(&trace[..n - 1]).0;
        let after = self::transits(&trace[..n]).0;
        for (i, transit) in after.iter().enumerate() {
            if let Some((out, set_out)) = out(transit).filter(|_| before.get(i).and_then(out).is_none()) {
                latest = Some(out - set_out);
            }
        }
    }
    (origin, oldest, latest)
}

/// Verdicts of `now - from <= bound`, which also change between messages.
fn bounded(
    trace: &[Message],
    bound: i64,
    from: impl Fn(&[Message]) -> Option<i64>,
    without: Verdict,
) -> Vec<(i64, Verdict)> {
    let mut out: Vec<(i64, Verdict)> = Vec::new();
    let mut say = |time, verdict| {
        if out.last().is_none_or(|(_, last)| *last != verdict) {
            out.push((time, verdict));
        }
    };
    for (i, message) in trace.iter().enumerate() {
        let from = from(&trace[..=i]);
        let verdict = match from {
            None => without,
            Some(from) if message.time - from <= bound => Verdict::Satisfied,
            Some(_) => Verdict::Violated,
        };
        say(message.time, verdict);
        if let (Some(from), Some(next), Verdict::Satisfied) = (from, trace.get(i + 1), verdict)
            && from + bound < next.time
        {
            say(from + bound, Verdict::Violated);
        }
    }
    out
}

fn of_truth(truth: bool) -> Verdict {
    if truth { Verdict::Satisfied } else { Verdict::Violated }
}

/// Changes among verdicts at messages.
fn changes(trace: &[Message], at: impl Fn(&[Message]) -> Verdict) -> Vec<(i64, Verdict)> {
    let mut out: Vec<(i64, Verdict)> = Vec::new();
    for n in 1..=trace.len() {
        let verdict = at(&trace[..n]);
        if out.last().is_none_or(|(_, last)| *last != verdict) {
            out.push((trace[n - 1].time, verdict));
        }
    }
    out
}

/// Checks that a distribution is that of these durations.
fn same(found: &Distribution, expected: &[i64], what: &str) {
    let expected: Vec<u64> = expected.iter().map(|&nanos| nanos as u64).collect();
    let mean = expected.iter().sum::<u64>().checked_div(expected.len() as u64);
    let found = (found.count(), found.min(), found.mean(), found.max());
    let (min, max) = (expected.iter().min().copied(), expected.iter().max().copied());
    assert_eq!(found, (expected.len() as u64, min, mean, max), "{what} of {expected:?}");
}

/// Results of a monitor: changes of the verdict of each property, statistics, and the topics that stamps had
/// not reached in time.
type Judged = (Vec<Vec<(i64, Verdict)>>, ChainFigures, u64, Vec<(i64, i64, Option<u32>)>);

fn run(program: &Arc<Program>, trace: &[Message], cuts: &[usize]) -> Judged {
    let mut monitor = Monitor::new(Arc::clone(program));
    let mut verdicts = vec![Vec::new(); program.properties().len()];
    let mut missing = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([trace.len()]) {
        for part in trace[start..end.max(start)].chunks(Block::CAPACITY) {
            let mut block = Block::new(program.layout());
            for message in part {
                let topic = TopicId(message.topic);
                let row = block.push(topic, Timestamp::from_nanos(message.time));
                for field in &program.projections()[topic.index()].fields {
                    match (field.slot, message.stamp) {
                        (Slot::Int(column), Some(stamp)) => block.set_int(column, row, stamp),
                        (slot, _) => block.set_invalid(slot, row),
                    }
                }
            }
            monitor.step(&block);
            for report in monitor.reports() {
                verdicts[report.property as usize].push((report.time.as_nanos(), report.verdict));
                if report.property == 0
                    && let (Verdict::Violated, Some(about)) = (report.verdict, report.about)
                {
                    let [rondel_event::Value::Int(stamp)] = monitor.key(report)[..] else { panic!() };
                    missing.push((about.as_nanos(), stamp, monitor.missing(report).map(|topic| topic.0)));
                }
            }
        }
        start = end.max(start);
        monitor = Monitor::restore(Arc::clone(program), &monitor.snapshot()).unwrap();
    }
    let status = monitor.chains().next().unwrap();
    assert_eq!((status.name, &status.topics[..]), ("way", &[TopicId(0), TopicId(1), TopicId(2)][..]));
    let (figures, under_way) = (status.figures.clone(), status.under_way);
    missing.sort_unstable();
    (verdicts, figures, under_way, missing)
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let stamp = prop_oneof![9 => (0..6_i64).prop_map(Some), 1 => Just(None)];
    let message = (prop_oneof![3 => 0..4_i64, 2 => 10..50_i64], 0..4_u32, stamp);
    prop::collection::vec(message, 1..70).prop_map(|messages| {
        let mut time = 0;
        let message = |(pause, topic, stamp)| {
            time += pause;
            Message { time, topic, stamp }
        };
        messages.into_iter().map(message).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn chains_are_measured_as_defined(trace in messages(), cuts in prop::collection::vec(0..70_usize, 0..4)) {
        let outcome = rondel_spec::parse(TEXT);
        let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
        let chain = &spec.chains[0];
        prop_assert_eq!((chain.within, chain.wait), (Some(WITHIN as u64), Some(WAIT as u64)));
        let program = Arc::new(Program::compile(&spec).unwrap());
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(trace.len())).collect();
        cuts.sort_unstable();
        let (verdicts, figures, under_way, missing) = run(&program, &trace, &cuts);
        let names: Vec<&str> = program.properties().iter().map(String::as_str).collect();
        prop_assert_eq!(names, ["way", "way_age", "way_reaction", "young", "quick", "waits"]);

        let (transits, outputs, counts) = transits(&trace);
        prop_assert_eq!(&verdicts[1], &bounded(&trace, AGE, |t| measured(t).0, Verdict::Inconclusive));
        prop_assert_eq!(&verdicts[2], &bounded(&trace, REACTION, |t| measured(t).1, Verdict::Satisfied));
        let on = |trace: &[Message]| trace.last().is_some_and(|message| message.topic == 3);
        let young = changes(&trace, |t| match measured(t).0 {
            _ if !on(t) => Verdict::Violated,
            None => Verdict::Inconclusive,
            Some(from) => of_truth(t[t.len() - 1].time - from < 70),
        });
        prop_assert_eq!(&verdicts[3], &young);
        let quick = changes(&trace, |t| match measured(t).2 {
            _ if !on(t) => Verdict::Violated,
            None => Verdict::Inconclusive,
            Some(latency) => of_truth(latency <= 30),
        });
        prop_assert_eq!(&verdicts[4], &quick);
        let waits: Vec<(i64, Verdict)> = bounded(&trace, 20, |t| measured(t).1, Verdict::Satisfied)
            .into_iter()
            .map(|(time, verdict)| (time, of_truth(verdict == Verdict::Violated)))
            .collect();
        prop_assert_eq!(&verdicts[5], &waits);

        let latencies: Vec<i64> =
            transits.iter().filter_map(|transit| Some(transit.reached.get(2)? - transit.set_out())).collect();
        same(&figures.latency, &latencies, "latency");
        let ages: Vec<i64> =
            outputs.windows(2).map(|pair| pair[1].time - transits[pair[0].transit].set_out()).collect();
        same(&figures.age, &ages, "age");
        let reactions: Vec<i64> = transits
            .iter()
            .enumerate()
            .filter_map(|(i, transit)| {
                let answer = outputs.iter().find(|output| output.transit >= i)?;
                transit.lives(answer.time).then(|| answer.time - transit.set_out())
            })
            .collect();
        same(&figures.reaction, &reactions, "reaction");
        let counted = ChainFigures {
            latency: figures.latency.clone(),
            age: figures.age.clone(),
            reaction: figures.reaction.clone(),
            ..counts
        };
        prop_assert_eq!(&figures, &counted);
        let now = trace.last().map_or(0, |message| message.time);
        let open = transits.iter().filter(|transit| transit.lives(now) && transit.reached.len() < 3).count();
        prop_assert_eq!(under_way, open as u64);

        for (about, stamp, topic) in missing {
            // A stamp that is sent again while it is known keeps its transit.
            let expected = transits.iter().find(|transit| transit.stamp == stamp && transit.set_out() == about).and_then(|transit| {
                let reached = transit.reached.iter().filter(|time| **time <= about + WITHIN).count();
                (reached < 3).then_some(reached as u32)
            });
            prop_assert_eq!(topic, expected, "{} of {}", stamp, about);
        }
        // Block sizes make no difference.
        let whole = run(&program, &trace, &[]);
        prop_assert_eq!(whole, run(&program, &trace, &cuts));
    }
}
