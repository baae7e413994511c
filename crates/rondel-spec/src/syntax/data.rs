//! Parser of atoms, quantifiers and measurements.

use rondel_event::{Comparison, Segment, TopicEvent, Value};

use super::ast::{Infix, Measure, Name, NodeId, NodeKind, Pair, Prefix};
use super::expression::level;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::foreign;
use crate::lexer::TokenKind;
use crate::operators::Operator;
use crate::spec::Aggregate;
use crate::suggest::did_you_mean;

/// Names of measurements and aggregates, which are called like functions.
pub(super) const MEASUREMENTS: [&str; 21] = [
    "on",
    "count",
    "sum",
    "mean",
    "rate",
    "distinct",
    "percentile",
    "median",
    "stddev",
    "first",
    "last",
    "derivative",
    "integral",
    "age",
    "latency",
    "jitter",
    "missed_deadline",
    "disposed",
    "unregistered",
    "alive",
    "owner",
];

/// Words that may follow a window, whose length may be a constant named `full`.
const OPERATOR_WORDS: [&str; 14] = [
    "and", "or", "implies", "iff", "xor", "since", "until", "in", "not", "then", "else", "for", "property",
    "let",
];

/// Names of the aggregates over windows.
pub(super) const AGGREGATES: [&str; 14] = [
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "rate",
    "distinct",
    "percentile",
    "median",
    "stddev",
    "first",
    "last",
    "derivative",
    "integral",
];

/// The part of a pair before its value: a complete pair, or a comparison whose value follows.
enum PairHead {
    Pair(Pair),
    Comparison(Comparison),
}

/// Advice for a quantified variable without values.
fn quantifier_advice(word: &str, variable: &str) -> String {
    let joint = if word == "forall" { "-> …" } else { "and …" };
    format!(
        "write `{word} {variable}. topic{{field: {variable}}} {joint}` for the values that a field has had"
    )
}

impl Parser<'_> {
    /// Parses `exists x, y. p`; the body extends as far to the right as possible.
    pub(super) fn quantified(&mut self, start: Span) -> Parsed<NodeId> {
        let word = self.word(0);
        self.advance();
        let outer = self.scope.len();
        let variables = self.quantified_variables(word)?;
        self.scope.extend(&variables);
        let body = self.expression()?;
        self.scope.truncate(outer);
        let span = start.to(self.ast.nodes[body].span);
        Ok(self.node(NodeKind::Quantified { all: word == "forall", variables, body }, span))
    }

    /// Parses the variables of a quantifier: `x, y.`.
    fn quantified_variables(&mut self, word: &str) -> Parsed<Vec<usize>> {
        let mut variables = Vec::new();
        loop {
            let is_call = self.symbol(0) == "(";
            let name = self.name("a variable").inspect_err(|_| {
                if is_call {
                    self.help_last(quantifier_advice(word, "x"));
                }
            })?;
            let twice = variables.iter().find(|v: &&usize| self.ast.variables[**v].text == name.text);
            if let Some(first) = twice.copied() {
                let message = format!("variable '{}' is declared twice", name.text);
                let first = self.ast.variables[first].span;
                self.report(
                    Diagnostic::new(Code::DuplicateName, name.span, message)
                        .label(first, "first declared here"),
                );
            }
            if let (None, Some(outer)) = (twice, self.variable(&name.text)) {
                let outer = self.ast.variables[outer].span;
                self.report(Diagnostic::shadowing(&name.text, name.span, outer));
            }
            variables.push(self.ast.variables.len());
            self.ast.variables.push(name);
            if !self.eat(",") {
                break;
            }
        }
        if !self.eat(".") {
            let is_over = self.word(0) == "in" || self.symbol(0) == ":";
            let reported = self.expected("`,` or `.`");
            let last = variables.last().map_or("x", |last| self.ast.variables[*last].text.as_str());
            let help =
                if is_over { quantifier_advice(word, last) } else { format!("write `{word} x, y. formula`") };
            return Err(self.with_help(reported, &help));
        }
        Ok(variables)
    }

    pub(super) fn with_help(&mut self, reported: Reported, help: &str) -> Reported {
        if let Some(last) = self.last_diagnostic() {
            last.help = Some(help.to_owned());
        }
        reported
    }

    /// Parses an atom: `topic{ pair, pair … }`.
    pub(super) fn atom(&mut self) -> Parsed<NodeId> {
        let start = self.span();
        let topic = self.topic_name(Name { text: self.word(0).to_owned(), span: start });
        self.advance();
        self.expect("{")?;
        let mut pairs = Vec::new();
        while self.symbol(0) != "}" {
            pairs.push(self.deeper(|parser| parser.pair(&topic))?);
            if !self.eat(",") && self.symbol(0) != "}" {
                return Err(self.after_expression(&[], "`,` or `}`"));
            }
        }
        self.advance();
        let span = start.to(self.last_span());
        Ok(self.node(NodeKind::Atom { topic, pairs }, span))
    }

    fn pair(&mut self, topic: &Name) -> Parsed<Pair> {
        let start = self.span();
        if self.symbol(0) == "!" || self.word(0) == "not" && self.begins_field(1) {
            self.advance();
            let field = self.atom_field(topic)?;
            let span = start.to(self.last_span());
            let condition = self.node(NodeKind::Unary(Prefix::Not, field), span);
            return Ok(Pair::Where { field, condition });
        }
        let field = self.atom_field(topic)?;
        let comparison = match self.compared(field)? {
            PairHead::Pair(pair) => return Ok(pair),
            PairHead::Comparison(comparison) => comparison,
        };
        let value = self.binary(level::SUM)?;
        let span = start.to(self.ast.nodes[value].span);
        let kind = NodeKind::Binary(Infix::Compare(comparison), field, value);
        Ok(Pair::Where { field, condition: self.node(kind, span) })
    }

    /// Parses the operator between the field of a pair and its value.
    fn compared(&mut self, field: NodeId) -> Parsed<PairHead> {
        let comparison = match self.symbol(0) {
            ":" => {
                let next = matches!(self.symbol(2), "," | "}");
                let (name, span) = (self.word(1).to_owned(), self.token(1).span);
                let local = if next { self.bound_variable(&Name { text: name, span }) } else { None };
                if let Some(local) = local {
                    self.advance();
                    let variable = self.node(NodeKind::Variable(local), span);
                    self.advance();
                    return Ok(PairHead::Pair(Pair::Bind { field, variable }));
                }
                Comparison::Equal
            }
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            "," | "}" => return Ok(PairHead::Pair(Pair::Where { field, condition: field })),
            _ => {
                let equals = self.symbol(0) == "=";
                let reported = self.expected("`:`, a comparison, `,` or `}`");
                if equals {
                    return Err(self.with_help(reported, "write equality as `:` or `==`"));
                }
                let help = "write `field: value`, `field: variable`, `field < value`, `field` or `not field`";
                return Err(self.with_help(reported, help));
            }
        };
        self.advance();
        Ok(PairHead::Comparison(comparison))
    }

    fn begins_field(&self, ahead: usize) -> bool {
        matches!(self.token(ahead).kind, TokenKind::Word | TokenKind::Text(_))
    }

    /// Parses a field of the topic of an atom: `a.b[0]`.
    fn atom_field(&mut self, topic: &Name) -> Parsed<NodeId> {
        let span = self.span();
        let key = match self.peek() {
            TokenKind::Text(text) => text.clone(),
            TokenKind::Word => span.of(self.text).to_owned(),
            _ => return Err(self.expected("the name of a field or `}`")),
        };
        self.advance();
        let name = Name { text: key.clone(), span };
        let mut steps = vec![(Segment::Key(key.into()), span)];
        self.steps(&name, &mut steps)?;
        let span = span.to(self.last_span());
        Ok(self.node(NodeKind::AtomField(topic.clone(), steps), span))
    }

    /// Parses `on(topic)`, `age(topic)`, `latency(topic)`, `jitter(topic)`, `reaction(chain)` or an event of a topic, such
    /// as `missed_deadline(topic)`; none for other words.
    pub(super) fn measurement(&mut self, word: &str, start: Span) -> Parsed<Option<NodeId>> {
        let event = TopicEvent::named(word);
        let measure = match word {
            _ if event.is_some() => None,
            "on" => None,
            "age" => Some(Measure::Age),
            "latency" => Some(Measure::Latency),
            "jitter" => Some(Measure::Jitter),
            "reaction" => Some(Measure::Reaction),
            _ => return Ok(None),
        };
        self.advance();
        self.advance();
        let span = self.span();
        let topic = self.word(0);
        if topic.is_empty() || RESERVED.contains(&topic) {
            let what = if measure == Some(Measure::Reaction) {
                "the name of a chain"
            } else {
                "the name of a topic"
            };
            return Err(self.expected(what));
        }
        self.advance();
        if self.symbol(0) == "." {
            let message = format!("`{word}` takes a topic, not a field");
            let help = match measure {
                None if event.is_none() => {
                    format!("write `on({topic})`, or `changed(…)` to detect a change of the field")
                }
                _ => format!("write `{word}({topic})`"),
            };
            return Err(self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message).help(help)));
        }
        if self.symbol(0) == "{" && measure.is_none() && event.is_none() {
            let reported = self.expected("`)`");
            self.help_last(format!("`{topic}{{…}}` is already true at a matching message: remove `on`"));
            return Err(reported);
        }
        self.expect(")")?;
        let whole = start.to(self.last_span());
        let topic = self.topic_name(Name { text: topic.to_owned(), span });
        let kind = match (measure, event) {
            (Some(measure), _) => NodeKind::Measure(measure, topic),
            (None, Some(event)) => NodeKind::Event(event, topic),
            (None, None) => NodeKind::On(topic),
        };
        Ok(Some(self.node(kind, whole)))
    }

    /// Returns the aggregate of a call with a window; none for a plain function.
    pub(super) fn window_of(
        &mut self,
        word: &str,
        arguments: &[NodeId],
        span: Span,
    ) -> Parsed<Option<Aggregate>> {
        let over = self.word(0) == "over";
        let aggregate = match word {
            "percentile" => self.percentile(arguments, over, span)?,
            "distinct" => Aggregate::Distinct,
            "median" => Aggregate::Median,
            "stddev" => Aggregate::Stddev,
            "first" => Aggregate::First,
            "last" => Aggregate::Last,
            "derivative" => Aggregate::Derivative,
            "integral" => Aggregate::Integral,
            "count" => Aggregate::Count,
            "sum" => Aggregate::Sum,
            "mean" => Aggregate::Mean,
            "rate" => Aggregate::Rate,
            "min" if over && arguments.len() == 1 => Aggregate::Min,
            "max" if over && arguments.len() == 1 => Aggregate::Max,
            _ if over => {
                let known = AGGREGATES;
                let foreign = foreign::call(word).filter(|call| call.has_window());
                let suggestion = || match foreign.and_then(foreign::Call::renamed) {
                    Some(meant) => format!("; did you mean '{meant}'?"),
                    None if foreign.is_some() => String::new(),
                    None => did_you_mean(word, known),
                };
                let steady = Operator::named(word);
                let message = match known.contains(&word) {
                    true => format!("`{word}` of two values takes no window"),
                    false if steady.is_some() => format!("`{word}` takes no window"),
                    false => format!("unknown aggregate '{word}'{}", suggestion()),
                };
                let is_known = known.contains(&word) || steady.is_some();
                let code = if is_known { Code::WrongArguments } else { Code::UnknownFunction };
                if word == "stable" {
                    let diagnostic = Diagnostic::new(code, span, message).help("write `stable(p) for 2 s`");
                    return Err(self.report(diagnostic));
                }
                if let Some(call) = foreign {
                    let help = self.instead_of(call, arguments);
                    return Err(self.report(Diagnostic::new(code, span, message).help(help)));
                }
                return Err(self.report(
                    Diagnostic::new(code, span, message)
                        .help("write `over` after count, sum, mean, min, max, rate, distinct, median, stddev, first, last, derivative or integral with one argument, or after `percentile(x, 95)`"),
                ));
            }
            _ => return Ok(None),
        };
        if !over {
            let message = match (word, arguments.len()) {
                ("sum" | "mean", 2..) => format!("`{word}` takes an array, or one value over a window"),
                _ => format!("`{word}` needs a window"),
            };
            let help = self.window_advice(aggregate, word, arguments);
            let whole = span.to(self.last_span());
            return Err(self.report(Diagnostic::new(Code::WrongArguments, whole, message).help(help)));
        }
        Ok(Some(aggregate))
    }

    /// Returns the aggregate of `percentile(x, 95)`, whose percentage is checked when constants are known.
    fn percentile(&mut self, arguments: &[NodeId], over: bool, span: Span) -> Parsed<Aggregate> {
        if let [_, _] = arguments {
            return Ok(Aggregate::Percentile(0));
        }
        let message = format!("`percentile` takes 2 arguments but got {}", arguments.len());
        let help = match over {
            true => "write the percentage as a number after the value: `percentile(x, 95) over 10 s`",
            false => "write `percentile(x, 95) over 10 s`",
        };
        let span = span.to(self.last_span());
        Err(self.report(Diagnostic::new(Code::WrongArguments, span, message).help(help)))
    }

    /// Returns advice for an aggregate without a window.
    fn window_advice(&self, aggregate: Aggregate, word: &str, arguments: &[NodeId]) -> String {
        if aggregate.percentage().is_some() {
            return "write `percentile(x, 95) over 10 s`".to_owned();
        }
        let is_rate = aggregate.needs_time();
        let written = |node: NodeId| self.ast.nodes[node].span.of(self.text);
        // Other libraries take the window as a second argument.
        if let [operand, length] = *arguments {
            let is_length = match self.ast.nodes[length].kind {
                NodeKind::Literal(Value::Int(_)) => !is_rate,
                NodeKind::Literal(Value::Duration(_)) => true,
                _ => false,
            };
            if is_length {
                return format!("write `{word}({}) over {}`", written(operand), written(length));
            }
        }
        if let ("sum" | "mean", [_, _, ..]) = (word, arguments) {
            let operands: Vec<String> = arguments.iter().map(|argument| self.as_operand(*argument)).collect();
            let sum = operands.join(" + ");
            return match word {
                "sum" => format!("write `{sum}`"),
                _ => format!("write `({sum}) / {}.0`", operands.len()),
            };
        }
        match (aggregate, is_rate) {
            (_, true) => format!("write `{word}(…) over 10 s`"),
            (Aggregate::Count, _) => {
                "write `count(…) over 10 s` in time, `count(…) over 10` in steps; `len(…)` for the length of an array"
                    .to_owned()
            }
            _ => format!("write `{word}(…) over 10 s` in time, `{word}(…) over 10` in steps"),
        }
    }

    /// Parses the window after an aggregate: `over 10 s`.
    pub(super) fn window(
        &mut self,
        aggregate: Aggregate,
        arguments: &[NodeId],
        whole: Span,
    ) -> Parsed<NodeId> {
        self.advance();
        // A constant may be named so too.
        let full = self.word(0) == "full"
            && matches!(
                self.token(1).kind,
                TokenKind::Int(_) | TokenKind::Float(_) | TokenKind::Duration | TokenKind::Word
            )
            && !OPERATOR_WORDS.contains(&self.word(1));
        if !full && self.word(0) == "full" && !self.declares_constant("full") {
            return Ok(self.full_without_length(arguments, whole));
        }
        if full {
            self.advance();
        }
        let over = self.bound()?;
        let span = whole.to(self.last_span());
        let (operand, percentage) = match (aggregate, arguments) {
            (Aggregate::Percentile(_), [operand, percentage]) => (Some(*operand), Some(*percentage)),
            (_, [operand]) => (Some(*operand), None),
            _ => (None, None),
        };
        let Some(operand) = operand else {
            let message = format!("a window takes 1 argument but got {}", arguments.len());
            let mut diagnostic = Diagnostic::new(Code::WrongArguments, whole, message);
            if let Some(first) = arguments.first() {
                let call = Span::new(whole.start, self.ast.nodes[*first].span.end).of(self.text);
                let window = Span::new(whole.end, span.end).of(self.text).trim_start();
                diagnostic = diagnostic.help(format!("measure one value: `{call}) {window}`"));
            }
            self.report(diagnostic);
            self.silence(arguments);
            return Ok(self.node(NodeKind::Invalid, span));
        };
        if let NodeKind::Path(name, steps) = &self.ast.nodes[operand].kind
            && steps.is_empty()
        {
            self.ast.nodes[operand].kind = NodeKind::Samples(name.clone());
        }
        let over = Box::new(over);
        Ok(self.node(NodeKind::Window { aggregate, operand, percentage, over, full }, span))
    }

    /// Reports `over full` without the length of the window.
    fn full_without_length(&mut self, arguments: &[NodeId], whole: Span) -> NodeId {
        let call = whole.of(self.text);
        let help = format!("write `{call} over full 1 s`: the window is full once it covers 1 s");
        let message = "`over full` needs the length of the window";
        self.report(Diagnostic::new(Code::InvalidBounds, self.span(), message).help(help));
        self.advance();
        self.silence(arguments);
        self.node(NodeKind::Invalid, whole.to(self.last_span()))
    }
}
