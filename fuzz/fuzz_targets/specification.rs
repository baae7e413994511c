//! Any text at all as a specification and as a single formula: no panic, and a specification only
//! without errors. What is laid out is laid out for good.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_spec::{Diagnostic, ParseOptions, TimeModel, ValueType};

fuzz_target!(|text: &str| {
    if let Ok(formatted) = rondel_spec::format(text) {
        assert_eq!(rondel_spec::format(&formatted).as_ref(), Ok(&formatted));
    }
    if text.starts_with("use ") {
        let sources = rondel_spec::Sources::alone("fuzz", text);
        let outcome = rondel_spec::parse_sources(&sources, &ParseOptions::default(), None);
        assert_eq!(outcome.spec.is_none(), outcome.diagnostics.iter().any(Diagnostic::is_error));
        for diagnostic in outcome.diagnostics.iter().take(20) {
            diagnostic.render_in(&sources, true);
        }
    }
    let dense = ParseOptions { time: Some(TimeModel::Dense), linear: false };
    let linear = ParseOptions { linear: true, ..dense };
    for outcome in [
        rondel_spec::parse(text),
        rondel_spec::parse_formula(text),
        rondel_spec::parse_with(text, &dense),
        rondel_spec::parse_with(text, &linear),
        rondel_spec::parse_formula_with(text, &dense),
        rondel_spec::parse_formula_with(text, &linear),
    ] {
        let failed = outcome.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(outcome.spec.is_none(), failed);
        // A few are enough: each is rendered by itself.
        for diagnostic in outcome.diagnostics.iter().take(20) {
            assert!(text.get(diagnostic.span.start..diagnostic.span.end).is_some());
            diagnostic.render("fuzz", text, true);
        }
        let Some(spec) = outcome.spec else { continue };
        for (i, node) in spec.nodes.iter().enumerate() {
            assert!(node.operands().all(|operand| operand.index() < i));
        }
        for property in &spec.properties {
            assert_eq!(spec.value_type(property.formula), ValueType::Bool);
        }
    }
});
