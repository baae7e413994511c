//! Tokens of the Rondel language.

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::suggest::{hint, translation};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// A name or a keyword; the parser decides which.
    Word,
    /// A string, without its quotes and with its escapes replaced.
    Text(String),
    Int(u64),
    Float(f64),
    /// A number directly followed by letters, such as `200ms`.
    Duration,
    /// `rye"…"`: the topic before the quotes, and the span between them.
    Rye {
        topic: Option<Span>,
        body: Span,
    },
    Symbol(&'static str),
    /// Characters that form no token and have been reported.
    Unknown,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// Advice on larger indices.
pub(crate) const LARGEST_INDEX: &str = "array indices start at 0 and are at most 4294967295";

/// All symbols, each before its own prefixes.
const SYMBOLS: [&str; 38] = [
    // Operators of other languages, recognised for better diagnostics.
    "<=>", "==>", "===", "<>", "=>", "<->", "->", "<=", ">=", "==", "!=", "&&", "||", "<", ">", "=", "!", "+",
    "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ".", ":", ";", "@", "?", "|", "&", "$", "~",
];

/// Returns the symbol that a text begins with.
fn symbol(text: &str) -> Option<&'static str> {
    SYMBOLS.iter().copied().find(|s| text.starts_with(s))
}

/// Returns the tokens of `text` and a final `End`, and reports characters that form no token.
pub(crate) fn tokens(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    tokens_of(text, &[Span::new(0, text.len())], diagnostics)
}

/// Returns the tokens of the files of a text, each with a final `End`, and reports characters that form no token.
pub(crate) fn tokens_of(text: &str, files: &[Span], diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let mut all = Vec::new();
    for file in files {
        let text = text.get(..file.end).unwrap_or(text);
        let mut lexer = Lexer { text, at: file.start.min(text.len()), tokens: all, diagnostics };
        while lexer.next() {}
        lexer.tokens.push(Token { kind: TokenKind::End, span: Span::new(text.len(), text.len()) });
        all = lexer.tokens;
    }
    all
}

/// Gives the tokens of a text, until `take` returns false.
pub(crate) fn first_tokens(text: &str, mut take: impl FnMut(&Token) -> bool) {
    let mut diagnostics = Vec::new();
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new(), diagnostics: &mut diagnostics };
    let mut taken = 0;
    while lexer.next() {
        while let Some(token) = lexer.tokens.get(taken) {
            taken += 1;
            if !take(token) {
                return;
            }
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

pub(crate) fn begins_word(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

pub(crate) fn continues_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.tokens.push(Token { kind, span: Span::new(start, self.at) });
    }

    fn skip_while(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }

    /// Reads one token or skips a space or a comment; returns false at the end of the text.
    fn next(&mut self) -> bool {
        let start = self.at;
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return false };
        if c.is_whitespace() || c == '\u{feff}' {
            // Some editors write a byte order mark at the start of a file.
            self.at += c.len_utf8();
        } else if c == '#' || rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if begins_word(c) {
            self.skip_while(continues_word);
            if !(&self.text[start..self.at] == "rye" && self.rye(start)) {
                self.push(TokenKind::Word, start);
            }
        } else if c.is_ascii_digit() {
            self.number(start);
        } else if c == '"' || c == '\'' {
            self.quoted(start, c);
        } else if let Some(symbol) = symbol(rest) {
            self.at += symbol.len();
            self.push(TokenKind::Symbol(symbol), start);
        } else {
            // One report for a whole run of characters, as in a binary file.
            self.skip_while(|c| {
                !c.is_whitespace() && !begins_word(c) && !c.is_ascii() || c.is_control() && !c.is_whitespace()
            });
            if self.at == start {
                self.at += c.len_utf8();
            }
            self.push(TokenKind::Unknown, start);
            let span = Span::new(start, self.at);
            let shown = if c == '\\' { c.to_string() } else { c.escape_debug().to_string() };
            let message = format!("unexpected character `{shown}`");
            let mut diagnostic = Diagnostic::new(Code::UnexpectedCharacter, span, message);
            let found = span.of(self.text);
            diagnostic.help = match translation(found) {
                Some(meant) => Some(format!("write `{meant}`")),
                None if rest.starts_with("\\/") => Some("write `or`".to_owned()),
                None if c == '\\' && self.text[..start].ends_with('/') => Some("write `and`".to_owned()),
                None => hint(found).map(str::to_owned),
            };
            self.diagnostics.push(diagnostic);
        }
        true
    }

    fn number(&mut self, start: usize) {
        self.skip_while(|c| c.is_ascii_digit() || c == '_');
        let mut fraction = false;
        let mut after = self.rest().chars();
        if after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            fraction = true;
            self.at += 1;
            self.skip_while(|c| c.is_ascii_digit() || c == '_');
        }
        let exponent = self.rest().trim_start_matches(['e', 'E']);
        if exponent.len() + 1 == self.rest().len()
            && exponent.strip_prefix(['-', '+']).unwrap_or(exponent).starts_with(|c: char| c.is_ascii_digit())
        {
            fraction = true;
            self.at += 2;
            self.skip_while(|c| c.is_ascii_digit());
        }
        let digits = self.text[start..self.at].replace('_', "");
        if self.rest().starts_with(begins_word) {
            self.skip_while(continues_word);
            self.push(TokenKind::Duration, start);
            return;
        }
        let span = Span::new(start, self.at);
        let kind = if fraction {
            digits.parse().ok().filter(|x: &f64| x.is_finite()).map(TokenKind::Float)
        } else {
            digits.parse().ok().map(TokenKind::Int)
        };
        let kind = kind.unwrap_or_else(|| {
            self.diagnostics.push(Diagnostic::new(Code::InvalidNumber, span, "number is too large").help(
                if self.is_in_index() {
                    LARGEST_INDEX
                } else if fraction {
                    "the largest number is about 1.8e308"
                } else {
                    "integers have 64 bits; write a larger number as a float, such as `1.0e30`"
                },
            ));
            if fraction { TokenKind::Float(0.0) } else { TokenKind::Int(0) }
        });
        self.push(kind, start);
    }

    /// Whether the next token is an index: after `[` behind a field, or behind another index.
    fn is_in_index(&self) -> bool {
        let is = |token: &Token, symbol| matches!(token.kind, TokenKind::Symbol(other) if other == symbol);
        match self.tokens.as_slice() {
            [.., before, open] if is(before, "]") => is(open, "["),
            [.., point, _, open] => is(point, ".") && is(open, "["),
            _ => false,
        }
    }

    fn quoted(&mut self, start: usize, quote: char) {
        let mut value = String::new();
        self.at += 1;
        loop {
            let place = self.at;
            // A string ends with its line, so that a missing quote does not swallow the rest of the file.
            let Some(c) = self.rest().chars().next().filter(|c| *c != '\n') else {
                self.diagnostics.push(
                    Diagnostic::new(Code::UnclosedText, Span::new(start, self.at), "unterminated string")
                        .help("close the string with the same quote on the same line"),
                );
                break;
            };
            self.at += c.len_utf8();
            if c == quote {
                break;
            }
            if c != '\\' {
                value.push(c);
                continue;
            }
            match self.escape() {
                Some(c) => value.push(c),
                None => {
                    let span = Span::new(place, self.at);
                    let written = span.of(self.text);
                    let diagnostic = Diagnostic::new(Code::InvalidEscape, span, "unknown escape in a string");
                    let escapes =
                        "the escapes are \\\\ \\\" \\' \\n \\r \\t and \\u{…} with hexadecimal digits";
                    let is_letter = written.len() > 1 && !written.starts_with("\\u");
                    self.diagnostics.push(diagnostic.help(match is_letter {
                        true => format!("write `\\{written}` for a backslash; {escapes}"),
                        false => escapes.to_owned(),
                    }));
                    // As it is meant, so that a regular expression is not malformed too.
                    value.push_str(written);
                }
            }
        }
        self.push(TokenKind::Text(value), start);
    }

    /// Reads the rest of an escape after its backslash and returns its character.
    fn escape(&mut self) -> Option<char> {
        let c = self.rest().chars().next().filter(|c| *c != '\n')?;
        self.at += c.len_utf8();
        match c {
            '\\' | '"' | '\'' => Some(c),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                let digits = self.rest().strip_prefix('{')?;
                let (digits, _) = digits.split_once('}').filter(|(d, _)| d.len() <= 6)?;
                let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
                self.at += digits.len() + 2;
                Some(c)
            }
            _ => None,
        }
    }

    /// Reads a quoted formula after the word `rye`; returns false if none follows. The formula has no escapes, so
    /// its positions are positions in the file; `#` around the quotes allows quotes inside.
    fn rye(&mut self, start: usize) -> bool {
        let mut at = self.at;
        let mut topic = None;
        let spaced = self.text[at..].trim_start_matches([' ', '\t']);
        if spaced.len() < self.text.len() - at && spaced.starts_with(begins_word) {
            let from = self.text.len() - spaced.len();
            let length = spaced.find(|c| !continues_word(c)).unwrap_or(spaced.len());
            // `limits.gear`, of an import with a name.
            let behind = spaced.get(length..).and_then(|rest| rest.strip_prefix('.')).unwrap_or("");
            let member = behind.find(|c| !continues_word(c)).unwrap_or(behind.len());
            let member = if behind.starts_with(begins_word) { member + 1 } else { 0 };
            topic = Some(Span::new(from, from + length + member));
            at = from + length + member;
        }
        let opening = &self.text[at..];
        let hashes = opening.len() - opening.trim_start_matches('#').len();
        let body = at + hashes + 1;
        if hashes > 255 || !opening[hashes..].starts_with('"') {
            return false;
        }
        let closing = format!("\"{}", "#".repeat(hashes));
        let (end, after) = match self.text[body..].find(&closing) {
            Some(length) => (body + length, body + length + closing.len()),
            None => {
                let opening = Span::new(start, body);
                self.diagnostics.push(
                    Diagnostic::new(Code::UnclosedText, opening, "unterminated formula in Reelay's format")
                        .help(format!("close the formula with `{closing}`")),
                );
                self.at = self.text.len();
                self.push(TokenKind::Unknown, start);
                return true;
            }
        };
        self.at = after;
        self.push(TokenKind::Rye { topic, body: Span::new(body, end) }, start);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut diagnostics = Vec::new();
        let tokens = tokens(text, &mut diagnostics);
        assert_eq!(diagnostics, [], "{text}");
        tokens.into_iter().map(|t| t.kind).filter(|k| *k != TokenKind::End).collect()
    }

    fn codes(text: &str) -> Vec<Code> {
        let mut diagnostics = Vec::new();
        tokens(text, &mut diagnostics);
        diagnostics.iter().map(|d| d.code).collect()
    }

    #[test]
    fn numbers() {
        use TokenKind::{Duration, Float, Int, Symbol, Word};
        assert_eq!(
            kinds("1 1.5 1e3 2E-1 1_000 1.e"),
            [Int(1), Float(1.5), Float(1000.0), Float(0.2), Int(1000), Int(1), Symbol("."), Word]
        );
        assert_eq!(kinds("200ms 3e 1.5s"), [Duration, Duration, Duration]);
        assert_eq!(kinds("18446744073709551615"), [Int(u64::MAX)]);
        assert_eq!(codes("18446744073709551616 1e999"), [Code::InvalidNumber, Code::InvalidNumber]);
    }

    #[test]
    fn texts_and_comments() {
        use TokenKind::{Text, Word};
        assert_eq!(kinds(r#""a\"b\u{e4}\n" 'c"'"#), [Text("a\"bä\n".into()), Text("c\"".into())]);
        assert_eq!(kinds("a // b \" \n# c\nd"), [Word, Word]);
        assert_eq!(codes("\"abc\n\"x"), [Code::UnclosedText, Code::UnclosedText]);
        assert_eq!(codes(r#""\q\u{110000}""#), [Code::InvalidEscape, Code::InvalidEscape]);
    }

    #[test]
    fn embedded_formulas() {
        let rye = |topic, body| TokenKind::Rye { topic, body };
        assert_eq!(kinds(r#"rye"{a}""#), [rye(None, Span::new(4, 7))]);
        assert_eq!(kinds(r##"rye#"{"a"}"#"##), [rye(None, Span::new(5, 10))]);
        assert_eq!(kinds(r#"rye gear"{a}""#), [rye(Some(Span::new(4, 8)), Span::new(9, 12))]);
        assert_eq!(kinds("rye gear x"), [TokenKind::Word, TokenKind::Word, TokenKind::Word]);
        assert_eq!(codes("rye\"{a"), [Code::UnclosedText]);
    }

    #[test]
    fn longest_symbols_match_first() {
        let s = TokenKind::Symbol;
        assert_eq!(kinds("<-><=-><-"), [s("<->"), s("<="), s("->"), s("<"), s("-")]);
        assert_eq!(codes("§§ \u{1}\u{2} ^"), [Code::UnexpectedCharacter; 3]);
    }
}
