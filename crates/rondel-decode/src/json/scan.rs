//! A strict scanner of JSON text (RFC 8259): finds the bounds of values and checks that they are well formed, without
//! building anything.

use std::fmt;

/// Maximum nesting of arrays and objects. Deeper text is refused: it costs stack, and no message of a real system needs
/// it.
pub const MAX_DEPTH: u32 = 128;

/// Error in a JSON message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Byte position in the text, from 0.
    pub offset: usize,
    /// Description of the error.
    pub kind: JsonErrorKind,
}

/// Kind of an error in a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// Something else was expected here.
    Expected(&'static str),
    /// A number is not in the syntax of JSON.
    BadNumber,
    /// NaN or an infinity, which JSON does not have.
    NotFinite,
    /// A control character inside a string.
    ControlCharacter,
    /// An escape that JSON does not have, or half of a surrogate pair.
    BadEscape,
    /// A string that is not UTF-8.
    BadUtf8,
    /// More than [`MAX_DEPTH`] levels.
    TooDeep,
    /// Text after the value.
    TrailingText,
    /// The value is not a time, although one was expected.
    NotATime(&'static str),
    /// The time is beyond 64 bits of nanoseconds.
    TimeOutOfRange(&'static str),
}

impl fmt::Display for JsonErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonErrorKind::UnexpectedEnd => f.write_str("the text ends inside a value"),
            JsonErrorKind::Expected(what) | JsonErrorKind::NotATime(what) => write!(f, "expected {what}"),
            JsonErrorKind::TimeOutOfRange(why) => f.write_str(why),
            JsonErrorKind::BadNumber => f.write_str("not a number as JSON writes it"),
            JsonErrorKind::NotFinite => f.write_str("JSON has no NaN and no infinity"),
            JsonErrorKind::ControlCharacter => f.write_str("a control character inside a string"),
            JsonErrorKind::BadEscape => f.write_str("an escape that JSON does not have"),
            JsonErrorKind::BadUtf8 => f.write_str("a string that is not UTF-8"),
            JsonErrorKind::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            JsonErrorKind::TrailingText => f.write_str("more text after the value"),
        }
    }
}

impl JsonErrorKind {
    /// Whether the payload is JSON, but its time cannot be used.
    pub fn is_about_time(self) -> bool {
        matches!(self, JsonErrorKind::NotATime(_) | JsonErrorKind::TimeOutOfRange(_))
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl std::error::Error for JsonError {}

/// Kind of a value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    True,
    False,
    Null,
    /// Not a number, where it is allowed.
    Nan,
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) at: usize,
    /// Whether a number may be `NaN`, as in rows of tables.
    pub(super) takes_nan: bool,
}

type Scanned<T> = Result<T, JsonError>;

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Scanner<'t> {
        Scanner { text, at: 0, takes_nan: false }
    }

    /// Creates a scanner of the row of a table, or of a part of a text that was already scanned.
    pub(crate) fn with_nan(text: &'t [u8]) -> Scanner<'t> {
        Scanner { text, at: 0, takes_nan: true }
    }

    pub(crate) fn error<T>(&self, kind: JsonErrorKind) -> Scanned<T> {
        Err(JsonError { offset: self.at, kind })
    }

    fn expected<T>(&self, what: &'static str) -> Scanned<T> {
        self.error(if self.at >= self.text.len() {
            JsonErrorKind::UnexpectedEnd
        } else {
            JsonErrorKind::Expected(what)
        })
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips `byte` if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    /// Returns the kind of the value that begins here.
    pub(crate) fn kind(&self) -> Scanned<Kind> {
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't') => Ok(Kind::True),
            Some(b'f') => Ok(Kind::False),
            Some(b'n') if self.text[self.at..].starts_with(b"nan") => self.error(JsonErrorKind::NotFinite),
            Some(b'n') => Ok(Kind::Null),
            Some(b'N') if self.takes_nan && self.text[self.at..].starts_with(b"NaN") => Ok(Kind::Nan),
            Some(b'N' | b'I' | b'+') => self.error(JsonErrorKind::NotFinite),
            _ => self.expected("a value"),
        }
    }

    /// Skips the scalar of this kind that begins here.
    pub(crate) fn scalar(&mut self, kind: Kind) -> Scanned<()> {
        match kind {
            Kind::True => self.word(b"true"),
            Kind::False => self.word(b"false"),
            Kind::Null => self.word(b"null"),
            Kind::Nan => self.word(b"NaN"),
            Kind::Number => self.number(),
            _ => self.string().map(|_| ()),
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Scanned<()> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.expected("true, false or null")
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Scanned<()> {
        let start = self.at;
        let bad = |at| Err(JsonError { offset: at, kind: JsonErrorKind::BadNumber });
        self.eat(b'-');
        if self.text[self.at..].starts_with(b"Inf") {
            return Err(JsonError { offset: start, kind: JsonErrorKind::NotFinite });
        }
        let leading_zero = self.peek() == Some(b'0');
        let first = self.at;
        if !self.digits() || leading_zero && self.at - first > 1 {
            return bad(start);
        }
        if self.eat(b'.') && !self.digits() {
            return bad(start);
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if !self.digits() {
                return bad(start);
            }
        }
        Ok(())
    }

    /// Skips the number that begins here, and returns it; see [`float`].
    pub(crate) fn number_value(&mut self) -> Scanned<f64> {
        let start = self.at;
        let negative = self.eat(b'-');
        let (first, mut mantissa) = (self.at, 0_u64);
        let mut digits = |scanner: &mut Self| {
            let start = scanner.at;
            while let Some(digit @ b'0'..=b'9') = scanner.peek() {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                scanner.at += 1;
            }
            scanner.at - start
        };
        let whole = digits(self);
        let decimals = if self.eat(b'.') { Some(digits(self)) } else { None };
        let count = whole + decimals.unwrap_or(0);
        let is_plain = whole > 0
            && decimals != Some(0)
            && count <= 18
            && (whole == 1 || self.text[first] != b'0')
            && !matches!(self.peek(), Some(b'e' | b'E'));
        if is_plain && mantissa < 1 << 53 {
            // One correctly rounded division, as in `float`.
            let value = mantissa as f64 / POWERS[decimals.unwrap_or(0)];
            return Ok(if negative { -value } else { value });
        }
        self.at = start;
        self.number()?;
        Ok(float(&self.text[start..self.at]))
    }

    /// Skips the string that begins here; returns whether it has escapes.
    pub(crate) fn string(&mut self) -> Scanned<bool> {
        if !self.eat(b'"') {
            return self.expected("a string");
        }
        let (start, mut escapes, mut ascii) = (self.at, false, true);
        loop {
            match self.peek() {
                None => return self.error(JsonErrorKind::UnexpectedEnd),
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(byte) if byte < 0x20 => return self.error(JsonErrorKind::ControlCharacter),
                Some(byte) => {
                    ascii &= byte < 0x80;
                    self.at += 1;
                }
            }
        }
        if !ascii && let Err(e) = std::str::from_utf8(&self.text[start..self.at]) {
            return Err(JsonError { offset: start + e.valid_up_to(), kind: JsonErrorKind::BadUtf8 });
        }
        self.at += 1;
        Ok(escapes)
    }

    /// Skips an escape after the backslash, and returns its character.
    fn escape(&mut self) -> Scanned<char> {
        let bad = JsonError { offset: self.at - 1, kind: JsonErrorKind::BadEscape };
        let byte = self.peek().ok_or(JsonError { offset: self.at, kind: JsonErrorKind::UnexpectedEnd })?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex4().ok_or(bad)?;
                if (0xd800..0xdc00).contains(&code) {
                    if !(self.eat(b'\\') && self.eat(b'u')) {
                        return Err(bad);
                    }
                    let low = self.hex4().filter(|low| (0xdc00..0xe000).contains(low)).ok_or(bad)?;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                char::from_u32(code).ok_or(bad)?
            }
            _ => return Err(bad),
        })
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let code = digits.iter().try_fold(0, |code, &d| Some(code << 4 | (d as char).to_digit(16)?))?;
        self.at += 4;
        Some(code)
    }

    /// Skips the value that begins here, and checks all of it.
    pub(crate) fn skip(&mut self, depth: u32) -> Scanned<()> {
        match self.kind()? {
            Kind::Object => self.members(depth, |scanner, _| scanner.skip(depth + 1)),
            Kind::Array => self.elements(depth, |scanner, _| scanner.skip(depth + 1)),
            kind => self.scalar(kind),
        }
    }

    /// Skips the object that begins here; `value` is called at the beginning of every member's value, with the key as
    /// written (between its quotes), and must skip it.
    pub(crate) fn members(
        &mut self,
        depth: u32,
        mut value: impl FnMut(&mut Self, Key<'t>) -> Scanned<()>,
    ) -> Scanned<()> {
        if depth >= MAX_DEPTH {
            return self.error(JsonErrorKind::TooDeep);
        }
        if !self.eat(b'{') {
            return self.expected("an object");
        }
        self.skip_space();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let start = self.at + 1;
            if self.peek() != Some(b'"') {
                return self.expected("a key in double quotes");
            }
            let escaped = self.string()?;
            let key = Key { raw: &self.text[start..self.at - 1], escaped };
            self.skip_space();
            if !self.eat(b':') {
                return self.expected("':'");
            }
            self.skip_space();
            value(self, key)?;
            self.skip_space();
            if self.eat(b'}') {
                return Ok(());
            }
            if !self.eat(b',') {
                return self.expected("',' or '}'");
            }
            self.skip_space();
        }
    }

    /// Skips the array that begins here; `value` is called at the beginning of every element, with its index, and must
    /// skip it.
    pub(crate) fn elements(
        &mut self,
        depth: u32,
        mut value: impl FnMut(&mut Self, usize) -> Scanned<()>,
    ) -> Scanned<()> {
        if depth >= MAX_DEPTH {
            return self.error(JsonErrorKind::TooDeep);
        }
        self.at += 1;
        self.skip_space();
        if self.eat(b']') {
            return Ok(());
        }
        for index in 0.. {
            value(self, index)?;
            self.skip_space();
            if self.eat(b']') {
                break;
            }
            if !self.eat(b',') {
                return self.expected("',' or ']'");
            }
            self.skip_space();
        }
        Ok(())
    }

    /// Checks that only space follows.
    pub(crate) fn end(&mut self) -> Scanned<()> {
        self.skip_space();
        if self.at < self.text.len() { self.error(JsonErrorKind::TrailingText) } else { Ok(()) }
    }
}

/// Key of a member, as written between its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'t> {
    raw: &'t [u8],
    escaped: bool,
}

impl<'t> Key<'t> {
    /// Returns the text between its quotes, with its escapes.
    pub(crate) fn raw(&self) -> &'t [u8] {
        self.raw
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        if self.escaped {
            unescape(self.raw).is_some_and(|key| key == name)
        } else {
            self.raw == name.as_bytes()
        }
    }
}

/// Returns the text of a string accepted by [`Scanner::string`], given between its quotes.
pub(crate) fn unescape(raw: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(raw.len());
    let mut scanner = Scanner::new(raw);
    while let Some(byte) = scanner.peek() {
        scanner.at += 1;
        if byte == b'\\' {
            let c = scanner.escape().ok()?;
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            text.push(byte);
        }
    }
    String::from_utf8(text).ok()
}

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Returns a number accepted by [`Scanner`] as a double. Beyond the range of doubles it is an infinity, by the rounding
/// of IEEE 754.
pub(crate) fn float(text: &[u8]) -> f64 {
    // Up to 19 digits and a power of ten that a double holds exactly: one correctly rounded division (Clinger 1990).
    // All others take the slow path.
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (mut mantissa, mut decimals, mut point, mut simple) = (0u64, 0, false, digits.len() <= 18);
    if simple {
        for &byte in digits {
            match byte {
                b'0'..=b'9' => {
                    mantissa = mantissa * 10 + u64::from(byte - b'0');
                    decimals += usize::from(point);
                }
                b'.' => point = true,
                _ => {
                    simple = false;
                    break;
                }
            }
        }
    }
    if simple && mantissa < 1 << 53 {
        let value = mantissa as f64 / POWERS[decimals];
        return if negative { -value } else { value };
    }
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::NAN)
}

/// Returns a number accepted by [`Scanner`] if it is an integer that fits; `2.0` and `1e3` are integers, since JSON
/// does not distinguish them.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        // Doubles beyond 2^53 are not exact, and so do not count as integers.
        (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
    })
}

/// Whether a well-formed number is an integer without an equal double.
#[inline]
pub(crate) fn is_rounded(text: &[u8]) -> bool {
    // Integers of up to fifteen digits are below 2^53.
    text.len() > 15 && is_rounded_long(text)
}

#[cold]
fn is_rounded_long(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return false;
    }
    match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(exact), Ok(double)) => double as i128 != exact,
        // Numbers with that many digits are rarely exact.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_by_the_standard_library(
            text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
        ) {
            let mut scanner = Scanner::new(text.as_bytes());
            prop_assert_eq!(scanner.number_value().map(f64::to_bits), Ok(text.parse::<f64>().unwrap().to_bits()));
            prop_assert_eq!(scanner.at, text.len());
        }

        #[test]
        fn a_number_is_refused_where_skipping_refuses_it(text in "[-+]?[0-9.eE+-]{0,6}[ ,x]?") {
            let (mut passed, mut read) = (Scanner::new(text.as_bytes()), Scanner::new(text.as_bytes()));
            prop_assert_eq!(read.number_value().map(|_| ()), passed.number());
        }
    }

    fn check(text: &[u8]) -> Result<(), JsonError> {
        let mut scanner = Scanner::new(text);
        scanner.skip_space();
        scanner.skip(0)?;
        scanner.end()
    }

    #[test]
    fn errors_have_the_position() {
        use JsonErrorKind::*;
        let nested = "[".repeat(200);
        for (text, offset, kind) in [
            ("", 0, UnexpectedEnd),
            ("{", 1, UnexpectedEnd),
            (r#"{"a":1"#, 6, UnexpectedEnd),
            (r#"{"a":1,}"#, 7, Expected("a key in double quotes")),
            (r#"{"a" 1}"#, 5, Expected("':'")),
            (r#"{"a":1 "b":2}"#, 7, Expected("',' or '}'")),
            ("[1 2]", 3, Expected("',' or ']'")),
            ("[1,]", 3, Expected("a value")),
            ("01", 0, BadNumber),
            ("-", 0, BadNumber),
            ("1.", 0, BadNumber),
            ("1e+", 0, BadNumber),
            ("NaN", 0, NotFinite),
            ("-Infinity", 0, NotFinite),
            ("nul", 0, Expected("true, false or null")),
            ("\"a\u{1}\"", 2, ControlCharacter),
            (r#""\x""#, 1, BadEscape),
            (r#""\ud800""#, 1, BadEscape),
            ("{} x", 3, TrailingText),
            (&nested, 128, TooDeep),
        ] {
            assert_eq!(check(text.as_bytes()), Err(JsonError { offset, kind }), "{text}");
        }
        assert_eq!(check(b"\"\xff\""), Err(JsonError { offset: 1, kind: BadUtf8 }));
    }

    #[test]
    fn strings_and_numbers_are_read_exactly() {
        assert_eq!(unescape(br#"a\n\u00e9\ud83d\ude00\/"#).as_deref(), Some("a\n\u{e9}\u{1f600}/"));
        for text in ["0", "-0.0", "12.5", "9007199254740993", "1e400", "123456789012345678", "0.1", "-3.3e-7"]
        {
            assert_eq!(float(text.as_bytes()).to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"1e3"), Some(1000));
        assert_eq!(integer(b"2.5"), None);
        assert_eq!(integer(b"9223372036854775808"), None);
    }

    proptest! {
        #[test]
        fn agrees_with_an_independent_parser(text in r#"[\[\]{}:,"a\\u0-9.eE+\- tfn]{0,12}"#) {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            // The other parser refuses numbers beyond doubles, which are well-formed JSON.
            prop_assume!(!theirs.as_ref().is_err_and(|e| e.to_string().contains("out of range")));
            prop_assert_eq!(check(text.as_bytes()).is_ok(), theirs.is_ok(), "{:?}", text);
        }

        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = check(&text);
        }

        #[test]
        fn floats_are_correctly_rounded(mantissa in any::<i64>(), places in 0usize..20) {
            let digits = format!("{:020}", mantissa.unsigned_abs());
            let (whole, fraction) = digits.split_at(20 - places);
            let whole = if whole.is_empty() { "0" } else { whole };
            let text = format!("{whole}{}{fraction}", if places > 0 { "." } else { "" });
            prop_assert_eq!(float(text.as_bytes()).to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }
}
