//! Truth and robustness agree with the definitions, at every row and at every time in between.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::iter::Peekable;
use std::sync::Arc;

use definition::drive::config;
use definition::levels::{Known, Piece, TRUTHS, Timed, Value3, define, is_ahead, known, pieces};
use definition::random::{bounds, cuts};
use definition::{Content, Event, spec, write};
use proptest::prelude::*;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Key, Slice, SliceId, Spec, TimeModel};

/// Nodes with values come first, so that they have the numbers of the definitions.
fn formulas() -> impl Strategy<Value = Vec<Expr>> {
    let field = |name: &'static str, value_type| Expr::Field {
        topic: TopicId(0),
        path: Path::keys([name]),
        value_type,
    };
    let mut nodes = vec![
        field("f", ValueType::Float),
        field("f2", ValueType::Float),
        field("i", ValueType::Int),
        field("t", ValueType::Time),
        Expr::Literal(Value::Float(0.5)),
        Expr::Literal(Value::Int(1)),
        Expr::Literal(Value::Time(3)),
        field("b", ValueType::Bool),
        field("b2", ValueType::Bool),
    ];
    nodes.extend([Expr::On(TopicId(0)), Expr::On(TopicId(1))]);
    let id = ExprId;
    for comparison in [Comparison::Less, Comparison::GreaterOrEqual, Comparison::Equal, Comparison::NotEqual]
    {
        nodes.push(Expr::Compare(comparison, id(0), id(4)));
        nodes.push(Expr::Compare(comparison, id(0), id(1)));
        nodes.push(Expr::Compare(comparison, id(2), id(5)));
        nodes.push(Expr::Compare(comparison, id(3), id(6)));
    }
    let numbers = nodes.len() as u32;
    let operation = (0..24_u8, [any::<u32>(), any::<u32>(), any::<u32>()], bounds(), any::<bool>());
    proptest::collection::vec(operation, 1..12).prop_map(move |operations| {
        let mut nodes = nodes.clone();
        for (kind, picks, bounds, recent) in operations {
            let len = nodes.len() as u32;
            // Truths (from number 7 on), and mostly numeric or recent ones.
            let pick = |r: u32| match (recent, r % 4) {
                (true, 0..=2) => ExprId(len - 1 - r / 4 % 4),
                (false, 0..=1) => ExprId(11 + r / 4 % (numbers - 11)),
                _ => ExprId(7 + r / 4 % (len - 7)),
            };
            let [x, y, z] = picks.map(pick);
            let ahead = is_ahead(&nodes);
            let looks_ahead = ahead[x.index()] || ahead[y.index()];
            // Mostly short, so that the end is reached within the trace.
            let lower = bounds.lower % 6;
            let upper = lower + bounds.upper.unwrap_or(3) % 7;
            let later = match picks[2] % 12 {
                0 => Bounds { lower, upper: Some(bounds.upper.unwrap_or(u64::MAX)) },
                _ => Bounds { lower, upper: Some(upper) },
            };
            // Past operators cannot contain future operators.
            let kind = if looks_ahead && (5..12).contains(&kind) { kind + 9 } else { kind };
            nodes.push(match kind {
                0 => Expr::Not(x),
                1 => Expr::And(x, y),
                2 => Expr::Or(x, y),
                3 => Expr::Definitely(x),
                4 => Expr::If(x, y, z),
                12 => Expr::Compare(Comparison::Equal, x, y),
                13 => Expr::Next(x),
                14..=16 => Expr::Eventually(later, x),
                17 => Expr::Always(later, x),
                18.. => Expr::Until(later, x, y),
                5 => Expr::Previously(x),
                6 | 7 => Expr::Once(bounds, x),
                8 => Expr::Historically(bounds, x),
                _ => Expr::Since(bounds, x, y),
            });
        }
        nodes
    })
}

fn trace() -> impl Strategy<Value = Vec<Timed>> {
    let float = prop_oneof![
        9 => (-9..9_i8).prop_map(|x| f64::from(x) / 8.0).boxed(),
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX]).boxed(),
    ];
    let int = prop_oneof![9 => (-3..4_i64).boxed(), 1 => Just(i64::MIN).boxed(), 1 => Just(i64::MAX).boxed()];
    let field = |value: BoxedStrategy<Value>| {
        let content = prop_oneof![12 => value.prop_map(Content::Value), 1 => Just(Content::Null)];
        proptest::option::weighted(0.7, content)
    };
    let float = field(float.prop_map(Value::Float).boxed());
    let int = field(int.prop_map(Value::Int).boxed());
    let time = field((0..6_i64).prop_map(Value::Time).boxed());
    let bool = || field(any::<bool>().prop_map(Value::Bool).boxed());
    let later = prop_oneof![2 => 0..3_i64, 1 => 0..9_i64];
    let event = (later, 0..2_u32, (float.clone(), float, int, time, bool(), bool()));
    proptest::collection::vec(event, 1..25).prop_map(|events| {
        let mut now = 5;
        let timed = |(later, topic, (f, f2, i, t, b, b2))| {
            now += later;
            let fields = [("f", f), ("f2", f2), ("i", i), ("t", t), ("b", b), ("b2", b2)];
            let fields = fields.into_iter().filter_map(|(name, content)| Some((name, content?))).collect();
            (now, Event { topic, fields })
        };
        events.into_iter().map(timed).collect()
    })
}

type Reports<'a> = Peekable<std::slice::Iter<'a, &'a Report>>;

/// A report, and the parameters of its instance.
type KeyedReport = (Report, Vec<Value>);

fn emitted(monitor: &Monitor) -> impl Iterator<Item = KeyedReport> + '_ {
    monitor.reports().iter().map(|report| (*report, monitor.key(report)))
}

/// All reports of a run, up to a time.
fn run(spec: &Spec, trace: &[Timed], cuts: &[usize], end: i64) -> Vec<KeyedReport> {
    let program = Arc::new(Program::compile(spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    let mut block = Block::new(program.layout());
    let mut reports = Vec::new();
    let mut rest = trace;
    for (round, &len) in cuts.iter().cycle().enumerate() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        if round % 3 == 1 {
            // Neither snapshots nor advancing in parts makes a difference.
            monitor = Monitor::restore(program.clone(), &monitor.snapshot()).unwrap();
            monitor.report_every(true);
            for to in now[0].0 - 2..=now[0].0 {
                advance(&mut monitor, to, &mut reports);
            }
        }
        block.clear();
        for (time, event) in now {
            write(&mut block, program.projections(), event, *time);
        }
        monitor.step(&block);
        reports.extend(emitted(&monitor));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    advance(&mut monitor, end, &mut reports);
    monitor.end();
    reports.extend(emitted(&monitor));
    reports
}

/// Advances the time; no report may refer to a time before.
fn advance(monitor: &mut Monitor, to: i64, reports: &mut Vec<KeyedReport>) {
    let to = Timestamp::from_nanos(to);
    let due = monitor.next_deadline();
    let brought = monitor.advance(to);
    assert!(brought.iter().all(|report| !report.changed || due.is_some_and(|due| due <= to)), "{due:?}");
    reports.extend(emitted(monitor));
    assert!(monitor.next_deadline().is_none_or(|next| next > to || brought_nothing_yet(monitor)));
}

/// Time passes only after the first event.
fn brought_nothing_yet(monitor: &Monitor) -> bool {
    monitor.position() == 0
}

/// Compares the reports on a property with future operators: at every event, and changes in between, in this
/// order, and when they are emitted.
fn agree_later(
    model: TimeModel,
    trace: &[Timed],
    pieces: &[Piece],
    expected: &[Value3],
    known: Known,
    found: &mut Reports<'_>,
) -> Result<(), TestCaseError> {
    let mut last = None;
    for (i, (piece, expected)) in pieces.iter().zip(expected).enumerate() {
        let at = match model {
            TimeModel::Dense => piece.place >> 1,
            _ => trace[piece.event].0,
        };
        let is_known = i < known.pieces;
        let expected = if is_known { *expected } else { Value3::of(None) };
        let expected = (expected.verdict(), expected.robustness());
        if !piece.happens && last == Some(expected) {
            continue;
        }
        last = Some(expected);
        let Some(report) = found.next() else { panic!("{expected:?} is not reported of {piece:?}") };
        let about = report.about.unwrap_or(report.time).as_nanos();
        prop_assert_eq!(
            ((report.verdict, report.robustness), about),
            (expected, at),
            "{:?} {:?}",
            piece,
            report
        );
        if is_known {
            let time = match model {
                TimeModel::Dense => Some(((i128::from(piece.place) + known.horizon) >> 1) as i64),
                TimeModel::Steps => Some(trace[piece.event + known.horizon as usize].0),
                TimeModel::Points => None,
            };
            prop_assert!(time.is_none_or(|time| report.time.as_nanos() == time), "{:?} {:?}", piece, report);
        }
    }
    Ok(())
}

/// Compares the reports on a past property from a piece on: at every event, and changes in between. `events`
/// are the indexes of the events.
fn agree(
    model: TimeModel,
    trace: &[Timed],
    numbers: &[usize],
    said: impl Iterator<Item = (Piece, Value3)>,
    found: &mut Reports<'_>,
) -> Result<(), TestCaseError> {
    let mut last = None;
    for (piece, expected) in said {
        let time = match model {
            TimeModel::Dense => piece.place >> 1,
            _ => trace[piece.event].0,
        };
        let expected = (expected.verdict(), expected.robustness());
        if !piece.happens && Some(expected) == last {
            continue;
        }
        last = Some(expected);
        let here =
            |report: &&&&Report| report.row.is_some() == piece.happens && report.time.as_nanos() == time;
        let Some(report) = found.next_if(|report| here(&report)) else {
            panic!("{expected:?} is not reported of {piece:?}, but {:?}", found.peek());
        };
        prop_assert_eq!((report.verdict, report.robustness), expected, "{:?} at {:?}", model, piece);
        if piece.happens {
            prop_assert_eq!(report.step, numbers[piece.event] as u64);
        }
    }
    Ok(())
}

fn model() -> impl Strategy<Value = TimeModel> {
    proptest::sample::select(vec![TimeModel::Steps, TimeModel::Points, TimeModel::Dense])
}

/// The properties with parameters on one topic, or on both.
fn divided(mut spec: Spec, both: bool, until: Option<u32>) -> Spec {
    let fields = (0..1 + u32::from(both)).map(|topic| (TopicId(topic), Path::keys(["k"]))).collect();
    let key = Key { name: "k".into(), value_type: ValueType::Int, fields };
    spec.slices.push(Slice { keys: vec![key], until: until.map(ExprId), limit: None });
    spec.properties.iter_mut().for_each(|property| property.slice = Some(SliceId(0)));
    spec
}

fn with_keys(mut trace: Vec<Timed>, keys: &[i64]) -> Vec<Timed> {
    for ((_, event), key) in trace.iter_mut().zip(keys) {
        event.fields.push(("k", Content::Value(Value::Int(*key))));
    }
    trace
}

fn until() -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(TRUTHS as u32..TRUTHS as u32 + 4)
}

/// An instance.
struct Instance {
    /// Events that it receives, and events of shared topics before.
    own: Vec<Timed>,
    /// Indexes of these events in the trace.
    origins: Vec<usize>,
    /// Its first event, among these.
    first: usize,
    /// Its last event in the trace, if it ends.
    ended: Option<usize>,
}

/// The instance that begins with the first event of these parameters from here on.
fn instance(
    spec: &Spec,
    property: usize,
    trace: &[Timed],
    keys: &[i64],
    key: i64,
    from: usize,
) -> Option<Instance> {
    let Slice { keys: parts, until, .. } = &spec.slices[0];
    let is_keyed = |i: &usize| parts[0].fields.iter().any(|(topic, _)| topic.0 == trace[*i].1.topic);
    let begin = (from..trace.len()).filter(is_keyed).find(|&i| keys[i] == key)?;
    let roots = [Some(spec.properties[property].formula), *until].into_iter().flatten();
    let reads: Vec<TopicId> = roots.flat_map(|root| spec.topics_of(root)).collect();
    let sees = |i: &usize| match is_keyed(i) {
        true => *i >= begin && keys[*i] == key,
        false => reads.contains(&TopicId(trace[*i].1.topic)),
    };
    let mut origins: Vec<usize> = (0..trace.len()).filter(sees).collect();
    let part = |origins: &[usize]| origins.iter().map(|&i| trace[i].clone()).collect::<Vec<Timed>>();
    let mut ended = None;
    if let Some(until) = until {
        // A past condition that changes at events only.
        let all = part(&origins);
        let steps = pieces(TimeModel::Steps, &all, 0);
        let over = &define(spec, TimeModel::Steps, &all, &steps)[until.index()];
        let is_over = |i: &usize| origins[*i] >= begin && over[*i].truth == Some(true);
        ended = (0..origins.len()).find(is_over).map(|i| origins[i]);
    }
    origins.retain(|i| ended.is_none_or(|ended| *i <= ended));
    let first = origins.iter().position(|i| *i == begin)?;
    Some(Instance { own: part(&origins), origins, first, ended })
}

/// The last formulas as properties.
fn robust(nodes: Vec<Expr>, model: TimeModel) -> Spec {
    let no_next = |node| match node {
        Expr::Next(x) if model == TimeModel::Dense => Expr::Not(x),
        node => node,
    };
    let count = nodes.len() as u32;
    let nodes = nodes.into_iter().map(no_next).collect();
    let mut spec = spec(2, nodes, (count - 3..count).map(ExprId));
    for property in &mut spec.properties {
        property.time = model;
        property.robust = true;
    }
    spec
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn robustness_agrees_with_definition(
        nodes in formulas(),
        trace in trace(),
        cuts in cuts(),
        model in model(),
    ) {
        let spec = robust(nodes, model);
        let end = trace.last().unwrap().0 + 25;
        let pieces = pieces(model, &trace, end);
        let numbers: Vec<usize> = (0..trace.len()).collect();
        let defined = define(&spec, model, &trace, &pieces);
        let reports = run(&spec, &trace, &cuts, end);
        for (report, _) in &reports {
            let verdict = report.robustness.map(|level| {
                if level > 0.0 { Verdict::Satisfied } else if level < 0.0 { Verdict::Violated } else { report.verdict }
            });
            prop_assert!(verdict.is_none_or(|verdict| verdict == report.verdict), "{:?}", report);
        }
        let (ahead, known) = (is_ahead(&spec.nodes), known(&spec, model, &pieces, end));
        for (i, property) in spec.properties.iter().enumerate() {
            let formula = property.formula.index();
            let found: Vec<&Report> = reports.iter().map(|(r, _)| r).filter(|r| r.property as usize == i).collect();
            let mut found = found.iter().peekable();
            if ahead[formula] {
                agree_later(model, &trace, &pieces, &defined[formula], known[formula], &mut found)?;
            } else {
                let said = pieces.iter().copied().zip(defined[formula].iter().copied());
                agree(model, &trace, &numbers, said, &mut found)?;
            }
            prop_assert_eq!(found.next(), None);
        }
    }

    /// An instance agrees with the property over the events that it receives, from the first with its
    /// parameters to its end.
    #[test]
    fn instance_robustness_agrees_with_definition(
        nodes in formulas(),
        trace in trace(),
        keys in proptest::collection::vec(0..3_i64, 25),
        cuts in cuts(),
        model in model(),
        both in any::<bool>(),
        until in until(),
    ) {
        let spec = divided(robust(nodes, model), both, until);
        let trace = with_keys(trace, &keys);
        let end = trace.last().unwrap().0 + 25;
        let reports = run(&spec, &trace, &cuts, end);
        let ahead = is_ahead(&spec.nodes);
        for (i, property) in spec.properties.iter().enumerate() {
            for key in 0..3 {
                let of_key = |(r, k): &&KeyedReport| r.property as usize == i && **k == [Value::Int(key)];
                let found: Vec<&Report> = reports.iter().filter(of_key).map(|(report, _)| report).collect();
                let mut found = found.iter().peekable();
                let mut from = 0;
                while let Some(instance) = instance(&spec, i, &trace, &keys, key, from) {
                    let Instance { own, origins, first, ended } = instance;
                    from = ended.map_or(trace.len(), |ended| ended + 1);
                    // It does not receive later events.
                    let last = own.last().unwrap().0;
                    let (mut pieces, end) = match ended {
                        Some(_) => (pieces(model, &own, last + 1), last),
                        None => (pieces(model, &own, end), end),
                    };
                    let event = |event| move |piece: &Piece| piece.happens && piece.event == event;
                    if ended.is_some() {
                        pieces.truncate(1 + pieces.iter().position(event(own.len() - 1)).unwrap());
                    }
                    let defined = &define(&spec, model, &own, &pieces)[property.formula.index()];
                    let begin = pieces.iter().position(event(first)).unwrap();
                    if ahead[property.formula.index()] {
                        let known = known(&spec, model, &pieces, end)[property.formula.index()];
                        let known = Known { pieces: known.pieces.saturating_sub(begin), ..known };
                        agree_later(model, &own, &pieces[begin..], &defined[begin..], known, &mut found)?;
                    } else {
                        let said = pieces.iter().copied().zip(defined.iter().copied()).skip(begin);
                        agree(model, &own, &origins, said, &mut found)?;
                    }
                }
                prop_assert_eq!(found.next(), None);
            }
        }
    }

    /// Reports of instances do not depend on block sizes.
    #[test]
    fn instance_robustness_is_independent_of_block_size(
        nodes in formulas(),
        trace in trace(),
        keys in proptest::collection::vec(0..3_i64, 25),
        cuts in cuts(),
        every in any::<bool>(),
        model in model(),
        both in any::<bool>(),
        until in until(),
    ) {
        let spec = divided(robust(nodes, model), both, until);
        let trace = with_keys(trace, &keys);
        let program = Arc::new(Program::compile(&spec).unwrap());
        let all = |cuts: &[usize]| {
            let mut monitor = Monitor::new(program.clone());
            monitor.report_every(every);
            let mut block = Block::new(program.layout());
            let (mut all, mut rest) = (Vec::new(), &trace[..]);
            for &len in cuts.iter().cycle() {
                let (now, later) = rest.split_at(len.min(rest.len()));
                block.clear();
                now.iter().for_each(|(time, event)| write(&mut block, program.projections(), event, *time));
                monitor.step(&block);
                all.extend(emitted(&monitor));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            monitor.advance(Timestamp::from_nanos(trace.last().unwrap().0 + 9));
            all.extend(emitted(&monitor));
            monitor.end();
            all.extend(emitted(&monitor));
            let said = |(report, key): KeyedReport| {
                let Report { property, verdict, changed, step, time, about, robustness, .. } = report;
                (key, property, verdict, changed, step, time, about, robustness)
            };
            all.into_iter().map(said).collect::<Vec<_>>()
        };
        prop_assert_eq!(all(&cuts), all(&[64]));
    }
}
