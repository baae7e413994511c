//! Machines: the engine agrees with the definitions, for all block sizes and advances of time.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use definition::drive::{agree, config, drive, signal};
use definition::machines::case;
use definition::timed::{Case, Delivery, Palette};
use definition::{Event, Timed, spec};
use proptest::prelude::*;
use rondel_event::{Value, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Machine, MachineId, State, TimeModel, Transition};

fn past(model: TimeModel) -> Palette {
    Palette { model, future: false, measures: false, extreme: false }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn in_steps(case in case(past(TimeModel::Steps), 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn in_points(case in case(past(TimeModel::Points), 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn in_dense_time(case in case(past(TimeModel::Dense), 0..12)) {
        agree(&case)?;
    }
}

/// A guard that becomes true between events causes a transition there; bounds that start from it, and
/// formulas on earlier states, then change at times of their own.
#[test]
fn guard_becomes_true_between_events() {
    let later = |lower| Bounds { lower, upper: None };
    let nodes = vec![
        Expr::Literal(Value::Bool(true)),
        Expr::Once(later(1), ExprId(0)),
        Expr::InState(MachineId(0), vec![1]),
        Expr::Once(later(4), ExprId(2)),
    ];
    let mut spec = spec(1, nodes, [ExprId(2), ExprId(3)]);
    spec.properties.iter_mut().for_each(|property| property.time = TimeModel::Dense);
    let transition = |from, to, guard, after| Transition {
        from,
        to,
        guard,
        within: None,
        after,
        assignments: vec![],
        text: String::new(),
    };
    spec.machines.push(Machine {
        name: "m".into(),
        states: ["s0", "s1"].map(|name| State { name: name.into(), is_final: false }).to_vec(),
        initial: 0,
        variables: vec![],
        transitions: vec![transition(0, 1, Some(ExprId(1)), None), transition(1, 0, None, Some(2))],
        time: TimeModel::Dense,
        slice: None,
    });
    let trace = vec![Timed { time: 0, arrival: None, event: Event { topic: 0, fields: vec![] } }];
    let case = Case { spec, trace, now: 9, delivery: Delivery { cuts: vec![1], advances: vec![0] } };
    agree(&case).unwrap();
    let given = drive(&case.spec, &case.trace, case.now, &case.delivery);
    let changes = |property| signal(&given, property, &case.trace, case.now).1;
    let (yes, no) = (Verdict::Satisfied, Verdict::Violated);
    assert_eq!(changes(0), [(0, no), (1, yes), (3, no)]);
    assert_eq!(changes(1), [(0, no), (5, yes)]);
}
