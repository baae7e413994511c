//! Conditions on the parameters alone inside operators that remember.
//!
//! A new instance is a copy of the template, which has seen the messages without key, but knows no key: in it
//! `once (id == "a" or c.p)` is unknown. What such a condition says is the same for ever, so the operator is
//! evaluated once for every truth of it, and the instance takes the one that is its own: `if id == "a" then
//! once true else once c.p`. Each of these is known to the template as well.

use std::collections::{BTreeSet, HashMap, HashSet};

use rondel_event::{Value, ValueType};
use rondel_spec::{Expr, ExprId, Spec};

/// With more conditions in one formula it stays as it is: every one doubles the formula.
const MOST: usize = 6;

/// An equivalent formula, in nodes that are added to the specification; often the same.
pub(crate) fn decided(spec: &mut Spec, formula: ExprId) -> ExprId {
    let Some(nodes) = spec.nodes.get(..=formula.index()) else { return formula };
    // Not all nodes of the specification: there may be thousands of properties.
    let all = reached(nodes, formula, |_| true);
    let tests = tests(nodes, &all);
    if tests.is_empty() {
        return formula;
    }
    let outer = reached(nodes, formula, |i| !remembers(&nodes[i]));
    // By relations and by value quantifiers have rules of their own.
    let is_quantified =
        |i: &usize| matches!(nodes[*i], Expr::Exists(..) | Expr::ForAll(..) | Expr::Bind { .. });
    let inside = |i: usize| -> BTreeSet<usize> {
        let below = reached(nodes, ExprId(i as u32), |i| !tests.contains(&i));
        below.intersection(&tests).copied().collect()
    };
    let asked: HashMap<usize, BTreeSet<usize>> = outer
        .iter()
        .filter(|i| remembers(&nodes[**i]))
        .map(|i| (*i, inside(*i)))
        .filter(|(_, tests)| !tests.is_empty())
        .collect();
    let count = asked.values().flatten().collect::<BTreeSet<_>>().len();
    if count == 0 || count > MOST || all.iter().any(is_quantified) {
        return formula;
    }
    let mut made: HashMap<usize, ExprId> = HashMap::new();
    for i in outer {
        match asked.get(&i) {
            Some(tests) => {
                let chosen = chosen(spec, i, tests);
                made.insert(i, chosen);
            }
            None => with_operands(spec, i, &mut made),
        }
    }
    made.get(&formula.index()).copied().unwrap_or(formula)
}

/// The node for every truth of the conditions in it, and of these the one that applies.
fn chosen(spec: &mut Spec, node: usize, tests: &BTreeSet<usize>) -> ExprId {
    let [yes, no] = [true, false].map(|truth| add(spec, Expr::Literal(Value::Bool(truth))));
    let below = reached(&spec.nodes, ExprId(node as u32), |i| !tests.contains(&i));
    // Of `n` conditions the first decides between the halves of 2^n nodes, and so on.
    let mut ways: Vec<ExprId> = Vec::new();
    for way in 0..1_usize << tests.len() {
        let mut made: HashMap<usize, ExprId> = HashMap::new();
        for (bit, test) in tests.iter().rev().enumerate() {
            made.insert(*test, if way >> bit & 1 == 0 { yes } else { no });
        }
        for i in below.iter().copied().filter(|i| !tests.contains(i)) {
            with_operands(spec, i, &mut made);
        }
        ways.push(made.get(&node).copied().unwrap_or(ExprId(node as u32)));
    }
    for test in tests.iter().rev() {
        let condition = ExprId(*test as u32);
        let pairs = ways.chunks(2).map(|pair| match *pair {
            [yes, no] if yes != no => add(spec, Expr::If(condition, yes, no)),
            [same, ..] => same,
            [] => ExprId(node as u32),
        });
        ways = pairs.collect();
    }
    ways.first().copied().unwrap_or(ExprId(node as u32))
}

/// Adds the node with the operands that were made for it, if there are any.
fn with_operands(spec: &mut Spec, node: usize, made: &mut HashMap<usize, ExprId>) {
    let mut expr = spec.nodes[node].clone();
    let mut is_other = false;
    for operand in expr.operands_mut() {
        if let Some(new) = made.get(&operand.index()).filter(|new| **new != *operand) {
            *operand = *new;
            is_other = true;
        }
    }
    if is_other {
        let new = add(spec, expr);
        made.insert(node, new);
    }
}

fn add(spec: &mut Spec, expr: Expr) -> ExprId {
    spec.nodes.push(expr);
    ExprId(spec.nodes.len() as u32 - 1)
}

/// Whether a node says something about earlier events.
fn remembers(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Previously(_)
            | Expr::Once(..)
            | Expr::Historically(..)
            | Expr::Since(..)
            | Expr::Prev(_)
            | Expr::Window { operand: Some(_), .. }
    )
}

/// A node and what it is made of, operands first; without the operands of nodes that are not entered.
fn reached(nodes: &[Expr], from: ExprId, enters: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut seen = BTreeSet::from([from.index()]);
    let mut open = vec![from.index()];
    while let Some(i) = open.pop() {
        if enters(i) {
            // An operand that does not come before its node is reported when it is translated.
            let operands = nodes[i].operands().map(ExprId::index).filter(|operand| *operand < i);
            open.extend(operands.filter(|operand| seen.insert(*operand)));
        }
    }
    seen
}

/// Which of the nodes of a formula, operands first, are conditions on keys and constants alone.
fn tests(nodes: &[Expr], formula: &BTreeSet<usize>) -> BTreeSet<usize> {
    let (mut pure, mut keyed, mut truth) = (HashSet::new(), HashSet::new(), HashSet::new());
    for &i in formula {
        let node = &nodes[i];
        let all = node.operands().all(|operand| pure.contains(&operand.index()));
        let any = node.operands().any(|operand| keyed.contains(&operand.index()));
        let of = |operand: ExprId| truth.contains(&operand.index());
        let is_truth = match node {
            Expr::Not(_) | Expr::And(..) | Expr::Or(..) | Expr::Definitely(_) => true,
            Expr::Compare(..) | Expr::StartsWith(..) => true,
            Expr::Call(function, ..) => function.result() == ValueType::Bool,
            Expr::Key(_, of) => *of == ValueType::Bool,
            Expr::If(_, x, _) => of(*x),
            _ => false,
        };
        let is_pure = all
            && matches!(
                node,
                Expr::Literal(_)
                    | Expr::Key(..)
                    | Expr::ToFloat(_)
                    | Expr::Unary(..)
                    | Expr::Binary(..)
                    | Expr::Compare(..)
                    | Expr::StartsWith(..)
                    | Expr::Call(..)
                    | Expr::If(..)
                    | Expr::Not(_)
                    | Expr::And(..)
                    | Expr::Or(..)
                    | Expr::Definitely(_)
            );
        if is_truth {
            truth.insert(i);
        }
        if is_pure {
            pure.insert(i);
            if any || matches!(node, Expr::Key(..)) {
                keyed.insert(i);
            }
        }
    }
    keyed.intersection(&truth).copied().collect()
}
