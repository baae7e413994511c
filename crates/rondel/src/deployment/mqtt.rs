//! The section `mqtt:` of a deployment, and the settings of a topic on MQTT.

use std::path::{Path, PathBuf};

use rondel_net::mqtt::{Broker, Password, PublisherSettings, Qos, Settings, Tls};
use rondel_net::networks::Mqtt;

use super::yaml::{Item, Members, Mistakes, Synonyms};

/// Names that people write for settings of MQTT.
const MQTT: Synonyms = &[
    (
        &["host", "hostname", "url", "uri", "server", "address", "port", "endpoint", "connect"],
        "write `broker`, such as `broker: broker.example:1883`",
    ),
    (&["username", "user_name", "login"], "write `user`"),
    (
        &["password", "pass", "passwd"],
        "use password_file or password_env: a password does not belong in this file",
    ),
    (&["ca", "ca_file", "cafile", "ca_cert", "ca_certs"], "write `tls: { ca: FILE }`"),
    (&["cert", "certificate", "certfile", "cert_file"], "write `tls: { certificate: FILE }`"),
    (&["key", "keyfile", "key_file"], "write `tls: { key: FILE }`"),
    (&["ssl"], "write `tls`"),
    (&["client", "id", "clientid"], "write `client_id`"),
    (&["clean_session"], "write `clean_start`"),
    (&["keepalive", "keep_alive_interval"], "write `keep_alive`"),
    (&["retain"], "write `retain_verdicts`"),
    (&["max_inflight", "inflight", "max_inflight_messages", "window"], "write `receive_maximum`"),
];

/// Names that people write for settings of TLS.
const TLS: Synonyms = &[
    (&["ca_file", "cafile", "ca_cert", "ca_certs"], "write `ca`"),
    (&["cert", "certfile", "cert_file", "client_cert"], "write `certificate`"),
    (&["keyfile", "key_file", "client_key", "private_key"], "write `key`"),
];

/// Reads the section `mqtt:`.
pub(super) fn mqtt_settings(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Mqtt {
    let mut settings = Settings::default();
    let mut verdicts = PublisherSettings::default();
    let mut members = item.members("mqtt", mistakes);
    let before = mistakes.errors.len();
    if let Some(item) = members.get("broker")
        && let Some(text) = item.text("broker", mistakes)
    {
        match text.parse::<Broker>() {
            Ok(broker) => settings.broker = broker,
            Err(error) => mistakes.at(item, error.to_string()),
        }
    }
    if let Some(item) = members.get("version") {
        match item.text("version", mistakes).as_deref().map(str::parse) {
            Some(Ok(version)) => settings.version = version,
            Some(Err(())) => mistakes.at(item, "`version` must be 5 or 3.1.1"),
            None => {}
        }
    }
    settings.qos = qos("qos", members.get("qos"), mistakes).unwrap_or_default();
    verdicts.qos = qos("verdict_qos", members.get("verdict_qos"), mistakes);
    let mut boolean = |members: &mut Members<'_>, name, value: &mut bool| {
        *value = members.get(name).and_then(|item| item.boolean(name, mistakes)).unwrap_or(*value);
    };
    boolean(&mut members, "retain_verdicts", &mut verdicts.retain);
    boolean(&mut members, "clean_start", &mut settings.clean_start);
    settings.user = members.get("user").and_then(|item| item.text("user", mistakes));
    settings.client_id = members.get("client_id").and_then(|item| item.text("client_id", mistakes));
    let file = file(&mut members, "password_file", folder, mistakes);
    let variable = members.get("password_env");
    settings.password = match (file, variable) {
        (Some(_), Some(item)) => {
            mistakes.at(item, "use either password_file or password_env, not both");
            None
        }
        (Some(file), None) => Some(Password::File(file)),
        (None, Some(item)) => item.text("password_env", mistakes).map(Password::Environment),
        (None, None) => None,
    };
    if let Some(item) = members.get("tls") {
        let mut members = item.members("tls", mistakes);
        settings.tls = Some(Tls {
            ca: self::file(&mut members, "ca", folder, mistakes),
            certificate: self::file(&mut members, "certificate", folder, mistakes),
            key: self::file(&mut members, "key", folder, mistakes),
        });
        members.finish(TLS, mistakes);
    }
    let seconds = members.get("keep_alive").and_then(|item| item.integer("keep_alive", 1..=65_535, mistakes));
    settings.keep_alive = seconds.map_or(settings.keep_alive, |seconds| seconds as u16);
    let longest = i64::from(u32::MAX);
    let expiry = members.get("session_expiry");
    let expiry = expiry.and_then(|item| item.integer("session_expiry", 0..=longest, mistakes));
    settings.session_expiry = expiry.map_or(settings.session_expiry, |seconds| seconds as u32);
    let window = members.get("receive_maximum");
    let window = window.and_then(|item| item.integer("receive_maximum", 1..=65_535, mistakes));
    settings.receive_maximum = window.map(|window| window as u16);
    members.finish(MQTT, mistakes);
    if mistakes.errors.len() == before
        && let Err(error) = settings.check()
    {
        mistakes.at(item, error.to_string());
    }
    Mqtt { settings, verdicts }
}

/// Reads the name of a file, relative to the folder of the deployment.
fn file(
    members: &mut Members<'_>,
    name: &'static str,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<PathBuf> {
    members.get(name).and_then(|item| item.text(name, mistakes)).map(|text| folder.join(text))
}

pub(super) fn qos(name: &str, item: Option<Item<'_>>, mistakes: &mut Mistakes) -> Option<Qos> {
    item.and_then(|item| item.integer(name, 0..=2, mistakes))
        .and_then(|number| Qos::from_number(number as u8))
}
