//! Any text at all as an expression in Reelay's format, alone and embedded in a specification whose
//! topic has a schema: no panic, and the same grammar in both.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_spec::{Code, Diagnostic};

fuzz_target!(|text: &str| {
    let alone = rondel_spec::parse_rye(text, None, "p");
    let failed = alone.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(alone.spec.is_none(), failed);
    for diagnostic in alone.diagnostics.iter().take(20) {
        assert!(text.get(diagnostic.span.start..diagnostic.span.end).is_some());
        diagnostic.render("fuzz", text, false);
    }
    // More `#` than a text of the fuzzer is likely to have behind a quote.
    let marks = "#".repeat(16);
    if text.contains(&marks) {
        return;
    }
    let header = "topic t { a: int, b: bool, c: string, d: { e: float }, f: [{ a: int }] }";
    let embedded = rondel_spec::parse(&format!("{header} property p = rye{marks}\"{text}\"{marks}"));
    // The schema may find more that is wrong, but never less.
    assert!(!failed || embedded.spec.is_none());
    let grammar =
        |diagnostics: &[Diagnostic]| diagnostics.iter().any(|d| d.code == Code::UnexpectedCharacter);
    assert_eq!(grammar(&alone.diagnostics), grammar(&embedded.diagnostics));
});
