//! Converts messages to JSON. Offsets only lead forward, so that a message ends; several may lead to the same table,
//! but each visit writes something, and the text has a limit.

use super::buffer::{Buffer, Table};
use super::schema::{Enum, Field, FlatbuffersType, Kind, Number, Types};
use super::walk::scalar;
use super::{compile, root};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::{MAX_DEPTH, write};
use crate::message::Text;
use crate::sink::Scalar;

/// Writes a message of this type as one JSON object.
pub(crate) fn write_json(of: &FlatbuffersType, payload: &[u8], text: &mut Text<'_>) -> Parsed<()> {
    let at = root(payload, of.identifier())?;
    Writer { types: &of.types, buffer: Buffer(payload), text }.table(of.root, at, 0)
}

struct Writer<'s, 'm, 't, 'o> {
    types: &'s Types,
    buffer: Buffer<'m>,
    text: &'t mut Text<'o>,
}

impl<'s> Writer<'s, '_, '_, '_> {
    /// Begins an object at a position.
    fn open(&mut self, at: usize, depth: u32) -> Parsed<()> {
        self.text.room(at)?;
        if depth >= MAX_DEPTH {
            return Err(Fault::new(at, MessageErrorKind::TooDeep));
        }
        self.text.out.push(b'{');
        Ok(())
    }

    fn table(&mut self, of: usize, at: usize, depth: u32) -> Parsed<()> {
        let table = self.buffer.table(at)?;
        self.open(at, depth)?;
        let types = self.types;
        for field in &types.objects[of].fields {
            let written = self.field(of, field, table, depth);
            written.map_err(|fault| fault.in_member(&field.name))?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn field(&mut self, of: usize, field: &'s Field, table: Table, depth: u32) -> Parsed<()> {
        let at = self.buffer.field(table, field.offset)?;
        match (&field.kind, at) {
            (Kind::Number(number, enumeration), None) if !field.is_optional => {
                write::key(&field.name, self.text.out);
                self.number(compile::default(*number, field), field.default_int as u64, *enumeration);
            }
            // A vector of unions, and types unknown to this version.
            (Kind::Other, _) | (_, None) => {}
            (Kind::Union(union), Some(at)) => {
                let name = format!("{}_type", field.name);
                let fields = &self.types.objects[of].fields;
                let Some(case) = fields.iter().find(|field| *field.name == *name) else { return Ok(()) };
                let Some(case) = self.buffer.field(table, case.offset)? else { return Ok(()) };
                let [case] = self.buffer.array(case)?;
                self.union(&field.name, &self.types.enums[*union], case, at, depth)?;
            }
            (Kind::Vector(element), _) if matches!(**element, Kind::Union(_) | Kind::Other) => {}
            (kind, Some(at)) => {
                write::key(&field.name, self.text.out);
                self.value(kind, at, depth)?;
            }
        }
        Ok(())
    }

    fn union(&mut self, name: &str, of: &'s Enum, case: u8, at: usize, depth: u32) -> Parsed<()> {
        if case == 0 {
            return Ok(());
        }
        write::key(name, self.text.out);
        self.open(at, depth)?;
        if let Some((name, _, kind)) = of.cases.iter().find(|(_, number, _)| *number == case) {
            write::key(name, self.text.out);
            let written = match kind {
                Kind::Object(of) if self.types.objects[*of].is_struct => {
                    self.buffer.follow(at).and_then(|at| self.structure(*of, at, depth + 1))
                }
                kind => self.value(kind, at, depth + 1),
            };
            written.map_err(|fault| fault.in_member(name))?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn value(&mut self, kind: &'s Kind, at: usize, depth: u32) -> Parsed<()> {
        self.text.room(at)?;
        match kind {
            Kind::Number(number, enumeration) => {
                let value = scalar(self.buffer, *number, at)?;
                let bits = match number {
                    Number::U64 => u64::from_le_bytes(self.buffer.array(at)?),
                    _ => 0,
                };
                self.number(value, bits, *enumeration);
                Ok(())
            }
            Kind::Text => {
                let at = self.buffer.follow(at)?;
                self.text.text(self.buffer.text(at)?, at + 4)
            }
            Kind::Object(of) if self.types.objects[*of].is_struct => self.structure(*of, at, depth + 1),
            Kind::Object(of) => self.table(*of, self.buffer.follow(at)?, depth + 1),
            Kind::Vector(element) => {
                let size = compile::size(self.types, element);
                let (count, start) = self.buffer.vector(self.buffer.follow(at)?, size)?;
                self.elements(element, size, start, count, depth)
            }
            Kind::Array(element, count) => {
                let size = compile::size(self.types, element);
                self.buffer.need(at, size.saturating_mul(*count as usize))?;
                self.elements(element, size, at, *count as usize, depth)
            }
            Kind::Union(_) | Kind::Other => {
                self.text.out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }

    /// Writes a number; `bits` are those of a large one.
    fn number(&mut self, value: Scalar<'_>, bits: u64, enumeration: Option<usize>) {
        match (value, enumeration) {
            (Scalar::Bool(value), _) => {
                self.text.out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            (Scalar::Int(value), Some(of)) => self.text.enumeration(value, &self.types.enums[of].labels),
            (Scalar::Int(value), None) => write::integer(value.into(), self.text.out),
            (Scalar::Float(value), _) => write::float(value, self.text.form, self.text.out),
            _ => write::integer(bits.into(), self.text.out),
        }
    }

    fn structure(&mut self, of: usize, at: usize, depth: u32) -> Parsed<()> {
        self.open(at, depth)?;
        let object = &self.types.objects[of];
        self.buffer.need(at, object.size)?;
        for field in &object.fields {
            write::key(&field.name, self.text.out);
            let written = self.value(&field.kind, at + usize::from(field.offset), depth);
            written.map_err(|fault| fault.in_member(&field.name))?;
        }
        self.text.out.push(b'}');
        Ok(())
    }

    fn elements(
        &mut self,
        element: &'s Kind,
        size: usize,
        start: usize,
        count: usize,
        depth: u32,
    ) -> Parsed<()> {
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        self.text.out.push(b'[');
        for index in 0..count {
            write::separate(self.text.out);
            let written = self.value(element, start + index * size, depth + 1);
            written.map_err(|fault| fault.in_element(index as u64))?;
        }
        self.text.out.push(b']');
        Ok(())
    }
}
