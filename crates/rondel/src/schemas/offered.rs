//! Offers of publishers in recordings of ROS 2: quality of service and hash of the type.

use std::fmt::Write as _;
use std::time::Duration;

use rondel_net::ros2::qos::{Durability, History, INFINITE, Liveliness, Reliability};
use rondel_net::ros2::{QosOverrides, Ros2Error};
use saphyr::{LoadableYamlNode as _, Yaml};

/// The metadata of a channel with the quality of service of its publishers.
pub const PROFILES: &str = "offered_qos_profiles";
/// The metadata of a channel with the hash of its type.
pub const TYPE_HASH: &str = "topic_type_hash";

/// Messages kept for later subscriptions where the recorder did not know their number.
const DEPTH: u64 = 10;
/// The same where a publisher kept all of its messages.
const ALL: u64 = 1000;

/// Reads a list of profiles, and returns a profile that serves every subscription that one of them served: reliable or
/// durable if one of the publishers was. `None` if the list is empty.
///
/// # Errors
/// The reason why it is no such list.
pub fn offered(text: &str) -> Result<Option<QosOverrides>, String> {
    let profiles = profiles(text, |profile| profile_of(profile).map(served))?;
    Ok(profiles.into_iter().reduce(|all, own| strongest(&all, &own)))
}

/// Returns the profiles of a list as text, each once: reliability, durability, history and depth, as far as they are
/// recorded, and what else is not the default. `None` if the list is empty.
///
/// # Errors
/// The reason why it is no such list.
pub fn described(text: &str) -> Result<Option<String>, String> {
    let mut all: Vec<String> = Vec::new();
    for profile in profiles(text, profile_of)? {
        let own = in_words(&profile);
        if !all.contains(&own) {
            all.push(own);
        }
    }
    Ok((!all.is_empty()).then(|| all.join("; ")))
}

fn profiles(
    text: &str,
    read: impl Fn(&Yaml<'_>) -> Result<QosOverrides, String>,
) -> Result<Vec<QosOverrides>, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    let Some(list) = documents.first().filter(|list| !list.is_null()) else { return Ok(Vec::new()) };
    list.as_sequence().ok_or("it is no list")?.iter().map(read).collect()
}

fn in_words(profile: &QosOverrides) -> String {
    let QosOverrides { reliability, durability, history, depth, deadline, lifespan, liveliness, lease } =
        profile;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(reliability.map(|policy| policy.to_string()));
    parts.extend(durability.map(|policy| policy.to_string()));
    parts.extend(match (history, depth) {
        (Some(History::KeepLast), Some(depth)) => Some(format!("keep_last {depth}")),
        (Some(History::KeepAll), _) | (Some(_), None) => history.map(|history| history.to_string()),
        (_, Some(depth)) => Some(format!("depth {depth}")),
        (None, None) => None,
    });
    parts.extend(deadline.map(|deadline| format!("deadline {deadline:?}")));
    parts.extend(lifespan.map(|lifespan| format!("lifespan {lifespan:?}")));
    let unusual = liveliness.filter(|policy| *policy == Liveliness::ManualByTopic);
    parts.extend(unusual.map(|policy| format!("liveliness {policy}")));
    parts.extend(lease.map(|lease| format!("lease {lease:?}")));
    if parts.is_empty() { "unknown".to_owned() } else { parts.join(", ") }
}

/// Writes a list of profiles as rosbag2 does before version 9 of its metadata, with the numbers of ROS 2.
pub fn written<'q>(profiles: impl IntoIterator<Item = &'q QosOverrides>) -> String {
    let mut text = String::new();
    for profile in profiles {
        let QosOverrides { reliability, durability, history, depth, deadline, lifespan, liveliness, lease } =
            profile;
        let word = |number: Option<&'static str>, unknown: &'static str| number.unwrap_or(unknown);
        let duration = |duration: &Option<Duration>| {
            let (sec, nsec) = duration.map_or(INFINITE, |d| (d.as_secs(), u64::from(d.subsec_nanos())));
            format!("\n    sec: {sec}\n    nsec: {nsec}")
        };
        let _ = writeln!(
            text,
            "- history: {}\n  depth: {}\n  reliability: {}\n  durability: {}\n  deadline:{}\n  lifespan:{}\n  \
             liveliness: {}\n  liveliness_lease_duration:{}\n  avoid_ros_namespace_conventions: false",
            word(history.map(History::number), "3"),
            depth.unwrap_or(0),
            word(reliability.map(Reliability::number), "3"),
            word(durability.map(Durability::number), "3"),
            duration(deadline),
            duration(lifespan),
            word(liveliness.map(Liveliness::number), "4"),
            duration(lease),
        );
    }
    text
}

fn profile_of(profile: &Yaml<'_>) -> Result<QosOverrides, String> {
    let word = |name: &str| -> Option<String> {
        let value = profile.as_mapping_get(name)?;
        value.as_str().map(str::to_owned).or_else(|| value.as_integer().map(|number| number.to_string()))
    };
    fn policy<T>(
        word: Option<String>,
        of_number: impl Fn(&str) -> Option<T>,
        parse: impl Fn(&str) -> Result<T, Ros2Error>,
    ) -> Result<Option<T>, String> {
        let Some(word) = word else { return Ok(None) };
        if word == "unknown" || word.parse::<u32>().is_ok() {
            // `unknown` has a number, too.
            return Ok(of_number(&word));
        }
        parse(&word).map(Some).map_err(|error| error.to_string())
    }
    let duration = |name: &str| -> Option<Duration> {
        let value = profile.as_mapping_get(name)?;
        let part = |name: &str| {
            value.as_mapping_get(name).and_then(|part| part.as_integer()).and_then(|n| u64::try_from(n).ok())
        };
        let parts = (part("sec")?, part("nsec").or_else(|| part("nanosec"))?);
        let duration = Duration::from_secs(parts.0).checked_add(Duration::from_nanos(parts.1))?;
        (parts != INFINITE && !duration.is_zero()).then_some(duration)
    };
    let depth = word("depth").and_then(|text| text.parse().ok()).filter(|depth| *depth > 0);
    let durability = policy(word("durability"), Durability::of_number, Durability::parse)?;
    Ok(QosOverrides {
        reliability: policy(word("reliability"), Reliability::of_number, Reliability::parse)?,
        durability,
        history: policy(word("history"), History::of_number, History::parse)?,
        depth,
        deadline: duration("deadline"),
        lifespan: duration("lifespan"),
        liveliness: policy(word("liveliness"), Liveliness::of_number, Liveliness::parse)?,
        lease: duration("liveliness_lease_duration"),
    })
}

/// Returns the profile with a limit for the messages that are kept.
fn served(profile: QosOverrides) -> QosOverrides {
    let QosOverrides { durability, history, depth, .. } = profile;
    let usual = if history == Some(History::KeepAll) { ALL } else { DEPTH };
    let is_kept = durability == Some(Durability::TransientLocal);
    QosOverrides {
        history: history.filter(|history| *history == History::KeepLast),
        depth: depth.or(is_kept.then_some(usual)),
        ..profile
    }
}

/// Returns a profile that serves the subscriptions that either of two profiles serves.
fn strongest(one: &QosOverrides, other: &QosOverrides) -> QosOverrides {
    fn either<T: PartialEq + Copy>(one: Option<T>, other: Option<T>, stronger: T) -> Option<T> {
        if one == Some(stronger) || other == Some(stronger) { Some(stronger) } else { one.or(other) }
    }
    // Subscriptions did not rely on a promise that only one of the publishers gives.
    let both = |one: Option<Duration>, other: Option<Duration>| one.zip(other).map(|(a, b)| a.min(b));
    QosOverrides {
        reliability: either(one.reliability, other.reliability, Reliability::Reliable),
        durability: either(one.durability, other.durability, Durability::TransientLocal),
        history: one.history.or(other.history),
        depth: one.depth.max(other.depth),
        deadline: both(one.deadline, other.deadline),
        lifespan: one.lifespan.zip(other.lifespan).map(|(a, b)| a.max(b)),
        liveliness: one.liveliness.filter(|_| one.liveliness == other.liveliness),
        lease: both(one.lease, other.lease),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rondel_net::ros2::Qos;

    const INFINITY: &str = "{sec: 9223372036, nsec: 854775807}";

    fn text(profile: &str) -> String {
        let qos = offered(profile).unwrap().unwrap();
        Qos::DEFAULT.with(&qos).to_string()
    }

    #[test]
    fn numbers_and_names_are_read() {
        let numbers = format!(
            "- history: 3\n  depth: 0\n  reliability: 2\n  durability: 2\n  deadline: {INFINITY}\n  lifespan: {INFINITY}\n  \
             liveliness: 1\n  liveliness_lease_duration: {INFINITY}\n  avoid_ros_namespace_conventions: false\n"
        );
        assert_eq!(text(&numbers), "best_effort, volatile, keep_last 10");
        let names = format!(
            "- history: keep_last\n  depth: 1\n  reliability: reliable\n  durability: transient_local\n  \
             deadline: {{sec: 0, nsec: 100000000}}\n  lifespan: {INFINITY}\n  liveliness: automatic\n"
        );
        assert_eq!(text(&names), "reliable, transient_local, keep_last 1, deadline 100ms");
        let kept = "- {history: unknown, depth: 0, reliability: reliable, durability: transient_local}";
        assert_eq!(text(kept), "reliable, transient_local, keep_last 10");
        // The stronger of two publishers.
        assert_eq!(text(&format!("{numbers}{names}")), "reliable, transient_local, keep_last 1");
    }

    #[test]
    fn every_recorded_profile_is_described_once() {
        let kept =
            format!("- {{history: 1, depth: 1, reliability: 1, durability: 1, deadline: {INFINITY}}}\n");
        let sensor = "- {history: keep_last, depth: 5, reliability: best_effort, durability: volatile, liveliness: automatic}\n";
        let unknown = "- {history: 3, depth: 0, reliability: 2, durability: 2}\n";
        let all = format!(
            "{kept}{sensor}{kept}{unknown}- {{history: keep_all, depth: 0}}\n- {{depth: 7}}\n- {{}}\n"
        );
        assert_eq!(
            described(&all).unwrap().unwrap(),
            "reliable, transient_local, keep_last 1; best_effort, volatile, keep_last 5; best_effort, volatile; keep_all; \
             depth 7; unknown"
        );
        assert_eq!(described(""), Ok(None));
        assert!(described("- {reliability: always}").is_err());
    }

    #[test]
    fn written_profiles_are_read_back() {
        let second = Duration::from_millis(1500);
        let all = QosOverrides {
            deadline: Some(second),
            lifespan: Some(second),
            liveliness: Some(Liveliness::ManualByTopic),
            lease: Some(second),
            ..Qos::ROSOUT.into()
        };
        let unknown = QosOverrides { history: None, depth: None, ..Qos::SENSOR_DATA.into() };
        for qos in [all, unknown, Qos::DEFAULT.into()] {
            assert_eq!(offered(&written([&qos])), Ok(Some(qos)), "{}", written([&qos]));
        }
        assert_eq!(offered(&written([&unknown, &all])), Ok(Some(strongest(&unknown, &all))));
        assert_eq!(written(&[]), "");
    }

    #[test]
    fn other_texts_are_refused_or_empty() {
        for empty in ["", "[]", "~"] {
            assert_eq!(offered(empty), Ok(None), "{empty}");
        }
        for wrong in ["a", "a: b", "[", "- {reliability: best}"] {
            assert!(offered(wrong).is_err(), "{wrong}");
        }
        assert_eq!(offered("- 3").unwrap(), Some(QosOverrides::default()));
    }
}
