//! Tests of the times that shapes read.

use rondel_event::{Block, Layout, Path, Projection, TimeUnit, Timestamp, TopicId};

use super::super::plan::{Action, Node};
use super::Shape;

/// Reads the second message by the shape of the first, if it has one; returns the event time.
fn by_shape(first: &str, second: &str) -> Option<Option<i64>> {
    let mut root = Node::new(&Projection::default());
    root.at(&Path::keys(["t"])).reads.push(Action::Time(TimeUnit::Seconds));
    let mut shape = Shape::record(first.as_bytes(), &root, Some(TopicId(0)), TimeUnit::Seconds)?;
    let mut block = Block::new(Layout { topics: 1, ..Layout::default() });
    let run = shape.run(second.as_bytes(), &[0, second.len()], &mut block, Timestamp::ZERO);
    Some((run.rows == 1).then(|| block.time(0).as_nanos()))
}

#[test]
fn every_form_of_a_time_has_a_shape() {
    for (first, second, ns) in [
        ("1.5", "2.5", 2_500_000_000),
        (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":1732298653,"nanosec":999999999}"#, 1_732_298_653_999_999_999),
        (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":-1,"nanosec":1}"#, -999_999_999),
        (r#"{"nsecs":1,"secs":2}"#, r#"{"nsecs":30,"secs":40}"#, 40_000_000_030),
        (r#""2026-11-22T18:04:13Z""#, r#""1970-01-01 00:00:01.5+00:00""#, 1_500_000_000),
        (r#""5 s""#, r#""5 ms""#, 5_000_000),
    ] {
        let message = |time: &str| format!("{{\"t\":{time},\"x\":1}}");
        assert_eq!(by_shape(&message(first), &message(second)), Some(Some(ns)), "{second}");
    }
    // Other values are left to the slow path.
    for (first, second) in [
        (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":1,"nanosec":1000000000}"#),
        (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":1.5,"nanosec":2}"#),
        (r#"{"sec":1,"nanosec":2}"#, r#"{"sec":9223372036,"nanosec":854775808}"#),
        (r#""5 s""#, r#""5 parsecs""#),
    ] {
        let message = |time: &str| format!("{{\"t\":{time},\"x\":1}}");
        assert_eq!(by_shape(&message(first), &message(second)), Some(None), "{second}");
    }
    assert!(by_shape("{\"t\":1,\"t\":2}", "{\"t\":1e99,\"t\":2}").is_some_and(|time| time.is_none()));
}
