//! The families of Timescales, written with the library of patterns, hold on the traces that are made for them.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Slot, Timestamp, TopicId, Verdict};
use rondel_spec::{ParseOptions, Sources, parse_sources};

use crate::timescales::{Family, Property, all};

/// The pattern of a family.
fn pattern(Property { family, upper, .. }: Property) -> String {
    let scope = "after: m.q, before: m.r";
    match family {
        Family::AbsentAQ => format!("invariance(m.q, not m.p, lasts: {upper})"),
        Family::AlwaysAQ => format!("invariance(m.q, m.p, lasts: {upper})"),
        Family::AbsentBR => format!("readiness(m.r, not m.p, lasted: {upper})"),
        Family::AlwaysBR => format!("readiness(m.r, m.p, lasted: {upper})"),
        Family::AbsentBQR => format!("absence_between(m.p, {scope})"),
        // There a scope begins after q.
        Family::AlwaysBQR => "universality_between(m.p, after: previously m.q, before: m.r)".to_owned(),
        Family::RecurBQR => format!("recurrence_between(m.p, every: {upper}, {scope})"),
        Family::RecurGLB => format!("recurrence(m.p, every: {upper})"),
        Family::RespondBQR => format!(
            "response_between(m.p, m.s, {scope}) and response_after_until(m.p, m.s, {scope}, within: {upper})"
        ),
        Family::RespondGLB => format!("response(m.p, m.s, within: {upper})"),
    }
}

/// A proposition with this value everywhere breaks the rule of a family.
fn breaks(family: Family) -> (&'static str, bool) {
    match family {
        Family::AbsentAQ | Family::AbsentBQR | Family::AbsentBR => ("p", true),
        Family::RespondBQR | Family::RespondGLB => ("s", false),
        _ => ("p", false),
    }
}

/// Counts satisfied and violated verdicts of a trace. `given`: a proposition with a constant value.
fn verdicts(property: Property, trace: &str, given: Option<(&str, bool)>) -> [usize; 2] {
    let text = format!(
        "use std.patterns topic m {{ p: bool, q: bool, r: bool, s: bool }} property x = {}",
        pattern(property)
    );
    let sources = Sources::alone("timescales", &text);
    let spec = parse_sources(&sources, &ParseOptions::default(), None).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let (mut block, mut monitor) = (Block::new(program.layout()), Monitor::new(program.clone()));
    monitor.report_every(true);
    let mut counts = [0; 2];
    let mut count = |verdict| match verdict {
        Verdict::Satisfied => counts[0] += 1,
        Verdict::Violated => counts[1] += 1,
        Verdict::Inconclusive => {}
    };
    for (i, line) in trace.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        block.clear();
        let row = block.push(TopicId(0), Timestamp::from_nanos(i as i64));
        for field in &program.projections()[0].fields {
            let name = field.path.to_string();
            let given = given.filter(|(given, _)| *given == name).map(|(_, value)| value);
            let value = given.unwrap_or_else(|| line.get(&name).is_some_and(|value| value == true));
            let Slot::Bool(slot) = field.slot else { continue };
            block.set_bool(slot, row, value);
        }
        monitor.step(&block).iter().for_each(|report| count(report.verdict));
    }
    monitor.end().iter().for_each(|report| count(report.verdict));
    counts
}

#[test]
fn the_families_hold_on_their_traces() {
    for property in all() {
        let (length, mut trace) = (4000, Vec::new());
        property.write_trace(length, property.upper, &mut trace).unwrap();
        let trace = String::from_utf8(trace).unwrap();
        let [satisfied, violated] = verdicts(property, &trace, None);
        assert_eq!(violated, 0, "{property:?}: {}", pattern(property));
        assert!(satisfied as u64 + property.upper >= length, "{property:?}: {satisfied}");
        let [_, violated] = verdicts(property, &trace, Some(breaks(property.family)));
        assert!(violated > 0, "{property:?}: {}", pattern(property));
    }
}
