//! Parser of topics and schemas.

use std::collections::HashMap;
use std::ops::Range;

use rondel_event::{AddressPattern, ValueType};

use super::ast::{Name, Topic};
use super::forms::ADDRESS;
use super::parser::{DECLARATIONS, Parsed, Parser, Reported};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::TokenKind;
use crate::spec::{Schema, SchemaType};
use crate::suggest::did_you_mean;

impl Parser<'_> {
    pub(super) fn topic(&mut self) -> Parsed<()> {
        self.advance();
        let name = self.declared_name("a topic")?;
        // Declare the topic before parsing the rest, so that its uses are valid even after an error.
        let index = self.ast.topics.len();
        self.ast.topics.push(Topic {
            name,
            address: None,
            parameters: Vec::new(),
            type_name: None,
            schema: None,
            places: Default::default(),
            definition: None,
        });
        if let TokenKind::Text(address) = self.peek() {
            let address = address.clone();
            self.ast.topics[index].parameters = self.address_parameters(&address);
            self.ast.topics[index].address = Some(address);
            self.advance();
        }
        if self.eat(":") {
            if *self.peek() == TokenKind::End || self.at_declaration() {
                let reported = self.expected("a message type");
                return Err(self.with_help(
                    reported,
                    "write the type, such as `: nav_msgs/msg/Odometry`, or remove the `:`",
                ));
            }
            let start = self.span();
            let text = self.type_name()?;
            let span = start.to(self.last_span());
            self.ast.topics[index].type_name = Some(Name { text, span });
        }
        if self.symbol(0) == "{" {
            let mut places = Default::default();
            let schema = self.schema(&mut String::new(), &mut places);
            self.ast.topics[index].places = places;
            self.ast.topics[index].schema = schema.ok();
            if self.ast.topics[index].schema.is_none() {
                return Err(Reported);
            }
        }
        if *self.peek() != TokenKind::End && self.symbol(0) != ";" && !self.at_declaration() {
            let what = match self.ast.topics[index] {
                Topic { schema: Some(_), .. } => "a declaration",
                Topic { type_name: Some(_), .. } => "`{` or a declaration",
                Topic { address: Some(_), .. } => "`:`, `{` or a declaration",
                _ => "an address in quotes, `:`, `{` or a declaration",
            };
            let word = self.word(0);
            let suggestion =
                if DECLARATIONS.contains(&word) { String::new() } else { did_you_mean(word, DECLARATIONS) };
            let is_address = matches!(self.symbol(0), "=" | "/");
            let reported = self.expected_declaration(what);
            if is_address {
                self.help_last(ADDRESS);
            }
            if let Some(last) = self.last_diagnostic().filter(|_| !suggestion.is_empty()) {
                last.message.push_str(&suggestion);
            }
            return Err(reported);
        }
        Ok(())
    }

    /// Reads the parameters of an address, which is the next token.
    fn address_parameters(&mut self, address: &str) -> Vec<Name> {
        let token = self.span();
        // An escape before a place moves it.
        let place = |parser: &Self, range: Range<usize>| {
            let inside = Span::new(token.start + 1 + range.start, token.start + 1 + range.end);
            if Some(inside.of(parser.text)) == address.get(range) { inside } else { token }
        };
        if let Some(at) = address.find("${") {
            let end = address[at..].find('}').map_or(address.len(), |length| at + length + 1);
            let message = "variables of the environment are not replaced in an address";
            let diagnostic = Diagnostic::new(Code::InvalidAddress, place(self, at..end), message);
            let name = address[at..end].trim_start_matches("${").trim_end_matches('}').to_lowercase();
            let name = if name.is_empty() { "robot" } else { &name };
            let help = format!(
                "write the address itself, or a parameter `{{{name}}}` for the messages of all, with which \
                 `for each` divides a property"
            );
            self.report(diagnostic.help(help));
            return Vec::new();
        }
        match AddressPattern::parse(address) {
            Ok(None) => Vec::new(),
            Ok(Some(pattern)) => {
                let name = |name: &str| {
                    let at = address.find(&format!("{{{name}}}")).map_or(0, |at| at + 1);
                    Name { text: name.to_owned(), span: place(self, at..at + name.len()) }
                };
                pattern.parameters().map(name).collect()
            }
            Err(fault) => {
                let span = place(self, fault.range);
                let diagnostic = Diagnostic::new(Code::InvalidAddress, span, fault.message);
                self.report(diagnostic.help(fault.advice));
                Vec::new()
            }
        }
    }

    /// Passes the type of the elements of an array as other languages write it, `<float>` or `<float, 3>`.
    fn type_in_angles(&mut self) -> Option<&'static str> {
        let element = TYPES.iter().find(|(name, _)| *name == self.word(1)).map(|(name, _)| *name);
        let close = (1..6).find(|ahead| self.symbol(*ahead) == ">");
        if self.symbol(0) != "<" {
            return None;
        }
        (0..=close?).for_each(|_| self.advance());
        element
    }

    fn type_name(&mut self) -> Parsed<String> {
        if let TokenKind::Text(text) = self.peek() {
            let text = text.clone();
            self.advance();
            return Ok(text);
        }
        let mut name = String::new();
        loop {
            let word = self.word(0);
            if word.is_empty() {
                return Err(self.expected("the name of a message type"));
            }
            name.push_str(word);
            self.advance();
            match self.symbol(0) {
                separator @ ("/" | ".") => {
                    name.push_str(separator);
                    self.advance();
                }
                // A scoped name of IDL.
                ":" if self.symbol(1) == ":" => {
                    name.push('/');
                    self.advance();
                    self.advance();
                }
                _ => return Ok(name),
            }
        }
    }

    fn schema(&mut self, path: &mut String, places: &mut HashMap<String, Span>) -> Parsed<Schema> {
        self.expect("{")?;
        let mut schema = Schema::default();
        let outer = path.len();
        while !self.eat("}") {
            let span = self.span();
            let name = match self.peek() {
                TokenKind::Text(text) => text.clone(),
                TokenKind::Word => span.of(self.text).to_owned(),
                _ => return Err(self.expected("the name of a field or `}`")),
            };
            self.advance();
            if !self.eat(":") {
                let reported = self.expected("`:`");
                self.help_last("write a field as `name: type`");
                return Err(reported);
            }
            if outer > 0 {
                path.push('.');
            }
            path.push_str(&name);
            if let Some(first) = places.get(path.as_str()) {
                let diagnostic =
                    Diagnostic::new(Code::DuplicateName, span, format!("field '{name}' is declared twice"))
                        .label(*first, "first declared here");
                self.report(diagnostic);
            }
            let field = self.schema_type(path, places)?;
            path.truncate(outer);
            if schema.fields.iter().all(|(n, _)| *n != name) {
                schema.fields.push((name, field));
            }
            if !self.eat(",") && !self.eat(";") && self.symbol(0) != "}" {
                let last = self.last_span().of(self.text);
                let is_array = self.symbol(0) == "[" && value_type(last).is_some();
                let reported = self.expected("`,` or `}`");
                if is_array {
                    self.help_last(format!("write an array as `[{last}]`"));
                }
                return Err(reported);
            }
        }
        Ok(schema)
    }

    fn schema_type(&mut self, path: &mut String, places: &mut HashMap<String, Span>) -> Parsed<SchemaType> {
        self.deeper(|parser| {
            let span = parser.span();
            let result = match parser.symbol(0) {
                "{" => SchemaType::Object(parser.schema(path, places)?),
                "[" => {
                    parser.advance();
                    path.push_str("[]");
                    let element = parser.schema_type(path, places)?;
                    path.truncate(path.len() - 2);
                    parser.expect("]")?;
                    SchemaType::Array(Box::new(element), None)
                }
                _ => {
                    let word = parser.word(0);
                    if word.is_empty() {
                        return Err(parser.expected("a type"));
                    }
                    parser.advance();
                    SchemaType::Value(value_type(word).unwrap_or_else(|| {
                        let is_array = ARRAYS.contains(&word);
                        let types = || TYPES.iter().map(|(name, _)| *name);
                        let suggestion = if is_array { String::new() } else { did_you_mean(word, types()) };
                        let help = match is_array {
                            true => {
                                let element = parser.type_in_angles().unwrap_or("float");
                                format!("write an array as `[{element}]`")
                            }
                            false => {
                                "the types are bool, int, float, string, time and duration; an array is \
                                      `[float]`, an object `{ x: float }`"
                                    .to_owned()
                            }
                        };
                        let message = format!("unknown type '{word}'{suggestion}");
                        parser.report(Diagnostic::new(Code::UnknownType, span, message).help(help));
                        ValueType::Float
                    }))
                }
            };
            let end = parser.last_span();
            places.insert(path.clone(), if span.start < end.end { span.to(end) } else { span });
            Ok(result)
        })
    }
}

/// Names of arrays in other languages.
const ARRAYS: [&str; 12] =
    ["array", "Array", "list", "List", "sequence", "seq", "vec", "Vec", "vector", "Vector", "tuple", "slice"];

const TYPES: [(&str, ValueType); 25] = [
    ("bool", ValueType::Bool),
    ("int", ValueType::Int),
    ("float", ValueType::Float),
    ("string", ValueType::String),
    ("time", ValueType::Time),
    ("duration", ValueType::Duration),
    ("boolean", ValueType::Bool),
    ("int8", ValueType::Int),
    ("int16", ValueType::Int),
    ("int32", ValueType::Int),
    ("int64", ValueType::Int),
    ("uint8", ValueType::Int),
    ("uint16", ValueType::Int),
    ("uint32", ValueType::Int),
    ("uint64", ValueType::Int),
    ("byte", ValueType::Int),
    ("char", ValueType::Int),
    ("octet", ValueType::Int),
    ("integer", ValueType::Int),
    ("float32", ValueType::Float),
    ("float64", ValueType::Float),
    ("double", ValueType::Float),
    ("number", ValueType::Float),
    ("text", ValueType::String),
    ("wstring", ValueType::String),
];

/// Returns the type for a word of a schema, including the names of interface definitions.
pub(super) fn value_type(word: &str) -> Option<ValueType> {
    TYPES.iter().find(|(name, _)| *name == word).map(|(_, value_type)| *value_type)
}
