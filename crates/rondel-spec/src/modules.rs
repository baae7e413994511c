//! The name spaces of a specification's files: `use "limits.rondel" as limits`.
//!
//! Files that import each other without `as` share one name space. What a file that is imported with `as` declares has
//! its alias before its name, everywhere in the compiler: `limits.near`. The parser replaces each name that is written
//! in a file by this full name, so later passes compare names only.

use std::collections::HashMap;
use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{self, Token, TokenKind};

/// An import of a file of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The index of the imported file.
    pub(crate) file: usize,
    /// The location of its alias.
    pub(crate) alias: Option<Span>,
}

/// Kinds of declarations that a name can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A topic, a `let` or a `const`.
    Value,
    /// A property, a machine, a chain or an assert.
    Property,
    /// The first that has this name, values before properties.
    Any,
}

/// The name spaces of the files; those of a specification without `as` are empty.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    files: Vec<Module>,
}

/// The files that declare a name, with its location.
type Declared = HashMap<String, (usize, Span)>;

/// The name space of a file.
#[derive(Debug)]
struct Module {
    span: Span,
    /// Prefix of its names: empty, or `limits.`.
    prefix: String,
    /// Whether it is the file that imports the others, or imported by it without `as`.
    is_main: bool,
    aliases: Vec<(String, Span, usize)>,
    /// The files whose names it uses as its own.
    sees: Rc<Vec<usize>>,
    values: Rc<Declared>,
    properties: Rc<Declared>,
}

impl Modules {
    /// Finds the name spaces of files with these imports, and reports names that clash.
    pub(crate) fn of(
        text: &str,
        files: &[Span],
        imports: &[Vec<Import>],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Modules {
        if imports.iter().flatten().all(|import| import.alias.is_none()) {
            return Modules::default();
        }
        let own: Vec<[Vec<(String, Span)>; 2]> = files.iter().map(|file| declared(text, *file)).collect();
        let prefixes = prefixes(text, imports, diagnostics);
        let main = Rc::new(reach(imports, files.len().saturating_sub(1)));
        let mut shared: Option<[Rc<Declared>; 2]> = None;
        let mut modules = Vec::new();
        for (i, span) in files.iter().enumerate() {
            let is_main = main.contains(&i);
            let sees = if is_main { main.clone() } else { Rc::new(reach(imports, i)) };
            let known = shared.clone().filter(|_| is_main);
            let [values, properties] = known.unwrap_or_else(|| {
                [0, 1].map(|kind| Rc::new(all_of(&sees, kind, &own, &prefixes, diagnostics)))
            });
            if is_main {
                shared = Some([values.clone(), properties.clone()]);
            }
            let mut aliases: Vec<(String, Span, usize)> = Vec::new();
            for import in &imports[i] {
                let Some(alias) = import.alias else { continue };
                let word = alias.of(text);
                let first = aliases.iter().find(|(other, ..)| other == word).map(|(_, span, _)| *span);
                let first = first.or_else(|| values.get(word).map(|(_, span)| *span));
                if let Some(first) = first {
                    let [first, second] = if first < alias { [first, alias] } else { [alias, first] };
                    diagnostics.push(declared_twice(word, first, second));
                }
                aliases.push((word.to_owned(), alias, import.file));
            }
            let prefix = prefixes[i].clone();
            modules.push(Module { span: *span, prefix, is_main, aliases, sees, values, properties });
        }
        Modules { files: modules }
    }

    fn index_at(&self, offset: usize) -> Option<usize> {
        self.files.partition_point(|file| file.span.start <= offset).checked_sub(1)
    }

    fn at(&self, offset: usize) -> Option<&Module> {
        self.files.get(self.index_at(offset)?)
    }

    /// Prefix of the names that are declared at an offset: empty, or `limits.`.
    pub(crate) fn prefix(&self, offset: usize) -> &str {
        self.at(offset).map_or("", |file| &file.prefix)
    }

    /// The full name of one that is written at an offset, as `near` or `limits.near`.
    pub(crate) fn full(&self, offset: usize, written: &str, role: Role) -> String {
        let Some(file) = self.at(offset) else { return written.to_owned() };
        if let Some((alias, word)) = written.split_once('.') {
            let Some(imported) = file.alias(alias).and_then(|file| self.files.get(file)) else {
                return written.to_owned();
            };
            return match imported.find(word, role) {
                Some(declared) => format!("{}{word}", self.files[declared].prefix),
                None if imported.prefix.is_empty() => written.to_owned(),
                None => format!("{}{word}", imported.prefix),
            };
        }
        match file.find(written, role) {
            Some(declared) => format!("{}{written}", self.files[declared].prefix),
            // No property of another file is meant, whose name space is another one.
            None if role == Role::Property => format!("{}{written}", file.prefix),
            // It may be a local name.
            None => written.to_owned(),
        }
    }

    /// Whether a name that is written at `at` can stand for one that is declared at `declared`.
    pub(crate) fn sees(&self, text: &str, at: Span, declared: Span) -> bool {
        match (self.at(at.start), self.index_at(declared.start)) {
            (Some(file), Some(declared)) => {
                file.is_main || file.sees.contains(&declared) || at.of(text).contains('.')
            }
            _ => true,
        }
    }

    /// Qualified form of a name that is unknown at an offset, but declared in a file with an alias: `limits.near`.
    pub(crate) fn qualified(&self, offset: usize, word: &str, role: Role) -> Option<String> {
        let file = self.at(offset)?;
        if word.contains('.') {
            return None;
        }
        let has =
            |imported: usize| self.files.get(imported).is_some_and(|file| file.find(word, role).is_some());
        let (alias, ..) = file.aliases.iter().find(|(.., imported)| has(*imported))?;
        Some(format!("{alias}.{word}"))
    }

    /// Whether a word is an alias in the file at an offset.
    pub(crate) fn is_alias(&self, offset: usize, word: &str) -> bool {
        self.at(offset).is_some_and(|file| file.alias(word).is_some())
    }

    /// The names that stand behind an alias, with their full names.
    pub(crate) fn names_of(&self, offset: usize, alias: &str) -> Vec<(String, String)> {
        let imported = self.at(offset).and_then(|file| self.files.get(file.alias(alias)?));
        let mut names: Vec<(Span, String, String)> = Vec::new();
        for (word, (declared, span)) in
            imported.iter().flat_map(|file| file.values.iter().chain(file.properties.iter()))
        {
            names.push((*span, word.clone(), format!("{}{word}", self.files[*declared].prefix)));
        }
        names.sort();
        names.dedup();
        names.into_iter().map(|(_, word, full)| (word, full)).collect()
    }
}

impl Module {
    fn alias(&self, word: &str) -> Option<usize> {
        self.aliases.iter().find(|(alias, ..)| alias == word).map(|(.., file)| *file)
    }

    /// The file that declares a name.
    fn find(&self, word: &str, role: Role) -> Option<usize> {
        let value = || self.values.get(word);
        let property = || self.properties.get(word);
        let found = match role {
            Role::Value => value(),
            Role::Property => property(),
            Role::Any => value().or_else(property),
        };
        found.map(|(file, _)| *file)
    }
}

/// Returns the files that a file imports without `as`, also by way of others, and itself, in their order.
fn reach(imports: &[Vec<Import>], file: usize) -> Vec<usize> {
    let mut found = vec![file];
    let mut next = 0;
    while let Some(at) = found.get(next).copied() {
        next += 1;
        for import in imports.get(at).into_iter().flatten().filter(|import| import.alias.is_none()) {
            if !found.contains(&import.file) {
                found.push(import.file);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Returns what stands before the names of each file, and reports an alias that would stand for two files.
fn prefixes(text: &str, imports: &[Vec<Import>], diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    let mut found: Vec<Option<String>> = vec![None; imports.len()];
    let mut first: HashMap<String, Span> = HashMap::new();
    let mut open = vec![(imports.len().saturating_sub(1), String::new(), Span::default())];
    let mut next = 0;
    while let Some((file, prefix, alias)) = open.get(next).cloned() {
        next += 1;
        if found.get(file).is_none_or(Option::is_some) {
            continue;
        }
        if let Some(other) = first.insert(prefix.clone(), alias) {
            let word = alias.of(text);
            let message = format!("'{word}' is the name of two imports of one specification");
            diagnostics.push(
                Diagnostic::new(Code::DuplicateName, alias, message)
                    .label(other, "the other import")
                    .help("files that import each other without `as` share these names: choose another one"),
            );
        }
        // Imports with aliases follow after the whole name space.
        for file in reach(imports, file) {
            if found.get(file).is_none_or(Option::is_some) {
                continue;
            }
            found[file] = Some(prefix.clone());
            for import in &imports[file] {
                if let Some(alias) = import.alias {
                    open.push((import.file, format!("{prefix}{}.", alias.of(text)), alias));
                }
            }
        }
    }
    found.into_iter().map(Option::unwrap_or_default).collect()
}

/// Returns the names of one kind that these files declare, and reports those that two name spaces declare. Those that
/// one declares twice are reported where names are resolved.
fn all_of(
    files: &[usize],
    kind: usize,
    own: &[[Vec<(String, Span)>; 2]],
    prefixes: &[String],
    diagnostics: &mut Vec<Diagnostic>,
) -> Declared {
    let mut all = Declared::new();
    for file in files {
        for (name, span) in &own[*file][kind] {
            match all.get(name) {
                Some((other, first)) if prefixes[*other] != prefixes[*file] => {
                    diagnostics.push(declared_twice(name, *first, *span));
                }
                Some(_) => {}
                None => {
                    all.insert(name.clone(), (*file, *span));
                }
            }
        }
    }
    all
}

fn declared_twice(name: &str, first: Span, second: Span) -> Diagnostic {
    let message = format!("'{name}' is declared twice");
    Diagnostic::new(Code::DuplicateName, second, message).label(first, "first declared here")
}

/// Returns the values and the properties that a file declares.
fn declared(text: &str, file: Span) -> [Vec<(String, Span)>; 2] {
    let tokens = qualified(text, lexer::tokens_of(text, &[file], &mut Vec::new())).0;
    let is = |at: usize, symbol: &str| matches!(tokens.get(at), Some(Token { kind: TokenKind::Symbol(s), .. }) if *s == symbol);
    let word = |at: usize| match tokens.get(at) {
        Some(token) if token.kind == TokenKind::Word => token.span.of(text),
        _ => "",
    };
    let [mut values, mut properties] = [Vec::new(), Vec::new()];
    for at in 0..tokens.len() {
        if at > 0 && is(at - 1, ".") || word(at + 1).is_empty() {
            continue;
        }
        let name = (word(at + 1).to_owned(), tokens[at + 1].span);
        match word(at) {
            "topic" | "let" | "const" => values.push(name),
            "property" | "machine" => properties.push(name),
            "assert" if is(at + 2, "=") => properties.push(name),
            "chain" => {
                let mut topics = vec![name.0];
                let mut next = at + 2;
                while is(next, "->") && !word(next + 1).is_empty() {
                    topics.push(word(next + 1).to_owned());
                    next += 2;
                }
                if topics.len() == 1 && !is(at + 2, "=") {
                    continue;
                }
                let chain = chain_name(topics.iter().map(String::as_str));
                // Its further bounds.
                for bound in ["_age", "_reaction"] {
                    properties.push((format!("{chain}{bound}"), name.1));
                }
                properties.push((chain, name.1));
            }
            _ => {}
        }
    }
    [values, properties]
}

/// The name of a chain that has none of its own.
pub(crate) fn chain_name<'a>(topics: impl Iterator<Item = &'a str>) -> String {
    topics.map(|topic| topic.replace('.', "_")).collect::<Vec<_>>().join("_")
}

/// Whether the point at the end of these tokens stands behind the variables of a quantifier.
fn ends_variables<'t>(tokens: &[Token], word: impl Fn(&Token) -> &'t str) -> bool {
    for pair in tokens.rsplit(|token| token.kind == TokenKind::Symbol(".")).nth(1).unwrap_or(&[]).rchunks(2) {
        match pair {
            [before, name] if !word(name).is_empty() => match word(before) {
                "exists" | "forall" => return true,
                _ if before.kind == TokenKind::Symbol(",") => {}
                _ => return false,
            },
            _ => return false,
        }
    }
    false
}

/// Joins each `limits.near` of a file into one word, where `limits` is an alias of the file. Returns also the aliases
/// with their uses.
pub(crate) fn qualified(text: &str, tokens: Vec<Token>) -> (Vec<Token>, Vec<(Span, Vec<Span>)>) {
    let word = |token: &Token| if token.kind == TokenKind::Word { token.span.of(text) } else { "" };
    let mut aliases: Vec<(Span, Vec<Span>)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        let is_import = before(1).is_some_and(|as_| word(as_) == "as")
            && match before(2).map(|named| &named.kind) {
                Some(TokenKind::Text(_)) => before(3).is_some_and(|start| word(start) == "use"),
                Some(TokenKind::Word) => {
                    before(5).is_some_and(|start| word(start) == "use")
                        && before(4).is_some_and(|std| word(std) == "std")
                }
                _ => false,
            };
        // After an incomplete import the next declaration begins.
        let is_declared = matches!(word(token), "topic" | "const" | "let" | "property");
        if is_import && token.kind == TokenKind::Word && !is_declared {
            aliases.push((token.span, Vec::new()));
        }
    }
    if aliases.is_empty() {
        return (tokens, aliases);
    }
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    // The open brackets.
    let mut open: Vec<&'static str> = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.kind {
            TokenKind::Symbol(symbol @ ("(" | "[" | "{")) => open.push(symbol),
            TokenKind::Symbol(")" | "]" | "}") => {
                open.pop();
            }
            _ => {}
        }
        let (dot, name) = (tokens.get(at), tokens.get(at + 1));
        let last = joined.last();
        let is_field = match last.map(|last| &last.kind) {
            Some(TokenKind::Symbol(".")) => !ends_variables(&joined, word),
            // A field of a message.
            Some(TokenKind::Symbol("{" | ",")) => open.last() == Some(&"{"),
            Some(TokenKind::Word) => last.is_some_and(|last| matches!(word(last), "use" | "by")),
            _ => false,
        };
        if let (Some(dot), Some(name)) = (dot, name)
            && dot.kind == TokenKind::Symbol(".")
            && name.kind == TokenKind::Word
            && [token.span.end, dot.span.end] == [dot.span.start, name.span.start]
            && !is_field
            && let Some((_, uses)) = aliases.iter_mut().find(|(alias, _)| alias.of(text) == word(token))
        {
            uses.push(token.span);
            joined.push(Token { kind: TokenKind::Word, span: token.span.to(name.span) });
            at += 2;
            continue;
        }
        joined.push(token.clone());
    }
    (joined, aliases)
}
