//! Conditions on the elements of an array: `any r in scan.ranges: r < 0.2`.

use rondel_event::{Comparison, Condition, Path, Segment, Test, Value, ValueType};

use super::arithmetic::measurable;
use super::kinds::Kind;
use super::names::{Declared, Names};
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Expr, ExprId, SchemaType, TimeModel};
use crate::syntax::ast::{ElementTest, ElementsSyntax, NodeId, NodeKind};
use crate::type_names::{article, describe};

impl<'a> Checker<'a> {
    /// Resolves the array, and the fields of its elements as far as their types are declared.
    pub(super) fn elements(
        &mut self,
        node: NodeId,
        syntax: &'a ElementsSyntax,
        within: Option<usize>,
        names: &Names<'a>,
    ) -> Meaning {
        if let Some(element) = &syntax.element {
            self.warn_of_shadowed(element, names);
        }
        let (name, steps) = (&syntax.array, &syntax.steps);
        let topic = match names.get(&name.text, name.span) {
            Some((Declared::Topic(topic), _))
                if !steps.is_empty() && !self.locals.contains_key(name.text.as_str()) =>
            {
                *topic
            }
            _ => {
                let of = self.path(node, name, steps, within, names);
                return self.elements_of(of, syntax);
            }
        };
        let path = Path(steps.iter().map(|(step, _)| step.clone()).collect());
        let Some(fields) = self.fields(topic) else {
            return Meaning::Elements { topic, path, declared: vec![None; syntax.tests.len()] };
        };
        let (found, place) = match fields.find(steps, syntax.place) {
            Ok(found) => found,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                return Meaning::Invalid;
            }
        };
        if let Some(mut diagnostic) = self.no_elements(syntax, found) {
            if let Some(place) = place {
                diagnostic = diagnostic.label(place, "declared here");
            }
            self.diagnostics.push(diagnostic);
            return Meaning::Invalid;
        }
        let mut declared = Vec::new();
        for test in &syntax.tests {
            let element = [(Segment::Index(0), syntax.place)];
            let whole = [steps.as_slice(), &element, &test.steps].concat();
            let found = match found {
                SchemaType::Open => Ok(None),
                _ => fields.find_value(&whole, test.span),
            };
            match found {
                Ok(found) => declared.push(found.map(|(value_type, _)| value_type)),
                Err(diagnostic) => {
                    self.diagnostics.push(*diagnostic);
                    return Meaning::Invalid;
                }
            }
        }
        Meaning::Elements { topic, path, declared }
    }

    /// Returns the meaning of conditions on the elements of something that is no field of a topic with a schema.
    fn elements_of(&mut self, of: Meaning, syntax: &ElementsSyntax) -> Meaning {
        match of {
            Meaning::Field { topic, path, .. } => {
                Meaning::Elements { topic, path, declared: vec![None; syntax.tests.len()] }
            }
            Meaning::Invalid => Meaning::Invalid,
            _ => {
                let message = format!("expected an array, but '{}' is not a field", syntax.array.text);
                let diagnostic = Diagnostic::new(Code::TypeMismatch, syntax.place, message);
                self.diagnostics.push(diagnostic.help("write `any r in topic.field: r < 0.2`"));
                Meaning::Invalid
            }
        }
    }

    /// Returns the error for a field that has no elements, or none that a measure takes.
    fn no_elements(&self, syntax: &ElementsSyntax, found: &SchemaType) -> Option<Diagnostic> {
        let is_measure = syntax.quantifier.is_measure();
        let word = syntax.quantifier.as_str();
        if let SchemaType::Array(element, _) = found {
            let is_number =
                matches!(**element, SchemaType::Value(ValueType::Int | ValueType::Float) | SchemaType::Open);
            let message =
                format!("`{word}` needs an array of numbers, but each element is {}", describe(element));
            let diagnostic = Diagnostic::new(Code::TypeMismatch, syntax.place, message);
            return (is_measure && !is_number).then_some(diagnostic);
        }
        if matches!(found, SchemaType::Open) {
            return None;
        }
        if !is_measure {
            let message = format!("expected an array, found {}", describe(found));
            return Some(Diagnostic::new(Code::TypeMismatch, syntax.place, message));
        }
        let kind = match found {
            SchemaType::Value(value_type) => Kind::of(*value_type),
            _ => Kind::Anything,
        };
        let written = syntax.place.of(self.text);
        let message = format!("`{word}` takes an array, or numbers over a window, found {}", describe(found));
        let diagnostic = Diagnostic::new(Code::TypeMismatch, syntax.place, message);
        Some(diagnostic.help(match kind {
            Kind::Text | Kind::Bool => measurable(word, &[written], kind),
            _ => format!("write `{word}({written}) over 10 s` for the {word} of a window"),
        }))
    }

    /// Adds the node of conditions on elements.
    pub(super) fn lower_elements(&mut self, node: NodeId, model: TimeModel) -> Option<ExprId> {
        let ast = self.ast;
        let (Meaning::Elements { topic, path, declared }, NodeKind::Elements(syntax)) =
            (self.meanings[node].clone(), &ast.nodes[node].kind)
        else {
            return None;
        };
        let mut tests = Vec::new();
        for (test, declared) in syntax.tests.iter().zip(declared) {
            let value = self.lowered_to(test.value, model)?;
            let both = [test.comparison, opposite(test.comparison)];
            match both.map(|comparison| self.condition(test, comparison, value, declared)) {
                [Ok(met), Ok(unmet)] => {
                    let path = Path(test.steps.iter().map(|(step, _)| step.clone()).collect());
                    tests.push((path, [met, unmet]));
                }
                [Err(diagnostic), _] | [_, Err(diagnostic)] => {
                    self.diagnostics.push(*diagnostic);
                    return None;
                }
            }
        }
        let mut conditions: Vec<Condition> = Vec::new();
        for (alternative, literals) in (0..).zip(&syntax.alternatives) {
            for (test, is_negated) in literals {
                let (path, both) = &tests[*test];
                let test = both[usize::from(*is_negated)].clone();
                conditions.push(Condition { alternative, path: path.clone(), test });
            }
        }
        let id = self.graph.add(Expr::Elements { topic, path, quantifier: syntax.quantifier, conditions });
        if let Some(element) = &syntax.element {
            let names = &mut self.graph.spec_mut().places.elements;
            names.entry(id).or_insert_with(|| element.text.clone());
        }
        Some(id)
    }

    /// The test that a condition is for a decoder, with its comparison or the opposite one.
    fn condition(
        &self,
        test: &ElementTest,
        comparison: Comparison,
        value: ExprId,
        declared: Option<ValueType>,
    ) -> Result<Test, Box<Diagnostic>> {
        let span = self.span(test.value);
        let refuse = |code, message: String| Box::new(Diagnostic::new(code, span, message));
        let Some(value) = self.graph.constant(value) else {
            let refused = refuse(Code::NotConstant, "an element is compared with constants only".to_owned());
            return Err(Box::new(
                refused.help("write a number, a text, `true`, `false` or the name of a `const`"),
            ));
        };
        let given = value.value_type();
        let number_test = match declared {
            Some(ValueType::Int) => Test::Integer,
            _ => Test::Number,
        };
        let is_number = |value_type| matches!(value_type, ValueType::Int | ValueType::Float);
        if let Some(declared) = declared.filter(|declared| *declared != given)
            && !(is_number(declared) && is_number(given))
        {
            let message = format!("cannot compare {} with {}", article(declared), article(given));
            return Err(Box::new(
                refuse(Code::TypeMismatch, message)
                    .label(test.span, format!("this is {}", article(declared))),
            ));
        }
        match (comparison, value) {
            (comparison, Value::Int(number)) => Ok(number_test(comparison, *number as f64)),
            (comparison, Value::Float(number)) => Ok(number_test(comparison, *number)),
            (Comparison::Equal, Value::Bool(_) | Value::String(_)) => Ok(Test::Equals(value.clone())),
            (Comparison::NotEqual, Value::Bool(truth)) => Ok(Test::Equals(Value::Bool(!truth))),
            (Comparison::NotEqual, Value::String(text)) => Ok(Test::OtherText(text.clone())),
            (_, Value::Bool(_) | Value::String(_)) => {
                let message = format!("expected a number, found {}", article(given));
                Err(refuse(Code::TypeMismatch, message))
            }
            (_, Value::Time(_) | Value::Duration(_)) => {
                let message = format!("cannot compare elements with {}", article(given));
                let refused = refuse(Code::NotInThisVersion, message);
                Err(Box::new(refused.help("elements are compared with numbers, texts and truths")))
            }
        }
    }
}

/// Returns the comparison that holds between known values where this one does not.
fn opposite(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterOrEqual,
        Comparison::LessOrEqual => Comparison::Greater,
        Comparison::Greater => Comparison::LessOrEqual,
        Comparison::GreaterOrEqual => Comparison::Less,
    }
}
