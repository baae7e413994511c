//! Values of columns that Rust has no type for.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use sha2::{Digest, Sha256};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Encoded = Result<IsNull, Box<dyn Error + Sync + Send>>;

/// A value of type `uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Uuid(pub(super) u128);

/// A value of type `jsonb`, from its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Json<'a>(pub(super) &'a str);

/// A value of type `text`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl Uuid {
    /// Returns the hash of the parameters of an instance, by which tables find it: `jsonb` compares otherwise than texts,
    /// and an index has no room for long ones.
    pub(super) fn of(parameters: &str) -> Uuid {
        let digest = Sha256::digest(parameters.as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Uuid(u128::from_be_bytes(first))
    }
}

impl ToSql for Uuid {
    fn to_sql(&self, _type: &Type, out: &mut BytesMut) -> Encoded {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Uuid {
    fn from_sql(_type: &Type, bytes: &'a [u8]) -> Result<Uuid, Box<dyn Error + Sync + Send>> {
        Ok(Uuid(u128::from_be_bytes(bytes.try_into()?)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

impl ToSql for Json<'_> {
    fn to_sql(&self, _type: &Type, out: &mut BytesMut) -> Encoded {
        // The version of the format.
        out.extend_from_slice(&[1]);
        out.extend_from_slice(storable_json(self.0).as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSONB
    }

    to_sql_checked!();
}

impl ToSql for Text<'_> {
    fn to_sql(&self, _type: &Type, out: &mut BytesMut) -> Encoded {
        out.extend_from_slice(storable(self.0).as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TEXT
    }

    to_sql_checked!();
}

/// Returns a text without the character U+0000, which PostgreSQL does not store.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Returns a JSON text without the escaped character U+0000.
fn storable_json(text: &str) -> Cow<'_, str> {
    const ZERO: &str = "\\u0000";
    if !text.contains(ZERO) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(i) = rest.find('\\') {
        out += &rest[..i];
        rest = &rest[i..];
        if let Some(after) = rest.strip_prefix(ZERO) {
            out += "\\ufffd";
            rest = after;
        } else {
            // The backslash and what it escapes: another backslash begins no escape of its own.
            let end = rest.char_indices().nth(2).map_or(rest.len(), |(end, _)| end);
            out += &rest[..end];
            rest = &rest[end..];
        }
    }
    Cow::Owned(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_replaced() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
        assert_eq!(
            storable_json(r#"{"a":"é\n\u0000\\u0000\\\u0000"}"#),
            r#"{"a":"é\n\ufffd\\u0000\\\ufffd"}"#
        );
        assert_eq!(storable_json("\\u0000\\"), "\\ufffd\\");
        assert_eq!(storable_json("{}"), "{}");
    }
}
