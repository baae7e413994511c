//! Lists the files of `assets/` as a table of paths, media types and bytes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("assets");
    let mut files = Vec::new();
    if folder.is_dir() {
        list(&folder, &mut files)?;
    }
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in &files {
        let inside = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let path = if inside == "index.html" { "/".to_owned() } else { format!("/{inside}") };
        let content_type = match file.extension().and_then(|extension| extension.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            _ => "text/plain; charset=utf-8",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "    Asset {{ path: {path:?}, content_type: {content_type:?}, bytes: include_bytes!({:?}) }},",
            file.to_string_lossy()
        );
    }
    table.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("assets.rs"), table)
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
