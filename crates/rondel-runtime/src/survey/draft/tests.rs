//! Tests of drafts: they compile, and what they say holds.

use super::*;
use rondel_event::Timestamp;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn options() -> DraftOptions {
    DraftOptions {
        origin: "a\ntest".to_owned(),
        specification: "first.rondel".to_owned(),
        networks: String::new(),
        notes: Vec::new(),
        refuted: None,
    }
}

#[test]
fn a_draft_has_no_mistakes_and_its_tests_pass() {
    let mut survey = Survey::new(TOPICS + 50);
    for i in 0..200 {
        let payload = format!(
            "{{\"state\": {}, \"pose\": {{\"x y\": {}, \"always\": \"{}\"}}, \"n\": {}, \"state\": 1, \"time\": 1, \"in\": 1, \"const\": 1, \"topic\": 1, \"big\": 1e300, \"t\": {{\"sec\": 1, \"nanosec\": 2}}}}",
            i % 3,
            f64::from(i) / 7.0,
            ["on", "off"][i as usize % 2],
            i
        );
        for source in [
            "x/state",
            "x/time",
            "x/error",
            "x/final",
            "x/at",
            "x/in",
            "x/int",
            "x/each",
            "x/end",
            "x/expect",
            "x/machine",
            "x/chain",
            "x/test",
            "x/over",
            "x/for",
            "x/var",
            "x/initial",
            "x/never",
            "zenoh:a/rate",
            "mqtt:b/rate",
            "topic",
            "odd \"name\"\\",
            "zenoh:0/1",
        ] {
            survey.message(source, at(i64::from(i) * 100), payload.as_bytes(), None);
        }
    }
    survey.message("zenoh:text", at(0), b"two\nlines", None);
    (0..TOPICS + 10).for_each(|i| survey.message(&format!("zz{i}"), at(0), b"{}", None));
    survey.end();
    let draft = draft(&survey, &options(), |_| false).unwrap();
    let parsed = rondel_spec::parse(&draft.specification);
    assert!(parsed.diagnostics.is_empty(), "{}\n{:?}", draft.specification, parsed.diagnostics);
    assert_eq!(rondel_spec::format(&draft.specification).as_ref(), Ok(&draft.specification));
    let spec = parsed.spec.unwrap();
    assert_eq!((spec.topics.len(), spec.properties.len()), (draft.topics, draft.properties));
    assert_eq!(draft.topics, TOPICS);
    assert_eq!(spec.tests.len(), 2);
    assert!(draft.specification.contains("Left out: zenoh:text: its payloads (text) cannot be decoded."));
    assert_eq!(draft.omitted.len(), 2, "{:?}", draft.omitted);
}

#[test]
fn odd_names_and_values_of_several_types_compile() {
    let mut survey = Survey::new(50);
    for i in 0..60 {
        let value =
            ["[1, 2]", "[2]", "{\"x\": 1}"][usize::from(i == 30) * 2 + i as usize % 2 * usize::from(i != 30)];
        let text = if i == 40 { "\"1.5\"" } else { "\"\u{202e}\"" };
        let payload = format!(
            "{{\"--\": {value}, \"/*\": {text}, \"\u{202e}\": 1, \"a\\u001bb\": 1, \"state\": {}}}",
            [i64::MAX, i64::MIN][i as usize % 2]
        );
        for source in ["", " a", "a//b", "${x}", "{", "a/{id}", "null", "zenoh:", "a*b", "a\u{202e}b", "0"] {
            survey.message(source, at(i * 100), payload.as_bytes(), None);
        }
    }
    survey.end();
    let draft = draft(&survey, &options(), |_| false).unwrap();
    let parsed = rondel_spec::parse(&draft.specification);
    assert!(parsed.diagnostics.is_empty(), "{}\n{:?}", draft.specification, parsed.diagnostics);
    assert!(!draft.specification.contains('\u{202e}') && !draft.deployment.contains('\u{202e}'));
    for name in ["${x}", "{", "a/{id}"] {
        let reason = format!(
            "{name}: braces in an address stand for parameters, so that no specification can name it"
        );
        assert!(draft.omitted.contains(&reason), "{:?}", draft.omitted);
    }
    let mixed = "0: values of several types in `\"--\"` (arrays, objects)".to_owned();
    assert!(draft.omitted.contains(&mixed), "{:?}", draft.omitted);
    for line in [
        "  # \"a//b\" is no address of a network: write the one of these messages.\n  b: { source: \"zenoh:unknown/b\" }\n",
        "  \"null\": { source: \"zenoh:null\" }\n",
    ] {
        assert!(draft.deployment.contains(line), "{}", draft.deployment);
    }
}

#[test]
fn refuted_properties_are_comments() {
    let mut survey = Survey::new(10);
    (0..100).for_each(|i| survey.message("zenoh:a", at(i * 100), b"{\"v\": 1}", None));
    survey.end();
    let drafted = |names: &[&str]| {
        let refuted = names.iter().map(|name| ((*name).to_owned(), "Violated 2 times.".to_owned()));
        let options = DraftOptions { refuted: Some(refuted.collect()), ..options() };
        draft(&survey, &options, |_| false).unwrap()
    };
    let whole = drafted(&[]);
    assert_eq!((whole.properties, whole.suggested), (2, 0), "{}", whole.specification);
    let one = drafted(&["a_fresh"]);
    let comment = "// Only suggested. Violated 2 times.\n// property a_fresh = once on(a) -> ";
    assert!(one.specification.contains(comment), "{}", one.specification);
    assert_eq!((one.properties, one.suggested), (1, 1), "{}", one.specification);
    // A specification without any claim would be refused.
    let none = drafted(&["a_fresh", "a_rate"]);
    assert!(none.specification.contains("\nassert a_came = ever on(a)\n"), "{}", none.specification);
    let parsed = rondel_spec::parse(&none.specification);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    assert_eq!(parsed.spec.unwrap().properties.len(), none.properties);
    let none = drafted(&["a_fresh", "a_rate", "a_came"]);
    assert!(none.specification.contains("\nassert messages_came = ever"), "{}", none.specification);
    let parsed = rondel_spec::parse(&none.specification);
    assert_eq!(parsed.spec.unwrap().properties.len(), none.properties);
}

#[test]
fn nothing_to_write_about() {
    let mut survey = Survey::new(10);
    survey.message("zenoh:a", at(0), b"two\nlines", None);
    assert!(draft(&survey, &options(), |_| false).is_none());
}

#[test]
fn avro_of_a_registry_is_named_and_left_out() {
    let framed = |id: u32, datum: &[u8]| [&[0], &id.to_be_bytes()[..], datum].concat();
    let mut survey = Survey::new(10);
    for (source, id, datum) in [
        ("kafka:cars", 7, &[2, 4][..]),
        ("kafka:cars", 7, b"7"),
        ("kafka:both", 700, &[2]),
        ("kafka:both", 100_000, &[]),
        // The same framing, and a header of CDR.
        ("kafka:json", 7, b"{\"v\": 1}"),
        ("kafka:cdr", 0x0100_0009, b"0123456789"),
        ("mqtt:cars", 7, &[2, 4]),
    ] {
        survey.message(source, at(0), &framed(id, datum), None);
    }
    survey.message("kafka:rate", at(0), b"{\"v\": 1}", None);
    survey.end();
    let encoding = |source: &str| {
        let text = crate::survey::text(&survey);
        let line = text.lines().find(|line| line.starts_with(source)).unwrap().to_owned();
        line.split("  ").filter(|cell| !cell.is_empty()).nth(2).unwrap().trim().to_owned()
    };
    assert_eq!(encoding("kafka:cars"), "avro of a registry, schema id 7");
    assert_eq!(encoding("kafka:both"), "avro of a registry, schema ids 700, 100000");
    assert_eq!(["kafka:json", "kafka:cdr", "mqtt:cars"].map(encoding), ["cdr"; 3]);
    let json: serde_json::Value = serde_json::from_str(&crate::survey::json(&survey)).unwrap();
    let of = |source: &str| {
        let mut topics = json["topics"].as_array().unwrap().iter();
        topics
            .find(|topic| topic["address"] == source)
            .map(|topic| [&topic["encoding"], &topic["schema_ids"]])
    };
    assert_eq!(of("kafka:cars"), Some([&"avro".into(), &serde_json::json!([7])]));
    assert_eq!(of("kafka:rate"), Some([&"json".into(), &serde_json::Value::Null]));
    let drafted = draft(&survey, &options(), |_| false).unwrap();
    let reason = "kafka:cars: its messages are Avro of a schema registry (schema id 7)";
    assert!(drafted.omitted.iter().any(|text| text.starts_with(reason)), "{:?}", drafted.omitted);
    assert!(drafted.deployment.contains("registry: \"http://HOST:8081\""), "{}", drafted.deployment);
}
