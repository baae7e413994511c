//! Joins the modules of the page into one script. The build scripts of rondel-page and rondel-report contain this file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Modules as one script: each is a function that returns its exports, after those that it imports.
#[derive(Default)]
pub(crate) struct Bundle {
    pub(crate) text: String,
    /// The modules in the text, with their files.
    pub(crate) done: Vec<(String, PathBuf)>,
    /// The modules whose imports are being added.
    open: Vec<String>,
}

impl Bundle {
    /// Adds a module, after its imports.
    pub(crate) fn add(&mut self, path: &Path) -> io::Result<()> {
        let file = fs::canonicalize(path).map_err(|error| wrong(&format!("{}: {error}", path.display())))?;
        let name = stem(path);
        if let Some((_, known)) = self.done.iter().find(|(known, _)| *known == name) {
            return match *known == file {
                true => Ok(()),
                false => Err(wrong(&format!("two modules are named {name}.js"))),
            };
        }
        if self.open.contains(&name) {
            return Err(wrong(&format!("{name}.js imports itself by way of other modules")));
        }
        self.open.push(name.clone());
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in read(path)?.lines() {
            let unknown = || wrong(&format!("{name}.js: modules of this form cannot be joined: {line}"));
            if line.starts_with("import ") {
                let (names, from) = imported(line).ok_or_else(unknown)?;
                let other = path.with_file_name(from);
                self.add(&other)?;
                body += &format!("const {{ {names} }} = module_{};\n", stem(&other));
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exports.push(exported(declaration).ok_or_else(unknown)?.to_owned());
                body += declaration;
                body.push('\n');
            } else {
                body += line;
                body.push('\n');
            }
        }
        self.open.pop();
        let exports = exports.join(", ");
        // Writing to a string does not fail.
        let _ = write!(self.text, "const module_{name} = (() => {{\n{body}return {{ {exports} }};\n}})();\n");
        self.done.push((name, file));
        Ok(())
    }
}

pub(crate) fn wrong(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Reads a text. Browsers take line breaks of every system for the same character, and so must the hash of a script.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path).map_err(|error| wrong(&format!("{}: {error}", path.display())))?;
    Ok(text.replace("\r\n", "\n"))
}

/// The name of a module.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Names and path of `import { a, b } from "./c.js";`.
fn imported(line: &str) -> Option<(&str, &str)> {
    let (names, from) = line.strip_prefix("import { ")?.split_once(" } from \"")?;
    let path = from.strip_suffix("\";")?;
    (!names.contains(" as ")).then_some((names, path))
}

/// The name of an exported function, class or constant. A variable would not be the same in all modules.
fn exported(declaration: &str) -> Option<&str> {
    let declaration = declaration.strip_prefix("async ").unwrap_or(declaration);
    let rest = ["function ", "class ", "const "].iter().find_map(|word| declaration.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}
