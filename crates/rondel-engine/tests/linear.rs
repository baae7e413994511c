//! Linear interpolation: the engine agrees with the definitions.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use definition::build::SECOND;
use definition::drive::{config, drive};
use definition::floor::Floor;
use definition::linear::{certain, fields};
use definition::outcome::{changes, outcomes};
use definition::timed::{Case, delivery, timed_bounds};
use definition::{Content, Event, Timed, spec};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rondel_engine::{Monitor, Program, Report};
use rondel_event::{Block, Comparison, Path, Timestamp, TopicId, Value, ValueType, Verdict};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Spec, TimeModel, UnaryOp};

const TOPICS: u32 = 3;

/// Random choices for a node.
#[derive(Clone, Debug)]
struct Recipe {
    sort: usize,
    choices: [usize; 5],
    bounds: Bounds,
}

fn recipe(future: bool) -> impl Strategy<Value = Recipe> {
    let sorts = 0..if future { 20_usize } else { 16 };
    (sorts, any::<[u16; 5]>(), timed_bounds()).prop_map(|(sort, choices, bounds)| Recipe {
        sort,
        choices: choices.map(usize::from),
        bounds,
    })
}

struct Maker {
    nodes: Vec<Expr>,
    truths: Vec<ExprId>,
    /// Whether comparisons may have several fields.
    mixed: bool,
    unit: u64,
}

impl Maker {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.nodes.push(expr);
        ExprId(self.nodes.len() as u32 - 1)
    }

    fn field(&mut self, topic: usize, name: &'static str, value_type: ValueType) -> ExprId {
        let topic = TopicId(topic as u32 % TOPICS);
        self.add(Expr::Field { topic, path: Path::keys([name]), value_type })
    }

    /// A float: a field of one topic, or an expression over several.
    fn number(&mut self, topic: usize, r: usize) -> ExprId {
        let field = |me: &mut Self, topic: usize| {
            if topic.is_multiple_of(2) {
                return me.field(topic, "f", ValueType::Float);
            }
            let field = me.field(topic, "i", ValueType::Int);
            me.add(Expr::ToFloat(field))
        };
        let literal = |me: &mut Self, x: f64| me.add(Expr::Literal(Value::Float(x)));
        let small = (r / 16 % 5) as f64 - 2.0;
        match r % 7 {
            0 | 1 => field(self, topic),
            2 => literal(self, small),
            3 => {
                let x = field(self, topic);
                let y = literal(self, small);
                self.add(Expr::Binary(BinaryOp::Multiply, y, x))
            }
            4 => {
                let x = field(self, topic);
                let y = literal(self, if small == 0.0 { 4.0 } else { 2.0 * small.signum() });
                self.add(Expr::Binary(BinaryOp::Divide, x, y))
            }
            5 => {
                let x = field(self, topic);
                self.add(Expr::Unary(UnaryOp::Negate, x))
            }
            _ => {
                let x = field(self, topic);
                let y = match self.mixed {
                    true => field(self, topic + 1),
                    false => literal(self, small + 0.5),
                };
                let op = if (r / 7).is_multiple_of(2) { BinaryOp::Add } else { BinaryOp::Subtract };
                self.add(Expr::Binary(op, x, y))
            }
        }
    }

    fn pick(&self, r: usize) -> ExprId {
        // One of the last nodes, mostly.
        let back = (r % 8) * self.truths.len() / 8;
        self.truths[self.truths.len() - 1 - back.min(self.truths.len() - 1)]
    }

    fn generate(&mut self, Recipe { sort, choices: [r, s, t, u, w], bounds }: &Recipe) {
        let (r, s, t) = (*r, *s, *t);
        let scale = |x: u64| x.saturating_mul(self.unit).saturating_add((u % 11 == 0).into());
        let bounds = Bounds { lower: scale(bounds.lower), upper: bounds.upper.map(scale) };
        let ahead = Bounds { upper: bounds.upper.or(Some(bounds.lower.saturating_add(self.unit))), ..bounds };
        let sort = if self.truths.is_empty() { 0 } else { *sort };
        let expr = match sort {
            0..=3 => {
                let (x, y) = (self.number(r, s), self.number(if self.mixed { t } else { r }, *w));
                let all = [
                    Comparison::Less,
                    Comparison::LessOrEqual,
                    Comparison::Greater,
                    Comparison::GreaterOrEqual,
                    Comparison::Equal,
                    Comparison::NotEqual,
                ];
                Expr::Compare(all[t % 6], x, y)
            }
            4 => Expr::On(TopicId(r as u32 % TOPICS)),
            5 => {
                let x = self.field(r, "b", ValueType::Bool);
                self.truths.push(x);
                return;
            }
            6 => {
                let x = self.field(2 * r, "f", ValueType::Float);
                let before = self.add(Expr::Prev(x));
                let other = self.add(Expr::Compare(Comparison::NotEqual, x, before));
                let on = self.add(Expr::On(TopicId((2 * r) as u32 % TOPICS)));
                Expr::And(on, other)
            }
            7 => Expr::Not(self.pick(r)),
            8 => Expr::And(self.pick(r), self.pick(s)),
            9 => Expr::Or(self.pick(r), self.pick(s)),
            10 => Expr::Previously(self.pick(r)),
            11 | 12 => Expr::Once(bounds, self.pick(r)),
            13 => Expr::Historically(bounds, self.pick(r)),
            14 | 15 => Expr::Since(bounds, self.pick(r), self.pick(s)),
            16 => Expr::Eventually(ahead, self.pick(r)),
            17 => Expr::Always(ahead, self.pick(r)),
            _ => Expr::Until(ahead, self.pick(r), self.pick(s)),
        };
        let id = self.add(expr);
        self.truths.push(id);
    }
}

fn made_of(recipes: &[Recipe], mixed: bool, unit: i64) -> Spec {
    let mut maker = Maker { nodes: Vec::new(), truths: Vec::new(), mixed, unit: unit as u64 };
    recipes.iter().for_each(|recipe| maker.generate(recipe));
    let mut spec = spec(TOPICS, maker.nodes, maker.truths);
    for property in &mut spec.properties {
        (property.time, property.linear) = (TimeModel::Dense, true);
    }
    spec
}

/// Per topic: time in units, the number, and fields of other messages.
type Traffic = Vec<Vec<(u8, Option<i8>, Option<bool>, u8)>>;

fn traffic(mixed: bool) -> impl Strategy<Value = Traffic> {
    // Gaps that are powers of two keep interpolated values short.
    let gaps = if mixed { vec![0_u8, 1, 1, 2, 4] } else { vec![0, 0, 1, 1, 2, 3, 5, 7] };
    let number = prop_oneof![8 => (-4..5_i8).prop_map(Some), 1 => Just(None)];
    vec(vec((select(gaps), number, any::<Option<bool>>(), any::<u8>()), 0..7), TOPICS as usize)
}

fn trace(traffic: &Traffic, mixed: bool, unit: i64, start: i64) -> Vec<Timed> {
    let mut events = Vec::new();
    for (topic, messages) in (0_u32..).zip(traffic) {
        let mut time = i64::from(topic);
        for (gap, number, truth, order) in messages {
            time += i64::from(*gap);
            let (name, value) = match topic % 2 {
                0 => ("f", number.map(|x| Value::Float(f64::from(x)))),
                _ => ("i", number.map(|x| Value::Int(x.into()))),
            };
            let mut fields = Vec::new();
            // A message may lack the field.
            if mixed || order % 5 != 0 {
                fields.push((name, value.map_or(Content::Null, Content::Value)));
            }
            fields.extend(truth.map(|x| ("b", Content::Value(Value::Bool(x)))));
            let event = Event { topic, fields };
            events.push((time, *order, Timed { time: start + time * unit, arrival: None, event }));
        }
    }
    // Messages of one topic stay in order.
    let mut last = BTreeMap::new();
    for (time, order, timed) in &mut events {
        let least = last.entry((timed.event.topic, *time)).or_insert(0);
        *order = (*order).max(*least);
        *least = *order;
    }
    events.sort_by_key(|(time, order, _)| (*time, *order));
    events.into_iter().map(|(.., timed)| timed).collect()
}

fn case(mixed: bool, future: bool) -> impl Strategy<Value = Case> {
    let units = select(vec![1, 2, 3, 8, 1000, SECOND]);
    let starts = select(vec![0, -5, 1_700_000_000_000_000_000]);
    let parts = (vec(recipe(future), 1..9), traffic(mixed), units, starts, 0..9_i64, delivery());
    parts.prop_map(move |(recipes, traffic, unit, start, more, delivery)| {
        let trace = trace(&traffic, mixed, unit, start);
        let last = trace.last().map_or(start, |last| last.time);
        Case { spec: made_of(&recipes, mixed, unit), trace, now: last + more * unit, delivery }
    })
}

/// Compares every change, when it is emitted, and the verdicts at events.
fn agree(case: &Case) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, delivery } = case;
    let given = drive(spec, trace, *now, delivery);
    for (p, spots) in outcomes(spec, trace, *now).iter().enumerate() {
        let formula = spec.properties[p].formula;
        let mut waits = BTreeSet::new();
        fields(spec, formula, &mut waits);
        let mut found: Vec<(i64, Verdict)> = Vec::new();
        let mut at_events: BTreeMap<(i64, &'static str), i64> = BTreeMap::new();
        for report in given.iter().map(|given| &given.report).filter(|r| r.property as usize == p) {
            let about = report.about.unwrap_or(report.time).as_nanos();
            *at_events.entry((about, report.verdict.as_str())).or_default() += 1;
            if found.last().is_none_or(|(_, last)| *last != report.verdict) {
                prop_assert!(report.changed, "{:?}: {:?}", formula, report);
                found.push((about, report.verdict));
            }
            if !waits.is_empty() {
                let time = certain(&waits, trace, *now, about);
                prop_assert_eq!(report.time.as_nanos(), time, "{:?}: {:?}", formula, report);
            }
        }
        let known = |verdict: Option<Verdict>| verdict.unwrap_or(Verdict::Inconclusive);
        let expected: Vec<_> = changes(spots).iter().map(|spot| (spot.time, known(spot.verdict))).collect();
        prop_assert_eq!(found, expected, "{:?}", formula);
        for spot in spots.iter().filter(|spot| spot.event.is_some()) {
            let count = at_events.entry((spot.time, known(spot.verdict).as_str())).or_default();
            *count -= 1;
            prop_assert!(*count >= 0, "{:?}: nothing about {:?}", formula, spot);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn one_field(case in case(false, false)) {
        agree(&case)?;
    }

    #[test]
    fn several_fields(case in case(true, false)) {
        agree(&case)?;
    }
}

/// Every verdict is right, and every event has one, as soon as it is known or later.
fn agree_ahead(case: &Case, floor: &Floor) -> Result<(), TestCaseError> {
    let Case { spec, trace, now, delivery } = case;
    let can_be = |formula: ExprId| {
        let property = spec.properties.iter().filter(|property| property.formula == formula).cloned();
        Program::compile(&Spec { properties: property.collect(), ..spec.clone() }).is_ok()
    };
    let properties = spec.properties.iter().filter(|property| can_be(property.formula)).cloned();
    let spec = &Spec { properties: properties.collect(), ..spec.clone() };
    floor.note(spec.properties.len())?;
    let given = drive(spec, trace, *now, delivery);
    for (p, spots) in outcomes(spec, trace, *now).iter().enumerate() {
        let formula = spec.properties[p].formula;
        let known = |verdict: Option<Verdict>| verdict.unwrap_or(Verdict::Inconclusive);
        let mut found: BTreeMap<(i64, &'static str), i64> = BTreeMap::new();
        for report in given.iter().map(|given| &given.report).filter(|r| r.property as usize == p) {
            let about = report.about.unwrap_or(report.time).as_nanos();
            *found.entry((about, report.verdict.as_str())).or_default() += 1;
            let last = spots.iter().rev().find(|spot| spot.time <= about);
            let mut here = spots.iter().filter(|spot| spot.time == about).chain(last);
            let is_right = here.any(|spot| known(spot.verdict) == report.verdict);
            prop_assert!(is_right, "{:?}: {:?} in {:?}", formula, report, spots);
        }
        for spot in spots.iter().filter(|spot| spot.event.is_some()) {
            let count = found.entry((spot.time, known(spot.verdict).as_str())).or_default();
            *count -= 1;
            prop_assert!(*count >= 0, "{:?}: nothing about {:?}", formula, spot);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn future_operators_agree_with_definition(case in any::<bool>().prop_flat_map(|mixed| case(mixed, true))) {
        static FLOOR: Floor = Floor::new(50, 100);
        agree_ahead(&case, &FLOOR)?;
    }
}

/// The changes: time that they refer to, verdict, and time of emission.
fn emitted_changes(property: &str, messages: &str, now: i64) -> String {
    let text = format!(
        "topic a {{ x: int, p: bool, k: string }} topic b {{ x: int, p: bool, k: string }} @linear property p = {property}"
    );
    let outcome = rondel_spec::parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    let trace = definition::build::trace(messages);
    let delivery = definition::timed::Delivery { cuts: vec![1], advances: vec![1] };
    let whole = definition::timed::Delivery { cuts: vec![64], advances: vec![0] };
    let all = [&delivery, &whole].map(|delivery| {
        let given = drive(&spec, &trace, now, delivery);
        let of = |given: &definition::drive::Emitted| {
            let report = given.report;
            let about = report.about.unwrap_or(report.time).as_nanos();
            let letter = definition::build::letter(Some(report.verdict));
            let emitted = if about == report.time.as_nanos() {
                String::new()
            } else {
                format!("@{}", report.time.as_nanos())
            };
            report.changed.then(|| format!("{about}{letter}{emitted}"))
        };
        given.iter().filter_map(of).collect::<Vec<String>>().join(" ")
    });
    assert_eq!(all[0], all[1], "{property}");
    all[0].clone()
}

#[test]
fn cases_by_hand() {
    for (property, trace, now, expected, why) in [
        ("a.x < 5", "0:a{x=0} 10:a{x=10}", 10, "0T@10 5F@10", "crosses in the middle, at a whole time"),
        (
            "a.x > 5",
            "0:a{x=0} 10:a{x=10} 20:a{x=5} 30:a{x=10}",
            30,
            "0F@10 5T@10 20F@30 20T@30",
            "is touched at a sample",
        ),
        (
            "a.x == 5",
            "0:a{x=0} 10:a{x=10} 20:a{x=5} 30:a{x=5}",
            30,
            "0F@10 5T@10 5F@10 20T@30",
            "equal at an instant, and on a level piece",
        ),
        ("a.x < 1", "0:a{x=0} 7:a{x=3} 8:a{x=3}", 8, "0T@7 3F@7", "crosses at 7/3, which counts as 3"),
        ("a.x == 1", "0:a{x=0} 7:a{x=3} 8:a{x=3}", 8, "0F@7", "is equal at 7/3 only, at no instant"),
        (
            "a.x < 5",
            "0:a{x=0} 10:a{x=4} 10:a{x=8} 20:a{x=0}",
            20,
            "0T@10 10F@20 14T@20",
            "jumps at 10, and crosses at 13.75",
        ),
        (
            "a.x < 5",
            "0:b{p} 4:a{x=1} 6:a{x=1}",
            9,
            "0? 4T@6 6?@9",
            "unknown before the first sample and after the last",
        ),
        (
            "a.x < b.x",
            "0:a{x=0} 2:b{x=8} 8:a{x=8} 10:b{x=0} 12:a{x=8}",
            12,
            "0?@8 2T@10 5F@10 10?@12",
            "two fields cross",
        ),
        (
            "a.x < 5 or b.x < 5",
            "0:a{x=0} 1:b{x=0} 10:b{x=9} 20:b{x=9}",
            20,
            "0T@20 0?@20 1T@20 6?@20",
            "a stops: no verdict beyond",
        ),
        (
            "a.p and a.x < 5",
            "0:a{x=0,p} 4:a{!p} 10:a{x=9}",
            12,
            "0T@10 4F@10",
            "a truth holds; a message without the number waits",
        ),
        (
            "once[0, 3 ns] a.x > 5",
            "0:a{x=0} 10:a{x=10} 20:a{x=0}",
            20,
            "0F@10 5T@10 18F@20",
            "what is past lasts",
        ),
        ("abs(a.x) < 2", "0:a{x=-4} 8:a{x=4} 9:a{x=4}", 9, "0F@8 2T@8 6F@8", "bends at zero"),
        (
            "a.x < 5",
            "0:a{x=0} 4:a{x=null} 8:a{x=0} 9:a{x=0}",
            9,
            "0T@4 0?@4 8T@9",
            "null says nothing of what lies around it",
        ),
        ("changed(a.x)", "0:a{x=0} 4:a{x=1} 8:a{x=1}", 9, "0? 0F 4T 4F", "messages are compared"),
        (
            "on(a) and a.x >= 3",
            "0:a{x=0} 4:a{x=3} 8:a{x=4} 9:a{x=0}",
            9,
            "0F@4 4T@8 4F@8 8T@9 8F@9",
            "instants",
        ),
    ] {
        assert_eq!(emitted_changes(property, trace, now), expected, "{property} over {trace}: {why}");
    }
}

/// Comparisons with `abs`, `min` and `max`, and equivalent ones without.
const BENT: [(&str, &str); 8] = [
    ("abs(t0.f) < t1.i", "t0.f < t1.i and -t0.f < t1.i"),
    ("abs(t0.f) >= 2", "t0.f >= 2 or t0.f <= -2"),
    ("2 * abs(t0.f - 1) - 1 <= t1.i", "2 * t0.f - 3 <= t1.i and 1 - 2 * t0.f <= t1.i"),
    ("max(t0.f, t1.i) > 1", "t0.f + 0 * t1.i > 1 or t1.i + 0 * t0.f > 1"),
    ("3 - min(t0.f, t1.i) < 2", "t0.f + 0 * t1.i > 1 and t1.i + 0 * t0.f > 1"),
    (
        "min(t0.f, t1.i) == 1",
        "t0.f + 0 * t1.i == 1 and t1.i + 0 * t0.f >= 1 or t1.i + 0 * t0.f == 1 and t0.f + 0 * t1.i >= 1",
    ),
    ("abs(t0.f) != 1", "t0.f != 1 and t0.f != -1"),
    ("max(min(t0.f, 1), min(t1.i, -1)) > 0", "t0.f + 0 * t1.i > 0"),
];

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn abs_min_and_max_agree_with_expansion(case in case(true, false)) {
        let schema = "{ f: float, i: int, b: bool }";
        let mut text = format!("topic t0 {schema} topic t1 {schema} topic t2 {schema}");
        for (i, (bent, plain)) in BENT.iter().enumerate() {
            text += &format!(" @linear property bent{i} = {bent} @linear property plain{i} = {plain}");
        }
        let outcome = rondel_spec::parse(&text);
        let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
        let given = drive(&spec, &case.trace, case.now, &case.delivery);
        let of = |p: u32| {
            let reports = given.iter().map(|given| given.report).filter(move |report| report.property == p);
            reports.map(|r| (r.verdict, r.changed, r.row, r.time, r.about)).collect::<Vec<_>>()
        };
        for (i, pair) in (0..).zip(BENT) {
            prop_assert_eq!(of(2 * i), of(2 * i + 1), "{:?}", pair);
        }
    }
}

/// A field without further messages delays others by a limited number of events.
#[test]
fn limit_of_waiting_events() {
    let text = "topic t0 { f: float } topic t1 { i: int } @linear property p = t0.f < 2 @linear property q = t0.f < 2 or t1.i < 5";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let (limit, mut emitted) = (100_000, Vec::new());
    for i in 0..limit + 200 {
        let (topic, name, value) = match i {
            0 => (0, "f", Value::Float(1.0)),
            _ => (1, "i", Value::Int(i % 10)),
        };
        let mut block = Block::new(program.layout());
        let event = Event { topic, fields: vec![(name, Content::Value(value))] };
        definition::write(&mut block, program.projections(), &event, i);
        emitted.extend(monitor.step(&block).iter().map(|report| (i, *report)));
        assert_eq!(monitor.hurried() > 0, i >= limit, "{i}");
    }
    let of = |p: u32| emitted.iter().filter(move |(_, report)| report.property == p);
    let known: Vec<_> = of(0).map(|(at, report)| (*at, report.about, report.verdict)).collect();
    let begin = Some(Timestamp::from_nanos(0));
    assert_eq!(known, [(limit, begin, Verdict::Satisfied), (limit, begin, Verdict::Inconclusive)]);
    assert!(of(1).all(|(at, report)| *at >= limit && report.verdict != Verdict::Violated));
    assert!(of(1).count() > 10_000);
}

/// A verdict that is certain at the event it refers to has the number of that event, for all block sizes, and
/// also if it is emitted with the next one.
#[test]
fn verdict_has_number_of_its_event() {
    let text = "topic t0 { f: float } topic t1 { b: bool } @linear property p = on(t1) and t1.b";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let event = |i: i64| match i % 2 {
        0 => Event { topic: 0, fields: vec![("f", Content::Value(Value::Float(1.0)))] },
        _ => Event { topic: 1, fields: vec![("b", Content::Value(Value::Bool(true)))] },
    };
    for len in [1, 2, 3, 8] {
        let mut monitor = Monitor::new(program.clone());
        let mut emitted = Vec::new();
        let mut take = |reports: &[Report]| emitted.extend_from_slice(reports);
        for first in (0..8).step_by(len) {
            let mut block = Block::new(program.layout());
            for i in first..(first + len as i64).min(8) {
                definition::write(&mut block, program.projections(), &event(i), 10 * i);
            }
            take(monitor.step(&block));
        }
        take(monitor.end());
        let satisfied = emitted.iter().filter(|report| report.verdict == Verdict::Satisfied);
        let at: Vec<_> = satisfied.map(|r| (r.at_event, r.step, r.time.as_nanos(), r.about)).collect();
        let expected: Vec<_> = [1, 3, 5, 7].map(|i| (true, i as u64, 10 * i, None)).to_vec();
        assert_eq!(at, expected, "in blocks of {len}");
    }
}

/// Events of one time wait only for the last of them.
#[test]
fn events_of_equal_time_do_not_wait() {
    let spec = rondel_spec::parse("topic t0 { f: float } @linear property p = t0.f < 2").spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(program.clone());
    let mut count = 0;
    for i in 0..120_000 {
        let mut block = Block::new(program.layout());
        let fields = vec![("f", Content::Value(Value::Float(f64::from(i % 4))))];
        definition::write(&mut block, program.projections(), &Event { topic: 0, fields }, 7);
        count += monitor.step(&block).len();
    }
    count += monitor.end().len();
    assert_eq!((count, monitor.hurried()), (60_000, 0));
}

proptest! {
    #![proptest_config(config(100))]

    /// Times and numbers at the limits of their ranges: no result is checked, but nothing fails.
    #[test]
    fn extreme_numbers_do_not_panic(
        recipes in vec(recipe(true), 1..9),
        messages in vec((0..TOPICS, select(EXTREMES.to_vec()), select(TIMES.to_vec()), any::<i64>()), 0..20),
        delivery in delivery(),
    ) {
        let mut trace: Vec<Timed> = messages
            .iter()
            .map(|&(topic, number, time, whole)| {
                let (name, value) = match topic % 2 {
                    0 => ("f", Value::Float(number)),
                    _ => ("i", Value::Int(whole)),
                };
                let fields = vec![(name, Content::Value(value))];
                Timed { time, arrival: None, event: Event { topic, fields } }
            })
            .collect();
        trace.sort_by_key(|timed| timed.time);
        let mut spec = made_of(&recipes, true, 1);
        let all = spec.properties.clone();
        for property in all {
            spec.properties = vec![property];
            if Program::compile(&spec).is_ok() {
                drive(&spec, &trace, i64::MAX, &delivery);
            }
        }
    }
}

const EXTREMES: [f64; 10] =
    [0.0, -0.0, 5e-324, -1e-300, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0];

const TIMES: [i64; 9] =
    [i64::MIN, i64::MIN + 1, i64::MIN / 2, -1, 0, 1, i64::MAX / 2, i64::MAX - 1, i64::MAX];
