//! Texts from outside in lines for people: on terminals, in logs, and in files that editors show.

use std::borrow::Cow;

/// Whether a terminal obeys a character, or shows the characters after it in another order or place: control characters,
/// marks and overrides of the direction, and other characters without a width. Those that join letters, as Persian and
/// emoji need them, are not.
///
/// ```
/// use rondel_event::terminal::is_obeyed;
/// assert!(is_obeyed('\u{1b}') && is_obeyed('\u{202e}') && !is_obeyed('é'));
/// ```
#[inline]
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || c > '~'
            && matches!(c,
                '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text in one line, with those characters escaped that a terminal [obeys](is_obeyed).
///
/// ```
/// use rondel_event::terminal::escaped;
/// assert_eq!(escaped("odometry"), "odometry");
/// assert_eq!(escaped("a\n\x1b[31mb\u{202e}"), "a\\n\\u{1b}[31mb\\u{202e}");
/// ```
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_if(text, is_obeyed)
}

/// Returns a JSON text in one line, with those characters of its strings escaped, as JSON does, that a terminal
/// [obeys](is_obeyed). Its value stays the same.
///
/// ```
/// use rondel_event::terminal::escaped_json;
/// assert_eq!(escaped_json("{\n\"a\": \"\u{202e}\"}"), "{ \"a\": \"\\u202e\"}");
/// ```
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_obeyed) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        match c {
            // Strings of JSON have none of these.
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_obeyed(c) => {
                out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out.into()
}

/// Returns the beginning of a text, of at most `most` of its characters, as [`escaped`] does.
pub fn escaped_beginning(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    escaped(&text[..end]).into_owned()
}

/// Returns a text with its line breaks and tabs, and other characters as [`escaped`] shows them.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_if(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

fn escaped_if(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return text.into() };
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obeyed_characters_are_escaped() {
        for text in ["tür 門 🚗", "می\u{200c}خواهم", "👩\u{200d}🚀"] {
            assert_eq!(escaped(text), text);
        }
        assert_eq!(escaped("a\x1b[31mb\n\u{9b}c\u{202e}d"), "a\\u{1b}[31mb\\n\\u{9b}c\\u{202e}d");
        let overrides = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        for c in overrides.chain(['\u{200e}', '\u{200f}', '\u{61c}', '\u{feff}', '\u{ad}', '\u{7f}', '\0']) {
            assert!(is_obeyed(c), "{c:?}");
            assert!(escaped(&c.to_string()).is_ascii(), "{c:?}");
        }
    }

    #[test]
    fn line_breaks_may_stay() {
        assert_eq!(escaped_lines("a\n\tb\r\u{2066}c"), "a\n\tb\\r\\u{2066}c");
        assert!(matches!(escaped_lines("a\nb"), Cow::Borrowed(_)));
    }

    #[test]
    fn beginnings_are_counted_in_characters() {
        assert_eq!(escaped_beginning("é\u{202e}ab", 3), "é\\u{202e}a");
        assert_eq!(escaped_beginning("é", 3), "é");
        assert_eq!(escaped_beginning("é", 0), "");
    }
}
