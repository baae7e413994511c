//! Sessions that continue from parts of a snapshot, by ranges of keys.

#![allow(clippy::unwrap_used)] // a test

use rondel_event::{Timestamp, Value};
use rondel_runtime::{Emit, KEY_HASHES, Options, Session, SessionPlan, Targets, key_hash};

const TEXT: &str = "
    topic t { id: int, x: float }
    property held for each i in t.id = t.x < 5 since[1 s, 3 s] t.x > 7
    property ahead for each i in t.id = t.x > 8 -> eventually[0, 2 s] t.x < 2
    property whole = once[0, 2 s] t.x > 9
";

fn plan(text: &str, explain: bool) -> SessionPlan {
    let spec = rondel_spec::parse(text).spec.unwrap();
    SessionPlan::new(&spec, Options { emit: Emit::Every, explain, ..Options::immediate() }).unwrap()
}

/// Pushes messages number `from` to `until`, of which `is_meant` selects some by their id, and returns the reports.
fn push(
    plan: &SessionPlan,
    session: &mut Session,
    (from, until): (i64, i64),
    is_meant: impl Fn(i64) -> bool,
) -> Vec<String> {
    let target = Targets::new(plan).find(plan, "t").unwrap();
    for i in from..until {
        let (id, x) = (i * 7 % 12, i * 31 % 11);
        if is_meant(id) {
            let stamp = target.stamp(Timestamp::from_nanos(i * 100_000_000));
            session.push(target.topic, stamp, format!("{{\"id\":{id},\"x\":{x}}}").as_bytes()).unwrap();
        }
    }
    session.advance(Timestamp::from_nanos(until * 100_000_000));
    let line = |report: rondel_runtime::Report<'_>| {
        let mut line = Vec::new();
        report.json(&mut line);
        String::from_utf8(line).unwrap()
    };
    session.reports().map(line).collect()
}

#[test]
fn joined_parts_continue_as_the_session_that_never_stopped() {
    for explain in [false, true] {
        let plan = plan(TEXT, explain);
        let mut whole = plan.start().unwrap();
        push(&plan, &mut whole, (0, 200), |_| true);
        let cuts = [0, KEY_HASHES / 3, KEY_HASHES / 2, KEY_HASHES];
        let parts: Vec<Vec<u8>> =
            cuts.windows(2).map(|cut| whole.snapshot_part(cut[0]..cut[1], "n").unwrap()).collect();
        let parts: Vec<&[u8]> = parts.iter().rev().map(Vec::as_slice).collect();
        let (mut joined, covered) = plan.restore_parts(&parts, "n").unwrap();
        assert_eq!(covered.len(), 3);
        assert_eq!((covered[0].start, covered[2].end), (0, KEY_HASHES));
        assert_eq!(joined.events(), 200);
        let (expected, found) =
            (push(&plan, &mut whole, (200, 400), |_| true), push(&plan, &mut joined, (200, 400), |_| true));
        assert!(expected.len() > 400);
        // Explanations show only values since the snapshot.
        if !explain {
            assert_eq!(found, expected);
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn a_part_continues_its_own_instances() {
    let text = TEXT.replace("property whole = once[0, 2 s] t.x > 9", "");
    let plan = plan(&text, false);
    let mut whole = plan.start().unwrap();
    push(&plan, &mut whole, (0, 200), |_| true);
    let is_low = |id: i64| key_hash(&[Value::Int(id)]) < KEY_HASHES / 2;
    let low = whole.snapshot_part(0..KEY_HASHES / 2, "").unwrap();
    let (mut own, covered) = plan.restore_parts(&[&low], "").unwrap();
    assert_eq!(covered, vec![0..KEY_HASHES / 2]);
    let verdicts = |lines: Vec<String>| {
        let of_low =
            |line: &String| (0..12).any(|id| is_low(id) && line.contains(&format!("\"key\":{{\"i\":{id}}}")));
        let without_step = |line: String| {
            let (before, after) = line.split_once(",\"step\":").unwrap_or((line.as_str(), ""));
            format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        };
        let mut lines: Vec<String> = lines.into_iter().filter(of_low).map(without_step).collect();
        lines.sort();
        lines
    };
    let expected = verdicts(push(&plan, &mut whole, (200, 400), |_| true));
    let found = verdicts(push(&plan, &mut own, (200, 400), is_low));
    let held = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| line.contains("\"held\"")).cloned().collect()
    };
    assert!(held(&expected).len() > 20);
    assert_eq!(held(&found), held(&expected));
}

/// Two sessions, each with the messages of its ids, become one.
#[test]
fn parts_of_two_sessions_are_joined() {
    let plan = plan(&TEXT.replace("property whole = once[0, 2 s] t.x > 9", ""), false);
    let is_low = |id: i64| key_hash(&[Value::Int(id)]) < KEY_HASHES / 2;
    let [mut whole, mut low, mut high] = [0, 1, 2].map(|_| plan.start().unwrap());
    push(&plan, &mut whole, (0, 200), |_| true);
    push(&plan, &mut low, (0, 200), is_low);
    push(&plan, &mut high, (0, 200), |id| !is_low(id));
    let half = KEY_HASHES / 2;
    let parts = [low.snapshot_part(0..half, "").unwrap(), high.snapshot_part(half..KEY_HASHES, "").unwrap()];
    let (mut joined, covered) = plan.restore_parts(&[&parts[0], &parts[1]], "").unwrap();
    assert_eq!(covered.len(), 2);
    assert_eq!(joined.events(), low.events().max(high.events()));
    let held = |lines: Vec<String>| -> Vec<String> {
        let without_step = |line: String| {
            let (before, after) = line.split_once(",\"step\":").unwrap_or((line.as_str(), ""));
            format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        };
        let held = lines.into_iter().filter(|line| line.contains("\"held\""));
        let mut held: Vec<String> = held.map(without_step).collect();
        held.sort();
        held
    };
    let expected = held(push(&plan, &mut whole, (200, 400), |_| true));
    assert!(expected.len() > 100);
    assert_eq!(held(push(&plan, &mut joined, (200, 400), |_| true)), expected);
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let plan = plan(TEXT, false);
    let mut session = plan.start().unwrap();
    push(&plan, &mut session, (0, 50), |_| true);
    let half = KEY_HASHES / 2;
    let low = session.snapshot_part(0..half, "").unwrap();
    let high = session.snapshot_part(half..KEY_HASHES, "").unwrap();
    let refused = |parts: &[&[u8]]| plan.restore_parts(parts, "").map(drop).unwrap_err().to_string();
    assert_eq!(refused(&[]), "there is no part to restore");
    assert_eq!(refused(&[&low, &low]), "the ranges of parts 0 and 1 overlap");
    assert!(refused(&[&low, &session.snapshot("")]).starts_with("part 1: "));
    assert!(plan.restore(&low, "").is_err());
    push(&plan, &mut session, (50, 51), |_| true);
    let later = session.snapshot_part(half..KEY_HASHES, "").unwrap();
    assert!(refused(&[&low, &later]).starts_with("part 1 was taken at another time"));
    let mut behind = plan.start().unwrap();
    push(&plan, &mut behind, (0, 40), |_| true);
    let behind = behind.snapshot_part(half..KEY_HASHES, "").unwrap();
    assert!(refused(&[&low, &behind]).starts_with("part 1 was taken at another time"));
    let mut damaged = high.clone();
    damaged[100] ^= 1;
    assert!(refused(&[&low, &damaged]).starts_with("part 1: "));
    let other = self::plan(&TEXT.replace("t.x > 9", "t.x > 3"), false);
    assert!(other.restore_parts(&[&low], "").is_err());
}
