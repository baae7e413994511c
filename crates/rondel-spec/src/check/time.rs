//! Time models of declarations, and translation of bounds.

use rondel_event::Value;

use super::{Checker, Meaning, attributes};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::graph::is_empty;
use crate::spec::{Bounds, TimeModel};
use crate::syntax::ast::{Attribute, Bound, BoundKind, BoundsSyntax, Measure, Name, NodeId, NodeKind};

/// The units of the bounds in an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units {
    /// The location of the first bound with a unit.
    with: Option<Span>,
    /// The location of the first bound without a unit.
    without: Option<Span>,
    /// Whether there is an age, which changes between messages.
    ages: bool,
}

impl Units {
    pub(super) fn add(&mut self, other: Units) {
        self.with = self.with.or(other.with);
        self.without = self.without.or(other.without);
        self.ages |= other.ages;
    }
}

/// Returns the time model for the word in `@time(word)`.
fn model_named(word: &str) -> Option<TimeModel> {
    match word {
        "steps" => Some(TimeModel::Steps),
        "points" => Some(TimeModel::Points),
        "dense" => Some(TimeModel::Dense),
        _ => None,
    }
}

impl Checker<'_> {
    pub(super) fn collect_units(&mut self) {
        // Definitions use the states of machines, and machines use definitions.
        for _ in 0..if self.ast.machines.is_empty() { 1 } else { 2 } {
            for binding in self.order.clone() {
                self.units[binding] = self.units_of(self.ast.bindings[binding].body.nodes());
            }
            self.collect_machine_units();
        }
    }

    /// Returns the units of the bounds in the nodes, including those of definitions.
    pub(super) fn units_of(&mut self, nodes: std::ops::Range<NodeId>) -> Units {
        let ast = self.ast;
        let mut units = Units::default();
        for node in nodes {
            match &self.meanings[node] {
                Meaning::Binding(i) => units.add(self.units[*i]),
                Meaning::InState(machine, _) => {
                    let used = self.machine_units.get(machine.0 as usize);
                    used.into_iter().for_each(|used| units.add(*used));
                }
                Meaning::Formula { bounds, .. } => units.without = units.without.or(*bounds),
                _ => {}
            }
            let kind = &ast.nodes[node].kind;
            units.ages |= matches!(kind, NodeKind::Measure(Measure::Age | Measure::Reaction, _));
            for bound in kind.reaches() {
                self.add_bound(bound, &mut units);
            }
        }
        units
    }

    /// Adds the unit of one bound.
    pub(super) fn add_bound(&mut self, bound: &Bound, units: &mut Units) {
        let with = match &bound.kind {
            // Zero needs no unit.
            BoundKind::Whole(0) => return,
            BoundKind::Whole(_) | BoundKind::Fraction(_) => false,
            BoundKind::Duration(_) => true,
            BoundKind::Name(_) => match self.bounds.get(&bound.span) {
                Some(i) => {
                    let root = self.ast.bindings[*i].body.root;
                    root.is_some_and(|root| self.is_duration(root))
                }
                None => return,
            },
        };
        let place = if with { &mut units.with } else { &mut units.without };
        place.get_or_insert(bound.span);
    }

    /// Returns the time model of a declaration.
    pub(super) fn model(&mut self, attributes: &[Attribute], units: Units) -> TimeModel {
        let chosen = attributes::find(attributes, "time").and_then(|attribute| model_named(&attribute.value));
        // Linear interpolation needs dense time.
        let linear = attributes::linear_interpolation(attributes).map(|_| TimeModel::Dense);
        if let Some(model) = chosen.or(linear).or(self.time) {
            return model;
        }
        match units {
            Units { with: Some(with), without: Some(without), .. } => {
                let message = "this bound has no unit, but another bound of the property has one";
                self.diagnostics.push(
                    Diagnostic::new(Code::MixedUnits, without, message)
                        .label(with, "this bound has a unit")
                        .help("give every bound a unit to measure time, or none to count steps"),
                );
                TimeModel::Dense
            }
            Units { with: Some(_), .. } | Units { without: None, ages: true, .. } => TimeModel::Dense,
            _ => TimeModel::Steps,
        }
    }

    /// Sets the declaration whose bounds are translated next.
    pub(super) fn begin(&mut self, name: &Name, attributes: &[Attribute]) {
        self.implicit_time = (!attributes::chooses_time(attributes)).then_some(name.span);
    }

    /// Adds a label that an option chose the time model.
    pub(super) fn because_of_option(&self, diagnostic: Diagnostic) -> Diagnostic {
        let (Some(span), Some(model)) = (self.implicit_time, self.time) else { return diagnostic };
        let word = match model {
            TimeModel::Steps => "steps",
            TimeModel::Points => "points",
            TimeModel::Dense if self.linear => "linear",
            TimeModel::Dense => "dense",
        };
        let text = format!("time model chosen by `--time {word}` (`time: {word}` in a deployment)");
        diagnostic.label(span, text)
    }

    pub(super) fn lower_bounds(&mut self, syntax: &BoundsSyntax, model: TimeModel) -> Option<Bounds> {
        let lower = match &syntax.lower {
            Some(bound) => self.lower_bound(bound, model)?,
            None => 0,
        };
        let upper = match &syntax.upper {
            Some(bound) => Some(self.lower_bound(bound, model)?),
            None => None,
        };
        let bounds = Bounds { lower, upper };
        if is_empty(bounds) {
            let message = "the bounds are empty";
            self.diagnostics.push(
                Diagnostic::new(Code::EmptyInterval, syntax.span, message)
                    .help("write the bound nearer to the present first"),
            );
        }
        Some(bounds)
    }

    /// Translates a bound into steps or nanoseconds.
    pub(super) fn lower_bound(&mut self, bound: &Bound, model: TimeModel) -> Option<u64> {
        let value = match &bound.kind {
            BoundKind::Whole(steps) if model == TimeModel::Steps => return Some(*steps),
            BoundKind::Whole(seconds) => match i64::try_from(*seconds) {
                Ok(seconds) => Value::Int(seconds),
                Err(_) => return self.too_far(bound.span),
            },
            BoundKind::Fraction(nanos) if model != TimeModel::Steps => return u64::try_from(*nanos).ok(),
            BoundKind::Fraction(_) => {
                let message = "a number of steps must be whole";
                let help = "add a unit to measure time, such as `0.5 s`, or write `@time(dense)` before the property";
                let diagnostic = Diagnostic::new(Code::InvalidBounds, bound.span, message).help(help);
                let diagnostic = self.because_of_option(diagnostic);
                self.diagnostics.push(diagnostic);
                return None;
            }
            BoundKind::Duration(nanos) => Value::Duration(*nanos),
            BoundKind::Name(name) => {
                let i = *self.bounds.get(&bound.span)?;
                let ast = self.ast;
                let binding = &ast.bindings[i];
                // An invalid constant has been reported.
                let id = binding.body.root.and_then(|root| self.lowered_to(root, model))?;
                let found = match self.graph.constant(id) {
                    Some(Value::Int(i)) if *i < 0 => "is negative",
                    Some(Value::Duration(nanos)) if *nanos < 0 => "is negative",
                    Some(Value::Float(x)) if *x < 0.0 || x.is_nan() => "is negative",
                    Some(Value::Float(_)) if model == TimeModel::Steps => "is not an integer",
                    Some(value @ (Value::Int(_) | Value::Duration(_) | Value::Float(_))) => {
                        return self.reach_of(value.clone(), bound.span, model);
                    }
                    Some(_) => "is not an integer",
                    None => "is not a constant",
                };
                let message =
                    format!("expected a non-negative whole number or a duration, but '{name}' {found}");
                let constant = found != "is not a constant";
                let code = if constant { Code::InvalidBounds } else { Code::NotConstant };
                let mut diagnostic = Diagnostic::new(code, bound.span, message);
                if !constant {
                    let help = format!(
                        "declare it as a constant: `const {} = 2 s`",
                        binding.name.span.of(self.text)
                    );
                    diagnostic = diagnostic.help(help);
                }
                self.diagnostics.push(diagnostic.label(binding.name.span, "declared here"));
                return None;
            }
        };
        self.reach_of(value, bound.span, model)
    }

    fn reach_of(&mut self, value: Value, span: Span, model: TimeModel) -> Option<u64> {
        let nanos = match value {
            Value::Int(steps) if model == TimeModel::Steps => return u64::try_from(steps).ok(),
            Value::Duration(_) if model == TimeModel::Steps => {
                let message = "this bound has a unit, but the property counts steps";
                let help = "write a whole number of steps, or `@time(dense)` before the property";
                let diagnostic = Diagnostic::new(Code::WrongTimeModel, span, message).help(help);
                let diagnostic = self.because_of_option(diagnostic);
                self.diagnostics.push(diagnostic);
                return None;
            }
            Value::Int(seconds) => seconds.checked_mul(1_000_000_000),
            Value::Float(seconds) if seconds * 1e9 < i64::MAX as f64 => Some((seconds * 1e9).round() as i64),
            Value::Duration(nanos) => Some(nanos),
            _ => None,
        };
        match nanos {
            Some(nanos) => u64::try_from(nanos).ok(),
            None => self.too_far(span),
        }
    }

    fn too_far<T>(&mut self, span: Span) -> Option<T> {
        let message = "bound is too large: without a unit it counts seconds here";
        self.diagnostics.push(
            Diagnostic::new(Code::InvalidBounds, span, message)
                .help("durations are limited to 292 years (64-bit nanoseconds)"),
        );
        None
    }
}
