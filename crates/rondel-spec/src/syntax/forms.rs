//! Advice for declarations that begin like one of the language, and go on differently.

use super::parser::{DECLARATIONS, Parser, Reported};
use crate::diagnostic::Span;
use crate::lexer::TokenKind;
use crate::sources::is_library;
use crate::suggest;

pub(super) const ADDRESS: &str =
    "write the name of the topic first, then its address in quotes: `topic odom \"/robot/odom\"`";

pub(super) const NO_QUOTES: &str = "write the name without quotes; names consist of letters, digits and `_`";

impl Parser<'_> {
    /// Reports a declaration whose keyword is known and whose form is not, at the token that is wrong; none for others.
    pub(super) fn malformed_declaration(&mut self) -> Option<Reported> {
        let (next, sign) = (self.word(1), self.symbol(1));
        let (ahead, what, help) = match self.word(0) {
            "machine" if !next.is_empty() && !self.symbol(2).is_empty() => {
                (2, "`{`", format!("write `machine {next} {{ initial a; a -> b when p }}`"))
            }
            "machine" if sign == "{" => {
                (1, "the name of a machine", "write `machine m { initial a; a -> b when p }`".to_owned())
            }
            "chain" if !next.is_empty() && self.symbol(2) == ":" => {
                (2, "`=`", format!("write `chain {next} = …`"))
            }
            keyword @ ("property" | "let" | "const") if matches!(sign, "=" | ":" | "(") => {
                let name = if keyword == "property" { "p" } else { "x" };
                let what = format!("the name of a `{keyword}`");
                return Some(self.malformed(1, &what, format!("write `{keyword} {name} = …`")));
            }
            "assert" if sign == "(" => {
                let inner = self.in_parentheses(1);
                (1, "what the assert demands", format!("write `assert always {inner}`"))
            }
            "test" if sign == "{" => (1, "the name of a test", "write `test \"name\" { … }`".to_owned()),
            "test" if !next.is_empty() => {
                (1, "the name of a test in quotes", format!("write `test \"{next}\" {{ … }}`"))
            }
            "use" if next == "std" && self.symbol(2) == "/" => {
                let library = if is_library(self.word(3)) { self.word(3) } else { "patterns" };
                (2, "`.`", format!("write `use std.{library}`"))
            }
            "use" if next == "std" => (1, "a library", "write `use std.patterns`".to_owned()),
            "use" if is_library(next) => (1, "a file or a library", format!("write `use std.{next}`")),
            "use" if !next.is_empty() || matches!(sign, "." | "/") => {
                let file = self.file_named(1);
                (1, "a file in quotes", format!("write `use \"{file}\"`"))
            }
            _ => return None,
        };
        Some(self.malformed(ahead, what, help))
    }

    fn malformed(&mut self, ahead: usize, what: &str, help: String) -> Reported {
        (0..ahead).for_each(|_| self.advance());
        let reported = self.expected(what);
        self.help_last(help);
        reported
    }

    /// Returns the text between a parenthesis ahead and the one that closes it.
    fn in_parentheses(&mut self, ahead: usize) -> String {
        let place = self.place();
        (0..=ahead).for_each(|_| self.advance());
        let text = self.steady_argument();
        self.go_to(place);
        text
    }

    /// Returns the file whose name begins with a token ahead.
    fn file_named(&self, ahead: usize) -> String {
        let from = self.token(ahead).span.start;
        let rest = Span::new(from, self.text.len()).of(self.text);
        let file = rest.split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or_default();
        if file.ends_with(".rondel") { file.to_owned() } else { format!("{file}.rondel") }
    }

    /// Returns advice for a declaration of another language.
    pub(super) fn foreign_declaration(&self) -> Option<String> {
        let word = self.word(0);
        if word == "topic" && (matches!(self.token(1).kind, TokenKind::Text(_)) || self.symbol(1) == "/") {
            return Some(ADDRESS.to_owned());
        }
        if DECLARATIONS.contains(&word) && word != "use" && matches!(self.token(1).kind, TokenKind::Text(_)) {
            return Some(NO_QUOTES.to_owned());
        }
        if let Some(help) = suggest::declaration(word) {
            return Some(help.to_owned());
        }
        let is_named = !word.is_empty() && matches!(self.symbol(1), "=" | ":" | "==");
        is_named.then(|| {
            format!(
                "declare a property with `property {word} = …`, or name a subformula with `let {word} = …`"
            )
        })
    }

    /// Reports a token where a declaration could start.
    pub(super) fn expected_declaration(&mut self, what: &str) -> Reported {
        if self.begins_line()
            && let Some(reported) = self.malformed_declaration()
        {
            return reported;
        }
        let help = self.foreign_declaration().filter(|_| self.begins_line());
        let reported = self.expected(what);
        if let Some(help) = help {
            self.help_last(help);
        }
        reported
    }
}
