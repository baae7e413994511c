//! Golden tests of refusals: each property of `tests/refusals/*.rondel` is compiled alone, and the
//! diagnostics are compared with the `.txt` file. With `UPDATE=1` in the environment the `.txt` files are
//! rewritten; review the difference before committing it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use rondel_engine::Program;
use rondel_spec::{Spec, parse};

/// Returns the diagnostics of each property, compiled alone.
fn diagnostics(name: &str, text: &str) -> String {
    let outcome = parse(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{}", outcome.diagnostics[0].render(name, text, false)));
    let mut shown = Vec::new();
    for property in &spec.properties {
        let alone = Spec { properties: vec![property.clone()], ..spec.clone() };
        if let Err(error) = Program::compile(&alone) {
            let diagnostic = error.diagnose(&spec).unwrap_or_else(|| panic!("{error} has no place"));
            assert!(diagnostic.help.is_some(), "{error} has no advice");
            shown.push(diagnostic.render(name, text, false));
        } else {
            shown.push(format!("{} can be monitored\n", property.name));
        }
    }
    shown.join("\n")
}

#[test]
fn refusals_match_the_golden_files() {
    let update = std::env::var_os("UPDATE").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusals");
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let case = entry.unwrap().path();
        if case.extension().is_none_or(|extension| extension != "rondel") {
            continue;
        }
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let shown = diagnostics(&name, &std::fs::read_to_string(&case).unwrap());
        let expected = case.with_extension("txt");
        if update {
            std::fs::write(&expected, &shown).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != shown {
            wrong.push(format!("{name} now gives:\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All refusals of a specification are reported at once, and a shared node only once.
#[test]
fn all_refusals_are_reported() {
    let text = "topic a { id: int, ok: bool } let late = forall x. a{id: x} -> once a{id: x, ok}
        property p = exists x. not a{id: x}
        property q = a.ok
        property r = late
        property s = late or a.ok
        property t for each id in a.id = forall x. a{id: x}
        @robust property u = exists x. a{id: x, id > 3}";
    let outcome = parse(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let places: Vec<_> = Program::refusals(&spec)
        .iter()
        .filter_map(|refusal| refusal.diagnose(&spec))
        .map(|diagnostic| &text[diagnostic.span.start..diagnostic.span.end])
        .collect();
    let expected = ["a{id: x}", "once a{id: x, ok}", "a{id: x}", "exists x. a{id: x, id > 3}"];
    assert_eq!(places, expected);
    let sound = parse("topic a property p = on(a)").spec.unwrap();
    assert_eq!(Program::refusals(&sound), []);
}

#[test]
fn reference_has_example_of_each_refusal() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/diagnostics.md");
    let page = std::fs::read_to_string(page).unwrap();
    for code in ["E0701", "E0702"] {
        let section = page.split(&format!("### {code}\n")).nth(1).unwrap();
        let example = section.split("```rondel\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let outcome = parse(example);
        let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
        let diagnostic = Program::compile(&spec).unwrap_err().diagnose(&spec).unwrap();
        assert_eq!(diagnostic.code.as_str(), code);
    }
}
