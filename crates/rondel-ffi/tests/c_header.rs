//! `rondel.h` and the library are the same: functions, constants, and the layout of structures.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test

mod common;

use std::collections::BTreeSet;
use std::mem::offset_of;

use common::{HERE, library, run, tool};
use rondel_ffi::*;
use rondel_testkit::Folder;

/// Adds lines of constants, as signed 64-bit integers.
macro_rules! constants {
    ($lines:ident: $($name:ident)*) => {
        $($lines.push(format!(concat!(stringify!($name), " {}"), $name as i64));)*
    };
}

/// Adds the lines of a structure: its size and the places of its members.
macro_rules! structure {
    ($lines:ident: $name:literal $own:ident { $($member:ident)* }) => {
        $lines.push(format!(concat!($name, " {}"), size_of::<$own>()));
        $($lines.push(format!(concat!($name, ".", stringify!($member), " {}"), offset_of!($own, $member)));)*
    };
}

#[test]
fn constants_and_structures_are_those_of_the_header() {
    let folder = Folder::new();
    let finished =
        run("cc", "-std=c99", &format!("{HERE}/tests/c/layout.c"), &library("a"), &folder.path("layout"));
    let mut lines: Vec<String> = Vec::new();
    constants!(lines:
        RONDEL_ABI_VERSION RONDEL_OK RONDEL_END RONDEL_ERROR_ARGUMENT RONDEL_ERROR_SPECIFICATION
        RONDEL_ERROR_MESSAGE RONDEL_ERROR_COLUMNS RONDEL_ERROR_SNAPSHOT RONDEL_ERROR_FINISHED
        RONDEL_ERROR_PANIC RONDEL_NUL_TERMINATED RONDEL_ERROR RONDEL_WARNING RONDEL_EMIT_CHANGE
        RONDEL_EMIT_EVERY RONDEL_EMIT_VIOLATIONS RONDEL_JSON RONDEL_CDR RONDEL_PROTOBUF RONDEL_FLATBUFFERS
        RONDEL_CBOR RONDEL_MSGPACK RONDEL_PLAIN RONDEL_SPARKPLUG_B RONDEL_SENML RONDEL_XML RONDEL_NO_NAME
        RONDEL_SATISFIED RONDEL_VIOLATED RONDEL_INCONCLUSIVE RONDEL_NO_STEP RONDEL_KEY_HASHES
    );
    structure!(lines: "rondel_text" Text { data length });
    structure!(lines: "rondel_bytes" Bytes { data length });
    structure!(lines: "rondel_diagnostic" Diagnostic { code message help start end line column severity });
    structure!(lines: "rondel_input" Input { topic type_name definition definition_length encoding });
    structure!(lines: "rondel_options" Options { inputs input_count instance_bytes emit encoding explain });
    structure!(lines: "rondel_topic" Topic { index name });
    structure!(lines: "rondel_message" Message { time payload length topic });
    structure!(lines: "rondel_report" Report { property severity key explanation json time about step robustness property_index verdict is_after });
    structure!(lines: "rondel_notice" Notice { kind topic text json });
    assert_eq!(finished.stdout.lines().collect::<Vec<_>>(), lines);
}

fn read(name: &str) -> String {
    std::fs::read_to_string(format!("{HERE}/{name}")).unwrap()
}

/// Returns C without its comments.
fn code(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |code, part| code + part.split_once("*/").map_or("", |(_, rest)| rest))
}

#[test]
fn the_header_is_plain_c_and_cpp() {
    let include = format!("-I{HERE}/include");
    let folder = Folder::new();
    let source = folder.file("header.c", "#include \"rondel.h\"\n");
    for (compiler, standard) in
        [("cc", "-std=c99"), ("cc", "-std=c17"), ("c++", "-std=c++11"), ("c++", "-std=c++20")]
    {
        let language = if compiler == "cc" { "c" } else { "c++" };
        tool(
            compiler,
            &[
                standard,
                "-pedantic",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                &include,
                "-x",
                language,
                &source,
            ],
        );
    }
}

#[test]
fn every_constant_of_the_header_is_compared() {
    let (header, compared) = (read("include/rondel.h"), read("tests/c/layout.c"));
    let header = code(&header);
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let missing: BTreeSet<&str> = words
        .filter(|word| word.starts_with("RONDEL_"))
        .filter(|name| !matches!(*name, "RONDEL_H" | "RONDEL_TEXT"))
        .filter(|name| !compared.contains(&format!("CONSTANT({name});")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn functions_are_those_of_the_library() {
    let header = code(&read("include/rondel.h"));
    let name_before = |(at, _): (usize, &str)| {
        let before = &header[..at];
        let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        before[start..].starts_with("rondel_").then(|| before[start..].to_owned())
    };
    let declared: BTreeSet<String> = header.match_indices('(').filter_map(name_before).collect();
    let library = library("so");
    let symbols = tool("nm", &["--dynamic", "--defined-only", library.to_str().unwrap()]).stdout;
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.starts_with("rondel_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, exported);
    assert!(exported.len() > 25);
}
