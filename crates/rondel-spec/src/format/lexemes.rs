//! The words of a text, each with the comments around it.

use crate::lexer::{Token, TokenKind};

/// A comment, or a word.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    pub(super) text: String,
    /// Whether an empty line stands before it.
    pub(super) blank: bool,
}

/// A word and what stands before and behind it.
#[derive(Debug)]
pub(super) struct Lexeme<'a> {
    pub(super) text: &'a str,
    pub(super) kind: TokenKind,
    /// Its position among the tokens.
    pub(super) token: usize,
    /// Comments on lines of their own before it.
    pub(super) before: Vec<Comment>,
    /// Comments behind it, on its line.
    pub(super) behind: Vec<String>,
    /// Whether an empty line stands before it, after the comments.
    pub(super) blank: bool,
    /// Whether it is on another line than the word before it.
    pub(super) new_line: bool,
}

/// The words of a text but those that `dropped` names, with one more for the end.
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
                // The rest of the line before, and the beginning of this one, are not empty lines.
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

    /// What this closes, if it opens something.
    pub(super) fn closing(&self) -> Option<&'static str> {
        match self.kind {
            TokenKind::Symbol("(") => Some(")"),
            TokenKind::Symbol("[") => Some("]"),
            TokenKind::Symbol("{") => Some("}"),
            _ => None,
        }
    }
}
