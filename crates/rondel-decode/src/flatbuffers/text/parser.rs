//! Parses tokens to declarations, whose types are still names.

use super::lexer::{Token, tokens};
use crate::flatbuffers::schema::Number;
use crate::schema::{Place, SchemaError};

/// Contents of a text.
#[derive(Default)]
pub(super) struct File {
    pub(super) includes: Vec<(Place, Box<str>)>,
    pub(super) declarations: Vec<Declaration>,
    pub(super) root: Option<Named>,
    pub(super) identifier: Option<[u8; 4]>,
    pub(super) extension: Option<Box<str>>,
}

pub(super) struct Declaration {
    pub(super) place: Place,
    /// Name with its namespace.
    pub(super) name: Box<str>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Table(Vec<Field>),
    /// Fields, and the required alignment.
    Structure(Vec<Field>, Option<u64>),
    Enumeration {
        number: Number,
        is_flags: bool,
        values: Vec<(Box<str>, i128)>,
    },
    Union(Vec<Case>),
}

pub(super) struct Field {
    pub(super) place: Place,
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    pub(super) default: Option<(Place, Default)>,
    pub(super) id: Option<u16>,
    pub(super) is_deprecated: bool,
    pub(super) is_required: bool,
    pub(super) is_key: bool,
    /// Whether it is addressed by 64-bit offsets, or has a 64-bit number of elements.
    pub(super) is_far: bool,
}

/// A default as written.
pub(super) enum Default {
    Integer(i128),
    Float(f64),
    /// A name, or several in quotation marks.
    Names(Box<str>),
    Null,
    /// `[]`
    Empty,
}

pub(super) enum Kind {
    Simple(Simple),
    Vector(Simple),
    Array(Simple, u16),
}

pub(super) enum Simple {
    Number(Number),
    Text,
    Named(Named),
}

/// A name as written, and its enclosing namespace.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) place: Place,
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
}

pub(super) struct Case {
    pub(super) name: Box<str>,
    pub(super) kind: Simple,
    pub(super) number: Option<i128>,
}

/// Maximum number of characters of a name with its namespaces: many long names would make a schema of gigabytes.
const LONGEST: usize = 256;

pub(super) struct Parser {
    tokens: Vec<(Place, Token)>,
    end: Place,
    at: usize,
    namespace: Box<str>,
}

/// An attribute in parentheses, with its value.
struct Attribute {
    place: Place,
    name: Box<str>,
    value: Option<Token>,
}

impl Parser {
    pub(super) fn new(text: &str) -> Result<Parser, SchemaError> {
        let (tokens, end) = tokens(text)?;
        Ok(Parser { tokens, end, at: 0, namespace: "".into() })
    }

    fn place(&self) -> Place {
        self.tokens.get(self.at).map_or(self.end, |(place, _)| *place)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn error(&self, message: impl Into<Box<str>>) -> SchemaError {
        SchemaError::at(self.place(), message)
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: char) -> Result<(), SchemaError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.error(format!("expected `{sign}`"))) }
    }

    fn word(&mut self, expected: &str) -> Result<Box<str>, SchemaError> {
        match self.peek() {
            Some(Token::Word(word)) if word.len() <= LONGEST => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            Some(Token::Word(_)) => Err(self.error(format!("a name of more than {LONGEST} characters"))),
            _ => Err(self.error(format!("expected {expected}"))),
        }
    }

    fn text(&mut self, expected: &str) -> Result<Box<str>, SchemaError> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.error(format!("expected {expected} in quotation marks"))),
        }
    }

    /// Reads a name with its namespaces.
    fn path(&mut self, expected: &str) -> Result<Box<str>, SchemaError> {
        let place = self.place();
        let mut path = self.word(expected)?.into_string();
        while self.take_sign('.') {
            path.push('.');
            path.push_str(&self.word("a name after `.`")?);
            if path.len() > LONGEST {
                return Err(SchemaError::at(place, format!("a name of more than {LONGEST} characters")));
            }
        }
        Ok(path.into())
    }

    fn named(&mut self, expected: &str) -> Result<Named, SchemaError> {
        let place = self.place();
        Ok(Named { place, name: self.path(expected)?, namespace: self.namespace.clone() })
    }

    pub(super) fn file(mut self) -> Result<File, SchemaError> {
        let mut file = File::default();
        while self.peek().is_some() {
            self.declaration(&mut file)?;
        }
        Ok(file)
    }

    fn declaration(&mut self, file: &mut File) -> Result<(), SchemaError> {
        let place = self.place();
        let keyword = self.word("a declaration, such as `table`")?;
        match &*keyword {
            "include" => {
                file.includes.push((place, self.text("a file")?));
                self.sign(';')
            }
            "native_include" => {
                self.text("a file")?;
                self.sign(';')
            }
            "namespace" => {
                let is_global = self.peek() == Some(&Token::Sign(';'));
                self.namespace = if is_global { "".into() } else { self.path("a namespace")? };
                self.sign(';')
            }
            "attribute" => {
                match self.peek() {
                    Some(Token::Text(_)) => self.text("a name")?,
                    _ => self.word("the name of an attribute")?,
                };
                self.sign(';')
            }
            "root_type" => {
                file.root = Some(self.named("the name of a table")?);
                self.sign(';')
            }
            "file_extension" => {
                file.extension = Some(self.text("an ending")?);
                self.sign(';')
            }
            "file_identifier" => {
                let text = self.text("four characters")?;
                let identifier = text.as_bytes().try_into();
                let message = "a file identifier has four characters";
                file.identifier = Some(identifier.map_err(|_| SchemaError::at(place, message))?);
                self.sign(';')
            }
            "table" | "struct" | "enum" | "union" => {
                let place = self.place();
                let name = self.word("a name")?;
                let name = match &*self.namespace {
                    "" => name,
                    namespace => format!("{namespace}.{name}").into(),
                };
                let body = match &*keyword {
                    "table" => {
                        self.attributes()?;
                        Body::Table(self.fields()?)
                    }
                    "struct" => {
                        let align = self.structure_attributes()?;
                        Body::Structure(self.fields()?, align)
                    }
                    "enum" => self.enumeration()?,
                    _ => self.union()?,
                };
                self.take_sign(';');
                file.declarations.push(Declaration { place, name, body });
                Ok(())
            }
            "rpc_service" => self.skip_service(),
            word => Err(SchemaError::at(
                place,
                format!(
                    "`{word}` begins no declaration: expected `table`, `struct`, `enum`, `union` or similar"
                ),
            )),
        }
    }

    /// Services do not affect messages.
    fn skip_service(&mut self) -> Result<(), SchemaError> {
        self.word("a name")?;
        self.sign('{')?;
        while !self.take_sign('}') {
            if self.peek().is_none() {
                return Err(self.error("expected `}`"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn attributes(&mut self) -> Result<Vec<Attribute>, SchemaError> {
        let mut attributes = Vec::new();
        if !self.take_sign('(') {
            return Ok(attributes);
        }
        while !self.take_sign(')') {
            let place = self.place();
            let name = match self.peek() {
                Some(Token::Text(_)) => self.text("an attribute")?,
                _ => self.word("an attribute")?,
            };
            let value = if self.take_sign(':') {
                let is_negative = self.take_sign('-');
                let value = match self.peek() {
                    Some(Token::Integer(value)) => Token::Integer(if is_negative { -value } else { *value }),
                    Some(value @ (Token::Text(_) | Token::Word(_) | Token::Float(_))) => value.clone(),
                    _ => return Err(self.error("expected a value")),
                };
                self.at += 1;
                Some(value)
            } else {
                None
            };
            attributes.push(Attribute { place, name, value });
            if !self.take_sign(',') {
                self.sign(')')?;
                break;
            }
        }
        Ok(attributes)
    }

    fn structure_attributes(&mut self) -> Result<Option<u64>, SchemaError> {
        let mut align = None;
        for attribute in self.attributes()? {
            if &*attribute.name == "force_align" {
                align = Some(attribute.alignment()?);
            }
        }
        Ok(align)
    }

    fn fields(&mut self) -> Result<Vec<Field>, SchemaError> {
        self.sign('{')?;
        let mut fields = Vec::new();
        while !self.take_sign('}') {
            fields.push(self.field()?);
        }
        Ok(fields)
    }

    fn field(&mut self) -> Result<Field, SchemaError> {
        let place = self.place();
        let name = self.word("a field, or `}`")?;
        self.sign(':')?;
        let kind = self.kind()?;
        let default_place = self.place();
        let default = if self.take_sign('=') { Some((default_place, self.default()?)) } else { None };
        let mut field = Field {
            place,
            name,
            kind,
            default,
            id: None,
            is_deprecated: false,
            is_required: false,
            is_key: false,
            is_far: false,
        };
        for attribute in self.attributes()? {
            match &*attribute.name {
                "id" => field.id = Some(attribute.id()?),
                "deprecated" => field.is_deprecated = true,
                "required" => field.is_required = true,
                "key" => field.is_key = true,
                "offset64" | "vector64" => field.is_far = true,
                _ => {}
            }
        }
        self.sign(';')?;
        Ok(field)
    }

    fn kind(&mut self) -> Result<Kind, SchemaError> {
        if !self.take_sign('[') {
            return self.simple().map(Kind::Simple);
        }
        if self.peek() == Some(&Token::Sign('[')) {
            return Err(self.error("a vector of vectors: put the inner one into a table"));
        }
        let element = self.simple()?;
        let length = if self.take_sign(':') {
            let Some(Token::Integer(length)) = self.peek() else {
                return Err(self.error("expected a length"));
            };
            let length = u16::try_from(*length).ok().filter(|length| *length > 0);
            let length = length.ok_or_else(|| self.error("expected a length from 1 to 65535"))?;
            self.at += 1;
            Some(length)
        } else {
            None
        };
        self.sign(']')?;
        Ok(match length {
            Some(length) => Kind::Array(element, length),
            None => Kind::Vector(element),
        })
    }

    fn simple(&mut self) -> Result<Simple, SchemaError> {
        let named = self.named("a type")?;
        Ok(match &*named.name {
            "string" => Simple::Text,
            name => match number(name) {
                Some(number) => Simple::Number(number),
                None => Simple::Named(named),
            },
        })
    }

    fn default(&mut self) -> Result<Default, SchemaError> {
        if self.take_sign('[') {
            self.sign(']')?;
            return Ok(Default::Empty);
        }
        let is_negative = self.take_sign('-');
        if !is_negative {
            self.take_sign('+');
        }
        let default = match self.peek() {
            Some(Token::Integer(value)) => Default::Integer(if is_negative { -value } else { *value }),
            Some(Token::Float(value)) => Default::Float(if is_negative { -value } else { *value }),
            Some(Token::Text(names)) => Default::Names(names.clone()),
            Some(Token::Word(_)) => {
                let name = self.path("a value")?;
                return Ok(match &*name {
                    "null" => Default::Null,
                    "nan" => Default::Float(f64::NAN),
                    "inf" | "infinity" if is_negative => Default::Float(f64::NEG_INFINITY),
                    "inf" | "infinity" => Default::Float(f64::INFINITY),
                    "true" => Default::Integer(1),
                    "false" => Default::Integer(0),
                    "deg" | "rad" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan"
                        if self.peek() == Some(&Token::Sign('(')) =>
                    {
                        return Err(self.error("functions are not evaluated: write the number"));
                    }
                    _ => Default::Names(name),
                });
            }
            _ => return Err(self.error("expected a value")),
        };
        self.at += 1;
        Ok(default)
    }

    fn integer(&mut self) -> Result<i128, SchemaError> {
        let is_negative = self.take_sign('-');
        let Some(Token::Integer(value)) = self.peek() else { return Err(self.error("expected an integer")) };
        let value = if is_negative { -value } else { *value };
        self.at += 1;
        Ok(value)
    }

    fn enumeration(&mut self) -> Result<Body, SchemaError> {
        if !self.take_sign(':') {
            return Err(self.error("expected `:` and the type of integer, such as `enum Gear : byte`"));
        }
        let place = self.place();
        let of = self.word("a type of integer")?;
        let Some(number) = number(&of).filter(|number| number.is_integer()) else {
            return Err(SchemaError::at(place, format!("`{of}` is no type of integer")));
        };
        let is_flags = self.attributes()?.iter().any(|attribute| &*attribute.name == "bit_flags");
        self.sign('{')?;
        let (mut values, mut next) = (Vec::new(), 0);
        while !self.take_sign('}') {
            let place = self.place();
            let name = self.word("a name, or `}`")?;
            if self.take_sign('=') {
                next = self.integer()?;
            }
            self.attributes()?;
            let value = match is_flags {
                true if (0..8 * number.size() as i128).contains(&next) => 1 << next,
                true => return Err(SchemaError::at(place, format!("bit {next} is not in `{of}`"))),
                false => next,
            };
            if !range(number).contains(&value) {
                return Err(SchemaError::at(place, format!("{value} is not in the range of `{of}`")));
            }
            values.push((name, value));
            next += 1;
            if !self.take_sign(',') {
                self.sign('}')?;
                break;
            }
        }
        Ok(Body::Enumeration { number, is_flags, values })
    }

    fn union(&mut self) -> Result<Body, SchemaError> {
        self.attributes()?;
        self.sign('{')?;
        let mut cases = Vec::new();
        while !self.take_sign('}') {
            let first = self.named("a type, or `}`")?;
            // In the name of a case from another namespace, that namespace comes first.
            let name: Box<str> = first.name.replace('.', "_").into();
            let kind = if self.take_sign(':') { self.simple()? } else { Simple::Named(first) };
            let number = if self.take_sign('=') { Some(self.integer()?) } else { None };
            self.attributes()?;
            cases.push(Case { name, kind, number });
            if !self.take_sign(',') {
                self.sign('}')?;
                break;
            }
        }
        Ok(Body::Union(cases))
    }
}

impl Attribute {
    fn id(&self) -> Result<u16, SchemaError> {
        let id = match &self.value {
            Some(Token::Integer(id)) => u16::try_from(*id).ok(),
            Some(Token::Text(text)) => text.parse().ok(),
            _ => None,
        };
        id.filter(|id| *id <= super::LAST_ID).ok_or_else(|| {
            SchemaError::at(self.place, format!("an id is an integer from 0 to {}", super::LAST_ID))
        })
    }

    fn alignment(&self) -> Result<u64, SchemaError> {
        match self.value {
            Some(Token::Integer(align @ (1 | 2 | 4 | 8 | 16 | 32))) => Ok(align as u64),
            _ => Err(SchemaError::at(self.place, "an alignment is a power of two up to 32")),
        }
    }
}

/// Returns the type of number with this name.
fn number(name: &str) -> Option<Number> {
    Some(match name {
        "bool" => Number::Bool,
        "byte" | "int8" => Number::I8,
        "ubyte" | "uint8" => Number::U8,
        "short" | "int16" => Number::I16,
        "ushort" | "uint16" => Number::U16,
        "int" | "int32" => Number::I32,
        "uint" | "uint32" => Number::U32,
        "long" | "int64" => Number::I64,
        "ulong" | "uint64" => Number::U64,
        "float" | "float32" => Number::F32,
        "double" | "float64" => Number::F64,
        _ => return None,
    })
}

/// Returns the range of an integer type.
pub(super) fn range(number: Number) -> std::ops::RangeInclusive<i128> {
    match number {
        Number::Bool => 0..=1,
        Number::I8 => i8::MIN.into()..=i8::MAX.into(),
        Number::U8 => 0..=u8::MAX.into(),
        Number::I16 => i16::MIN.into()..=i16::MAX.into(),
        Number::U16 => 0..=u16::MAX.into(),
        Number::I32 => i32::MIN.into()..=i32::MAX.into(),
        Number::U32 => 0..=u32::MAX.into(),
        Number::U64 => 0..=u64::MAX.into(),
        _ => i64::MIN.into()..=i64::MAX.into(),
    }
}
