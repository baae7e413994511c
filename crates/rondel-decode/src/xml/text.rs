//! Characters, names and references of XML.

use super::fault::XmlFault;

/// Returns the part of a name after its prefix.
pub(super) fn local(name: &[u8]) -> &[u8] {
    memchr::memrchr(b':', name).map_or(name, |colon| &name[colon + 1..])
}

/// Whether a name may be one of an element or attribute. Characters outside ASCII are not distinguished.
pub(super) fn is_name(name: &[u8]) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_' || *byte >= 0x80;
    let continues = |byte: &u8| begins(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let mut parts = name.split(|byte| *byte == b':');
    let is_part = |part: &[u8]| part.first().is_some_and(begins) && part.iter().all(continues);
    parts.next().is_some_and(is_part) && parts.next().is_none_or(is_part) && parts.next().is_none()
}

/// Returns the character of a reference, given without `&` and `;`.
pub(super) fn character(name: &[u8]) -> Option<char> {
    let digits = match name {
        b"lt" => return Some('<'),
        b"gt" => return Some('>'),
        b"amp" => return Some('&'),
        b"apos" => return Some('\''),
        b"quot" => return Some('"'),
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?,
        _ => return None,
    };
    let (digits, radix) = digits.strip_prefix('x').map_or((digits, 10), |digits| (digits, 16));
    // A sign is no digit.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let character = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    let is_allowed = matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    is_allowed.then_some(character)
}

/// Appends text; the end of a line becomes a line feed.
///
/// # Errors
/// The offset of a character that XML does not allow.
pub(super) fn append(text: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let is_plain = |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\n');
    let mut at = 0;
    while let Some(length) = text[at..].iter().position(|byte| !is_plain(byte)) {
        out.extend_from_slice(&text[at..at + length]);
        at += length;
        if text[at] != b'\r' {
            return Err(at);
        }
        at += 1;
        if text.get(at) != Some(&b'\n') {
            out.push(b'\n');
        }
    }
    out.extend_from_slice(&text[at..]);
    Ok(())
}

/// Appends the value of an attribute, with the characters of references; white space becomes spaces.
pub(super) fn append_value(value: &[u8], out: &mut Vec<u8>) -> Result<(), XmlFault> {
    let mut rest = value;
    while let Some(length) = memchr::memchr(b'&', rest) {
        append_spaced(&rest[..length], out)?;
        let reference = &rest[length + 1..];
        let end = memchr::memchr(b';', reference).ok_or(XmlFault::Entity)?;
        let character = character(&reference[..end]).ok_or(XmlFault::Entity)?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &reference[end + 1..];
    }
    append_spaced(rest, out)
}

fn append_spaced(text: &[u8], out: &mut Vec<u8>) -> Result<(), XmlFault> {
    let start = out.len();
    append(text, out).map_err(|_| XmlFault::Character)?;
    for byte in &mut out[start..] {
        if matches!(byte, b'\t' | b'\n') {
            *byte = b' ';
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_prefix_or_none() {
        for name in ["a", "_a-1.b", "ns:flight", "é", "n\u{e9}:é2"] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in ["", "1a", "-a", ".a", "a:", ":a", "a:b:c", "a:1", "a\"b", "a/b", "a=b"] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
        assert_eq!((local(b"ns:a"), local(b"a")), (&b"a"[..], &b"a"[..]));
    }

    #[test]
    fn references_are_characters() {
        for (name, expected) in [
            ("lt", Some('<')),
            ("#65", Some('A')),
            ("#x1F600", Some('\u{1f600}')),
            ("#10", Some('\n')),
            ("#0", None),
            ("#xD800", None),
            ("#xFFFE", None),
            ("#x110000", None),
            ("#+65", None),
            ("#", None),
            ("#x", None),
            ("#X41", None),
            ("nbsp", None),
            ("LT", None),
            ("", None),
        ] {
            assert_eq!(character(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn ends_of_lines_are_line_feeds() {
        let text = |text: &str| {
            let mut out = Vec::new();
            append(text.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(text("a\r\nb\rc\n\td").as_deref(), Ok("a\nb\nc\n\td"));
        assert_eq!(text("\r"), Ok("\n".to_owned()));
        assert_eq!(text("ab\u{1}"), Err(2));
        let value = |text: &str| {
            let mut out = Vec::new();
            append_value(text.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(value("a\r\n\tb&#10;&amp;c").as_deref(), Ok("a  b\n&c"));
        for wrong in ["a & b", "&", "&x;", "a&lt"] {
            assert_eq!(value(wrong), Err(XmlFault::Entity), "{wrong}");
        }
    }
}
