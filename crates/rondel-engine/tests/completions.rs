//! Verdicts after a blind span stay inconclusive no longer than necessary, compared with all completions.
//!
//! A completion of a trace adds messages to the blind span. A verdict is certain at a time if all completions
//! have it. The test enumerates completions of random traces for random formulas of each operator, evaluates
//! each with a monitor that receives everything, and compares with a monitor that gets a notice of the span:
//! its verdict is never certain where two completions differ, and is certain within one time unit once all
//! completions agree.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-engine --test completions` runs one seed alone, `RONDEL_CASES`
//! multiplies them; `RONDEL_LATE=age` shows where verdicts on an operator are certain later than the
//! completions.

#![allow(clippy::unwrap_used, clippy::panic)]

mod completions {
    pub(crate) mod formulas;
}

use std::collections::BTreeMap;
use std::sync::Arc;

use completions::formulas::{Model, OPERATORS, Operator, property};
use rondel_engine::{Monitor, Program, SeenAgain};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_testkit::Random;

/// The time unit of traces, in nanoseconds.
const UNIT: i64 = 10_000_000;
/// Verdicts are compared a quarter of a unit after multiples of half a unit, where nothing changes.
const HALF: i64 = UNIT / 2;
const QUARTER: i64 = UNIT / 4;
/// Length of a trace, in units.
const LENGTH: i64 = 40;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    time: i64,
    topic: usize,
    x: i64,
    k: i64,
}

/// Time in units, topic and values: `6.5 a 3 true`.
impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Message { time, topic, x, k } = self;
        write!(f, "{} {} {x} {}", *time as f64 / UNIT as f64, ["a", "b"][*topic], *k == 1)
    }
}

/// Time and form of the notice of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Notice {
    /// At its beginning, with its end.
    Ahead,
    /// At its beginning, and again at its end.
    Open,
    /// At its end, before later messages are evaluated: the monitor was paused.
    Paused,
    /// At its end, after messages within it were evaluated.
    Late,
}

/// A trace with a blind span `from..until` on some topics.
#[derive(Clone, Debug)]
struct Trace {
    messages: Vec<Message>,
    from: i64,
    until: i64,
    missed: Vec<usize>,
    notice: Notice,
}

fn trace(numbers: &mut Random) -> Trace {
    let from = (6 + numbers.int(8)) * UNIT;
    let until = from + (1 + numbers.int(4)) * UNIT;
    let missed = match numbers.int(6) {
        0 => vec![0, 1],
        1 => vec![1],
        _ => vec![0],
    };
    let notice = numbers.pick(&[Notice::Ahead, Notice::Open, Notice::Paused, Notice::Late]);
    // A topic may be silent from the span on.
    let paces = [numbers.pick(&[1, 2, 4]), numbers.pick(&[1, 3, 6])];
    let silent = [numbers.one_in(2), numbers.one_in(4)];
    let mut messages = Vec::new();
    for unit in 0..LENGTH {
        for topic in 0..2 {
            let time = unit * UNIT;
            let is_missed = missed.contains(&topic) && (from..until).contains(&time);
            let is_silent = silent[topic] && time >= from;
            if !is_missed && !is_silent && numbers.one_in(paces[topic]) {
                messages.push(Message { time, topic, x: numbers.int(5), k: numbers.int(2) });
            }
        }
    }
    if !messages.iter().any(|message| message.topic == 0 && message.time < from) && !numbers.one_in(4) {
        messages.insert(0, Message { time: 0, topic: 0, x: numbers.int(5), k: numbers.int(2) });
    }
    Trace { messages, from, until, missed, notice }
}

/// Messages that completions of a span may add on one topic.
fn additions(trace: &Trace, topic: usize, few: bool) -> Vec<Vec<Message>> {
    let Trace { from, until, .. } = *trace;
    let (low, high) = (-99, 99);
    let all_values = [(low, 0), (high, 1), (high, 0), (low, 1)];
    let values = &all_values[..if few { 2 } else { 4 }];
    let message = |time: i64, (x, k): (i64, i64)| Message { time, topic, x, k };
    let mut all = vec![Vec::new()];
    for time in [from, until - 1] {
        let added: Vec<_> = (all.iter())
            .flat_map(|before| {
                values.iter().map(move |value| [&before[..], &[message(time, *value)]].concat())
            })
            .collect();
        all.extend(added);
    }
    // As many as any count, or as the longest window in steps.
    let many =
        |first: i64, value: &dyn Fn(i64) -> i64| (0..9).map(|i| message(first + i, (value(i), 1))).collect();
    all.extend([from, until - 9].map(|first| many(first, &|_| 2)));
    all.extend([many(until - 9, &|_| low), many(until - 9, &|_| high), many(until - 9, &|i| 10 + i)]);
    // Values that are true at single times only, and change there.
    for time in halves(from).take_while(|time| *time < until) {
        all.extend(values.iter().map(|value| vec![message(time, *value)]));
        let turn = |before, after| vec![message(time - 1, before), message(time, after)];
        all.extend([turn((low, 0), (high, 1)), turn((high, 1), (low, 0))]);
    }
    all
}

/// All messages of each completion, in order.
fn completions(trace: &Trace) -> Vec<Vec<Message>> {
    let few = trace.missed.len() > 1;
    let mut all = vec![trace.messages.clone()];
    for &topic in &trace.missed {
        let additions = additions(trace, topic, few);
        all = (all.iter())
            .flat_map(|messages| additions.iter().map(move |added| [&messages[..], &added[..]].concat()))
            .collect();
    }
    all.iter_mut().for_each(|messages| messages.sort());
    all
}

/// A monitor, and the latest verdict of its property.
struct Run {
    monitor: Monitor,
    program: Arc<Program>,
    block: Block,
    verdict: Verdict,
}

impl Run {
    fn new(program: &Arc<Program>) -> Run {
        Run {
            monitor: Monitor::new(Arc::clone(program)),
            block: Block::new(program.layout()),
            program: Arc::clone(program),
            verdict: Verdict::Inconclusive,
        }
    }

    fn take(&mut self) {
        if let Some(report) = self.monitor.reports().iter().rev().find(|report| report.property == 0) {
            self.verdict = report.verdict;
        }
    }

    fn message(&mut self, message: &Message) {
        self.block.clear();
        let row = self.block.push(TopicId(message.topic as u32), Timestamp::from_nanos(message.time));
        for field in &self.program.projections()[message.topic].fields {
            match field.slot {
                Slot::Int(column) if field.path.to_string() == "x" => {
                    self.block.set_int(column, row, message.x);
                }
                Slot::Int(column) => self.block.set_int(column, row, message.k),
                Slot::Bool(column) => self.block.set_bool(column, row, message.k == 1),
                other => panic!("{other:?}"),
            }
        }
        self.monitor.step(&self.block);
        self.take();
    }

    /// The verdict at a time, once no earlier one can change.
    fn verdict_at(&mut self, time: i64) -> Verdict {
        self.monitor.advance(Timestamp::from_nanos(time + 1));
        self.take();
        self.verdict
    }
}

fn halves(from: i64) -> impl Iterator<Item = i64> {
    (from / HALF..LENGTH * 2).map(|halves| halves * HALF + QUARTER)
}

/// Times at which verdicts are compared: in dense time between the multiples of half a unit, in steps and
/// points at the received messages.
fn probes(trace: &Trace, model: Model) -> Vec<i64> {
    if model == Model::Dense {
        return halves(trace.from).collect();
    }
    let mut times: Vec<i64> = trace.messages.iter().map(|message| message.time).collect();
    times.retain(|time| *time >= trace.from);
    times.dedup();
    times
}

/// The verdicts of a completion: in dense time at each time and right after it, otherwise at the last
/// received message of each time.
fn whole(program: &Arc<Program>, messages: &[Message], trace: &Trace, model: Model) -> Vec<[Verdict; 2]> {
    let mut run = Run::new(program);
    let mut messages = messages.iter().peekable();
    let is_missed = |message: &Message| {
        trace.missed.contains(&message.topic) && (trace.from..trace.until).contains(&message.time)
    };
    let verdict = |probe: i64| {
        let (mut at, mut seen) = (None, Verdict::Inconclusive);
        while let Some(message) = messages.next_if(|message| message.time <= probe) {
            run.message(message);
            at = Some(run.verdict).filter(|_| message.time == probe);
            if !is_missed(message) {
                seen = run.verdict;
            }
        }
        if model != Model::Dense {
            return [seen; 2];
        }
        let after = run.verdict_at(probe);
        [at.unwrap_or(after), after]
    };
    probes(trace, model).into_iter().map(verdict).collect()
}

/// The verdicts of a monitor with a notice of the span; none before the notice.
fn blind(program: &Arc<Program>, trace: &Trace, model: Model, resumes: bool) -> Vec<Option<Verdict>> {
    let Trace { messages, from, until, missed, notice } = trace;
    let (mut run, mut is_notified, mut is_open) = (Run::new(program), false, false);
    let at = |time: i64| Timestamp::from_nanos(time);
    let topics: Vec<TopicId> = missed.iter().map(|topic| TopicId(*topic as u32)).collect();
    let mut messages = messages.iter().peekable();
    let mut all = Vec::new();
    for probe in probes(trace, model) {
        if *notice == Notice::Paused && probe < *until {
            // Messages of the span wait until it ends.
            while let Some(message) = messages.next_if(|message| message.time < *from) {
                run.message(message);
            }
            all.push(None);
            continue;
        }
        loop {
            let next = messages.peek().map_or(i64::MAX, |message| message.time);
            let notified_at = match notice {
                Notice::Ahead | Notice::Open => *from,
                Notice::Paused => *from,
                Notice::Late => *until,
            };
            if !is_notified && next >= notified_at && probe >= notified_at {
                is_notified = true;
                let again = if *notice == Notice::Open { SeenAgain::Open } else { SeenAgain::At(at(*until)) };
                is_open = *notice == Notice::Open;
                run.monitor.miss(&topics, at(*from), again);
                run.take();
            }
            if is_open && next >= *until && probe >= *until {
                is_open = false;
                run.monitor.see(&topics, SeenAgain::At(at(*until)));
                run.take();
            }
            match messages.next_if(|message| message.time <= probe) {
                Some(message) => run.message(message),
                None => break,
            }
        }
        if resumes {
            run.monitor = Monitor::restore(Arc::clone(program), &run.monitor.snapshot()).unwrap();
        }
        let verdict = if model == Model::Dense { run.verdict_at(probe) } else { run.verdict };
        all.push(is_notified.then_some(verdict));
    }
    all
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cases: u64,
    compared: u64,
    certain: u64,
    late: u64,
}

fn case(
    numbers: &mut Random,
    operator: &Operator,
    table: &mut BTreeMap<(Model, &'static str, Notice), Counts>,
) -> Result<(), String> {
    let Operator { model, name, .. } = *operator;
    let property = property(numbers, operator);
    let text = format!("topic a {{ x: int, k: bool }} topic b {{ x: int, k: bool }}\n{property}");
    let spec = rondel_spec::parse(&text).spec.unwrap_or_else(|| panic!("{text}"));
    let program = Arc::new(Program::compile(&spec).unwrap());
    let trace = trace(numbers);
    let counts = table.entry((model, name, trace.notice)).or_default();
    let found = blind(&program, &trace, model, false);
    let resumed = blind(&program, &trace, model, true);
    if found != resumed {
        return Err(format!("{text}\n{trace:?}\nfound   {found:?}\nresumed {resumed:?}"));
    }
    let all: Vec<Vec<[Verdict; 2]>> =
        completions(&trace).iter().map(|messages| whole(&program, messages, &trace, model)).collect();
    counts.cases += 1;
    // The time since which all completions agree on a verdict, and the number of comparisons.
    let mut since: Option<(i64, usize, Verdict)> = None;
    for (i, probe) in probes(&trace, model).into_iter().enumerate() {
        let first = all[0][i][1];
        let agree = all.iter().all(|verdicts| verdicts[i] == [first; 2]) && first != Verdict::Inconclusive;
        since = match since {
            Some((time, place, verdict)) if agree && verdict == first => Some((time, place, verdict)),
            _ => agree.then_some((probe, i, first)),
        };
        let Some(found) = found[i] else { continue };
        counts.compared += 1;
        // The verdict right after it, as messages at that very time are not evaluated yet.
        let is_other = |verdict: Verdict| match verdict {
            // A value that never came cannot turn; the definition of `falling` leaves that unknown.
            Verdict::Inconclusive => name != "prev",
            verdict => verdict != found,
        };
        let other = all.iter().position(|verdicts| is_other(verdicts[i][1]));
        if let Some(other) = other.filter(|_| found != Verdict::Inconclusive) {
            return Err(format!(
                "{text}\n{trace:?}\nat {probe} it is {found}, but {} with {:?}",
                all[other][i][1],
                completions(&trace)[other]
            ));
        }
        let Some((time, place, verdict)) = since else { continue };
        counts.certain += 1;
        let is_later = if model == Model::Dense { probe >= time + UNIT } else { i > place };
        if found != verdict && is_later {
            counts.late += 1;
            if std::env::var("RONDEL_LATE").is_ok_and(|of| of == format!("{model:?}: {name}")) {
                return Err(format!(
                    "{text}\n{trace:?}\nat {probe} it is {found}, but {verdict} since {time}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn verdicts_are_certain_when_all_completions_agree() {
    let mut seeds = rondel_testkit::seeds("completions", 40);
    let is_all = !rondel_testkit::is_replay();
    let mut table: BTreeMap<(Model, &str, Notice), Counts> = BTreeMap::new();
    let mut failures = Vec::new();
    while let Some(seed) = seeds.next() {
        for (place, operator) in (0..).zip(OPERATORS) {
            if let Err(why) = case(&mut Random::new(seed * 1000 + place), operator, &mut table) {
                seeds.keep(seed);
                failures.push(format!("{}: {why}\nagain: RONDEL_SEED={seed}\n", operator.name));
            }
        }
    }
    for ((model, operator, notice), Counts { cases, compared, certain, late }) in &table {
        println!(
            "{model:?} {operator:14} {notice:?}: {cases:5} cases {compared:7} compared {certain:7} certain {late:6} late"
        );
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures[..failures.len().min(6)].join("\n")
    );
    for Operator { model, name, late: allowed } in OPERATORS {
        let of = |is_late: bool| {
            let its = table.iter().filter(|((own, of, notice), _)| {
                (own, of) == (model, name) && (*notice == Notice::Late) == is_late
            });
            its.fold(Counts::default(), |all, (_, counts)| Counts {
                cases: all.cases + counts.cases,
                compared: all.compared + counts.compared,
                certain: all.certain + counts.certain,
                late: all.late + counts.late,
            })
        };
        for (counts, allowed) in [of(false), of(true)].iter().zip(allowed) {
            let Counts { compared, certain, late, .. } = counts;
            assert!(
                !is_all || *certain > compared / 8,
                "{model:?} {name}: {certain} of {compared} verdicts are certain"
            );
            assert!(
                !is_all || *late <= certain * allowed / 1000,
                "{model:?} {name}: {late} of {certain} verdicts are late"
            );
        }
    }
}
