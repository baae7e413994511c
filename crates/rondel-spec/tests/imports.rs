//! Specifications of several files, in memory.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::BTreeMap;

use rondel_spec::{ImportedFile, Imports, Outcome, ParseOptions, Sources, parse_sources};

/// Files by name, and which of them were read.
#[derive(Default)]
struct Files {
    texts: BTreeMap<String, String>,
    read: RefCell<Vec<String>>,
}

impl Files {
    fn new(texts: &[(&str, &str)]) -> Files {
        let texts = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Files { texts: texts.collect(), read: RefCell::default() }
    }

    /// The sources of the file `main`.
    fn load(&self) -> Sources {
        Sources::load(file("main"), self.texts["main"].clone(), self)
    }
}

fn file(name: &str) -> ImportedFile {
    ImportedFile { path: name.into(), name: name.to_owned() }
}

impl Imports for Files {
    fn find(&self, _: &ImportedFile, written: &str) -> Result<ImportedFile, String> {
        // Two ways to write one file.
        let name = written.trim_start_matches("./");
        if self.texts.contains_key(name) { Ok(file(name)) } else { Err("there is no such file".to_owned()) }
    }

    fn read(&self, file: &ImportedFile) -> Result<String, String> {
        self.read.borrow_mut().push(file.name.clone());
        Ok(self.texts[&file.name].clone())
    }
}

fn parse(sources: &Sources) -> Outcome {
    parse_sources(sources, &ParseOptions::default(), None)
}

fn shown(texts: &[(&str, &str)]) -> String {
    let sources = Files::new(texts).load();
    parse(&sources).render_in(&sources, false)
}

#[test]
fn every_declaration_of_every_file_counts_once() {
    let files = Files::new(&[
        ("main", "use \"a\" use './b';\nuse \"./a\"\nproperty last = near(t.x, limit) -> positive"),
        ("a", "use \"c\"\nlet near(x: int, d: int) = abs(x) < d let positive = t.x > 0 let unused = t.x > 3"),
        ("b", "\u{feff}# without a line break\nuse \"c\"; property first = t.x < limit"),
        (
            "c",
            "topic t { x: int } const limit = 3\nmachine m { initial off state on off -> on when positive }\ntest \"b\" { at 0 s t { x: 1 } expect first satisfied }",
        ),
    ]);
    let sources = files.load();
    let outcome = parse(&sources);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render_in(&sources, false));
    let spec = outcome.spec.unwrap();
    let names: Vec<&str> = spec.properties.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(names, ["m", "first", "last"]);
    assert_eq!(*files.read.borrow(), ["a", "c", "b"]);
    assert_eq!(sources.names().collect::<Vec<_>>(), ["c", "a", "b", "main"]);
    let places: Vec<_> = (0..3)
        .map(|i| sources.place(spec.places.property(i).unwrap().start))
        .map(|place| (place.file, place.line, place.column))
        .collect();
    assert_eq!(places, [("c", 2, 9), ("b", 2, 19), ("main", 3, 10)]);
    let test = sources.place(spec.tests[0].offset);
    assert_eq!((test.file, test.line), ("c", 3));
}

#[test]
fn a_name_clash_shows_both_files() {
    let texts = [
        ("main", "use \"common\"\n\nlet near = t.x < 3 property p = near"),
        ("common", "topic t { x: int }\nlet near = t.x < 2\n"),
    ];
    assert_eq!(
        shown(&texts),
        "error[E0204]: 'near' is declared twice\n --> main:3:5\n  |\n3 | let near = t.x < 3 property p = near\n  \
         |     ^^^^\n  |\n ::: common:2:5\n  |\n2 | let near = t.x < 2\n  |     ---- first declared here\n"
    );
}

#[test]
fn an_incomplete_file_does_not_swallow_the_next() {
    let ends = [
        "property p =",
        "machine m {",
        "topic t {",
        "let f(x: int",
        "let y = \"",
        "property q = (1",
        "@severity(",
    ];
    for end in ends {
        let text = format!("topic t {{ x: int }}\n{end}");
        let sources = Files::new(&[("main", "use \"a\"\nproperty last = t.x > 0"), ("a", &text)]).load();
        let outcome = parse(&sources);
        assert!(outcome.spec.is_none(), "{end}");
        let errors = outcome.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let places: Vec<&str> = errors.map(|error| sources.place(error.span.start).file).collect();
        assert!(places.iter().all(|file| *file == "a"), "{end}: {}", outcome.render_in(&sources, false));
    }
}

#[test]
fn impossible_imports_are_refused() {
    let cases: [(&[(&str, &str)], &str); 6] = [
        (
            &[("main", "use \"none\"")],
            "error[E0113]: cannot import \"none\": there is no such file\n --> main:1:5",
        ),
        (&[("main", "use \"main\"")], "error[E0113]: main imports itself\n --> main:1:5"),
        (
            &[("main", "use \"a\""), ("a", "\nuse \"b\""), ("b", "use \"a\"")],
            "error[E0113]: files import each other in a circle: a -> b -> a\n --> b:1:5",
        ),
        (&[("main", "use \"a.rye\"")], "error[E0113]: cannot import \"a.rye\": it is in Reelay's format"),
        (
            &[("main", "use \"a\""), ("a", "let x = 1 use \"b\"")],
            "error[E0113]: `use` stands before all other",
        ),
        (&[("main", "use \"a\" as 3"), ("a", "")], "error[E0102]: expected the name of an import, found `3`"),
    ];
    for (texts, expected) in cases {
        let shown = shown(texts);
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[test]
fn imports_are_limited() {
    let chain = |length: usize| {
        let mut texts = BTreeMap::from([("main".to_owned(), "use \"1\"".to_owned())]);
        texts.extend((1..length).map(|i| (i.to_string(), format!("use \"{}\"", i + 1))));
        texts.insert(length.to_string(), "property p = true".to_owned());
        Files { texts, read: RefCell::default() }
    };
    assert!(parse(&chain(31).load()).spec.is_some());
    let sources = chain(32).load();
    let deep = parse(&sources).render_in(&sources, false);
    assert!(
        deep.starts_with("error[E0113]: files import each other more than 32 levels deep\n --> 31:1:5"),
        "{deep}"
    );

    let wide = |count: usize| {
        let all: String = (0..count).map(|i| format!("use \"{i}\"\n")).collect();
        let mut texts = BTreeMap::from([("main".to_owned(), all + "property p = true")]);
        texts.extend((0..count).map(|i| (i.to_string(), String::new())));
        Files { texts, read: RefCell::default() }
    };
    assert!(parse(&wide(255).load()).spec.is_some());
    let sources = wide(256).load();
    let many = parse(&sources).render_in(&sources, false);
    assert!(
        many.starts_with("error[E0113]: a specification has at most 256 files\n   --> main:256:5"),
        "{many}"
    );

    let large = "#".repeat(rondel_spec::LARGEST_SOURCES - 20);
    let sources = Files::new(&[("main", "use \"a\"\nproperty p = true"), ("a", &large)]).load();
    let outcome = parse(&sources);
    assert!(outcome.diagnostics[0].message.ends_with("more than 16 MiB"), "{:?}", outcome.diagnostics);
}

#[test]
fn a_file_of_several_is_formatted_alone() {
    let text = "use   \"a\"\nuse \"b\"   # why\n\nproperty p=near( t.x,1 )\n";
    let formatted = rondel_spec::format(text).unwrap();
    assert_eq!(formatted, "use \"a\"\nuse \"b\"  # why\n\nproperty p = near(t.x, 1)\n");
}

/// Whatever an imported file contains, its mistakes are shown in it, and reading goes on with the next file.
#[test]
fn cut_files_are_imported_without_a_panic() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut texts: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "rondel"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .filter(|text| !text.contains("use \""))
        .collect();
    texts.sort();
    let mut compared = 0;
    for (i, text) in texts.iter().enumerate() {
        let main = format!("use \"a\"\n{}\nproperty ) last", texts[(i + 1) % texts.len()]);
        let expected = ("main", main.lines().count());
        let is_last = |outcome: &Outcome, sources: &Sources| {
            let mut places = outcome.diagnostics.iter().map(|d| sources.place(d.span.start));
            places.any(|place| (place.file, place.line) == expected)
        };
        let alone = Sources::alone("main", &main.replacen("use \"a\"", "", 1));
        if !is_last(&parse(&alone), &alone) {
            // It ends within braces.
            continue;
        }
        for cut in (0..=text.len()).step_by(1 + text.len() / 8) {
            let Some(cut) = text.get(..cut) else { continue };
            let sources = Files::new(&[("main", &main), ("a", cut)]).load();
            let outcome = parse(&sources);
            outcome.render_in(&sources, false);
            assert!(is_last(&outcome, &sources), "{cut}");
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}
