//! Collects the parts of a report's document: the modules of the report, and those of the page that they import, as one
//! script; the scripts that are no modules; the styles; and the frame of the page.

#![allow(clippy::print_stdout)] // for Cargo

use std::path::PathBuf;
use std::{env, fs, io};

use bundle::{Bundle, read, wrong};

mod bundle;

/// The files of the page, by a link, so that they are packed with this crate; and those that only reports have.
const PAGE: &str = "page";
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
        println!("cargo::rerun-if-changed={}", fs::canonicalize(root.join(folder))?.display());
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
    let style = [page("style.css")?, page(LIBRARY_STYLE)?, own_style].concat();
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

/// The page without the files that it loads: up to the end of its head, and from there to the end of its body.
fn frame(index: &str) -> io::Result<(String, String)> {
    let is_kept = |line: &&str| !LOADING.iter().any(|beginning| line.starts_with(beginning));
    let kept: String = index.split_inclusive('\n').filter(is_kept).collect();
    let (head, rest) = kept.split_once("</head>").ok_or_else(|| wrong("index.html has no head"))?;
    let (body, _) = rest.split_once("</body>").ok_or_else(|| wrong("index.html has no body"))?;
    Ok((head.to_owned(), format!("</head>{body}")))
}
