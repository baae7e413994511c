//! Chains against their definitions, over the whole trace.

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

/// A message: when, on which of the four topics, and with which stamp.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: i64,
    topic: u32,
    stamp: Option<i64>,
}

/// A stamp that set out, and when it reached each topic.
#[derive(Clone, Debug)]
struct Way {
    stamp: i64,
    reached: Vec<i64>,
}

impl Way {
    fn set_out(&self) -> i64 {
        self.reached[0]
    }

    fn lives(&self, time: i64) -> bool {
        time - self.set_out() <= WAIT
    }
}

/// An output: when, and the way that it stems from.
struct Emitted {
    time: i64,
    way: usize,
}

/// The ways of all stamps and the outputs, after so many messages, with the figures that are counts.
fn ways(trace: &[Message]) -> (Vec<Way>, Vec<Emitted>, ChainFigures) {
    let (mut ways, mut outputs) = (Vec::<Way>::new(), Vec::new());
    let mut figures = ChainFigures { lost: vec![0; 3], ..ChainFigures::default() };
    for message in trace.iter().filter(|message| message.topic < 3) {
        let Some(stamp) = message.stamp else {
            figures.unstamped += 1;
            continue;
        };
        let known = ways.iter().position(|way| way.stamp == stamp && way.lives(message.time));
        match (message.topic, known) {
            (0, None) => {
                ways.push(Way { stamp, reached: vec![message.time] });
                figures.started += 1;
            }
            (0, Some(_)) => {}
            (_, None) => figures.strays += 1,
            (link, Some(at)) => {
                let way = &mut ways[at];
                if way.reached.len() == link as usize {
                    way.reached.push(message.time);
                    if link == 2 {
                        let latency = message.time - way.set_out();
                        *(if latency <= WITHIN { &mut figures.in_time } else { &mut figures.late }) += 1;
                    }
                }
                if way.reached.len() <= link as usize {
                    figures.strays += 1;
                } else if link == 2 {
                    outputs.push(Emitted { time: message.time, way: at });
                }
            }
        }
    }
    let now = trace.last().map_or(0, |message| message.time);
    for way in ways.iter().filter(|way| !way.lives(now)) {
        if let Some(lost) = figures.lost.get_mut(way.reached.len()) {
            *lost += 1;
        }
    }
    (ways, outputs, figures)
}

/// Age and reaction, as the times that they began with, and the last latency.
fn measured(trace: &[Message]) -> (Option<i64>, Option<i64>, Option<i64>) {
    let (ways, outputs, _) = ways(trace);
    let origin = outputs.last().map(|output| ways[output.way].set_out());
    let unanswered = |way: &usize| outputs.iter().all(|output| output.way < *way);
    let oldest = (0..ways.len()).find(unanswered).map(|way| ways[way].set_out());
    let out = |way: &Way| way.reached.get(2).map(|out| (*out, way.set_out()));
    // Of several at one time the last message counts.
    let mut latest = None;
    for n in 1..=trace.len() {
        let before = self::ways(&trace[..n - 1]).0;
        let after = self::ways(&trace[..n]).0;
        for (i, way) in after.iter().enumerate() {
            if let Some((out, set_out)) = out(way).filter(|_| before.get(i).and_then(out).is_none()) {
                latest = Some(out - set_out);
            }
        }
    }
    (origin, oldest, latest)
}

/// The verdicts of `now - from <= bound`, which change between messages by themselves.
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

/// The changes among verdicts at messages.
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

/// What a monitor says: for each property the changes of its verdict, the figures, and the topics that
/// stamps had not reached in time.
type Said = (Vec<Vec<(i64, Verdict)>>, ChainFigures, u64, Vec<(i64, i64, Option<u32>)>);

fn run(program: &Arc<Program>, trace: &[Message], cuts: &[usize]) -> Said {
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

        let (ways, outputs, counts) = ways(&trace);
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
            ways.iter().filter_map(|way| Some(way.reached.get(2)? - way.set_out())).collect();
        same(&figures.latency, &latencies, "latency");
        let ages: Vec<i64> =
            outputs.windows(2).map(|pair| pair[1].time - ways[pair[0].way].set_out()).collect();
        same(&figures.age, &ages, "age");
        let reactions: Vec<i64> = ways
            .iter()
            .enumerate()
            .filter_map(|(i, way)| {
                let answer = outputs.iter().find(|output| output.way >= i)?;
                way.lives(answer.time).then(|| answer.time - way.set_out())
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
        let open = ways.iter().filter(|way| way.lives(now) && way.reached.len() < 3).count();
        prop_assert_eq!(under_way, open as u64);

        for (about, stamp, topic) in missing {
            // A stamp that is sent again while it is known has its way already.
            let expected = ways.iter().find(|way| way.stamp == stamp && way.set_out() == about).and_then(|way| {
                let reached = way.reached.iter().filter(|time| **time <= about + WITHIN).count();
                (reached < 3).then_some(reached as u32)
            });
            prop_assert_eq!(topic, expected, "{} of {}", stamp, about);
        }
        // However the trace is cut, it is the same.
        let whole = run(&program, &trace, &[]);
        prop_assert_eq!(whole, run(&program, &trace, &cuts));
    }
}
