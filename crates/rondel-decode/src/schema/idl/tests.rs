use rondel_event::Value;

use crate::schema::{Definition, Extensibility, Library, Primitive, Schema, Type};

fn schema(text: &str, name: &str) -> Schema {
    let mut library = Library::new();
    library.add_idl(text, &|_| None).unwrap();
    library.schema(name).unwrap()
}

fn error(text: &str) -> String {
    Library::new().add_idl(text, &|_| None).unwrap_err().to_string()
}

#[test]
fn structures_in_modules() {
    let schema = schema(
        r#"
        #ifndef A
        #define A
        #pragma keylist Outer a
        /* a comment
           over lines */
        module a { module b {
            typedef sequence<sequence<long, 4>> Rows;
            const unsigned long SIZE = (1 << 2) | 0x10 + 010 - 8 * 1;
            typedef double Pair[2], Cube[2][3][SIZE];
            @final struct Inner { @key @id(7) string<SIZE> name; octet raw, more; };
            @appendable @verbatim(language = "c++", text = "(;)" "x")
            struct Base { boolean flag; };
            @mutable struct Outer : Base {
                ::a::b::Inner inner;   // a comment
                @optional b::Pair pair;
                Cube cube;
                Rows rows;
                @id(0x20) unsigned long long large;
                @default(3) wstring<3> _string;
            };
        }; };
        #endif
        "#,
        "a::b::Outer",
    );
    let members: Vec<(&str, u32, bool)> =
        schema.root().members.iter().map(|m| (&*m.name, m.id, m.optional)).collect();
    assert_eq!(
        members,
        [
            ("flag", 0, false),
            ("inner", 1, false),
            ("pair", 2, true),
            ("cube", 3, false),
            ("rows", 4, false),
            ("large", 0x20, false),
            ("string", 0x21, false),
        ]
    );
    assert_eq!(schema.root().extensibility, Some(Extensibility::Mutable));
    let Type::Named(inner) = schema.root().members[1].member_type else { panic!() };
    let Definition::Struct(inner) = schema.definition(inner) else { panic!() };
    assert!(inner.members[0].key && inner.members[0].id == 7 && inner.members[2].id == 9);
    assert_eq!(inner.members[0].member_type, Type::String { bound: Some(20), wide: false });
    let Type::Array { dimensions, .. } = &schema.root().members[3].member_type else { panic!() };
    assert_eq!(**dimensions, [2, 3, 20]);
}

#[test]
fn enumerations_unions_and_bit_masks() {
    let schema = schema(
        "module m {
            @bit_bound(16) enum Color { @value(3) RED, @default_literal GREEN, BLUE = 9 };
            @bit_bound(8) bitmask Flags { @position(2) A, B };
            union Shape switch (Color) {
                case RED: case BLUE: float radius;
                case GREEN: string text;
                default: Flags flags;
            };
            struct S { Shape shape; };
        };",
        "m::S",
    );
    let Type::Named(shape) = schema.root().members[0].member_type else { panic!() };
    assert_eq!(schema.type_name(shape), "m::Shape");
    let Definition::Union(shape) = schema.definition(shape) else { panic!() };
    assert_eq!(shape.cases[0].labels, [3, 9]);
    assert!(shape.cases[2].is_default);
    let Type::Named(color) = shape.discriminator else { panic!() };
    let Definition::Enum(color) = schema.definition(color) else { panic!() };
    assert_eq!(color.holder(), Primitive::Int16);
    assert_eq!(color.constants[1], ("GREEN".into(), 4));
    let Type::Named(flags) = shape.cases[2].member_type else { panic!() };
    let Definition::Bitmask(flags) = schema.definition(flags) else { panic!() };
    assert_eq!(flags.flags[1], ("B".into(), 3));
}

#[test]
fn constants_of_ros_and_includes() {
    let mut library = Library::new();
    library
        .add_idl(
            "#include \"other.idl\"\n#include <missing.idl>\nmodule p { module msg {
               module Gear_Constants { const uint8 REVERSE = 20; const string NAME = \"r\"; };
               struct Gear { p::msg::Time stamp; q::msg::Later later; uint8 report; };
             }; };",
            &|name| {
                (name == "other.idl")
                    .then(|| "module p { module msg { struct Time { long sec; }; }; };".into())
            },
        )
        .unwrap();
    let missing = library.schema("p/msg/Gear").unwrap_err().to_string();
    assert_eq!(missing, "`p/msg/Gear`: the type `q::msg::Later` is not defined");
    library.add_msg("q/msg/Later", "int8 x").unwrap();
    let schema = library.schema("p/Gear").unwrap();
    let constants: Vec<(&str, &Value)> = schema.constants().iter().map(|c| (&*c.name, &c.value)).collect();
    assert_eq!(constants, [("NAME", &Value::String("r".into())), ("REVERSE", &Value::Int(20))]);
}

#[test]
fn errors_name_line_and_column() {
    for (text, expected) in [
        ("struct S {\n  long x\n};", "line 3, column 1: expected `;`"),
        (
            "struct S { long double x; };",
            "line 1, column 12: `long double` has no common encoding, and no language of Rondel's holds it",
        ),
        ("struct S { map<long, long> x; };", "line 1, column 12: the type `map` is not read"),
        ("struct S { T x; };", "line 1, column 12: the type `T` is not defined"),
        ("struct S { long x; long x; };", "line 1, column 1: two members have the name `x`"),
        ("struct S { @id(1) long x; @id(1) long y; };", "line 1, column 1: two members have the id 1"),
        ("struct S { @id(-1) long x; };", "line 1, column 16: expected an integer from 0 to 268435455"),
        (
            "union U switch (float) { case 1: long x; };",
            "line 1, column 17: a discriminator is an integer, a boolean, a character or an enumeration",
        ),
        ("union U switch (long) { long x; };", "line 1, column 25: expected `case` or `default`"),
        ("const long X = 1 / 0;", "line 1, column 20: division by zero"),
        ("const octet X = 256;", "line 1, column 17: 256 is out of range: 0 to 255"),
        (
            "#ifdef X\n",
            "line 1, column 1: conditions are not evaluated: run the preprocessor first (`idlc -E`)",
        ),
        ("struct S { long x[0]; };", "line 1, column 19: expected a size above 0"),
        ("/* x", "line 1, column 1: this comment does not end"),
        ("interface I {};", "line 1, column 1: `interface` is no data that messages carry, or is not read"),
        (
            "module m {",
            "line 1, column 11: expected a definition: `module`, `struct`, `union`, `enum`, `bitmask`, `typedef` or `const`",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    let deep = format!("const long X = {}1{};", "(".repeat(100_000), ")".repeat(100_000));
    assert!(error(&deep).contains("nested too deeply"));
    assert!(error(&"module m {".repeat(100_000)).contains("nested too deeply"));
    let sequences = format!("typedef {}long{} T;", "sequence<".repeat(100_000), ">".repeat(100_000));
    assert!(error(&sequences).contains("nested too deeply"));
}

#[test]
fn aliases_in_a_circle_and_recursion_are_refused() {
    let mut library = Library::new();
    library.add_idl("struct T; typedef sequence<T> L; struct T { L l; };", &|_| None).unwrap();
    assert!(library.schema("T").unwrap_err().message.contains("contains itself"));
    library.add_idl("typedef x::A B; module x { typedef ::B A; }; struct S { B b; };", &|_| None).unwrap();
    assert!(library.schema("S").unwrap_err().message.contains("contains itself"));
}

/// The hash of `color` is the example of the standard; the others are MD5 of another program.
#[test]
fn ids_are_hashes_if_stated() {
    let ids = |text: &str| -> Vec<u32> {
        let mut library = Library::new();
        library.add_idl(text, &|_| None).unwrap();
        library.schema("S").unwrap().root().members.iter().map(|member| member.id).collect()
    };
    let (color, x, y) = (0x0fa5_dd70, 0x01e4_d49d, 0x0690_5241);
    assert_eq!(ids("@autoid(HASH) @mutable struct S { long color; @id(3) long x; long y; };"), [color, 3, y]);
    assert_eq!(ids("@autoid @mutable struct S { long x, y; };"), [x, y]);
    assert_eq!(ids("@autoid(SEQUENTIAL) struct S { long x; long y; };"), [0, 1]);
    assert_eq!(
        ids("struct S { @hashid long x; @hashid(\"color\") long z; long y; };"),
        [x, color, color + 1]
    );
}

/// A module determines the kind of ids of its structures and inner modules; each may state another. A module that is
/// reopened states it again.
#[test]
fn ids_are_those_of_the_module() {
    let mut library = Library::new();
    let text = "@autoid(HASH) module m {
          @mutable struct A { long x; @id(3) long z; long y; };
          @autoid(SEQUENTIAL) struct B { long x; long y; };
          module inner { struct C { long x; }; };
          @autoid(SEQUENTIAL) module plain { struct D { long x; @hashid long y; }; @autoid struct E { long x; }; };
          struct F { long y; };
        };
        module m { struct G { long x; }; };
        struct H { long x; };";
    library.add_idl(text, &|_| None).unwrap();
    let (x, y) = (0x01e4_d49d, 0x0690_5241);
    for (name, expected) in [
        ("m::A", &[x, 3, y][..]),
        ("m::B", &[0, 1]),
        ("m::inner::C", &[x]),
        ("m::plain::D", &[0, y]),
        ("m::plain::E", &[x]),
        ("m::F", &[y]),
        ("m::G", &[0]),
        ("H", &[0]),
    ] {
        let schema = library.schema(name).unwrap();
        let ids: Vec<u32> = schema.root().members.iter().map(|member| member.id).collect();
        assert_eq!(ids, expected, "{name}");
    }
}
