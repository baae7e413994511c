//! Search for the names of topics in recordings among the names and patterns that are read.

#[cfg(test)]
mod tests;

use rondel_event::AddressPattern;

/// Networks that may precede a name, as written by `rondel tap`.
const NETWORKS: [&str; 5] = ["zenoh", "dds", "mqtt", "kafka", "ros2"];

/// Returns the position of the topic with this name. A full name takes precedence over one without its network, an
/// exact name over a pattern, an earlier topic over a later one.
pub fn find_topic<'n>(topics: impl Iterator<Item = &'n [String]> + Clone, recorded: &str) -> Option<usize> {
    let position = |matches: &dyn Fn(&str, &str) -> bool| {
        let names = std::iter::once(recorded).chain(without_network(recorded));
        names
            .into_iter()
            .find_map(|name| topics.clone().position(|own| own.iter().any(|own| matches(own, name))))
    };
    position(&|own, name| own == name)
        .or_else(|| position(&|own, name| without_slash(own) == without_slash(name)))
        .or_else(|| position(&is_matched))
        // A name may also be an address.
        .or_else(|| {
            position(&|own, name| {
                without_network(own).is_some_and(|own| without_slash(own) == without_slash(name))
            })
        })
        .or_else(|| position(&|own, name| without_network(own).is_some_and(|own| is_matched(own, name))))
        // Recordings of ROS 2 have topics by their names in ROS 2.
        .or_else(|| position(&|own, name| ros2_on_dds(own).is_some_and(|own| own == name)))
        .or_else(|| position(&|own, name| ros2_on_dds(own).is_some_and(|own| is_matched(own, name))))
}

/// Returns the name in ROS 2 of a topic of DDS, which may include its network: `/odom` for `rt/odom`.
fn ros2_on_dds(name: &str) -> Option<&str> {
    let name = match name.split_once(':') {
        Some(("dds", name)) => name,
        Some(_) => return None,
        None => name,
    };
    name.strip_prefix("rt").filter(|name| name.starts_with('/'))
}

/// Returns the name without its network, if it has one: `zenoh:NAME` or `zenoh+ENCODING:NAME`.
pub fn without_network(name: &str) -> Option<&str> {
    let (address, name) = name.split_once(':')?;
    let network = address.split_once('+').map_or(address, |(network, _)| network);
    NETWORKS.contains(&network).then_some(name)
}

fn without_slash(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// Whether a name may match several topics: a key expression of Zenoh or a filter of MQTT with wildcards, or an address
/// with parameters.
pub fn is_pattern(name: &str) -> bool {
    is_key_expression(name) || is_filter(name) || has_parameters(name).is_some()
}

fn has_parameters(name: &str) -> Option<AddressPattern> {
    AddressPattern::parse(name).ok().flatten()
}

/// Whether a pattern matches a name; leading slashes are ignored, except that they are a level of MQTT.
pub fn is_matched(pattern: &str, name: &str) -> bool {
    if let Some(address) = has_parameters(pattern) {
        return address.without_slash().captures(without_slash(name)).is_some();
    }
    let matches = |pattern: &str, name: &str| {
        if is_key_expression(pattern) {
            intersects(pattern, name)
        } else {
            is_filter(pattern) && passes(pattern, name)
        }
    };
    matches(pattern, name) || matches(without_slash(pattern), without_slash(name))
}

/// Whether it has wildcards of Zenoh. A literal `*` in a filter of MQTT is not expected.
fn is_key_expression(name: &str) -> bool {
    name.split('/').any(|chunk| chunk == "*" || chunk == "**" || chunk.contains("$*"))
}

/// Whether it has wildcards of MQTT.
fn is_filter(name: &str) -> bool {
    name.split('/').any(|level| level == "+") || name.split('/').next_back() == Some("#")
}

/// Whether MQTT delivers a topic to subscriptions with this filter (MQTT 5.0, 4.7).
fn passes(filter: &str, topic: &str) -> bool {
    // Topics of the broker itself are not delivered to filters that begin with a wildcard.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let (mut levels, mut names) = (filter.split('/').peekable(), topic.split('/'));
    while let Some(level) = levels.next() {
        // Matches any number of levels, including none, so that the parent matches too.
        if level == "#" && levels.peek().is_none() {
            return true;
        }
        match names.next() {
            Some(name) if level == "+" || level == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// Whether Zenoh delivers a key to subscriptions to this key expression.
fn intersects(expression: &str, key: &str) -> bool {
    let chunks: Vec<&str> = key.split('/').collect();
    // Whether the expression so far matches the first `i` chunks of the key.
    let mut matched = vec![false; chunks.len() + 1];
    matched[0] = true;
    for pattern in expression.split('/') {
        if pattern == "**" {
            for (i, chunk) in chunks.iter().enumerate() {
                matched[i + 1] |= matched[i] && is_chunk("*", chunk);
            }
        } else {
            for (i, chunk) in chunks.iter().enumerate().rev() {
                matched[i + 1] = matched[i] && is_chunk(pattern, chunk);
            }
            matched[0] = false;
        }
    }
    matched[chunks.len()]
}

/// Whether a chunk of a key expression matches one of a key. A chunk that begins with `@` only matches itself.
fn is_chunk(pattern: &str, chunk: &str) -> bool {
    if pattern == chunk {
        return true;
    }
    if chunk.is_empty() || chunk.starts_with('@') {
        return false;
    }
    if pattern == "*" {
        return true;
    }
    let Some((before, rest)) = pattern.split_once("$*") else { return false };
    let Some(mut chunk) = chunk.strip_prefix(before) else { return false };
    let mut parts = rest.split("$*").peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return chunk.ends_with(part);
        }
        match chunk.find(part) {
            Some(at) => chunk = &chunk[at + part.len()..],
            None => return false,
        }
    }
    true
}
