//! Collects the parts of a report's document: the modules of the report, and those of the page that they import, as one
//! script; the scripts that are no modules; the styles; and the frame of the page.

#![allow(clippy::print_stdout)] // for Cargo

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The files of the page, beside this crate, and those that only reports have.
const PAGE: &str = "../rondel-page/assets";
const OWN: &str = "assets";
/// The library of the charts.
const LIBRARY: &str = "vendor/uplot-1.6.32.min.js";
const LIBRARY_LICENSE: &str = "vendor/uplot-LICENSE";
const LIBRARY_STYLE: &str = "vendor/uplot-1.6.32.min.css";
/// Lines of the page that load files, and its title.
const LOADING: [&str; 4] = ["<link ", "<script ", "<noscript>", "<title>"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for folder in [PAGE, OWN] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    let page = |name: &str| read(&root.join(PAGE).join(name));
    let library = page(LIBRARY)?;
    // The comment at the beginning is an address; the license names the authors.
    let code = library.strip_prefix("/*!").and_then(|rest| rest.split_once("*/\n")).map(|(_, code)| code);
    let classic = format!(
        "{}/* uPlot\n\n{}*/\n{}",
        page("theme.js")?,
        page(LIBRARY_LICENSE)?,
        code.unwrap_or(library.as_str())
    );
    let mut bundle = Bundle::default();
    bundle.add(&root.join(OWN).join("report.js"))?;
    let own_style = read(&root.join(OWN).join("report.css"))?;
    let style = [page("style.css")?, page("views.css")?, page(LIBRARY_STYLE)?, own_style].concat();
    let (head, body) = frame(&page("index.html")?)?;
    let ends = |text: &str, forbidden: &[&str]| forbidden.iter().any(|end| text.contains(end));
    if ends(&classic, &["</script", "<!--"])
        || ends(&bundle.text, &["</script", "<!--"])
        || ends(&style, &["</style"])
    {
        return Err(wrong("a text would end the element that contains it"));
    }
    for (name, text) in [
        ("head.html", &head),
        ("body.html", &body),
        ("classic.js", &classic),
        ("modules.js", &bundle.text),
        ("style.css", &style),
    ] {
        fs::write(out.join(name), text)?;
    }
    Ok(())
}

fn wrong(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Reads a text. Browsers take line breaks of every system for the same character, and so must the hash of a script.
fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path).map_err(|error| wrong(&format!("{}: {error}", path.display())))?;
    Ok(text.replace("\r\n", "\n"))
}

/// The page without the files that it loads: up to the end of its head, and from there to the end of its body.
fn frame(index: &str) -> io::Result<(String, String)> {
    let is_kept = |line: &&str| !LOADING.iter().any(|beginning| line.starts_with(beginning));
    let kept: String = index.split_inclusive('\n').filter(is_kept).collect();
    let (head, rest) = kept.split_once("</head>").ok_or_else(|| wrong("index.html has no head"))?;
    let (body, _) = rest.split_once("</body>").ok_or_else(|| wrong("index.html has no body"))?;
    Ok((head.to_owned(), format!("</head>{body}")))
}

/// Modules as one script: each is a function that returns its exports, after those that it imports.
#[derive(Default)]
struct Bundle {
    text: String,
    /// The modules in the text, with their files.
    done: Vec<(String, PathBuf)>,
    /// The modules whose imports are being added.
    open: Vec<String>,
}

impl Bundle {
    /// Adds a module, after its imports.
    fn add(&mut self, path: &Path) -> io::Result<()> {
        let file = fs::canonicalize(path).map_err(|error| wrong(&format!("{}: {error}", path.display())))?;
        let name = stem(path);
        if let Some((_, known)) = self.done.iter().find(|(known, _)| *known == name) {
            return match *known == file {
                true => Ok(()),
                false => Err(wrong(&format!("two modules of the report are named {name}.js"))),
            };
        }
        if self.open.contains(&name) {
            return Err(wrong(&format!("{name}.js imports itself by way of other modules")));
        }
        self.open.push(name.clone());
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in read(path)?.lines() {
            let unknown = || wrong(&format!("{name}.js: the report does not know this form: {line}"));
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
