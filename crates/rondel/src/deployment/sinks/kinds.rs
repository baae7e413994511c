//! The settings of each kind of sink.

use std::time::Duration;

use super::super::alignment::duration;
use super::super::yaml::{Item, Members, Mistakes, Synonyms};
use super::Context;
use super::common::{days, file, name_of, pairs, secret, tls};
use super::url::{check_port, url};
use crate::sinks::driven::targets::{
    AlertmanagerTarget, KINDS, KafkaTarget, Kind, NatsTarget, OtlpTarget, PostgresTarget, Target,
    WebhookEmit, WebhookTarget,
};

/// The interval at which metrics are pushed, unless it is set, and its limits.
const INTERVAL: Duration = Duration::from_secs(15);
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// The interval at which open alerts are sent again, unless it is set, and its limits.
const RESEND: Duration = Duration::from_secs(60);
const RESENDS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(3600));
/// The time for which an alert lasts after it was sent, unless it is set, and its limits.
const HOLD: Duration = Duration::from_secs(24 * 3600);
const HOLDS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(168 * 3600));

/// A destination as it was read.
pub(super) struct Read {
    pub(super) target: Target,
    /// Its place, for a name.
    pub(super) place: String,
    /// Name of the series of runs, where the kind has one.
    pub(super) series: Option<String>,
}

/// Names that people write for settings of databases.
const POSTGRES: Synonyms = &[
    (&["host", "server", "dsn", "address", "database", "connection"], URL_OF_POSTGRES),
    (&["password", "pass", "passwd"], NO_PASSWORD),
    (&["ca", "certificate", "key", "ssl", "sslmode"], "write `tls: { ca: FILE }`"),
    (&["retention", "days"], "write `keep: { days: 30 }`"),
    (&["user", "username"], "write the user in `url`, before `@`"),
];
const URL_OF_POSTGRES: &str = "write `url`, such as `url: \"postgresql://rondel@db.example/verdicts\"`";
const NO_PASSWORD: &str = "use password_env: a password does not belong in this file";
/// The same of `keep`.
const KEEP: Synonyms = &[
    (&["age", "day", "time"], "write `days`, such as `days: 30`"),
    (&["size", "bytes"], "only a store of SQLite removes rows by size; write `days`, such as `days: 30`"),
];
/// The same of NATS.
const NATS: Synonyms = &[
    (
        &["url", "server", "host", "address", "urls"],
        "write `servers`, such as `servers: \"nats://127.0.0.1:4222\"`",
    ),
    (&["topic", "stream", "subjects"], "write `subject`, such as `subject: \"rondel.{property}\"`"),
    (&["password", "pass", "passwd"], NO_PASSWORD),
    (&["token"], "use token_env: a token does not belong in this file"),
    (&["creds", "nkey"], "write `credentials: FILE`"),
    (&["username"], "write `user`"),
];
/// The same of Kafka.
const KAFKA: Synonyms = &[
    (&["servers", "broker", "bootstrap", "bootstrap_servers", "host"], "write `brokers: [HOST:PORT]`"),
    (&["config", "properties", "options"], "write `settings`, such as `settings: { compression.type: lz4 }`"),
    (&["password", "sasl"], "write `settings_env: { sasl.password: VARIABLE }`"),
    (&["tls", "ssl", "ca"], "write `settings: { security.protocol: ssl, ssl.ca.location: ca.pem }`"),
];
/// The same of HTTP servers.
const HTTP: Synonyms = &[
    (&["address", "host", "endpoint", "uri", "to"], "write `url`"),
    (&["secret", "key", "hmac"], "use secret_env: a secret does not belong in this file"),
    (&["token", "password", "authorization", "auth"], "write `headers_env: { Authorization: VARIABLE }`"),
    (&["header"], "write `headers`, such as `headers: { X-Site: north }`"),
    (&["label"], "write `labels`, such as `labels: { site: north }`"),
    (&["only", "filter"], "write `emit: violations`"),
    (&["attributes"], "write `resource`, such as `resource: { service.name: gate-3 }`"),
    (&["ca", "certificate"], "write `tls: { ca: FILE }`"),
];

/// Reads the addresses of brokers of Kafka.
pub(in crate::deployment) fn kafka_brokers(item: Item<'_>, mistakes: &mut Mistakes) -> Vec<String> {
    let mut addresses = Vec::new();
    for item in item.items() {
        let Some(text) = name_of("brokers", item, mistakes) else { continue };
        let checked = match text.contains("://") || !text.contains(':') {
            true => Err("must be HOST:PORT, such as 127.0.0.1:9092".to_owned()),
            false => check_port(&text),
        };
        match checked {
            Ok(()) => addresses.push(text),
            Err(why) => mistakes.at(item, format!("a broker of `kafka` {why}")),
        }
    }
    addresses
}

/// Reads the settings of a kind.
pub(super) fn read(
    kind: Kind,
    item: Item<'_>,
    context: Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<Read> {
    let before = mistakes.errors.len();
    let members = item.members(kind.name, mistakes);
    if mistakes.errors.len() > before {
        return None;
    }
    let reading = Reading { kind, item, members, context };
    match kind.name {
        "postgres" => reading.postgres(mistakes),
        "nats" => reading.nats(mistakes),
        "kafka" => reading.kafka(mistakes),
        "webhook" => reading.webhook(mistakes),
        "alertmanager" => reading.alertmanager(mistakes),
        _ => reading.otlp(mistakes),
    }
}

/// Reads the collector that gets the metrics of a run, with its place, and the interval.
pub(super) fn collector(
    item: Item<'_>,
    context: Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<(OtlpTarget, String, Duration)> {
    let before = mistakes.errors.len();
    let mut members = item.members("otlp", mistakes);
    if mistakes.errors.len() > before {
        return None;
    }
    let interval = members.get("interval");
    let interval =
        interval.map_or(Some(INTERVAL), |item| within("interval", item, INTERVALS, "15 s", mistakes));
    let reading = Reading { kind: KINDS[5], item, members, context };
    let (target, place) = reading.collector(mistakes)?;
    Some((target, place, interval?))
}

/// Reads a duration between two limits.
fn within(
    setting: &str,
    item: Item<'_>,
    limits: (Duration, Duration),
    example: &str,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    let nanos = duration(item, setting, example, "", mistakes)?;
    let found = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    if (limits.0..=limits.1).contains(&found) {
        return Some(found);
    }
    let (least, most) = (shown(limits.0), shown(limits.1));
    mistakes.at(item, format!("`{setting}` must be a duration from {least} to {most}, such as {example}"));
    None
}

/// Returns a duration in the largest unit of which it is a whole number.
fn shown(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [(3_600_000_000_000, "h"), (60_000_000_000, "min"), (1_000_000_000, "s"), (1_000_000, "ms")];
    match units.into_iter().find(|(size, _)| nanos.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{} {unit}", nanos / size),
        None => format!("{nanos} ns"),
    }
}

/// The settings of a kind while they are read.
struct Reading<'y, 'c> {
    kind: Kind,
    item: Item<'y>,
    members: Members<'y>,
    context: Context<'c>,
}

impl<'y> Reading<'y, '_> {
    fn needs(&self, setting: &str, example: &str, mistakes: &mut Mistakes) {
        let name = self.kind.name;
        mistakes.at(self.item, format!("`{name}` needs `{setting}`, such as `{setting}: {example}`"));
    }

    fn postgres(mut self, mistakes: &mut Mistakes) -> Option<Read> {
        let members = &mut self.members;
        let (address, keep, series) = (members.get("url"), members.get("keep"), members.get("series"));
        let password = members.get("password_env");
        let files = members.get("tls");
        let password = password.and_then(|item| secret("password_env", item, self.context, mistakes));
        let files = files.map(|item| tls(item, self.context.folder, mistakes));
        let series = series.and_then(|item| name_of("series", item, mistakes));
        let keep = keep.and_then(|item| {
            let mut members = item.members("keep", mistakes);
            let days_item = members.get("days");
            members.finish(KEEP, mistakes);
            if days_item.is_none() {
                mistakes.at(item, "`keep` of `postgres` needs `days`, such as `keep: { days: 30 }`");
            }
            days_item.and_then(|item| days(item, mistakes))
        });
        let Some(item) = address else {
            self.needs("url", "\"postgresql://rondel@db.example/verdicts\"", mistakes);
            self.members.finish(POSTGRES, mistakes);
            return None;
        };
        self.members.finish(POSTGRES, mistakes);
        let url = url("url", item, &["postgresql", "postgres"], "password_env", mistakes)?;
        let place = url.host + &url.path;
        let target = PostgresTarget { url: url.text, password, tls: files, keep };
        Some(Read { target: Target::Postgres(target), place, series })
    }

    fn nats(mut self, mistakes: &mut Mistakes) -> Option<Read> {
        let members = &mut self.members;
        let (servers, subject) = (members.get("servers"), members.get("subject"));
        let (user, password) = (members.get("user"), members.get("password_env"));
        let (token, credentials) = (members.get("token_env"), members.get("credentials"));
        let files = members.get("tls");
        if servers.is_none() {
            self.needs("servers", "\"nats://127.0.0.1:4222\"", mistakes);
        }
        if subject.is_none() {
            self.needs("subject", "\"rondel.{property}\"", mistakes);
        }
        self.members.finish(NATS, mistakes);
        let two = match (user, password) {
            (Some(item), None) => Some((item, "`user` of `nats` needs `password_env`")),
            (None, Some(item)) => Some((item, "`password_env` of `nats` needs `user`")),
            _ => None,
        };
        let ways: Vec<Item<'y>> = [user, token, credentials].into_iter().flatten().collect();
        let several =
            ways.get(1).map(|item| (*item, "use one of `user`, `token_env` and `credentials` of `nats`"));
        for (item, why) in two.into_iter().chain(several) {
            mistakes.at(item, why);
        }
        let context = self.context;
        let user = user.and_then(|item| name_of("user", item, mistakes));
        let password = password.and_then(|item| secret("password_env", item, context, mistakes));
        let token = token.and_then(|item| secret("token_env", item, context, mistakes));
        let credentials = credentials.and_then(|item| file("credentials", item, context.folder, mistakes));
        let files = files.map(|item| tls(item, context.folder, mistakes));
        let subject = subject.and_then(|item| name_of("subject", item, mistakes));
        let items = servers?.items();
        let urls: Vec<_> = (items.iter())
            .filter_map(|item| url("servers", *item, &["nats", "tls"], "password_env", mistakes))
            .collect();
        if items.is_empty() {
            mistakes.at(self.item, "`servers` of `nats` needs a server");
        }
        let (first, subject) = (urls.first()?.host.clone(), subject?);
        let place = format!("{first} {subject}");
        let servers = urls.into_iter().map(|url| url.text).collect();
        let target = NatsTarget { servers, subject, user, password, token, credentials, tls: files };
        Some(Read { target: Target::Nats(target), place, series: None })
    }

    fn kafka(mut self, mistakes: &mut Mistakes) -> Option<Read> {
        let (brokers, topic) = (self.members.get("brokers"), self.members.get("topic"));
        let settings = pairs(&mut self.members, "settings", Some("settings_env"), self.context, mistakes);
        if brokers.is_none() {
            self.needs("brokers", "[127.0.0.1:9092]", mistakes);
        }
        if topic.is_none() {
            self.needs("topic", "verdicts", mistakes);
        }
        if settings.iter().any(|pair| pair.name == "bootstrap.servers") {
            mistakes.at(self.item, "write `brokers` instead of the setting bootstrap.servers");
        }
        self.members.finish(KAFKA, mistakes);
        let topic = topic.and_then(|item| name_of("topic", item, mistakes));
        let addresses = kafka_brokers(brokers?, mistakes);
        let (first, topic) = (addresses.first()?.clone(), topic?);
        let place = format!("{first} {topic}");
        let target = KafkaTarget { brokers: addresses, topic, settings };
        Some(Read { target: Target::Kafka(target), place, series: None })
    }

    fn webhook(mut self, mistakes: &mut Mistakes) -> Option<Read> {
        let members = &mut self.members;
        let (address, key, emit) = (members.get("url"), members.get("secret_env"), members.get("emit"));
        let files = members.get("tls");
        let headers = pairs(members, "headers", Some("headers_env"), self.context, mistakes);
        let key = key.and_then(|item| secret("secret_env", item, self.context, mistakes));
        let files = files.map(|item| tls(item, self.context.folder, mistakes));
        let emit = emit.and_then(|item| Some((item, item.text("emit", mistakes)?)));
        let emit = match emit.as_ref().map(|(item, text)| (*item, text.as_str())) {
            None | Some((_, "all")) => WebhookEmit::All,
            Some((_, "violations")) => WebhookEmit::Violations,
            Some((item, _)) => {
                mistakes.at(item, "`emit` of `webhook` must be all or violations");
                WebhookEmit::All
            }
        };
        let url = self.http(address, "\"https://example/hook\"", mistakes)?;
        // The path of a web hook is often a secret.
        let place = url.host;
        let target = WebhookTarget { url: url.text, secret: key, headers, tls: files, emit };
        Some(Read { target: Target::Webhook(target), place, series: None })
    }

    fn alertmanager(mut self, mistakes: &mut Mistakes) -> Option<Read> {
        let (address, files) = (self.members.get("url"), self.members.get("tls"));
        let (hold_item, resend_item) = (self.members.get("hold"), self.members.get("resend"));
        let labels = pairs(&mut self.members, "labels", None, self.context, mistakes);
        let headers = pairs(&mut self.members, "headers", Some("headers_env"), self.context, mistakes);
        let files = files.map(|item| tls(item, self.context.folder, mistakes));
        let hold = hold_item.map_or(Some(HOLD), |item| within("hold", item, HOLDS, "24 h", mistakes));
        let resend =
            resend_item.map_or(Some(RESEND), |item| within("resend", item, RESENDS, "60 s", mistakes));
        if let Some((hold, resend)) = hold.zip(resend)
            && hold < resend * 2
            && let Some(item) = hold_item.or(resend_item)
        {
            // An alert would end between two sendings.
            let why = format!(
                "`hold` of `alertmanager` must be at least twice `resend`: it is {}, and `resend` {}",
                shown(hold),
                shown(resend)
            );
            mistakes.at(item, why);
        }
        let url = self.http(address, "\"http://127.0.0.1:9093\"", mistakes)?;
        let place = url.host;
        let (hold, resend) = hold.zip(resend)?;
        let target = AlertmanagerTarget { url: url.text, labels, headers, tls: files, hold, resend };
        Some(Read { target: Target::Alertmanager(target), place, series: None })
    }

    fn otlp(self, mistakes: &mut Mistakes) -> Option<Read> {
        let (target, place) = self.collector(mistakes)?;
        Some(Read { target: Target::Otlp(target), place, series: None })
    }

    /// Reads a collector of OpenTelemetry. Returns it with its place.
    fn collector(mut self, mistakes: &mut Mistakes) -> Option<(OtlpTarget, String)> {
        let (address, files) = (self.members.get("url"), self.members.get("tls"));
        let headers = pairs(&mut self.members, "headers", Some("headers_env"), self.context, mistakes);
        let resource = pairs(&mut self.members, "resource", None, self.context, mistakes);
        let files = files.map(|item| tls(item, self.context.folder, mistakes));
        let url = self.http(address, "\"http://127.0.0.1:4318\"", mistakes)?;
        let place = url.host;
        Some((OtlpTarget { url: url.text, headers, resource, tls: files }, place))
    }

    /// Reads the URL of an HTTP server, after all other settings.
    fn http(
        self,
        address: Option<Item<'y>>,
        example: &str,
        mistakes: &mut Mistakes,
    ) -> Option<super::url::Url> {
        if address.is_none() {
            self.needs("url", example, mistakes);
        }
        self.members.finish(HTTP, mistakes);
        url("url", address?, &["https", "http"], "headers_env", mistakes)
    }
}
