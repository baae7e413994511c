//! Parser of declarations, with error recovery.

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{Ast, Attribute, Binding, Body, Name, Node, NodeId, NodeKind, Property, PropertySource};
use super::definition::{Definition, Expansion};
use super::forms::NO_QUOTES;
use super::object::Object;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{self, Token, TokenKind};
use crate::modules::{self, Modules, Role};
use crate::suggest::did_you_mean;

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

    pub(super) fn token(&self, ahead: usize) -> &Token {
        // The last token of each file is `End`, and a declaration never moves past it.
        let mut at = self.at;
        while at < self.at + ahead && self.tokens[at].kind != TokenKind::End {
            at += 1;
        }
        &self.tokens[at]
    }

    pub(super) fn peek(&self) -> &TokenKind {
        &self.token(0).kind
    }

    pub(super) fn span(&self) -> Span {
        self.token(0).span
    }

    /// Returns the span of the previous token.
    pub(super) fn last_span(&self) -> Span {
        self.at.checked_sub(1).map_or(Span::default(), |i| self.tokens[i].span)
    }

    /// Returns the word `ahead` tokens from here; empty if that token is not a word.
    pub(super) fn word(&self, ahead: usize) -> &'a str {
        let token = self.token(ahead);
        if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" }
    }

    pub(super) fn symbol(&self, ahead: usize) -> &'static str {
        if let TokenKind::Symbol(s) = self.token(ahead).kind { s } else { "" }
    }

    /// Returns the token `back` tokens before this one, at most the first.
    pub(super) fn token_before(&self, back: usize) -> &Token {
        &self.tokens[self.at.saturating_sub(back)]
    }

    /// Returns the symbol `back` tokens before this one; empty if that token is not a symbol.
    pub(super) fn symbol_before(&self, back: usize) -> &'static str {
        match self.at.checked_sub(back).map(|i| &self.tokens[i].kind) {
            Some(TokenKind::Symbol(symbol)) => symbol,
            _ => "",
        }
    }

    /// Returns the word `back` tokens before this one; empty if that token is not a word.
    pub(super) fn word_before(&self, back: usize) -> &'a str {
        let token = self.at.checked_sub(back).map(|i| &self.tokens[i]);
        token.filter(|token| token.kind == TokenKind::Word).map_or("", |token| token.span.of(self.text))
    }

    pub(super) fn advance(&mut self) {
        self.at += usize::from(!self.at_end());
    }

    pub(super) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.symbol(0) == symbol;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn report(&mut self, mut diagnostic: Diagnostic) -> Reported {
        // The end of the text is often an empty line after an incomplete declaration.
        let at = self.tokens.partition_point(|token| token.span.start < diagnostic.span.start);
        let is_end = |token: &Token| token.kind == TokenKind::End;
        if let [last, end] = self.tokens.get(at.saturating_sub(1)..=at).unwrap_or(&[])
            && (is_end(end) && !is_end(last) && diagnostic.span == end.span)
        {
            diagnostic.span = Span::new(last.span.end, last.span.end);
        }
        self.diagnostics.push(diagnostic);
        Reported
    }

    /// Returns how many diagnostics there are.
    pub(super) fn reported(&self) -> usize {
        self.diagnostics.len()
    }

    /// Takes back the diagnostics after so many.
    pub(super) fn forget_after(&mut self, reported: usize) {
        self.diagnostics.truncate(reported);
    }

    /// Returns the last reported diagnostic.
    pub(super) fn last_diagnostic(&mut self) -> Option<&mut Diagnostic> {
        self.diagnostics.last_mut()
    }

    /// Returns the current token for a message.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            TokenKind::End => "end of input".to_owned(),
            TokenKind::Text(_) => "a string".to_owned(),
            TokenKind::Rye { .. } => "a formula in Reelay's format".to_owned(),
            _ => format!("`{}`", self.span().of(self.text)),
        }
    }

    pub(super) fn expected(&mut self, what: &str) -> Reported {
        if *self.peek() == TokenKind::Unknown {
            return Reported;
        }
        let message = format!("expected {what}, found {}", self.found());
        self.report(Diagnostic::new(Code::UnexpectedToken, self.span(), message))
    }

    /// Sets the advice of the last reported diagnostic.
    pub(super) fn help_last(&mut self, help: impl Into<String>) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.help = Some(help.into());
        }
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    /// Parses a name that is declared or local, without that of an import.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.word(0).contains('.') {
            let reported = self.expected(&format!("the name of {what}"));
            self.help_last("names consist of letters, digits and `_`");
            return Err(reported);
        }
        let name = self.any_name(what)?;
        if matches!(what, "a parameter" | "a variable" | "an element") {
            self.refuse_alias(&name);
        }
        Ok(name)
    }

    /// Reports a local name that is that of an import of its file.
    pub(super) fn refuse_alias(&mut self, name: &Name) {
        if !self.ast.modules.is_alias(name.span.start, &name.text) {
            return;
        }
        let before = self
            .ast
            .aliases
            .iter()
            .rev()
            .find(|(alias, _)| alias.text == name.text && alias.span < name.span);
        let Some(first) = before.map(|(alias, _)| alias.span) else { return };
        let message = format!("'{}' is declared twice", name.text);
        let diagnostic = Diagnostic::new(Code::DuplicateName, name.span, message);
        self.report(diagnostic.label(first, "first declared here"));
    }

    /// Parses the name that a declaration gives.
    pub(super) fn declared_name(&mut self, what: &str) -> Parsed<Name> {
        let mut name = self.name(what)?;
        name.text.insert_str(0, self.ast.modules.prefix(name.span.start));
        Ok(name)
    }

    /// Parses the name of something that is declared elsewhere, also `limits.near`.
    pub(super) fn used_name(&mut self, what: &str, role: Role) -> Parsed<Name> {
        let name = self.any_name(what)?;
        Ok(self.full(name, role))
    }

    /// Returns a name as its declaration gives it.
    pub(super) fn full(&self, mut name: Name, role: Role) -> Name {
        name.text = self.ast.modules.full(name.span.start, &name.text, role);
        name
    }

    fn any_name(&mut self, what: &str) -> Parsed<Name> {
        let word = self.word(0);
        let reserved = RESERVED.contains(&word) || DECLARATIONS[..4].contains(&word);
        if word.is_empty() || reserved {
            let reported = self.expected(&format!("the name of {what}"));
            if reserved && !self.at_declaration() {
                self.help_last(format!("`{word}` is a keyword and cannot be a name"));
            }
            if matches!(self.peek(), TokenKind::Text(_)) {
                self.help_last(NO_QUOTES);
            }
            return Err(reported);
        }
        let name = Name { text: word.to_owned(), span: self.span() };
        self.advance();
        Ok(name)
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

    /// Skips the rest of a body with `open` open braces, so that its content is not parsed as declarations.
    pub(super) fn leave_body(&mut self, mut open: usize) -> Reported {
        let from = self.at;
        while open > 0 {
            match self.symbol(0) {
                "{" => open += 1,
                "}" => open -= 1,
                _ if *self.peek() == TokenKind::End => {
                    // The braces do not match; continue with the next declaration instead of the end of the text.
                    self.at = from;
                    break;
                }
                _ => {}
            }
            self.advance();
        }
        Reported
    }

    /// Returns the number of open braces between a position and here.
    pub(super) fn open_braces(&self, from: usize) -> usize {
        self.tokens[from..self.at].iter().fold(0, |open: usize, token| match token.kind {
            TokenKind::Symbol("{") => open + 1,
            TokenKind::Symbol("}") => open.saturating_sub(1),
            _ => open,
        })
    }

    pub(super) fn at_end(&self) -> bool {
        *self.peek() == TokenKind::End
    }

    /// Returns the current position, for [`Parser::open_braces`] and [`Parser::written`].
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Continues at another position, which [`Parser::place`] has returned or [`Parser::tokens`] has.
    pub(super) fn go_to(&mut self, place: usize) {
        self.at = place.min(self.tokens.len() - 1);
    }

    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Returns the text between a position and here, on one line and without comments.
    pub(super) fn written(&self, from: usize) -> String {
        let mut out = String::new();
        let mut end = None;
        for token in &self.tokens[from..self.at] {
            if end.is_some_and(|end| end < token.span.start) {
                out.push(' ');
            }
            out.push_str(token.span.of(self.text));
            end = Some(token.span.end);
        }
        out
    }

    /// Returns the tokens between a position and here; a duration is a number and a unit.
    pub(super) fn words_since(&self, from: usize) -> Vec<&str> {
        let words = self.tokens[from..self.at].iter().flat_map(|token| {
            let text = token.span.of(self.text);
            match token.kind {
                TokenKind::Duration => {
                    let digits = text.trim_end_matches(char::is_alphabetic).len();
                    [&text[..digits], &text[digits..]]
                }
                _ => [text, ""],
            }
        });
        words.filter(|word| !word.is_empty()).collect()
    }

    /// Returns whether a topic has this name, declared above or below.
    pub(super) fn is_topic(&self, name: &str) -> bool {
        let text = |token: &Token| if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" };
        self.tokens.windows(2).any(|pair| text(&pair[0]) == "topic" && text(&pair[1]) == name)
    }

    /// Returns whether a declaration starts here. Its keywords are not reserved: the next token decides, so that a
    /// field can be named `topic` or `test`.
    pub(super) fn at_declaration(&self) -> bool {
        let next = self.word(1);
        match self.word(0) {
            "topic" | "const" | "let" | "property" => !next.is_empty() && !INFIX.contains(&next),
            "machine" => !next.is_empty() && (self.symbol(2) == "{" || self.word(2) == "for"),
            "chain" => !next.is_empty() && matches!(self.symbol(2), "->" | "="),
            "test" => matches!(self.token(1).kind, TokenKind::Text(_)),
            "use" => self.at_import(),
            "assert" => !next.is_empty() && !INFIX.contains(&next),
            _ => self.symbol(0) == "@",
        }
    }

    fn declarations(&mut self) {
        while *self.peek() != TokenKind::End {
            if self.eat(";") {
                continue;
            }
            let from = self.at;
            if self.declaration().is_err() {
                (self.depth, self.before_body) = (0, false);
                self.scope.clear();
                self.expansion.end();
                // Skip at least one token, so that the loop ends.
                if self.at == from {
                    self.advance();
                }
                while *self.peek() != TokenKind::End && !self.at_declaration() {
                    self.advance();
                }
            }
        }
    }

    fn declaration(&mut self) -> Parsed<()> {
        self.mark(Mark::Declaration);
        let attributes_from = self.span();
        let mut attributes = Vec::new();
        while self.symbol(0) == "@" {
            attributes.push(self.attribute()?);
        }
        let word = self.word(0);
        if !attributes.is_empty() && !matches!(word, "property" | "machine" | "chain" | "assert") {
            let span = attributes_from.to(self.last_span());
            let message = "attributes apply only to properties, machines, chains and asserts";
            self.report(Diagnostic::new(Code::MisplacedAttribute, span, message));
        }
        let start = self.span();
        if self.at_import() {
            return self.import();
        }
        self.is_in_head = false;
        if !self.at_declaration()
            && let Some(reported) = self.malformed_declaration()
        {
            return Err(reported);
        }
        match word {
            "topic" => self.topic(),
            "const" | "let" => self.binding(word == "const"),
            "property" => self.property(attributes),
            "machine" => self.machine(attributes),
            "chain" => self.chain(attributes),
            "assert" => self.assert(attributes),
            "test" => self.test(),
            _ => {
                let suggestion = did_you_mean(word, DECLARATIONS);
                let message = format!("expected a declaration, found {}{suggestion}", self.found());
                let help = self.foreign_declaration().filter(|_| suggestion.is_empty()).unwrap_or_else(|| {
                    "declarations start with `topic`, `const`, `let`, `property`, `assert`, `machine`, `chain`, `test` or `use`"
                        .to_owned()
                });
                Err(self.report(Diagnostic::new(Code::UnexpectedToken, start, message).help(help)))
            }
        }
    }

    /// Returns whether the current token starts a line.
    pub(super) fn begins_line(&self) -> bool {
        Span::new(self.last_span().end, self.span().start).of(self.text).contains('\n')
    }

    fn binding(&mut self, constant: bool) -> Parsed<()> {
        let keyword = if constant { "const" } else { "let" };
        self.advance();
        let index_of_name = self.at;
        let name = self.declared_name(&format!("a `{keyword}`"))?;
        let index = self.ast.bindings.len();
        let first = self.ast.nodes.len();
        self.ast.bindings.push(Binding { name, constant, body: Body { first, root: None } });
        if !constant && self.symbol(0) == "(" {
            self.ast.bindings.pop();
            return self.definition(index_of_name);
        }
        if let sign @ (":" | "(") = self.symbol(0) {
            let reported = self.expected("`=`");
            self.help_last(match sign {
                "(" => "a `const` takes no parameters: write `let` instead".to_owned(),
                _ => format!("the type of a `{keyword}` is inferred: write `{keyword} name = …`"),
            });
            return Err(reported);
        }
        self.declared_as()?;
        let root = self.expression_to_end()?;
        self.ast.bindings[index].body.root = Some(root);
        if self.objects.contains_key(&self.ast.bindings[index].name.text) {
            // Its uses are checked, each with its fields.
            self.ast.bindings.truncate(index);
            self.ast.nodes.truncate(first);
        }
        Ok(())
    }

    fn property(&mut self, attributes: Vec<Attribute>) -> Parsed<()> {
        self.advance();
        let name = self.declared_name("a property")?;
        let index = self.ast.properties.len();
        let first = self.ast.nodes.len();
        let body = Body { first, root: None };
        self.ast.property_sources.push(PropertySource::Property(index));
        self.ast.properties.push(Property { name, attributes, each: None, body });
        if self.word(0) == "for" {
            self.ast.properties[index].each = Some(self.each()?);
        }
        let written = self.ast.properties[index].name.span.of(self.text).to_owned();
        let late = self.late_attributes(&written)?;
        self.ast.properties[index].attributes.extend(late);
        if matches!(self.symbol(0), ":" | "(" | ":=" | "{") || matches!(self.word(0), "foreach" | "per") {
            let reported = self.expected("`=`");
            self.help_last(
                "write `property p = …`, or `property p for each k in topic.field = …` for one instance per value of a field",
            );
            return Err(reported);
        }
        self.declared_as()?;
        let first = self.ast.nodes.len();
        let root = self.expression_to_end()?;
        let attributes = self.ast.properties[index].attributes.clone();
        let root = self.steadied(&attributes, root)?;
        self.ast.properties[index].body = Body { first, root: Some(root) };
        Ok(())
    }

    /// Parses the `=` of a declaration.
    pub(super) fn declared_as(&mut self) -> Parsed<()> {
        if self.eat("=") {
            return Ok(());
        }
        let is_cut = matches!(self.symbol(0), "-" | "." | "/");
        let reported = self.expected("`=`");
        if is_cut {
            self.help_last("names consist of letters, digits and `_`");
        }
        Err(reported)
    }

    /// Expects the next declaration or the end of the text.
    pub(super) fn end_of_declaration(&mut self) -> Parsed<()> {
        if *self.peek() == TokenKind::End || self.symbol(0) == ";" || self.at_declaration() {
            return Ok(());
        }
        Err(self.expected_declaration("a declaration"))
    }

    /// Parses an expression and expects the next declaration or the end of the text.
    pub(super) fn expression_to_end(&mut self) -> Parsed<NodeId> {
        self.mark(Mark::Formula);
        let root = self.expression()?;
        if *self.peek() == TokenKind::End || self.symbol(0) == ";" || self.at_declaration() {
            return Ok(root);
        }
        Err(self.after_expression(&DECLARATIONS, "an operator or a declaration"))
    }
}
