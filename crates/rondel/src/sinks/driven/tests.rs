use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rondel_event::{Timestamp, TopicId};
use rondel_runtime::{Session, Stamp, Summary};
use rondel_sinks::{Failure, Written};
use rondel_testkit::{Folder, LIMIT};

use super::*;

/// All entries of [`run`].
const ENTRIES: [&str; 4] = ["begin car", "verdict a", "verdict b", "end finished"];

const SPECIFICATION: &str = "topic t { x: float } property a = t.x < 3 property b = t.x < 9";

/// A sink that keeps what it receives.
#[derive(Clone, Default)]
struct Received {
    entries: Arc<Mutex<Vec<String>>>,
    is_down: Arc<AtomicBool>,
    notifies: bool,
}

impl Received {
    fn entries(&self) -> Vec<String> {
        self.entries.lock().unwrap().clone()
    }
}

impl Sink for Received {
    fn write(&mut self, entries: &[Entry<'_>], _limit: Duration) -> Result<Written, Failure> {
        if self.is_down.load(Ordering::Acquire) {
            return Err(Failure::unavailable("it is down"));
        }
        let mut written = Written::default();
        let mut received = self.entries.lock().unwrap();
        for entry in entries {
            received.push(match entry {
                Entry::Begin(begin) => format!("begin {}", begin.series),
                Entry::Verdict(verdict) => {
                    written.stored += 1;
                    format!("verdict {}", verdict.property)
                }
                Entry::Loss(loss) => format!("loss {}", loss.reason),
                Entry::End(end) => format!("end {}", end.status),
                Entry::Reached(_) => "reached".to_owned(),
            });
        }
        Ok(written)
    }

    fn notifies(&self) -> bool {
        self.notifies
    }
}

/// Opens a destination of verdicts on these properties. The file of an earlier one may still be locked by its thread.
fn open(sink: &Received, spool: Option<&SpoolSettings>, properties: &[&str]) -> Destination {
    let deadline = Instant::now() + LIMIT;
    loop {
        let opened = Destination::open(Opening {
            role: Role::Sink,
            name: "test".to_owned(),
            sink: Box::new(sink.clone()),
            operators: Operators::default(),
            series: "car".to_owned(),
            wait: Some(Duration::from_millis(10)),
            spool,
            filter: Filter {
                properties: properties.iter().map(|name| (*name).to_owned()).collect(),
                severity: None,
            },
            lock: None,
        });
        match opened {
            Ok(destination) => return destination,
            Err(why) => assert!(Instant::now() < deadline && why.contains("another process"), "{why}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Begins a run of a specification with two properties.
fn begin_run(destinations: &[Destination]) -> DestinationFeed {
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    let specification = Described { name: "test".to_owned(), hash: String::new(), texts: Vec::new() };
    let properties = PropertyInfo::all(&spec, None);
    let description = RunDescription {
        kind: RunKind::Live,
        resumes: false,
        specification: &specification,
        configuration: "",
        configuration_hash: "",
        properties: &properties,
    };
    begin(destinations, &description).unwrap()
}

/// Runs to the end with one verdict on each of two properties.
fn run(destinations: &[Destination]) {
    let mut feed = begin_run(destinations);
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    let mut session = Session::new(&spec, rondel_runtime::Options::default()).unwrap();
    session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(5)), br#"{"x": 8.5}"#).unwrap();
    session.flush();
    for report in session.reports() {
        feed.verdict(&report);
    }
    feed.send();
    feed.end("finished");
}

/// Violations of `a` are silenced until an operator removes the silence.
#[cfg(feature = "sqlite")]
#[test]
fn violation_that_outlasts_its_silence_is_notified_then() {
    use rondel_sinks::sqlite::{NewSilence, Operations, SqliteSink, StoreOptions};
    let folder = Folder::new();
    let path = folder.as_path().join("v.db");
    let mut store = SqliteSink::open(&path, StoreOptions::default()).unwrap();
    let spec = rondel_spec::parse(SPECIFICATION).spec.unwrap();
    let properties = PropertyInfo::all(&spec, None);
    let properties = properties.iter().map(|info| PropertyEntry::new(info, "")).collect();
    let begin = Begin { run: RunKey(1), series: "car", properties, ..Begin::default() };
    store.write(&[Entry::Begin(Box::new(begin))], LIMIT).unwrap();
    let mut operations = Operations::open(&path, LIMIT).unwrap();
    let (from, until) = (now().as_nanos() - 1_000_000_000, i64::MAX);
    let silence = NewSilence { property: "a", parameters: "", from, until, by: "ada", comment: "" };
    let silence = operations.silence(&silence).unwrap().subject;
    store.look(now().as_nanos(), LIMIT).unwrap();

    let sink = Received { notifies: true, ..Received::default() };
    let mut destination = open(&sink, None, &[]);
    destination.operators.silenced = Silenced { silences: Some(store.silences()) };
    let mut feed = begin_run(std::slice::from_ref(&destination));
    let mut session = Session::new(&spec, rondel_runtime::Options::default()).unwrap();
    let mut push = |feed: &mut DestinationFeed, seconds: i64, x: f64| {
        let stamp = Stamp::at(Timestamp::from_nanos(seconds * 1_000_000_000));
        session.push(TopicId(0), stamp, format!("{{\"x\": {x}}}").as_bytes()).unwrap();
        session.flush();
        session.reports().for_each(|report| feed.verdict(&report));
        feed.send();
        feed.look();
    };
    push(&mut feed, 1, 8.5);
    // One that ends in its silence is never notified.
    push(&mut feed, 2, 1.0);
    push(&mut feed, 3, 8.5);
    operations.remove_silence(silence, "ada", now().as_nanos()).unwrap();
    store.look(now().as_nanos(), LIMIT).unwrap();
    feed.look();
    feed.look();
    feed.end("finished");
    destination.close(LIMIT);
    let expected = ["begin car", "verdict b", "verdict a", "verdict a", "end finished"];
    assert_eq!(sink.entries(), expected, "the end of the first violation, and the second one");
}

fn settings(folder: &Folder) -> SpoolSettings {
    SpoolSettings { directory: folder.as_path().join("kept"), limit: 1 << 20, is_default: false }
}

/// Opens the destination again, which works now, and checks that it receives every entry once.
#[track_caller]
fn expect_all_later(spool: &SpoolSettings) {
    let up = Received::default();
    let summary = open(&up, Some(spool), &[]).close(LIMIT);
    assert!(summary.is_complete(), "{}", summary.sentence());
    assert_eq!(up.entries(), ENTRIES);
    assert_eq!(std::fs::read_dir(&spool.directory).unwrap().count(), 0);
}

#[test]
fn report_goes_to_the_sinks_of_its_property() {
    let (all, one, none) = (Received::default(), Received::default(), Received::default());
    none.is_down.store(true, Ordering::Release);
    let destinations = vec![open(&none, None, &[]), open(&all, None, &[]), open(&one, None, &["b"])];
    run(&destinations);
    let summaries = Destinations(destinations).close(Duration::from_millis(200));
    let complete: Vec<bool> = summaries.iter().map(DestinationSummary::is_complete).collect();
    assert_eq!(complete, [false, true, true]);
    assert_eq!(all.entries(), ENTRIES);
    assert_eq!(one.entries(), ["begin car", "verdict b", "end finished"]);
    assert!(summaries[0].sentence().contains("4 entries were NOT written: it is down"));
}

#[test]
fn entries_of_a_sink_that_is_down_wait_for_the_next_run() {
    let folder = Folder::new();
    let (spool, down) = (settings(&folder), Received::default());
    down.is_down.store(true, Ordering::Release);
    let first = open(&down, Some(&spool), &[]);
    run(std::slice::from_ref(&first));
    let summary = first.close(Duration::from_millis(200));
    assert!(
        !summary.is_complete() && summary.sentence().contains("4 entries wait in"),
        "{}",
        summary.sentence()
    );
    drop(first);
    assert!(down.entries().is_empty());
    expect_all_later(&spool);
}

#[test]
fn entries_of_a_sink_that_is_down_are_in_the_file_while_the_run_lasts() {
    let folder = Folder::new();
    let (spool, sink) = (settings(&folder), Received::default());
    sink.is_down.store(true, Ordering::Release);
    let destination = open(&sink, Some(&spool), &[]);
    run(std::slice::from_ref(&destination));
    let handle = destination.handle();
    assert!(handle.is_written_within(LIMIT), "{:?}", handle.state());
    let deadline = Instant::now() + LIMIT;
    while handle.state().in_file < 4 {
        assert!(Instant::now() < deadline, "{:?}", handle.state());
        thread::sleep(Duration::from_millis(5));
    }
    // It works again: every entry arrives once, and the file goes.
    sink.is_down.store(false, Ordering::Release);
    while handle.state().waiting > 0 {
        assert!(Instant::now() < deadline, "{:?}", handle.state());
        thread::sleep(Duration::from_millis(5));
    }
    let summary = destination.close(LIMIT);
    assert!(summary.is_complete(), "{}", summary.sentence());
    assert_eq!(sink.entries(), ENTRIES);
    assert_eq!(std::fs::read_dir(&spool.directory).unwrap().count(), 0);
}

#[test]
fn loss_of_a_full_file_is_recorded_by_the_next_run() {
    let folder = Folder::new();
    let (spool, down) = (SpoolSettings { limit: 1 << 10, ..settings(&folder) }, Received::default());
    down.is_down.store(true, Ordering::Release);
    let first = open(&down, Some(&spool), &[]);
    for _ in 0..20 {
        run(std::slice::from_ref(&first));
    }
    let lost = first.close(Duration::from_millis(200)).state.lost();
    assert!(lost > 0);
    drop(first);
    let up = Received::default();
    let next = open(&up, Some(&spool), &[]);
    assert_eq!(next.close(LIMIT).state.lost(), 0);
    assert_eq!(up.entries().last().map(String::as_str), Some("loss file full"));
    assert_eq!(up.entries().len() as u64, 80 - lost + 1);
}

#[test]
fn loss_of_a_full_file_waits_until_it_is_empty() {
    let folder = Folder::new();
    let (spool, sink) = (SpoolSettings { limit: 1 << 10, ..settings(&folder) }, Received::default());
    sink.is_down.store(true, Ordering::Release);
    let destination = open(&sink, Some(&spool), &[]);
    for _ in 0..20 {
        run(std::slice::from_ref(&destination));
    }
    let (handle, deadline) = (destination.handle(), Instant::now() + LIMIT);
    let wait = |is_reached: &dyn Fn(&DestinationState) -> bool| {
        while !is_reached(&handle.state()) {
            assert!(Instant::now() < deadline, "{:?}", handle.state());
            thread::sleep(Duration::from_millis(5));
        }
    };
    // The first account finds no room; the second one comes after the sink has recovered.
    let mut feed = begin_run(std::slice::from_ref(&destination));
    wait(&|state: &DestinationState| state.lost() > 0);
    feed.account(Summary::default, true);
    sink.is_down.store(false, Ordering::Release);
    wait(&|state: &DestinationState| state.waiting == 0);
    while sink.entries().iter().filter(|entry| *entry == "loss file full").count() == 0 {
        assert!(Instant::now() < deadline, "{:?}", sink.entries());
        feed.account(Summary::default, true);
        thread::sleep(Duration::from_millis(5));
    }
    feed.end("finished");
    destination.close(LIMIT);
    assert_eq!(sink.entries().iter().filter(|entry| *entry == "loss file full").count(), 1);
}

#[test]
fn entries_of_another_encoding_are_refused() {
    let folder = Folder::new();
    let opened = settings(&folder).open_of_series("test", "car").unwrap();
    opened.keep(&Nowhere, &[9, 1, 2, 3]).unwrap();
    assert!(
        check_encoding("test", &opened).is_err_and(|why| why.contains("the encoding 9 of another release"))
    );
}

/// A publisher without anything to hand back.
struct Nowhere;

impl Publisher for Nowhere {
    fn publish(&self, _: &[u8]) -> Result<(), rondel_net::adapter::PublishError> {
        Err(rondel_net::adapter::PublishError::Slow)
    }
}
