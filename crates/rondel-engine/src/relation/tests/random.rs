//! Random formulas with variables, most of which can be monitored, and random traces.

use proptest::collection::vec;
use proptest::prelude::*;
use rondel_event::{Comparison, Path, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Bounds, Expr, ExprId, Spec, Topic, VariableId};

use super::definition::Message;

#[path = "random_ahead.rs"]
mod ahead;

pub(super) use ahead::ahead_spec;

const TEXTS: [&str; 3] = ["a", "ab", "b"];

pub(super) fn trace() -> impl Strategy<Value = Vec<Message>> {
    let int = || prop_oneof![9 => (0..3_i64).prop_map(Value::Int), 1 => Just(Value::String("x".into()))];
    let text = (0..3_usize).prop_map(|i| Value::String(TEXTS[i].into()));
    let field = |name, value: BoxedStrategy<Value>| {
        proptest::option::weighted(0.9, value).prop_map(move |value| value.map(|value| (name, value)))
    };
    let fields = (field("a", int().boxed()), field("b", int().boxed()), field("s", text.boxed()));
    let message = (0..4_u32, 0..3_i64, fields);
    vec(message, 1..12).prop_map(|messages| {
        let mut time = 1000;
        let mut out = Vec::new();
        for (topic, gap, (a, b, s)) in messages {
            time += gap;
            out.push(Message { topic, time, fields: [a, b, s].into_iter().flatten().collect() });
        }
        out
    })
}

/// Source of choices; zeros once they are used up.
struct Kitchen {
    choices: std::vec::IntoIter<u8>,
    nodes: Vec<Expr>,
    variables: Vec<ValueType>,
}

fn written(write: fn(&mut Kitchen)) -> impl Strategy<Value = Spec> {
    vec(any::<u8>(), 1..60).prop_map(move |choices| {
        let mut kitchen = Kitchen { choices: choices.into_iter(), nodes: Vec::new(), variables: Vec::new() };
        write(&mut kitchen);
        let topic =
            |i| Topic { name: format!("t{i}"), address: format!("t{i}"), type_name: None, schema: None };
        Spec { topics: (0..4).map(topic).collect(), nodes: kitchen.nodes, ..Spec::default() }
    })
}

pub(super) fn spec() -> impl Strategy<Value = Spec> {
    written(|kitchen| _ = kitchen.quantified())
}

/// Quantified formula that can mostly be evaluated by value: atoms have the variables in the same fields.
pub(super) fn by_value_spec() -> impl Strategy<Value = Spec> {
    written(Kitchen::touched)
}

/// Formula over two relations, of which some pair must differ and meet further conditions.
#[allow(dead_code, reason = "the tests of instances read this file, too")]
pub(super) fn apart_spec() -> impl Strategy<Value = Spec> {
    written(Kitchen::apart)
}

impl Kitchen {
    /// Adds a closed formula as the last node.
    #[allow(dead_code, reason = "likewise")]
    fn apart(&mut self) {
        self.variables = vec![ValueType::Int; 3];
        let [x, y, z] = [0, 1, 2].map(VariableId);
        let shared: &[VariableId] = if self.choose(3) == 0 { &[z] } else { &[] };
        let mut conjuncts: Vec<ExprId> = [x, y]
            .into_iter()
            .map(|own| {
                let variables = [&[own], shared].concat();
                let lasts = self.choose(5) > 0;
                let inner =
                    if self.choose(3) == 0 { self.safe(&variables, 2) } else { self.atom(&variables) };
                let bounds = self.bounds();
                if lasts { self.add(Expr::Once(bounds, inner)) } else { inner }
            })
            .collect();
        let [of_x, of_y] = [x, y].map(|v| self.add(Expr::Variable(v, ValueType::Int)));
        conjuncts.push(if self.choose(2) == 0 {
            self.add(Expr::Compare(Comparison::NotEqual, of_x, of_y))
        } else {
            let equal = self.add(Expr::Compare(Comparison::Equal, of_x, of_y));
            self.add(Expr::Not(equal))
        });
        match self.choose(5) {
            0 => conjuncts.push(self.comparison(&[y])),
            1 => conjuncts.push(self.closed()),
            _ => {}
        }
        let mut formula = conjuncts[0];
        for &conjunct in &conjuncts[1..] {
            formula = self.add(Expr::And(formula, conjunct));
        }
        let is_all = self.choose(2) == 0;
        if is_all {
            formula = self.add(Expr::Not(formula));
        }
        for &variable in shared.iter().chain(&[y, x]) {
            let expr = if is_all { Expr::ForAll(variable, formula) } else { Expr::Exists(variable, formula) };
            formula = self.add(expr);
        }
    }

    /// Adds a closed formula that the values of the message decide, as the last node.
    fn touched(&mut self) {
        let x = self.variable();
        let variables = if self.choose(3) == 2 { vec![x, self.variable()] } else { vec![x] };
        let guard = self.idle(&variables, 3);
        match self.choose(3) {
            0 => {
                let not = self.add(Expr::Not(guard));
                let mut formula = not;
                for variable in variables.into_iter().rev() {
                    formula = self.add(Expr::ForAll(variable, formula));
                }
            }
            1 => {
                let mut formula = guard;
                for variable in variables.into_iter().rev() {
                    formula = self.add(Expr::Exists(variable, formula));
                }
                self.add(Expr::Not(formula));
            }
            _ => {
                let then = self.seen(&variables, 3);
                let (not, mut formula) = (self.add(Expr::Not(guard)), then);
                formula = self.add(Expr::Or(not, formula));
                for variable in variables.into_iter().rev() {
                    formula = self.add(Expr::ForAll(variable, formula));
                }
                if self.choose(3) == 0 {
                    let bounds = self.bounds();
                    self.add(Expr::Historically(bounds, formula));
                }
            }
        }
    }

    /// Adds a message with the variables.
    fn message(&mut self, variables: &[VariableId]) -> ExprId {
        let names = if self.choose(12) == 0 { ["b", "a"] } else { ["a", "b"] };
        let fields: Vec<(&str, VariableId)> = variables
            .iter()
            .zip(names)
            .map(|(variable, name)| (if self.is_int(*variable) { name } else { "s" }, *variable))
            .collect();
        let topic = u32::from(self.choose(3));
        self.bind(topic, &fields)
    }

    /// Adds a formula that is false at messages without the variables.
    fn idle(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        let depth = depth.saturating_sub(1);
        match self.choose(if depth == 0 { 3 } else { 6 }) {
            0..=2 => self.message(variables),
            3 => {
                let (x, y) = (self.idle(variables, depth), self.idle(variables, depth));
                self.add(Expr::Or(x, y))
            }
            4 => {
                let x = self.idle(variables, depth);
                self.add(Expr::Definitely(x))
            }
            _ => {
                let (x, y) = (self.message(variables), self.seen(variables, depth));
                self.add(Expr::And(x, y))
            }
        }
    }

    /// Adds a formula that mostly keeps its truth at messages without the variables.
    fn lasting(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        let depth = depth.saturating_sub(1);
        match self.choose(if depth == 0 { 2 } else { 7 }) {
            0 | 1 => {
                let x = self.idle(variables, depth);
                self.add(Expr::Once(Bounds::ALL, x))
            }
            2 => {
                let (x, y) = (self.idle(variables, depth), self.idle(variables, depth));
                let not = self.add(Expr::Not(x));
                self.add(Expr::Since(Bounds::ALL, not, y))
            }
            3 => {
                let x = self.lasting(variables, depth);
                self.add(Expr::Not(x))
            }
            4 => {
                let (x, y) = (self.lasting(variables, depth), self.lasting(variables, depth));
                if self.choose(2) == 0 { self.add(Expr::And(x, y)) } else { self.add(Expr::Or(x, y)) }
            }
            5 => {
                let (x, y) = (self.lasting(variables, depth), self.message(variables));
                let not = self.add(Expr::Not(y));
                self.add(Expr::And(x, not))
            }
            _ => {
                let (x, y) = (self.lasting(variables, depth), self.idle(variables, depth));
                self.add(Expr::Or(x, y))
            }
        }
    }

    /// Adds a formula for messages with the variables.
    fn seen(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        let depth = depth.saturating_sub(1);
        let bounds = self.bounds();
        match self.choose(if depth == 0 { 3 } else { 15 }) {
            0 => self.closed(),
            1 => self.message(variables),
            2 | 3 => {
                let x = self.idle(variables, depth);
                self.add(Expr::Once(bounds, x))
            }
            4 => {
                let x = self.idle(variables, depth);
                let not = self.add(Expr::Not(x));
                self.add(Expr::Historically(bounds, not))
            }
            5 => {
                let (x, y) = (self.idle(variables, depth), self.idle(variables, depth));
                let not = self.add(Expr::Not(x));
                self.add(Expr::Since(bounds, not, y))
            }
            6 | 11..=14 => {
                let ever = self.lasting(variables, depth);
                match self.choose(4) {
                    0 => self.add(Expr::Previously(ever)),
                    1 => {
                        let before = self.add(Expr::Previously(ever));
                        self.add(Expr::Not(before))
                    }
                    2 => self.add(Expr::Historically(Bounds::ALL, ever)),
                    _ => self.add(Expr::Once(Bounds::ALL, ever)),
                }
            }
            7 => self.comparison(variables),
            // Most of these can only be evaluated by relations.
            10 => {
                let x = match self.choose(2) {
                    0 => self.seen(variables, depth),
                    _ => self.lasting(variables, depth),
                };
                let y = self.idle(variables, depth);
                match self.choose(3) {
                    0 => self.add(Expr::Once(bounds, x)),
                    1 => self.add(Expr::Since(bounds, x, y)),
                    _ => self.add(Expr::Previously(x)),
                }
            }
            8 => {
                let (x, y) = (self.seen(variables, depth), self.seen(variables, depth));
                match self.choose(3) {
                    0 => self.add(Expr::And(x, y)),
                    1 => self.add(Expr::Or(x, y)),
                    _ => self.add(Expr::Compare(Comparison::Equal, x, y)),
                }
            }
            _ => {
                let x = self.seen(variables, depth);
                self.add(Expr::Not(x))
            }
        }
    }
}

impl Kitchen {
    fn choose(&mut self, n: u8) -> u8 {
        self.choices.next().unwrap_or(0) % n
    }

    fn add(&mut self, expr: Expr) -> ExprId {
        self.nodes.push(expr);
        ExprId(self.nodes.len() as u32 - 1)
    }

    fn variable(&mut self) -> VariableId {
        let value_type = if self.choose(6) == 5 { ValueType::String } else { ValueType::Int };
        self.variables.push(value_type);
        VariableId(self.variables.len() as u32 - 1)
    }

    fn is_int(&self, variable: VariableId) -> bool {
        self.variables[variable.0 as usize] == ValueType::Int
    }

    /// Adds a closed formula as the last node.
    fn quantified(&mut self) -> ExprId {
        let x = self.variable();
        match self.choose(4) {
            0 | 1 => {
                let body = self.safe(&[x], 4);
                self.add(Expr::Exists(x, body))
            }
            2 => {
                let guard = self.safe(&[x], 3);
                let then = self.any(&[x], 3);
                let not = self.add(Expr::Not(guard));
                let body = self.add(Expr::Or(not, then));
                self.add(Expr::ForAll(x, body))
            }
            _ => {
                let body = self.any(&[x], 4);
                self.add(Expr::Exists(x, body))
            }
        }
    }

    fn bounds(&mut self) -> Bounds {
        let lower = if self.choose(3) == 0 { u64::from(self.choose(4)) } else { 0 };
        let upper = match self.choose(5) {
            0 => None,
            n => Some(lower + u64::from(n) - 1),
        };
        match self.choose(30) {
            29 => Bounds { lower: 2, upper: Some(1) },
            _ => Bounds { lower, upper },
        }
    }

    fn bind(&mut self, topic: u32, fields: &[(&str, VariableId)]) -> ExprId {
        let fields =
            fields.iter().map(|(name, v)| (Path::keys([*name]), *v, self.variables[v.0 as usize])).collect();
        self.add(Expr::Bind { topic: TopicId(topic), fields })
    }

    /// Adds an atom that binds exactly these variables.
    fn atom(&mut self, variables: &[VariableId]) -> ExprId {
        let topic = u32::from(self.choose(3));
        match *variables {
            [] => self.closed(),
            [x] if !self.is_int(x) => self.bind(topic, &[("s", x)]),
            [x] => match self.choose(5) {
                0..=2 => self.bind(topic, &[("a", x)]),
                3 => self.bind(topic, &[("b", x)]),
                _ => self.bind(topic, &[("a", x), ("b", x)]),
            },
            [x, y] if self.is_int(x) && self.is_int(y) => match self.choose(2) {
                0 => self.bind(topic, &[("a", x), ("b", y)]),
                _ => self.bind(topic, &[("b", x), ("a", y)]),
            },
            [x, ref rest @ ..] => {
                let (left, right) = (self.atom(&[x]), self.atom(rest));
                self.add(Expr::And(left, right))
            }
        }
    }

    fn closed(&mut self) -> ExprId {
        match self.choose(3) {
            0 => {
                let topic = TopicId(u32::from(self.choose(4)));
                self.add(Expr::On(topic))
            }
            1 => {
                let x = self.int_field();
                let y = self.add(Expr::Literal(Value::Int(1)));
                self.add(Expr::Compare(Comparison::Less, x, y))
            }
            _ => {
                let on = self.add(Expr::On(TopicId(1)));
                let bounds = self.bounds();
                self.add(Expr::Once(bounds, on))
            }
        }
    }

    fn int_field(&mut self) -> ExprId {
        let topic = TopicId(u32::from(self.choose(4)));
        self.add(Expr::Field { topic, path: Path::keys(["a"]), value_type: ValueType::Int })
    }

    /// Adds a formula that finitely many valuations satisfy.
    fn safe(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        if depth == 0 {
            return self.atom(variables);
        }
        let depth = depth - 1;
        match self.choose(16) {
            0 | 1 => self.atom(variables),
            2 | 3 => {
                let (x, y) = (self.safe(variables, depth), self.any(variables, depth));
                if self.choose(2) == 0 { self.add(Expr::And(x, y)) } else { self.add(Expr::And(y, x)) }
            }
            4 => {
                let (x, y) = (self.safe(variables, depth), self.safe(variables, depth));
                self.add(Expr::Or(x, y))
            }
            5 | 6 => {
                let (bounds, x) = (self.bounds(), self.safe(variables, depth));
                self.add(Expr::Once(bounds, x))
            }
            7 | 8 => {
                let bounds = self.bounds();
                let (p, q) = (self.any(variables, depth), self.safe(variables, depth));
                self.add(Expr::Since(bounds, p, q))
            }
            9 => {
                let x = self.safe(variables, depth);
                self.add(Expr::Previously(x))
            }
            10 | 11 => {
                let y = self.variable();
                let both = [variables, &[y]].concat();
                let x = self.safe(&both, depth);
                self.add(Expr::Exists(y, x))
            }
            12 => {
                let (bounds, x) = (self.bounds(), self.safe(variables, depth));
                let bounds = Bounds { lower: 0, ..bounds };
                self.add(Expr::Historically(bounds, x))
            }
            13 => {
                let x = self.safe(variables, depth);
                let (y, z) = (self.any(variables, depth), self.any(variables, depth));
                let either = self.add(Expr::Or(y, z));
                self.add(Expr::And(x, either))
            }
            14 => {
                let x = self.safe(variables, depth);
                self.add(Expr::Definitely(x))
            }
            _ => {
                let middle = variables.len() / 2;
                let (x, y) = (
                    self.safe(&variables[..=middle.min(variables.len() - 1)], depth),
                    self.safe(&variables[middle..], depth),
                );
                self.add(Expr::And(x, y))
            }
        }
    }

    /// Adds a formula whose free variables are among these.
    fn any(&mut self, variables: &[VariableId], depth: u8) -> ExprId {
        if depth == 0 || variables.is_empty() {
            return self.closed();
        }
        let depth = depth - 1;
        let some = if self.choose(2) == 0 { variables } else { &variables[..1] };
        match self.choose(12) {
            0..=2 => self.safe(some, depth),
            3..=5 => {
                let x = self.safe(some, depth);
                self.add(Expr::Not(x))
            }
            6 => {
                let x = self.any(variables, depth);
                self.add(Expr::Not(x))
            }
            7 => self.closed(),
            8 => {
                let (x, y) = (self.any(variables, depth), self.any(variables, depth));
                match self.choose(3) {
                    0 => self.add(Expr::And(x, y)),
                    1 => self.add(Expr::Or(x, y)),
                    _ => self.add(Expr::Compare(Comparison::Equal, x, y)),
                }
            }
            9 => {
                let x = self.any(variables, depth);
                let bounds = self.bounds();
                match self.choose(3) {
                    0 => self.add(Expr::Previously(x)),
                    1 => self.add(Expr::Historically(bounds, x)),
                    _ => self.add(Expr::Once(bounds, x)),
                }
            }
            10 => {
                // For all values of another variable.
                let y = self.variable();
                let both = [variables, &[y]].concat();
                let (guard, then) = (self.safe(&[y], depth), self.any(&both, depth));
                let not = self.add(Expr::Not(guard));
                let body = self.add(Expr::Or(not, then));
                self.add(Expr::ForAll(y, body))
            }
            _ => self.comparison(variables),
        }
    }

    fn comparison(&mut self, variables: &[VariableId]) -> ExprId {
        let x = variables[usize::from(self.choose(variables.len() as u8))];
        let y = variables[usize::from(self.choose(variables.len() as u8))];
        let of = |kitchen: &mut Self, v: VariableId| {
            let value_type = kitchen.variables[v.0 as usize];
            kitchen.add(Expr::Variable(v, value_type))
        };
        let left = of(self, x);
        if !self.is_int(x) {
            let literal = self.add(Expr::Literal(Value::String("a".into())));
            let field =
                Expr::Field { topic: TopicId(3), path: Path::keys(["s"]), value_type: ValueType::String };
            return match self.choose(3) {
                0 => self.add(Expr::StartsWith(left, literal)),
                1 => self.add(Expr::Compare(Comparison::Equal, left, literal)),
                _ => {
                    let field = self.add(field);
                    self.add(Expr::Compare(Comparison::NotEqual, left, field))
                }
            };
        }
        let right = match self.choose(4) {
            0 => self.add(Expr::Literal(Value::Int(1))),
            1 => self.int_field(),
            2 if self.is_int(y) => of(self, y),
            _ => {
                let (x, one) = (of(self, x), self.add(Expr::Literal(Value::Int(1))));
                self.add(Expr::Binary(BinaryOp::Add, x, one))
            }
        };
        let comparison =
            [Comparison::Equal, Comparison::Less, Comparison::NotEqual, Comparison::GreaterOrEqual]
                [usize::from(self.choose(4))];
        self.add(Expr::Compare(comparison, left, right))
    }
}
