//! One self-contained document: the views of the page over the results, which stand in the document as JSON. It loads
//! nothing, and only its own scripts run. Without scripts, a plain table of the verdicts is shown.

mod data;
mod plain;
mod signals;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::results::Results;

/// The page, up to the end of its head, and from there to the end of its body.
const HEAD: &str = include_str!(concat!(env!("OUT_DIR"), "/head.html"));
const BODY: &str = include_str!(concat!(env!("OUT_DIR"), "/body.html"));
/// The theme and the library of the charts.
const CLASSIC: &str = include_str!(concat!(env!("OUT_DIR"), "/classic.js"));
/// The modules of the report and of the page.
const MODULES: &str = include_str!(concat!(env!("OUT_DIR"), "/modules.js"));
const STYLE: &str = include_str!(concat!(env!("OUT_DIR"), "/style.css"));

/// Size of a document in bytes for which explanations, signals and timelines are shortened.
const SIZE: usize = 1_000_000;
/// Room for the tags between the parts.
const TAGS: usize = 2_000;

/// Origin of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The command, without the reports that it writes.
    pub command: Option<String>,
    /// Names and texts of the files of the specification, the imported ones first.
    pub files: Vec<(String, String)>,
}

/// The document.
pub fn write(results: &Results, about: &About) -> String {
    let plain = plain::tables(results);
    let parts = [HEAD, BODY, CLASSIC, MODULES, STYLE, plain.0.as_str()];
    let fixed: usize = parts.iter().map(|part| part.len()).sum();
    let json = data::fitting(results, about, SIZE.saturating_sub(fixed + TAGS));
    let page = html! {
        (PreEscaped(HEAD))
        meta http-equiv="Content-Security-Policy" content=(policy());
        title { "Rondel: " (results.specification) }
        style { (PreEscaped(STYLE)) }
        (PreEscaped(BODY))
        noscript { (plain) }
        script type="application/json" id="report" { (PreEscaped(json)) }
        script { (PreEscaped(CLASSIC)) }
        script type="module" { (PreEscaped(MODULES)) }
        (PreEscaped("</body>\n</html>\n"))
    };
    page.into_string()
}

/// The policy of the document: its own scripts and styles, and nothing else.
fn policy() -> String {
    let [classic, modules, style] = [CLASSIC, MODULES, STYLE].map(source);
    format!(
        "default-src 'none'; script-src {classic} {modules}; style-src {style}; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

/// The source of a policy that permits an inline text.
fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests;
