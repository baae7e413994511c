//! The setting `reload:` of a deployment, and what a reload can change.

use rondel_net::networks::NetworkSettings;

use super::yaml::{Item, Mistake, Mistakes, with_document};

/// Settings that a reload can change. All others need a restart.
const CHANGEABLE: [&str; 8] =
    ["specification", "formula", "syntax", "time", "schemas", "topics", "verdicts", "reload"];

/// Reads the setting: whether the files are watched, which runs with gates refuse.
pub(super) fn reload(item: Item<'_>, has_gates: bool, mistakes: &mut Mistakes) -> bool {
    match item.text("reload", mistakes).as_deref() {
        Some("watch") if has_gates => {
            mistakes.at(
                item,
                "a run with `gates` cannot be reloaded, as they must not stop: leave `reload` out, and restart the run \
                 to apply changes",
            );
            false
        }
        Some("watch") => true,
        Some("request") | None => false,
        Some(_) => {
            mistakes.at(
                item,
                "`reload` must be watch, or request: by SIGHUP and `rondel reload` only, which is the default",
            );
            false
        }
    }
}

/// Returns a mistake for each setting that differs between two deployments, as they are written, and that a reload cannot
/// change.
pub fn unchangeable(before: &str, after: &str) -> Vec<Mistake> {
    let (mut unread, mut found) = (Mistakes::default(), Mistakes::default());
    // Both were read before.
    with_document(before, &mut unread, |before, unread| {
        with_document(after, unread, |after, unread| {
            let (known, now) = (before.entries("deployment", unread), after.entries("deployment", unread));
            for (name, key, value) in &now {
                let earlier = known.iter().find(|(known, ..)| known == name).map(|(.., value)| *value);
                if !CHANGEABLE.contains(&name.as_str()) {
                    Setting { name: name.clone(), key: *key, before: earlier, after: *value }
                        .compare(&mut found);
                }
            }
            for (name, ..) in &known {
                if !CHANGEABLE.contains(&name.as_str()) && now.iter().all(|(own, ..)| own != name) {
                    found.at(after, format!("`{name}` was removed: restart to apply it"));
                }
            }
        })
    });
    found.errors
}

/// A setting of the deployment after, with its value before.
struct Setting<'b, 'a> {
    /// Its name, after those of its sections.
    name: String,
    key: Item<'a>,
    before: Option<Item<'b>>,
    after: Item<'a>,
}

impl Setting<'_, '_> {
    /// Notes it, or the settings below it, if they differ.
    fn compare(self, found: &mut Mistakes) {
        let Setting { name, key, before, after } = self;
        let Some(before) = before else {
            return found.at(key, format!("`{name}` was added: restart to apply it"));
        };
        if before.is_equal(after) {
            return;
        }
        if !before.is_mapping() || !after.is_mapping() {
            return found.at(after, format!("`{name}` changed: restart to apply it"));
        }
        let mut unread = Mistakes::default();
        let (known, now) = (before.entries(&name, &mut unread), after.entries(&name, &mut unread));
        for (member, key, value) in &now {
            let earlier = known.iter().find(|(known, ..)| known == member).map(|(.., value)| *value);
            let name = format!("{name}.{member}");
            Setting { name, key: *key, before: earlier, after: *value }.compare(found);
        }
        for (member, ..) in known.iter().filter(|(known, ..)| now.iter().all(|(own, ..)| own != known)) {
            found.at(after, format!("`{name}.{member}` was removed: restart to apply it"));
        }
    }
}

/// Returns the network that a deployment needs and that another has not joined, if there is one.
pub fn further_network(before: &NetworkSettings, after: &NetworkSettings) -> Option<&'static str> {
    let needs = [
        ("zenoh", before.zenoh.is_some(), after.zenoh.is_some()),
        ("dds", before.dds.is_some(), after.dds.is_some()),
        ("mqtt", before.mqtt.is_some(), after.mqtt.is_some()),
        ("kafka", before.kafka.is_some(), after.kafka.is_some()),
        ("ros2", before.ros2.is_some(), after.ros2.is_some()),
    ];
    needs.into_iter().find(|(_, before, after)| *after && !before).map(|(name, ..)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(before: &str, after: &str) -> Vec<String> {
        let text = |mistake: &Mistake| format!("{}:{}: {}", mistake.line, mistake.column, mistake.message);
        unchangeable(before, after).iter().map(text).collect()
    }

    #[test]
    fn settings_of_networks_need_a_restart() {
        let before = "formula: v\nmqtt: { broker: a, qos: 1 }\ntopics: { trace: mqtt:a }\nblind: report\n";
        assert_eq!(found(before, before), [""; 0]);
        let layout =
            "topics:\n  trace: mqtt:other\nformula: w\nblind: report\nmqtt:\n  qos: 1\n  broker: a\n";
        assert_eq!(found(before, layout), [""; 0]);
        let after =
            "formula: v\nmqtt: { broker: b, qos: 1, user: me }\ntopics: { trace: mqtt:a }\nids: true\n";
        assert_eq!(
            found(before, after),
            [
                "2:17: `mqtt.broker` changed: restart to apply it",
                "2:28: `mqtt.user` was added: restart to apply it",
                "4:1: `ids` was added: restart to apply it",
                "1:1: `blind` was removed: restart to apply it",
            ]
        );
        let list = |items: &str| format!("formula: v\nzenoh:\n  connect: {items}\n");
        assert_eq!(found(&list("[a, b]"), &list("[ 'a', \"b\" ]")), [""; 0]);
        assert_eq!(
            found(&list("[a, b]"), &list("[b, a]")),
            ["3:12: `zenoh.connect` changed: restart to apply it"]
        );
    }
}
