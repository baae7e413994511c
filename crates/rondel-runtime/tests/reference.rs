//! The examples of the language reference are valid.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use rondel_runtime::Types;
use rondel_spec::{ParseOptions, parse_formula, parse_typed};

#[test]
fn examples_are_valid() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/language.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut seen = 0;
    for block in page.split("\n```rondel").skip(1) {
        let (info, rest) = block.split_once('\n').unwrap();
        let text = rest.split("\n```").next().unwrap();
        if info.contains("wrong=") {
            continue;
        }
        let parse = |text| parse_typed(text, &ParseOptions::default(), &Types::ros());
        let outcome = if info.contains("formula") { parse_formula(text) } else { parse(text) };
        assert!(outcome.spec.is_some(), "{text}\n{}", outcome.render("language.md", text, false));
        seen += 1;
    }
    assert!(seen > 5);
}
