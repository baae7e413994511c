//! Tests of differences between declared and described types.

use super::super::Library;

fn idl(text: &str) -> super::Schema {
    let mut library = Library::new();
    library.add_idl(text, &|_| None).unwrap();
    library.schema("m::T").unwrap()
}

fn difference(ours: &str, theirs: &str) -> String {
    let of = |text: &str| idl(&format!("module m {{ {text} }};"));
    of(ours).difference(&of(theirs)).map(|difference| difference.to_string()).unwrap_or_default()
}

#[test]
fn the_first_difference_is_reported() {
    for (ours, theirs, expected) in [
        (
            "struct T { float a; double b; };",
            "struct T { float a; unsigned long long b; };",
            "field `b` is declared as float64, and published as uint64",
        ),
        (
            "struct T { double speed; };",
            "struct T { double velocity; };",
            "field `speed` is declared as `speed`: float64, and published as `velocity`: float64",
        ),
        (
            "struct T { long a; long b; };",
            "struct T { long b; long a; };",
            "field `a` is declared as `a`: int32, and published as `b`: int32",
        ),
        (
            "struct T { long a; };",
            "struct T { long a; long b; };",
            "field `b` is not declared, and published as int32",
        ),
        (
            "struct T { long a; long b; };",
            "struct T { long a; };",
            "field `b` is declared as int32, and not published",
        ),
        (
            "struct S { sequence<long> x; }; struct T { S s; };",
            "struct S { sequence<long, 9> x; }; struct T { S s; };",
            "field `s.x` is declared as sequence<int32>, and published as sequence<int32, 9>",
        ),
        (
            "struct T { @key long a; };",
            "struct T { long a; };",
            "field `a` is declared as key int32, and published as int32",
        ),
        (
            "@final struct T { long a; };",
            "@appendable struct T { long a; };",
            "the message is declared as final structure, and published as appendable structure",
        ),
        (
            "enum E { A, B }; struct T { E e; };",
            "enum E { B, A }; struct T { E e; };",
            "field `e` is declared as `A` = 0, and published as `A` = 1",
        ),
        (
            "struct T { string a; };",
            "struct T { wstring a; };",
            "field `a` is declared as string, and published as wstring",
        ),
        (
            "struct T { long a[2][3]; };",
            "struct T { long a[7]; };",
            "field `a` is declared as int32[6], and published as int32[7]",
        ),
        (
            "union U switch (long) { case 1: long a; }; struct T { U u; };",
            "union U switch (long) { case 2: long a; }; struct T { U u; };",
            "field `u` is declared as case `a` of [1], and published as case `a` of [2]",
        ),
        (
            "@mutable union U switch (long) { case 1: long a; }; struct T { U u; };",
            "@mutable union U switch (long) { case 1: @id(3) long a; }; struct T { U u; };",
            "field `u` is declared as case `a` with the id 1, and published as case `a` with the id 3",
        ),
        (
            "@mutable struct T { @id(3) long a; };",
            "@mutable struct T { @id(3) float a; };",
            "field `a` is declared as int32, and published as float32",
        ),
    ] {
        assert_eq!(difference(ours, theirs), expected, "{ours} / {theirs}");
        assert_eq!(difference(ours, ours), "");
        assert_eq!(difference(theirs, theirs), "");
    }
}

#[test]
fn allowed_changes_are_no_difference() {
    for (ours, theirs) in [
        ("@appendable struct T { long a; };", "@appendable struct T { long a; long b; };"),
        ("@appendable struct T { long a; long b; };", "@appendable struct T { long a; };"),
        (
            "@mutable struct T { @id(3) long a; @id(4) long b; };",
            "@mutable struct T { @id(9) long c; @id(3) long a; };",
        ),
        ("struct T { long a; };", "@appendable struct T { long a; };"),
        ("struct T { octet a; };", "struct T { uint8 a; };"),
        ("enum E { A, B }; struct T { E e; };", "enum E { A, B, C }; struct T { E e; };"),
        ("struct T { long a[2][3]; };", "typedef long row[3]; struct T { row a[2]; };"),
        ("struct S { long x; }; struct T { S s; };", "struct Other { long x; }; struct T { Other s; };"),
    ] {
        assert_eq!(difference(ours, theirs), "", "{ours} / {theirs}");
    }
}

/// Shared types are compared only once, so that deep ones are fast.
#[test]
fn shared_types_are_compared_once() {
    let mut text = String::from("struct T0 { long x; };");
    for i in 1..30 {
        let inner = i - 1;
        text += &format!("struct T{i} {{ sequence<T{inner}> a; sequence<T{inner}> b; }};");
    }
    text += "struct T { T29 t; };";
    assert_eq!(difference(&text, &text), "");
}

#[test]
fn types_of_ros_state_no_keys() {
    let mut library = Library::new();
    library.add_msg("m/msg/T", "int32 a\nbyte b\nstring<=5 c").unwrap();
    let ours = library.schema("m/msg/T").unwrap();
    let theirs = idl("module m { @final struct T { @key long a; uint8 b; string<5> c; }; };");
    assert_eq!(ours.difference(&theirs), None);
    library.add_msg("m/msg/Empty", "").unwrap();
    let empty = library.schema("m/msg/Empty").unwrap();
    let filled = idl("module m { struct T { uint8 structure_needs_at_least_one_member; }; };");
    assert_eq!((empty.difference(&filled), filled.difference(&empty)), (None, None));
    assert_eq!(ours.difference(&empty).map(|d| d.path), Some("a".to_owned()));
}
