//! Conditions on the parameters alone inside operators that remember.
//!
//! A new instance is a copy of the template, which has seen the messages without key, but knows no key: in it
//! `once (id == "a" or c.p)` is unknown. What such a condition says is the same for ever, so the operator is
//! evaluated once for every truth of it, and the instance takes the one that is its own: `if id == "a" then
//! once true else once c.p`. Each of these is known to the template as well. A condition that may be unknown for some
//! keys, such as `1 / k > 0`, has a third truth.

use std::collections::{BTreeSet, HashMap, HashSet};

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{BinaryOp, Expr, ExprId, Spec};

/// With more variants of one operator a formula stays as it is: every condition doubles them, or makes three of one.
const MOST: usize = 64;

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
    let all_asked: BTreeSet<usize> = asked.values().flatten().copied().collect();
    let ways = |test: &usize| if may_be_unknown(nodes, *test) { 3 } else { 2 };
    let variants = all_asked.iter().fold(1, |count: usize, test| count.saturating_mul(ways(test)));
    if all_asked.is_empty() || variants > MOST || all.iter().any(is_quantified) {
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
    let tests: Vec<usize> = tests.iter().copied().collect();
    choose(spec, node, &tests, &HashMap::new())
}

/// The node, where some conditions are replaced by their truths, for every truth of the others.
fn choose(spec: &mut Spec, node: usize, tests: &[usize], truths: &HashMap<usize, ExprId>) -> ExprId {
    let Some((&test, rest)) = tests.split_first() else {
        let below = reached(&spec.nodes, ExprId(node as u32), |i| !truths.contains_key(&i));
        let mut made = truths.clone();
        for i in below.into_iter().filter(|i| !truths.contains_key(i)) {
            with_operands(spec, i, &mut made);
        }
        return made.get(&node).copied().unwrap_or(ExprId(node as u32));
    };
    let condition = ExprId(test as u32);
    let may_be_unknown = may_be_unknown(&spec.nodes, test);
    let with = |spec: &mut Spec, truth: ExprId| {
        let truths = truths.iter().map(|(test, truth)| (*test, *truth)).chain([(test, truth)]).collect();
        choose(spec, node, rest, &truths)
    };
    let [yes, no] = [true, false].map(|truth| add(spec, Expr::Literal(Value::Bool(truth))));
    let [yes, no] = [yes, no].map(|truth| with(spec, truth));
    if !may_be_unknown {
        return if yes == no { yes } else { add(spec, Expr::If(condition, yes, no)) };
    }
    let unknown = unknown(spec);
    let otherwise = with(spec, unknown);
    if yes == no && no == otherwise {
        return yes;
    }
    let is_false = add(spec, Expr::Not(condition));
    let [is_true, is_false] = [condition, is_false].map(|test| add(spec, Expr::Definitely(test)));
    let rest = add(spec, Expr::If(is_false, no, otherwise));
    add(spec, Expr::If(is_true, yes, rest))
}

/// A condition that is unknown for whatever keys.
fn unknown(spec: &mut Spec) -> ExprId {
    let [one, zero] = [1, 0].map(|number| add(spec, Expr::Literal(Value::Int(number))));
    let quotient = add(spec, Expr::Binary(BinaryOp::Divide, one, zero));
    add(spec, Expr::Compare(Comparison::Equal, quotient, one))
}

/// Whether a condition on keys is unknown for some keys: what it computes may have no result.
fn may_be_unknown(nodes: &[Expr], test: usize) -> bool {
    let below = reached(nodes, ExprId(test as u32), |_| true);
    below.iter().any(|i| matches!(nodes[*i], Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..)))
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
