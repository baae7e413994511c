//! Splits text into tokens.

use crate::schema::scan::Cursor;
use crate::schema::{Place, SchemaError};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Word(Box<str>),
    Integer(i128),
    Float(f64),
    Text(Box<str>),
    Sign(char),
}

/// Returns the tokens of a text with their positions, and the position of its end.
pub(super) fn tokens(text: &str) -> Result<(Vec<(Place, Token)>, Place), SchemaError> {
    let mut cursor = Cursor::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut tokens = Vec::new();
    while let Some(c) = cursor.skip_blank()? {
        let place = cursor.place;
        let token = token(&mut cursor, c).map_err(|message| SchemaError::at(place, message))?;
        tokens.push((place, token));
    }
    Ok((tokens, cursor.place))
}

fn token(cursor: &mut Cursor<'_>, c: char) -> Result<Token, &'static str> {
    if c.is_ascii_alphabetic() || c == '_' {
        let word = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        return Ok(Token::Word(word.into()));
    }
    if c.is_ascii_digit() || c == '.' && cursor.rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return number(cursor);
    }
    cursor.bump();
    match c {
        '"' => text(cursor),
        _ if "{}()[]<>;:,=.+-".contains(c) => Ok(Token::Sign(c)),
        _ => Err("this character has no meaning in a schema of FlatBuffers"),
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<Token, &'static str> {
    if cursor.rest.starts_with("0x") || cursor.rest.starts_with("0X") {
        let digits = &cursor.take_while(|c| c.is_ascii_alphanumeric())[2..];
        let number = i128::from_str_radix(digits, 16);
        return number.map(Token::Integer).map_err(|_| "not a hexadecimal number");
    }
    let start = cursor.rest;
    cursor.take_while(|c| c.is_ascii_digit());
    let mut is_float = false;
    if cursor.peek() == Some('.') {
        is_float = true;
        cursor.bump();
        cursor.take_while(|c| c.is_ascii_digit());
    }
    if let Some('e' | 'E') = cursor.peek() {
        is_float = true;
        cursor.bump();
        if let Some('+' | '-') = cursor.peek() {
            cursor.bump();
        }
        cursor.take_while(|c| c.is_ascii_digit());
    }
    let text = &start[..start.len() - cursor.rest.len()];
    if !cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_').is_empty() {
        return Err("not a number");
    }
    if is_float {
        return text.parse().map(Token::Float).map_err(|_| "not a number");
    }
    text.parse().map(Token::Integer).map_err(|_| "this number is too large")
}

/// Reads the rest of a text in quotation marks. Only defaults of text and values of attributes have escapes, and
/// neither is used: they are kept as written.
fn text(cursor: &mut Cursor<'_>) -> Result<Token, &'static str> {
    let mut text = String::new();
    loop {
        match cursor.bump() {
            None | Some('\n') => return Err("this text does not end on its line"),
            Some('"') => return Ok(Token::Text(text.into())),
            Some('\\') => {
                text.push('\\');
                text.extend(cursor.bump());
            }
            Some(c) => text.push(c),
        }
    }
}
