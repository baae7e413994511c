//! Parameters that are names of the elements of an array: `for each j in joints.name = joints.position[name == j] < 3`.

use rondel_event::{Named, Path, Segment, TopicId, ValueType};

use super::names::{Declared, Names};
use super::{Checker, Local};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::SchemaType;
use crate::syntax::ast::{Name, NodeId, NodeKind, Parameter};

/// A parameter that is the name of an element.
#[derive(Clone, Debug)]
pub(super) struct ElementName {
    /// The index of the `for each`, and of the parameter.
    place: (usize, usize),
    topic: TopicId,
    /// The field, as `for each` names it.
    field: Path,
}

/// The names of elements that a path reads one of: those in the elements, or those of the array beside it.
fn field_of_names(steps: &[(Segment, Span)], at: usize, named: &Named) -> Path {
    // The last step of a parallel array is the array itself.
    let object = at.saturating_sub(usize::from(named.is_parallel));
    let object = steps[..object].iter().map(|(step, _)| step);
    Path(object.chain(&named.key().0).cloned().collect())
}

/// The element of a path whose name is a parameter.
fn of_parameter(steps: &[(Segment, Span)]) -> impl Iterator<Item = (usize, &Named, &str, Span)> {
    steps.iter().enumerate().filter_map(|(at, (step, span))| match step {
        Segment::Named(named) => Some((at, &**named, named.parameter.as_deref()?, *span)),
        _ => None,
    })
}

impl<'a> Checker<'a> {
    /// Resolves the field of a parameter if it is the name of an element; says whether it is.
    pub(super) fn resolve_element_name(
        &mut self,
        node: NodeId,
        parameter: &'a Parameter,
        each: usize,
        key: usize,
        names: &Names<'a>,
    ) -> bool {
        let ast = self.ast;
        let NodeKind::Path(name, steps) = &ast.nodes[node].kind else { return false };
        let Some((Declared::Topic(topic), _)) = names.get(&name.text, name.span) else { return false };
        let topic = *topic;
        let Some((at, is_parallel)) = self.array_of_names(topic, name, steps, &parameter.name.text) else {
            return false;
        };
        let names = if is_parallel { &steps[at - 1..] } else { &steps[at..] };
        let names = Path(names.iter().map(|(step, _)| step.clone()).collect());
        let named = Named::of_parameter(names, &parameter.name.text, is_parallel);
        let span = steps[at - 1].1;
        let mut through = steps.clone();
        through.insert(at, (Segment::Named(Box::new(named)), span));
        let field = Path(steps.iter().map(|(step, _)| step.clone()).collect());
        self.meanings[node] = self.field(node, topic, &through);
        self.element_names.push(ElementName { place: (each, key), topic, field });
        true
    }

    /// Returns where in the path of a parameter the elements of an array begin, and whether they are the names themselves:
    /// by the type of the topic, or else by the uses of the parameter.
    fn array_of_names(
        &self,
        topic: TopicId,
        name: &Name,
        steps: &[(Segment, Span)],
        parameter: &str,
    ) -> Option<(usize, bool)> {
        if !steps.iter().all(|(step, _)| matches!(step, Segment::Key(_) | Segment::Index(_))) {
            return None;
        }
        let fields = self.fields(topic);
        for at in 1..=steps.len() {
            match fields.map(|fields| fields.find(&steps[..at], name.span)) {
                Some(Ok((SchemaType::Array(element, _), _))) => {
                    let is_next_index =
                        matches!(steps.get(at), Some((Segment::Index(_) | Segment::FromEnd(_), _)));
                    match &**element {
                        _ if is_next_index => continue,
                        // No name: most likely a condition on all elements is meant.
                        SchemaType::Value(ValueType::Float) => return None,
                        SchemaType::Value(_) | SchemaType::Stamp(..) if at == steps.len() => {
                            return matches!(steps[at - 1].0, Segment::Key(_)).then_some((at, true));
                        }
                        SchemaType::Object(_) if at < steps.len() => return Some((at, false)),
                        SchemaType::Open => break,
                        _ => return None,
                    }
                }
                Some(Ok((SchemaType::Open, _))) | None => break,
                Some(Ok(_)) => {}
                Some(Err(_)) => return None,
            }
        }
        let field = Path(steps.iter().map(|(step, _)| step.clone()).collect());
        self.ast.nodes.iter().filter_map(|node| node.kind.field()).find_map(|(of, used)| {
            let (at, named, word, _) = of_parameter(used).next()?;
            let is_its =
                of.text == name.text && word == parameter && field_of_names(used, at, named) == field;
            let at = if named.is_parallel { steps.len() } else { at };
            is_its.then_some((at, named.is_parallel))
        })
    }

    /// Returns what is wrong with the element that a node reads by a parameter.
    pub(super) fn wrong_element(&self, kind: &NodeKind, names: &Names<'a>) -> Option<Diagnostic> {
        let (name, steps) = kind.field()?;
        let mut elements = of_parameter(steps);
        let (at, named, word, span) = elements.next()?;
        if let Some((.., second)) = elements.next() {
            let message = "a field is in one element that a parameter names, not in two";
            let help = "write the name of one of them out, in quotes";
            return Some(Diagnostic::new(Code::UnexpectedToken, second, message).help(help));
        }
        let field = field_of_names(steps, at, named);
        let place = match self.locals.get(word) {
            Some((Local::Parameter(each, parameter), _)) => (*each, *parameter),
            _ => {
                let message = format!("'{word}' is not a parameter of a `for each`");
                let help = format!(
                    "write a name in quotes, `[{} == \"{word}\"]`, or declare the parameter behind the name of the \
                     property: `for each {word} in {}.{field}`",
                    named.key(),
                    name.text
                );
                return Some(Diagnostic::new(Code::UnknownName, span, message).help(help));
            }
        };
        let Some((Declared::Topic(topic), _)) = names.get(&name.text, name.span) else { return None };
        let is_its = |own: &ElementName| own.place == place && own.topic == *topic && own.field == field;
        if self.element_names.iter().any(is_its) {
            return None;
        }
        let parameter = &self.ast.for_eaches[place.0].parameters[place.1];
        // An error in its field is reported there.
        if parameter.fields.iter().any(|node| self.is_invalid(*node)) {
            return None;
        }
        let message = format!("'{word}' is not a name in '{}.{field}'", name.text);
        let declared = self.span(*parameter.fields.first()?);
        let help = format!(
            "an instance reads the element with its own name: write `for each {word} in {}.{field}`",
            name.text
        );
        let diagnostic = Diagnostic::new(Code::KeyTopics, span, message);
        Some(diagnostic.label(declared, "its values are from here").help(help))
    }
}
