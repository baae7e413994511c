//! Invalid snapshots are refused with a message. Other tests, which compare the engine with the definitions,
//! check that valid ones make no difference.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program, SnapshotError};
use rondel_event::{Block, Slot, Timestamp, TopicId};

const TOPICS: &str = "
    topic t { b: bool, s: string, x: float, n: int }
    topic u { b: bool, s: string, x: float, n: int }
";

/// Properties with every kind of state.
const ALL: [&str; 18] = [
    "property steps = on(t) -> once[70, 90] (t.b and prev(t.s) == 'a')",
    "property dense = on(t) -> once[1 s, 10 s] (t.b and mean(t.x) over 3 s > 1 and min(t.x) over 2 s < 3)",
    "property held = t.b since[1 s, 5 s] u.b",
    "property ahead = on(t) -> eventually[0, 3 s] on(u)",
    "property meets = exists x. t{n: x} and once[1 s, 9 s] u{n: x}",
    "property lasts = forall x. t{s: x} -> (not u{s: x}) since[1 s, 4 s] t{s: x}",
    "property steps_of = exists x. t{s: x} and once[1, 5] u{s: x}",
    "property each for each id in (t.n) until on(t) and t.s == 'end' = t.b since[1 s, 5 s] u.b",
    "property of_text for each id in (t.s, u.s) = on(u) -> once[70, 90] t.b",
    "@limit(2) property of_both for each id in (t.n, u.n), s in (t.s, u.s) =
        on(t) -> (prev(t.s) == 'a' or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)",
    "property soon for each id in (t.n, u.n) = once[0, 3 s] t.b",
    "machine m { initial a var k: int = 0 a -> b when on(t) do k := k + 1 b -> a within 3 s when u.b b -> c after 3 s
        error c for 1 s }",
    "machine own for each id in (t.n, u.n) { initial a a -> b when on(t) b -> a when on(u) error b for 2 s }",
    "@robust property level = t.x > 2 since[0, 3 s] u.x > 1",
    "@robust property rises = t.x < 2 until[0, 2 s] u.x > 1 and eventually[1 s, 1 s] t.x > 0",
    "@robust property levels for each id in (t.n, u.n) = once[1 s, 3 s] t.x > 2",
    "@linear property nearer = (once[1 s, 3 s] t.x < u.x + 1) and (t.s == 'a' or t.b) and eventually[0, 2 s] u.x > 2",
    "property in_c = in(m, c) -> historically[0, 2 s] t.b",
];

fn program(properties: &[&str]) -> Arc<Program> {
    let text = [&[TOPICS], properties].concat().join("\n");
    let outcome = rondel_spec::parse(&text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)));
    Arc::new(Program::compile(&spec).unwrap_or_else(|error| panic!("{error}: {properties:?}")))
}

/// A monitor of all properties, after some events.
fn monitor(program: &Arc<Program>) -> Monitor {
    let mut monitor = Monitor::new(program.clone());
    monitor.report_every(true);
    feed(&mut monitor, 0..40);
    monitor
}

/// An endless sequence of events.
fn feed(monitor: &mut Monitor, events: std::ops::Range<u64>) {
    let program = monitor.program().clone();
    let mut block = Block::new(program.layout());
    for i in events {
        let chance = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let topic = TopicId(chance as u32 & 1);
        let row = block.push(topic, Timestamp::from_nanos(i as i64 * 300_000_000));
        for field in &program.projections()[topic.index()].fields {
            match field.slot {
                Slot::Bool(column) => block.set_bool(column, row, chance >> 1 & 1 == 1),
                Slot::Int(column) => block.set_int(column, row, (chance >> 2 & 3) as i64),
                Slot::Float(column) => block.set_float(column, row, (chance >> 4 & 7) as f64),
                Slot::String(column) => {
                    // Some values are new, so that old ones are evicted.
                    match (chance >> 7) % 6 {
                        which @ 0..=2 => block.set_string(column, row, ["a", "b", "end"][which as usize]),
                        _ => block.set_string(column, row, &format!("{}", i / 3)),
                    }
                }
            }
        }
    }
    monitor.step(&block);
}

fn refused(program: &Arc<Program>, bytes: &[u8]) -> SnapshotError {
    Monitor::restore(program.clone(), bytes).unwrap_err()
}

/// The checksum at the end.
fn sum(bytes: &[u8]) -> [u8; 8] {
    rondel_event::snapshot::sum(bytes).to_le_bytes()
}

#[test]
fn invalid_snapshot_is_refused() {
    for properties in ALL.iter().take(17).map(std::slice::from_ref).chain([&ALL[..]]) {
        let ours = program(properties);
        let bytes = monitor(&ours).snapshot();
        assert!(Monitor::restore(ours.clone(), &bytes).is_ok(), "{properties:?}");
        for length in 0..bytes.len() {
            let error = refused(&ours, &bytes[..length]);
            assert!(
                matches!(error, SnapshotError::NotASnapshot | SnapshotError::Length { .. }),
                "{length}: {error}"
            );
        }
        // The snapshot of all properties is long: one bit per byte.
        let bits = if properties.len() > 1 { 1 } else { 8 };
        for i in 0..bytes.len() {
            for bit in 0..bits {
                let mut altered = bytes.clone();
                altered[i] ^= 1 << (bit + i % (9 - bits));
                refused(&ours, &altered);
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(refused(&ours, &longer), SnapshotError::Length { .. }));
    }
}

#[test]
fn error_names_the_cause() {
    let ours = program(&["property p = on(t) -> once[0, 10 s] t.b"]);
    assert_eq!(refused(&ours, b"something else entirely"), SnapshotError::NotASnapshot);
    let other = monitor(&program(&["property p = on(t) -> once[0, 11 s] t.b"])).snapshot();
    assert_eq!(
        refused(&ours, &other).to_string(),
        "the snapshot belongs to another specification or to another release of this program"
    );
}

/// A snapshot with a valid checksum over invalid contents may lead to wrong verdicts, but not to a panic
/// while it is read.
#[test]
fn forged_snapshot_does_not_panic() {
    for properties in ALL.iter().take(17).map(std::slice::from_ref) {
        let ours = program(properties);
        let bytes = monitor(&ours).snapshot();
        let end = bytes.len() - 8;
        assert_eq!(sum(&bytes[..end]), bytes[end..]);
        for i in 28..end {
            for value in [bytes[i] ^ 1, bytes[i] ^ 0x80, 0, 0x7F, 0xFF] {
                let mut forged = bytes.clone();
                forged[i] = value;
                let sum = sum(&forged[..end]);
                forged[end..].copy_from_slice(&sum);
                let _ = Monitor::restore(ours.clone(), &forged);
            }
        }
    }
}

/// The same for an edited specification, where state is found by identity.
#[test]
fn forged_snapshot_of_edited_specification_does_not_panic() {
    let mut continued = 0;
    for (which, property) in ALL.iter().take(17).enumerate() {
        let ours = program(&[property]);
        let bytes = monitor(&ours).snapshot();
        let text = [TOPICS, property, "property further = once[0, 1 s] u.b"].join("\n");
        let edited = rondel_spec::parse(&text).spec.unwrap();
        assert!(Monitor::continue_edited(&edited, &bytes).unwrap().is_ok(), "{property}");
        let end = bytes.len() - 8;
        for i in (28 + which % 7..end).step_by(7) {
            for value in [bytes[i] ^ 1, 0, 0xFF] {
                let mut forged = bytes.clone();
                forged[i] = value;
                let sum = sum(&forged[..end]);
                forged[end..].copy_from_slice(&sum);
                let read = Monitor::continue_edited(&edited, &forged).unwrap();
                continued += usize::from(read.is_ok());
            }
        }
    }
    assert!(continued > 1000, "{continued}");
}

#[test]
fn restored_monitor_continues_unchanged() {
    let ours = program(&ALL);
    for cut in (0..120).chain((120..1000).step_by(53)) {
        let mut monitor = Monitor::new(ours.clone());
        monitor.report_every(true);
        (0..cut).step_by(50).for_each(|start| feed(&mut monitor, start..cut.min(start + 50)));
        let mut other = Monitor::restore(ours.clone(), &monitor.snapshot()).unwrap();
        other.report_every(true);
        assert_eq!(other.next_deadline(), monitor.next_deadline());
        assert_eq!(other.position(), monitor.position());
        for (own, before) in other.slices().zip(monitor.slices()) {
            assert_eq!(
                (own.instances, own.unkeyed, own.refused, own.first_refused),
                (before.instances, before.unkeyed, before.refused, before.first_refused)
            );
        }
        for start in (cut..cut + 200).step_by(40) {
            feed(&mut monitor, start..start + 40);
            feed(&mut other, start..start + 40);
            assert_eq!(monitor.reports(), other.reports(), "{cut}");
        }
        let until = Timestamp::from_nanos(10_000_000_000_000);
        assert_eq!(monitor.advance(until), other.advance(until));
        assert_eq!(monitor.end(), other.end());
    }
}
