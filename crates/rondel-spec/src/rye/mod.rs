//! Parser of Reelay's format: two-valued formulas over the fields of one topic.
//!
//! From loosest to tightest, the operators are implication (`->`, `implies`), disjunction (`||`, `or`), conjunction
//! (`&&`, `and`), since (`since`, `S`), and the prefix operators negation (`not`, `!`), `pre` (`Y`), `once` (`P`) and
//! `historically` (`H`). Implication and since cannot be chained. An atom is a conjunction of pairs in braces; `{}` is
//! true.
//!
//! A pair is true or false, never unknown: it is false if its field was never received or has another type than the
//! pair expects.

mod atom;
mod token;

use rondel_event::{Segment, TopicId, Value, ValueType};

use self::token::{RyeKind, RyeToken};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::duration::{DurationError, nanos};
use crate::fields::Fields;
use crate::graph::{Graph, is_empty};
use crate::spec::{Bounds, ExprId, TimeModel, VariableId};
use crate::suggest::did_you_mean;

/// The maximum nesting depth, as in the Rondel language.
const DEPTH: usize = 250;

/// The topic of a formula, and where its nodes and diagnostics go.
pub(crate) struct Target<'a> {
    pub(crate) topic: TopicId,
    /// The schema of the topic, if it has one.
    pub(crate) fields: Option<Fields<'a>>,
    /// The time model, which decides whether bounds count steps or seconds. If it is not known yet, the formula is only
    /// checked for errors.
    pub(crate) model: Option<TimeModel>,
    pub(crate) graph: &'a mut Graph,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
}

/// Parses the formula at `body` in `text`; none if it has errors.
pub(crate) fn formula(text: &str, body: Span, target: Target<'_>) -> Option<ExprId> {
    let errors = target.diagnostics.len();
    let tokens = token::tokens(text, body, target.diagnostics);
    if target.diagnostics[errors..].iter().any(|d| d.code == Code::UnexpectedCharacter) {
        // The tokens stop at the error, so a later error would be misleading.
        return None;
    }
    let mut parser = Parser { text, tokens, at: 0, depth: 0, scope: Vec::new(), target };
    let root = parser.expression();
    if root.is_ok() && *parser.kind() != RyeKind::End {
        parser.expected_operator("an operator or the end");
    }
    if parser.target.diagnostics[errors..].iter().any(Diagnostic::is_error) { None } else { root.ok() }
}

/// Returns the location of the first bound of a formula that is not zero.
pub(crate) fn first_bounds(text: &str, body: Span) -> Option<Span> {
    let tokens = token::tokens(text, body, &mut Vec::new());
    let number = |token: &RyeToken| {
        token.kind == RyeKind::Number && token.span.of(text).parse::<f64>().is_ok_and(|x| x != 0.0)
    };
    let mut open = None;
    for token in &tokens {
        match token.kind {
            RyeKind::Symbol("[") => open = Some(token.span),
            RyeKind::Symbol("]") => open = None,
            _ if open.is_some() && number(token) => return Some(token.span),
            _ => {}
        }
    }
    None
}

/// The marker of a parse error that has been reported.
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<RyeToken>,
    at: usize,
    depth: usize,
    /// The variables in scope, the innermost last.
    scope: Vec<Variable>,
    target: Target<'a>,
}

struct Variable {
    name: String,
    span: Span,
    id: VariableId,
    /// The type of the first field that it is bound to.
    value_type: Option<ValueType>,
}

/// The steps of a path and their locations.
type Steps = Vec<(Segment, Span)>;

impl<'a> Parser<'a> {
    fn kind(&self) -> &RyeKind {
        &self.tokens[self.at].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn symbol(&self) -> &'static str {
        if let RyeKind::Symbol(s) = self.kind() { s } else { "" }
    }

    fn word(&self) -> &'a str {
        if *self.kind() == RyeKind::Word { self.span().of(self.text) } else { "" }
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.symbol() == symbol;
        if found {
            self.advance();
        }
        found
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.target.diagnostics.push(diagnostic);
        Reported
    }

    fn expected(&mut self, what: &str) -> Reported {
        let found = match self.kind() {
            RyeKind::End => "end of input".to_owned(),
            _ => format!("`{}`", self.span().of(self.text)),
        };
        let message = format!("expected {what}, found {found}");
        self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message))
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn not_in_this_version(&mut self, span: Span, what: &str) -> Reported {
        self.report(Diagnostic::new(Code::NotInThisVersion, span, format!("{what} is not supported")))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let message = format!("expression is nested more than {DEPTH} levels deep");
            return Err(self.report(Diagnostic::new(Code::TooDeep, self.span(), message)));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Reports a token that cannot follow an operand.
    fn expected_operator(&mut self, what: &str) -> Reported {
        let reported = self.expected(what);
        let suggestion = did_you_mean(self.word(), ["implies", "and", "or", "since"]);
        if let Some(last) = self.target.diagnostics.last_mut() {
            last.message.push_str(&suggestion);
        }
        reported
    }

    fn expression(&mut self) -> Parsed<ExprId> {
        self.deeper(|p| {
            if matches!(p.word(), "exists" | "E" | "forall" | "A") {
                return p.quantified();
            }
            let start = p.span();
            let left = p.disjunction()?;
            if !(p.symbol() == "->" || p.word() == "implies") {
                return Ok(left);
            }
            p.advance();
            let right = p.disjunction()?;
            if p.symbol() == "->" || p.word() == "implies" {
                return Err(p.side_by_side("implication"));
            }
            p.at_words_from(start);
            Ok(p.target.graph.implies(left, right))
        })
    }

    /// Sets the source location of the next nodes to the tokens since `start`.
    fn at_words_from(&mut self, start: Span) {
        let last = self.tokens[self.at.saturating_sub(1)].span;
        self.target.graph.at(start.to(last));
    }

    /// Parses `exists[x, y]. formula`.
    fn quantified(&mut self) -> Parsed<ExprId> {
        let start = self.span();
        let all = matches!(self.word(), "forall" | "A");
        let outer = self.scope.len();
        self.advance();
        self.expect("[")?;
        loop {
            let (name, span) = (self.word().to_owned(), self.span());
            if name.is_empty() {
                return Err(self.expected("the name of a variable"));
            }
            self.advance();
            let hidden = self.scope.iter().rposition(|v| v.name == name);
            if let Some(hidden) = hidden {
                let first = self.scope[hidden].span;
                let diagnostic = match hidden < outer {
                    true => Diagnostic::shadowing(&name, span, first),
                    false => {
                        let message = format!("variable '{name}' is declared twice");
                        Diagnostic::new(Code::DuplicateName, span, message)
                            .label(first, "first declared here")
                    }
                };
                self.report(diagnostic);
            }
            let id = self.target.graph.fresh_variable(&name);
            self.scope.push(Variable { name, span, id, value_type: None });
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        self.expect(".")?;
        let mut body = self.expression()?;
        for variable in self.scope.split_off(outer).into_iter().rev() {
            if variable.value_type.is_none() {
                let message = format!("variable '{}' is never used", variable.name);
                self.report(Diagnostic::new(Code::Unused, variable.span, message));
            }
            self.at_words_from(start);
            body = self.target.graph.quantified(all, variable.id, body);
        }
        Ok(body)
    }

    /// Returns the index of the variable that a reference names.
    fn reference(&mut self, name: &str, span: Span) -> Parsed<usize> {
        if let Some(variable) = self.scope.iter().rposition(|v| v.name == name) {
            return Ok(variable);
        }
        let suggestion = did_you_mean(name, self.scope.iter().map(|v| v.name.as_str()));
        let message = format!("unknown variable '{name}'{suggestion}");
        let mut diagnostic = Diagnostic::new(Code::UnboundVariable, span, message);
        if suggestion.is_empty() {
            diagnostic = diagnostic.help(format!("declare it before the formula: `exists[{name}]. …`"));
        }
        Err(self.report(diagnostic))
    }

    fn side_by_side(&mut self, what: &str) -> Reported {
        let message = format!("chained {what} needs parentheses");
        self.report(
            Diagnostic::new(Code::NeedsParentheses, self.span(), message)
                .help("put one of the two in parentheses"),
        )
    }

    fn disjunction(&mut self) -> Parsed<ExprId> {
        let mut left = self.conjunction()?;
        while self.symbol() == "||" || self.word() == "or" {
            self.advance();
            let right = self.conjunction()?;
            left = self.target.graph.or(left, right);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed<ExprId> {
        let mut left = self.since()?;
        while self.symbol() == "&&" || self.word() == "and" {
            self.advance();
            let right = self.since()?;
            left = self.target.graph.and(left, right);
        }
        Ok(left)
    }

    fn since(&mut self) -> Parsed<ExprId> {
        let start = self.span();
        let left = self.unary()?;
        if !matches!(self.word(), "since" | "S") {
            return Ok(left);
        }
        self.advance();
        let bounds = self.bounds()?;
        let right = self.unary()?;
        if matches!(self.word(), "since" | "S") {
            return Err(self.side_by_side("`since`"));
        }
        self.at_words_from(start);
        Ok(self.target.graph.since(bounds, left, right))
    }

    fn unary(&mut self) -> Parsed<ExprId> {
        let word = if self.symbol() == "!" { "not" } else { self.word() };
        let start = self.span();
        match word {
            "not" => {
                self.advance();
                let operand = self.operand_of("not")?;
                self.at_words_from(start);
                Ok(self.target.graph.not(operand))
            }
            "pre" | "Y" => {
                self.advance();
                let operand = self.operand_of(word)?;
                self.at_words_from(start);
                Ok(self.target.graph.previously(operand))
            }
            "once" | "P" => {
                self.advance();
                let bounds = self.bounds()?;
                let operand = self.operand_of(word)?;
                self.at_words_from(start);
                Ok(self.target.graph.once(bounds, operand))
            }
            "historically" | "H" => {
                self.advance();
                let bounds = self.bounds()?;
                let operand = self.operand_of(word)?;
                self.at_words_from(start);
                Ok(self.target.graph.historically(bounds, operand))
            }
            _ => self.operand(),
        }
    }

    /// Parses the operand of a prefix operator: an atom or parentheses.
    fn operand_of(&mut self, operator: &str) -> Parsed<ExprId> {
        let unary = ["not", "pre", "Y", "once", "P", "historically", "H"];
        if self.symbol() == "!" || unary.contains(&self.word()) {
            let message = format!("an operator after `{operator}` needs parentheses");
            return Err(self.report(
                Diagnostic::new(Code::NeedsParentheses, self.span(), message)
                    .help("write an atom `{…}` or parentheses after an operator"),
            ));
        }
        self.operand()
    }

    fn operand(&mut self) -> Parsed<ExprId> {
        match self.symbol() {
            "(" => {
                self.advance();
                let inner = self.expression()?;
                if self.symbol() != ")" {
                    return Err(self.expected_operator("an operator or `)`"));
                }
                self.advance();
                Ok(inner)
            }
            "{" => self.atom(),
            "$" => {
                let start = self.span();
                self.advance();
                if self.symbol() == "{" {
                    return Err(
                        self.not_in_this_version(start, "a predicate of the host program (`${name}`)")
                    );
                }
                Err(self.expected("`{`"))
            }
            _ => {
                let word = self.word();
                if matches!(word, "exists" | "E" | "forall" | "A") {
                    return Err(self.report(
                        Diagnostic::new(
                            Code::NeedsParentheses,
                            self.span(),
                            "a quantifier after an operator needs parentheses",
                        )
                        .help("write `(exists[x]. …)`"),
                    ));
                }
                let operators = ["not", "pre", "once", "historically", "exists", "forall"];
                let suggestion = did_you_mean(word, operators);
                if suggestion.is_empty() {
                    return Err(self.expected("an atom `{…}`, `(` or an operator"));
                }
                let message = format!("unknown operator '{word}'{suggestion}");
                Err(self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message)))
            }
        }
    }

    /// Parses optional bounds: `[a:b]`, `[a:]`, `[a:inf]` or `[:b]`.
    fn bounds(&mut self) -> Parsed<Bounds> {
        let start = self.span();
        if !self.eat("[") {
            return Ok(Bounds::ALL);
        }
        let lower = self.bound()?;
        if self.symbol() == "," {
            return Err(self.bad_bounds("expected `:` between the bounds, found `,`"));
        }
        self.expect(":")?;
        let endless = self.word() == "inf";
        if endless {
            self.advance();
        }
        let upper = if endless { None } else { self.bound()? };
        if lower.is_none() && upper.is_none() {
            return Err(self.bad_bounds("expected a lower or an upper bound"));
        }
        let span = start.to(self.span());
        self.expect("]")?;
        let bounds = Bounds { lower: lower.unwrap_or(0), upper };
        if is_empty(bounds) {
            let message = "the bounds are empty";
            self.report(
                Diagnostic::new(Code::EmptyInterval, span, message).help("write the smaller bound first"),
            );
        }
        Ok(bounds)
    }

    fn bad_bounds(&mut self, message: &str) -> Reported {
        self.report(
            Diagnostic::new(Code::InvalidBounds, self.span(), message)
                .help("write `[a:b]`, `[a:]` or `[:b]`; bounds are distances back from the present"),
        )
    }

    fn bound(&mut self) -> Parsed<Option<u64>> {
        if *self.kind() != RyeKind::Number {
            return Ok(None);
        }
        let digits = self.span().of(self.text);
        let steps = self.target.model == Some(TimeModel::Steps);
        if digits.starts_with('-') {
            return Err(self.bad_bounds("a bound cannot be negative"));
        }
        if steps && digits.contains('.') {
            return Err(self.bad_bounds("a number of steps must be whole"));
        }
        let bound = match self.target.model {
            // Only the order of the bounds is checked here.
            None => digits.parse().ok().map(|seconds: f64| (seconds * 1e9) as u64),
            Some(TimeModel::Steps) => digits.parse().ok(),
            Some(_) => match nanos(digits, 1_000_000_000) {
                Err(DurationError::TooFine) => {
                    return Err(self.bad_bounds("bound is finer than a nanosecond"));
                }
                bound => bound.ok().and_then(|bound| u64::try_from(bound).ok()),
            },
        };
        let Some(bound) = bound else {
            return Err(self.report(Diagnostic::new(
                Code::InvalidNumber,
                self.span(),
                "number is too large",
            )));
        };
        self.advance();
        Ok(Some(bound))
    }

    fn number(&mut self) -> Parsed<f64> {
        // Digits with a point always form a double, which may be infinite.
        let value = self.span().of(self.text).parse().unwrap_or(f64::INFINITY);
        if !value.is_finite() {
            return Err(self.report(Diagnostic::new(
                Code::InvalidNumber,
                self.span(),
                "number is too large",
            )));
        }
        self.advance();
        Ok(value)
    }

    fn literal(&mut self, value: Value) -> ExprId {
        self.target.graph.literal(value)
    }
}

#[cfg(test)]
mod tests;
