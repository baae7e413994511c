//! Snapshots with wrong bytes under a right sum: read without a panic. What reads them is their decoder alone; that a
//! good one changes nothing is part of `meaning`.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use rondel_engine::{KEY_HASHES, Monitor, Program};
use rondel_event::{Block, Slot, Timestamp, TopicId};
use rondel_spec::Spec;

const TOPICS: &str =
    "topic t { b: bool, s: string, x: float, n: int } topic u { b: bool, s: string, x: float, n: int }";

/// Of each kind of state something.
const ALL: [&str; 10] = [
    "property p = on(t) -> once[70, 90] (t.b and prev(t.s) == 'a')",
    "property p = on(t) -> once[1 s, 10 s] (t.b and mean(t.x) over 3 s > 1 and min(t.x) over 2 s < 3)",
    "property p = on(t) -> eventually[0, 3 s] on(u)",
    "property p = forall x. t{s: x} -> (not u{s: x}) since[1 s, 4 s] t{s: x}",
    "property p = exists x. exists y. once[0, 9 s] t{n: x} and once[0, 9 s] u{n: y} and x != y",
    "property p for each id in (t.n) until on(t) and t.s == 'end' = t.b since[1 s, 5 s] u.b",
    "@limit(2) property p for each id in (t.n, u.n), s in (t.s, u.s) = on(t) -> (prev(t.s) == 'a' or count(u) over 4 s > 1)",
    "machine m { initial a var k: int = 0 a -> b when on(t) do k := k + 1 b -> a within 3 s when u.b b -> c after 3 s error c for 1 s }",
    "@robust property p = t.x < 2 until[0, 2 s] u.x > 1 and eventually[1 s, 1 s] t.x > 0",
    "@linear property p = (once[1 s, 3 s] t.x < u.x + 1) and (t.s == 'a' or t.b) and eventually[0, 2 s] u.x > 2",
];

/// A program with a snapshot after some events, a part of it, and an edited specification.
struct Given {
    program: Arc<Program>,
    snapshot: Vec<u8>,
    part: Vec<u8>,
    edited: Spec,
}

/// All of them.
fn programs() -> &'static [Given] {
    static PROGRAMS: OnceLock<Vec<Given>> = OnceLock::new();
    PROGRAMS.get_or_init(|| ALL.iter().map(|text| of(text)).collect())
}

fn of(property: &str) -> Given {
    let spec = rondel_spec::parse(&format!("{TOPICS} {property}")).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(Arc::clone(&program));
    let mut block = Block::new(program.layout());
    for i in 0..40_u64 {
        let chance = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let topic = TopicId(chance as u32 & 1);
        let row = block.push(topic, Timestamp::from_nanos(i as i64 * 300_000_000));
        for field in &program.projections()[topic.index()].fields {
            match field.slot {
                Slot::Bool(column) => block.set_bool(column, row, chance >> 1 & 1 == 1),
                Slot::Int(column) => block.set_int(column, row, (chance >> 2 & 3) as i64),
                Slot::Float(column) => block.set_float(column, row, (chance >> 4 & 7) as f64),
                Slot::String(column) => {
                    block.set_string(column, row, ["a", "b", "end"][(chance >> 7) as usize % 3])
                }
            }
        }
    }
    monitor.step(&block);
    let edited = format!("{TOPICS} {property} property further = once[0, 1 s] u.b");
    Given {
        program,
        snapshot: monitor.snapshot(),
        part: monitor.snapshot_part(0..KEY_HASHES / 2),
        edited: rondel_spec::parse(&edited).spec.unwrap(),
    }
}

/// The sum that stands behind the rest.
fn sum(bytes: &[u8]) -> [u8; 8] {
    rondel_event::snapshot::sum(bytes).to_le_bytes()
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, changes)) = input.split_first() else { return };
    let Given { program, snapshot, part, edited } = &programs()[usize::from(which) % ALL.len()];
    let is_part = usize::from(which) / ALL.len() % 3 == 2;
    let good = if is_part { part } else { snapshot };
    let mut bytes = good.clone();
    // The head says whose it is, and is compared as a whole.
    let body = 28..bytes.len() - 8;
    for change in changes.chunks_exact(3).take(16) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        bytes[body.start + at % body.len()] = change[2];
    }
    let end = body.end;
    let sum = sum(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum);
    let is_restored = if is_part {
        Monitor::restore_parts(Arc::clone(program), &[&bytes]).is_ok()
    } else if usize::from(which) / ALL.len() % 3 == 1 {
        Monitor::continue_edited(edited, &bytes).unwrap().is_ok()
    } else {
        Monitor::restore(Arc::clone(program), &bytes).is_ok()
    };
    assert!(is_restored || bytes != *good);
});
