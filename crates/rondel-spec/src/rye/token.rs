//! Tokens of Reelay's format.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{begins_word, continues_word};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RyeKind {
    Word,
    /// A key or a string, without its quotes; there are no escapes.
    Quoted(String),
    Number,
    Symbol(&'static str),
    End,
}

#[derive(Clone, Debug)]
pub(super) struct RyeToken {
    pub(super) kind: RyeKind,
    pub(super) span: Span,
}

/// All symbols, each before its own prefixes.
const SYMBOLS: [&str; 22] = [
    "->", "||", "&&", "==", "!=", "<=", ">=", "::", "<", ">", "!", "{", "}", "(", ")", "[", "]", ":", ",",
    "*", "$", ".",
];

/// Returns the tokens of `text` within `body`, with a final `End`.
pub(super) fn tokens(text: &str, body: Span, diagnostics: &mut Vec<Diagnostic>) -> Vec<RyeToken> {
    let text = text.get(..body.end).unwrap_or(text);
    let mut tokens = Vec::new();
    let mut at = body.start;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = &text[at..];
        let while_true = |from: usize, belongs: fn(char) -> bool| {
            from + rest[from..].find(|c| !belongs(c)).unwrap_or(rest.len() - from)
        };
        let digits = |from: usize| while_true(from, |c| c.is_ascii_digit());
        let sign = usize::from(c == '-');
        let (kind, length) = if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if begins_word(c) {
            (RyeKind::Word, while_true(0, continues_word))
        } else if rest[sign..].starts_with(|c: char| c.is_ascii_digit()) {
            let mut end = digits(sign);
            if rest[end..].starts_with('.') && digits(end + 1) > end + 1 {
                end = digits(end + 1);
            }
            (RyeKind::Number, end)
        } else if c == '"' || c == '\'' {
            match rest[1..].find(c) {
                Some(length) => (RyeKind::Quoted(rest[1..=length].to_owned()), length + 2),
                None => {
                    diagnostics.push(
                        Diagnostic::new(Code::UnclosedText, Span::new(at, text.len()), "unterminated string")
                            .help(format!("close the string with {c}; there are no escapes")),
                    );
                    (RyeKind::Quoted(rest[1..].to_owned()), rest.len())
                }
            }
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            (RyeKind::Symbol(symbol), symbol.len())
        } else {
            let span = Span::new(at, at + c.len_utf8());
            let message = format!("unexpected character `{}`", c.escape_debug());
            let mut diagnostic = Diagnostic::new(Code::UnexpectedCharacter, span, message);
            if tokens.last().is_some_and(|t: &RyeToken| t.kind == RyeKind::Word && t.span.end == at) {
                diagnostic = diagnostic.help("quote keys and strings that contain this character");
            }
            diagnostics.push(diagnostic);
            // One report is enough for a text that is not a formula at all.
            break;
        };
        tokens.push(RyeToken { kind, span: Span::new(at, at + length) });
        at += length;
    }
    let end = text.len().max(body.start);
    tokens.push(RyeToken { kind: RyeKind::End, span: Span::new(end, end) });
    tokens
}
