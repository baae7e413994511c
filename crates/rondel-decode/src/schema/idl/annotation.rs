//! Annotations of declarations.

use super::lexer::{Token, TokenKind};
use crate::schema::{Extensibility, Place, SchemaError};

/// Annotations before a declaration.
#[derive(Clone, Debug, Default)]
pub(super) struct Annotations {
    pub(super) extensibility: Option<Extensibility>,
    pub(super) key: bool,
    pub(super) optional: bool,
    pub(super) default_literal: bool,
    pub(super) id: Option<Vec<Token>>,
    /// Whether the ids of members are hashes of their names; `None` if not stated.
    pub(super) autoid_hash: Option<bool>,
    /// Text whose hash is the id of the member; if it is empty, the name.
    pub(super) hashid: Option<Box<str>>,
    pub(super) value: Option<Vec<Token>>,
    pub(super) bit_bound: Option<Vec<Token>>,
    pub(super) position: Option<Vec<Token>>,
}

impl Annotations {
    /// Adds `@name(parameters)`; annotations that do not affect the encoding are ignored.
    pub(super) fn add(
        &mut self,
        place: Place,
        name: &str,
        parameters: Vec<Token>,
    ) -> Result<(), SchemaError> {
        let first_word = || match &parameters.first()?.kind {
            TokenKind::Word(word) => Some(&**word),
            _ => None,
        };
        // A named parameter, as in `@bit_bound(value = 8)`.
        let is_false = matches!(&parameters.last().map(|token| &token.kind), Some(TokenKind::Word(word)) if &**word == "FALSE");
        let number = |parameters: &[Token]| match parameters {
            [_, Token { kind: TokenKind::Sign('='), .. }, rest @ ..] => Some(rest.to_vec()),
            _ => Some(parameters.to_vec()),
        };
        match name {
            "final" => self.extensibility = Some(Extensibility::Final),
            "appendable" => self.extensibility = Some(Extensibility::Appendable),
            "mutable" => self.extensibility = Some(Extensibility::Mutable),
            "extensibility" => {
                self.extensibility = Some(match first_word() {
                    Some("FINAL") => Extensibility::Final,
                    Some("APPENDABLE") => Extensibility::Appendable,
                    Some("MUTABLE") => Extensibility::Mutable,
                    _ => return Err(SchemaError::at(place, "expected FINAL, APPENDABLE or MUTABLE")),
                });
            }
            "key" | "Key" => self.key = !is_false,
            "optional" => self.optional = !is_false,
            "default_literal" => self.default_literal = true,
            "id" => self.id = number(&parameters),
            "value" => self.value = number(&parameters),
            "bit_bound" => self.bit_bound = number(&parameters),
            "position" => self.position = number(&parameters),
            "hashid" => {
                self.hashid = match parameters.last().map(|token| &token.kind) {
                    Some(TokenKind::Text(text)) => Some(text.clone()),
                    None => Some("".into()),
                    Some(_) => return Err(SchemaError::at(place, "expected a text, or nothing")),
                };
            }
            "autoid" => self.autoid_hash = Some(first_word() != Some("SEQUENTIAL")),
            _ => {}
        }
        Ok(())
    }
}
