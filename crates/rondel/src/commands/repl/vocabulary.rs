//! Words for completion: commands, topics with their fields, definitions, and words of the language.

use rondel_spec::{Outline, SymbolKind, attributes, declaration_words, is_name};

use crate::commands::completing::{belongs, in_text_or_comment, path_before, words};

/// Commands, each with its arguments and its description.
pub const COMMANDS: [(&str, &str, &str); 9] = [
    (":help", "", "show this"),
    (":topics", "", "list the topics"),
    (":fields", "[TOPIC]", "list the fields of a topic, or of all"),
    (":lets", "", "list what was defined here"),
    (":drop", "NAME", "remove a definition"),
    (
        ":from",
        "[TIME]",
        "show lines from this time on: seconds, a date and time, or +SECONDS after the beginning",
    ),
    (":to", "[TIME]", "show lines up to this time"),
    (":all", "", "show the whole recording again"),
    (":quit", "", "end; so does Ctrl-D"),
];

/// The most fields that are listed, and the most levels of them.
const LISTED: usize = 500;
const DEPTH: usize = 8;

/// Names that lines may use.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    outline: Outline,
}

/// A completion of a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Replacement of the word.
    pub text: String,
    /// Description, such as the type of a field; may be empty.
    pub detail: String,
}

impl Vocabulary {
    /// The names of a specification, its topics with all fields that are known.
    pub fn new(outline: Outline) -> Vocabulary {
        Vocabulary { outline }
    }

    /// The names of the topics.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        let symbols = self.outline.symbols().iter();
        symbols.filter(|symbol| symbol.kind == SymbolKind::Topic).map(|symbol| symbol.name.as_str())
    }

    /// The fields of a topic, with the topic before them, and their types.
    pub fn fields(&self, topic: &str) -> Vec<(String, String)> {
        let mut listed = Vec::new();
        self.list(topic, DEPTH, &mut listed);
        listed
    }

    fn list(&self, path: &str, depth: usize, listed: &mut Vec<(String, String)>) {
        for (name, kind) in self.outline.members(path) {
            if listed.len() >= LISTED {
                return;
            }
            let inner = format!("{path}.{name}");
            if depth > 0 && kind.starts_with('{') {
                self.list(&inner, depth - 1, listed);
            } else {
                listed.push((format!("{path}.{}", written(&name)), kind));
            }
        }
    }

    /// Completions of the word before a cursor, and the position at which the word begins.
    pub fn complete(&self, line: &str, cursor: usize) -> (usize, Vec<Candidate>) {
        let before = line.get(..cursor).unwrap_or(line);
        let head = before.trim_end_matches(belongs);
        let word = &before[head.len()..];
        if before.trim_start().starts_with(':') {
            return self.command(before);
        }
        if in_text_or_comment(before) {
            return (before.len(), Vec::new());
        }
        let mut all = match path_before(head) {
            _ if head.ends_with('@') => attributes().map(|(name, _)| plain(name)).collect(),
            Some("std") if head.trim_start().starts_with("use") => vec![plain("patterns")],
            Some(path) => self.members(path),
            None => self.words(head, word),
        };
        all.retain(|candidate| candidate.text.trim_start_matches('"').starts_with(word));
        all.sort();
        all.dedup_by(|a, b| a.text == b.text);
        (head.len(), all)
    }

    fn members(&self, path: &str) -> Vec<Candidate> {
        let members = self.outline.members(path).into_iter();
        members.map(|(name, detail)| Candidate { text: written(&name), detail }).collect()
    }

    /// The names and, once a word has begun, the words of the language.
    fn words(&self, head: &str, word: &str) -> Vec<Candidate> {
        let symbols = self.outline.symbols().iter().filter(|symbol| symbol.module.is_empty());
        let named = symbols.filter(|symbol| {
            use SymbolKind::{Chain, Constant, Definition, Machine, Property, Topic};
            matches!(symbol.kind, Topic | Definition | Constant | Machine | Chain | Property)
                && is_name(&symbol.name)
        });
        let mut all: Vec<Candidate> = named.map(|symbol| plain(&symbol.name)).collect();
        if !word.is_empty() {
            all.extend(words().map(|(word, _)| plain(word)));
            all.extend(declaration_words().filter(|_| head.trim().is_empty()).map(plain));
        }
        all
    }

    /// A command, or the topic or definition that it takes.
    fn command(&self, before: &str) -> (usize, Vec<Candidate>) {
        let Some((command, word)) = before.trim_start().split_once(char::is_whitespace) else {
            let start = before.len() - before.trim_start().len();
            let known = COMMANDS.iter().filter(|(name, ..)| name.starts_with(&before[start..]));
            return (start, known.map(|(name, ..)| plain(name)).collect());
        };
        let word = word.trim_start();
        let start = before.len() - word.len();
        let wanted: &[SymbolKind] = match command {
            ":fields" => &[SymbolKind::Topic],
            ":drop" => {
                &[SymbolKind::Definition, SymbolKind::Constant, SymbolKind::Machine, SymbolKind::Chain]
            }
            _ => return (start, Vec::new()),
        };
        let symbols = self.outline.symbols().iter().filter(|symbol| wanted.contains(&symbol.kind));
        (start, symbols.filter(|s| s.name.starts_with(word)).map(|symbol| plain(&symbol.name)).collect())
    }
}

fn plain(text: &str) -> Candidate {
    Candidate { text: text.to_owned(), detail: String::new() }
}

/// A field as the language writes it.
fn written(name: &str) -> String {
    if is_name(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_spec::Sources;

    fn vocabulary() -> Vocabulary {
        let text = "topic speed \"/speed\" { v: float, \"odd key\": int, pose: { x: float, y: float } }\n\
                    topic gear { report: int }\nlet standing = speed.v < 0.1\nconst LIMIT = 3\n";
        Vocabulary::new(Outline::of(&Sources::alone("", text), None))
    }

    fn completed(before: &str) -> (usize, Vec<String>) {
        let (start, found) = vocabulary().complete(before, before.len());
        (start, found.into_iter().map(|candidate| candidate.text).collect())
    }

    #[test]
    fn topics_fields_and_words_are_completed() {
        for (before, start, expected) in [
            ("spe", 0, &["speed"][..]),
            ("", 0, &["LIMIT", "gear", "speed", "standing"]),
            ("speed.", 6, &["\"odd key\"", "pose", "v"]),
            ("not speed.o", 10, &["\"odd key\""]),
            ("speed.pose.", 11, &["x", "y"]),
            ("gear.report == L", 15, &["LIMIT"]),
            ("histo", 0, &["historically"]),
            ("mach", 0, &["machine"]),
            ("@ro", 1, &["robust"]),
            ("use std.", 8, &["patterns"]),
            ("speed.v == \"sp", 14, &[]),
            ("none.", 5, &[]),
            (":fi", 0, &[":fields"]),
            (":fields ge", 8, &["gear"]),
            (":drop ", 6, &["standing", "LIMIT"]),
            (":quit ge", 6, &[]),
        ] {
            let expected = expected.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(completed(before), (start, expected), "{before:?}");
        }
    }

    #[test]
    fn no_cursor_panics() {
        let words = vocabulary();
        for line in ["größe.ö", ":", " : x", "speed..", "((((((\"", "\u{200d}é"] {
            for cursor in 0..line.len() + 2 {
                let (start, _) = words.complete(line, cursor);
                assert!(start <= line.len());
            }
        }
    }

    #[test]
    fn fields_of_objects_are_listed_by_their_paths() {
        let listed = vocabulary().fields("speed");
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["speed.v", "speed.\"odd key\"", "speed.pose.x", "speed.pose.y"]);
        assert_eq!(listed[0].1, "float");
    }
}
