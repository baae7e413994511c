//! Messages of industrial devices in a session: deaths and histories of Sparkplug B, series of SenML, and messages of any
//! encoding that cannot be read.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{
    Alignment, Emit, Encoding, Input, ManualClock, Options, Session, SessionPlan, Stamp, TimeSource,
    TopicNames,
};

const TOPIC: TopicId = TopicId(0);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// A live session of one topic.
struct Live {
    session: Session,
    clock: Arc<ManualClock>,
    names: Option<Arc<TopicNames>>,
}

impl Live {
    fn new(text: &str, input: Input, policy: Policy) -> Live {
        let clock = Arc::new(ManualClock::default());
        let spec = rondel_spec::parse(text).spec.unwrap();
        let options = Options {
            clock: clock.clone(),
            alignment: Alignment::new(policy),
            inputs: vec![input],
            emit: Emit::Change,
            live: true,
            ..Options::default()
        };
        let plan = SessionPlan::new(&spec, options).unwrap();
        let names = plan.names(TOPIC).cloned();
        Live { session: plan.start().unwrap(), clock, names }
    }

    /// Takes a message that comes at this time. Returns the verdicts that it brings, with their times.
    fn push(&mut self, name: &str, seconds: i64, payload: &[u8]) -> Vec<(Verdict, i64)> {
        self.clock.set(at(seconds));
        let name = self.names.as_ref().and_then(|names| names.number(name));
        let stamp = Stamp { arrival: Some(at(seconds)), name, ..Stamp::default() };
        _ = self.session.push(TOPIC, stamp, payload);
        self.reports()
    }

    /// Takes a message without a name that comes at this time. Returns the verdicts as [`Live::push`] does.
    fn push_unnamed(&mut self, seconds: i64) -> Vec<(Verdict, i64)> {
        self.clock.set(at(seconds));
        let stamp = Stamp { arrival: Some(at(seconds)), ..Stamp::default() };
        self.session.push_unnamed(TOPIC, stamp, 8, "the key is missing");
        self.reports()
    }

    fn reports(&mut self) -> Vec<(Verdict, i64)> {
        self.session.flush();
        let reports = self.session.reports();
        reports.map(|report| (report.verdict(), report.time().as_nanos() / 1_000_000_000)).collect()
    }
}

fn input(encoding: Encoding, time: TimeSource) -> Input {
    Input { encoding, time, ..Input::default() }
}

fn field(name: &str) -> TimeSource {
    TimeSource::Field(Path::keys([name]))
}

/// Writes fields of Protobuf: numbers and parts.
fn number(field: u8, mut value: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn part(field: u8, bytes: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// A message sent at this time with metrics of the type Int64: name, value, and whether it is historical.
fn payload(seconds: u64, metrics: &[(&str, u64, bool)]) -> Vec<u8> {
    let mut message = number(1, seconds * 1_000);
    for (name, value, is_historical) in metrics {
        let of =
            [part(1, name.as_bytes()), number(4, 4), number(5, (*is_historical).into()), number(11, *value)];
        message.extend(part(2, &of.concat()));
    }
    message
}

const BIRTH: &str = "spBv1.0/plant/NBIRTH/press";
const DATA: &str = "spBv1.0/plant/NDATA/press";
const DEATH: &str = "spBv1.0/plant/NDEATH/press";
const COOL: &str = "topic press \"spBv1.0/plant/+/press/#\"
    @time(points) property cool = press.metrics[name == \"Temp\"].value < 90";

/// Deaths carry the time at which the node connected, because brokers keep them as wills.
#[test]
fn death_of_a_node_counts_at_its_arrival() {
    for policy in [Policy::Arrival, Policy::EventTime] {
        let mut live = Live::new(COOL, input(Encoding::SparkplugB, field("timestamp")), policy);
        live.push(BIRTH, 100_000, &payload(100_000, &[("bdSeq", 7, false), ("Temp", 20, false)]));
        live.push(DATA, 110_000, &payload(110_000, &[("Temp", 30, false)]));
        let mut reports = live.push(DEATH, 110_005, &payload(100_000, &[("bdSeq", 7, false)]));
        live.session.finish();
        reports.extend(
            live.session.reports().map(|report| (report.verdict(), report.time().as_nanos() / 1_000_000_000)),
        );
        assert_eq!(live.session.summary().counts.refused, 0, "{policy:?}");
        assert!(live.session.notices().all(|notice| notice.kind != "reset"), "{policy:?}");
        assert_eq!(reports.last(), Some(&(Verdict::Inconclusive, 110_005)), "{policy:?}");
    }
}

#[test]
fn historical_values_are_left_out_and_named() {
    let mut live = Live::new(COOL, input(Encoding::SparkplugB, TimeSource::Arrival), Policy::Arrival);
    let birth = payload(1, &[("Temp", 20, false), ("Other", 1, true)]);
    assert_eq!(live.push(BIRTH, 1, &birth), [(Verdict::Satisfied, 1)]);
    assert_eq!(live.push(DATA, 2, &payload(2, &[("Temp", 95, true), ("Temp", 99, true)])), []);
    assert_eq!(live.push(DATA, 3, &payload(3, &[("Temp", 95, false)])), [(Verdict::Violated, 3)]);
    // A metric that is historical in a birth has no present value.
    assert_eq!(live.push(BIRTH, 4, &payload(4, &[("Temp", 20, true)])), [(Verdict::Inconclusive, 4)]);
    live.session.finish();
    let omissions = live.session.summary().omissions;
    let expected = "press: 3 historical values were left out, of `Temp`".to_owned();
    assert!(omissions.contains(&expected), "{omissions:?}");
}

/// The messages of a device share their numbers with those of the node.
#[test]
fn nodes_with_undetectable_losses_are_counted() {
    let text = "topic press \"spBv1.0/plant/+/press/arm\" property cool = press.metrics[name == \"Temp\"].value < 90";
    let mut live = Live::new(text, input(Encoding::SparkplugB, TimeSource::Arrival), Policy::Arrival);
    for seconds in 1..4 {
        live.push("spBv1.0/plant/DDATA/press/arm", seconds, &payload(1, &[("Temp", 20, false)]));
    }
    let omissions = live.session.summary().omissions;
    let expected = "press: losses of 1 node do not show, as the address does not match all of their messages";
    assert!(omissions.iter().any(|found| found == expected), "{omissions:?}");
}

#[test]
fn each_time_of_a_series_is_an_event() {
    let text = "topic room @time(points) property warm = room.records[n == \"temp\"].v < 30
        @time(points) property dry = room.records[n == \"hum\"].v < 70";
    let mut verdicts = Vec::new();
    for (policy, pack) in [
        (
            Policy::Arrival,
            r#"[{"bt":1700000000,"n":"temp","t":2,"v":35},{"n":"hum","t":1,"v":50},{"n":"temp","t":3,"v":25},
                {"n":"temp","t":1,"v":20},{"n":"temp","t":4.5,"v":40},{"n":"hum","t":4.5,"v":80}]"#,
        ),
        // Some times are relative to the arrival time.
        (
            Policy::EventTime,
            r#"[{"n":"temp","t":-8,"v":35},{"n":"hum","t":1700000001,"v":50},{"n":"temp","t":1700000003,"v":25},
                {"n":"temp","t":-9,"v":20},{"n":"temp","t":-5.5,"v":40},{"n":"hum","t":-5.5,"v":80}]"#,
        ),
    ] {
        let mut live = Live::new(text, input(Encoding::Senml, field("time")), policy);
        let mut reports = live.push("room", 1_700_000_010, pack.as_bytes());
        live.session.finish();
        reports.extend(
            live.session.reports().map(|report| (report.verdict(), report.time().as_nanos() / 1_000_000_000)),
        );
        let counts = live.session.summary().counts;
        assert_eq!((counts.received, counts.checked, counts.undecodable), (1, 4, 0), "{policy:?}");
        verdicts.push(reports);
    }
    let base = 1_700_000_000;
    let expected = [
        (Verdict::Satisfied, base + 1),
        (Verdict::Satisfied, base + 1),
        (Verdict::Violated, base + 2),
        (Verdict::Satisfied, base + 3),
        (Verdict::Violated, base + 4),
        (Verdict::Violated, base + 4),
    ];
    assert_eq!(verdicts, [expected, expected]);
}

/// Records of several names are one event, whatever their times.
#[test]
fn records_without_a_series_are_one_event() {
    let text = "topic room @time(points) property warm = room.records[n == \"temp\"].v < 30";
    let mut live = Live::new(text, input(Encoding::Senml, field("time")), Policy::Arrival);
    let pack = r#"[{"n":"temp","t":1700000001,"v":20},{"n":"hum","t":1700000002,"v":50}]"#;
    assert_eq!(live.push("room", 1_700_000_010, pack.as_bytes()), [(Verdict::Satisfied, 1_700_000_002)]);
    assert_eq!(live.session.summary().counts.checked, 1);
}

/// The withheld verdict does not wait for a further message.
#[test]
fn an_unreadable_message_withholds_verdicts_at_once() {
    let value = |value: u64| payload(1, &[("Temp", value, false)]);
    let cbor = |value: u8| vec![0xa1, 0x61, b'v', value];
    let msgpack = |value: u8| vec![0x81, 0xa1, b'v', value];
    let json = |text: &str| text.as_bytes().to_vec();
    for (encoding, path, good, bad) in [
        (Encoding::Json, "v", json(r#"{"v": 1}"#), json(r#"{"v": "#)),
        (Encoding::Cbor, "v", cbor(1), vec![0xa1, 0x61]),
        (Encoding::Msgpack, "v", msgpack(1), vec![0x81, 0xa1]),
        (Encoding::Xml, "a.v", json("<m><a v='1'/></m>"), json("<m><a v='1'></m>")),
        (Encoding::Senml, "records[n == \"a\"].v", json(r#"[{"n":"a","v":1}]"#), json(r#"[{"n":"a"}]"#)),
        (Encoding::SparkplugB, "metrics[name == \"Temp\"].value", value(1), vec![0x12, 0x7f]),
    ] {
        for (policy, model) in
            [(Policy::Arrival, "steps"), (Policy::Arrival, "points"), (Policy::Arrival, "dense")]
        {
            let text =
                format!("topic t \"spBv1.0/plant/+/press/#\" @time({model}) property low = t.{path} < 90");
            let mut live = Live::new(&text, input(encoding, TimeSource::Arrival), policy);
            let case = format!("{encoding}, {policy:?}, {model}");
            let verdicts = |reports: Vec<(Verdict, i64)>| {
                assert!(reports.iter().all(|(_, time)| *time > 0), "{case}: {reports:?}");
                reports.iter().map(|report| report.0).collect::<Vec<_>>()
            };
            assert_eq!(verdicts(live.push(DATA, 1, &good)), [Verdict::Satisfied], "{case}");
            assert_eq!(verdicts(live.push(DATA, 2, &bad)), [Verdict::Inconclusive], "{case}");
            assert_eq!(verdicts(live.push(DATA, 3, &bad)), [], "{case}");
            assert_eq!(verdicts(live.push(DATA, 4, &good)), [Verdict::Satisfied], "{case}");
            assert_eq!(live.session.summary().counts.undecodable, 2, "{case}");
        }
    }
}

#[test]
fn a_message_without_a_name_is_undecodable() {
    for model in ["steps", "points", "dense"] {
        let text = format!("topic t \"cars/{{k}}\" @time({model}) property low = t.v < 90");
        let run = |is_named: bool| {
            let mut live = Live::new(&text, input(Encoding::Json, TimeSource::Arrival), Policy::Arrival);
            let mut all = live.push("cars/a", 1, br#"{"v": 1}"#);
            for seconds in [2, 3] {
                all.extend(if is_named {
                    live.push("cars/a", seconds, br#"{"v": "#)
                } else {
                    live.push_unnamed(seconds)
                });
            }
            all.extend(live.push("cars/a", 4, br#"{"v": 1}"#));
            let summary = live.session.summary();
            assert_eq!((summary.counts.received, summary.counts.undecodable), (4, 2), "{model}");
            assert_eq!(summary.accounts[0].undecodable, 2, "{model}");
            let first = live.session.notices().find(|notice| notice.kind == "undecodable");
            assert!(first.is_some(), "{model}");
            all
        };
        let unnamed = run(false);
        assert_eq!(unnamed, run(true), "{model}");
        assert!(unnamed.iter().any(|report| report.0 == Verdict::Inconclusive), "{model}: {unnamed:?}");
    }
}

/// The payloads of `mosquitto_sub` are packs.
#[test]
fn packs_in_lines_are_read() {
    let text = "topic room \"site/+/room\" property warm = room.records[n == \"temp\"].v < 30";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let inputs = vec![input(Encoding::Senml, field("time"))];
    let options = Options { inputs, emit: Emit::Every, ..Options::default() };
    let plan = SessionPlan::new(&spec, options).unwrap();
    let mut packs = rondel_runtime::PackLines::new(&plan, TimeUnit::Seconds).unwrap();
    let series = r#"[{\"bn\":\"te\",\"n\":\"mp\",\"t\":-3.5,\"v\":20},{\"n\":\"mp\",\"t\":-1,\"v\":40}]"#;
    let mut text =
        format!("{{\"tst\":\"2023-11-14T22:13:30Z\",\"topic\":\"site/7/room\",\"payload\":\"{series}\"}}\n");
    text += "{\"tst\":1700000011,\"topic\":\"site/7/room\",\"payload\":[{\"n\":\"temp\",\"v\":10}]}\n";
    // No pack, another topic, and no line of a broker.
    text += "{\"tst\":1700000012,\"topic\":\"site/7/room\",\"payload\":\"[1]\"}\n";
    text += "{\"tst\":1700000012,\"topic\":\"site/7/door\",\"payload\":[1]}\n";
    text += "{\"time\":1700000013,\"topic\":\"room\",\"data\":{\"records\":[{\"n\":\"temp\",\"v\":50}],\"time\":1700000013}}\n";
    let mut rewritten = Vec::new();
    packs.rewrite(text.as_bytes(), &mut rewritten);
    let mut session = plan.start().unwrap();
    let mut lines = session.lines(TimeUnit::Seconds);
    let mut done = 0;
    while done < rewritten.len() {
        done = session.push_lines(&mut lines, &rewritten, done, rewritten.len()).unwrap();
    }
    session.finish();
    let reports: Vec<_> =
        session.reports().map(|report| (report.verdict(), report.time().as_nanos())).collect();
    let (s, base) = (1_000_000_000, 1_700_000_000_000_000_000);
    let decided: Vec<_> =
        reports.iter().filter(|report| report.0 != Verdict::Inconclusive).copied().collect();
    let expected = [
        (Verdict::Satisfied, base + 13 * s / 2),
        (Verdict::Violated, base + 9 * s),
        (Verdict::Satisfied, base + 11 * s),
        (Verdict::Violated, base + 13 * s),
    ];
    assert_eq!(decided, expected, "{}", String::from_utf8_lossy(&rewritten));
    assert_eq!(session.summary().counts.undecodable, 1);
}
