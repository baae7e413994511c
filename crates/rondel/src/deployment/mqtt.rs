//! The section `mqtt:` of a deployment.

use std::path::{Path, PathBuf};

use rondel_net::mqtt::{Broker, Password, PublisherSettings, Qos, Settings, SubscriptionSettings, Tls};

use super::Address;
use super::yaml::{Item, Members, Mistakes};
use crate::networks::Mqtt;

/// The section `mqtt:`.
pub(super) fn mqtt_settings(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Mqtt {
    let mut settings = Settings::default();
    let mut verdicts = PublisherSettings::default();
    let mut members = item.members("mqtt", mistakes);
    let before = mistakes.0.len();
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
            Some(Err(())) => mistakes.at(item, "version must be 5 or 3.1.1"),
            None => {}
        }
    }
    settings.qos = qos(members.get("qos"), mistakes).unwrap_or_default();
    verdicts.qos = qos(members.get("verdict_qos"), mistakes);
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
            mistakes.at(item, "either a password_file or a password_env, not both");
            None
        }
        (Some(file), None) => Some(Password::File(file)),
        (None, Some(item)) => item.text("password_env", mistakes).map(Password::Environment),
        (None, None) => None,
    };
    // Named to explain why it is refused.
    if let Some(item) = members.get("password") {
        mistakes
            .at(item, "a password does not belong in a deployment; name a password_file or a password_env");
    }
    if let Some(item) = members.get("tls") {
        let mut members = item.members("tls", mistakes);
        settings.tls = Some(Tls {
            ca: self::file(&mut members, "ca", folder, mistakes),
            certificate: self::file(&mut members, "certificate", folder, mistakes),
            key: self::file(&mut members, "key", folder, mistakes),
        });
        members.finish(mistakes);
    }
    let seconds = members.get("keep_alive").and_then(|item| item.integer("keep_alive", 1..=65_535, mistakes));
    settings.keep_alive = seconds.map_or(settings.keep_alive, |seconds| seconds as u16);
    let longest = i64::from(u32::MAX);
    let expiry = members.get("session_expiry");
    let expiry = expiry.and_then(|item| item.integer("session_expiry", 0..=longest, mistakes));
    settings.session_expiry = expiry.map_or(settings.session_expiry, |seconds| seconds as u32);
    members.finish(mistakes);
    if mistakes.0.len() == before
        && let Err(error) = settings.check()
    {
        mistakes.at(item, error.to_string());
    }
    Mqtt { settings, verdicts }
}

fn file(
    members: &mut Members<'_>,
    name: &'static str,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<PathBuf> {
    members.get(name).and_then(|item| item.text(name, mistakes)).map(|text| folder.join(text))
}

fn qos(item: Option<Item<'_>>, mistakes: &mut Mistakes) -> Option<Qos> {
    item.and_then(|item| item.integer("qos", 0..=2, mistakes))
        .and_then(|number| Qos::from_number(number as u8))
}

/// The settings of a topic that only MQTT has.
pub(super) struct OfTopic<'y> {
    settings: SubscriptionSettings,
    item: Option<Item<'y>>,
}

impl<'y> OfTopic<'y> {
    /// The settings of a topic without any.
    pub(super) fn none() -> OfTopic<'y> {
        OfTopic { settings: SubscriptionSettings::default(), item: None }
    }

    /// Reads `qos` and `retained`.
    pub(super) fn read(members: &mut Members<'y>, mistakes: &mut Mistakes) -> OfTopic<'y> {
        let (own, retained) = (members.get("qos"), members.get("retained"));
        let settings = SubscriptionSettings {
            qos: qos(own, mistakes),
            retained: retained.and_then(|item| item.boolean("retained", mistakes)).unwrap_or(true),
        };
        OfTopic { settings, item: own.or(retained) }
    }

    /// The address with these settings, if it is on MQTT.
    pub(super) fn at(&self, address: Address, mistakes: &mut Mistakes) -> Address {
        match (address, self.item) {
            (Address::Mqtt(filter, _, encoding), _) => Address::Mqtt(filter, self.settings, encoding),
            (address, Some(item)) => {
                mistakes.at(item, "only a topic on MQTT has qos and retained");
                address
            }
            (address, None) => address,
        }
    }
}
