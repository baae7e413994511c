//! Steps of the thread of a sink, at times that the tests set.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Mutex;

use rondel_event::Timestamp;
use rondel_runtime::ManualClock;

use super::*;
use crate::driver::{Options, SlowConsumer};
use crate::entry::{RunKey, Truth, VerdictEntry};
use crate::queue::Bounds;
use crate::sink::Written;
use crate::status::Status;

/// Received entries and scripted answers of a sink.
#[derive(Default)]
struct Script {
    /// Errors of the next calls; afterwards all succeed.
    answers: VecDeque<Option<Failure>>,
    /// Step that is rejected always.
    rejected: Option<u64>,
    /// Steps of the verdicts of each successful call.
    received: Vec<Vec<u64>>,
    losses: Vec<(String, u64)>,
    maintained: usize,
}

struct Scripted(Arc<Mutex<Script>>);

impl Sink for Scripted {
    fn write(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Result<Written, Failure> {
        let mut script = self.0.lock().unwrap();
        if let Some(Some(failure)) = script.answers.pop_front() {
            return Err(failure);
        }
        let steps: Vec<u64> = entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Verdict(verdict) => verdict.step,
                _ => None,
            })
            .collect();
        if script.rejected.is_some_and(|rejected| steps.contains(&rejected)) {
            return Err(Failure::rejected("no such verdict is accepted"));
        }
        for entry in entries {
            if let Entry::Loss(loss) = entry {
                script.losses.push((loss.reason.to_owned(), loss.count));
            }
        }
        let stored = steps.len() as u64;
        script.received.push(steps);
        Ok(Written { stored, repeated: 0 })
    }

    fn maintain(&mut self, _now: i64, _limit: Duration) -> Result<bool, Failure> {
        self.0.lock().unwrap().maintained += 1;
        Ok(false)
    }
}

struct Bench {
    worker: Worker,
    shared: Arc<Shared>,
    script: Arc<Mutex<Script>>,
    clock: Arc<ManualClock>,
}

fn verdict(step: u64) -> VerdictEntry<'static> {
    VerdictEntry {
        run: RunKey(1),
        id: None,
        property: "p",
        parameters: "",
        verdict: Truth::Violated,
        time: 0,
        about: None,
        is_after: false,
        reported: 0,
        step: Some(step),
        lap: 1,
        robustness: None,
        values: "",
        explanation: "",
        latency: None,
        missing: "",
        because_of: "",
        json: "",
    }
}

fn bench(options: Options) -> Bench {
    let (clock, script) = (Arc::new(ManualClock::default()), Arc::new(Mutex::new(Script::default())));
    clock.set(Timestamp::from_nanos(1_000));
    let shared = Arc::new(Shared::new("test", options, Arc::clone(&clock) as Arc<_>));
    shared.state().is_running = true;
    let worker = Worker::new(Arc::clone(&shared), Box::new(Scripted(Arc::clone(&script))));
    Bench { worker, shared, script, clock }
}

impl Bench {
    /// Sends verdicts with these steps. Returns whether they were accepted.
    fn send(&self, steps: std::ops::Range<u64>) -> bool {
        let mut batch = Batch::default();
        steps.for_each(|step| batch.push(|out| Entry::Verdict(verdict(step)).encode(out)));
        self.shared.push(&mut batch)
    }

    fn status(&self) -> Status {
        self.shared.state().status()
    }

    fn received(&self) -> Vec<Vec<u64>> {
        self.script.lock().unwrap().received.clone()
    }

    fn answer(&self, failure: Failure, times: usize) {
        self.script.lock().unwrap().answers.extend(std::iter::repeat_n(Some(failure), times));
    }

    /// Sets the clock to the next attempt and makes it. Returns the pause in milliseconds.
    fn retry(&mut self) -> i64 {
        let Next::WaitUntil(until) = self.worker.step() else { return 0 };
        let pause = until - self.clock_ticks();
        self.clock.set(Timestamp::from_nanos(until));
        self.worker.step();
        pause / 1_000_000
    }

    fn clock_ticks(&self) -> i64 {
        self.shared.clock.ticks()
    }
}

#[test]
fn entries_are_written_together_and_in_order() {
    let mut bench = bench(Options { batch: 25, ..Options::default() });
    for i in 0..5 {
        assert!(bench.send(10 * i..10 * i + 10));
    }
    while bench.worker.step() == Next::Step {}
    let received = bench.received();
    assert_eq!(received.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 10]);
    assert!(received.into_iter().flatten().eq(0..50));
    let status = bench.status();
    assert_eq!((status.condition, status.acknowledged, status.queued), (Condition::Connected, 50, 0));
    assert_eq!((status.stored, status.lost()), (50, 0));
}

#[test]
fn sink_that_fails_is_tried_again_with_growing_pauses() {
    let mut bench = bench(Options::default());
    bench.answer(Failure::unavailable("it is busy"), 12);
    assert!(bench.send(0..3));
    assert!(matches!(bench.worker.step(), Next::WaitUntil(_)));
    let status = bench.status();
    assert_eq!(status.condition, Condition::Failing { since: 1_000, attempts: 1 });
    assert_eq!((status.last_error.as_deref(), status.queued), (Some("it is busy"), 3));
    assert!(bench.send(3..5), "the queue takes entries meanwhile");
    let pauses: Vec<i64> = (0..11).map(|_| bench.retry()).collect();
    assert!((25..=50).contains(&pauses[0]) && pauses[3] > pauses[0] && pauses[6] > pauses[3], "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= 5_000) && pauses[10] >= 2_500, "{pauses:?}");
    assert!(matches!(bench.status().condition, Condition::Failing { since: 1_000, attempts: 12 }));
    bench.retry();
    assert_eq!(bench.received(), [vec![0, 1, 2, 3, 4]]);
    let status = bench.status();
    assert_eq!((status.condition, status.failures, status.lost()), (Condition::Connected, 12, 0));
    assert_eq!(status.last_error.as_deref(), Some("it is busy"), "the last error stays readable");
}

#[test]
fn only_a_rejected_entry_is_dropped() {
    let mut bench = bench(Options::default());
    bench.script.lock().unwrap().rejected = Some(13);
    assert!(bench.send(0..20));
    // Damaged bytes in between are dropped as well.
    let mut batch = Batch::default();
    batch.push(|out| out.extend_from_slice(b"\x01damaged"));
    assert!(bench.shared.push(&mut batch) && bench.send(20..30));
    while bench.worker.step() == Next::Step {}
    let received = bench.received().into_iter().flatten();
    assert!(received.eq((0..30).filter(|step| *step != 13)));
    let status = bench.status();
    assert_eq!((status.dropped(Reason::Rejected).count, status.acknowledged, status.queued), (2, 29, 0));
    let losses = &bench.script.lock().unwrap().losses;
    assert_eq!(losses, &[("rejected".to_owned(), 2)], "the sink stores the losses");
}

#[test]
fn failure_between_rejections_repeats_nothing() {
    let mut bench = bench(Options::default());
    {
        let mut script = bench.script.lock().unwrap();
        script.rejected = Some(1);
        // The whole, the first half, its halves: the failure comes after the first ones were accepted.
        script.answers = [None, None, None, None, None, Some(Failure::unavailable("no"))].into();
    }
    assert!(bench.send(0..8));
    while bench.worker.step() == Next::Step {}
    for _ in 0..3 {
        bench.retry();
    }
    while bench.worker.step() == Next::Step {}
    assert!(bench.received().into_iter().flatten().eq((0..8).filter(|step| *step != 1)));
    assert_eq!((bench.status().dropped(Reason::Rejected).count, bench.status().acknowledged), (1, 7));
}

/// Writes one verdict after another, three in a call, and refuses or fails for some.
struct Gradual {
    rejected: u64,
    failing: Option<u64>,
    received: Arc<Mutex<Vec<u64>>>,
}

impl Sink for Gradual {
    fn write(&mut self, entries: &[Entry<'_>], limit: Duration) -> Result<Written, Failure> {
        self.write_some(entries, limit).of_all(entries.len())
    }

    fn write_some(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Progress {
        let mut progress = Progress::default();
        for entry in entries.iter().take(3) {
            let Entry::Verdict(VerdictEntry { step: Some(step), .. }) = entry else { continue };
            if self.failing == Some(*step) {
                self.failing = None;
                return Progress { failure: Some(Failure::unavailable("no")), ..progress };
            }
            if *step % self.rejected == 1 {
                (progress.rejected, progress.failure) =
                    (progress.rejected + 1, Some(Failure::rejected("odd")));
            } else {
                self.received.lock().unwrap().push(*step);
                progress.written.stored += 1;
            }
            progress.done += 1;
        }
        progress
    }
}

#[test]
fn sink_that_writes_one_by_one_repeats_nothing() {
    let mut bench = bench(Options::default());
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Gradual { rejected: 5, failing: Some(7), received: Arc::clone(&received) };
    bench.worker = Worker::new(Arc::clone(&bench.shared), Box::new(sink));
    assert!(bench.send(0..20));
    while bench.worker.step() == Next::Step {}
    // 0 to 6 without 1 and 6, which are rejected: 7 fails.
    assert_eq!(*received.lock().unwrap(), [0, 2, 3, 4, 5]);
    let status = bench.status();
    assert!(matches!(status.condition, Condition::Failing { attempts: 1, .. }));
    assert_eq!((status.queued, status.acknowledged, status.dropped(Reason::Rejected).count), (13, 5, 2));
    bench.retry();
    while bench.worker.step() == Next::Step {}
    let expected: Vec<u64> = (0..20).filter(|step| step % 5 != 1).collect();
    assert_eq!(*received.lock().unwrap(), expected);
    let status = bench.status();
    assert_eq!((status.queued, status.stored, status.dropped(Reason::Rejected).count), (0, 16, 4));
}

#[test]
fn sink_without_progress_is_tried_later() {
    struct Idle;
    impl Sink for Idle {
        fn write(&mut self, _: &[Entry<'_>], _: Duration) -> Result<Written, Failure> {
            Ok(Written::default())
        }
        fn write_some(&mut self, _: &[Entry<'_>], _: Duration) -> Progress {
            Progress::default()
        }
    }
    let mut bench = bench(Options::default());
    bench.worker = Worker::new(Arc::clone(&bench.shared), Box::new(Idle));
    assert!(bench.send(0..1));
    assert!(matches!(bench.worker.step(), Next::WaitUntil(_)));
    assert!(bench.status().last_error.unwrap().contains("no entry within the time limit"));
}

#[test]
fn broken_sink_drops_everything_and_counts_it() {
    let mut bench = bench(Options::default());
    bench.answer(Failure::broken("it is damaged"), 1);
    assert!(bench.send(0..7));
    assert_eq!(bench.worker.step(), Next::WaitUntil(i64::MAX));
    assert!(!bench.send(7..9));
    let status = bench.status();
    assert_eq!(status.condition, Condition::Broken { since: 1_000 });
    let dropped = status.dropped(Reason::Broken);
    assert_eq!((dropped.count, dropped.from, status.queued), (9, 1_000, 0));
}

#[test]
fn broken_sink_keeps_entries_that_are_handed_back() {
    let mut bench = bench(Options { hands_back: true, ..Options::default() });
    bench.answer(Failure::broken("it is damaged"), 1);
    assert!(bench.send(0..7));
    bench.worker.step();
    let mut steps = Vec::new();
    bench.shared.state().queue.visit(|bytes| {
        if let Ok(Entry::Verdict(verdict)) = Entry::decode(bytes) {
            steps.extend(verdict.step);
        }
    });
    assert!(steps.into_iter().eq(0..7) && bench.status().lost() == 0);
}

#[test]
fn full_queue_drops_counts_and_reports() {
    let bounds = Bounds { entries: 10, bytes: usize::MAX };
    let mut bench = bench(Options { bounds, slow_consumer: SlowConsumer::Drop, ..Options::default() });
    assert!(bench.send(0..8) && !bench.send(8..12));
    bench.clock.set(Timestamp::from_nanos(5_000));
    assert!(bench.send(12..14) && !bench.send(14..15));
    let dropped = bench.status().dropped(Reason::Full);
    assert_eq!((dropped.count, dropped.from, dropped.until), (5, 1_000, 5_000));
    while bench.worker.step() == Next::Step {}
    assert!(bench.received().into_iter().flatten().eq((0..8).chain(12..14)));
    assert_eq!(bench.script.lock().unwrap().losses, [("queue full".to_owned(), 5)]);
    assert!(bench.send(15..20), "there is room again");
}

/// A sink that claims to have done and rejected more entries than it got.
struct Boastful;

impl Sink for Boastful {
    fn write(&mut self, _: &[Entry<'_>], _: Duration) -> Result<Written, Failure> {
        Ok(Written::default())
    }

    fn write_some(&mut self, _: &[Entry<'_>], _: Duration) -> Progress {
        let failure = Some(Failure::rejected("many were rejected"));
        Progress { written: Written::default(), done: 100, rejected: 100, failure }
    }
}

#[test]
fn no_more_entries_are_rejected_than_written() {
    let mut bench = bench(Options::default());
    bench.worker = Worker::new(Arc::clone(&bench.shared), Box::new(Boastful));
    assert!(bench.send(0..3));
    assert_eq!(bench.worker.step(), Next::Step);
    let status = bench.status();
    assert_eq!((status.acknowledged, status.lost(), status.queued), (0, 3, 0));
}

#[test]
fn losses_are_reported_at_the_end() {
    let bounds = Bounds { entries: 1, bytes: usize::MAX };
    let mut bench = bench(Options { bounds, slow_consumer: SlowConsumer::Drop, ..Options::default() });
    assert!(bench.send(0..1) && !bench.send(1..4));
    bench.worker.step();
    bench.shared.state().has_ended = true;
    assert_eq!(bench.worker.step(), Next::End);
    bench.worker.close();
    assert_eq!(bench.script.lock().unwrap().losses, [("queue full".to_owned(), 3)]);
    assert_eq!(bench.status().condition, Condition::Closed);
}

#[test]
fn blocking_ends_when_the_sink_makes_no_progress() {
    let bounds = Bounds { entries: 10, bytes: usize::MAX };
    let bench_of =
        |limit| bench(Options { bounds, slow_consumer: SlowConsumer::Block { limit }, ..Options::default() });
    let idle = bench_of(Duration::ZERO);
    assert!(idle.send(0..10) && !idle.send(10..11));
    assert_eq!(idle.status().dropped(Reason::Full).count, 1);
    // A sink that is known to be down is not waited for.
    let mut down = bench_of(Duration::from_secs(3600));
    down.answer(Failure::unavailable("no"), 1);
    assert!(down.send(0..10));
    down.worker.step();
    assert!(!down.send(10..11));
}

#[test]
fn maintenance_is_regular() {
    let mut bench = bench(Options::default());
    let Next::WaitUntil(due) = bench.worker.step() else { unreachable!() };
    assert_eq!(due - bench.clock_ticks(), 10_000_000_000);
    bench.clock.set(Timestamp::from_nanos(due));
    assert!(bench.send(0..1));
    while bench.worker.step() == Next::Step {}
    let maintained = bench.script.lock().unwrap().maintained;
    assert_eq!((maintained, bench.received().len()), (1, 1));
}
