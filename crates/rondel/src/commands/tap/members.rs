//! Parts of a JSON text, byte for byte.

/// The members of an object: the name of each, as between its quotes, and the value. Other values have none.
///
/// The text must be JSON. For other text the members are unspecified, but iteration ends.
pub struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Members<'a> {
    /// The members of this value.
    pub fn of(json: &'a [u8]) -> Members<'a> {
        Members { rest: json.trim_ascii_start().strip_prefix(b"{").unwrap_or_default() }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.trim_ascii_start();
        let rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.first() != Some(&b'"') {
            return None;
        }
        let (name, rest) = rest.split_at(length(rest));
        let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, rest) = rest.split_at(length(rest));
        self.rest = rest;
        Some((name.get(1..name.len() - 1)?, value))
    }
}

/// The value of a field; `path` has one name per level. If a name is repeated, its last value counts.
pub fn find<'a>(json: &'a [u8], path: &[String]) -> Option<&'a [u8]> {
    path.iter().try_fold(json, |value, name| {
        Members::of(value).filter(|(key, _)| is_named(key, name)).last().map(|(_, value)| value)
    })
}

fn is_named(key: &[u8], name: &str) -> bool {
    if !key.contains(&b'\\') {
        return key == name.as_bytes();
    }
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == name)
}

/// The length of the value at the beginning of a text.
fn length(json: &[u8]) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (i, byte) in json.iter().enumerate() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    quoted = false;
                    if depth == 0 {
                        return i + 1;
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return i,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return i,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_with_their_text() {
        let find = |json: &'static str, path: &str| {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            find(json.as_bytes(), &path).map(String::from_utf8_lossy)
        };
        let message =
            " { \"a\" : {\"b\":[1, {\"c\":2}] , \"c\" : 1.10} ,\"s\":\"x\\\"},\",\"n\":1e400,\"n\":7}";
        assert_eq!(find(message, "a.c").as_deref(), Some("1.10"));
        assert_eq!(find(message, "a.b").as_deref(), Some("[1, {\"c\":2}]"));
        assert_eq!(find(message, "s").as_deref(), Some("\"x\\\"},\""));
        assert_eq!(find(message, "n").as_deref(), Some("7"));
        assert_eq!((find(message, "a.d"), find(message, "s.a"), find("[1]", "a")), (None, None, None));
        assert_eq!(find("{\"\\u0061\\\"\":true}", "a\"").as_deref(), Some("true"));
        // Text that is not JSON returns no wrong value, and ends.
        for broken in ["", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "{\"b\":]", "{,,"] {
            assert!(find(broken, "a").is_none_or(|value| value.is_empty()), "{broken}");
        }
    }
}
