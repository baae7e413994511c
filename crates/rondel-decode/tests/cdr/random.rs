//! Random types, as IDL, and random values of them.

use rondel_decode::schema::{Definition, Primitive, Schema, Type};
use rondel_testkit::Random;

const NUMBERS: [&str; 14] = [
    "boolean",
    "octet",
    "char",
    "wchar",
    "int8",
    "uint8",
    "short",
    "unsigned short",
    "long",
    "unsigned long",
    "long long",
    "unsigned long long",
    "float",
    "double",
];

/// Returns a text with some types; the last one, `Root`, is a structure.
pub(crate) fn idl(random: &mut Random) -> String {
    let mut text = String::new();
    let mut names: Vec<String> = Vec::new();
    for number in 0..random.index(5) {
        let name = format!("T{number}");
        match random.index(8) {
            0 => text.push_str(&format!(
                "@bit_bound({}) enum {name} {{ {name}_A, @value(5) {name}_B, {name}_C }};\n",
                random.pick(&["8", "16", "32"])
            )),
            1 => text.push_str(&format!(
                "@bit_bound({}) bitmask {name} {{ {name}_A, @position(6) {name}_B }};\n",
                random.pick(&["8", "16", "32", "64"])
            )),
            2 => union(random, &name, &names, &mut text),
            3 => {
                let element = type_name(random, &names, 1);
                text.push_str(&format!("typedef {element} {name}[{}];\n", 1 + random.index(3)));
            }
            _ => structure(random, &name, &names, &mut text),
        }
        names.push(name);
    }
    structure(random, "Root", &names, &mut text);
    text
}

fn structure(random: &mut Random, name: &str, names: &[String], text: &mut String) {
    let extensibility = random.pick(&["@final ", "@appendable ", "@mutable ", "", ""]);
    let ids = random.pick(&["@autoid(HASH) ", "", "", ""]);
    text.push_str(&format!("{extensibility}{ids}struct {name} {{\n"));
    for member in 0..1 + random.index(6) {
        let optional = if random.one_in(6) { "@optional " } else { "" };
        let member_type = type_name(random, names, 0);
        let dimensions = match random.index(12) {
            0 => format!("[{}]", 1 + random.index(4)),
            1 => format!("[{}][{}]", 1 + random.index(3), 1 + random.index(3)),
            _ => String::new(),
        };
        text.push_str(&format!("  {optional}{member_type} m{member}{dimensions};\n"));
    }
    text.push_str("};\n");
}

fn union(random: &mut Random, name: &str, names: &[String], text: &mut String) {
    let extensibility = random.pick(&["@final ", "@appendable ", "@mutable ", ""]);
    let ids = random.pick(&["@autoid(HASH) ", "", ""]);
    let discriminator = random.pick(&["long", "octet", "short", "unsigned long long", "int8"]);
    text.push_str(&format!("{extensibility}{ids}union {name} switch ({discriminator}) {{\n"));
    text.push_str(&format!("  case 1: case 2: {} a;\n", type_name(random, names, 1)));
    text.push_str(&format!("  case 4: {} b;\n", type_name(random, names, 1)));
    if random.one_in(2) {
        text.push_str(&format!("  default: {} c;\n", type_name(random, names, 1)));
    }
    text.push_str("};\n");
}

fn type_name(random: &mut Random, names: &[String], depth: usize) -> String {
    match random.index(if depth > 2 { 6 } else { 9 }) {
        0..=3 => random.pick(&NUMBERS).to_owned(),
        4 => random.pick(&["string", "string<9>", "wstring"]).to_owned(),
        5 if !names.is_empty() => names[random.index(names.len())].clone(),
        5 => "double".to_owned(),
        _ if !names.is_empty() && random.one_in(2) => names[random.index(names.len())].clone(),
        _ => {
            let bound = random.pick(&["", "", ", 7"]);
            format!("sequence<{}{bound}>", type_name(random, names, depth + 1))
        }
    }
}

/// A value of a type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Bool(bool),
    /// Also a value of an enumeration, a bit mask or a character.
    Int(i128),
    Float(f64),
    Text(String),
    /// The elements of an array or a sequence.
    List(Vec<Tree>),
    /// The present members, by their positions.
    Struct(Vec<Option<Tree>>),
    /// A discriminator, and the selected case.
    Union(i128, Option<(usize, Box<Tree>)>),
}

pub(crate) fn value(random: &mut Random, schema: &Schema, value_type: &Type) -> Tree {
    match value_type {
        Type::Primitive(primitive) => number(random, *primitive),
        Type::String { bound, .. } => {
            let length = random.index(bound.unwrap_or(12) as usize + 1).min(12);
            // Some letters are longer in UTF-8: only in texts without a bound.
            let letters = if bound.is_some() { "abc xyz" } else { "abcäß€😀 xyz" };
            let letters: Vec<char> = letters.chars().collect();
            Tree::Text((0..length).map(|_| letters[random.index(letters.len())]).collect())
        }
        Type::Array { element, dimensions } => {
            let count = dimensions.iter().product::<u32>();
            Tree::List((0..count).map(|_| value(random, schema, element)).collect())
        }
        Type::Sequence { element, bound } => {
            let count = random.index(bound.unwrap_or(5) as usize + 1).min(5);
            Tree::List((0..count).map(|_| value(random, schema, element)).collect())
        }
        Type::Named(id) => match schema.definition(*id) {
            Definition::Struct(structure) => Tree::Struct(members(random, schema, structure)),
            Definition::Union(union) => {
                let label = [1, 2, 4, 9][random.index(4)];
                let found = union.cases.iter().position(|case| case.labels.contains(&label));
                let found = found.or_else(|| union.cases.iter().position(|case| case.is_default));
                let case =
                    found.map(|at| (at, Box::new(value(random, schema, &union.cases[at].member_type))));
                Tree::Union(label.into(), case)
            }
            Definition::Enum(enumeration) => {
                Tree::Int(enumeration.constants[random.index(enumeration.constants.len())].1.into())
            }
            Definition::Bitmask(mask) => Tree::Int(number_of(random, mask.holder())),
            Definition::Alias(_) => panic!("a schema has no alias"),
        },
    }
}

pub(crate) fn members(
    random: &mut Random,
    schema: &Schema,
    structure: &rondel_decode::schema::Struct,
) -> Vec<Option<Tree>> {
    let member = |member: &rondel_decode::schema::Member| {
        (!member.optional || random.one_in(2)).then(|| value(random, schema, &member.member_type))
    };
    structure.members.iter().map(member).collect()
}

fn number_of(random: &mut Random, primitive: Primitive) -> i128 {
    let (least, greatest) = primitive.range().unwrap();
    match random.index(6) {
        0 => least,
        1 => greatest,
        2 => 0,
        _ => least + (i128::from(random.next()) % (greatest - least + 1)),
    }
}

fn number(random: &mut Random, primitive: Primitive) -> Tree {
    match primitive {
        Primitive::Bool => Tree::Bool(random.one_in(2)),
        Primitive::Float32 => {
            Tree::Float(f64::from([0.0, -1.5, 3.25e7, f32::INFINITY, f32::NAN][random.index(5)]))
        }
        Primitive::Float64 => Tree::Float([0.0, -1.5, 3.25e107, 0.1, f64::NAN][random.index(5)]),
        Primitive::Char => Tree::Int([65, 90, 126][random.index(3)]),
        Primitive::WChar => Tree::Int([65, 228, 8364][random.index(3)]),
        other => Tree::Int(number_of(random, other)),
    }
}
