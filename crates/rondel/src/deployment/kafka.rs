//! The section `kafka:` of a deployment.

use std::path::Path;

use rondel_net::kafka::{Group, IS_AVAILABLE, Settings, UNAVAILABLE};

use super::sinks::{client_settings, kafka_brokers};
use super::yaml::{Item, Members, Mistakes, Synonyms};

/// Names that people write for settings of Kafka.
const KAFKA: Synonyms = &[
    (
        &["servers", "broker", "bootstrap", "bootstrap_servers", "bootstrap.servers", "host"],
        "write `brokers: [HOST:PORT]`",
    ),
    (
        &["group_id", "group.id", "consumer_group"],
        "write `group: NAME`, and the folder of its states as `state: FOLDER`",
    ),
    (&["dead_letter", "dlq", "dead_letter_topic", "errors"], "write `dead_letters: TOPIC`"),
    (&["states", "state_folder", "folder", "state_dir"], "write `state: FOLDER`"),
    (&["group.instance.id", "group_instance_id", "instance", "static_member"], "write `member: NAME`"),
    (
        &["offset", "from", "auto_offset_reset", "auto.offset.reset", "position"],
        "write `start: earliest` or `start: latest`",
    ),
    (
        &["config", "properties", "options"],
        "write `settings`, such as `settings: { fetch.max.bytes: 1000000 }`",
    ),
    (&["topic", "topics"], "write `kafka:TOPIC` in the section `topics`, or in `verdicts`"),
    (&["password", "sasl"], "write `settings_env: { sasl.password: VARIABLE }`"),
    (
        &["tls", "ssl", "ca"],
        "this build connects to Kafka without TLS: use a listener without TLS that only this machine reaches, or a \
         local proxy that adds TLS",
    ),
];

/// Reads the section `kafka:`. `joins`: whether the deployment is to be run.
pub(super) fn kafka_settings(
    item: Item<'_>,
    folder: &Path,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Settings {
    let before = mistakes.errors.len();
    let mut settings = Settings::default();
    let mut members = item.members("kafka", mistakes);
    if let Some(item) = members.get("brokers") {
        settings.brokers = kafka_brokers(item, mistakes);
    }
    if let Some(item) = members.get("start") {
        match item.text("start", mistakes).as_deref().map(str::parse) {
            Some(Ok(start)) => settings.start = start,
            Some(Err(())) => mistakes.at(item, "`start` must be latest or earliest"),
            None => {}
        }
    }
    settings.group = group(&mut members, item, folder, mistakes);
    settings.dead_letters = members.get("dead_letters").and_then(|item| item.text("dead_letters", mistakes));
    let pairs = client_settings(&mut members, folder, joins, mistakes);
    settings.settings = pairs.into_iter().map(|pair| (pair.name, pair.value.0)).collect();
    members.finish(KAFKA, mistakes);
    if joins && !IS_AVAILABLE {
        mistakes.at(item, UNAVAILABLE);
    } else if mistakes.errors.len() == before
        && let Err(error) = settings.check()
    {
        mistakes.at(item, error.to_string());
    }
    settings
}

/// Reads `group`, `state` and `member`.
fn group(
    members: &mut Members<'_>,
    whole: Item<'_>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<Group> {
    let (name, state, member) = (members.get("group"), members.get("state"), members.get("member"));
    let Some(item) = name else {
        if let Some(item) = state.or(member) {
            mistakes
                .at(item, "`state` and `member` belong to a consumer group: write `group: NAME` beside them");
        }
        return None;
    };
    let name = item.text("group", mistakes);
    let Some(state) = state else {
        mistakes.at(
            whole,
            "`group` needs `state: FOLDER`, a folder that all members share: a partition takes its state along when another \
             process reads it",
        );
        return None;
    };
    let text = state.text("state", mistakes);
    if text.as_ref().is_some_and(|text| text.starts_with("kafka:")) {
        mistakes.at(state, "`state` must be a folder that all members share: states are not kept in a topic");
    }
    let state = text.map(|text| folder.join(text));
    let member = member.and_then(|item| item.text("member", mistakes));
    Some(Group { name: name?, state: state?, member })
}
