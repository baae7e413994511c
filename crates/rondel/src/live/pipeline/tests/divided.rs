//! Partitions of a member of a consumer group, each with a session.

use rondel_net::adapter::PartitionMark;

use super::*;

/// A pipeline that is divided by partitions, and has none.
fn divided() -> (Pipeline, mpsc::Receiver<String>) {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let (pipeline, verdicts) = pipeline_of(alive(TimeModel::Dense, 2000), Arc::clone(&clock));
    let options = Options { inputs: vec![input()], clock, ..Options::default() };
    pipeline.divide(SessionPlan::of(Specification::new(alive(TimeModel::Dense, 2000)).unwrap(), options));
    (pipeline, verdicts)
}

fn record(pipeline: &Pipeline, partition: i32, payload: &str) {
    let sample = Sample::new(payload.as_bytes(), None, None);
    pipeline.receive(TopicId(0), &[sample.with_partition(Some(partition))]);
    pipeline.idle();
}

#[test]
fn each_partition_has_its_own_time_and_takes_its_state_along() {
    let (pipeline, verdicts) = divided();
    record(&pipeline, 0, r#"{"t": 5}"#);
    assert_eq!((pipeline.received(), verdicts.try_recv().is_err()), (0, true), "another member has it");
    assert_eq!(pipeline.add_partition(0, None), Ok(None));
    assert_eq!(pipeline.add_partition(1, None), Ok(None));
    record(&pipeline, 0, r#"{"t": 5}"#);
    assert_eq!(verdicts.try_recv(), Ok(ALIVE.into()));
    record(&pipeline, 1, r#"{"t": 100}"#);
    let other = r#"{"property":"alive","time":100,"step":0,"verdict":"satisfied"}"#;
    assert_eq!(verdicts.try_recv(), Ok(other.into()));
    // Behind the other partition, and not late.
    record(&pipeline, 0, r#"{"t": 6}"#);
    assert_eq!(pipeline.summary().0.counts.received, 3);
    let mark = PartitionMark { partition: 0, next: 2, last: Timestamp::ZERO };
    let state = pipeline.partition_snapshot(&mark, b"mark".to_vec()).unwrap();
    pipeline.remove_partition(0);
    assert_eq!(pipeline.partition_snapshot(&mark, Vec::new()), None);
    record(&pipeline, 0, r#"{"t": 7}"#);
    assert_eq!((pipeline.received(), pipeline.summary().0.counts.received), (3, 1));
    // Another process goes on with it.
    let (next, verdicts) = divided();
    assert!(next.add_partition(0, Some(b"damaged")).is_err());
    assert_eq!(next.add_partition(0, Some(&state)), Ok(Some(b"mark".to_vec())));
    record(&next, 0, r#"{"t": 7}"#);
    assert!(verdicts.try_recv().is_err(), "the verdict is that of the state");
    record(&next, 0, r#"{"t": 20}"#);
    let last = verdicts.try_iter().last();
    assert!(last.as_ref().is_some_and(|verdict| verdict.contains(r#""step":3"#)), "{last:?}");
    assert!(next.end(Some(true), Duration::ZERO).is_some());
}

#[test]
fn a_record_without_a_name_is_counted_in_its_partition() {
    let (pipeline, verdicts) = divided();
    let unnamed = |partition: i32| {
        let sample = Sample::new(b"{}", None, None).with_partition(Some(partition));
        assert!(pipeline.receive_unnamed(TopicId(0), sample, "the key is missing"));
        pipeline.idle();
    };
    unnamed(0);
    assert_eq!(pipeline.received(), 0, "another member has the partition");
    assert_eq!(pipeline.add_partition(0, None), Ok(None));
    assert_eq!(pipeline.add_partition(1, None), Ok(None));
    record(&pipeline, 1, r#"{"t": 5}"#);
    assert_eq!(verdicts.try_recv(), Ok(ALIVE.into()));
    unnamed(0);
    let (summary, traffic) = pipeline.summary();
    assert_eq!((traffic.received, summary.counts.received, summary.counts.undecodable), (2, 2, 1));
    assert_eq!(summary.accounts[0].undecodable, 1);
    let mark = PartitionMark { partition: 0, next: 1, last: Timestamp::ZERO };
    assert!(pipeline.partition_snapshot(&mark, Vec::new()).is_some());
}

#[test]
fn records_that_are_too_large_or_undecodable_are_refused_with_a_reason() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let options = Options { inputs: vec![input()], largest_message: 16, ..Options::default() };
    let plan = SessionPlan::of(Specification::new(alive(TimeModel::Dense, 2000)).unwrap(), options);
    let (pipeline, _verdicts) = pipeline_of(alive(TimeModel::Dense, 2000), clock);
    pipeline.divide(plan);
    assert_eq!(pipeline.add_partition(0, None), Ok(None));
    let refusal = |payload: &str| {
        record(&pipeline, 0, payload);
        pipeline.refusal(TopicId(0))
    };
    assert_eq!(refusal(r#"{"t": 5}"#), None);
    assert_eq!(refusal(r#"{"t": 6, "text": "long"}"#).as_deref(), Some("larger than the limit of 16 B"));
    assert_eq!(pipeline.refusal(TopicId(0)), None, "it is given once");
    assert!(refusal("{").is_some_and(|why| why.starts_with("byte ")));
    assert_eq!(refusal(r#"{"t": 7}"#), None);
    let counts = pipeline.summary().0.counts;
    assert_eq!((counts.received, counts.refused, counts.undecodable), (4, 1, 1));
}
