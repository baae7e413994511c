//! Every name of the specifications in the documents, the examples and the corpus can have another name.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use rondel_spec::{Code, Outline, ParseOptions, Sources, Symbol, SymbolKind};

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files(&entry, endings, found);
        } else if entry.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(entry);
        }
    }
}

/// The specifications, each with where it is from.
fn specifications() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for folder in ["docs", "examples", "corpus", "crates/rondel-spec/tests"] {
        files(&root.join(folder), &["md", "rondel"], &mut paths);
    }
    let mut found = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        if path.extension().is_some_and(|ending| ending == "rondel") {
            found.push((name, text));
            continue;
        }
        for (i, block) in text.split("```rondel\n").skip(1).enumerate() {
            let block = block.split("```").next().unwrap();
            found.push((format!("{name}, block {}", i + 1), block.to_owned()));
        }
    }
    found
}

fn codes(text: &str) -> Vec<Code> {
    let outcome =
        rondel_spec::parse_sources(&Sources::alone("a.rondel", text), &ParseOptions::default(), None);
    let mut codes: Vec<Code> = outcome.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    // A variable of another name hides nothing, and without `_` before it has to be used; a state of another name is not
    // misspelt.
    codes.retain(|code| !matches!(code, Code::Shadowed | Code::Unused | Code::LastingState));
    codes.sort_unstable();
    codes
}

#[test]
fn every_name_can_have_another_name() {
    let (mut renamed, mut specifications_with_names) = (0, 0);
    for (name, text) in specifications() {
        let sources = Sources::alone("a.rondel", &text);
        let start = sources.main_start();
        let outline = Outline::of(&sources, None);
        let before = codes(&text);
        // Errors may depend on names.
        if rondel_spec::parse_sources(&sources, &ParseOptions::default(), None).spec.is_none() {
            continue;
        }
        specifications_with_names += 1;
        for (index, symbol) in outline.symbols().iter().enumerate() {
            let is_own = symbol.span.is_some_and(|span| span.start >= start);
            let is_chain = |other: &Symbol| other.kind == SymbolKind::Chain;
            let gives_name = match symbol.kind {
                // Its further bounds have names that are made from its own.
                SymbolKind::Chain if symbol.is_external => true,
                SymbolKind::Chain => {
                    outline.symbols().iter().any(|other| is_chain(other) && other.owner == Some(index))
                }
                // A chain without a name is called as its topics are.
                SymbolKind::Topic => {
                    outline.symbols().iter().any(|other| is_chain(other) && other.is_external)
                }
                SymbolKind::Field | SymbolKind::Test => true,
                _ => symbol.is_external,
            };
            if !is_own || gives_name {
                continue;
            }
            let mut other = text.clone();
            let uses: Vec<_> = outline.uses(index).filter(|span| span.start >= start).collect();
            for span in uses.iter().rev() {
                let (from, to) = (span.start - start, span.end - start);
                assert_eq!(text[from..to], symbol.name, "{name}");
                other.replace_range(from..to, "another_name_9");
            }
            let after = codes(&other);
            if symbol.kind == SymbolKind::Parameter && after.contains(&Code::ForeignMachine) {
                // `in(machine, state)` refers to the machine of the same instance, by the names of the parameters.
                continue;
            }
            assert_eq!(after, before, "{name}: {symbol:?} becomes\n{other}");
            let meanings = Outline::of(&Sources::alone("a.rondel", &other), None).meanings();
            assert_eq!(meanings, outline.meanings(), "{name}: {symbol:?} becomes\n{other}");
            renamed += 1;
        }
    }
    assert!(
        renamed > 500 && specifications_with_names > 120,
        "{renamed} names in {specifications_with_names}"
    );
}
