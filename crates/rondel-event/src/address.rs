//! Addresses with parameters, such as `fleet/{robot}/pose`: matching names of topics, and the values of the parameters
//! in a name.

use std::fmt;
use std::ops::Range;

/// An address with at least one parameter. A parameter stands for one or more characters within a segment of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    segments: Vec<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Parameter(String),
}

/// Number of a topic name that matches an address with parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Reason why a text is no address with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressFault {
    /// Range of the mistake in the text, in bytes.
    pub range: Range<usize>,
    /// Description of the mistake.
    pub message: String,
    /// Correct form.
    pub advice: &'static str,
}

impl fmt::Display for AddressFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl AddressPattern {
    /// Reads an address; `None` if it has no braces, and so is a plain name.
    ///
    /// # Errors
    /// Where a brace, a parameter or a segment is wrong.
    pub fn parse(text: &str) -> Result<Option<AddressPattern>, AddressFault> {
        if !text.contains(['{', '}']) {
            return Ok(None);
        }
        let mut segments: Vec<Vec<Part>> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut at = 0_usize;
        for (position, segment) in text.split('/').enumerate() {
            // A name may begin with a slash, as those of ROS 2 do.
            if segment.is_empty() && position > 0 {
                let range = at.saturating_sub(1)..at;
                return Err(fault(range, "a segment of the address is empty", "remove one `/`"));
            }
            let parts = segment_parts(segment, at)?;
            for (part, range) in &parts {
                let Part::Parameter(name) = part else { continue };
                if names.contains(name) {
                    let message = format!("the parameter `{name}` stands twice in the address");
                    return Err(fault(range.clone(), message, "give each parameter a name of its own"));
                }
                names.push(name.clone());
            }
            segments.push(parts.into_iter().map(|(part, _)| part).collect());
            at += segment.len() + 1;
        }
        Ok(Some(AddressPattern { segments }))
    }

    /// Returns the address without its leading slash, which recordings and Zenoh leave out.
    #[must_use]
    pub fn without_slash(mut self) -> AddressPattern {
        if self.segments.len() > 1 && self.segments.first().is_some_and(Vec::is_empty) {
            self.segments.remove(0);
        }
        self
    }

    /// The names of the parameters, in the order of the address.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|part| match part {
            Part::Parameter(name) => Some(&**name),
            Part::Text(_) => None,
        })
    }

    /// Returns the values of the parameters in a name, in order; `None` if it does not match. Within a segment each
    /// parameter but the last takes as few characters as possible.
    pub fn captures<'n>(&self, name: &'n str) -> Option<Vec<&'n str>> {
        let mut texts = Vec::new();
        let mut names = name.split('/');
        for parts in &self.segments {
            capture(parts, names.next()?, &mut texts)?;
        }
        names.next().is_none().then_some(texts)
    }

    /// Returns the name whose parameters have these texts; `None` if one of them has none.
    pub fn filled<'t>(&self, text: impl Fn(&str) -> Option<&'t str>) -> Option<String> {
        let segment = |parts: &Vec<Part>| -> Option<String> {
            let mut whole = String::new();
            for part in parts {
                match part {
                    Part::Text(own) => whole.push_str(own),
                    Part::Parameter(name) => whole.push_str(text(name)?),
                }
            }
            Some(whole)
        };
        let segments: Vec<String> = self.segments.iter().map(segment).collect::<Option<_>>()?;
        Some(segments.join("/"))
    }

    /// The filter of MQTT that delivers every name that matches, and others where a parameter is only part of a
    /// segment.
    pub fn filter(&self) -> String {
        self.written(|parts| match parts.iter().any(|part| matches!(part, Part::Parameter(_))) {
            true => "+".to_owned(),
            false => written(parts, ""),
        })
    }

    /// The key expression of Zenoh that delivers every name that matches, and others with an empty parameter.
    pub fn key_expression(&self) -> String {
        let key = self.written(|parts| match parts {
            [Part::Parameter(_)] => "*".to_owned(),
            parts => written(parts, "$*"),
        });
        key.strip_prefix('/').unwrap_or(&key).to_owned()
    }

    /// The pattern of DDS that every name fits that matches, and others too: its `*` stands for any characters, `/` and
    /// none at all among them.
    pub fn glob(&self) -> String {
        self.written(|parts| written(parts, "*"))
    }

    fn written(&self, segment: impl Fn(&[Part]) -> String) -> String {
        let segments: Vec<String> = self.segments.iter().map(|parts| segment(parts)).collect();
        segments.join("/")
    }
}

fn written(parts: &[Part], parameter: &str) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Parameter(_) => parameter.to_owned(),
    };
    parts.iter().map(text).collect()
}

fn fault(range: Range<usize>, message: impl Into<String>, advice: &'static str) -> AddressFault {
    AddressFault { range, message: message.into(), advice }
}

/// The parts of a segment that begins at byte `at` of the address, each with its bytes.
fn segment_parts(segment: &str, at: usize) -> Result<Vec<(Part, Range<usize>)>, AddressFault> {
    const NAME: &str = "write a name in the braces: `{robot}`";
    let mut parts: Vec<(Part, Range<usize>)> = Vec::new();
    let mut from = 0;
    while let Some(rest) = segment.get(from..).filter(|rest| !rest.is_empty()) {
        let start = at + from;
        let Some(inner) = rest.strip_prefix('{') else {
            let len = rest.find('{').unwrap_or(rest.len());
            let text = rest.get(..len).unwrap_or(rest);
            if let Some(brace) = text.find('}') {
                let range = start + brace..start + brace + 1;
                return Err(fault(range, "this `}` closes no parameter", NAME));
            }
            if let Some(wildcard) = text.find(['*', '+', '#']) {
                let range = start + wildcard..start + wildcard + 1;
                let advice = "write a parameter in place of each wildcard: `fleet/{robot}/{sensor}`";
                return Err(fault(range, "an address with parameters has no wildcards", advice));
            }
            parts.push((Part::Text(text.to_owned()), start..start + len));
            from += len;
            continue;
        };
        let Some(len) = inner.find('}') else {
            return Err(fault(start..start + rest.len(), "this parameter is not closed", NAME));
        };
        let name = inner.get(..len).unwrap_or(inner);
        let range = start..start + len + 2;
        let mut letters = name.chars();
        let is_name = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_');
        if !is_name {
            let message = match name.is_empty() {
                true => "this parameter has no name".to_owned(),
                false => format!("`{name}` is no name of a parameter"),
            };
            return Err(fault(range, message, NAME));
        }
        if let Some((Part::Parameter(_), before)) = parts.last() {
            let advice = "write a `/` or a text between them: `{a}_{b}`";
            return Err(fault(before.start..range.end, "nothing separates these parameters", advice));
        }
        parts.push((Part::Parameter(name.to_owned()), range));
        from += len + 2;
    }
    Ok(parts)
}

/// Whether some name matches two patterns, in which `*` stands for any characters and `?` for one.
pub fn globs_meet(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // Whether a name can match both so much of `one` and up to here of `other`.
    let width = other.len() + 1;
    let mut before = vec![false; width];
    for i in 0..=one.len() {
        let mut now = vec![false; width];
        for j in 0..width {
            let (a, b) = (i.checked_sub(1).map(|i| one[i]), j.checked_sub(1).map(|j| other[j]));
            now[j] = match (a, b) {
                (None, None) => true,
                // A wildcard takes nothing, or one more character of the other pattern, whatever that is.
                (Some(b'*'), _) if before[j] || (b.is_some() && now[j - 1]) => true,
                (_, Some(b'*')) if now[j - 1] || (a.is_some() && before[j]) => true,
                (Some(a), Some(b)) => before[j - 1] && (a == b || a == b'?' || b == b'?'),
                _ => false,
            };
        }
        before = now;
    }
    before[other.len()]
}

/// Adds what the parameters of one segment take of a segment of a name.
fn capture<'n>(parts: &[Part], mut name: &'n str, texts: &mut Vec<&'n str>) -> Option<()> {
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Text(text) => name = name.strip_prefix(&**text)?,
            Part::Parameter(_) => {
                // A parameter has one character at least.
                let first = name.chars().next()?.len_utf8();
                let len = match parts.next() {
                    Some(Part::Text(text)) if parts.peek().is_none() => {
                        let len = name.strip_suffix(&**text)?.len();
                        texts.push(name.get(..len).filter(|taken| !taken.is_empty())?);
                        return Some(());
                    }
                    Some(Part::Text(text)) => {
                        let len = first + name.get(first..)?.find(&**text)?;
                        texts.push(name.get(..len)?);
                        len + text.len()
                    }
                    // Two parameters never touch.
                    Some(Part::Parameter(_)) | None => {
                        texts.push(name);
                        name.len()
                    }
                };
                name = name.get(len..)?;
            }
        }
    }
    name.is_empty().then_some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> AddressPattern {
        AddressPattern::parse(text).unwrap().unwrap()
    }

    #[test]
    fn names_give_their_texts_to_the_parameters() {
        let cases: [(&str, &str, Option<&[&str]>); 14] = [
            ("fleet/{robot}/pose", "fleet/r1/pose", Some(&["r1"])),
            ("fleet/{robot}/pose", "fleet/r1/speed", None),
            ("fleet/{robot}/pose", "fleet//pose", None),
            ("fleet/{robot}/pose", "fleet/r1/a/pose", None),
            ("fleet/{robot}/pose", "fleet/r1", None),
            ("/fleet/{robot}", "/fleet/ü1", Some(&["ü1"])),
            ("{site}/{robot}", "a/b", Some(&["a", "b"])),
            ("robot_{id}/pose", "robot_7/pose", Some(&["7"])),
            ("robot_{id}/pose", "robot_/pose", None),
            ("{id}_pose", "a_pose_pose", Some(&["a_pose"])),
            ("{a}_{b}", "x_y_z", Some(&["x", "y_z"])),
            ("{a}_{b}", "__z", Some(&["_", "z"])),
            ("{a}_{b}!", "x_!", None),
            ("{a}-{b}-c", "1-2-3-c", Some(&["1", "2-3"])),
        ];
        for (address, name, expected) in cases {
            assert_eq!(pattern(address).captures(name).as_deref(), expected, "{address} on {name}");
        }
        assert_eq!(AddressPattern::parse("fleet/r1/pose"), Ok(None));
        assert_eq!(pattern("/{robot}").without_slash().captures("r1"), Some(vec!["r1"]));
        assert_eq!(pattern("{robot}").without_slash().captures("/r1"), None);
        assert_eq!(pattern("{site}/r_{robot}").parameters().collect::<Vec<_>>(), ["site", "robot"]);
    }

    #[test]
    fn texts_give_a_name_to_the_parameters() {
        let text =
            |name: &str| [("site", "a"), ("robot", "7")].into_iter().find(|of| of.0 == name).map(|of| of.1);
        for (address, expected) in [
            ("{site}/{robot}", Some("a/7")),
            ("/fleet/r_{robot}/{site}/pose", Some("/fleet/r_7/a/pose")),
            ("{site}/{zone}", None),
        ] {
            assert_eq!(pattern(address).filled(text).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn wildcards_cover_every_matching_name() {
        let cases = [
            ("fleet/{robot}/pose", "fleet/+/pose", "fleet/*/pose"),
            ("/fleet/r_{robot}", "/fleet/+", "fleet/r_$*"),
            ("{a}_{b}/x", "+/x", "$*_$*/x"),
        ];
        for (address, filter, key) in cases {
            assert_eq!(
                (pattern(address).filter(), pattern(address).key_expression()),
                (filter.into(), key.into())
            );
        }
    }

    #[test]
    fn mistakes_name_their_place() {
        let cases = [
            ("fleet/{}/pose", "{}", "this parameter has no name"),
            ("fleet/{1}/pose", "{1}", "`1` is no name of a parameter"),
            ("fleet/{a b}", "{a b}", "`a b` is no name of a parameter"),
            ("a/{x}{y}/b", "{x}{y}", "nothing separates these parameters"),
            ("{a}/{a}", "{a}", "the parameter `a` stands twice in the address"),
            ("{a/b}", "{a", "this parameter is not closed"),
            ("a}/{b}", "}", "this `}` closes no parameter"),
            ("{a}/**", "*", "an address with parameters has no wildcards"),
            ("{a}//b", "/", "a segment of the address is empty"),
            ("{a}/", "/", "a segment of the address is empty"),
        ];
        for (address, place, message) in cases {
            let fault = AddressPattern::parse(address).unwrap_err();
            assert_eq!((address.get(fault.range).unwrap(), &*fault.message), (place, message), "{address}");
        }
    }
}
