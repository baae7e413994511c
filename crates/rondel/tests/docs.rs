//! The documentation agrees with the program: specifications are accepted, deployments are valid, commands print the output below them,
//! options are described, links have targets.
//!
//! Fenced blocks say what they are:
//! - `rondel`, `rye`: a whole text without errors; `rondel formula`: a single formula; `… wrong=E0301`: refused with this code.
//! - `yaml deployment`: `rondel validate` has nothing to say; `… wrong`: it has.
//! - `console`: lines after `$ ` are commands. `rondel check`, `test`, `explain`, `trace` and `validate` run, and print what follows; a line `…` stands for any
//!   lines. Of other subcommands of `rondel` the options are checked. All else is left alone.
//! - `file=NAME` on any of them: later commands of the same page find the text under this name.
//!
//! `RONDEL_DOCS=write cargo test -p rondel --test docs` writes what is printed into the pages.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rondel_runtime::Types;
use rondel_spec::{Diagnostic, ParseOptions, Sources, parse_formula, parse_rye, parse_sources};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages with examples, by their path below the root.
fn pages() -> Vec<String> {
    let mut pages =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned).to_vec();
    pages.extend(pages_below(&["docs", "deploy", "corpus"]));
    pages.sort();
    pages
}

/// The pages in these folders and in all folders below them, by their path below the root.
fn pages_below(folders: &[&str]) -> Vec<String> {
    let mut pages = Vec::new();
    let mut folders: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries.map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            if path.ends_with(".md") {
                pages.push(path);
            } else if entry.file_type().unwrap().is_dir() && !matches!(&*name, "target" | "node_modules") {
                folders.push(path);
            }
        }
    }
    pages
}

/// The text of all pages in a folder of the reference.
fn reference(folder: &str) -> String {
    let folder = format!("docs/reference/{folder}");
    pages_below(&[folder.as_str()])
        .iter()
        .map(|page| fs::read_to_string(root().join(page)).unwrap())
        .collect()
}

struct Block {
    language: String,
    info: Vec<String>,
    /// The number of its first line in the page, from 0, and the lines.
    first: usize,
    lines: Vec<String>,
}

impl Block {
    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn is(&self, word: &str) -> bool {
        self.info.iter().any(|w| w == word)
    }

    /// Writes a block with a name into a file of this name.
    fn save(&self, folder: &Path) {
        if let Some(name) = self.value("file") {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, self.text()).unwrap();
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.info.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.lines.push(line.to_owned()),
            (None, Some(info)) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let language = words.next().unwrap_or_default();
                open = Some(Block { language, info: words.collect(), first: number + 1, lines: Vec::new() });
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    blocks
}

/// Calls `check` with every block that is not in the page of diagnostics, which has its own test.
fn each_block(mut check: impl FnMut(&str, &Block)) {
    for page in pages().iter().filter(|page| !page.ends_with("/diagnostics.md")) {
        for block in blocks(&fs::read_to_string(root().join(page)).unwrap()) {
            check(&format!("{page}:{}", block.first), &block);
        }
    }
}

/// A folder of its own, with the examples in it.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs").join(name.replace('/', "-"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.join("examples")).unwrap();
    folder
}

fn rondel(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rondel")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn documented_specifications_are_accepted_or_refused_as_stated() {
    let mut seen = 0;
    each_block(|place, block| {
        let text = block.text();
        let outcome = match block.language.as_str() {
            "rondel" if block.is("formula") => parse_formula(&text),
            "rondel" => {
                let sources = Sources::alone("", &text);
                parse_sources(&sources, &ParseOptions::default(), Some(&Types::ros()))
            }
            "rye" => parse_rye(&text, None, "p"),
            _ => return,
        };
        seen += 1;
        let mut codes: Vec<_> = outcome.diagnostics.iter().map(|d| d.code.as_str()).collect();
        // The engine may refuse a specification that the language allows.
        if let Some(spec) = &outcome.spec {
            let refusals = rondel_engine::Program::refusals(spec);
            codes.extend(refusals.iter().filter_map(|refusal| Some(refusal.diagnose(spec)?.code.as_str())));
        }
        match block.value("wrong") {
            Some(code) => assert!(codes.contains(&code), "{place}: {codes:?}"),
            None => assert!(
                !outcome.diagnostics.iter().any(Diagnostic::is_error),
                "{place}:\n{}",
                outcome.render(place, &text, false)
            ),
        }
    });
    assert!(seen > 12, "only {seen} blocks");
}

#[test]
fn deployments_validate() {
    let folder = folder("deployments");
    fs::copy(root().join("examples/vehicle.rondel"), folder.join("vehicle.rondel")).unwrap();
    fs::write(folder.join("zenoh.json5"), "{}").unwrap();
    let mut seen = 0;
    each_block(|place, block| {
        if block.language != "yaml" {
            block.save(&folder);
        }
        if block.language == "yaml" && block.is("deployment") {
            seen += 1;
            fs::write(folder.join("rondel.yaml"), block.text()).unwrap();
            let (status, _, said) = rondel(&folder, &["validate"]);
            assert_eq!(status, if block.is("wrong") { 2 } else { 0 }, "{place}: {said}");
        }
    });
    assert!(seen > 4, "only {seen} blocks");
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let (status, _, said) = rondel(&folder, &["validate", path.to_str().unwrap()]);
            assert_eq!(status, 0, "{said}");
        }
    }
}

/// The time that a check took is another every time.
fn normal(line: &str) -> String {
    match line.rfind(" in ").map(|at| line.split_at(at)) {
        Some((before, rest)) if rest.ends_with(" s") && line.contains(" checked against ") => {
            format!("{before} in 0.000 s")
        }
        _ => line.trim_end().to_owned(),
    }
}

/// Whether the lines are those that are shown; `…` stands for any number of lines.
fn agrees(shown: &[String], printed: &[String]) -> bool {
    match shown.iter().position(|line| line.trim() == "…") {
        None => shown == printed,
        Some(gap) => {
            printed.len() >= gap
                && shown[..gap] == printed[..gap]
                && (gap..=printed.len()).any(|from| agrees(&shown[gap + 1..], &printed[from..]))
        }
    }
}

/// The commands of a block: each with where its text and its output begin and end, counted in lines.
fn commands(lines: &[String]) -> Vec<(String, std::ops::Range<usize>)> {
    let mut commands: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some(command) = lines[at].strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                at += 1;
                command.pop();
                command.push_str(lines[at].trim_start());
            }
            commands.push((command, at + 1..at + 1));
        } else if let Some((_, output)) = commands.last_mut() {
            output.end = at + 1;
        }
        at += 1;
    }
    commands
}

/// Programs whose output on a page is compared.
const COMPARED: [&str; 10] = [
    "rondel check ",
    "rondel test ",
    "rondel explain ",
    "rondel trace ",
    "rondel validate",
    "printf ",
    "gzip ",
    "cat ",
    "head ",
    "grep ",
];

/// The output of a command of a page, or `None` if it is not compared; of other commands of Rondel the help is printed.
fn printed_by(command: &str, page: &str, folder: &Path, path: &str, status: &mut i32) -> Option<String> {
    let run = |command: &str| {
        let mut shell = Command::new("sh");
        // Dates are local, and the width is that of a terminal.
        shell.args(["-c", command]).env("PATH", path).env("TZ", "UTC").env_remove("COLUMNS");
        shell.current_dir(folder).output().unwrap()
    };
    if command == "echo $?" {
        return Some(status.to_string());
    }
    if COMPARED.iter().any(|c| command.starts_with(c)) {
        let run = run(&format!("{{ {command}\n}} 2>&1"));
        *status = run.status.code().unwrap();
        return Some(String::from_utf8(run.stdout).unwrap());
    }
    if command.starts_with("rondel ") && !command.contains(" | ") {
        let command = format!("{} --help", command.trim_end_matches('&'));
        let run = run(&command);
        assert!(run.status.success(), "{page}: {command}\n{}", String::from_utf8_lossy(&run.stderr));
    }
    None
}

#[test]
fn commands_print_the_documented_output() {
    let write = std::env::var_os("RONDEL_DOCS").is_some_and(|what| what == "write");
    let path = format!(
        "{}:{}",
        Path::new(env!("CARGO_BIN_EXE_rondel")).parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let (mut ran, mut wrong) = (0, String::new());
    for page in pages().iter().filter(|page| !page.starts_with("docs/benchmarks")) {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let folder = folder(page);
        let mut replaced: Vec<(std::ops::Range<usize>, Vec<String>)> = Vec::new();
        for block in blocks(&text) {
            block.save(&folder);
            if block.language != "console" {
                continue;
            }
            let mut status = 0;
            for (command, output) in commands(&block.lines) {
                let shown: Vec<String> =
                    block.lines[output.clone()].iter().map(|line| normal(line)).collect();
                let Some(printed) = printed_by(&command, page, &folder, &path, &mut status) else { continue };
                ran += 1;
                let printed: Vec<String> = printed.lines().map(normal).collect();
                if !agrees(&shown, &printed) {
                    if write {
                        replaced.push((block.first + output.start..block.first + output.end, printed));
                    } else {
                        wrong += &format!(
                            "{page}:{}: {command}\n{}\n\n",
                            block.first + output.start,
                            printed.join("\n")
                        );
                    }
                }
            }
        }
        if !replaced.is_empty() {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (range, printed) in replaced.into_iter().rev() {
                lines.splice(range, printed);
            }
            fs::write(root().join(page), lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "printed is something else:\n\n{wrong}");
    assert!(ran > 20, "only {ran} commands");
}

#[test]
fn every_option_is_in_the_reference() {
    let reference = reference("command");
    let folder = folder("options");
    for subcommand in [
        "check",
        "run",
        "test",
        "explain",
        "fmt",
        "lsp",
        "help",
        "validate",
        "demo",
        "publish",
        "tap",
        "topics",
        "init",
        "repl",
        "audit",
        "query",
        "page",
        "top",
        "ack",
        "silence",
        "size",
        "reload",
        "gate-guard",
        "standby",
    ] {
        assert!(reference.contains(&format!("# rondel {subcommand}\n")), "nothing about rondel {subcommand}");
        let (status, help, _) = rondel(&folder, &[subcommand, "--help"]);
        assert_eq!(status, 0);
        let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        for option in words.filter(|word| word.starts_with("--") && word.len() > 2).collect::<BTreeSet<_>>() {
            assert!(
                reference.contains(&format!("`{option}")),
                "nothing about {option} of rondel {subcommand}"
            );
        }
    }
}

#[test]
fn every_setting_is_in_the_reference() {
    let reference = reference("deployment");
    let folder = folder("settings");
    // An unknown setting makes it list the known ones.
    let unknown = "qqqqqqqq: 1\nformula: a\nzenoh: {qqqqqqqq: 1}\ndds: {qqqqqqqq: 1}\n\
                 topics: {trace: {source: 'zenoh:a', qqqqqqqq: 1}}\nverdicts: {qqqqqqqq: 1}\n";
    fs::write(folder.join("rondel.yaml"), unknown).unwrap();
    let (_, _, said) = rondel(&folder, &["validate"]);
    let lists: Vec<_> = said.lines().filter_map(|line| line.split_once("its settings are: ")).collect();
    assert_eq!(lists.len(), 5, "{said}");
    for setting in lists.iter().flat_map(|(_, names)| names.split(", ")) {
        assert!(reference.contains(&format!("`{setting}`")), "nothing about {setting}");
    }
}

#[test]
fn versions_of_snapshots_are_in_the_reference() {
    let page = fs::read_to_string(root().join("docs/reference/compatibility.md")).unwrap();
    for (part, file) in [
        ("session", "crates/rondel-runtime/src/session/snapshot/saved.rs"),
        ("monitors", "crates/rondel-engine/src/monitor/snapshot.rs"),
        ("alignment", "crates/rondel-align/src/saved.rs"),
    ] {
        let source = fs::read_to_string(root().join(file)).unwrap();
        let (_, rest) = source.split_once("const VERSION: u32 = ").unwrap();
        let (version, _) = rest.split_once(';').unwrap();
        assert!(page.contains(&format!("{part} ({version})")), "{file} has version {version}");
    }
}

/// The anchors of the headings of a page; further headings of the same text end in `-1`, `-2` and so on.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if line.starts_with('#') && !in_block {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let slug = kept.collect::<String>().replace(' ', "-");
            let mut names = std::iter::once(slug.clone()).chain((1..).map(|i| format!("{slug}-{i}")));
            let free = names.find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
    }
    anchors
}

#[test]
fn links_have_targets() {
    let mut broken = String::new();
    let others = pages_below(&["crates", "editors", "fuzz", "bench", "examples"]);
    for page in pages().into_iter().chain(others).chain(["CHANGELOG.md".to_owned()]) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let here = root().join(&page);
        for target in
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
        {
            if target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { here.clone() } else { here.parent().unwrap().join(file) };
            let found = path.exists()
                && (anchor.is_empty()
                    || file.ends_with(".rs")
                    || anchors(&fs::read_to_string(&path).unwrap()).contains(anchor));
            if !found {
                broken += &format!("{page}: {target}\n");
            }
        }
    }
    assert!(broken.is_empty(), "links without a target:\n{broken}");
}

/// The recording among the examples is what the vehicle of the live demo says.
#[test]
fn the_example_is_the_demo() {
    let folder = folder("demo");
    let checked = rondel(&folder, &["check", "--quiet", "examples/vehicle.rondel", "examples/vehicle.jsonl"]);
    let shown = rondel(&folder, &["demo", "--live", "--fast"]);
    assert_eq!((checked.0, shown.0), (1, 0), "{}{}", checked.2, shown.2);
    assert_eq!(checked.1, shown.1);
    assert_eq!(checked.2, "");
}
