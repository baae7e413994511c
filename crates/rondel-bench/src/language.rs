//! The cost of the whole language, from files: properties by key, quantifiers, dense time, robustness, a thousand
//! properties.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;

use crate::failure::{Result, io_error};
use crate::report::Mark;
use crate::table::{Table, median};
use crate::timescales::{Property, Random};
use crate::traces::Folder;
use crate::turns::{self, Programs, Turns};

/// A workload: a specification and a trace.
pub struct Work {
    /// The name.
    pub name: &'static str,
    /// The arguments of `rondel check` before the trace, without the specification.
    pub options: &'static [&'static str],
    /// The text of the specification.
    pub specification: String,
    /// Further specifications for the same trace, by turns, each with its name.
    beside: Vec<(&'static str, String)>,
    /// The JSON lines.
    pub trace: Vec<u8>,
    /// The number of lines.
    pub events: u64,
    /// The number of evaluations of a property for each event.
    copies: u64,
    mark: Option<Limit>,
}

impl Work {
    /// Returns a workload of one specification whose violations are reported.
    fn new(name: &'static str, specification: &str, trace: Vec<u8>, events: u64, mark: Limit) -> Work {
        Work {
            name,
            options: &["--emit=violations"],
            specification: specification.to_owned(),
            beside: Vec::new(),
            trace,
            events,
            copies: 1,
            mark: Some(mark),
        }
    }
}

/// The limit that a workload must keep.
#[derive(Clone, Copy)]
enum Limit {
    /// CPU nanoseconds per event.
    Ns(f64),
    /// Events per CPU second.
    Events(f64),
    /// Evaluations of single properties per CPU second.
    Steps(f64),
    /// The ratio to the time per event of the workload before.
    Times(f64),
}

/// The cost of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The name of the workload.
    pub name: String,
    /// The number of events in the trace.
    pub events: u64,
    /// CPU seconds of the process: the median, or the least where several specifications took turns.
    pub cpu_seconds: f64,
    /// CPU nanoseconds per event.
    pub ns: f64,
    /// Evaluations of single properties per CPU second, for workloads with copies.
    pub steps_per_second: Option<f64>,
    /// The largest resident memory of all children so far, in bytes.
    pub peak_bytes: u64,
    /// Every run.
    pub turns: Turns,
}

/// The cost of dense time beside steps, summed over properties.
#[derive(Clone, Debug, Serialize)]
pub struct Dense {
    /// The largest number of equal lines for which one stands; 1 for a trace with every line.
    pub condensation: u64,
    /// The number of lines in all traces.
    pub events: u64,
    /// CPU seconds over all traces, medians.
    pub cpu_seconds: f64,
    /// Every run, summed over all traces turn by turn.
    pub turns: Turns,
}

impl Dense {
    /// Names the traces.
    fn name(&self) -> String {
        match self.condensation {
            1 => "every line, steps".to_owned(),
            lines => format!("a line when something changes or after {lines} equal ones, dense"),
        }
    }
}

/// Returns a trace with a key: `{"topic": "grant", "time": 0.001, "id": 7}`.
fn requests(events: u64, ids: u64, step_us: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut random = Random::new(7);
    for i in 0..events {
        let (us, id) = (i * step_us, random.within(1, ids));
        // Every id is granted before it is requested: the first events grant all ids in turn.
        let (topic, id) =
            if i < ids { ("grant", i + 1) } else { (["request", "grant"][random.within(0, 1) as usize], id) };
        // Writing to memory does not fail.
        let _ = writeln!(
            out,
            "{{\"topic\": \"{topic}\", \"time\": {}.{:06}, \"id\": {id}}}",
            us / 1_000_000,
            us % 1_000_000
        );
    }
    out
}

/// Returns a trace of flights whose dates increase, and of ends of tracks: `flight` and `completed`.
fn flights(events: u64, keys: u64, completed: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut random = Random::new(11);
    for i in 0..events {
        let key = random.within(0, keys - 1);
        let sign = format!("{}{:04}", ["DLH", "AAL", "UAE", "QFA"][(key % 4) as usize], key);
        let _ = if completed && random.within(0, 99) == 0 {
            writeln!(out, "{{\"topic\": \"completed\", \"time\": {i}, \"call_sign\": \"{sign}\"}}")
        } else {
            writeln!(
                out,
                "{{\"topic\": \"flight\", \"time\": {i}, \"call_sign\": \"{sign}\", \"date\": {}}}",
                10 * i
            )
        };
    }
    out
}

/// Returns `count` copies of "dates increase for each flight", each with its own constant or all the same.
fn sequence_order(count: u64, same: bool) -> String {
    let mut text =
        "topic flight { call_sign: string, date: int }\ntopic completed { call_sign: string }\n".to_owned();
    for i in 0..count {
        let slack = if same { 0 } else { i };
        let _ = writeln!(
            text,
            "property order{i} for each cs in (flight.call_sign, completed.call_sign) until on(completed) =\n    \
             flight.date + {slack} > prev(flight.date)"
        );
    }
    text
}

/// Returns random properties over 50 topics: each over two or three fields, most with a bounded operator of the past.
fn random_properties(count: u64) -> String {
    let mut random = Random::new(3);
    let mut text = String::new();
    for topic in 0..50 {
        let _ = writeln!(text, "topic t{topic} {{ b: bool, x: int }}");
    }
    for i in 0..count {
        let mut atom = || {
            let topic = random.within(0, 49);
            match random.within(0, 2) {
                0 => format!("t{topic}.b"),
                1 => format!("t{topic}.x > {}", random.within(0, 9)),
                _ => format!("changed(t{topic}.x)"),
            }
        };
        let (p, q, r) = (atom(), atom(), atom());
        let (a, b) = (random.within(0, 20), random.within(21, 500));
        let formula = match random.within(0, 4) {
            0 => format!("({p}) -> once[0, {b}] ({q})"),
            1 => format!("({p}) and ({q}) -> not previously ({r})"),
            2 => format!("({p}) -> (({q}) since[{a}, {b}] ({r}))"),
            3 => format!("historically[{a}, {b}] (({p}) or ({q}))"),
            _ => format!("once ({p}) -> once[{a}, {b}] (({q}) and ({r}))"),
        };
        let _ = writeln!(text, "property p{i} = {formula}");
    }
    text
}

fn random_events(events: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut random = Random::new(5);
    for i in 0..events {
        let (topic, b, x) = (random.within(0, 49), random.within(0, 1) == 1, random.within(0, 10));
        let _ = writeln!(out, "{{\"topic\": \"t{topic}\", \"time\": {i}, \"b\": {b}, \"x\": {x}}}");
    }
    out
}

const GRANTED: &str = "topic request { id: int }\ntopic grant { id: int }\n\
    property granted for each id in (request.id, grant.id) = on(request) -> once[0, 10 s] on(grant)\n";

/// The same for all ids at once.
const GRANTED_TO_ALL: &str = "topic request { id: int }\ntopic grant { id: int }\n\
    property granted = forall x. request{id: x} -> once[0, 10 s] grant{id: x}\n";

const INCREASING: &str = "topic flight { call_sign: string, date: int }\n\
    property order for each cs in flight.call_sign = flight.date > prev(flight.date)\n";

const ROBUST: &str = "topic t { q: bool, p: bool, r: bool }\n@robust\n\
    property absent = historically (t.r and not t.q and once t.q) -> ((not t.p) since[3, 10] t.q)\n";

/// The workloads that are measured with several workers.
pub const SPREAD: [usize; 3] = [0, 2, 7];

/// Returns a workload. They are made one by one, because each trace is large.
///
/// # Errors
/// When a trace cannot be written.
pub fn work(number: usize, length: u64) -> Result<Option<Work>> {
    let with = Work::new;
    let few = (length / 5).max(1);
    let ids = length.max(2) / 2;
    Ok(Some(match number {
        0 => {
            let trace = requests(length, 3000.min(ids), 1000);
            with("request only after grant within 10 s, 3,000 ids", GRANTED, trace, length, Limit::Ns(100.0))
        }
        1 => with(
            "request only after grant within 10 s, half as many ids as events",
            GRANTED,
            requests(2 * length, length, 1),
            2 * length,
            Limit::Times(3.0),
        ),
        2 => {
            let trace = flights(length, 3000.min(ids), false);
            with("increasing dates, 3,000 call signs", INCREASING, trace, length, Limit::Ns(80.0))
        }
        3 => with(
            "increasing dates, half as many call signs as events",
            INCREASING,
            flights(2 * length, length, false),
            2 * length,
            Limit::Times(3.0),
        ),
        4 => {
            let (copies, trace) = (2000, flights(few, 3215, true));
            Work {
                copies,
                ..with(
                    "sfdps-seq-order, 2,000 copies with constants of their own",
                    &sequence_order(copies, false),
                    trace,
                    few,
                    Limit::Steps(1e8),
                )
            }
        }
        5 => {
            let (copies, trace) = (2000, flights(few, 3215, true));
            let name = "sfdps-seq-order, 2,000 equal copies, merged";
            Work {
                copies,
                mark: None,
                ..with(name, &sequence_order(copies, true), trace, few, Limit::Steps(1e8))
            }
        }
        6 => {
            let mut trace = Vec::new();
            if let Some(property) = Property::by_name("AbsentBQR10") {
                property.write_trace(length, 1, &mut trace).map_err(io_error("trace"))?;
            }
            with("robustness of AbsentBQR10", ROBUST, trace, length, Limit::Ns(60.0))
        }
        7 => {
            let (text, trace) = (random_properties(1000), random_events(length));
            with("1,000 random properties over 50 topics", &text, trace, length, Limit::Events(1e6))
        }
        8 => {
            let trace = requests(length, 3000.min(ids), 1000);
            let relations = GRANTED_TO_ALL.replace("property", "@plan(relations) property");
            let beside = vec![
                ("the same with `forall`, by value", GRANTED_TO_ALL.to_owned()),
                ("the same with `forall`, by relations", relations),
            ];
            let name = "request only after grant within 10 s, 3,000 ids, by turns: `for each`";
            Work { beside, mark: None, ..with(name, GRANTED, trace, length, Limit::Ns(100.0)) }
        }
        _ => return Ok(None),
    }))
}

/// Measures all workloads, each `repeat` times.
///
/// # Errors
/// When `rondel` fails, or has not checked all events.
pub fn measure(programs: &Programs, length: u64, repeat: usize) -> Result<(Vec<Cost>, Vec<Mark>)> {
    let folder = Folder::new("language")?;
    let (mut costs, mut marks): (Vec<Cost>, Vec<Mark>) = (Vec::new(), Vec::new());
    let mut number = 0;
    while let Some(work) = work(number, length)? {
        number += 1;
        let trace = folder.write("work.jsonl", &work.trace)?;
        let beside = work.beside.iter().map(|(name, text)| (*name, text));
        let all: Vec<_> = std::iter::once((work.name, &work.specification)).chain(beside).collect();
        let mut turns = vec![Turns::default(); all.len()];
        for _ in 0..repeat.max(1) {
            for ((_, text), turns) in all.iter().zip(&mut turns) {
                let specification = folder.write("work.rondel", text.as_bytes())?;
                let mut arguments: Vec<String> =
                    work.options.iter().map(|&option| option.to_owned()).collect();
                arguments.push(specification.display().to_string());
                turns.check(programs, &arguments, &trace, work.events)?;
            }
        }
        folder.remove(&trace);
        if let [_, _, ..] = all[..] {
            for ((name, _), turns) in all.iter().zip(turns) {
                let least = turns.cpu_seconds().into_iter().fold(f64::INFINITY, f64::min);
                costs.push(cost(name, &work, least, turns)?);
            }
            continue;
        }
        let turns = turns.swap_remove(0);
        let cpu_seconds = median(&turns.cpu_seconds());
        let ns = cpu_seconds * 1e9 / work.events as f64;
        let steps = work.events as f64 * work.copies as f64 / cpu_seconds;
        marks.extend(work.mark.map(|mark| match mark {
            Limit::Ns(limit) => Mark::at_most(work.name, ns, limit, "ns"),
            Limit::Events(limit) => Mark::at_least(work.name, 1e9 / ns, limit, "events/s"),
            Limit::Steps(limit) => Mark::at_least(work.name, steps, limit, "steps/s"),
            Limit::Times(limit) => {
                let before = costs.last().map_or(f64::NAN, |cost| cost.ns);
                Mark::at_most(format!("{}: times the few", work.name), ns / before, limit, "")
            }
        }));
        costs.push(cost(work.name, &work, cpu_seconds, turns)?);
    }
    Ok((costs, marks))
}

/// Returns the cost of a workload, after showing it on standard error.
fn cost(name: &str, work: &Work, cpu_seconds: f64, turns: Turns) -> Result<Cost> {
    let ns = cpu_seconds * 1e9 / work.events as f64;
    crate::say(&format!("{name}: {ns:.1} ns per event"));
    Ok(Cost {
        name: name.to_owned(),
        events: work.events,
        cpu_seconds,
        ns,
        steps_per_second: (work.copies > 1).then(|| work.events as f64 * work.copies as f64 / cpu_seconds),
        peak_bytes: crate::child::peak_of_children()?,
        turns,
    })
}

/// Measures the properties of the Timescales benchmark in steps on the whole traces, and in dense time on
/// condensed ones.
///
/// # Errors
/// When `rondel` fails, or has not checked all events.
pub fn measure_dense(
    programs: &Programs,
    properties: &[Property],
    length: u64,
    repeat: usize,
) -> Result<(Vec<Dense>, Vec<Mark>)> {
    let folder = Folder::new("dense")?;
    let mut results = Vec::new();
    for (condensation, time) in [(1, "steps"), (10, "dense"), (100, "dense")] {
        let (mut events, mut cpu_seconds, mut all) = (0, 0.0, Turns::default());
        for property in properties {
            let mut trace = Vec::new();
            let lines =
                property.write_condensed(length, 1, condensation, &mut trace).map_err(io_error("trace"))?;
            let trace = folder.write("trace.jsonl", &trace)?;
            let arguments = [
                "--emit=violations",
                "--syntax=rye",
                &format!("--time={time}"),
                "--formula",
                &property.formula(),
            ]
            .map(str::to_owned);
            let mut turns = Turns::default();
            for _ in 0..repeat.max(1) {
                turns.check(programs, &arguments, &trace, lines)?;
            }
            folder.remove(&trace);
            events += lines;
            cpu_seconds += median(&turns.cpu_seconds());
            all.add(&turns);
        }
        crate::say(&format!(
            "condensation {condensation}, {time}: {cpu_seconds:.3} CPU s for {events} lines"
        ));
        results.push(Dense { condensation, events, cpu_seconds, turns: all });
    }
    let mut marks = Vec::new();
    for dense in &results[1..] {
        let what = format!("dense time, condensation {}: times steps on every line", dense.condensation);
        marks.push(Mark::at_most(what, dense.cpu_seconds / results[0].cpu_seconds, 1.0, ""));
    }
    Ok((results, marks))
}

/// Returns the tables.
pub fn tables(costs: &[Cost], dense: &[Dense]) -> Vec<Table> {
    let mut first =
        Table::new("The language, from a file", &["what", "events", "CPU s", "ns per event", "steps per s"]);
    for cost in costs {
        first.row(vec![
            cost.name.clone(),
            cost.events.to_string(),
            format!("{:.3}", cost.cpu_seconds),
            format!("{:.1}", cost.ns),
            cost.steps_per_second.map_or("-".to_owned(), |steps| format!("{:.0} M", steps / 1e6)),
        ]);
    }
    first.note(
        "`rondel check --emit violations` as a process, CPU time of all of it, JSON lines decoded. A step is one property \
         evaluated for one event. The time is the median, or the least where several specifications take turns.",
    );
    let mut second = Table::new("Dense time", &["traces", "lines", "CPU s", "ns per line"]);
    for d in dense {
        second.row(vec![
            d.name(),
            d.events.to_string(),
            format!("{:.3}", d.cpu_seconds),
            format!("{:.1}", d.cpu_seconds * 1e9 / d.events as f64),
        ]);
    }
    second.note("The properties of the Timescales benchmark, summed.");
    let of_costs = costs.iter().map(|cost| (cost.name.clone(), cost.turns.clone()));
    let of_dense = dense.iter().map(|d| (d.name(), d.turns.clone()));
    let by_turns = turns::table(&of_costs.chain(of_dense).collect::<Vec<_>>());
    [first, second].into_iter().chain(by_turns).collect()
}
