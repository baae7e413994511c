//! Snapshots that are no snapshots are refused with words. That a good one changes nothing is tested wherever the
//! engine is compared with the definitions.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Program, SnapshotError};
use rondel_event::{Block, Timestamp, TopicId};

fn program(formula: &str) -> Arc<Program> {
    let outcome =
        rondel_spec::parse(&format!("topic t {{ b: bool, s: string, x: float }} property p = {formula}"));
    Arc::new(Program::compile(&outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics))).unwrap())
}

fn snapshot(program: &Arc<Program>) -> Vec<u8> {
    let mut monitor = Monitor::new(program.clone());
    let mut block = Block::new(program.layout());
    block.push(TopicId(0), Timestamp::from_nanos(5));
    monitor.step(&block);
    monitor.snapshot()
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let ours = program("on(t) -> once[0, 10 s] (t.b and prev(t.s) == 'a' and mean(t.x) over 3 s > 1)");
    let bytes = snapshot(&ours);
    let refused = |bytes: &[u8]| Monitor::restore(ours.clone(), bytes).unwrap_err();
    assert!(Monitor::restore(ours.clone(), &bytes).is_ok());
    assert_eq!(refused(b"something else entirely"), SnapshotError::NotASnapshot);
    for length in 0..bytes.len() {
        let error = refused(&bytes[..length]);
        assert!(
            matches!(error, SnapshotError::NotASnapshot | SnapshotError::Length { .. }),
            "{length}: {error}"
        );
    }
    for i in 0..bytes.len() {
        for bit in 0..8 {
            let mut altered = bytes.clone();
            altered[i] ^= 1 << bit;
            refused(&altered);
        }
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(refused(&longer), SnapshotError::Length { .. }));
    let other = snapshot(&program("on(t) -> once[0, 11 s] t.b"));
    assert_eq!(
        refused(&other).to_string(),
        "this snapshot belongs to another specification, or to another release of this program"
    );
}
