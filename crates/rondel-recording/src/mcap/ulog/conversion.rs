//! Conversion of the messages of a format to messages of ROS 1.

use std::collections::BTreeMap;

/// Maximum nesting of a format.
const DEPTH: usize = 16;
/// Maximum number of steps of a conversion.
const STEPS: usize = 1 << 16;

/// A step of the conversion of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Copy(usize),
    Skip(usize),
    /// A text of fixed length, ended by its first zero.
    Text(usize),
}

/// Conversion of the messages of a format.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversion {
    pub(super) steps: Vec<Step>,
    /// Number of bytes of a message.
    size: usize,
    /// Number of fields visited, counting those of each element of an array.
    fields: usize,
    /// Offset of the time.
    pub(super) time: usize,
}

/// A field of a format.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// The name of its type.
    kind: String,
    /// The number of elements, if it is an array.
    size: Option<usize>,
    name: String,
}

/// Fields of the formats, by name.
pub(super) type Formats = BTreeMap<String, Vec<Field>>;

/// Parses `name:type field;type[N] field;`.
pub(super) fn format(text: &str) -> Option<(String, Vec<Field>)> {
    let (name, fields) = text.split_once(':')?;
    let field = |text: &str| {
        let (kind, name) = text.trim().split_once(' ')?;
        let (kind, size) = match kind.split_once('[') {
            Some((kind, size)) => (kind, Some(size.strip_suffix(']')?.parse().ok()?)),
            None => (kind, None),
        };
        Some(Field { kind: kind.to_owned(), size, name: name.trim().to_owned() })
    };
    let fields = fields.split(';').filter(|text| !text.trim().is_empty()).map(field);
    Some((name.to_owned(), fields.collect::<Option<_>>()?))
}

/// Returns the type in ROS 1 of a primitive type, and its size.
fn plain(kind: &str) -> Option<(&'static str, usize)> {
    Some(match kind {
        "int8_t" => ("int8", 1),
        "uint8_t" | "char" => ("uint8", 1),
        "bool" => ("bool", 1),
        "int16_t" => ("int16", 2),
        "uint16_t" => ("uint16", 2),
        "int32_t" => ("int32", 4),
        "uint32_t" => ("uint32", 4),
        "float" => ("float32", 4),
        "int64_t" => ("int64", 8),
        "uint64_t" => ("uint64", 8),
        "double" => ("float64", 8),
        _ => return None,
    })
}

impl Conversion {
    fn add(&mut self, step: Step) {
        let (Step::Copy(size) | Step::Skip(size) | Step::Text(size)) = step;
        self.size += size;
        match (self.steps.last_mut(), step) {
            (Some(Step::Copy(size)), Step::Copy(more)) | (Some(Step::Skip(size)), Step::Skip(more)) => {
                *size += more;
            }
            _ => self.steps.push(step),
        }
    }

    /// Appends a message of ROS 1 to `out`; fields that the message lacks are omitted.
    pub(super) fn write(&self, mut message: &[u8], out: &mut Vec<u8>) {
        for step in &self.steps {
            let (Step::Copy(size) | Step::Skip(size) | Step::Text(size)) = *step;
            let (part, rest) = message.split_at(size.min(message.len()));
            message = rest;
            match step {
                Step::Copy(_) => out.extend_from_slice(part),
                Step::Text(_) if part.len() == size => {
                    let text = part.split(|byte| *byte == 0).next().unwrap_or_default();
                    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text);
                }
                Step::Text(_) | Step::Skip(_) => {}
            }
        }
    }
}

/// Returns the conversion of the messages of a format, and their definition in the syntax of ROS 1.
pub(super) fn conversion(formats: &Formats, name: &str) -> Result<(Conversion, String), String> {
    let fields = formats.get(name).ok_or_else(|| format!("the format {name} is not defined"))?;
    let mut found = Conversion::default();
    let mut time = None;
    let mut types = vec![name.to_owned()];
    for field in fields {
        if field.name == "timestamp" && field.kind == "uint64_t" && field.size.is_none() {
            time = Some(found.size);
        }
        add_field(formats, field, &mut found, &mut types, DEPTH)?;
    }
    // Padding at the end may be missing.
    found.steps.pop_if(|step| matches!(step, Step::Skip(_)));
    found.time = time.ok_or("it has no field `timestamp`")?;
    if found.size > usize::from(u16::MAX) {
        return Err("its messages are too large".to_owned());
    }
    let mut definition = String::new();
    for (i, own) in types.iter().enumerate() {
        if i > 0 {
            definition += &format!("{}\nMSG: ulog/{own}\n", "=".repeat(80));
        }
        for field in formats.get(own).into_iter().flatten() {
            definition += &field.defined();
        }
    }
    Ok((found, definition))
}

/// Adds the steps of a field; `types` are the names of the types found so far.
fn add_field(
    formats: &Formats,
    field: &Field,
    found: &mut Conversion,
    types: &mut Vec<String>,
    depth: usize,
) -> Result<(), String> {
    let Field { kind, size, name } = field;
    let count = size.unwrap_or(1);
    found.fields += 1;
    if found.fields > STEPS {
        return Err("it has too many fields".to_owned());
    }
    if count > usize::from(u16::MAX) {
        return Err(format!("the field {name} has more than 65,535 elements"));
    }
    if let Some((_, bytes)) = plain(kind) {
        found.add(match (kind.as_str(), *size) {
            _ if name.starts_with("_padding") => Step::Skip(bytes * count),
            ("char", Some(size)) => Step::Text(size),
            _ => Step::Copy(bytes * count),
        });
        return Ok(());
    }
    let fields = formats.get(kind).ok_or_else(|| format!("the type {kind} is not defined"))?;
    if depth == 0 {
        return Err("its types are nested too deeply".to_owned());
    }
    if !types.contains(kind) {
        types.push(kind.clone());
    }
    for _ in 0..count {
        for field in fields {
            add_field(formats, field, found, types, depth - 1)?;
        }
        if found.size > usize::from(u16::MAX) {
            return Err("its messages are too large".to_owned());
        }
    }
    Ok(())
}

impl Field {
    /// Returns the field in the syntax of ROS 1; empty for padding.
    fn defined(&self) -> String {
        let Field { kind, size, name } = self;
        let array = size.map_or(String::new(), |size| format!("[{size}]"));
        match plain(kind) {
            Some(_) if name.starts_with("_padding") => String::new(),
            Some(_) if kind == "char" && size.is_some() => format!("string {name}\n"),
            Some((own, _)) => format!("{own}{array} {name}\n"),
            None => format!("ulog/{kind}{array} {name}\n"),
        }
    }
}
