//! The files of a specification: the one that is parsed, those that it imports with `use "topics.rondel"`, and
//! libraries, which are part of Rondel, with `use std.patterns`. Behind `as` stands the name under which a file is
//! imported; see [`crate::modules`].
//!
//! The texts of all files are one text, each file once and after those that it imports. Locations are offsets in this
//! text; only where a location is shown, it becomes a file, a line and a column.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lexer::{Token, TokenKind, first_tokens};
use crate::modules::{Import, Modules};
use crate::suggest::did_you_mean;

/// The most bytes that all files of a specification may have together.
pub const LARGEST_SOURCES: usize = 16 << 20;

/// The most files of a specification.
const FILES: usize = 256;

/// The most files that import each other in a row, with the first.
const DEEP: usize = 32;

/// The name of a parsed text that is no file.
const UNNAMED: &str = "";

/// The libraries that every specification may import, by name: where each is in the sources of Rondel, and its text.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("patterns", "std/patterns.rondel", include_str!("../std/patterns.rondel")),
    ("geometry", "std/geometry.rondel", include_str!("../std/geometry.rondel")),
];

/// A file that a `use` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedFile {
    /// The path that identifies it: the same for all ways to write it.
    pub path: PathBuf,
    /// Its name for the reader.
    pub name: String,
}

/// Where imported files come from.
pub trait Imports {
    /// Finds the file that a `use` in the file `from` names.
    ///
    /// # Errors
    /// Why there is no such file.
    fn find(&self, from: &ImportedFile, written: &str) -> Result<ImportedFile, String>;

    /// Reads a file that was found.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, file: &ImportedFile) -> Result<String, String>;
}

/// The texts of a specification's files.
///
/// ```
/// use rondel_spec::{ImportedFile, Imports, ParseOptions, Sources};
/// struct One;
/// impl Imports for One {
///     fn find(&self, _: &ImportedFile, written: &str) -> Result<ImportedFile, String> {
///         Ok(ImportedFile { path: written.into(), name: written.to_owned() })
///     }
///     fn read(&self, _: &ImportedFile) -> Result<String, String> {
///         Ok("topic gear { report: int }".to_owned())
///     }
/// }
/// let main = ImportedFile { path: "main.rondel".into(), name: "main.rondel".to_owned() };
/// let text = "use \"topics.rondel\"\nproperty p = gear.report < 25".to_owned();
/// let sources = Sources::load(main, text, &One);
/// let spec = rondel_spec::parse_sources(&sources, &ParseOptions::default(), None).spec.unwrap();
/// let place = sources.place(spec.places.property(0).unwrap().start);
/// assert_eq!((spec.topics[0].name.as_str(), place.file, place.line, place.column), ("gear", "main.rondel", 2, 10));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    text: String,
    /// The files in the order of their texts; the one that imports the others is the last.
    files: Vec<Source>,
    /// Errors in the imports.
    problems: Vec<Diagnostic>,
}

/// A file in the joined text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    name: String,
    /// Its path; none of a text that is no file, and of a library.
    path: Option<PathBuf>,
    span: Span,
    imports: Vec<Import>,
}

/// A place for the reader, counted from 1; columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcePlace<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The text of the line.
    pub text: &'a str,
}

impl Sources {
    /// A text that is no file. It can import libraries such as `std.patterns`, and no files.
    pub fn alone(name: &str, text: &str) -> Sources {
        let main = ImportedFile { path: PathBuf::new(), name: name.to_owned() };
        Loader::load(main, text, None)
    }

    /// A file with this text, and the files that it imports. What is wrong with them, [`crate::parse_sources`] reports.
    pub fn load(main: ImportedFile, text: String, imports: &dyn Imports) -> Sources {
        Loader::load(main, &text, Some(imports))
    }

    /// The text that locations refer to: the texts of all files.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the file that imports the others.
    pub fn name(&self) -> &str {
        self.files.last().map_or(UNNAMED, |file| &file.name)
    }

    /// Where the file that imports the others begins in [`Sources::text`]: it is the last one.
    pub fn main_start(&self) -> usize {
        self.files.last().map_or(0, |file| file.span.start)
    }

    /// The names of all files, the imported ones first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }

    /// The paths and the texts of all files, the imported ones first; without libraries.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files.iter().filter_map(|file| Some((file.path.as_deref()?, file.span.of(&self.text))))
    }

    /// The names and the texts of all files, the imported ones first; without libraries.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let last = self.files.len().saturating_sub(1);
        let own = self.files.iter().enumerate().filter(move |(at, file)| *at == last || file.path.is_some());
        own.map(|(_, file)| (file.name.as_str(), file.span.of(&self.text)))
    }

    /// The place of an offset in [`Sources::text`].
    pub fn place(&self, offset: usize) -> SourcePlace<'_> {
        let (file, text, start) = self.file_at(offset);
        let mut at = offset.saturating_sub(start).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        SourcePlace {
            file,
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..at].chars().count() + 1,
            text: text[line_start..line_end].trim_end_matches('\r'),
        }
    }

    /// Errors in the imports, in order of location.
    pub(crate) fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The spans of the files in the text.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.files.iter().map(|file| file.span).collect()
    }

    /// The name spaces of the files; names that clash are reported.
    pub(crate) fn modules(&self, diagnostics: &mut Vec<Diagnostic>) -> Modules {
        let imports: Vec<Vec<Import>> = self.files.iter().map(|file| file.imports.clone()).collect();
        Modules::of(&self.text, &self.spans(), &imports, diagnostics)
    }

    /// The name of the file at an offset, its text, and the offset where it begins.
    pub(crate) fn file_at(&self, offset: usize) -> (&str, &str, usize) {
        match self.source_at(offset) {
            Some(file) => (&file.name, file.span.of(&self.text), file.span.start),
            None => (UNNAMED, "", 0),
        }
    }

    /// The path of the file at an offset, its text, and the offset where it begins; none in a text that is no file, and
    /// in a library.
    pub fn path_at(&self, offset: usize) -> Option<(&Path, &str, usize)> {
        let file = self.source_at(offset)?;
        Some((file.path.as_deref()?, file.span.of(&self.text), file.span.start))
    }

    fn source_at(&self, offset: usize) -> Option<&Source> {
        let index = self.files.partition_point(|file| file.span.start <= offset);
        self.files.get(index.saturating_sub(1))
    }
}

/// Returns the library that has a definition with parameters of this name.
pub(crate) fn library_with(definition: &str) -> Option<&'static str> {
    let start = format!("let {definition}(");
    let has = |text: &str| text.lines().any(|line| line.starts_with(&start));
    LIBRARIES.iter().find(|(.., text)| has(text)).map(|(name, ..)| *name)
}

/// Returns the names of the definitions with parameters of all libraries.
pub(crate) fn library_definitions() -> impl Iterator<Item = &'static str> {
    let lines = LIBRARIES.iter().flat_map(|(.., text)| text.lines());
    lines.filter_map(|line| line.strip_prefix("let ")?.split_once('(').map(|(name, _)| name))
}

/// Returns whether a word behind `std.` names a library.
pub(crate) fn is_library(word: &str) -> bool {
    LIBRARIES.iter().any(|(name, ..)| *name == word)
}

/// Reports the imports of a text that is alone, in which locations are offsets in nothing but itself.
pub(crate) fn refused(text: &str) -> Vec<Diagnostic> {
    let refuse = |(used, span, _): (Use, Span, Option<Span>)| {
        let (message, help) = Use::NO_FOLDER;
        let library = if let Use::File(path) = &used { quoted_library(path) } else { None };
        if let Some((message, help)) = library {
            return Diagnostic::new(Code::InvalidImport, span, message).help(help);
        }
        Diagnostic::new(Code::InvalidImport, span, message).help(help)
    };
    uses(text).into_iter().map(refuse).collect()
}

/// Message and help for a library in quotes; none for other paths.
fn quoted_library(path: &str) -> Option<(String, String)> {
    let name = path.strip_prefix("std.").or_else(|| path.strip_prefix("std/"))?;
    let name = name.strip_suffix(".rondel").unwrap_or(name);
    let message = format!("\"{path}\" is no file: a library has no quotes");
    is_library(name).then(|| (message, format!("write `use std.{name}`")))
}

/// Target of a `use`.
enum Use {
    /// A file, as written.
    File(String),
    /// A library: the word after `std.`.
    Library(String),
}

impl Use {
    /// Message and help for an import in a text that is not a file.
    const NO_FOLDER: (&'static str, &'static str) = (
        "`use` works only in a file: this text has no folder in which the other file could be",
        "write the specification into a file, or put the declarations of the other file here",
    );
}

/// The imports at the top of a text, each with the spans of its target and of its alias.
fn uses(text: &str) -> Vec<(Use, Span, Option<Span>)> {
    let mut found: Vec<(Use, Span, Option<Span>)> = Vec::new();
    // The tokens of the import that has begun, or of the `as` behind one.
    let mut begun: Vec<Span> = Vec::new();
    let mut renames = false;
    first_tokens(text, |Token { kind, span }| {
        match (begun.len(), kind) {
            (1, TokenKind::Word)
                if renames && matches!(span.of(text), "topic" | "const" | "let" | "property") =>
            {
                return false;
            }
            (1, TokenKind::Word) if renames => {
                if let Some((.., alias)) = found.last_mut() {
                    *alias = Some(*span);
                }
                renames = false;
                begun.clear();
                return true;
            }
            (_, _) if renames => return false,
            (0, TokenKind::Symbol(";")) => return true,
            (0, TokenKind::Word) if span.of(text) == "use" => {}
            (0, TokenKind::Word) if span.of(text) == "as" && !found.is_empty() => renames = true,
            (1, TokenKind::Text(path)) => {
                found.push((Use::File(path.clone()), *span, None));
                begun.clear();
                return true;
            }
            (1, TokenKind::Word) if span.of(text) == "std" => {}
            (2, TokenKind::Symbol(".")) => {}
            (3, TokenKind::Word) if begun[2].end == span.start => {
                found.push((Use::Library(span.of(text).to_owned()), begun[1].to(*span), None));
                begun.clear();
                return true;
            }
            _ => return false,
        }
        begun.push(*span);
        true
    });
    found
}

struct Loader<'a> {
    /// Where imported files come from; none if only libraries can be imported.
    imports: Option<&'a dyn Imports>,
    sources: Sources,
    /// The files that were begun, by path.
    begun: HashSet<PathBuf>,
    /// Where the files are in [`Sources::files`], by path.
    places: HashMap<PathBuf, usize>,
    /// The bytes of all files.
    size: usize,
    /// The files that are being loaded, the first one first.
    open: Vec<ImportedFile>,
}

impl Loader<'_> {
    /// The sources of a file or text.
    fn load(main: ImportedFile, text: &str, imports: Option<&dyn Imports>) -> Sources {
        let begun = HashSet::from([main.path.clone()]);
        let mut loader = Loader {
            imports,
            sources: Sources::default(),
            begun,
            places: HashMap::new(),
            size: text.len(),
            open: Vec::new(),
        };
        loader.add(main, text);
        loader.sources
    }

    /// Adds a file after those that it imports.
    fn add(&mut self, file: ImportedFile, text: &str) {
        self.open.push(file.clone());
        let mut problems = Vec::new();
        let mut imported_files: Vec<(PathBuf, Option<Span>)> = Vec::new();
        for (i, (written, span, alias)) in uses(text).into_iter().enumerate() {
            if i >= FILES {
                let help = "put the declarations of several files into one".to_owned();
                problems.push((span, format!("a file imports at most {FILES} files"), help));
                break;
            }
            let imported = match &written {
                Use::File(path) => self.import(&file, path),
                Use::Library(name) => self.library(name),
            };
            match imported {
                Ok((found, text)) => {
                    imported_files.push((found.path.clone(), alias));
                    if let Some(text) = text {
                        self.add(found, &text);
                    }
                }
                Err((message, help)) => problems.push((span, message, help)),
            }
        }
        self.open.pop();
        let sources = &mut self.sources;
        if !sources.files.is_empty() {
            // A file without a line break at its end.
            sources.text.push('\n');
        }
        let start = sources.text.len();
        sources.text.push_str(text);
        let moved = |span: Span| Span::new(start + span.start, start + span.end);
        let imports = imported_files.into_iter().filter_map(|(path, alias)| {
            Some(Import { file: *self.places.get(&path)?, alias: alias.map(moved) })
        });
        let imports = imports.collect();
        self.places.insert(file.path.clone(), sources.files.len());
        let path = Some(file.path).filter(|path| path.is_absolute());
        let span = Span::new(start, start + text.len());
        sources.files.push(Source { name: file.name, path, span, imports });
        sources.problems.extend(problems.into_iter().map(|(span, message, help)| {
            Diagnostic::new(Code::InvalidImport, moved(span), message).help(help)
        }));
    }

    /// Returns a library, with its text unless it is there already. An error is a message and advice.
    fn library(&mut self, name: &str) -> Result<(ImportedFile, Option<String>), (String, String)> {
        let Some((_, file, text)) = LIBRARIES.iter().find(|(known, ..)| *known == name) else {
            let known = LIBRARIES.map(|(known, ..)| known);
            let message = format!("there is no library 'std.{name}'{}", did_you_mean(name, known));
            let names: Vec<String> = known.iter().map(|known| format!("`use std.{known}`")).collect();
            return Err((message, format!("write {}", names.join(" or "))));
        };
        // No path of a file has this form.
        let path = PathBuf::from(format!("std.{name}/"));
        let is_new = self.begun.insert(path.clone());
        let text = is_new.then(|| (*text).to_owned());
        Ok((ImportedFile { path, name: (*file).to_owned() }, text))
    }

    /// Finds a file, and reads it unless it is there already. An error is a message and advice.
    fn import(
        &mut self,
        from: &ImportedFile,
        written: &str,
    ) -> Result<(ImportedFile, Option<String>), (String, String)> {
        let Some(imports) = self.imports else {
            if let Some(problem) = quoted_library(written) {
                return Err(problem);
            }
            return Err((Use::NO_FOLDER.0.to_owned(), Use::NO_FOLDER.1.to_owned()));
        };
        if Path::new(written).extension().is_some_and(|extension| extension == "rye") {
            let help = "write the formula as `property name = rye\"…\"`";
            return Err((format!("cannot import \"{written}\": it is in Reelay's format"), help.to_owned()));
        }
        let found = imports.find(from, written).map_err(|reason| {
            if let Some(problem) = quoted_library(written) {
                return problem;
            }
            let whole = Path::new(written).with_extension("rondel");
            let whole = [format!("{written}.rondel"), whole.to_string_lossy().into_owned()];
            let help = match whole
                .iter()
                .find(|path| imports.find(from, path).is_ok_and(|found| found.path != from.path))
            {
                Some(path) => format!("write `use \"{path}\"`, with the ending of the file"),
                None => format!("the path begins at the folder of {}; write `/` between folders", from.name),
            };
            (format!("cannot import \"{written}\": {reason}"), help)
        })?;
        if let Some(first) = self.open.iter().position(|open| open.path == found.path) {
            let circle = self.open[first..].iter().map(|open| open.name.as_str());
            let circle: Vec<&str> = circle.chain([self.open[first].name.as_str()]).collect();
            let message = match circle.len() {
                2 => format!("{} imports itself", from.name),
                _ => format!("files import each other in a circle: {}", circle.join(" -> ")),
            };
            let help = match circle.len() {
                2 => "remove this `use`",
                _ => "move the declarations that both need into a file that imports neither",
            };
            return Err((message, help.to_owned()));
        }
        if self.begun.contains(&found.path) {
            return Ok((found, None));
        }
        if self.begun.len() >= FILES {
            let message = format!("a specification has at most {FILES} files");
            return Err((message, "put the declarations of several files into one".to_owned()));
        }
        if self.open.len() >= DEEP {
            let message = format!("files import each other more than {DEEP} levels deep");
            return Err((message, format!("import \"{written}\" in a file further up")));
        }
        let text = imports.read(&found).map_err(|reason| {
            (format!("cannot import \"{written}\": {reason}"), format!("the file is {}", found.name))
        })?;
        if self.size + text.len() > LARGEST_SOURCES {
            let limit = LARGEST_SOURCES >> 20;
            let message =
                format!("with \"{written}\" the files of this specification have more than {limit} MiB");
            return Err((message, "import only what the properties need".to_owned()));
        }
        self.size += text.len();
        self.begun.insert(found.path.clone());
        Ok((found, Some(text)))
    }
}
