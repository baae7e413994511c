use rondel_runtime::Severity;

use super::super::yaml::{Mistake, with_document};
use super::*;
use crate::sinks::driven::targets::{Secret, WebhookEmit};

const SPECIFICATION: &str = "topic t { x: float } property too_fast = t.x < 3 property steady = t.x > 1 \
                             assert always steady";

/// Reads a section. Kinds that this program is built without are no mistakes.
fn read(text: &str) -> (Vec<SinkSettings>, Vec<Mistake>) {
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    let mut mistakes = Mistakes::default();
    let read = with_document(text, &mut mistakes, |root, mistakes| {
        driven(root, Path::new(""), Some(&spec), true, mistakes)
    });
    mistakes.errors.retain(|mistake| !mistake.message.contains("is built without sinks"));
    (read.unwrap_or_default(), mistakes.errors)
}

/// Reads an item with one mistake at this column.
#[track_caller]
fn refused(item: &str, column: usize, words: &[&str]) {
    let (_, mistakes) = read(&format!("- {item}\n"));
    let found: Vec<(usize, &str)> = mistakes.iter().map(|m| (m.column, m.message.as_str())).collect();
    let is_expected =
        |(at, message): &(usize, &str)| *at == column && words.iter().all(|word| message.contains(word));
    assert!(found.len() == 1 && found.iter().all(is_expected), "{item}\n{column} {words:?}\n{found:?}");
}

#[test]
fn every_kind_is_read() {
    let (sinks, mistakes) = read(
        "- postgres: { url: \"postgresql://rondel@db.example/verdicts\", password_env: PATH, series: car-7, keep: { days: 2 } }
  slow_consumer: drop
  spool: { directory: kept, limit: 1 MiB }
- nats: { servers: [\"nats://127.0.0.1:4222\"], subject: \"rondel.{property}\", user: monitor, password_env: PATH }
  spool: true
- kafka: { brokers: [127.0.0.1:9092], topic: verdicts, settings: { compression.type: lz4 } }
  properties: steady
- webhook: { url: \"https://example/hook\", secret_env: PATH, headers: { X-Site: north }, emit: violations }
  severity: error
- alertmanager: { url: \"http://127.0.0.1:9093\", labels: { site: north }, hold: 12 h, resend: 30 s }
  name: alerts
- otlp: { url: \"http://127.0.0.1:4318\", resource: { service.name: gate-3 }, headers_env: { Authorization: PATH } }
",
    );
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let names: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
    let expected = [
        "postgres db.example/verdicts",
        "nats 127.0.0.1:4222 rondel.{property}",
        "kafka 127.0.0.1:9092 verdicts",
        "webhook example",
        "alerts",
        "otlp 127.0.0.1:4318",
    ];
    assert_eq!(names, expected);
    let [postgres, nats, kafka, webhook, alerts, otlp] = &sinks[..] else { panic!("{sinks:?}") };
    assert_eq!((postgres.wait, postgres.series.as_deref()), (None, Some("car-7")));
    let spool = postgres.spool.as_ref().unwrap();
    assert_eq!(
        (spool.directory.as_path(), spool.limit, spool.is_default),
        (Path::new("kept"), 1 << 20, false)
    );
    assert_eq!(nats.spool.as_ref().unwrap().directory, Path::new("spool"));
    assert_eq!((nats.wait, nats.series.as_ref()), (Some(WAIT), None));
    assert_eq!(kafka.filter, Filter { properties: vec!["steady".to_owned()], severity: None });
    assert_eq!(webhook.filter.severity, Some(Severity::Error));
    let Target::Webhook(hook) = &webhook.target else { panic!("{webhook:?}") };
    assert_eq!(hook.emit, WebhookEmit::Violations);
    assert!(hook.secret.as_ref().is_some_and(|secret| !secret.0.is_empty()));
    assert_eq!(format!("{:?}", Secret("hidden".to_owned())), "Secret");
    let Target::Alertmanager(alertmanager) = &alerts.target else { panic!("{alerts:?}") };
    let seconds = (alertmanager.hold.as_secs(), alertmanager.resend.as_secs());
    assert_eq!(seconds, (12 * 3600, 30));
    let Target::Otlp(target) = &otlp.target else { panic!("{otlp:?}") };
    assert_eq!(target.headers[0].name, "Authorization");
}

#[test]
fn assert_is_chosen_by_its_name_in_addresses() {
    let (sinks, mistakes) = read("- webhook: { url: \"http://a\" }\n  properties: assert_1\n");
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    assert_eq!(sinks[0].filter.properties, [spec.properties[2].name.clone()]);
}

#[test]
fn every_sink_without_ends_of_violations_is_named() {
    let text = "- alertmanager: { url: \"http://a\" }
- alertmanager: { url: \"http://b\" }
- webhook: { url: \"http://c\", emit: violations }
- webhook: { url: \"http://d\" }
- postgres: { url: \"postgres://e\" }
";
    let (sinks, _) = read(text);
    let warned = |emit| {
        let mut mistakes = Mistakes::default();
        with_document(text, &mut mistakes, |root, mistakes| check_emit(root, &sinks, emit, mistakes));
        let warnings = mistakes.warnings.into_iter().map(|warning| warning.message);
        warnings.collect::<Vec<String>>()
    };
    let found = warned(Emit::Violations);
    let starts = [
        "'alertmanager a' never resolves an alert",
        "'alertmanager b' never resolves an alert",
        "'webhook c' posts violations that never end",
        "'postgres e' stores violations that never end",
    ];
    let is_expected = |(found, start): (&String, &str)| found.starts_with(start);
    assert!(found.len() == 4 && found.iter().zip(starts).all(is_expected), "{found:?}");
    assert!(warned(Emit::Change).is_empty());
}

#[test]
fn mistakes_of_an_item_are_named() {
    for (item, column, words) in [
        ("mysql: {}", 3, &["an item of `sinks` has no setting 'mysql'", "postgres, nats"][..]),
        ("postgress: {}", 3, &["did you mean 'postgres'?"]),
        ("http: {}", 3, &["write `webhook`"]),
        ("{ name: a }", 3, &["needs a kind, one of postgres, nats, kafka, webhook, alertmanager, otlp"]),
        ("webhook", 3, &["must be a mapping"]),
        ("{ nats: {}, kafka: {} }", 22, &["has `nats` and `kafka`", "an item of its own"]),
        ("{ webhook: { url: \"http://a\" }, name: \"\" }", 41, &["`name` must not be empty"]),
        ("{ webhook: { url: \"http://a\" }, name: \"a\\nb\" }", 41, &["one line of at most 100"]),
        ("{ webhook: { url: \"http://a\" }, slow_consumer: 1 }", 50, &["an item of `sinks` must be drop"]),
        ("{ webhook: { url: \"http://a\" }, spool: { limit: 1 } }", 51, &["`limit` of `spool`", "64 MiB"]),
        ("{ webhook: { url: \"http://a\" }, spool: { size: 1 } }", 44, &["write `limit`"]),
        ("{ webhook: { url: \"http://a\" }, properties: [too_fas] }", 48, &["did you mean 'too_fast'?"]),
        ("{ webhook: { url: \"http://a\" }, properties: [] }", 47, &["needs the name of a property"]),
        ("{ webhook: { url: \"http://a\" }, severity: fatal }", 45, &["info, warning, error or critical"]),
        ("{ webhook: { url: \"http://a\" }, wait: 1 s }", 35, &["write `slow_consumer`"]),
    ] {
        refused(item, column, words);
    }
    let (_, mistakes) = read("[]\n");
    assert!(mistakes[0].message.contains("needs an item"), "{mistakes:?}");
    let (_, mistakes) = read("- webhook: { url: \"http://a/1\" }\n- webhook: { url: \"http://a/2\" }\n");
    assert!(mistakes.len() == 1 && mistakes[0].line == 2, "{mistakes:?}");
    assert!(mistakes[0].message.contains("two items of `sinks` are named 'webhook a'"), "{mistakes:?}");
    let many: String = (0..=MOST_SINKS).map(|i| format!("- webhook: {{ url: \"http://a{i}\" }}\n")).collect();
    let (_, mistakes) = read(&many);
    assert!(mistakes.len() == 1 && mistakes[0].message.contains("at most 32 items"), "{mistakes:?}");
}

#[test]
fn mistakes_of_a_kind_are_named() {
    for (item, column, words) in [
        ("postgres: {}", 13, &["`postgres` needs `url`"][..]),
        ("postgres: { url: db }", 20, &["`url` must be a URL", "postgresql:// or postgres://"]),
        ("postgres: { url: \"mysql://db\" }", 20, &["not with mysql://"]),
        ("postgres: { url: \"postgres://u:p@db\" }", 20, &["has a password", "`password_env`"]),
        ("postgres: { url: \"postgres://db\", password: p }", 37, &["use password_env"]),
        (
            "postgres: { url: \"postgres://db\", password_env: RONDEL_UNSET }",
            51,
            &["RONDEL_UNSET", "is not set"],
        ),
        ("postgres: { url: \"postgres://db\", keep: {} }", 43, &["`keep` of `postgres` needs `days`"]),
        (
            "postgres: { url: \"postgres://db\", tls: { ca: none.pem } }",
            48,
            &["none.pem, which does not exist"],
        ),
        ("postgres: { url: \"postgres://db\", tls: { key: Cargo.toml } }", 49, &["needs its `certificate`"]),
        ("nats: { servers: \"http://a\", subject: s }", 20, &["nats:// or tls://"]),
        ("nats: { servers: \"nats://a\" }", 9, &["`nats` needs `subject`"]),
        ("nats: { servers: \"nats://a\", subject: s, user: u }", 50, &["needs `password_env`"]),
        (
            "nats: { servers: \"nats://a\", subject: s, token_env: PATH, credentials: Cargo.toml }",
            74,
            &["use one of `user`, `token_env` and `credentials`"],
        ),
        ("nats: { servers: \"nats://a\", subject: s, credentials: no.creds }", 57, &["no.creds"]),
        ("kafka: { topic: t }", 10, &["`kafka` needs `brokers`"]),
        ("kafka: { brokers: \"kafka://a:1\", topic: t }", 21, &["must be HOST:PORT"]),
        ("kafka: { brokers: \"a:x\", topic: t }", 21, &["'x' as its port"]),
        ("kafka: { brokers: \"a:1\", topic: t, settings: { sasl.password: p } }", 65, &["`settings_env: {"]),
        ("webhook: {}", 12, &["`webhook` needs `url`"]),
        ("webhook: { url: \"ftp://a\" }", 19, &["https:// or http://"]),
        ("webhook: { url: \"http://a\", emit: some }", 37, &["all or violations"]),
        ("webhook: { url: \"http://a\", secret_env: RONDEL_UNSET }", 43, &["`secret_env` is not set"]),
        (
            "webhook: { url: \"http://a\", headers: { Authorization: x } }",
            57,
            &["`headers_env: { Authorization"],
        ),
        ("alertmanager: { url: \"http://a\", label: x }", 36, &["write `labels`"]),
        (
            "alertmanager: { url: \"http://a\", hold: 30 s }",
            42,
            &["`hold` must be a duration from 1 min to 168 h", "24 h"],
        ),
        ("alertmanager: { url: \"http://a\", hold: 60 }", 42, &["`hold` must be a duration", "no unit"]),
        (
            "alertmanager: { url: \"http://a\", resend: 1 s }",
            44,
            &["`resend` must be a duration from 10 s to 1 h"],
        ),
        (
            "alertmanager: { url: \"http://a\", resend: 2 min, hold: 3 min }",
            57,
            &["at least twice `resend`", "3 min, and `resend` 2 min"],
        ),
        ("alertmanager: { url: \"http://a\", hold: 90 s }", 42, &["it is 90 s, and `resend` 1 min"]),
        ("otlp: { url: \"grpc://a\" }", 16, &["https:// or http://"]),
    ] {
        refused(item, column, words);
    }
}

#[test]
fn documented_sections_have_no_mistake() {
    let pages = [
        include_str!("../../../../../docs/reference/deployment/sinks.md"),
        include_str!("../../../../../docs/how-to/webhook.md"),
    ];
    let blocks = pages.iter().flat_map(|page| page.split("```yaml\n").skip(1));
    let sections = blocks.filter_map(|block| block.split("```").next()?.split_once("sinks:\n"));
    let mut count = 0;
    for (_, section) in sections {
        let mut mistakes = Mistakes::default();
        // Their environment variables are not set, and their properties are those of another specification.
        with_document(section, &mut mistakes, |root, mistakes| {
            driven(root, Path::new(""), None, false, mistakes)
        });
        assert!(mistakes.errors.is_empty(), "{section}\n{:?}", mistakes.errors);
        count += 1;
    }
    assert_eq!(count, 3);
}
