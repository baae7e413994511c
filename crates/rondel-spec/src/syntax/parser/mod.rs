//! The parser: its entry points, its state and the keywords of the language.

mod cursor;
mod declaration;
mod name;
mod report;

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{Ast, Body, Name, Node, NodeId, NodeKind, Property, PropertySource};
use super::definition::Definition;
use super::expansion::Expansion;
use super::object::Object;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{self, Token, TokenKind};
use crate::modules::{self, Modules};

/// The maximum nesting depth of expressions and schemas, small enough for the smallest thread stack.
pub(super) const DEPTH: usize = 250;

/// Keywords that start a declaration; the first four are reserved, except as names of fields.
pub(crate) const DECLARATIONS: [&str; 9] =
    ["topic", "const", "let", "property", "machine", "test", "chain", "assert", "use"];

/// Reserved words, which cannot be names.
pub(crate) const RESERVED: [&str; 18] = [
    "true",
    "false",
    "not",
    "and",
    "or",
    "since",
    "until",
    "if",
    "then",
    "else",
    "previously",
    "once",
    "historically",
    "eventually",
    "always",
    "next",
    "exists",
    "forall",
];

/// Keywords before an operand.
pub(crate) const PREFIX: [&str; 7] =
    ["not", "previously", "once", "historically", "eventually", "always", "next"];

/// Other keywords that are followed by a space before a parenthesis.
pub(crate) const BEFORE_PARENTHESIS: [&str; 8] =
    ["and", "or", "since", "until", "if", "then", "else", "over"];

/// Infix keywords.
pub(super) const INFIX: [&str; 6] = ["and", "or", "since", "until", "then", "else"];

/// The marker of a parse error that has been reported.
pub(super) struct Reported;

pub(super) type Parsed<T> = Result<T, Reported>;

/// Parses a specification whose text has these files, the one that imports the others last.
pub(crate) fn parse_files(
    text: &str,
    files: &[Span],
    modules: Rc<Modules>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Ast {
    let mut parser = Parser::new(text, files, diagnostics);
    parser.ast.modules = modules;
    parser.ast.imported = files.last().map_or(0, |file| file.start);
    parser.find_definitions();
    parser.find_objects();
    loop {
        parser.declarations();
        if parser.at + 1 >= parser.tokens.len() {
            break;
        }
        // The next file.
        parser.at += 1;
        parser.is_in_head = true;
    }
    parser.note_uses();
    parser.ast
}

/// The syntactic role of a token, for the formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The first token of a declaration, including its attributes.
    Declaration,
    /// The `for` of a `for each`.
    ForEach,
    /// The `until` of a `for each`.
    Until,
    /// The first token of an outermost expression.
    Formula,
    /// The brace before the statements of a machine or a test.
    Body,
    /// The first token of a statement.
    Statement,
    /// A keyword that starts a clause of a statement or a chain.
    Clause,
}

/// Returns the tokens of a specification and their marks.
pub(crate) fn marks(text: &str, diagnostics: &mut Vec<Diagnostic>) -> (Vec<Token>, Vec<(usize, Mark)>) {
    let mut parser = Parser::new(text, &[Span::new(0, text.len())], diagnostics);
    parser.is_part = true;
    parser.find_definitions();
    parser.find_objects();
    parser.declarations();
    (parser.tokens, parser.marks)
}

/// Parses a single formula into a specification with one property named `property`.
pub(crate) fn parse_single(text: &str, property: &str, diagnostics: &mut Vec<Diagnostic>) -> Ast {
    let mut parser = Parser::new(text, &[Span::new(0, text.len())], diagnostics);
    parser.ast.single = true;
    let first = parser.ast.nodes.len();
    let root = parser.expression().and_then(|root| match parser.peek() {
        TokenKind::End => Ok(root),
        _ => Err(parser.after_expression(&[], "an operator or the end of the formula")),
    });
    let body = Body { first, root: root.ok() };
    let name = Name { text: property.to_owned(), span: Span::new(0, text.len()) };
    parser.ast.property_sources.push(PropertySource::Property(0));
    parser.ast.properties.push(Property { name, attributes: Vec::new(), each: None, body });
    parser.ast
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    pub(super) depth: usize,
    /// Whether a brace ends the current expression, because a body follows.
    pub(super) before_body: bool,
    /// Whether no other declaration than `use` has begun in the current file.
    pub(super) is_in_head: bool,
    /// Whether the text is one file of several, so that a function may be defined in another one.
    pub(super) is_part: bool,
    pub(super) ast: Ast,
    /// The local variables in scope, the innermost last, as indices in [`Ast::variables`].
    pub(super) scope: Vec<usize>,
    /// The marks, with the index of their token.
    marks: Vec<(usize, Mark)>,
    /// The definitions with parameters, also those below.
    pub(super) definitions: Rc<Vec<Definition>>,
    /// The objects that have names, by them.
    pub(super) objects: HashMap<String, Object>,
    /// The definitions that are being expanded, and the arguments of the innermost.
    pub(super) expansion: Expansion,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, files: &[Span], diagnostics: &'a mut Vec<Diagnostic>) -> Parser<'a> {
        let mut tokens = Vec::new();
        let (mut ast, scope) = (Ast::default(), Vec::new());
        for file in files {
            let (joined, aliases) = modules::qualified(text, lexer::tokens_of(text, &[*file], diagnostics));
            tokens.extend(joined);
            let aliases = aliases.into_iter();
            ast.aliases
                .extend(aliases.map(|(span, uses)| (Name { text: span.of(text).to_owned(), span }, uses)));
        }
        Parser {
            text,
            tokens,
            at: 0,
            depth: 0,
            before_body: false,
            is_in_head: true,
            is_part: false,
            marks: Vec::new(),
            ast,
            scope,
            definitions: Rc::default(),
            objects: HashMap::new(),
            expansion: Expansion::default(),
            diagnostics,
        }
    }

    /// Marks the current token.
    pub(super) fn mark(&mut self, mark: Mark) {
        self.marks.push((self.at, mark));
    }

    /// Returns whether the previous statement ends with an expression.
    pub(super) fn is_behind_formula(&self) -> bool {
        matches!(self.marks.iter().rev().nth(1), Some((_, Mark::Formula)))
    }

    pub(super) fn node(&mut self, kind: NodeKind, span: Span) -> NodeId {
        self.ast.nodes.push(Node { kind, span });
        self.ast.nodes.len() - 1
    }

    /// Runs `parse` one nesting level deeper, up to the maximum depth.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            let message = format!("expression is nested more than {DEPTH} levels deep");
            return Err(self.report(
                Diagnostic::new(Code::TooDeep, self.span(), message).help("name a part of it with `let`"),
            ));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }
}
