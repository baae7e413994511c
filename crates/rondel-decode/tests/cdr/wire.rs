//! A naive writer of all encodings by DDS-XTypes 1.3, section 7.4.

use rondel_decode::cdr::WideForm;
use rondel_decode::schema::{Definition, Extensibility, Primitive, Schema, Type};

use crate::random::Tree;
use rondel_testkit::Random;

/// An encoding of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Encoding {
    pub(crate) version: u8,
    pub(crate) is_big: bool,
    /// Extensibility of types that do not state it.
    pub(crate) unstated: Extensibility,
    /// The form of wide strings.
    pub(crate) wide: WideForm,
}

pub(crate) struct Wire<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) encoding: Encoding,
    pub(crate) random: Random,
    body: Vec<u8>,
    origin: usize,
}

impl<'s> Wire<'s> {
    /// Returns the message with a value of the root type, including its encapsulation; `None` if the type does not have
    /// this encoding.
    pub(crate) fn message(
        schema: &'s Schema,
        encoding: Encoding,
        seed: u64,
        members: &[Option<Tree>],
    ) -> Vec<u8> {
        let mut wire = Wire { schema, encoding, random: Random::new(seed), body: Vec::new(), origin: 0 };
        wire.structure(schema.root(), members);
        let extensibility = schema.root().extensibility.unwrap_or(encoding.unstated);
        let id = match (encoding.version, extensibility) {
            (1, Extensibility::Mutable) => 2,
            (1, _) => 0,
            (_, Extensibility::Final) => 6,
            (_, Extensibility::Appendable) => 8,
            (_, Extensibility::Mutable) => 10,
        };
        let mut message = vec![0, id + u8::from(!encoding.is_big), 0, 0];
        message.extend(wire.body);
        message
    }

    fn align(&mut self, size: usize) {
        let size = if self.encoding.version == 2 { size.min(4) } else { size };
        while !(self.body.len() - self.origin).is_multiple_of(size) {
            self.body.push(0xee);
        }
    }

    fn bytes<const N: usize>(&mut self, big: [u8; N]) {
        self.align(N);
        let mut bytes = big;
        if !self.encoding.is_big {
            bytes.reverse();
        }
        self.body.extend(bytes);
    }

    fn u32(&mut self, value: usize) {
        self.bytes(u32::try_from(value).unwrap().to_be_bytes());
    }

    /// Writes a part after its length in bytes, which has four bytes.
    fn delimited(&mut self, write: impl FnOnce(&mut Self)) {
        self.u32(0);
        let start = self.body.len();
        write(self);
        self.set_u32(start - 4, self.body.len() - start);
    }

    fn set_u32(&mut self, at: usize, value: usize) {
        let mut bytes = u32::try_from(value).unwrap().to_be_bytes();
        if !self.encoding.is_big {
            bytes.reverse();
        }
        self.body[at..at + 4].copy_from_slice(&bytes);
    }

    fn number(&mut self, primitive: Primitive, value: &Tree) {
        match (primitive, value) {
            (Primitive::Bool, Tree::Bool(value)) => self.bytes([u8::from(*value)]),
            (Primitive::Float32, Tree::Float(value)) => self.bytes((*value as f32).to_be_bytes()),
            (Primitive::Float64, Tree::Float(value)) => self.bytes(value.to_be_bytes()),
            (_, Tree::Int(value)) => match primitive.size() {
                1 => self.bytes([*value as u8]),
                2 => self.bytes((*value as u16).to_be_bytes()),
                4 => self.bytes((*value as u32).to_be_bytes()),
                _ => self.bytes((*value as u64).to_be_bytes()),
            },
            other => panic!("{other:?}"),
        }
    }

    fn value(&mut self, value_type: &Type, value: &Tree) {
        match (value_type, value) {
            (Type::Primitive(primitive), _) => self.number(*primitive, value),
            (Type::String { wide: false, .. }, Tree::Text(text)) => {
                self.u32(text.len() + 1);
                self.body.extend(text.bytes());
                self.body.push(0);
            }
            (Type::String { wide: true, .. }, Tree::Text(text)) => {
                let units: Vec<u16> = text.encode_utf16().collect();
                match self.encoding.wide {
                    WideForm::Bytes => self.u32(2 * units.len()),
                    WideForm::Units => self.u32(units.len()),
                    // Fast-CDR writes characters, ROS 2 the units of UTF-16.
                    WideForm::Words if self.random.one_in(2) => {
                        self.u32(text.chars().count());
                        return text.chars().for_each(|letter| self.u32(letter as usize));
                    }
                    WideForm::Words => {
                        self.u32(units.len());
                        return units.iter().for_each(|unit| self.u32((*unit).into()));
                    }
                }
                units.iter().for_each(|unit| self.bytes(unit.to_be_bytes()));
            }
            (Type::Array { element, .. }, Tree::List(values)) => {
                self.collection(element, |this| values.iter().for_each(|value| this.value(element, value)));
            }
            (Type::Sequence { element, .. }, Tree::List(values)) => self.collection(element, |this| {
                this.u32(values.len());
                values.iter().for_each(|value| this.value(element, value));
            }),
            (Type::Named(id), _) => match (self.schema.definition(*id), value) {
                (Definition::Struct(structure), Tree::Struct(members)) => self.structure(structure, members),
                (Definition::Enum(enumeration), _) => self.number(enumeration.holder(), value),
                (Definition::Bitmask(mask), _) => self.number(mask.holder(), value),
                (Definition::Union(union), Tree::Union(label, case)) => {
                    let write = |this: &mut Wire<'_>| {
                        this.value(&union.discriminator, &Tree::Int(*label));
                        if let Some((at, value)) = case {
                            this.value(&union.cases[*at].member_type, value);
                        }
                    };
                    match (self.encoding.version, union.extensibility.unwrap_or(self.encoding.unstated)) {
                        (1, Extensibility::Mutable) => {
                            self.mutable_union(union, *label, case);
                            self.list_end();
                        }
                        (_, Extensibility::Mutable) => {
                            self.delimited(|this| this.mutable_union(union, *label, case));
                        }
                        (2, Extensibility::Appendable) => self.delimited(write),
                        _ => write(self),
                    }
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Writes elements, which follow their size in the second version unless they are primitive.
    fn collection(&mut self, element: &Type, write: impl FnOnce(&mut Self)) {
        if self.encoding.version == 2 && !matches!(element, Type::Primitive(_)) {
            self.delimited(write);
        } else {
            write(self);
        }
    }

    pub(crate) fn structure(&mut self, structure: &rondel_decode::schema::Struct, members: &[Option<Tree>]) {
        let extensibility = structure.extensibility.unwrap_or(self.encoding.unstated);
        let pairs: Vec<_> = structure.members.iter().zip(members).collect();
        match (self.encoding.version, extensibility) {
            (1, Extensibility::Mutable) => {
                for (member, value) in &pairs {
                    if let Some(value) = value {
                        let must = self.random.one_in(2);
                        self.parameter(member.id, must, Some((&member.member_type, value)));
                    }
                    if self.random.one_in(5) {
                        // A member that only a newer writer knows.
                        let value = (&Type::Primitive(Primitive::Octet), &Tree::Int(7));
                        self.parameter(100, false, Some(value));
                    }
                }
                self.list_end();
            }
            (_, Extensibility::Mutable) => self.delimited(|this| {
                for (member, value) in &pairs {
                    if let Some(value) = value {
                        let must = this.random.one_in(2);
                        this.mutable_member(member.id, must, &member.member_type, value);
                    }
                    if this.random.one_in(5) {
                        this.mutable_member(100, false, &Type::Primitive(Primitive::Octet), &Tree::Int(7));
                    }
                }
            }),
            (2, Extensibility::Appendable) => self.delimited(|this| {
                this.members(&pairs);
                let is_complete = pairs.iter().all(|(member, value)| member.optional || value.is_some());
                if is_complete && this.random.one_in(5) {
                    // Members that only a newer writer knows.
                    this.body.extend([1, 2, 3]);
                }
            }),
            _ => self.members(&pairs),
        }
    }

    fn members(&mut self, pairs: &[(&rondel_decode::schema::Member, &Option<Tree>)]) {
        for (member, value) in pairs {
            match (member.optional, self.encoding.version, value) {
                (false, _, Some(value)) => self.value(&member.member_type, value),
                // An older writer of an appendable type.
                (false, _, None) => return,
                (true, 1, value) => {
                    let must = self.random.one_in(2);
                    self.parameter(member.id, must, value.as_ref().map(|value| (&member.member_type, value)))
                }
                (true, _, value) => {
                    self.bytes([u8::from(value.is_some())]);
                    if let Some(value) = value {
                        self.value(&member.member_type, value);
                    }
                }
            }
        }
    }

    /// Writes a mutable union: the discriminator has the id 0, and each case its own.
    fn mutable_union(
        &mut self,
        union: &rondel_decode::schema::Union,
        label: i128,
        case: &Option<(usize, Box<Tree>)>,
    ) {
        self.union_member(0, &union.discriminator, &Tree::Int(label));
        if let Some((at, value)) = case {
            self.union_member(union.cases[*at].id, &union.cases[*at].member_type, value);
        }
        if self.random.one_in(5) {
            let (id, value_type, value) = (100, &Type::Primitive(Primitive::Octet), &Tree::Int(7));
            if self.encoding.version == 1 {
                self.parameter(id, false, Some((value_type, value)));
            } else {
                self.mutable_member(id, false, value_type, value);
            }
        }
    }

    fn union_member(&mut self, id: u32, value_type: &Type, value: &Tree) {
        let must = self.random.one_in(2);
        if self.encoding.version == 1 {
            self.parameter(id, must, Some((value_type, value)));
        } else {
            self.mutable_member(id, must, value_type, value);
        }
    }

    fn list_end(&mut self) {
        self.align(4);
        self.bytes(0x3f02_u16.to_be_bytes());
        self.bytes(0_u16.to_be_bytes());
    }

    /// Writes a member with its id and length, in the first version.
    fn parameter(&mut self, id: u32, must: bool, value: Option<(&Type, &Tree)>) {
        self.align(4);
        let is_long = id > 0x3f00 || self.random.one_in(2);
        let long_id = id as usize | if must { 0x4000_0000 } else { 0 };
        let short_id = id as u16 | if must { 0x4000 } else { 0 };
        let length_at = if is_long {
            self.bytes(0x7f01_u16.to_be_bytes());
            self.bytes(8_u16.to_be_bytes());
            self.u32(long_id);
            self.u32(0);
            self.body.len() - 4
        } else {
            self.bytes(short_id.to_be_bytes());
            self.bytes(0_u16.to_be_bytes());
            self.body.len() - 2
        };
        let start = self.body.len();
        let outer = std::mem::replace(&mut self.origin, start);
        if let Some((value_type, value)) = value {
            self.value(value_type, value);
        }
        let length = self.body.len() - start;
        self.origin = outer;
        if is_long {
            self.set_u32(length_at, length);
        } else {
            let mut bytes = u16::try_from(length).unwrap().to_be_bytes();
            if !self.encoding.is_big {
                bytes.reverse();
            }
            self.body[length_at..length_at + 2].copy_from_slice(&bytes);
        }
    }

    /// Writes a member in the second version, with one of the possible kinds of length.
    fn mutable_member(&mut self, id: u32, must: bool, value_type: &Type, value: &Tree) {
        self.align(4);
        let flags = if must { 0x8000_0000 } else { 0 } | id as usize;
        let at = self.body.len();
        // Written separately to determine its size; every member begins at a multiple of four.
        let mut apart = Wire {
            schema: self.schema,
            encoding: self.encoding,
            random: Random::new(self.random.next()),
            body: Vec::new(),
            origin: 0,
        };
        apart.value(value_type, value);
        let bytes = apart.body;
        let is_primitive = matches!(value_type, Type::Primitive(_));
        let begins_with_length = bytes.len() >= 4 && {
            let first: [u8; 4] = bytes[..4].try_into().unwrap();
            let first =
                if self.encoding.is_big { u32::from_be_bytes(first) } else { u32::from_le_bytes(first) };
            bytes.len() - 4 == first as usize
        };
        let code = match (bytes.len(), is_primitive) {
            (1, true) => 0,
            (2, true) => 1,
            (4, true) => 2,
            (8, true) => 3,
            _ if begins_with_length && self.random.one_in(2) => 5,
            _ => 4,
        };
        self.u32(flags | code << 28);
        if code == 4 {
            self.u32(bytes.len());
        }
        self.body.extend(bytes);
        assert!(at.is_multiple_of(4));
    }
}
