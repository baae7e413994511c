//! Joins the modules of the page into one script, and lists it and the other files of `assets/` as a table of paths, media
//! types and bytes.

#![allow(clippy::print_stdout)] // for Cargo

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bundle::{Bundle, wrong};

mod bundle;

/// The module that the document names. It is served with all that it imports: a browser requests one file.
const MAIN: &str = "main.js";
/// The script that is no module.
const CLASSIC: &str = "theme.js";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut bundle = Bundle::default();
    bundle.add(&folder.join(MAIN))?;
    let joined = out.join(MAIN);
    fs::write(&joined, &bundle.text)?;
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in &files {
        let inside = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let is_module = inside.ends_with(".js") && !inside.contains('/') && inside != CLASSIC;
        if is_module && inside != MAIN {
            if !bundle.done.iter().any(|(name, _)| inside == format!("{name}.js")) {
                return Err(wrong(&format!("no module imports {inside}")));
            }
            continue;
        }
        let path = if inside == "index.html" { "/".to_owned() } else { format!("/{inside}") };
        let content_type = match file.extension().and_then(|extension| extension.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            _ => "text/plain; charset=utf-8",
        };
        let source = if is_module { &joined } else { file };
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "    Asset {{ path: {path:?}, content_type: {content_type:?}, bytes: include_bytes!({:?}) }},",
            source.to_string_lossy()
        );
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table)
}

/// Adds the files of a folder and those below it.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
