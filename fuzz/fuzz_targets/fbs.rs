//! Schemas of FlatBuffers as text. No text causes a panic, and what is accepted is a binary schema that can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rondel_decode::flatbuffers::BinarySchema;

fuzz_target!(|text: &str| {
    // Files that include each other, and one that includes itself.
    let (own, other) = text.split_once('\0').unwrap_or((text, ""));
    let include = |name: &str| match name {
        "a" => Some(own.to_owned()),
        "b/c" => Some(other.to_owned()),
        _ => None,
    };
    if let Err(error) = BinarySchema::from_text(own, &include) {
        let said = error.to_string();
        assert!(!said.starts_with("not a binary schema"), "{said}");
    }
});
