//! Splits text into tokens.

use crate::schema::scan::Cursor;
use crate::schema::{Place, SchemaError};

/// A token with its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) place: Place,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// A name or keyword.
    Word(Box<str>),
    Integer(i128),
    Float(f64),
    Character(char),
    Text(Box<str>),
    /// A single character.
    Sign(char),
    /// `::`
    Scope,
    /// `<<`
    ShiftLeft,
}

/// Tokens of a text, the files that it includes, and its end.
pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) includes: Vec<(Place, String)>,
    pub(super) end: Place,
}

pub(super) fn tokens(text: &str) -> Result<Tokens, SchemaError> {
    let mut cursor = Cursor::new(text);
    let (mut tokens, mut includes) = (Vec::new(), Vec::new());
    while let Some(c) = cursor.skip_blank()? {
        let place = cursor.place;
        if c == '#' {
            let line = cursor.take_while(|c| c != '\n');
            if let Some(name) = directive(line).map_err(|message| SchemaError::at(place, message))? {
                includes.push((place, name));
            }
            continue;
        }
        let kind = token(&mut cursor, c).map_err(|message| SchemaError::at(place, message))?;
        tokens.push(Token { place, kind });
    }
    Ok(Tokens { tokens, includes, end: cursor.place })
}

/// Returns the file that a directive includes.
fn directive(line: &str) -> Result<Option<String>, &'static str> {
    let line = line[1..].trim();
    let (name, rest) = line.split_at(line.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(line.len()));
    let rest = rest.trim();
    match name {
        "include" => {
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let angled = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let (file, _) = quoted.or(angled).ok_or("expected a file in quotation marks after `#include`")?;
            Ok(Some(file.to_owned()))
        }
        "if" | "ifdef" | "elif" | "else" => {
            Err("conditions are not evaluated: run the preprocessor first (`idlc -E`)")
        }
        _ => Ok(None),
    }
}

fn token(cursor: &mut Cursor<'_>, c: char) -> Result<TokenKind, &'static str> {
    if c.is_ascii_alphabetic() || c == '_' {
        let word = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if matches!(word, "L" | "u" | "U") && matches!(cursor.peek(), Some('"' | '\'')) {
            return quoted(cursor);
        }
        // An underscore before a name marks it as no keyword.
        return Ok(TokenKind::Word(word.into()));
    }
    if c.is_ascii_digit() || c == '.' && cursor.rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return number(cursor);
    }
    if let '"' | '\'' = c {
        return quoted(cursor);
    }
    cursor.bump();
    Ok(match (c, cursor.peek()) {
        (':', Some(':')) => {
            cursor.bump();
            TokenKind::Scope
        }
        ('<', Some('<')) => {
            cursor.bump();
            TokenKind::ShiftLeft
        }
        // `>>` ends two sequences: the parser distinguishes it from a shift.
        _ if "{}()[]<>;:,=@+-*/%|&^~".contains(c) => TokenKind::Sign(c),
        _ => return Err("this character has no meaning in IDL"),
    })
}

fn number(cursor: &mut Cursor<'_>) -> Result<TokenKind, &'static str> {
    let is_hex = cursor.rest.starts_with("0x") || cursor.rest.starts_with("0X");
    if is_hex {
        let digits = &cursor.take_while(|c| c.is_ascii_alphanumeric())[2..];
        return i128::from_str_radix(digits, 16)
            .map(TokenKind::Integer)
            .map_err(|_| "not a hexadecimal number");
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
    let suffix = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_float || matches!(suffix, "f" | "F" | "d" | "D") {
        return text.parse().map(TokenKind::Float).map_err(|_| "not a number");
    }
    if !matches!(suffix, "" | "u" | "U" | "l" | "L" | "ul" | "UL" | "ll" | "LL" | "ull" | "ULL") {
        return Err("not a number");
    }
    let is_octal = text.len() > 1 && text.starts_with('0');
    i128::from_str_radix(text, if is_octal { 8 } else { 10 })
        .map(TokenKind::Integer)
        .map_err(|_| "this number is too large, or no octal number")
}

fn quoted(cursor: &mut Cursor<'_>) -> Result<TokenKind, &'static str> {
    let quote = cursor.bump();
    let mut text = String::new();
    loop {
        match cursor.bump() {
            None | Some('\n') => return Err("this text does not end on its line"),
            c if c == quote => break,
            Some('\\') => text.push(escaped(cursor)?),
            Some(c) => text.push(c),
        }
    }
    if quote == Some('"') {
        return Ok(TokenKind::Text(text.into()));
    }
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) => Ok(TokenKind::Character(c)),
        _ => Err("expected one character between `'` and `'`"),
    }
}

fn escaped(cursor: &mut Cursor<'_>) -> Result<char, &'static str> {
    let radix = match cursor.peek() {
        Some('x') => 16,
        Some('0'..='7') => 8,
        _ => {
            return Ok(match cursor.bump() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('v') => '\u{b}',
                Some('f') => '\u{c}',
                Some('a') => '\u{7}',
                Some('b') => '\u{8}',
                Some(c @ ('\\' | '\'' | '"' | '?')) => c,
                _ => return Err("this escape has no meaning in IDL"),
            });
        }
    };
    if radix == 16 {
        cursor.bump();
    }
    let mut value = 0;
    for _ in 0..if radix == 16 { 2 } else { 3 } {
        let Some(digit) = cursor.peek().and_then(|c| c.to_digit(radix)) else { break };
        value = value * radix + digit;
        cursor.bump();
    }
    char::from_u32(value).ok_or("this escape is no character")
}
