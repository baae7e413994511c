//! Tests of names and patterns of topics.

use super::*;

fn position(topics: &[&[&str]], recorded: &str) -> Option<usize> {
    let topics: Vec<Vec<String>> =
        topics.iter().map(|names| names.iter().map(|name| name.to_string()).collect()).collect();
    find_topic(topics.iter().map(|names| &**names), recorded)
}

#[test]
fn topics_on_dds_are_found_by_their_names_in_ros2() {
    for (own, recorded, is_found) in [
        ("dds:rt/rover/odom", "/rover/odom", true),
        ("rt/rover/odom", "/rover/odom", true),
        ("dds:rt/*/odom", "/rover/odom", true),
        ("dds:rt/rover/odom", "rover/odom", false),
        ("zenoh:rt/rover/odom", "/rover/odom", false),
        ("dds:rtk/odom", "/odom", false),
    ] {
        assert_eq!(position(&[&["odometry", own]], recorded).is_some(), is_found, "{own} {recorded}");
    }
    assert_eq!(position(&[&["dds:rt/odom"], &["/odom"]], "/odom"), Some(1), "the name itself comes first");
}

#[test]
fn patterns_match_the_topics_that_mqtt_delivers() {
    for (filter, topic, matches) in [
        ("fleet/+/pose", "fleet/r1/pose", true),
        ("fleet/+/pose", "fleet//pose", true),
        ("fleet/+/pose", "fleet/pose", false),
        ("fleet/+/pose", "fleet/r1/x/pose", false),
        ("fleet/+/pose", "fleet/r1/pose/x", false),
        ("fleet/+", "fleet/", true),
        ("fleet/#", "fleet/r1/pose", true),
        ("fleet/#", "fleet", true),
        ("fleet/#", "fleets", false),
        ("#", "a/b", true),
        ("+/#", "a", true),
        ("#", "$SYS/x", false),
        ("+/x", "$SYS/x", false),
        ("$SYS/#", "$SYS/x", true),
        ("/fleet/+", "fleet/r1", true),
        ("fleet/+", "/fleet/r1", true),
        ("+/fleet", "/fleet", true),
        ("fleet+/a", "fleetx/a", false),
        ("a/#/b", "a/x/b", false),
    ] {
        assert_eq!(is_matched(filter, topic), matches, "{filter} {topic}");
    }
}

#[test]
fn patterns_match_the_keys_that_zenoh_delivers() {
    for (expression, key, matches) in [
        ("fleet/*/pose", "fleet/r1/pose", true),
        ("fleet/*/pose", "fleet/pose", false),
        ("fleet/*/pose", "fleet/r1/x/pose", false),
        ("fleet/**", "fleet", true),
        ("fleet/**", "fleet/r1/pose", true),
        ("fleet/**", "fleets", false),
        ("**", "a/b/c", true),
        ("**/c", "a/b/c", true),
        ("**/c", "c", true),
        ("**/c", "a/c/b", false),
        ("a/**/c", "a/c", true),
        ("a/**/c", "a/b/c/b/c", true),
        ("a/**/b/*", "a/b/b/c", true),
        ("a/*/**", "a", false),
        ("a/*/**", "a/b", true),
        ("fleet/r$*/pose", "fleet/r12/pose", true),
        ("fleet/r$*/pose", "fleet/r/pose", true),
        ("fleet/r$*/pose", "fleet/s1/pose", false),
        ("a$*b$*c", "axbybzc", true),
        ("a$*b$*c", "axc", false),
        ("a$*a", "a", false),
        ("fleet/*", "fleet/@adm", false),
        ("fleet/**", "fleet/@adm/x", false),
        ("fleet/@adm/*", "fleet/@adm/x", true),
        ("fleet/*", "/fleet/r1", true),
        ("/fleet/**", "fleet/r1", true),
        ("fleet/{robot}/pose", "/fleet/r1/pose", true),
        ("/fleet/r{n}", "fleet/r12", true),
        ("fleet/{robot}/pose", "fleet/r1/speed", false),
    ] {
        assert_eq!(is_matched(expression, key), matches, "{expression} {key}");
    }
}

#[test]
fn exact_names_win_over_patterns() {
    let topics: &[&[&str]] =
        &[&["any", "fleet/**"], &["gear", "/vehicle/gear"], &["r1", "fleet/r1/pose"], &["zenoh:x"]];
    for (recorded, expected) in [
        ("gear", Some(1)),
        ("/vehicle/gear", Some(1)),
        ("vehicle/gear", Some(1)),
        ("/gear", Some(1)),
        ("//gear", None),
        ("fleet/r1/pose", Some(2)),
        ("/fleet/r1/pose", Some(2)),
        ("fleet/r2/pose", Some(0)),
        ("mqtt:fleet/r1/pose", Some(2)),
        ("dds:vehicle/gear", Some(1)),
        ("zenoh+cdr_string:fleet/r7", Some(0)),
        ("zenoh:x", Some(3)),
        ("/x", Some(3)),
        ("ros2:/vehicle/gear", Some(1)),
        ("http:gear", None),
        ("other", None),
    ] {
        assert_eq!(position(topics, recorded), expected, "{recorded}");
    }
}
