//! Random quantified formulas and traces of the relation tests, with parameters.

#![allow(clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;
use rondel_event::{Comparison, Path, TopicId, Value, ValueType};
use rondel_spec::{Bounds, Expr, ExprId, Key, Property, Slice, SliceId, Spec, TimeModel, VariableId};

use super::definition::timed::{Case, Delivery};
use super::definition::{Content, Event, Timed};

/// Messages of the traces.
pub(crate) mod definition {
    use rondel_event::Value;

    #[derive(Clone, Debug)]
    pub(crate) struct Message {
        pub(crate) topic: u32,
        pub(crate) time: i64,
        pub(crate) fields: Vec<(&'static str, Value)>,
    }
}

#[path = "../../src/relation/tests/random.rs"]
mod random;

/// A quantified formula, and one that compares a bound variable with the parameter, with parameters in some
/// topics.
pub(crate) fn keyed(model: TimeModel, future: bool) -> impl Strategy<Value = Case> {
    let spec = match future {
        true => random::ahead_spec().boxed(),
        false => prop_oneof![3 => random::spec(), 1 => random::by_value_spec()].boxed(),
    };
    let delivery = (vec(1..7_usize, 1..5), vec(any::<u8>(), 1..5));
    let made = (0..12_u8, 0..4_usize, 0..9_i64, 0..9_u64);
    let parts = (spec, random::trace(), vec(0..24_i64, 12), made, delivery);
    parts.prop_map(move |(mut spec, messages, keys, (made, until, more, bound), (cuts, advances))| {
        for node in &mut spec.nodes {
            // `next` is not defined in dense time.
            if let (TimeModel::Dense, Expr::Next(x)) = (model, &*node) {
                *node = Expr::Not(*x);
            }
        }
        let formula = ExprId(spec.nodes.len() as u32 - 1);
        // The parameter is a number or a text.
        let is_text = made >= 8;
        let with_key = beside_key(&mut spec, future, made, bound, is_text);
        let property = |formula| Property {
            time: model,
            slice: Some(SliceId(0)),
            attributes: vec![("unbounded".into(), String::new())],
            ..Property::new("p", formula)
        };
        spec.properties = vec![property(formula), property(with_key)];
        let until = (until < 3).then(|| {
            spec.nodes.push(Expr::On(TopicId([0, 2, 3][until])));
            ExprId(spec.nodes.len() as u32 - 1)
        });
        let topics = 1 + u32::from(made % 4);
        let fields = (0..topics).map(|topic| (TopicId(topic), Path::keys(["k"]))).collect();
        let key = Key { name: "k".into(), value_type: type_of_key(is_text), fields };
        spec.slices.push(Slice { keys: vec![key], until, limit: None });
        let timed = |(message, key): (definition::Message, i64)| {
            let definition::Message { topic, time, fields } = message;
            let mut fields: Vec<_> =
                fields.into_iter().map(|(name, value)| (name, Content::Value(value))).collect();
            if key > 0 {
                let number = key % 3;
                let text = || Value::String(["a", "ab", "c"][number as usize].into());
                fields.push(("k", Content::Value(if is_text { text() } else { Value::Int(number) })));
            }
            Timed { time, arrival: None, event: Event { topic, fields } }
        };
        let trace: Vec<Timed> = messages.into_iter().zip(keys).map(timed).collect();
        let now = trace.last().map_or(0, |last| last.time) + more;
        Case { spec, trace, now, delivery: Delivery { cuts, advances } }
    })
}

fn type_of_key(is_text: bool) -> ValueType {
    if is_text { ValueType::String } else { ValueType::Int }
}

/// Adds a formula that compares a variable bound by an atom with the parameter.
fn beside_key(spec: &mut Spec, future: bool, made: u8, bound: u64, is_text: bool) -> ExprId {
    let value_type = type_of_key(is_text);
    let variable = VariableId(200);
    let mut add = |expr| {
        spec.nodes.push(expr);
        ExprId(spec.nodes.len() as u32 - 1)
    };
    let bounds = Bounds { lower: 0, upper: Some(bound) };
    let bind = |topic: u8, name| Expr::Bind {
        topic: TopicId(topic.into()),
        fields: vec![(Path::keys([if is_text { "s" } else { name }]), variable, value_type)],
    };
    let key = add(Expr::Key(0, value_type));
    let value = add(Expr::Variable(variable, value_type));
    let comparison = match made % 3 {
        0 => Comparison::Equal,
        1 if !is_text => Comparison::Less,
        _ => Comparison::NotEqual,
    };
    let compared = add(Expr::Compare(comparison, value, key));
    let first = add(bind(made % 4, "a"));
    let other = add(bind(made / 3 % 4, "b"));
    let once = if future { Expr::Eventually(bounds, other) } else { Expr::Once(bounds, other) };
    let once = add(once);
    let both = add(Expr::And(compared, once));
    let body = add(Expr::And(first, both));
    add(Expr::Exists(variable, body))
}
