use super::*;

fn library(name: &str, text: &str) -> Library {
    let mut library = Library::new();
    library.add_msg(name, text).unwrap();
    library
}

fn error(text: &str) -> String {
    Library::new().add_msg("a/msg/B", text).unwrap_err().to_string()
}

#[test]
fn members_constants_and_defaults() {
    let library = library(
        "a_msgs/msg/Gear",
        "# A comment\n\
         uint8 NONE=0\n\
         uint8 REVERSE = 0x14 # twenty\n\
         string NAME=\"a # b\"\n\
         string RAW=it's\n\
         float32 HALF=0.5\n\
         bool YES=True\n\
         uint64 MOST=18446744073709551615\n\
         \n\
         int32 report -5 # default\n\
         string<=10[<=3] names [\"a\", \"b\"]\n\
         byte[4] raw\n\
         char letter\n\
         string text 'x'\n\
         float64[] numbers\n",
    );
    let schema = library.schema("a_msgs/Gear").unwrap();
    assert_eq!(schema.name(), "a_msgs/msg/Gear");
    let constants: Vec<(&str, Value)> =
        schema.constants().iter().map(|c| (&*c.name, c.value.clone())).collect();
    assert_eq!(
        constants,
        [
            ("NONE", Value::Int(0)),
            ("REVERSE", Value::Int(20)),
            ("NAME", Value::String("a # b".into())),
            ("RAW", Value::String("it's".into())),
            ("HALF", Value::Float(0.5)),
            ("YES", Value::Bool(true)),
            ("MOST", Value::Float(18_446_744_073_709_551_615.0)),
        ]
    );
    let names: Vec<&str> = schema.root().members.iter().map(|m| &*m.name).collect();
    assert_eq!(names, ["report", "names", "raw", "letter", "text", "numbers"]);
    let string = Box::new(Type::String { bound: Some(10), wide: false });
    assert_eq!(schema.root().members[1].member_type, Type::Sequence { element: string, bound: Some(3) });
    let octet = Box::new(Type::Primitive(Primitive::Octet));
    assert_eq!(schema.root().members[2].member_type, Type::Array { element: octet, dimensions: [4].into() });
    assert_eq!(schema.root().members[3].member_type, Type::Primitive(Primitive::Uint8));
}

#[test]
fn definitions_of_a_recording() {
    let text = "std_msgs/Header header\nPart[] parts\n\
                ================================================================================\n\
                MSG: a_msgs/Part\nfloat64 x\n\
                ================================================================================\n\
                MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n\
                ================================================================================\n\
                MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n";
    let library = library("a_msgs/msg/Whole", text);
    let schema = library.schema("a_msgs::msg::dds_::Whole_").unwrap();
    assert_eq!(schema.root().members.len(), 2);
    assert_eq!(library.names().count(), 4);
}

#[test]
fn a_message_without_members_has_the_filler_of_ros() {
    let schema = library("std_msgs/msg/Empty", "").schema("std_msgs/msg/Empty").unwrap();
    assert_eq!(&*schema.root().members[0].name, FILLER);
}

#[test]
fn errors_name_line_and_column() {
    assert_eq!(error("int32 x\nint32  9y"), "line 2, column 8: expected a name, which begins with a letter");
    assert_eq!(error("int32[ x"), "line 1, column 1: expected `]`");
    assert_eq!(error("int32[0] x"), "line 1, column 1: `0` is not a size: expected a number above 0");
    assert_eq!(error("uint8 A=256"), "line 1, column 8: 256 is out of range: 0 to 255");
    assert_eq!(error("uint8 A=x # y"), "line 1, column 8: `x` is not an integer");
    assert_eq!(error("int8 a\n  int8 a"), "line 2, column 8: there are two members of this name");
    assert_eq!(error("int32 x y"), "line 1, column 9: `y` is not an integer");
    assert_eq!(error("int32\u{a0} x!"), "line 1, column 9: expected a space or `=` after the name");
    assert_eq!(
        error("a/b/c/d x"),
        "line 1, column 1: `a/b/c/d` is not a type: expected `float64`, `Type` or `package/Type`"
    );
    assert_eq!(
        error("int8 a\n===\nint8 b"),
        "line 3, column 1: expected `MSG: package/Type` after a line of `=`"
    );
    assert_eq!(
        error("int8 a\n===\nMSG: b/C\nint8"),
        "b/C: line 4, column 5: expected a name, which begins with a letter"
    );
}

#[test]
fn missing_and_recursive_types_are_refused() {
    let missing = library("a/msg/B", "c/D d").schema("a/msg/B").unwrap_err().to_string();
    assert_eq!(missing, "`a/msg/B`: the type `c::msg::D` is not defined");
    let recursive = library("a/msg/B", "B[] b").schema("a/B").unwrap_err().to_string();
    assert_eq!(recursive, "`a/msg/B`: `a::msg::B` contains itself: recursive types are not read");
    let large = library("a/msg/B", "uint8[4000000000] b").schema("a/B").unwrap_err().to_string();
    assert_eq!(large, "`a/msg/B`: an array is larger than 1 GiB");
}

#[test]
fn a_refused_text_adds_nothing() {
    let mut library = library("a/msg/B", "int8 a");
    assert!(library.add_msg("a/msg/C", "int8 a\n===\nMSG: a/D\nint8").is_err());
    assert_eq!(library.names().collect::<Vec<_>>(), ["a::msg::B"]);
    assert_eq!(library.add_msg("a/msg/B", "int8 a"), Ok(()));
    let error = library.add_msg("a/msg/B", "int16 a").unwrap_err();
    assert_eq!(&*error.message, "the type `a::msg::B` is already defined, with other contents");
}

#[test]
fn depth_is_limited() {
    let mut library = Library::new();
    for i in 0..40 {
        library.add_msg(&format!("a/msg/T{i}"), &format!("T{} x", i + 1)).unwrap();
    }
    library.add_msg("a/msg/T40", "int8 x").unwrap();
    assert!(library.schema("a/T0").unwrap_err().message.contains("nested too deeply"));
    assert!(library.schema("a/T20").is_ok());
}
