//! The formatter.

mod declaration;
mod doc;
mod expression;
mod lexemes;

use self::doc::{Doc, all, text};
use self::lexemes::{Lexeme, lexemes};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::syntax::{Mark, marks};

/// Formats a specification: one declaration per line, aligned columns, and long formulas broken at their loosest
/// operators. Keeps comments, and single empty lines.
///
/// # Errors
/// The syntax errors of the text. Names and types are not checked.
///
/// ```
/// let text = "topic gear{report:int}property p=changed( gear.report )->gear.report!=3 // why";
/// assert_eq!(rondel_spec::format(text).unwrap(), "\
/// topic gear { report: int }
/// property p = changed(gear.report) -> gear.report != 3  // why
/// ");
/// ```
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut formatted = once(text)?;
    // A comment may have moved to a place that needs another layout.
    for _ in 0..4 {
        match once(&formatted) {
            Ok(again) if again == formatted => break,
            Ok(again) => formatted = again,
            Err(_) => return Ok(text.to_owned()),
        }
    }
    // Return the text unchanged rather than change its meaning.
    Ok(if same(text, &formatted) { formatted } else { text.to_owned() })
}

fn once(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let (tokens, marks) = marks(text, &mut diagnostics);
    diagnostics.retain(Diagnostic::is_error);
    if !diagnostics.is_empty() {
        diagnostics.sort_by_key(|d| d.span);
        return Err(diagnostics);
    }
    let mut at = vec![None; tokens.len()];
    for (token, mark) in marks {
        if let Some(place) = at.get_mut(token) {
            *place = Some(mark);
        }
    }
    let dropped = dropped(&tokens, &at);
    let lexemes = lexemes(text, &tokens, &dropped);
    let mut formatter = Formatter { marks: at, lexemes, roomy: false, header: false };
    Ok(formatter.file().print())
}

/// Returns the separators to remove: semicolons between declarations or statements, and trailing separators of
/// lists in braces. (In `[1,]`, which can be bounds, the comma has a meaning.)
fn dropped(tokens: &[Token], marks: &[Option<Mark>]) -> Vec<bool> {
    let mut dropped = vec![false; tokens.len()];
    // For each open bracket, whether it contains statements, and whether it is a list.
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol("{" | "(" | "[") => {
                let colon = i.checked_sub(1).is_some_and(|b| tokens[b].kind == TokenKind::Symbol(":"));
                let statements = marks[i] == Some(Mark::Body);
                open.push((statements, !statements && (colon || token.kind == TokenKind::Symbol("{"))));
            }
            TokenKind::Symbol("}" | ")" | "]") => {
                let separator = matches!(
                    i.checked_sub(1).map(|before| &tokens[before].kind),
                    Some(TokenKind::Symbol("," | ";"))
                );
                if open.pop().is_some_and(|(_, list)| list) && separator {
                    dropped[i - 1] = true;
                }
            }
            TokenKind::Symbol(";") => dropped[i] = open.last().is_none_or(|(statements, _)| *statements),
            _ => {}
        }
    }
    dropped
}

/// Returns whether two texts have the same tokens, except for separators.
fn same(one: &str, other: &str) -> bool {
    let words = |text| {
        let tokens = crate::lexer::tokens(text, &mut Vec::new());
        let separator = |kind: &TokenKind| matches!(kind, TokenKind::Symbol("," | ";"));
        let words = tokens.iter().filter(|t| !separator(&t.kind)).map(|t| t.span.of(text).to_owned());
        words.collect::<Vec<_>>()
    };
    words(one) == words(other)
}

struct Formatter<'a> {
    /// The marks of the parser, by token.
    marks: Vec<Option<Mark>>,
    lexemes: Vec<Lexeme<'a>>,
    /// Whether the braces are those of a schema or a message, which have spaces inside.
    roomy: bool,
    /// Whether the lexemes belong to a `for each` or a chain.
    header: bool,
}

impl Formatter<'_> {
    /// Returns the text of a word or symbol; empty for a string.
    fn word(&self, at: usize) -> &str {
        match self.lexemes.get(at) {
            Some(lexeme) if !matches!(lexeme.kind, TokenKind::Text(_)) => lexeme.text,
            _ => "",
        }
    }

    fn mark(&self, at: usize) -> Option<Mark> {
        let token = self.lexemes.get(at)?.token;
        self.marks.get(token).copied().flatten()
    }

    /// Lays out a lexeme with its comments.
    fn lexeme(&mut self, at: usize) -> Doc {
        let Some(lexeme) = self.lexemes.get_mut(at) else { return all(Vec::new()) };
        let mut parts = Vec::new();
        for comment in std::mem::take(&mut lexeme.before) {
            parts.push(Doc::Comment(comment.text));
        }
        let comma = lexeme.kind == TokenKind::Symbol(";");
        parts.push(text(if comma { "," } else { lexeme.text }));
        parts.extend(std::mem::take(&mut lexeme.behind).into_iter().map(Doc::Suffix));
        if parts.len() == 1 { parts.remove(0) } else { all(parts) }
    }
}

#[cfg(test)]
mod tests;
