//! Parser of the steps of a path: fields, indices and elements by name.

use rondel_event::{FROM_END, Named, Path, Segment, Value};

use super::ast::Name;
use super::data::MEASUREMENTS;
use super::parser::{Parsed, Parser, RESERVED, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{LARGEST_INDEX, TokenKind, begins_word, continues_word};
use crate::suggest::{hint, nearest, translation};

/// Returns whether a key needs no quotes.
fn is_name(key: &str) -> bool {
    key.starts_with(begins_word) && key.chars().all(continues_word)
}

impl Parser<'_> {
    /// Parses any number of steps: `.name`, `."name"` and `[index]`.
    pub(super) fn steps(&mut self, name: &Name, steps: &mut Vec<(Segment, Span)>) -> Parsed<()> {
        loop {
            match self.symbol(0) {
                "." => {
                    let dot = self.span();
                    self.advance();
                    let place = self.span();
                    // `topic.` at the end of a line: the next declaration is not the missing field.
                    let gap = Span::new(dot.end, place.start).of(self.text);
                    if gap.contains('\n') && self.at_declaration() {
                        return Err(self.expected("the name of a field"));
                    }
                    let key: Box<str> = match self.peek() {
                        TokenKind::Text(text) => text.as_str().into(),
                        TokenKind::Word => place.of(self.text).into(),
                        _ => return Err(self.expected("the name of a field")),
                    };
                    steps.push((Segment::Key(key), place));
                    self.advance();
                }
                "[" if self.is_name_ahead() => {
                    let named = self.named_element()?;
                    steps.push(named);
                }
                "[" => {
                    self.advance();
                    let place = self.span();
                    let from_end = self.symbol(0) == "-";
                    if from_end {
                        self.advance();
                    }
                    let index = match *self.peek() {
                        TokenKind::Int(digits) => u32::try_from(digits).ok(),
                        _ => None,
                    };
                    let Some(index) = index else { return Err(self.bad_index(name, steps.is_empty())) };
                    let place = place.to(self.span());
                    if from_end && !(1..=FROM_END).contains(&index) {
                        let message = format!("there is no element [-{index}]");
                        let help = format!("write [-1] for the last element, up to [-{FROM_END}]");
                        let wrong = Diagnostic::new(Code::UnexpectedToken, place, message).help(help);
                        return Err(self.report(wrong));
                    }
                    self.advance();
                    if self.symbol(0) != "]" {
                        return Err(self.bad_index(name, steps.is_empty()));
                    }
                    let index = if from_end { Segment::FromEnd(index) } else { Segment::Index(index) };
                    steps.push((index, place));
                    self.advance();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether an element follows by its name: `[id == …]` or `[header.frame_id == …]`.
    fn is_name_ahead(&self) -> bool {
        self.symbol(2) == "==" || (self.symbol(2) == "." && self.symbol(4) == "==")
    }

    /// Parses `[key == name]`, where the key is a field, or a field of a field. What follows says whether the elements are
    /// objects with their names in them, or values whose names stand in another array.
    fn named_element(&mut self) -> Parsed<(Segment, Span)> {
        self.advance();
        let start = self.span();
        let mut key = Vec::new();
        loop {
            let step: Box<str> = match self.peek() {
                TokenKind::Text(text) => text.as_str().into(),
                TokenKind::Word => self.span().of(self.text).into(),
                _ => return Err(self.expected("the name of a field")),
            };
            key.push(Segment::Key(step));
            self.advance();
            if !self.eat(".") {
                break;
            }
        }
        self.expect("==")?;
        let is_negative = self.eat("-");
        let name = match self.peek() {
            TokenKind::Text(text) if !is_negative => Some(Value::String(text.as_str().into())),
            TokenKind::Int(digits) => i64::try_from(*digits)
                .ok()
                .map(|digits| Value::Int(if is_negative { -digits } else { digits })),
            TokenKind::Word if !is_negative => match self.word(0) {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            _ => None,
        };
        // Whether it is a parameter is known later.
        let parameter = (name.is_none() && !is_negative && *self.peek() == TokenKind::Word)
            .then(|| self.word(0).to_owned())
            .filter(|word| !RESERVED.contains(&word.as_str()) && self.symbol(1) == "]");
        if name.is_none() && parameter.is_none() {
            let reported = self.expected("a text, a whole number or a parameter");
            self.help_last(
                "the name of an element is written out: `joints.position[name == \"elbow\"]`; for all elements write \
                 `any x in topic.array: x.id == …`, or `for each j in joints.name` and `joints.position[name == j]`",
            );
            return Err(reported);
        }
        self.advance();
        let span = start.to(self.last_span());
        self.expect("]")?;
        let is_parallel = !matches!(self.symbol(0), "." | "[");
        if is_parallel && key.len() > 1 {
            let message = "the array of names is a member of the same object as the array".to_owned();
            let help = "name it by its own name alone: `joints.position[name == \"elbow\"]`";
            return Err(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        let named = match (name, parameter) {
            (Some(name), _) => Named::new(Path(key), name, is_parallel),
            (None, parameter) => Named::of_parameter(Path(key), &parameter.unwrap_or_default(), is_parallel),
        };
        Ok((Segment::Named(Box::new(named)), span))
    }

    /// Reports an invalid index after a name, which may be bounds after a misspelt operator.
    fn bad_index(&mut self, name: &Name, is_first: bool) -> Reported {
        if let Some(help) = hint(&name.text) {
            let message = format!("unknown operator '{}'", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message).help(help));
        }
        if let Some(meant) = translation(&name.text) {
            let message = format!("unknown operator '{}'; did you mean '{meant}'?", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message));
        }
        if self.symbol(0) == "-" {
            let message = "expected an array index, found `-`";
            return self
                .report(Diagnostic::new(Code::UnexpectedToken, self.span(), message).help(
                    "array indices start at 0; write `prev(x)` for the value before the last message",
                ));
        }
        if self.symbol(1) == "=" {
            let reported = self.expected("an array index, such as `[0]`");
            let help = format!("write `==` for the element with a name: `[{} == \"name\"]`", self.word(0));
            self.help_last(help);
            return reported;
        }
        let operators = ["once", "historically", "since", "eventually", "always", "until"];
        if let Some(operator) = nearest(&name.text, operators) {
            let message = format!("unknown operator '{}'; did you mean '{operator}'?", name.text);
            return self.report(Diagnostic::new(Code::UnexpectedToken, name.span, message));
        }
        if matches!(self.peek(), TokenKind::Int(_)) && self.symbol(1) == "]" {
            let diagnostic = Diagnostic::new(Code::InvalidNumber, self.span(), "array index is too large");
            return self.report(diagnostic.help(LARGEST_INDEX));
        }
        let is_word = *self.peek() == TokenKind::Word;
        let is_pair = matches!(self.symbol(1), ":" | "=" | "==" | "!=" | "<" | "<=" | ">" | ">=");
        let field = match self.peek() {
            TokenKind::Text(field) if is_name(field) => Some(field.clone()),
            TokenKind::Text(field) => Some(format!("\"{field}\"")),
            _ => None,
        };
        let reported = self.expected("an array index, such as `[0]`");
        let word = &name.text;
        if MEASUREMENTS.contains(&word.as_str()) || matches!(word.as_str(), "min" | "max") {
            self.help_last(format!("write the window after the parentheses: `{word}(x) over 2 s`"));
        } else if let Some(field) = field {
            let object = Span::new(name.span.start, self.last_span().start).of(self.text);
            self.help_last(format!("write `{object}.{field}` to access a field"));
        } else if is_first && is_pair && self.is_topic(word) {
            self.help_last(format!("write `{word}{{field: 3}}` for a message with this value"));
        } else if is_word {
            self.help_last("write a field without an index for its current value, `prev(x)` for the value before the last message");
        }
        reported
    }
}
