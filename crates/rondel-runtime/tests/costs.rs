//! The cost of many properties is proportional to their number.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rondel_runtime::{Options, SessionPlan};

/// Processor time of a plan for `properties` properties, the least of three runs.
fn time(properties: usize) -> Duration {
    let mut text = "topic t { x: int }\n".to_owned();
    for i in 0..properties {
        writeln!(text, "property p{i} = once[0, {} s] t.x != {i}", i % 100 + 1).unwrap();
    }
    let spec = rondel_spec::parse(&text).spec.unwrap();
    let plan = || {
        let start = Instant::now();
        let plan = SessionPlan::new(&spec, Options::default()).unwrap();
        assert_eq!(plan.properties().len(), properties);
        start.elapsed()
    };
    (0..3).map(|_| plan()).min().unwrap()
}

#[test]
fn many_properties_cost_no_more_than_each() {
    // Eight times as many; a square would be 64 times as much.
    let ratio = time(12_000).as_secs_f64() / time(1_500).as_secs_f64();
    assert!(ratio < 30.0, "{ratio}");
}
