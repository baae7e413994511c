//! Sinks behind their threads.

#![allow(clippy::unwrap_used)] // tests

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_runtime::{PropertyInfo, Session, Stamp, SystemClock};
use rondel_sinks::{
    Begin, Bounds, Closed, Condition, Driver, Entry, Failure, Options, PropertyEntry, Reason, Refused,
    RunKey, Sink, SlowConsumer, Truth, Written,
};

const LIMIT: Duration = Duration::from_secs(30);

/// A sink that waits for a permission per call, and passes the texts of entries on.
struct Gate {
    permits: Receiver<()>,
    received: Arc<Mutex<Vec<String>>>,
    json: bool,
}

impl Sink for Gate {
    fn write(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Result<Written, Failure> {
        self.permits.recv().map_err(|_| Failure::broken("the test has ended"))?;
        let mut received = self.received.lock().unwrap();
        received.extend(entries.iter().map(|entry| match entry {
            Entry::Verdict(verdict) if !verdict.json.is_empty() => verdict.json.to_owned(),
            Entry::Verdict(verdict) => {
                format!("{}{} {:?} {:?}", verdict.property, verdict.parameters, verdict.verdict, verdict.id)
            }
            Entry::Begin(begin) => format!("begin {}", begin.properties[0].severity),
            Entry::Loss(loss) => format!("loss {} {}", loss.reason, loss.count),
            Entry::End(end) => format!("end {}", end.status),
            Entry::Reached(reached) => format!("reached {}", reached.time),
        }));
        Ok(Written { stored: entries.len() as u64, repeated: 0 })
    }

    fn wants_json(&self) -> bool {
        self.json
    }
}

fn gate(json: bool, options: Options) -> (Driver, SyncSender<()>, Arc<Mutex<Vec<String>>>) {
    let (permit, permits) = sync_channel(1000);
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Gate { permits, received: Arc::clone(&received), json };
    (Driver::start("test", Box::new(sink), options, Arc::new(SystemClock)).unwrap(), permit, received)
}

/// Sends the verdicts of a session on two robots.
fn check(driver: &Driver) {
    let text = "topic t { id: int, x: float }
                @severity(critical) property p for each id in t.id = t.x < 3";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let options = rondel_runtime::Options { ids: true, ..rondel_runtime::Options::default() };
    let mut session = Session::new(&spec, options).unwrap();
    let infos = PropertyInfo::all(&spec, None);
    let properties = infos.iter().map(|info| PropertyEntry::new(info, "t.x < 3")).collect();
    let mut feed = driver.feed();
    feed.begin(Begin { run: RunKey(1), series: "demo", properties, ..Begin::default() });
    for (i, payload) in [r#"{"id":1,"x":8.5}"#, r#"{"id":2,"x":1}"#].iter().enumerate() {
        let stamp = Stamp::at(Timestamp::from_nanos(i as i64));
        session.push(TopicId(0), stamp, payload.as_bytes()).unwrap();
    }
    session.flush();
    for report in session.reports() {
        feed.verdict(&report, Timestamp::from_nanos(7));
    }
    assert!(feed.send());
    feed.loss("late", "t", 3, Timestamp::ZERO, Timestamp::ZERO);
    feed.end(Timestamp::from_nanos(9), "finished");
}

#[test]
fn reports_arrive_with_everything() {
    for json in [false, true] {
        let (driver, permit, received) = gate(json, Options::default());
        (0..10).for_each(|_| permit.send(()).unwrap());
        check(&driver);
        let handle = driver.handle();
        assert_eq!(driver.close(LIMIT), Closed { unwritten: 0, is_ended: true });
        let received = received.lock().unwrap();
        assert_eq!(received[0], "begin critical");
        let expected = match json {
            true => {
                r#"{"property":"p","key":{"id":1},"time":0,"step":0,"verdict":"violated","severity":"critical","id":""#
            }
            false => r#"p{"id":1} Violated Some("#,
        };
        assert!(received[1].starts_with(expected), "{}", received[1]);
        assert_eq!(received[3..], ["loss late 3", "end finished"]);
        let status = handle.status();
        assert_eq!((status.accepted, status.acknowledged, status.lost()), (5, 5, 0));
        assert_eq!(status.condition, Condition::Closed);
    }
}

#[test]
fn full_queue_waits_for_a_sink_that_makes_progress() {
    let slow_consumer = SlowConsumer::Block { limit: LIMIT };
    let bounds = Bounds { entries: 1, bytes: 1 << 20 };
    let (driver, permit, received) = gate(false, Options { bounds, slow_consumer, ..Options::default() });
    let mut feed = driver.feed();
    let permits = std::thread::spawn(move || {
        for _ in 0..200 {
            permit.send(()).unwrap();
        }
        permit
    });
    for _ in 0..200 {
        feed.loss("late", "t", 1, Timestamp::ZERO, Timestamp::ZERO);
        assert!(feed.send());
    }
    assert!(driver.handle().flush(LIMIT) && driver.close(LIMIT).unwritten == 0);
    assert_eq!(received.lock().unwrap().len(), 200);
    drop(permits.join().unwrap());
}

#[test]
fn entries_can_be_kept_elsewhere() {
    // As a file of a caller does it: refused entries, and those that are not acknowledged, go there.
    let bounds = Bounds { entries: 3, bytes: 1 << 20 };
    let (driver, permit, _received) = gate(false, Options { bounds, hands_back: true, ..Options::default() });
    let (mut feed, handle) = (driver.feed(), driver.handle());
    for count in 0..5 {
        feed.loss("late", "t", count, Timestamp::ZERO, Timestamp::ZERO);
    }
    let mut entries: Vec<Vec<u8>> = Vec::new();
    feed.take(|entry| entries.push(entry.to_vec()));
    let taken: Vec<bool> = entries.iter().map(|entry| handle.offer(entry, Duration::ZERO).is_ok()).collect();
    assert_eq!(taken, [true, true, true, false, false]);
    assert_eq!(handle.offer(&entries[3], Duration::ZERO), Err(Refused::Full));
    assert_eq!(handle.unconfirmed(), 3);
    // The sink answers nothing any more.
    drop(permit);
    assert_eq!(driver.close(Duration::ZERO).unwritten, 3);
    let mut left = Vec::new();
    handle.visit_unconfirmed(&mut |entry| left.push(entry.to_vec()));
    assert_eq!(left, entries[..3]);
    assert_eq!((handle.status().lost(), handle.offer(&entries[3], LIMIT)), (0, Err(Refused::Closed)));
}

/// A sink that panics, or that never returns unless it is interrupted.
struct Stuck {
    panics: bool,
    entered: SyncSender<()>,
    interrupt: Arc<(SyncSender<()>, Mutex<Receiver<()>>)>,
}

impl Sink for Stuck {
    fn write(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Result<Written, Failure> {
        let _ = self.entered.try_send(());
        if self.panics {
            // An index beyond the end: a fault that no error describes.
            let none = entries.len();
            let _ = &entries[none];
        }
        let _ = self.interrupt.1.lock().unwrap().recv();
        Err(Failure::unavailable("interrupted"))
    }

    fn interrupter(&mut self) -> Option<Box<dyn Fn() + Send + Sync>> {
        let interrupt = Arc::clone(&self.interrupt);
        Some(Box::new(move || {
            let _ = interrupt.0.try_send(());
        }))
    }
}

#[test]
fn sink_that_panics_or_hangs_holds_nothing_up() {
    for panics in [false, true] {
        let (sender, receiver) = sync_channel(1);
        let interrupt = Arc::new((sender, Mutex::new(receiver)));
        let (entered, is_entered) = sync_channel(1);
        let sink = Box::new(Stuck { panics, entered, interrupt });
        let driver = Driver::start("test", sink, Options::default(), Arc::new(SystemClock)).unwrap();
        let (mut feed, handle) = (driver.feed(), driver.handle());
        feed.loss("late", "t", 1, Timestamp::ZERO, Timestamp::ZERO);
        assert!(feed.send());
        is_entered.recv().unwrap();
        assert!(driver.close(Duration::ZERO).is_ended);
        let status = handle.status();
        let reason = if panics { Reason::Broken } else { Reason::Ended };
        assert_eq!((status.dropped(reason).count, status.lost(), status.queued), (1, 1, 0));
        feed.loss("late", "t", 1, Timestamp::ZERO, Timestamp::ZERO);
        assert!(!feed.send() && handle.status().lost() == 2, "it is counted afterwards as well");
    }
}

#[test]
fn verdicts_can_be_encoded_without_a_session() {
    let mut bytes = Vec::new();
    Entry::Loss(rondel_sinks::Loss::default()).encode(&mut bytes);
    assert!(Entry::decode(&bytes).is_ok());
    assert_eq!(Truth::from(rondel_event::Verdict::Violated), Truth::Violated);
}
