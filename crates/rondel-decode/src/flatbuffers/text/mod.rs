//! Schemas as text (`.fbs`), compiled to the binary schema of `flatc --binary --schema`, which is then read like any
//! other: there is one path from a schema to its types. Parts without effect on messages (services, further attributes,
//! documentation) are skipped; not every mistake that `flatc` refuses is refused.

mod layout;
mod lexer;
mod parser;
mod write;

use std::collections::BTreeSet;

use crate::schema::SchemaError;
use parser::{Declaration, File, Parser};

/// Maximum nesting of includes.
const MAX_INCLUDES: usize = 32;
/// Maximum size of all texts, in bytes.
const MAX_TEXT: usize = 16 << 20;
/// Maximum number of declarations, fields, values and cases of all texts.
const MAX_PARTS: usize = 1 << 20;
/// Maximum id of a field: the entries of a table have 16-bit offsets.
const LAST_ID: u16 = 32_764;

/// Compiles a schema. `include` returns the text of a file by its name relative to the folder of `text`.
///
/// # Errors
/// The first mistake, with its position and, in an included file, the name of that.
pub(super) fn compile(text: &str, include: &dyn Fn(&str) -> Option<String>) -> Result<Vec<u8>, SchemaError> {
    let mut reader = Reader { include, seen: BTreeSet::new(), left: MAX_TEXT, declarations: Vec::new() };
    let root = reader.file(text, None, 0)?;
    write::write(&reader.declarations, &root)
}

/// Declarations, and the name of the included text with them.
struct Texts {
    name: Option<Box<str>>,
    declarations: Vec<Declaration>,
}

struct Reader<'i> {
    include: &'i dyn Fn(&str) -> Option<String>,
    seen: BTreeSet<String>,
    left: usize,
    declarations: Vec<Texts>,
}

impl Reader<'_> {
    /// Reads a text after its includes, each of them once.
    fn file(&mut self, text: &str, name: Option<&str>, depth: usize) -> Result<File, SchemaError> {
        let left = self.left.checked_sub(text.len());
        self.left = left.ok_or_else(|| SchemaError::new("the texts have more than 16 MiB together"))?;
        let mut file = Parser::new(text)?.file()?;
        for (place, included) in &file.includes {
            if depth >= MAX_INCLUDES {
                return Err(SchemaError::at(*place, "files include each other too deeply"));
            }
            // A file is searched beside the one that includes it, then beside the first one.
            let folder = name.and_then(|name| name.rsplit_once('/'));
            let beside = folder.map(|(folder, _)| format!("{folder}/{included}"));
            let names = beside.into_iter().chain([included.to_string()]);
            let Some((found, text)) = names.map(|name| (plain(&name), name)).find_map(|(name, path)| {
                if self.seen.contains(&name) {
                    return Some((name, None));
                }
                (self.include)(&path).map(|text| (name, Some(text)))
            }) else {
                return Err(SchemaError::at(
                    *place,
                    format!("the included file '{included}' cannot be read"),
                ));
            };
            if let Some(text) = text {
                self.seen.insert(found.clone());
                self.file(&text, Some(&found), depth + 1).map_err(|error| error.in_text(&found))?;
            }
        }
        let declarations = std::mem::take(&mut file.declarations);
        self.declarations.push(Texts { name: name.map(Into::into), declarations });
        Ok(file)
    }
}

/// Returns a path without `.` and, if possible, without `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "")) => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
