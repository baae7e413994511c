//! Schemas as text, compared with the output of the compiler of FlatBuffers, and mistakes in them.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

use super::super::schema::BinarySchema;

fn compiled(text: &str) -> Result<BinarySchema, String> {
    BinarySchema::from_text(text, &|_| None).map_err(|error| error.to_string())
}

#[test]
fn texts_are_compiled_like_by_flatc() {
    let included = |name: &str| match name {
        "included/kinds.fbs" => {
            Some(include_str!("../../../tests/flatbuffers/included/kinds.fbs").to_owned())
        }
        "included/point.fbs" => {
            Some(include_str!("../../../tests/flatbuffers/included/point.fbs").to_owned())
        }
        _ => None,
    };
    let cases: [(&str, &[u8]); 2] = [
        (
            include_str!("../../../tests/flatbuffers/types.fbs"),
            include_bytes!("../../../tests/flatbuffers/types.bfbs"),
        ),
        (
            include_str!("../../../tests/flatbuffers/more.fbs"),
            include_bytes!("../../../tests/flatbuffers/more.bfbs"),
        ),
    ];
    for (text, binary) in cases {
        let own = BinarySchema::from_text(text, &included).unwrap();
        // The compiler writes 0 for a default beyond the signed range.
        let own = own.content().replace(" -1 0 false\n", " 0 0 false\n");
        let theirs = BinarySchema::from_bytes(binary).unwrap().content();
        for (own, theirs) in own.lines().zip(theirs.lines()) {
            assert_eq!(own, theirs);
        }
        assert_eq!(own, theirs);
    }
}

#[test]
fn the_root_is_that_of_the_first_text() {
    let kinds = |_: &str| Some("table Kind { a: int; } root_type Kind; file_identifier \"KIND\";".to_owned());
    let schema = BinarySchema::from_text("include \"kinds.fbs\"; table Own { b: Kind; }", &kinds).unwrap();
    assert!(schema.root().is_none());
    assert_eq!(schema.table_names().collect::<Vec<_>>(), ["Kind", "Own"]);
}

#[test]
fn mistakes_are_reported_with_their_position() {
    let cases = [
        ("table A { b: Missing; }", "line 1, column 14: type `Missing` is not declared"),
        ("table A { b: int }", "line 1, column 18: expected `;`"),
        ("table A {}\ntable A {}", "line 2, column 7: `A` is declared twice, first at line 1"),
        ("table A { b: int; b: int; }", "field `b` is declared twice"),
        ("table A { b: int = 1.5; }", "this default does not fit"),
        ("table A { b: byte = 200; }", "200 is not in the range of this field"),
        ("table A { b: bool = maybe; }", "`maybe` is no value of this field"),
        ("table A { b: float = sin(3); }", "functions are not evaluated"),
        ("table A { b: [[int]]; }", "a vector of vectors"),
        ("table A { b: [int:3]; }", "stand in structures only"),
        ("table A { b: int (id: 1); }", "0 is missing or twice"),
        ("table A { b: int (id: 0); c: int; }", "field `c` has no id, but others have"),
        ("union U { A } table A { b: U (id: 0); }", "0 is too low"),
        ("struct S { }", "structure `S` has no field"),
        ("struct S { s: S; }", "contains itself"),
        ("struct S { s: string; }", "a structure has numbers"),
        ("struct S { s: [double:65535]; }", "more than 65535"),
        ("enum E { A }", "expected `:` and the type of integer"),
        ("enum E : float { A }", "`float` is no type of integer"),
        ("enum E : byte { A = 300 }", "300 is not in the range of `byte`"),
        ("enum E : ubyte (bit_flags) { A = 8 }", "bit 8 is not in `ubyte`"),
        ("enum E : byte { A, A }", "value `A` is declared twice"),
        ("enum E : byte { }", "this enumeration has no value"),
        ("union U { E } enum E : byte { A }", "is no table, structure or `string`"),
        ("struct S { a: int; } root_type S;", "`S` is no table"),
        ("file_identifier \"ABCDE\";", "a file identifier has four characters"),
        ("include \"away.fbs\";", "line 1, column 1: the included file 'away.fbs' cannot be read"),
        ("{ \"a\": 1 }", "expected a declaration"),
        ("tabel A {}", "`tabel` begins no declaration"),
        ("table A { b: int; /* ", "this comment does not end"),
        ("namespace a.b; table A { b: \u{e9}; }", "this character has no meaning"),
        ("table A (", "expected an attribute"),
        ("rpc_service A { ", "expected `}`"),
    ];
    for (text, expected) in cases {
        match compiled(text) {
            Err(error) => assert!(error.contains(expected), "{text}\n{error}\n{expected}"),
            Ok(_) => panic!("{text} is not refused"),
        }
    }
}

#[test]
fn included_mistakes_name_their_text() {
    let include = |name: &str| match name {
        "one/a.fbs" => Some("include \"b.fbs\";".to_owned()),
        "one/b.fbs" => Some("include \"../a.fbs\"; table B { x: Away; }".to_owned()),
        "a.fbs" => Some("include \"one/a.fbs\"; table A { }".to_owned()),
        name => panic!("{name}"),
    };
    let error = BinarySchema::from_text("include \"a.fbs\";", &include).unwrap_err();
    assert_eq!(error.to_string(), "one/b.fbs: line 1, column 34: type `Away` is not declared");
}

#[test]
fn large_texts_have_limits() {
    let nested = (0..100).map(|at| format!("struct S{at} {{ s: S{}; }}", at + 1)).collect::<String>();
    let error = compiled(&(nested + "struct S100 { a: byte; }")).unwrap_err();
    assert!(error.contains("nested more than 32 deep"), "{error}");
    let many: String = (0..33_000).map(|at| format!("a{at}: int;")).collect();
    let error = compiled(&format!("table A {{ {many} }}")).unwrap_err();
    assert!(error.contains("at most 32765 fields"), "{error}");
    let error = compiled(&format!("table A{} {{ }}", "a".repeat(300))).unwrap_err();
    assert!(error.contains("more than 256 characters"), "{error}");
    let error = compiled(&"table A {}".repeat(2 << 20)).unwrap_err();
    assert!(error.contains("16 MiB"), "{error}");
    let error = compiled(&"enum A : byte { B }".repeat(600_000)).unwrap_err();
    assert!(error.contains("more than 1048576 types and members"), "{error}");
}
