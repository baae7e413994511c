//! Derived operators by their own definitions, independent of the operators that they combine.

use rondel_event::{Comparison, Read, Value, Verdict};
use rondel_spec::{Bounds, Call, Expr, ExprId};

use super::evaluate::Evaluator;
use super::truth::{Datum, Truth};

/// An operator at every sample; its operands have been evaluated.
pub fn column(all: &Evaluator<'_>, call: &Call) -> Vec<Datum> {
    let samples = 0..all.timeline.samples.len();
    let decided = |holds: &dyn Fn(usize) -> bool| {
        samples.clone().map(|k| Datum::Truth(Truth::known(holds(k)))).collect()
    };
    match (call.word, &call.operands[..]) {
        ("known", &[x]) => {
            return decided(&|k| is_nan(all, x, k) || all.datum(x, k).value().is_some());
        }
        ("is_nan", &[x]) => return decided(&|k| is_nan(all, x, k)),
        ("finite", &[x]) => {
            return decided(&|k| match all.datum(x, k).value() {
                Some(Value::Float(x)) => x.is_finite(),
                value => value.is_some(),
            });
        }
        _ => {}
    }
    let sides: Vec<[Truth; 2]> = match (call.word, &call.operands[..]) {
        ("hysteresis", &[x, low, high]) => {
            let side = |k| {
                let below = all.at(&Expr::Compare(Comparison::Less, x, low), k).truth();
                let above = all.at(&Expr::Compare(Comparison::Greater, x, high), k).truth();
                // A value that is both counts as below.
                [above.and(below.not()), below]
            };
            samples.map(side).collect()
        }
        ("stable" | "debounce", &[p]) => {
            let bounds = Bounds { lower: call.lasting.unwrap(), upper: None };
            let lasted = |k: usize, truth: &dyn Fn(usize) -> Truth| {
                let (mut any, mut until) = (Truth::FALSE, Truth::TRUE);
                for j in (0..=k).rev() {
                    until = until.and(truth(j));
                    if all.in_bounds(bounds, k, j, false) {
                        any = any.or(until);
                    }
                }
                any
            };
            let side = |k| [lasted(k, &|j| all.truth(p, j)), lasted(k, &|j| all.truth(p, j).not())];
            samples.map(side).collect()
        }
        other => panic!("no definition here of {other:?}"),
    };
    // Before everything else, `debounce` is false.
    let before = if call.word == "debounce" { Some([Truth::FALSE, Truth::TRUE]) } else { None };
    let until = |k: usize| before.iter().chain(&sides[..=k]).copied().collect::<Vec<_>>();
    (0..sides.len()).map(|k| Datum::Truth(last(&until(k)))).collect()
}

/// Whether the value of an expression is NaN. A NaN field has no value for other operators.
fn is_nan(all: &Evaluator<'_>, x: ExprId, k: usize) -> bool {
    let flag = match &all.spec.nodes[x.index()] {
        Expr::Field { topic, path, .. } | Expr::Number { topic, path } => {
            all.held(*topic, path, &Read::IsNan, k).value()
        }
        _ => None,
    };
    flag == Some(Value::Bool(true)) || matches!(all.datum(x, k).value(), Some(Value::Float(x)) if x.is_nan())
}

/// The later one of two events: the latest that certainly occurred, if the other cannot have occurred after
/// it.
fn last(sides: &[[Truth; 2]]) -> Truth {
    let (mut may_be_true, mut may_be_false) = (true, true);
    for [on, off] in sides.iter().rev().map(|sides| sides.map(|truth| truth.verdict().unwrap())) {
        if on == Verdict::Satisfied && may_be_true {
            return Truth::TRUE;
        }
        if off == Verdict::Satisfied && may_be_false {
            return Truth::FALSE;
        }
        may_be_true &= off == Verdict::Violated;
        may_be_false &= on == Verdict::Violated;
    }
    Truth::UNKNOWN
}
