//! The position of the parser among the tokens.

use super::Parser;
use crate::diagnostic::Span;
use crate::lexer::{Token, TokenKind};

impl<'a> Parser<'a> {
    pub(in crate::syntax) fn token(&self, ahead: usize) -> &Token {
        // The last token of each file is `End`, and a declaration never moves past it.
        let mut at = self.at;
        while at < self.at + ahead && self.tokens[at].kind != TokenKind::End {
            at += 1;
        }
        &self.tokens[at]
    }

    pub(in crate::syntax) fn peek(&self) -> &TokenKind {
        &self.token(0).kind
    }

    pub(in crate::syntax) fn span(&self) -> Span {
        self.token(0).span
    }

    /// Returns the span of the previous token.
    pub(in crate::syntax) fn last_span(&self) -> Span {
        self.at.checked_sub(1).map_or(Span::default(), |i| self.tokens[i].span)
    }

    /// Returns the word `ahead` tokens from here; empty if that token is not a word.
    pub(in crate::syntax) fn word(&self, ahead: usize) -> &'a str {
        let token = self.token(ahead);
        if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" }
    }

    pub(in crate::syntax) fn symbol(&self, ahead: usize) -> &'static str {
        if let TokenKind::Symbol(s) = self.token(ahead).kind { s } else { "" }
    }

    /// Returns the token `back` tokens before this one, at most the first.
    pub(in crate::syntax) fn token_before(&self, back: usize) -> &Token {
        &self.tokens[self.at.saturating_sub(back)]
    }

    /// Returns the symbol `back` tokens before this one; empty if that token is not a symbol.
    pub(in crate::syntax) fn symbol_before(&self, back: usize) -> &'static str {
        match self.at.checked_sub(back).map(|i| &self.tokens[i].kind) {
            Some(TokenKind::Symbol(symbol)) => symbol,
            _ => "",
        }
    }

    /// Returns the word `back` tokens before this one; empty if that token is not a word.
    pub(in crate::syntax) fn word_before(&self, back: usize) -> &'a str {
        let token = self.at.checked_sub(back).map(|i| &self.tokens[i]);
        token.filter(|token| token.kind == TokenKind::Word).map_or("", |token| token.span.of(self.text))
    }

    pub(in crate::syntax) fn advance(&mut self) {
        self.at += usize::from(!self.at_end());
    }

    pub(in crate::syntax) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.symbol(0) == symbol;
        if found {
            self.advance();
        }
        found
    }

    pub(in crate::syntax) fn at_end(&self) -> bool {
        *self.peek() == TokenKind::End
    }

    /// Returns the current position, for [`Parser::open_braces`] and [`Parser::written`].
    pub(in crate::syntax) fn place(&self) -> usize {
        self.at
    }

    /// Continues at another position, which [`Parser::place`] has returned or [`Parser::tokens`] has.
    pub(in crate::syntax) fn go_to(&mut self, place: usize) {
        self.at = place.min(self.tokens.len() - 1);
    }

    pub(in crate::syntax) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Returns the number of open braces between a position and here.
    pub(in crate::syntax) fn open_braces(&self, from: usize) -> usize {
        self.tokens[from..self.at].iter().fold(0, |open: usize, token| match token.kind {
            TokenKind::Symbol("{") => open + 1,
            TokenKind::Symbol("}") => open.saturating_sub(1),
            _ => open,
        })
    }

    /// Returns whether the current token starts a line.
    pub(in crate::syntax) fn begins_line(&self) -> bool {
        Span::new(self.last_span().end, self.span().start).of(self.text).contains('\n')
    }

    /// Returns the text between a position and here, on one line and without comments.
    pub(in crate::syntax) fn written(&self, from: usize) -> String {
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
    pub(in crate::syntax) fn words_since(&self, from: usize) -> Vec<&str> {
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
    pub(in crate::syntax) fn is_topic(&self, name: &str) -> bool {
        let text = |token: &Token| if token.kind == TokenKind::Word { token.span.of(self.text) } else { "" };
        self.tokens.windows(2).any(|pair| text(&pair[0]) == "topic" && text(&pair[1]) == name)
    }
}
