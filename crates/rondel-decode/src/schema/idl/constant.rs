//! Constant expressions.

use rondel_event::Value;

use super::lexer::TokenKind;
use super::parser::Parser;
use crate::schema::{SchemaError, msg};

/// Value of a constant expression. Booleans and characters count as integers where one is needed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Box<str>),
}

/// Maximum nesting of parentheses and signs.
const MAX_NESTING: usize = 64;

impl Number {
    pub(super) fn value(self) -> Value {
        match self {
            Number::Bool(value) => Value::Bool(value),
            Number::Integer(value) => msg::integer(value),
            Number::Float(value) => Value::Float(value),
            Number::Text(value) => Value::String(value),
        }
    }

    fn of(value: &Value) -> Number {
        match value {
            Value::Bool(value) => Number::Bool(*value),
            Value::Int(value) | Value::Time(value) | Value::Duration(value) => {
                Number::Integer((*value).into())
            }
            Value::Float(value) => Number::Float(*value),
            Value::String(value) => Number::Text(value.clone()),
        }
    }
}

/// Operators, from the lowest to the highest precedence.
const LEVELS: [&[char]; 6] = [&['|'], &['^'], &['&'], &['l', 'r'], &['+', '-'], &['*', '/', '%']];

impl Parser<'_> {
    pub(super) fn constant(&mut self) -> Result<Number, SchemaError> {
        self.operators(0, 0)
    }

    fn operators(&mut self, level: usize, depth: usize) -> Result<Number, SchemaError> {
        let Some(signs) = LEVELS.get(level) else { return self.operand(depth) };
        let mut left = self.operators(level + 1, depth)?;
        while let Some(sign) = self.operator(signs) {
            let place = self.place();
            let right = self.operators(level + 1, depth)?;
            left = apply(sign, left, right).map_err(|message| SchemaError::at(place, message))?;
        }
        Ok(left)
    }

    /// Reads an operator if it is one of these; `l` and `r` are the shifts.
    fn operator(&mut self, signs: &[char]) -> Option<char> {
        let found = match (self.kind(0)?, self.kind(1)) {
            (TokenKind::ShiftLeft, _) => 'l',
            (TokenKind::Sign('>'), Some(TokenKind::Sign('>'))) if !self.in_angles => 'r',
            (TokenKind::Sign(c), _) => *c,
            _ => return None,
        };
        if !signs.contains(&found) {
            return None;
        }
        self.skip(if found == 'r' { 2 } else { 1 });
        Some(found)
    }

    fn operand(&mut self, depth: usize) -> Result<Number, SchemaError> {
        if depth > MAX_NESTING {
            return Err(self.error("this expression is nested too deeply"));
        }
        let place = self.place();
        let refused = |message: &str| SchemaError::at(place, message);
        match self.kind(0).cloned() {
            Some(TokenKind::Integer(value)) => self.taken(Number::Integer(value)),
            Some(TokenKind::Float(value)) => self.taken(Number::Float(value)),
            Some(TokenKind::Character(c)) => self.taken(Number::Integer(i128::from(u32::from(c)))),
            Some(TokenKind::Text(_)) => {
                let mut text = String::new();
                while let Some(TokenKind::Text(part)) = self.kind(0) {
                    text.push_str(part);
                    self.skip(1);
                }
                Ok(Number::Text(text.into()))
            }
            Some(TokenKind::Sign('(')) => {
                self.skip(1);
                let outer = std::mem::replace(&mut self.in_angles, false);
                let value = self.operators(0, depth + 1)?;
                self.in_angles = outer;
                self.sign(')')?;
                Ok(value)
            }
            Some(TokenKind::Sign(sign @ ('-' | '+' | '~'))) => {
                self.skip(1);
                match (sign, self.operand(depth + 1)?) {
                    ('-', Number::Float(value)) => Ok(Number::Float(-value)),
                    ('+', value @ (Number::Float(_) | Number::Integer(_))) => Ok(value),
                    ('-', Number::Integer(value)) => value
                        .checked_neg()
                        .map(Number::Integer)
                        .ok_or_else(|| refused("the number is too large")),
                    ('~', Number::Integer(value)) => Ok(Number::Integer(!value)),
                    _ => Err(refused("this sign stands before a number")),
                }
            }
            Some(TokenKind::Word(word)) if matches!(&*word, "TRUE" | "FALSE") => {
                self.taken(Number::Bool(&*word == "TRUE"))
            }
            Some(TokenKind::Word(_) | TokenKind::Scope) => {
                let name = self.scoped_name()?;
                let found = self.scopes(&name).find_map(|name| self.library.constant(&name));
                found.map(Number::of).ok_or_else(|| refused(&format!("the constant `{name}` is not defined")))
            }
            _ => Err(refused("expected a constant")),
        }
    }

    fn taken(&mut self, number: Number) -> Result<Number, SchemaError> {
        self.skip(1);
        Ok(number)
    }
}

fn apply(sign: char, left: Number, right: Number) -> Result<Number, &'static str> {
    const LARGE: &str = "the number is too large";
    let float = |number: &Number| match number {
        Number::Float(value) => Some(*value),
        Number::Integer(value) => Some(*value as f64),
        _ => None,
    };
    if let (Number::Integer(a), Number::Integer(b)) = (&left, &right) {
        let (a, b) = (*a, *b);
        let shift = || u32::try_from(b).ok().filter(|b| *b < 64);
        let result = match sign {
            '|' => Some(a | b),
            '^' => Some(a ^ b),
            '&' => Some(a & b),
            'l' => shift().and_then(|b| a.checked_mul(1 << b)),
            'r' => shift().map(|b| a >> b),
            '+' => a.checked_add(b),
            '-' => a.checked_sub(b),
            '*' => a.checked_mul(b),
            _ if b == 0 => return Err("division by zero"),
            '/' => a.checked_div(b),
            _ => a.checked_rem(b),
        };
        return result.map(Number::Integer).ok_or(LARGE);
    }
    let (Some(a), Some(b)) = (float(&left), float(&right)) else {
        return Err("operators stand between numbers");
    };
    Ok(Number::Float(match sign {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        _ => return Err("this operator stands between integers"),
    }))
}
