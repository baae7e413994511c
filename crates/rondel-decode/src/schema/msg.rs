//! ROS 2 message definitions (`.msg`).
//!
//! One line is a member (`float64[36] covariance`, with an optional default value) or a constant (`uint8 DRIVE=2`).
//! Types of other packages are `package/Type`. A default value is checked but not kept, since messages contain all
//! values.

use rondel_event::Value;

use super::library::filed_name;
use super::{Constant, Definition, Library, Member, Place, Primitive, SchemaError, Struct, Type};

/// Member that ROS 2 adds to messages without members, since DDS has no empty structures.
pub(crate) const FILLER: &str = "structure_needs_at_least_one_member";

/// Types of a `time` and a `duration` of ROS 1.
pub(super) const TIME: &str = "===\nMSG: builtin_interfaces/Time\nuint32 sec\nuint32 nanosec\n";
pub(super) const DURATION: &str = "===\nMSG: builtin_interfaces/Duration\nint32 sec\nint32 nanosec\n";

pub(super) fn parse(library: &mut Library, name: &str, text: &str) -> Result<(), SchemaError> {
    sections(library, Some(name), text)
}

/// Reads a text in which each definition follows its name.
pub(super) fn parse_sections(library: &mut Library, text: &str) -> Result<(), SchemaError> {
    sections(library, None, text)
}

fn sections(library: &mut Library, first: Option<&str>, text: &str) -> Result<(), SchemaError> {
    let name = first.unwrap_or_default();
    let mut own_name = name.to_owned();
    let mut section = Section::new(&own_name);
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        if line.len() < 3 || !line.trim_end().bytes().all(|byte| byte == b'=') {
            section.line(library, number, line).map_err(|error| named(error, name, &own_name))?;
            continue;
        }
        if !own_name.is_empty() {
            section.finish(library).map_err(|error| named(error, name, &own_name))?;
        }
        let header = lines.next().and_then(|(_, line)| line.trim().strip_prefix("MSG:"));
        let Some(header) = header.map(str::trim).filter(|header| !header.is_empty()) else {
            let place = Place { line: number + 1, column: 1 };
            return Err(SchemaError::at(place, "expected `MSG: package/Type` after a line of `=`"));
        };
        header.clone_into(&mut own_name);
        section = Section::new(&own_name);
    }
    section.finish(library).map_err(|error| named(error, name, &own_name))
}

/// Errors in the first definition need no name: the caller has it.
fn named(error: SchemaError, given: &str, own: &str) -> SchemaError {
    if given == own { error } else { error.in_text(own) }
}

/// Returns `package/Type` and `package/msg/Type` as a canonical name.
fn filed(name: &str) -> String {
    match name.split('/').collect::<Vec<_>>()[..] {
        [package, own] => format!("{package}::msg::{own}"),
        _ => filed_name(name),
    }
}

/// One definition of a text.
struct Section {
    name: String,
    package: String,
    members: Vec<Member>,
    constants: Vec<Constant>,
}

impl Section {
    fn new(name: &str) -> Section {
        let name = filed(name);
        let package = name.split("::").next().unwrap_or_default().to_owned();
        Section { name, package, members: Vec::new(), constants: Vec::new() }
    }

    fn finish(self, library: &mut Library) -> Result<(), SchemaError> {
        let Section { name, mut members, constants, .. } = self;
        if members.is_empty() && !library.is_ros1 {
            members.push(member(FILLER, Type::Primitive(Primitive::Uint8), 0));
        }
        let structure = Struct { extensibility: None, members, constants };
        library.define(&name, Definition::Struct(structure)).map(|_| ()).map_err(SchemaError::new)
    }

    fn line(&mut self, library: &mut Library, number: u32, line: &str) -> Result<(), SchemaError> {
        let text = without_comment(line);
        // The length of the rest gives the column.
        let error = |rest: &str, message: &str| {
            let column = text[..text.len() - rest.len()].chars().count() as u32 + 1;
            Err(SchemaError::at(Place { line: number, column }, message))
        };
        let rest = text.trim_start();
        if rest.is_empty() {
            return Ok(());
        }
        let type_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (type_text, after) = rest.split_at(type_end);
        let member_type = match self.member_type(library, type_text) {
            Ok(member_type) => member_type,
            Err(message) => return error(rest, &message),
        };
        let name_text = after.trim_start();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name_end = name_text.find(|c| !is_name(c)).unwrap_or(name_text.len());
        let (name, after) = name_text.split_at(name_end);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return error(name_text, "expected a name, which begins with a letter");
        }
        let value_text = after.trim();
        if let Some(value_text) = value_text.strip_prefix('=') {
            let place = after.trim_start();
            let value = match constant(&member_type, value_text.trim()) {
                Ok(value) => value,
                Err(message) => return error(place, &message),
            };
            if self.constants.iter().any(|known| &*known.name == name) {
                return error(name_text, "there are two constants of this name");
            }
            self.constants.push(Constant { name: name.into(), value });
            return Ok(());
        }
        if !value_text.is_empty() {
            if !after.starts_with(char::is_whitespace) {
                return error(after, "expected a space or `=` after the name");
            }
            if let Err(message) = default(&member_type, value_text) {
                return error(after.trim_start(), &message);
            }
        }
        if self.members.iter().any(|known| &*known.name == name) {
            return error(name_text, "there are two members of this name");
        }
        self.members.push(member(name, member_type, self.members.len() as u32));
        Ok(())
    }

    /// Returns the type with this name: `uint8`, `string<=5`, `Point[]`, `geometry_msgs/Point[<=3]`.
    fn member_type(&self, library: &mut Library, text: &str) -> Result<Type, Box<str>> {
        let (base, array) = match text.split_once('[') {
            Some((base, array)) => (base, Some(array.strip_suffix(']').ok_or("expected `]`")?)),
            None => (text, None),
        };
        let element = self.base_type(library, base)?;
        let element_box = Box::new(element);
        Ok(match array {
            None => *element_box,
            Some("") => Type::Sequence { element: element_box, bound: None },
            Some(size) => match size.strip_prefix("<=") {
                Some(bound) => Type::Sequence { element: element_box, bound: Some(positive(bound)?) },
                None => Type::Array { element: element_box, dimensions: [positive(size)?].into() },
            },
        })
    }

    fn base_type(&self, library: &mut Library, text: &str) -> Result<Type, Box<str>> {
        let (name, bound) = match text.split_once("<=") {
            Some((name, bound)) => (name, Some(positive(bound)?)),
            None => (text, None),
        };
        if library.is_ros1 {
            match name {
                "time" => return Ok(Type::Named(library.mention("builtin_interfaces::msg::Time"))),
                "duration" => return Ok(Type::Named(library.mention("builtin_interfaces::msg::Duration"))),
                // In messages of any package.
                "Header" => return Ok(Type::Named(library.mention("std_msgs::msg::Header"))),
                "byte" => return Ok(Type::Primitive(Primitive::Int8)),
                _ => {}
            }
        }
        if let "string" | "wstring" = name {
            return Ok(Type::String { bound, wide: name == "wstring" });
        }
        if bound.is_some() {
            return Err("only strings have a bound before `[`".into());
        }
        if let Some(primitive) = primitive(name) {
            return Ok(Type::Primitive(primitive));
        }
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_part(part)) {
            return Err(
                format!("`{name}` is not a type: expected `float64`, `Type` or `package/Type`").into()
            );
        }
        let filed = match parts[..] {
            [own] => format!("{}::msg::{own}", self.package),
            _ => filed(name),
        };
        Ok(Type::Named(library.mention(&filed)))
    }
}

fn member(name: &str, member_type: Type, id: u32) -> Member {
    Member { name: name.into(), member_type, id, key: false, optional: false }
}

fn primitive(name: &str) -> Option<Primitive> {
    Some(match name {
        "bool" => Primitive::Bool,
        "byte" => Primitive::Octet,
        // ROS 2 keeps this name of ROS 1 for an unsigned byte.
        "char" | "uint8" => Primitive::Uint8,
        "int8" => Primitive::Int8,
        "int16" => Primitive::Int16,
        "uint16" => Primitive::Uint16,
        "int32" => Primitive::Int32,
        "uint32" => Primitive::Uint32,
        "int64" => Primitive::Int64,
        "uint64" => Primitive::Uint64,
        "float32" => Primitive::Float32,
        "float64" => Primitive::Float64,
        _ => return None,
    })
}

fn positive(text: &str) -> Result<u32, Box<str>> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is not a size: expected a number above 0").into())
}

/// Returns the line up to a `#` that is not in quotation marks after a value.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '#' => return &line[..at],
            None if matches!(c, '"' | '\'') && (before == '=' || before.is_whitespace()) => quote = Some(c),
            None => {}
        }
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    match (quote, line.find('#')) {
        // An apostrophe, not a quotation mark.
        (Some(_), Some(comment)) => &line[..comment],
        _ => line,
    }
}

/// Parses the value of a constant.
fn constant(constant_type: &Type, text: &str) -> Result<Value, Box<str>> {
    match constant_type {
        Type::Primitive(primitive) => number(*primitive, text),
        Type::String { .. } => Ok(Value::String(unquoted(text).into())),
        _ => Err("a constant is a number, a boolean or text".into()),
    }
}

/// Checks a default value.
fn default(member_type: &Type, text: &str) -> Result<(), Box<str>> {
    match member_type {
        Type::Primitive(_) | Type::String { .. } => constant(member_type, text).map(|_| ()),
        Type::Array { .. } | Type::Sequence { .. } if text.starts_with('[') && text.ends_with(']') => Ok(()),
        Type::Array { .. } | Type::Sequence { .. } => Err("expected default values in `[` and `]`".into()),
        Type::Named(_) => Err("a message has no default value".into()),
    }
}

fn number(primitive: Primitive, text: &str) -> Result<Value, Box<str>> {
    let expected = |what: &str| format!("`{text}` is not {what}").into();
    if primitive == Primitive::Bool {
        return match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(expected("a boolean: expected `true` or `false`")),
        };
    }
    let Some((least, greatest)) = primitive.range() else {
        return text.parse().map(Value::Float).map_err(|_| expected("a number"));
    };
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let radix = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    let digits = if radix == 10 { digits } else { &digits[2..] };
    let value = i128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with(['+', '-']));
    let value = value.map(|value| sign * value).ok_or_else(|| expected("an integer"))?;
    if !(least..=greatest).contains(&value) {
        return Err(format!("{value} is out of range: {least} to {greatest}").into());
    }
    Ok(integer(value))
}

/// Returns the value of an integer; beyond the signed 64-bit range it is the nearest double.
pub(super) fn integer(value: i128) -> Value {
    i64::try_from(value).map_or(Value::Float(value as f64), Value::Int)
}

/// Returns the text without its quotation marks.
fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner.replace(&format!("\\{quote}"), &quote.to_string());
        }
    }
    text.to_owned()
}

#[cfg(test)]
#[path = "msg_tests.rs"]
mod tests;
