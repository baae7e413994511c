//! Parser of conditions on the elements of an array: `any r in scan.ranges: r < 0.2`.
//!
//! They are tested while a message is decoded, without keeping the array. So a condition compares an element, or a field
//! of it, with a constant. Several are joined by `and`, `or`, `not` and `->`, of which remain alternatives of tests.

use rondel_event::{Comparison, Quantifier, Segment, Value};

use super::ast::{Name, NodeId, NodeKind};
use super::element_advice::ElementHead;
use super::expression::level;
use super::parser::{INFIX, Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};

/// Conditions on the elements of an array.
#[derive(Debug)]
pub(crate) struct ElementsSyntax {
    pub(crate) quantifier: Quantifier,
    /// The name of the element; none for a measure of all.
    pub(crate) element: Option<Name>,
    /// The path of the array, and where it is written.
    pub(crate) array: Name,
    pub(crate) steps: Vec<(Segment, Span)>,
    pub(crate) place: Span,
    pub(crate) tests: Vec<ElementTest>,
    /// An element must meet all tests of one of these; each with whether it is negated.
    pub(crate) alternatives: Vec<Vec<(usize, bool)>>,
}

/// A comparison of an element, or a field of it, with a constant.
#[derive(Debug)]
pub(crate) struct ElementTest {
    /// The path in the element, and where it is written with the element.
    pub(crate) steps: Vec<(Segment, Span)>,
    pub(crate) span: Span,
    pub(crate) comparison: Comparison,
    pub(crate) value: NodeId,
}

/// A use, for advice.
const EXAMPLE: &str =
    "write `any r in scan.ranges: r < 0.2`, or `all s in status.parts: s.level < 2 and s.on`";

/// The most tests of all alternatives together: a decoder has a bit for each.
const MOST: usize = 64;

/// A formula of tests, by their index.
enum Formula {
    Test(usize),
    Not(Box<Formula>),
    /// All parts, at least one.
    All(Vec<Formula>),
    /// One of the parts, of which there is at least one.
    One(Vec<Formula>),
}

impl Formula {
    /// Returns the alternatives that the formula, or its negation, amounts to; none if they have more than [`MOST`] tests.
    fn alternatives(&self, is_negated: bool) -> Option<Vec<Vec<(usize, bool)>>> {
        let alternatives = match self {
            Formula::Test(test) => vec![vec![(*test, is_negated)]],
            Formula::Not(formula) => formula.alternatives(!is_negated)?,
            // Of parts that must not all hold, one must not.
            Formula::All(parts) | Formula::One(parts) if matches!(self, Formula::One(_)) != is_negated => {
                let parts = parts.iter().map(|part| part.alternatives(is_negated));
                parts.collect::<Option<Vec<_>>>()?.concat()
            }
            // One alternative of each part.
            Formula::All(parts) | Formula::One(parts) => {
                let mut product = vec![Vec::new()];
                for part in parts {
                    let part = part.alternatives(is_negated)?;
                    let with = |so_far: &Vec<_>| {
                        part.iter().map(|more| [&so_far[..], more].concat()).collect::<Vec<_>>()
                    };
                    product = product.iter().flat_map(with).collect();
                    if product.iter().map(Vec::len).sum::<usize>() > MOST {
                        return None;
                    }
                }
                product
            }
        };
        let count: usize = alternatives.iter().map(Vec::len).sum();
        (count <= MOST).then_some(alternatives)
    }
}

/// The conditions on an element while they are parsed.
pub(super) struct Conditions {
    pub(super) head: ElementHead,
    tests: Vec<ElementTest>,
    /// The number of parentheses that are open.
    pub(super) open: usize,
    /// The position of the last test.
    pub(super) last: usize,
}

impl Parser<'_> {
    /// Returns whether conditions on elements start here.
    pub(super) fn at_elements(&self) -> bool {
        matches!(self.word(0), "any" | "all" | "count") && !self.word(1).is_empty() && self.word(2) == "in"
    }

    /// Parses conditions on elements.
    pub(super) fn elements(&mut self) -> Parsed<NodeId> {
        let (start, word) = (self.span(), self.word(0));
        let quantifier = match word {
            "any" => Quantifier::Any,
            "all" => Quantifier::All,
            _ => Quantifier::Count,
        };
        self.advance();
        let element = self.name("an element")?;
        self.advance();
        let place = self.span();
        if self.word(0).is_empty() {
            let reported = self.expected("an array");
            self.help_last(EXAMPLE);
            return Err(reported);
        }
        let array = Name { text: self.word(0).to_owned(), span: place };
        self.advance();
        let mut steps = Vec::new();
        self.steps(&array, &mut steps)?;
        let array = self.topic_name(array);
        let place = place.to(self.last_span());
        if !self.eat(":") {
            let reported = self.expected("`:` and a condition on each element");
            self.help_last(EXAMPLE);
            return Err(reported);
        }
        let head = ElementHead { quantifier, element, start };
        let last = self.place();
        let mut conditions = Conditions { head, tests: Vec::new(), open: 0, last };
        let formula = self.element_implication(&mut conditions)?;
        let span = start.to(self.last_span());
        let follows = [self.word(0), self.symbol(0)].into_iter().find(|next| {
            INFIX[..4].contains(next)
                || matches!(*next, "||" | "->" | "<->" | "+" | "-" | "*" | "/" | "%")
                || matches!(*next, "<" | "<=" | ">" | ">=" | "==" | "!=")
        });
        if follows.is_some() {
            return Err(self.cannot_follow(&conditions));
        }
        let Some(alternatives) = formula.alternatives(false) else {
            return Err(self.too_many(&conditions.head));
        };
        let Conditions { head, tests, .. } = conditions;
        let element = Some(head.element);
        let syntax = ElementsSyntax { quantifier, element, array, steps, place, tests, alternatives };
        Ok(self.node(NodeKind::Elements(Box::new(syntax)), span))
    }

    /// Returns the measure of the elements of an array, `max(scan.ranges)`; none for other calls. The path itself is no
    /// operand: an array is not a value.
    pub(super) fn measure_of_elements(
        &mut self,
        word: &str,
        arguments: &[NodeId],
        whole: Span,
    ) -> Option<NodeId> {
        let quantifier = match word {
            "min" => Quantifier::Min,
            "max" => Quantifier::Max,
            "sum" => Quantifier::Sum,
            "mean" => Quantifier::Mean,
            _ => return None,
        };
        let [operand] = *arguments else { return None };
        if self.word(0) == "over" {
            return None;
        }
        let is_single = self.ast.single;
        let node = &mut self.ast.nodes[operand];
        let NodeKind::Path(name, steps) = &node.kind else { return None };
        if steps.is_empty() && !is_single {
            return None;
        }
        let (array, steps, place) = (name.clone(), steps.clone(), node.span);
        let (tests, alternatives) = (Vec::new(), Vec::new());
        let syntax = ElementsSyntax { quantifier, element: None, array, steps, place, tests, alternatives };
        node.kind = NodeKind::Elements(Box::new(syntax));
        node.span = whole;
        Some(operand)
    }

    /// Parses conditions joined by `->`, which groups to the right.
    fn element_implication(&mut self, conditions: &mut Conditions) -> Parsed<Formula> {
        self.deeper(|parser| {
            let condition = parser.element_disjunction(conditions)?;
            if parser.symbol(0) != "->" || !parser.goes_on(conditions) {
                return Ok(condition);
            }
            parser.advance();
            let consequence = parser.element_implication(conditions)?;
            Ok(Formula::One(vec![Formula::Not(Box::new(condition)), consequence]))
        })
    }

    fn element_disjunction(&mut self, conditions: &mut Conditions) -> Parsed<Formula> {
        let mut parts = vec![self.element_conjunction(conditions)?];
        while (self.word(0) == "or" || self.symbol(0) == "||") && self.goes_on(conditions) {
            self.advance();
            parts.push(self.element_conjunction(conditions)?);
        }
        Ok(Formula::One(parts))
    }

    fn element_conjunction(&mut self, conditions: &mut Conditions) -> Parsed<Formula> {
        let mut parts = vec![self.element_negation(conditions)?];
        while self.word(0) == "and" || self.symbol(0) == "&&" {
            self.advance();
            parts.push(self.element_negation(conditions)?);
        }
        Ok(Formula::All(parts))
    }

    /// Parses a test, conditions in parentheses, or the negation of one of both.
    fn element_negation(&mut self, conditions: &mut Conditions) -> Parsed<Formula> {
        let (from, mut is_negated) = (self.span(), false);
        while self.word(0) == "not" || self.symbol(0) == "!" {
            is_negated = !is_negated;
            self.advance();
        }
        let formula = match self.symbol(0) {
            "(" if self.holds_element(&conditions.head.element.text) => {
                let start = self.span();
                self.advance();
                conditions.open += 1;
                let inner = self.element_implication(conditions)?;
                if !self.eat(")") {
                    return Err(self.cannot_follow(conditions));
                }
                conditions.open -= 1;
                if self.comparison().is_some() || matches!(self.symbol(0), "+" | "-" | "*" | "/" | "%") {
                    return Err(self.not_about_element(&conditions.head.element, start));
                }
                inner
            }
            _ => self.element_test(conditions, from)?,
        };
        Ok(if is_negated { Formula::Not(Box::new(formula)) } else { formula })
    }

    /// Returns whether the conditions go on behind an operator. Outside of parentheses, what is not about the element
    /// may belong to a larger formula.
    fn goes_on(&mut self, conditions: &Conditions) -> bool {
        let at = self.place();
        self.advance();
        let is_about = self.is_about(&conditions.head.element.text);
        self.go_to(at);
        conditions.open > 0 || is_about
    }

    /// Parses one condition: a comparison with a constant, in either order, an interval, values, or a truth. An error
    /// spans it from `start`, which includes a `not`.
    fn element_test(&mut self, conditions: &mut Conditions, start: Span) -> Parsed<Formula> {
        let element = conditions.head.element.clone();
        conditions.last = self.place();
        if self.word(0) != element.text {
            let value = self.element_constant(&element, start)?;
            let Some(comparison) = self.comparison() else {
                return Err(self.not_about_element(&element, start));
            };
            self.advance();
            if self.word(0) != element.text {
                return Err(self.not_about_element(&element, start));
            }
            let (steps, span) = self.element_path()?;
            let comparison = match comparison {
                Comparison::Less => Comparison::Greater,
                Comparison::LessOrEqual => Comparison::GreaterOrEqual,
                Comparison::Greater => Comparison::Less,
                Comparison::GreaterOrEqual => Comparison::LessOrEqual,
                same => same,
            };
            return self.element_formula(conditions, ElementTest { steps, span, comparison, value });
        }
        let (steps, span) = self.element_path()?;
        let test = |comparison, value| ElementTest { steps: steps.clone(), span, comparison, value };
        if let Some(comparison) = self.comparison() {
            self.advance();
            let value = self.element_constant(&element, start)?;
            return self.element_formula(conditions, test(comparison, value));
        }
        let is_outside = self.word(0) == "not";
        let bracket = usize::from(is_outside) + 1;
        if self.word(bracket - 1) != "in" || !matches!(self.symbol(bracket), "[" | "(") {
            let value = self.node(NodeKind::Literal(Value::Bool(true)), span);
            return self.element_formula(conditions, test(Comparison::Equal, value));
        }
        (0..bracket).for_each(|_| self.advance());
        let lower = if self.symbol(0) == "[" { Comparison::GreaterOrEqual } else { Comparison::Greater };
        self.advance();
        let mut values = vec![self.element_constant(&element, start)?];
        while self.eat(",") {
            values.push(self.element_constant(&element, start)?);
        }
        let upper = if self.symbol(0) == "]" { Comparison::LessOrEqual } else { Comparison::Less };
        if !matches!(self.symbol(0), "]" | ")") {
            return Err(self.not_about_element(&element, start));
        }
        self.advance();
        let formula = if (lower, upper) == (Comparison::Greater, Comparison::Less) {
            let equal = |value| self.element_formula(conditions, test(Comparison::Equal, value));
            Formula::One(values.into_iter().map(equal).collect::<Parsed<Vec<Formula>>>()?)
        } else if let [low, high] = values[..] {
            let low = self.element_formula(conditions, test(lower, low))?;
            Formula::All(vec![low, self.element_formula(conditions, test(upper, high))?])
        } else {
            let message = "an interval has two ends";
            let diagnostic = Diagnostic::new(Code::WrongArguments, start.to(self.last_span()), message);
            let name = span.of(self.text);
            let help = format!("write `{name} in [0, 10]` for an interval, `{name} in (20, 21)` for values");
            return Err(self.report(diagnostic.help(help)));
        };
        Ok(if is_outside { Formula::Not(Box::new(formula)) } else { formula })
    }

    /// Notes a test. Every one occurs in an alternative, so more than can be tested need not be multiplied out.
    fn element_formula(&mut self, conditions: &mut Conditions, test: ElementTest) -> Parsed<Formula> {
        conditions.tests.push(test);
        if conditions.tests.len() > MOST {
            return Err(self.too_many(&conditions.head));
        }
        Ok(Formula::Test(conditions.tests.len() - 1))
    }

    /// Parses the name of the element and the steps to a field of it.
    fn element_path(&mut self) -> Parsed<(Vec<(Segment, Span)>, Span)> {
        let name = Name { text: self.word(0).to_owned(), span: self.span() };
        self.advance();
        let mut steps = Vec::new();
        self.steps(&name, &mut steps)?;
        Ok((steps, name.span.to(self.last_span())))
    }

    pub(super) fn comparison(&self) -> Option<Comparison> {
        Some(match self.symbol(0) {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Parses what an element is compared with; whether it is a constant is seen later.
    fn element_constant(&mut self, element: &Name, start: Span) -> Parsed<NodeId> {
        let first = self.ast.nodes.len();
        let value = self.binary(level::SUM)?;
        let is_element =
            |kind: &NodeKind| matches!(kind, NodeKind::Path(name, _) if name.text == element.text);
        if self.ast.nodes[first..].iter().any(|node| is_element(&node.kind)) {
            self.silence(&(first..self.ast.nodes.len()).collect::<Vec<NodeId>>());
            return Err(self.not_about_element(element, start));
        }
        Ok(value)
    }

    pub(super) fn not_about_element(&mut self, element: &Name, start: Span) -> Reported {
        let name = &element.text;
        let message = format!("a condition on '{name}' compares '{name}', or a field of it, with a constant");
        let span = start.to(self.last_span().max(start));
        let diagnostic = Diagnostic::new(Code::NotInThisVersion, span, message);
        self.report(diagnostic.label(element.span, "declared here").help(format!(
            "write `{name} < 0.2`, `{name}.level >= 2 and {name}.on`, `{name} in [1, 5]`; put what is not about \
             '{name}' outside of parentheses around the whole"
        )))
    }
}
