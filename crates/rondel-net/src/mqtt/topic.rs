//! Topics and filters: what may be published on, what may be subscribed to, and which meets which.

use super::DeclareError;

/// The longest text that MQTT can carry.
const LONGEST: usize = u16::MAX as usize;

/// Checks the name of a topic to publish on.
///
/// # Errors
/// [`DeclareError::Topic`] with the reason.
pub fn check_topic(topic: &str) -> Result<(), DeclareError> {
    let wrong = |reason| Err(DeclareError::Topic { topic: topic.to_owned(), reason });
    match topic {
        "" => wrong("it is empty"),
        _ if topic.contains(['+', '#']) => wrong("+ and # are for subscriptions"),
        _ if topic.contains('\0') => wrong("it contains a zero byte"),
        _ if topic.len() > LONGEST => wrong("it is too long"),
        _ => Ok(()),
    }
}

/// Checks what is to be subscribed to: `a/b`, `a/+/c`, `a/#`, `$share/GROUP/FILTER`.
///
/// # Errors
/// [`DeclareError::Topic`] with the reason.
pub fn check_filter(filter: &str) -> Result<(), DeclareError> {
    let wrong = |reason| Err(DeclareError::Topic { topic: filter.to_owned(), reason });
    if filter.contains('\0') {
        return wrong("it contains a zero byte");
    }
    if filter.len() > LONGEST {
        return wrong("it is too long");
    }
    let shared = filter.strip_prefix("$share/");
    let topics = match shared.map(|rest| rest.split_once('/')) {
        None => filter,
        Some(Some((group, topics))) if !group.is_empty() && !group.contains(['+', '#']) => topics,
        Some(_) => return wrong("a shared subscription is $share/GROUP/TOPIC"),
    };
    if topics.is_empty() {
        return wrong("it is empty");
    }
    let mut levels = topics.split('/').peekable();
    while let Some(level) = levels.next() {
        if level.contains('#') && (level != "#" || levels.peek().is_some()) {
            return wrong("# stands alone, at the end");
        }
        if level.contains('+') && level != "+" {
            return wrong("+ stands for a whole level");
        }
    }
    Ok(())
}

/// Whether a filter is of a single topic, on which one can publish as well.
pub fn is_single(filter: &str) -> bool {
    !filter.contains(['+', '#']) && !filter.starts_with("$share/")
}

/// The topics that a filter is of: itself, but for a shared subscription.
pub(super) fn topics_of(filter: &str) -> &str {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    shared.map_or(filter, |(_, topics)| topics)
}

/// Whether there is a topic that both filters (or topics) are of.
pub fn filters_meet(one: &str, other: &str) -> bool {
    let (one, other) = (topics_of(one), topics_of(other));
    let wild = |filter: &str| filter.starts_with(['+', '#']);
    // What begins with $ belongs to the broker; wildcards leave it out.
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
    fn filters_meet_where_a_topic_is_of_both() {
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
