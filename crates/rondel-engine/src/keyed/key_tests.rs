//! Conditions on `for each` parameters inside stateful operators.
//!
//! A new instance is a copy of the template, which has processed the messages without a key but has no key
//! itself: there `once (id == "a" or c.p)` is unknown. The truth of such a condition is constant for an
//! instance, so the operator is evaluated once for each truth, and the instance selects its own: `if id ==
//! "a" then once true else once c.p`. Each of these is known to the template too. A condition that may be
//! unknown for some keys, such as `1 / k > 0`, has a third truth.

use std::collections::{BTreeSet, HashMap, HashSet};

use rondel_event::{Comparison, Value, ValueType};
use rondel_spec::{BinaryOp, Class, Expr, ExprId, Spec};

/// Maximum number of variants of an operator, beyond which a formula stays as it is: every condition doubles
/// or triples them.
const MOST: usize = 64;

/// Returns an equivalent formula, in nodes added to the specification; often the formula itself.
pub(crate) fn decided(spec: &mut Spec, formula: ExprId) -> ExprId {
    let Some(nodes) = spec.nodes.get(..=formula.index()) else { return formula };
    // Only the nodes of the formula are visited: there may be thousands of properties.
    let all = reached(nodes, formula, |_| true);
    let tests = tests(nodes, &all);
    if tests.is_empty() {
        return formula;
    }
    let outer = reached(nodes, formula, |i| !remembers(&nodes[i]));
    // Quantifiers have rules of their own, both by relations and by value.
    let is_quantified =
        |i: &usize| nodes[*i].class() == Class::Quantifier || matches!(nodes[*i], Expr::Bind { .. });
    let inside = |i: usize| -> BTreeSet<usize> {
        let below = reached(nodes, ExprId(i as u32), |i| !tests.contains(&i));
        below.intersection(&tests).copied().collect()
    };
    let conditions: HashMap<usize, BTreeSet<usize>> = outer
        .iter()
        .filter(|i| remembers(&nodes[**i]))
        .map(|i| (*i, inside(*i)))
        .filter(|(_, tests)| !tests.is_empty())
        .collect();
    let all_conditions: BTreeSet<usize> = conditions.values().flatten().copied().collect();
    let ways = |test: &usize| if may_be_unknown(nodes, *test) { 3 } else { 2 };
    let variants = all_conditions.iter().fold(1, |count: usize, test| count.saturating_mul(ways(test)));
    if all_conditions.is_empty() || variants > MOST || all.iter().any(is_quantified) {
        return formula;
    }
    let mut made: HashMap<usize, ExprId> = HashMap::new();
    for i in outer {
        match conditions.get(&i) {
            Some(tests) => {
                let chosen = chosen(spec, i, tests);
                made.insert(i, chosen);
            }
            None => with_operands(spec, i, &mut made),
        }
    }
    made.get(&formula.index()).copied().unwrap_or(formula)
}

/// Returns the variants of a node for every truth of its conditions, under a selection of the one that
/// applies.
fn chosen(spec: &mut Spec, node: usize, tests: &BTreeSet<usize>) -> ExprId {
    let tests: Vec<usize> = tests.iter().copied().collect();
    choose(spec, node, &tests, &HashMap::new())
}

/// Returns the variants of a node for every truth of the remaining conditions, with the others replaced by
/// `truths`.
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

/// Returns a condition that is unknown for every key.
fn unknown(spec: &mut Spec) -> ExprId {
    let [one, zero] = [1, 0].map(|number| add(spec, Expr::Literal(Value::Int(number))));
    let quotient = add(spec, Expr::Binary(BinaryOp::Divide, one, zero));
    add(spec, Expr::Compare(Comparison::Equal, quotient, one))
}

/// Whether a condition on parameters is unknown for some of their values: its arithmetic may have no result.
fn may_be_unknown(nodes: &[Expr], test: usize) -> bool {
    let below = reached(nodes, ExprId(test as u32), |_| true);
    below.iter().any(|i| matches!(nodes[*i], Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..)))
}

/// Adds a copy of the node with its replaced operands, if there are any.
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

/// Whether a node depends on earlier events.
fn remembers(expr: &Expr) -> bool {
    expr.class() == Class::Past || matches!(expr, Expr::Window { operand: Some(_), .. })
}

/// Returns a node and its descendants, operands first; without the operands of nodes that are not entered.
fn reached(nodes: &[Expr], from: ExprId, enters: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut seen = BTreeSet::from([from.index()]);
    let mut open = vec![from.index()];
    while let Some(i) = open.pop() {
        if enters(i) {
            // An operand that does not precede its node is reported by the translation.
            let operands = nodes[i].operands().map(ExprId::index).filter(|operand| *operand < i);
            open.extend(operands.filter(|operand| seen.insert(*operand)));
        }
    }
    seen
}

/// Returns the nodes of a formula, operands first, that are conditions on parameters and constants alone.
fn tests(nodes: &[Expr], formula: &BTreeSet<usize>) -> BTreeSet<usize> {
    let (mut pure, mut keyed, mut truth) = (HashSet::new(), HashSet::new(), HashSet::new());
    for &i in formula {
        let node = &nodes[i];
        let all = node.operands().all(|operand| pure.contains(&operand.index()));
        let any = node.operands().any(|operand| keyed.contains(&operand.index()));
        let of = |operand: ExprId| truth.contains(&operand.index());
        let is_truth = match node {
            Expr::Compare(..) | Expr::StartsWith(..) => true,
            Expr::Call(function, ..) => function.result() == ValueType::Bool,
            Expr::Key(_, of) => *of == ValueType::Bool,
            Expr::If(_, x, _) => of(*x),
            _ => node.class() == Class::Connective,
        };
        let is_pure = all
            && matches!(node.class(), Class::Constant | Class::Function | Class::Connective)
            && !matches!(node, Expr::Variable(..));
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
