//! Any text at all as a deployment: walked in every way that its reader has, without a panic, and every
//! mistake with a place inside the text.
//!
//! The reader is part of a binary, so its file is compiled into this one. What it makes of the items (addresses,
//! settings) is tested in `crates/rondel/tests/deployment/mistakes.rs`.

#![no_main]

#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rondel/src/deployment/yaml.rs"]
mod yaml;

use libfuzzer_sys::fuzz_target;
use yaml::{Item, Mistakes, with_document};

fn visit(item: Item<'_>, depth: u32, mistakes: &mut Mistakes) {
    item.text("a name", mistakes);
    item.boolean("a switch", mistakes);
    item.integer("a number", 0..=230, mistakes);
    item.texts("a name", mistakes);
    // A document cannot be deeper than its reader goes; this one need not go so deep.
    if depth > 8 {
        return;
    }
    if item.is_mapping() {
        let mut members = item.members("the deployment", mistakes);
        for name in ["specification", "formula", "topics", "zenoh", "verdicts"] {
            if let Some(item) = members.get(name) {
                visit(item, depth + 1, mistakes);
            }
        }
        members.finish(&[], mistakes);
        for (_, key, value) in item.entries("topics", mistakes) {
            visit(key, depth + 1, mistakes);
            visit(value, depth + 1, mistakes);
        }
    } else {
        for inner in item.items() {
            // A single value is its own only item.
            if inner.is_mapping() {
                visit(inner, depth + 1, mistakes);
            }
        }
    }
}

fuzz_target!(|text: &str| {
    let mut mistakes = Mistakes::default();
    let read = with_document(text, &mut mistakes, |root, mistakes| visit(root, 0, mistakes));
    assert!(read.is_some() || !mistakes.errors.is_empty());
    let lines = text.split(['\n', '\r']).count() + 1;
    for mistake in mistakes.errors.iter().chain(&mistakes.warnings).chain(&mistakes.uncertainties) {
        assert!(mistake.line <= lines, "{mistake:?}");
        assert!(!mistake.message.is_empty());
    }
});
