//! Parses tokens to definitions.

use md5::{Digest as _, Md5};

use super::annotation::Annotations;
use super::constant::Number;
use super::lexer::{Token, TokenKind};
use crate::schema::{
    Bitmask, Case, Definition, Enum, Library, MAX_DEPTH, Member, Place, Primitive, SchemaError, Struct, Type,
    Union,
};

pub(super) struct Parser<'t> {
    pub(super) library: &'t mut Library,
    tokens: &'t [Token],
    end: Place,
    at: usize,
    /// Enclosing modules, separated by `::`.
    module: String,
    /// Whether the ids of members are hashes of their names by default, from the enclosing modules.
    hashed: bool,
    /// Whether `>` ends a type, so that `>>` is no shift.
    pub(super) in_angles: bool,
}

impl<'t> Parser<'t> {
    pub(super) fn new(library: &'t mut Library, tokens: &'t [Token], end: Place) -> Parser<'t> {
        Parser { library, tokens, end, at: 0, module: String::new(), hashed: false, in_angles: false }
    }

    pub(super) fn file(mut self) -> Result<(), SchemaError> {
        while self.kind(0).is_some() {
            self.declaration(0)?;
        }
        Ok(())
    }

    pub(super) fn kind(&self, ahead: usize) -> Option<&'t TokenKind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    pub(super) fn place(&self) -> Place {
        self.tokens.get(self.at).map_or(self.end, |token| token.place)
    }

    pub(super) fn error(&self, message: &str) -> SchemaError {
        SchemaError::at(self.place(), message)
    }

    pub(super) fn skip(&mut self, tokens: usize) {
        self.at += tokens;
    }

    fn is_sign(&self, sign: char) -> bool {
        self.kind(0) == Some(&TokenKind::Sign(sign))
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn sign(&mut self, sign: char) -> Result<(), SchemaError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.error(&format!("expected `{sign}`"))) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(0), Some(TokenKind::Word(found)) if **found == *word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, expected: &str) -> Result<&'t str, SchemaError> {
        let Some(TokenKind::Word(word)) = self.kind(0) else {
            return Err(self.error(&format!("expected {expected}")));
        };
        self.at += 1;
        Ok(word)
    }

    /// Reads a new name, without the underscore that distinguishes it from a keyword.
    fn name(&mut self) -> Result<&'t str, SchemaError> {
        let name = self.word("a name")?;
        Ok(name.strip_prefix('_').filter(|rest| !rest.is_empty()).unwrap_or(name))
    }

    /// Reads a name with its modules as written; `::` before it is the outermost scope.
    pub(super) fn scoped_name(&mut self) -> Result<String, SchemaError> {
        let mut name = String::new();
        if self.kind(0) == Some(&TokenKind::Scope) {
            self.at += 1;
            name.push_str("::");
        }
        name.push_str(self.name()?);
        while self.kind(0) == Some(&TokenKind::Scope) {
            self.at += 1;
            name.push_str("::");
            name.push_str(self.name()?);
        }
        Ok(name)
    }

    /// Returns the possible full names of a name here, from the innermost scope outwards.
    pub(super) fn scopes(&self, name: &str) -> impl Iterator<Item = String> {
        let mut names = Vec::new();
        match name.strip_prefix("::") {
            Some(outermost) => names.push(outermost.to_owned()),
            None => {
                let mut scope = (!self.module.is_empty()).then_some(&*self.module);
                while let Some(module) = scope {
                    names.push(format!("{module}::{name}"));
                    scope = module.rsplit_once("::").map(|(outer, _)| outer);
                }
                names.push(name.to_owned());
            }
        }
        names.into_iter()
    }

    fn in_module(&self, name: &str) -> String {
        if self.module.is_empty() { name.to_owned() } else { format!("{}::{name}", self.module) }
    }

    fn annotations(&mut self) -> Result<Annotations, SchemaError> {
        let mut annotations = Annotations::default();
        while self.is_sign('@') {
            let place = self.place();
            self.at += 1;
            let name = self.scoped_name()?;
            let mut parameters = Vec::new();
            if self.take_sign('(') {
                let mut open = 1;
                loop {
                    match self.kind(0) {
                        None => {
                            return Err(SchemaError::at(
                                place,
                                "the parameters of this annotation do not end",
                            ));
                        }
                        Some(TokenKind::Sign('(')) => open += 1,
                        Some(TokenKind::Sign(')')) => open -= 1,
                        Some(_) => {}
                    }
                    self.at += 1;
                    if open == 0 {
                        break;
                    }
                    parameters.push(self.tokens[self.at - 1].clone());
                }
            }
            annotations.add(place, &name, parameters)?;
        }
        Ok(annotations)
    }

    /// Reads the number in an annotation.
    fn parameter(&mut self, tokens: &[Token], least: i128, greatest: i128) -> Result<i128, SchemaError> {
        let place = tokens.first().map_or(self.place(), |token| token.place);
        let mut inner = Parser {
            library: &mut *self.library,
            tokens,
            end: place,
            at: 0,
            module: self.module.clone(),
            hashed: self.hashed,
            in_angles: false,
        };
        match inner.constant()? {
            Number::Integer(value) if (least..=greatest).contains(&value) && inner.at == tokens.len() => {
                Ok(value)
            }
            _ => Err(SchemaError::at(place, format!("expected an integer from {least} to {greatest}"))),
        }
    }

    fn declaration(&mut self, depth: usize) -> Result<(), SchemaError> {
        if depth > MAX_DEPTH {
            return Err(self.error("modules are nested too deeply"));
        }
        let annotations = self.annotations()?;
        let place = self.place();
        match self
            .word("a definition: `module`, `struct`, `union`, `enum`, `bitmask`, `typedef` or `const`")?
        {
            "module" => {
                let inner = self.name()?;
                let inner = self.in_module(inner);
                let outer = std::mem::replace(&mut self.module, inner);
                let hashed = annotations.autoid_hash.unwrap_or(self.hashed);
                let hashed_outside = std::mem::replace(&mut self.hashed, hashed);
                self.sign('{')?;
                while !self.take_sign('}') {
                    self.declaration(depth + 1)?;
                }
                self.module = outer;
                self.hashed = hashed_outside;
            }
            "struct" => self.structure(place, &annotations)?,
            "union" => self.union(place, &annotations)?,
            "enum" => self.enumeration(place, &annotations)?,
            "bitmask" => self.bitmask(place, &annotations)?,
            "typedef" => self.alias(place)?,
            "const" => self.constant_declaration(place)?,
            word @ ("interface" | "valuetype" | "native" | "bitset" | "exception" | "local" | "abstract") => {
                return Err(SchemaError::at(
                    place,
                    format!("`{word}` is no data that messages carry, or is not read"),
                ));
            }
            _ => {
                let expected =
                    "expected `module`, `struct`, `union`, `enum`, `bitmask`, `typedef` or `const`";
                return Err(SchemaError::at(place, expected));
            }
        }
        if !self.take_sign(';') {
            return Err(self.error("expected `;`"));
        }
        Ok(())
    }

    fn define(&mut self, place: Place, name: &str, definition: Definition) -> Result<(), SchemaError> {
        let name = self.in_module(name);
        self.library.define(&name, definition).map_err(|message| SchemaError::at(place, message))?;
        Ok(())
    }

    fn structure(&mut self, place: Place, annotations: &Annotations) -> Result<(), SchemaError> {
        let name = self.name()?;
        if self.is_sign(';') {
            let name = self.in_module(name);
            self.library.mention(&name);
            return Ok(());
        }
        let mut members = Vec::new();
        if self.take_sign(':') {
            let place = self.place();
            let base = self.scoped_name()?;
            let base = self.find(&base).and_then(|id| self.library.definition(id));
            match base {
                Some(Definition::Struct(base)) => members.clone_from(&base.members),
                _ => return Err(SchemaError::at(place, "the base is no structure that is defined before")),
            }
        }
        self.sign('{')?;
        let mut next_id = members.last().map_or(0, |last: &Member| last.id + 1);
        let is_hashed = annotations.autoid_hash.unwrap_or(self.hashed);
        while !self.take_sign('}') {
            let annotations = self.annotations()?;
            let id = self.stated_id(&annotations)?;
            let of_name = is_hashed || annotations.hashid.is_some();
            for (number, (member, member_type)) in self.declarators()?.into_iter().enumerate() {
                let id = id.filter(|_| number == 0);
                let id = id.unwrap_or_else(|| if of_name { hash_id(&member) } else { next_id });
                next_id = id + 1;
                let (key, optional) = (annotations.key, annotations.optional);
                members.push(Member { name: member.into(), member_type, id, key, optional });
            }
        }
        let extensibility = annotations.extensibility;
        self.define(place, name, Definition::Struct(Struct { extensibility, members, constants: Vec::new() }))
    }

    /// Returns the id of a member from annotations, unless it is the hash of its name.
    fn stated_id(&mut self, annotations: &Annotations) -> Result<Option<u32>, SchemaError> {
        Ok(match &annotations.id {
            Some(tokens) => Some(self.parameter(tokens, 0, 0x0fff_ffff)? as u32),
            None => annotations.hashid.as_deref().filter(|text| !text.is_empty()).map(hash_id),
        })
    }

    fn union(&mut self, place: Place, annotations: &Annotations) -> Result<(), SchemaError> {
        let name = self.name()?;
        if self.is_sign(';') {
            let name = self.in_module(name);
            self.library.mention(&name);
            return Ok(());
        }
        if !self.take_word("switch") {
            return Err(self.error("expected `switch`"));
        }
        self.sign('(')?;
        self.annotations()?;
        let discriminator_place = self.place();
        let discriminator = self.type_spec(0)?;
        if !self.discriminates(&discriminator) {
            let message = "a discriminator is an integer, a boolean, a character or an enumeration";
            return Err(SchemaError::at(discriminator_place, message));
        }
        self.sign(')')?;
        self.sign('{')?;
        let mut cases = Vec::new();
        // The discriminator has the id 0.
        let mut next_id = 1;
        let is_hashed = annotations.autoid_hash.unwrap_or(self.hashed);
        while !self.take_sign('}') {
            let (mut labels, mut is_default) = (Vec::new(), false);
            let own = loop {
                let own = self.annotations()?;
                if self.take_word("case") {
                    let place = self.place();
                    let label = match self.constant()? {
                        Number::Bool(value) => i64::from(value),
                        Number::Integer(value) if i64::try_from(value).is_ok() => value as i64,
                        _ => return Err(SchemaError::at(place, "a label is an integer")),
                    };
                    labels.push(label);
                } else if self.take_word("default") {
                    is_default = true;
                } else if labels.is_empty() && !is_default {
                    return Err(self.error("expected `case` or `default`"));
                } else {
                    break own;
                }
                self.sign(':')?;
            };
            let stated = self.stated_id(&own)?;
            let place = self.place();
            let mut declared = self.declarators()?;
            let Some((member, member_type)) = declared.pop().filter(|_| declared.is_empty()) else {
                return Err(SchemaError::at(place, "a case has one member"));
            };
            let of_name = is_hashed || own.hashid.is_some();
            let id = stated.unwrap_or_else(|| if of_name { hash_id(&member) } else { next_id });
            next_id = id + 1;
            cases.push(Case { name: member.into(), member_type, id, labels, is_default });
        }
        let extensibility = annotations.extensibility;
        self.define(place, name, Definition::Union(Union { extensibility, discriminator, cases }))
    }

    fn discriminates(&self, discriminator: &Type) -> bool {
        match discriminator {
            Type::Primitive(primitive) => !matches!(primitive, Primitive::Float32 | Primitive::Float64),
            Type::Named(id) => match self.library.definition(*id) {
                Some(Definition::Enum(_)) => true,
                Some(Definition::Alias(target)) => self.discriminates(target),
                _ => false,
            },
            _ => false,
        }
    }

    fn enumeration(&mut self, place: Place, annotations: &Annotations) -> Result<(), SchemaError> {
        let name = self.name()?;
        let bits = match &annotations.bit_bound {
            Some(tokens) => self.parameter(tokens, 1, 32)? as u8,
            None => 32,
        };
        self.sign('{')?;
        let (mut constants, mut next) = (Vec::new(), 0);
        loop {
            let annotations = self.annotations()?;
            let place = self.place();
            let constant = self.name()?;
            let mut value = next;
            if let Some(tokens) = &annotations.value {
                value = self.parameter(tokens, i128::from(i32::MIN), i128::from(i32::MAX))?;
            } else if self.take_sign('=') {
                value = match self.constant()? {
                    Number::Integer(value) => value,
                    _ => return Err(SchemaError::at(place, "expected an integer")),
                };
            }
            next = value + 1;
            let Ok(value) = i32::try_from(value) else {
                return Err(SchemaError::at(place, "the value needs more than 32 bits"));
            };
            let full = self.in_module(constant);
            let error = |message: Box<str>| SchemaError::at(place, message);
            self.library.set_constant(&full, rondel_event::Value::Int(value.into())).map_err(error)?;
            constants.push((constant.into(), value));
            if !self.take_sign(',') || self.is_sign('}') {
                break;
            }
        }
        self.sign('}')?;
        self.define(place, name, Definition::Enum(Enum { bits, constants }))
    }

    fn bitmask(&mut self, place: Place, annotations: &Annotations) -> Result<(), SchemaError> {
        let name = self.name()?;
        let bits = match &annotations.bit_bound {
            Some(tokens) => self.parameter(tokens, 1, 64)? as u8,
            None => 32,
        };
        self.sign('{')?;
        let (mut flags, mut next) = (Vec::new(), 0);
        loop {
            let annotations = self.annotations()?;
            let place = self.place();
            let flag = self.name()?;
            let position = match &annotations.position {
                Some(tokens) => self.parameter(tokens, 0, 63)? as u8,
                None => next,
            };
            if position >= bits {
                return Err(SchemaError::at(place, format!("the mask has {bits} bits")));
            }
            next = position + 1;
            flags.push((flag.into(), position));
            if !self.take_sign(',') || self.is_sign('}') {
                break;
            }
        }
        self.sign('}')?;
        self.define(place, name, Definition::Bitmask(Bitmask { bits, flags }))
    }

    fn alias(&mut self, place: Place) -> Result<(), SchemaError> {
        self.annotations()?;
        let target = self.type_spec(0)?;
        for (name, target) in self.declarator_list(target)? {
            self.define(place, &name, Definition::Alias(target))?;
        }
        Ok(())
    }

    fn constant_declaration(&mut self, place: Place) -> Result<(), SchemaError> {
        self.annotations()?;
        let constant_type = self.type_spec(0)?;
        let name = self.name()?;
        self.sign('=')?;
        let value_place = self.place();
        let value = match (self.constant()?, constant_type) {
            (Number::Integer(value), Type::Primitive(Primitive::Float32 | Primitive::Float64)) => {
                Number::Float(value as f64)
            }
            (Number::Integer(value), Type::Primitive(primitive)) => {
                if let Some((least, greatest)) = primitive.range()
                    && !(least..=greatest).contains(&value)
                {
                    let message = format!("{value} is out of range: {least} to {greatest}");
                    return Err(SchemaError::at(value_place, message));
                }
                Number::Integer(value)
            }
            (value, _) => value,
        };
        let name = self.in_module(name);
        self.library.set_constant(&name, value.value()).map_err(|message| SchemaError::at(place, message))
    }

    /// Reads a type, the names of that type, and `;`.
    fn declarators(&mut self) -> Result<Vec<(String, Type)>, SchemaError> {
        self.annotations()?;
        let declared = self.type_spec(0)?;
        let list = self.declarator_list(declared)?;
        self.sign(';')?;
        Ok(list)
    }

    /// Reads names, each optionally with the sizes of an array.
    fn declarator_list(&mut self, declared: Type) -> Result<Vec<(String, Type)>, SchemaError> {
        let mut list = Vec::new();
        loop {
            let name = self.name()?.to_owned();
            let mut dimensions = Vec::new();
            while self.take_sign('[') {
                dimensions.push(self.size(false)?);
                self.sign(']')?;
            }
            let element = declared.clone();
            list.push(match dimensions.is_empty() {
                true => (name, element),
                false => (name, Type::Array { element: Box::new(element), dimensions: dimensions.into() }),
            });
            if !self.take_sign(',') {
                return Ok(list);
            }
        }
    }

    fn size(&mut self, in_angles: bool) -> Result<u32, SchemaError> {
        let place = self.place();
        let outer = std::mem::replace(&mut self.in_angles, in_angles);
        let size = self.constant()?;
        self.in_angles = outer;
        match size {
            Number::Integer(value) if (1..=i128::from(u32::MAX)).contains(&value) => Ok(value as u32),
            _ => Err(SchemaError::at(place, "expected a size above 0")),
        }
    }

    fn bound(&mut self) -> Result<Option<u32>, SchemaError> {
        if !self.take_sign('<') {
            return Ok(None);
        }
        let size = self.size(true)?;
        self.sign('>')?;
        Ok(Some(size))
    }

    fn find(&self, name: &str) -> Option<crate::schema::TypeId> {
        self.scopes(name).find_map(|name| self.library.find(&name))
    }

    fn type_spec(&mut self, depth: usize) -> Result<Type, SchemaError> {
        if depth > MAX_DEPTH {
            return Err(self.error("types are nested too deeply"));
        }
        let place = self.place();
        let refused = |reason: &str| Err(SchemaError::at(place, reason));
        if self.kind(0) == Some(&TokenKind::Scope) {
            return self.named(place);
        }
        let primitive = match self.word("a type")? {
            "boolean" => Primitive::Bool,
            "octet" => Primitive::Octet,
            "char" => Primitive::Char,
            "wchar" => Primitive::WChar,
            "int8" => Primitive::Int8,
            "uint8" => Primitive::Uint8,
            "int16" | "short" => Primitive::Int16,
            "uint16" => Primitive::Uint16,
            "int32" => Primitive::Int32,
            "uint32" => Primitive::Uint32,
            "int64" => Primitive::Int64,
            "uint64" => Primitive::Uint64,
            "float" => Primitive::Float32,
            "double" => Primitive::Float64,
            "long" if self.take_word("long") => Primitive::Int64,
            "long" if self.take_word("double") => {
                return refused("`long double` has no common encoding, and no language of Rondel's holds it");
            }
            "long" => Primitive::Int32,
            "unsigned" if self.take_word("short") => Primitive::Uint16,
            "unsigned" if self.take_word("long") => {
                if self.take_word("long") {
                    Primitive::Uint64
                } else {
                    Primitive::Uint32
                }
            }
            "unsigned" => return refused("expected `short` or `long` after `unsigned`"),
            word @ ("string" | "wstring") => {
                return Ok(Type::String { wide: word == "wstring", bound: self.bound()? });
            }
            "sequence" => {
                self.sign('<')?;
                self.annotations()?;
                let element = Box::new(self.type_spec(depth + 1)?);
                let bound = if self.take_sign(',') { Some(self.size(true)?) } else { None };
                self.sign('>')?;
                return Ok(Type::Sequence { element, bound });
            }
            word @ ("map" | "any" | "fixed" | "Object" | "ValueBase") => {
                return refused(&format!("the type `{word}` is not read"));
            }
            "struct" | "union" | "enum" => {
                return refused("a type in a member is not read: define it before");
            }
            _ => {
                self.at -= 1;
                return self.named(place);
            }
        };
        Ok(Type::Primitive(primitive))
    }

    fn named(&mut self, place: Place) -> Result<Type, SchemaError> {
        let name = self.scoped_name()?;
        match self.find(&name) {
            Some(id) => Ok(Type::Named(id)),
            // Its text may have been skipped by an include, and be added later.
            None if name.contains("::") => {
                Ok(Type::Named(self.library.mention(name.strip_prefix("::").unwrap_or(&name))))
            }
            None => Err(SchemaError::at(place, format!("the type `{name}` is not defined"))),
        }
    }
}

/// Returns the id of a text: the first four bytes of its MD5, without the bits that are flags.
fn hash_id(text: &str) -> u32 {
    let hash: [u8; 16] = Md5::digest(text).into();
    u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]) & 0x0fff_ffff
}
