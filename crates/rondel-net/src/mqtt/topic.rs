//! Topic names and topic filters: validity and overlap.

use super::DeclareError;

/// Length limit of a string in MQTT, in bytes.
const LONGEST: usize = u16::MAX as usize;

/// Checks a topic name to publish on.
///
/// # Errors
/// [`DeclareError::Topic`] with the reason.
pub fn check_topic(topic: &str) -> Result<(), DeclareError> {
    let wrong = |reason| Err(DeclareError::Topic { topic: topic.to_owned(), reason });
    match topic {
        "" => wrong("it is empty"),
        _ if topic.contains(['+', '#']) => wrong("the wildcards + and # are only allowed in subscriptions"),
        _ if topic.contains('\0') => wrong("it contains a zero byte"),
        _ if topic.len() > LONGEST => wrong("it is longer than 65,535 bytes"),
        _ => Ok(()),
    }
}

/// Checks a topic filter to subscribe to: `a/b`, `a/+/c`, `a/#`, `$share/GROUP/FILTER`.
///
/// # Errors
/// [`DeclareError::Topic`] with the reason.
pub fn check_filter(filter: &str) -> Result<(), DeclareError> {
    let wrong = |reason| Err(DeclareError::Topic { topic: filter.to_owned(), reason });
    if filter.contains('\0') {
        return wrong("it contains a zero byte");
    }
    if filter.len() > LONGEST {
        return wrong("it is longer than 65,535 bytes");
    }
    let shared = filter.strip_prefix("$share/");
    let topics = match shared.map(|rest| rest.split_once('/')) {
        None => filter,
        Some(Some((group, topics))) if !group.is_empty() && !group.contains(['+', '#']) => topics,
        Some(_) => return wrong("a shared subscription is written $share/GROUP/TOPIC"),
    };
    if topics.is_empty() {
        return wrong("it is empty");
    }
    let mut levels = topics.split('/').peekable();
    while let Some(level) = levels.next() {
        if level.contains('#') && (level != "#" || levels.peek().is_some()) {
            return wrong("# must be the whole last level");
        }
        if level.contains('+') && level != "+" {
            return wrong("+ must be a whole level");
        }
    }
    Ok(())
}

/// Whether a filter matches only one topic, and so is also a topic name.
pub fn is_single(filter: &str) -> bool {
    !filter.contains(['+', '#']) && !filter.starts_with("$share/")
}

/// Returns the filter without the `$share/GROUP/` of a shared subscription.
pub(super) fn topics_of(filter: &str) -> &str {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    shared.map_or(filter, |(_, topics)| topics)
}

/// Whether some topic matches both filters (or topic names).
pub fn filters_meet(one: &str, other: &str) -> bool {
    let (one, other) = (topics_of(one), topics_of(other));
    let wild = |filter: &str| filter.starts_with(['+', '#']);
    // Wildcards do not match the broker's own topics, which begin with $.
    if wild(one) && other.starts_with('$') || wild(other) && one.starts_with('$') {
        return false;
    }
    let (mut ones, mut others) = (one.split('/'), other.split('/'));
    loop {
        match (ones.next(), others.next()) {
            (Some("#"), _) | (_, Some("#")) | (None, None) => return true,
            (Some(a), Some(b)) if a == b || a == "+" || b == "+" => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_topics_are_checked() {
        for good in ["a", "a/b", "/", "a//b", "+", "#", "+/a/#", "$share/g/a/+", "$SYS/#", "a b/ü"] {
            assert!(check_filter(good).is_ok(), "{good}");
        }
        for bad in
            ["", "a/#/b", "a#", "a+", "+a/b", "$share/g", "$share//a", "$share/+/a", "$share/g/", "a\0"]
        {
            assert!(check_filter(bad).is_err(), "{bad}");
        }
        assert!(check_filter(&"a".repeat(70_000)).is_err());
        assert!(check_topic("a/b").is_ok());
        for bad in ["", "a/+", "#", "a\0"] {
            assert!(check_topic(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn filters_overlap_if_a_topic_matches_both() {
        for (one, other) in [
            ("a/b", "a/b"),
            ("a/+", "a/b"),
            ("a/#", "a"),
            ("a/#", "a/b/c"),
            ("+/b", "a/+"),
            ("#", "a"),
            ("#", "/"),
            ("+/+", "/a"),
            ("$share/g/a/+", "a/b"),
            ("a/+/c", "a/b/#"),
            ("$SYS/#", "$SYS/a"),
        ] {
            assert!(filters_meet(one, other) && filters_meet(other, one), "{one} {other}");
        }
        for (one, other) in
            [("a", "b"), ("a/+", "a"), ("a/+", "a/b/c"), ("#", "$SYS/a"), ("+/a", "$SYS/a"), ("a/b/#", "a/c")]
        {
            assert!(!filters_meet(one, other) && !filters_meet(other, one), "{one} {other}");
        }
    }
}
