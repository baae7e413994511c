//! Checks and translation of acceptance criteria.

use rondel_event::{Comparison, Value};

use super::names::{Declared, Names};
use super::{Checker, Meaning};
use crate::criterion::{Criterion, Demand};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{BinaryOp, Bounds, Class, Expr, ExprId, Property, SliceId, TimeModel};
use crate::suggest::unknown;
use crate::syntax::ast::{Assert, Bound, Demanded, Name, NodeKind, Prefix};

/// The formula that an assert is about.
struct Operand {
    formula: ExprId,
    time: TimeModel,
    linear: bool,
    slice: Option<SliceId>,
    /// The position of the property, if it is one.
    property: Option<u32>,
}

impl<'a> Checker<'a> {
    pub(super) fn resolve_asserts(&mut self, names: &Names<'a>) {
        let ast = self.ast;
        for assert in &ast.asserts {
            let bounds = assert.span.iter().flat_map(|(begin, end)| [begin, end]);
            let longest = if let Demanded::Longest(_, bound) = &assert.demand { Some(bound) } else { None };
            for bound in bounds.chain(longest) {
                if let Err(diagnostic) = self.resolve_bound(bound, None, names) {
                    self.diagnostics.push(*diagnostic);
                }
            }
            assert.mode.into_iter().for_each(|mode| self.resolve_body(mode, names));
            let named = self.named_alone(assert);
            let is_declared = |name: &Name| {
                let declared = names.get(&name.text, name.span);
                declared.is_some_and(|(declared, _)| {
                    matches!(declared, Declared::Binding(_) | Declared::Topic(_))
                })
            };
            match named {
                Some((name, _)) if self.is_property(name) || !is_declared(name) => {
                    // The name of a property is no expression.
                    assert.body.nodes().for_each(|node| self.meanings[node] = Meaning::Invalid);
                    self.check_asserted(name, names);
                }
                _ => self.resolve_body(assert.body, names),
            }
        }
    }

    fn check_asserted(&mut self, name: &Name, names: &Names<'a>) {
        if self.is_property(name) {
            return;
        }
        let ast = self.ast;
        let properties = ast.property_sources.iter().map(|source| ast.source_name(*source).text.as_str());
        let bindings = ast.bindings.iter().map(|binding| binding.name.text.as_str());
        let bindings =
            bindings.filter(|name| matches!(names.anywhere(name), Some((Declared::Binding(_), _))));
        let candidates: Vec<&str> = properties.chain(bindings).collect();
        let message = format!("unknown property '{}'", name.text);
        let diagnostic = Diagnostic::new(Code::UnknownProperty, name.span, message);
        let diagnostic = unknown(diagnostic, &name.text, &candidates, "declared properties and definitions");
        let diagnostic = self.with_import(diagnostic, name);
        self.diagnostics.push(diagnostic);
    }

    fn is_property(&self, name: &Name) -> bool {
        self.ast.property_sources.iter().any(|source| self.ast.source_name(*source).text == name.text)
    }

    /// Returns the name that an assert is about, and whether it is negated, if its formula is nothing else.
    fn named_alone(&self, assert: &Assert) -> Option<(&'a Name, bool)> {
        let ast = self.ast;
        let (mut node, mut negated) = (assert.body.root?, false);
        loop {
            match &ast.nodes[node].kind {
                NodeKind::Unary(Prefix::Not, operand) => (node, negated) = (*operand, !negated),
                NodeKind::Path(name, steps) if steps.is_empty() => return Some((name, negated)),
                _ => return None,
            }
        }
    }

    pub(super) fn lower_asserts(&mut self) {
        for assert in &self.ast.asserts {
            self.check_attributes(&assert.attributes, false);
            self.refuse_steady(&assert.attributes);
            self.lower_assert(assert);
        }
    }

    fn lower_assert(&mut self, assert: &Assert) -> Option<()> {
        self.begin(&assert.name, &assert.attributes);
        let operand = match self.named_alone(assert).filter(|(name, _)| self.is_property(name)) {
            Some((name, negated)) => self.lower_named(assert, name, negated)?,
            None => self.lower_own(assert)?,
        };
        let Operand { mut formula, time, linear, slice, property } = operand;
        let demand = match &assert.demand {
            Demanded::Always => Demand::Always,
            Demanded::Ever => Demand::Ever,
            Demanded::Share(comparison, share) => Demand::Share(*comparison, *share),
            Demanded::Longest(comparison, bound) => {
                Demand::Longest(*comparison, self.lower_assert_bound(bound, time)?)
            }
            Demanded::Count(comparison, count, violations) => {
                if *violations {
                    formula = self.graph.not(formula);
                }
                Demand::Count(*comparison, *count)
            }
        };
        let span = match &assert.span {
            None => None,
            Some((begin, end)) => {
                let limits = (self.lower_assert_bound(begin, time)?, self.lower_assert_bound(end, time)?);
                if limits.0 > limits.1 {
                    let message = "the span ends before it begins";
                    let place = begin.span.to(end.span);
                    self.diagnostics.push(Diagnostic::new(Code::InvalidBounds, place, message));
                }
                Some(limits)
            }
        };
        let is_measured = span.is_some() || matches!(demand, Demand::Share(..) | Demand::Longest(..));
        if is_measured && let Some(root) = assert.body.root {
            let why = if slice.is_some() {
                Some("a property with `for each` has many verdicts at one time")
            } else if self.is_ahead(formula) {
                Some(
                    "verdicts of operators of the future do not come in the order of the times that they are about",
                )
            } else {
                None
            };
            if let Some(why) = why {
                let what = match demand {
                    Demand::Share(..) => "`share`",
                    Demand::Longest(..) => "`longest`",
                    _ => "`between`",
                };
                let message = format!("{what} cannot be measured here: {why}");
                let help = "`always`, `ever` and `count` without `between` can be asserted of it";
                self.diagnostics
                    .push(Diagnostic::new(Code::Unsupported, self.span(root), message).help(help));
                return None;
            }
        }
        if let Some(mode) = assert.mode {
            let condition = self.lower_root(mode, time)?;
            if matches!(demand, Demand::Count(..)) && !linear && !self.is_ahead(formula) {
                formula = self.begun_within(condition, formula);
            }
            formula = self.known_while(condition, formula);
        }
        let attributes = assert.attributes.iter().map(|a| (a.name.text.clone(), a.value.clone())).collect();
        let criterion = Criterion { demand, span, has_mode: assert.mode.is_some(), property };
        let spec = self.graph.spec_mut();
        let name = unique(&assert.name.text, &spec.properties);
        spec.properties.push(Property {
            attributes,
            time,
            linear,
            slice,
            criterion: Some(criterion),
            ..Property::new(&name, formula)
        });
        spec.places.properties.push(assert.name.span);
        Some(())
    }

    /// The formula of a property.
    fn lower_named(&mut self, assert: &Assert, name: &Name, negated: bool) -> Option<Operand> {
        let properties = &self.graph.spec().properties;
        // One with errors is not there.
        let position = properties.iter().position(|property| property.name == name.text)?;
        let Property { formula, time, linear, slice, .. } = properties[position];
        let chosen =
            assert.attributes.iter().find(|a| super::attributes::chooses_time(std::slice::from_ref(a)));
        if let Some(attribute) = chosen {
            let message =
                format!("the assert judges the verdicts of '{}', which has its own time model", name.text);
            let diagnostic = Diagnostic::new(Code::InvalidAttribute, attribute.span, message);
            self.diagnostics.push(diagnostic.help("write the attribute before the property"));
        }
        let formula = if negated { self.graph.not(formula) } else { formula };
        Some(Operand { formula, time, linear, slice, property: Some(position as u32) })
    }

    /// The formula of the assert itself.
    fn lower_own(&mut self, assert: &Assert) -> Option<Operand> {
        let mut units = self.units_of(assert.body.nodes());
        if let Some(mode) = assert.mode {
            units.add(self.units_of(mode.nodes()));
        }
        let longest = if let Demanded::Longest(_, bound) = &assert.demand { Some(bound) } else { None };
        for bound in assert.span.iter().flat_map(|(begin, end)| [begin, end]).chain(longest) {
            self.add_bound(bound, &mut units);
        }
        let time = self.model(&assert.attributes, units);
        let formula = self.lower_root(assert.body, time)?;
        let linear = self.linear(&assert.name, &assert.attributes, formula, None, time);
        self.check_used_machines(&assert.name, vec![formula], None, time);
        self.check_undivided(&assert.name, vec![formula], None);
        Some(Operand { formula, time, linear, slice: None, property: None })
    }

    fn lower_assert_bound(&mut self, bound: &Bound, time: TimeModel) -> Option<u64> {
        if time == TimeModel::Points {
            let message = "stretches and spans are measured in steps and in dense time";
            let help = "write `@time(dense)` before the property";
            self.diagnostics.push(Diagnostic::new(Code::WrongTimeModel, bound.span, message).help(help));
            return None;
        }
        self.lower_reach(bound, time)
    }

    fn is_ahead(&self, formula: ExprId) -> bool {
        self.graph.spec().below(formula).any(|(_, node)| node.class() == Class::Future)
    }

    /// A formula that is true as another is, in stretches that began while a condition was true.
    fn begun_within(&mut self, condition: ExprId, formula: ExprId) -> ExprId {
        let holds = self.graph.definitely(formula);
        let condition = self.graph.definitely(condition);
        let outside = self.graph.not(condition);
        let began_outside = self.graph.and(holds, outside);
        let is_older = self.graph.since(Bounds::ALL, holds, began_outside);
        let is_new = self.graph.not(is_older);
        self.graph.and(formula, is_new)
    }

    /// A formula that has the truth of another while a condition is true, and is unknown otherwise.
    fn known_while(&mut self, condition: ExprId, formula: ExprId) -> ExprId {
        // The language has no unknown constant, but an integer divided by zero is unknown.
        let [zero, one] = [0, 1].map(|number| self.graph.literal(Value::Int(number)));
        let quotient = self.graph.add(Expr::Binary(BinaryOp::Divide, one, zero));
        let nothing = self.graph.add(Expr::Compare(Comparison::Equal, quotient, one));
        let inside = self.graph.and(condition, formula);
        let outside = self.graph.not(condition);
        let outside = self.graph.and(outside, nothing);
        self.graph.or(inside, outside)
    }
}

/// The text of an assert as its name: with a number behind it if an assert before has the same text, and other attributes.
fn unique(text: &str, before: &[Property]) -> String {
    let is_free = |name: &String| before.iter().all(|property| property.name != *name);
    let numbered = (2..).map(|number| format!("{text} ({number})"));
    std::iter::once(text.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}
