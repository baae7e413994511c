//! Tokens with the comments around them.

use crate::lexer::{Token, TokenKind};

/// A comment on its own line.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    /// Whether an empty line precedes it.
    pub(super) blank: bool,
}

/// A token with its comments.
#[derive(Debug)]
pub(super) struct Lexeme<'a> {
    pub(super) text: &'a str,
    pub(super) kind: TokenKind,
    /// The position among the tokens.
    pub(super) token: usize,
    /// Comments on their own lines before the token.
    pub(super) before: Vec<Comment>,
    /// Comments after the token, on the same line.
    pub(super) behind: Vec<String>,
    /// Whether an empty line precedes the token, after its comments.
    pub(super) blank: bool,
    /// Whether the token starts a line.
    pub(super) new_line: bool,
}

/// Returns the tokens that are not `dropped`, including the final `End`, with their comments.
pub(super) fn lexemes<'a>(text: &'a str, tokens: &[Token], dropped: &[bool]) -> Vec<Lexeme<'a>> {
    let mut lexemes: Vec<Lexeme<'a>> = Vec::new();
    let mut end = 0;
    let mut gap = String::new();
    for (i, token) in tokens.iter().enumerate() {
        gap.push_str(text.get(end..token.span.start).unwrap_or(""));
        end = token.span.end;
        if dropped.get(i).copied().unwrap_or(false) {
            continue;
        }
        let mut lexeme = Lexeme {
            text: token.span.of(text),
            kind: token.kind.clone(),
            token: i,
            before: Vec::new(),
            behind: Vec::new(),
            blank: false,
            new_line: gap.contains('\n'),
        };
        let mut behind = Vec::new();
        let lines: Vec<&str> = gap.split('\n').collect();
        let mut blank = false;
        for (n, line) in lines.iter().enumerate() {
            let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            if line.is_empty() {
                // The first and the last part of a gap are not complete lines.
                blank |= n > 0 && n + 1 < lines.len();
            } else if n == 0 && !lexemes.is_empty() {
                behind.push(line.to_owned());
            } else {
                lexeme.before.push(Comment { text: line.to_owned(), blank });
                blank = false;
            }
        }
        lexeme.blank = blank;
        if let Some(last) = lexemes.last_mut() {
            last.behind = behind;
        }
        lexemes.push(lexeme);
        gap.clear();
    }
    lexemes
}

impl Lexeme<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }

    /// Returns the closing bracket for an opening one.
    pub(super) fn closing(&self) -> Option<&'static str> {
        match self.kind {
            TokenKind::Symbol("(") => Some(")"),
            TokenKind::Symbol("[") => Some("]"),
            TokenKind::Symbol("{") => Some("}"),
            _ => None,
        }
    }
}
