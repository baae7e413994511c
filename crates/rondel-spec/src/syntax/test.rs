//! Parser of tests.

use rondel_event::{TopicEvent, Value, Verdict};

use super::ast::{Content, ContentKind, Expect, Message, Name, Test};
use super::parser::{Mark, Parsed, Parser, RESERVED};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::modules::Role;
use crate::suggest::{did_you_mean, list};

const VERDICTS: [Verdict; 3] = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];

impl Parser<'_> {
    pub(super) fn test(&mut self) -> Parsed<()> {
        let start = self.place();
        self.advance();
        let mut test = Test {
            name: String::new(),
            span: self.span(),
            messages: Vec::new(),
            end: None,
            expectations: Vec::new(),
            complete: false,
        };
        if let TokenKind::Text(name) = self.peek() {
            test.name = format!("{}{name}", self.ast.modules.prefix(test.span.start));
            self.advance();
        }
        let body = self.test_body(&mut test);
        test.complete = body.is_ok();
        self.ast.tests.push(test);
        if body.is_err() {
            return Err(self.leave_body(self.open_braces(start)));
        }
        Ok(())
    }

    fn test_body(&mut self, test: &mut Test) -> Parsed<()> {
        self.mark(Mark::Body);
        self.expect("{")?;
        while !self.eat("}") {
            self.mark(Mark::Statement);
            let start = self.span();
            match self.word(0) {
                "at" => {
                    self.advance();
                    let (time, time_span) = self.time()?;
                    if let Some(message) = self.event(time, time_span)? {
                        test.messages.push(message);
                        continue;
                    }
                    if self.word(0) == "expect" && !self.word(1).is_empty() {
                        let expectation = self.expected_late(start, time)?;
                        test.expectations.push(expectation);
                        continue;
                    }
                    let topic = self.used_name("a topic", Role::Value)?;
                    let content = match self.symbol(0) {
                        "{" => self.content()?,
                        _ => Content { kind: ContentKind::Object(Vec::new()), span: topic.span },
                    };
                    let (event, publisher) = (None, None);
                    test.messages.push(Message { time, time_span, topic, content, event, publisher });
                }
                "end" => {
                    self.advance();
                    self.keyword("at")?;
                    let (time, span) = self.time()?;
                    if let Some((_, first)) = test.end {
                        let message = "a test has only one end";
                        self.report(
                            Diagnostic::new(Code::DuplicateName, start.to(span), message)
                                .label(first, "first end"),
                        );
                    }
                    test.end = Some((time, span));
                }
                "expect" => {
                    let expectation = self.expectation()?;
                    test.expectations.push(expectation);
                }
                word => {
                    let suggestion = did_you_mean(word, ["at", "expect", "end"]);
                    if self.eat(";") {
                        continue;
                    }
                    let message =
                        format!("expected `at`, `expect`, `end` or `}}`, found {}{suggestion}", self.found());
                    return Err(self
                        .report(Diagnostic::new(Code::UnexpectedToken, start, message).help(
                            "write `at 2 s topic { field: 1 }` or `expect property violated at 2 s`",
                        )));
                }
            }
        }
        Ok(())
    }

    /// Parses an event of a topic, `missed_deadline(topic)`, `not alive(topic)`, `disposed(topic) { id: 7 }` or
    /// `owner(topic) == "front"`; none if a message follows.
    fn event(&mut self, time: i64, time_span: Span) -> Parsed<Option<Message>> {
        let start = self.span();
        let holds = self.word(0) != "not";
        let at = usize::from(!holds);
        if holds && self.symbol(1) != "(" {
            return Ok(None);
        }
        if self.word(at).is_empty() {
            self.advance();
            return Err(self.expected("`alive(topic)`"));
        }
        let names = || TopicEvent::ALL.into_iter().map(TopicEvent::name);
        let Some(event) = TopicEvent::named(self.word(at)).filter(|_| self.symbol(at + 1) == "(") else {
            let suggestion = did_you_mean(self.word(at), names());
            let message = format!("unknown event '{}'{suggestion}", self.word(at));
            let help = list(names()).map(|names| format!("events of a topic: {names}")).unwrap_or_default();
            let span = self.token(at).span;
            return Err(self.report(Diagnostic::new(Code::UnknownFunction, span, message).help(help)));
        };
        (0..at + 2).for_each(|_| self.advance());
        let topic = self.used_name("the name of a topic", Role::Value)?;
        self.expect(")")?;
        if !holds && event != TopicEvent::Alive {
            let message =
                format!("`{}` is an event, which does not happen unless a line says so", event.name());
            let span = start.to(self.last_span());
            let help = "only `alive` can be false: write `not alive(topic)`";
            return Err(self.report(Diagnostic::new(Code::UnexpectedToken, span, message).help(help)));
        }
        let publisher = match event.has_publisher() {
            true => Some(self.publisher(event, &topic)?),
            false => None,
        };
        let content = match self.symbol(0) {
            "{" if event.has_key() => self.content()?,
            _ => Content { kind: ContentKind::Object(Vec::new()), span: topic.span },
        };
        Ok(Some(Message { time, time_span, topic, content, event: Some((event, holds)), publisher }))
    }

    /// Parses the publisher of an event.
    fn publisher(&mut self, event: TopicEvent, topic: &Name) -> Parsed<Content> {
        if self.eat("==") {
            return self.content();
        }
        let reported = self.expected("`==` and a publisher");
        let written = format!("{}({})", event.name(), topic.text);
        self.help_last(format!("write `{written} == \"front\"`, or `{written} == \"\"` if there is none"));
        Err(reported)
    }

    /// Parses a time with a unit, which can be negative.
    fn time(&mut self) -> Parsed<(i64, Span)> {
        let start = self.span();
        let minus = self.eat("-");
        if let Some((nanos, span)) = self.quantity()? {
            return Ok((if minus { -nanos } else { nanos }, start.to(span)));
        }
        let number = matches!(self.peek(), TokenKind::Int(_) | TokenKind::Float(_));
        if number && self.span().of(self.text) == "0" {
            self.advance();
            return Ok((0, start.to(self.last_span())));
        }
        let reported = self.expected(if number { "a time with a unit" } else { "a time" });
        self.help_last("write a time as in `2 s` or `200 ms`");
        Err(reported)
    }

    fn expectation(&mut self) -> Parsed<Expect> {
        let start = self.span();
        self.advance();
        if self.word(0) == "not" && !self.word(1).is_empty() {
            let (property, verdict) = (self.word(1), self.word(2));
            let verdict = if verdict.is_empty() { "violated" } else { verdict };
            let reported = self.expected("the name of a property");
            self.help_last(format!("write `expect {property} never {verdict}`"));
            return Err(reported);
        }
        let property = self.used_name("a property", Role::Property)?;
        let mut values = Vec::new();
        if self.eat("[") {
            loop {
                values.push(self.content()?);
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("]")?;
        }
        let never = self.word(0) == "never";
        if never {
            self.advance();
        }
        let word = self.word(0);
        let Some(verdict) = VERDICTS.into_iter().find(|verdict| verdict.as_str() == word) else {
            let suggestion =
                did_you_mean(word, VERDICTS.iter().map(|verdict| verdict.as_str()).chain(["never"]));
            let message = format!(
                "expected `satisfied`, `violated` or `inconclusive`, found {}{suggestion}",
                self.found()
            );
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message);
            return Err(self.report(match word {
                "not" => diagnostic.help("write `never violated`"),
                _ => diagnostic,
            }));
        };
        self.advance();
        let mut at = None;
        // `at` with a topic after the time starts the next message instead.
        if self.word(0) == "at" && !self.at_message() {
            self.advance();
            at = Some(self.time()?.0);
        }
        Ok(Expect { property, values, never, verdict, at, span: start.to(self.last_span()) })
    }

    /// Reports an expectation behind its time, and parses it.
    fn expected_late(&mut self, start: Span, time: i64) -> Parsed<Expect> {
        let at = Span::new(start.start, self.last_span().end).of(self.text);
        let (span, place) = (self.span(), self.place());
        let expectation = self.expectation()?;
        let written = self.written(place);
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, "expected a topic, found `expect`");
        let help = match expectation.at {
            Some(_) => format!("write `{written}`"),
            None => format!("write `{written} {at}`"),
        };
        self.report(diagnostic.help(help));
        Ok(Expect { at: expectation.at.or(Some(time)), ..expectation })
    }

    /// Returns whether `at` starts a message: a topic follows the time.
    fn at_message(&self) -> bool {
        let sign = usize::from(self.symbol(1) == "-");
        let time = match self.token(1 + sign).kind {
            TokenKind::Duration => 1,
            _ if crate::duration::unit(self.word(2 + sign)).is_some() => 2,
            _ => 1,
        };
        let next = self.word(1 + sign + time);
        !next.is_empty() && !matches!(next, "at" | "expect" | "end")
            || next == "end" && self.word(2 + sign + time) != "at"
            || next == "expect" && self.symbol(2 + sign + time) == "{"
            || next == "at" && self.symbol(2 + sign + time) == "{"
    }

    /// Parses a value of a message, as in JSON but with unquoted names.
    fn content(&mut self) -> Parsed<Content> {
        self.deeper(|parser| {
            let start = parser.span();
            let kind = parser.content_kind()?;
            Ok(Content { kind, span: start.to(parser.last_span()) })
        })
    }

    fn content_kind(&mut self) -> Parsed<ContentKind> {
        if let Some((nanos, _)) = self.quantity()? {
            return Ok(ContentKind::Value(Value::Duration(nanos)));
        }
        let span = self.span();
        let too_large = |parser: &mut Self| {
            let diagnostic = Diagnostic::new(Code::InvalidNumber, span, "number is too large");
            parser.report(diagnostic.help("integers have 64 bits"))
        };
        let kind = match self.peek().clone() {
            TokenKind::Symbol("{") => return self.object(),
            TokenKind::Symbol("[") => return self.array(),
            TokenKind::Symbol("-") => {
                self.advance();
                match *self.peek() {
                    TokenKind::Int(digits) => match 0_i64.checked_sub_unsigned(digits) {
                        Some(value) => ContentKind::Value(Value::Int(value)),
                        None => return Err(too_large(self)),
                    },
                    TokenKind::Float(value) => ContentKind::Value(Value::Float(-value)),
                    _ => return Err(self.expected("a number")),
                }
            }
            TokenKind::Int(digits) => match i64::try_from(digits) {
                Ok(value) => ContentKind::Value(Value::Int(value)),
                Err(_) => return Err(too_large(self)),
            },
            TokenKind::Float(value) => ContentKind::Value(Value::Float(value)),
            TokenKind::Text(text) => ContentKind::Value(Value::String(text.into())),
            TokenKind::Word => match self.word(0) {
                "true" => ContentKind::Value(Value::Bool(true)),
                "false" => ContentKind::Value(Value::Bool(false)),
                "null" => ContentKind::Null,
                word if RESERVED.contains(&word) => return Err(self.expected("a value")),
                word => {
                    let owner = Name { text: word.to_owned(), span: self.span() };
                    if self.symbol(1) != "." {
                        self.advance();
                        return Ok(ContentKind::Name(self.full(owner, Role::Value).text));
                    }
                    self.advance();
                    self.advance();
                    let name = Name { text: self.word(0).to_owned(), span: self.span() };
                    if name.text.is_empty() {
                        return Err(self.expected("the name of a constant"));
                    }
                    ContentKind::Constant(self.full(owner, Role::Value), name)
                }
            },
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        Ok(kind)
    }

    fn array(&mut self) -> Parsed<ContentKind> {
        self.advance();
        let mut elements = Vec::new();
        while !self.eat("]") {
            elements.push(self.content()?);
            if !self.eat(",") && self.symbol(0) != "]" {
                return Err(self.expected("`,` or `]`"));
            }
        }
        Ok(ContentKind::Array(elements))
    }

    fn object(&mut self) -> Parsed<ContentKind> {
        self.advance();
        let mut fields: Vec<(Name, Content)> = Vec::new();
        while !self.eat("}") {
            let span = self.span();
            let text = match self.peek() {
                TokenKind::Text(text) => text.clone(),
                TokenKind::Word => span.of(self.text).to_owned(),
                _ => return Err(self.expected("the name of a field or `}`")),
            };
            self.advance();
            self.expect(":")?;
            let content = self.content()?;
            if let Some((first, _)) = fields.iter().find(|(name, _)| name.text == text) {
                let message = format!("field '{text}' appears twice");
                let diagnostic =
                    Diagnostic::new(Code::DuplicateName, span, message).label(first.span, "first value");
                self.report(diagnostic);
            }
            fields.push((Name { text, span }, content));
            if !self.eat(",") && !self.eat(";") && self.symbol(0) != "}" {
                return Err(self.expected("`,` or `}`"));
            }
        }
        Ok(ContentKind::Object(fields))
    }
}
