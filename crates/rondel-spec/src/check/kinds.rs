//! Kinds of expressions and fields, by which types are [inferred](inference) from declarations and uses.
//!
//! Every expression and every undeclared field is a type variable; variables of equal type are united (union-find),
//! and each set has a kind. A kind is coarser than a type: whether a number is an `int` or a `float` is determined
//! later, from the operands up.

mod inference;

use std::collections::{HashMap, HashSet};

use rondel_event::{Path, TopicId, Value, ValueType};

use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::syntax::ast::{NodeId, NodeKind};

/// The kind of a type variable: what is known about its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Anything,
    /// A number, a time or a duration.
    Ordered,
    Number,
    Time,
    Duration,
    Bool,
    Text,
    /// The kind of an invalid expression, which is compatible with every other.
    Invalid,
}

impl Kind {
    pub(super) fn of(value_type: ValueType) -> Kind {
        match value_type {
            ValueType::Bool => Kind::Bool,
            ValueType::Int | ValueType::Float => Kind::Number,
            ValueType::Time => Kind::Time,
            ValueType::Duration => Kind::Duration,
            ValueType::String => Kind::Text,
        }
    }

    /// Returns the kind that satisfies both, if there is one.
    pub(super) fn and(self, other: Kind) -> Option<Kind> {
        match (self, other) {
            (Kind::Invalid, _) | (_, Kind::Invalid) => Some(Kind::Invalid),
            (a, b) if a == b => Some(a),
            (Kind::Anything, k) | (k, Kind::Anything) => Some(k),
            (Kind::Ordered, k @ (Kind::Number | Kind::Time | Kind::Duration))
            | (k @ (Kind::Number | Kind::Time | Kind::Duration), Kind::Ordered) => Some(k),
            _ => None,
        }
    }

    pub(super) fn article(self) -> &'static str {
        match self {
            Kind::Anything | Kind::Invalid => "a value",
            Kind::Ordered => "a number, a time or a duration",
            Kind::Number => "a number",
            Kind::Time => "a time",
            Kind::Duration => "a duration",
            Kind::Bool => "a bool",
            Kind::Text => "a string",
        }
    }
}

/// The reason for a kind, for messages.
#[derive(Clone, Debug)]
struct Reason {
    span: Span,
    declared: bool,
}

#[derive(Debug, Default)]
pub(super) struct Kinds {
    parents: Vec<usize>,
    known: Vec<(Kind, Option<Reason>)>,
    /// The type variables of undeclared fields, with their first use.
    fields: HashMap<(TopicId, Path), (usize, NodeId)>,
    /// The sets whose numbers are parameters, and therefore integers.
    whole: HashSet<usize>,
    /// The undeclared fields that are arguments of type `int`.
    pub(super) ints: HashSet<(TopicId, Path)>,
}

impl Kinds {
    /// Returns one variable for each of the first `nodes` nodes.
    pub(super) fn new(nodes: usize) -> Kinds {
        Kinds {
            parents: (0..nodes).collect(),
            known: vec![(Kind::Anything, None); nodes],
            fields: HashMap::new(),
            whole: HashSet::new(),
            ints: HashSet::new(),
        }
    }

    fn find(&mut self, mut variable: usize) -> usize {
        while self.parents[variable] != variable {
            self.parents[variable] = self.parents[self.parents[variable]];
            variable = self.parents[variable];
        }
        variable
    }

    pub(super) fn kind(&mut self, variable: usize) -> Kind {
        let root = self.find(variable);
        self.known[root].0
    }

    fn reason(&mut self, variable: usize) -> Option<Reason> {
        let root = self.find(variable);
        self.known[root].1.clone()
    }

    fn set(&mut self, variable: usize, kind: Kind, reason: Option<Reason>) {
        let root = self.find(variable);
        self.known[root] = (kind, reason);
    }

    /// Marks a variable as invalid, so that no further error is reported.
    pub(super) fn give_up(&mut self, variable: usize) {
        self.set(variable, Kind::Invalid, None);
    }

    fn unite(&mut self, a: usize, b: usize, kind: Kind, reason: Option<Reason>) {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[b] = a;
        self.known[a] = (kind, reason);
    }

    /// Returns the kind of an undeclared field and its first use, if it has one as a value.
    pub(super) fn of_undeclared(&mut self, topic: TopicId, path: &Path) -> Option<(Kind, NodeId)> {
        let (variable, node) = *self.fields.get(&(topic, path.clone()))?;
        Some((self.kind(variable), node))
    }

    /// Returns the final type of an undeclared field.
    pub(super) fn settled(&mut self, node: NodeId) -> ValueType {
        match self.kind(node) {
            Kind::Bool => ValueType::Bool,
            Kind::Text => ValueType::String,
            Kind::Time => ValueType::Time,
            Kind::Duration => ValueType::Duration,
            Kind::Anything | Kind::Ordered | Kind::Number | Kind::Invalid => {
                let root = self.find(node);
                if self.whole.contains(&root) { ValueType::Int } else { ValueType::Float }
            }
        }
    }

    /// Settles a field bound to a variable, by default as a string; returns whether the default was used.
    pub(super) fn settle_bound(&mut self, node: NodeId) -> bool {
        let guessed = self.kind(node) == Kind::Anything;
        if guessed {
            self.set(node, Kind::Text, None);
        }
        guessed
    }

    /// Settles a field of a parameter, where a number is an integer; returns whether `guess` was used.
    pub(super) fn settle_parameter(&mut self, node: NodeId, guess: Kind) -> bool {
        let guessed = self.kind(node) == Kind::Anything;
        if guessed {
            self.set(node, guess, None);
        }
        let root = self.find(node);
        self.whole.insert(root);
        guessed
    }
}

impl Checker<'_> {
    /// Sets the kind of the result of an operator, which does not depend on its operands.
    pub(super) fn result(&mut self, node: NodeId, kind: Kind) {
        let reason = Reason { span: self.span(node), declared: false };
        self.kinds.set(node, kind, Some(reason));
    }

    pub(super) fn expect(&mut self, node: NodeId, wanted: Kind) {
        if self.is_invalid(node) {
            return;
        }
        let kind = self.kinds.kind(node);
        match kind.and(wanted) {
            Some(both) if both != kind => {
                let reason = Reason { span: self.span(node), declared: false };
                self.kinds.set(node, both, Some(reason));
            }
            Some(_) => {}
            None => self.mismatch(node, wanted),
        }
    }

    /// Requires both operands of `whole` to have the same kind.
    pub(super) fn same(&mut self, a: NodeId, b: NodeId, whole: NodeId) {
        let (kind_a, kind_b) = (self.kinds.kind(a), self.kinds.kind(b));
        // An error in an operand is not reported again.
        let both =
            if self.is_invalid(a) || self.is_invalid(b) { Some(Kind::Invalid) } else { kind_a.and(kind_b) };
        match both {
            Some(Kind::Invalid) => {
                // Uniting a valid variable with an invalid one would hide other errors.
                if whole == b {
                    self.kinds.set(whole, Kind::Invalid, None);
                }
            }
            Some(both) => {
                let (from, new) = if both == kind_a { (a, b) } else { (b, a) };
                let used_here = Reason { span: self.span(new), declared: false };
                // A field without a kind takes the kind of this use.
                let had_none = self.kinds.kind(new) == Kind::Anything && both != Kind::Anything;
                let reason = if had_none { Some(used_here) } else { self.kinds.reason(from) };
                self.kinds.unite(a, b, both, reason);
            }
            None if self.untyped(a) => self.mismatch(a, kind_b),
            None if self.untyped(b) => self.mismatch(b, kind_a),
            None => {
                let what = match self.ast.nodes[whole].kind {
                    NodeKind::Binary(..) | NodeKind::Member { .. } => {
                        format!("cannot compare {} with {}", kind_a.article(), kind_b.article())
                    }
                    NodeKind::If(..) => "the branches of `if` have different types".to_owned(),
                    _ => return self.mismatch(whole, kind_a),
                };
                let (span_a, span_b) = (self.span(a), self.span(b));
                let mut diagnostic = Diagnostic::new(Code::TypeMismatch, self.span(whole), what)
                    .label(span_a, format!("this is {}", kind_a.article()))
                    .label(span_b, format!("this is {}", kind_b.article()));
                diagnostic.help = match (kind_a, kind_b) {
                    (Kind::Number, Kind::Duration) => self.unit_advice(a),
                    (Kind::Duration, Kind::Number) => self.unit_advice(b),
                    _ => None,
                };
                if kind_a == Kind::Bool || kind_b == Kind::Bool {
                    diagnostic = diagnostic.help("use a boolean without a comparison: `p` or `not p`");
                }
                let advice = self.enumeration_advice(a, b).or_else(|| self.enumeration_advice(b, a));
                diagnostic.help = advice.or(diagnostic.help);
                self.invalidate(whole, diagnostic);
            }
        }
    }

    fn untyped(&self, node: NodeId) -> bool {
        matches!(self.meanings[node], Meaning::Field { declared: None, .. })
            || matches!(self.ast.nodes[node].kind, NodeKind::Variable(_))
    }

    /// Reports that `node` does not have the expected kind.
    pub(super) fn mismatch(&mut self, node: NodeId, wanted: Kind) {
        let (kind, reason) = (self.kinds.kind(node), self.kinds.reason(node));
        let span = self.span(node);
        let elsewhere = reason.filter(|r| r.span != span);
        let words = span.of(self.text);
        let diagnostic = if self.untyped(node) {
            let message =
                format!("'{words}' is used as {} here and as {} elsewhere", wanted.article(), kind.article());
            let diagnostic = Diagnostic::new(Code::ConflictingUse, span, message);
            match elsewhere {
                Some(r) => diagnostic.label(r.span, format!("used as {} here", kind.article())),
                None => diagnostic,
            }
        } else {
            let message = format!("expected {}, found {}", wanted.article(), kind.article());
            let diagnostic = Diagnostic::new(Code::TypeMismatch, span, message);
            match elsewhere {
                Some(r) if r.declared => diagnostic.label(r.span, "declared here"),
                Some(r) => diagnostic.label(r.span, format!("{} because of this use", kind.article())),
                None => diagnostic,
            }
        };
        let is_text = matches!(self.ast.nodes[node].kind, NodeKind::Literal(Value::String(_)));
        let compare = wanted == Kind::Bool && matches!(kind, Kind::Number | Kind::Text) && !is_text;
        let diagnostic = match (compare, wanted, kind) {
            _ if self.ast.single && is_text => {
                diagnostic.help(format!("write a point before the name of a field in quotes: `.{words}`"))
            }
            (true, ..) => diagnostic.help("compare it with a value, for example with `==`"),
            (_, Kind::Bool, Kind::Duration) => diagnostic.help(
                "write a time in brackets behind the operator: `p since[0, 5 s] q`, `historically[0, 5 s] p`",
            ),
            (_, Kind::Duration, Kind::Number) => Diagnostic { help: self.unit_advice(node), ..diagnostic },
            _ => diagnostic,
        };
        self.invalidate(node, diagnostic);
    }
}
