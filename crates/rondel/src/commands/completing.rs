//! Completions for the text before a cursor, in editors and at the prompt.

use rondel_spec::{FUNCTIONS, WORDS};

/// Whether a place behind this part of a line is in a text in quotes or in a comment.
pub(super) fn in_text_or_comment(line: &str) -> bool {
    let (mut quoted, mut escaped, mut last) = (false, false, ' ');
    for c in line.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted => return true,
            '/' if !quoted && last == '/' => return true,
            _ => {}
        }
        last = c;
    }
    quoted
}

/// Whether a character belongs to a name.
pub(super) fn belongs(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The path whose members stand behind this text, which ends in a point: `gear` for `x < gear.`.
pub(super) fn path_before(head: &str) -> Option<&str> {
    let path = head.strip_suffix('.')?;
    let start = path.trim_end_matches(|c: char| belongs(c) || matches!(c, '.' | '[' | ']')).len();
    path.get(start..)
}

/// The words of formulas, and whether each is a function.
pub(super) fn words() -> impl Iterator<Item = (&'static str, bool)> {
    let functions = FUNCTIONS.iter().map(|row| (row.name, true));
    functions.chain(WORDS.iter().flat_map(|row| {
        let is_call = |word: &str| row.call.contains(&format!("{word}("));
        row.names.iter().map(move |word| (*word, is_call(word)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_are_left_alone() {
        for (line, expected) in [
            ("property p = a.", false),
            ("property p = a.t == \"b", true),
            ("property p = a.t == \"b\" and ", false),
            ("property p = a.t == \"\\\"b", true),
            ("# once", true),
            ("property p = a.x // once", true),
            ("topic a \"/b//c\" ", false),
            ("property p = a.x / 2", false),
        ] {
            assert_eq!(in_text_or_comment(line), expected, "{line}");
        }
    }

    #[test]
    fn a_path_ends_at_its_point() {
        for (head, expected) in [
            ("gear.", Some("gear")),
            ("not scan.parts[0].", Some("scan.parts[0]")),
            ("x < a.b.", Some("a.b")),
            (".", Some("")),
            ("gear", None),
        ] {
            assert_eq!(path_before(head), expected, "{head}");
        }
    }
}
