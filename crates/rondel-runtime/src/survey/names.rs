//! Names for topics and properties: valid, and each only once.

use std::collections::BTreeSet;

/// Words that are not used as names, though the language allows some of them.
const WORDS: &[&str] = &[
    "abs",
    "age",
    "always",
    "and",
    "changed",
    "const",
    "count",
    "else",
    "eventually",
    "exists",
    "falling",
    "false",
    "forall",
    "historically",
    "if",
    "jitter",
    "latency",
    "let",
    "max",
    "mean",
    "min",
    "next",
    "not",
    "on",
    "once",
    "or",
    "prev",
    "previously",
    "property",
    "rate",
    "reaction",
    "rising",
    "since",
    "sum",
    "then",
    "topic",
    "true",
    "until",
];

/// Last parts of addresses that say nothing without the part before.
const VAGUE: &[&str] = &["data", "raw", "value", "data_raw", "image_raw", "out", "cmd"];

/// Characters of a name.
const LONGEST: usize = 64;

/// Whether a text is a name in a specification.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        && !WORDS.contains(&text)
}

/// Returns a name that resembles a text.
pub(super) fn name_like(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().take(LONGEST) {
        let letter = if letter.is_ascii_alphanumeric() { letter } else { '_' };
        if letter != '_' || !name.ends_with('_') {
            name.push(letter);
        }
    }
    let name = name.trim_matches('_');
    match name.bytes().next() {
        None => "topic_".to_owned(),
        Some(b'0'..=b'9') => format!("t_{name}"),
        _ if WORDS.contains(&name) => format!("{name}_"),
        _ => name.to_owned(),
    }
}

/// Names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Takes a name, with a number behind it if it is taken already.
    pub(super) fn take(&mut self, name: String) -> String {
        self.take_unless(name, |_| false)
    }

    /// Takes a name, with a number behind it if it is taken already, or excluded.
    fn take_unless(&mut self, name: String, is_excluded: impl Fn(&str) -> bool) -> String {
        let mut taken = name.clone();
        let mut number = 2;
        while is_excluded(&taken) || !self.0.insert(taken.clone()) {
            taken = format!("{name}_{number}");
            number += 1;
        }
        taken
    }
}

/// Returns a name for each topic: the last part of its address, with the parts before it where that is not enough. None is
/// the address of another topic, whose messages it would get.
pub(super) fn topics<'a>(addresses: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    const PARTS: usize = 3;
    let parts = |address: &str, count: usize| {
        let parts: Vec<&str> = address.split('/').filter(|part| !part.is_empty()).collect();
        name_like(&parts[parts.len().saturating_sub(count)..].join("_"))
    };
    let mut count: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    addresses.clone().for_each(|address| *count.entry(parts(address, 1)).or_default() += 1);
    let mut names = Names::default();
    let wanted = |address| {
        let short = parts(address, 1);
        match count.get(&short) {
            Some(1) if VAGUE.contains(&&*short) => parts(address, 2),
            Some(1) => short,
            _ => parts(address, PARTS),
        }
    };
    let all: BTreeSet<&str> = addresses.clone().collect();
    let take =
        |address: &'a str| names.take_unless(wanted(address), |name| name != address && all.contains(name));
    addresses.map(take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        let addresses = [
            "demo/gear",
            "a/b/state",
            "c/b/state",
            "1/2/3",
            "",
            "x/rate",
            "x/größe",
            "-",
            "a/b/state",
            "/imu/data",
        ];
        let names = topics(addresses.into_iter());
        let expected = [
            "gear",
            "a_b_state",
            "c_b_state",
            "t_3",
            "topic_",
            "rate_",
            "gr_e",
            "topic__2",
            "a_b_state_2",
            "imu_data",
        ];
        let names_of = |addresses: &[&'static str]| topics(addresses.iter().copied());
        assert_eq!(names_of(&["/a", "a", "a/"]), ["a_2", "a", "a_3"], "no name is another's address");
        assert_eq!(names_of(&["x/a", "a", "y/a_2", "a_2"]), ["x_a", "a", "y_a_2", "a_2"]);
        // Two addresses have no letters at all: each gets the same name, with a number.
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| is_name(name)));
    }
}
