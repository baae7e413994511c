//! Pipelines in simulation time.

use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Simulation};

use super::*;
use crate::output::time_text::TimeText;

/// A pipeline of `alive` whose time is that of `/clock`: its verdicts, its reports, and the clock of the machine.
struct Case {
    pipeline: Pipeline,
    verdicts: mpsc::Receiver<String>,
    reports: mpsc::Receiver<String>,
    machine: Arc<ManualClock>,
}

impl Case {
    fn new(time: TimeSource) -> Case {
        let machine = Arc::new(ManualClock::default());
        let simulation = Simulation::new(machine.clone());
        let clock: Arc<dyn Clock> = simulation.clock();
        let options = Options {
            inputs: vec![Input { time, ..Input::default() }],
            clock: Arc::clone(&clock),
            alignment: Alignment { ahead: Some(10_000_000_000), ..Alignment::new(Policy::Arrival) },
            live: true,
            ..Options::default()
        };
        let spec = Specification::new(alive(TimeModel::Dense, 2000)).unwrap();
        let plan = Arc::new(SessionPlan::of(spec, options));
        let (published, verdicts) = mpsc::channel();
        let (reported, reports) = mpsc::channel();
        let sinks = vec![vec![Sink::Network(Arc::new(Published(published)))]];
        let writer = VerdictWriter::new(plan.properties(), Format::Json, false);
        let pipeline = Pipeline::new(Parts {
            session: plan.start().unwrap(),
            clock,
            simulated: Some(Simulated::new(simulation, plan)),
            topics: vec!["beat".into()],
            sinks: Sinks::new(sinks, writer, Console::new(Duration::from_secs(3), None)),
            released: Vec::new(),
            notices: vec![Sink::Network(Arc::new(Published(reported)))],
            gates: None,
            recorder: None,
            meter: None,
            tap: None,
            copies: None,
            batching: false,
            stop_after: None,
            stop: mpsc::channel().0,
        });
        Case { pipeline, verdicts, reports, machine }
    }

    /// Lets a tenth of a second pass on the machine.
    fn pass(&self) {
        self.machine.set(Timestamp::from_nanos(self.machine.now().as_nanos() + 100_000_000));
        self.pipeline.alive();
    }

    /// A message on `/clock` with this time, in tenths of a second.
    fn clock(&self, tenths: i64) {
        self.pass();
        let (seconds, nanos) = ((tenths / 10) as i32, (tenths % 10 * 100_000_000) as u32);
        self.pipeline.set_clock(&[&[0, 1, 0, 0], &seconds.to_le_bytes()[..], &nanos.to_le_bytes()].concat());
        self.pipeline.state().poll();
    }

    /// Messages on `/clock` from one time to another.
    fn clocks(&self, tenths: std::ops::RangeInclusive<i64>) {
        tenths.for_each(|tenths| self.clock(tenths));
    }

    /// Each verdict with its time.
    fn verdicts(&self) -> Vec<(f64, String)> {
        let verdict = |line: String| {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            (line["time"].as_f64().unwrap(), line["verdict"].as_str().unwrap().to_owned())
        };
        self.verdicts.try_iter().map(verdict).collect()
    }

    fn kinds(&self) -> Vec<String> {
        let kind = |line: String| {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            line["report"].as_str().unwrap().to_owned()
        };
        self.reports.try_iter().map(kind).collect()
    }
}

fn verdict(time: f64, verdict: &str) -> (f64, String) {
    (time, verdict.to_owned())
}

#[test]
fn time_is_that_of_the_simulation() {
    let case = Case::new(TimeSource::Arrival);
    case.clock(1000);
    beat(&case.pipeline, "{}");
    assert_eq!(case.verdicts(), [verdict(100.0, "satisfied")]);
    // It is paused: with messages on /clock, and without.
    (0..50).for_each(|_| case.clock(1000));
    (0..50).for_each(|_| case.pass());
    case.clocks(1001..=1020);
    assert!(case.verdicts.try_recv().is_err(), "silence is that of the simulation");
    case.clocks(1021..=1022);
    assert_eq!(case.verdicts(), [verdict(102.0, "violated")]);
    assert_eq!(case.kinds(), [] as [&str; 0]);
    let summary = case.pipeline.summary().0;
    assert!(summary.pauses.is_empty() && summary.counts.refused == 0);
}

#[test]
fn nothing_is_decided_by_time_before_the_first_message_on_clock() {
    for (time, payload) in [(TimeSource::Arrival, "{}"), (input().time, r#"{"t": 1700000000}"#)] {
        let case = Case::new(time);
        beat(&case.pipeline, payload);
        assert_eq!(case.verdicts().len(), 1);
        for _ in 0..99 {
            case.pass();
            case.pipeline.state().poll();
        }
        assert_eq!(case.kinds(), [] as [&str; 0]);
        (0..30).for_each(|_| case.pass());
        assert_eq!(case.kinds(), ["no_clock"]);
        // It begins now, somewhere: how long ago the message came is not known.
        case.clocks(17_000_000_000..=17_000_000_009);
        let pauses = case.pipeline.summary().0.pauses;
        let said = pauses[0].sentence(&mut |time| TimeText::default().text(time));
        assert!(
            said.starts_with("the first message on /clock, of 2023-11-1") && !said.contains("0 s"),
            "{said}"
        );
        let said: Vec<String> = case.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
        assert!(!said.contains(&"violated".to_owned()), "{said:?}");
        assert_eq!(case.pipeline.summary().0.counts.refused, 0);
    }
}

#[test]
fn leap_of_the_clock_is_not_taken_for_silence() {
    for (time, payload) in
        [(TimeSource::Arrival, ["{}"; 3]), (input().time, [r#"{"t": 10}"#, r#"{"t": 90}"#, r#"{"t": 92}"#])]
    {
        let case = Case::new(time);
        case.clocks(98..=100);
        beat(&case.pipeline, payload[0]);
        assert_eq!(case.verdicts(), [verdict(10.0, "satisfied")]);
        case.clocks(900..=900);
        beat(&case.pipeline, payload[1]);
        // Messages may be missing up to a second after the leap: two more make it certain that none came.
        case.clocks(901..=920);
        assert!(case.verdicts().iter().all(|(_, verdict)| verdict != "violated"));
        assert_eq!(case.kinds(), ["paused", "blind"]);
        // Then nothing comes any more.
        beat(&case.pipeline, payload[2]);
        case.clocks(921..=945);
        assert_eq!(case.verdicts(), [verdict(94.0, "violated")]);
    }
}

#[test]
fn checking_restarts_with_the_simulation() {
    for time in [TimeSource::Arrival, input().time] {
        let case = Case::new(time);
        case.clocks(5000..=5002);
        beat(&case.pipeline, r#"{"t": 500.2}"#);
        case.clocks(5003..=5023);
        assert_eq!(case.verdicts(), [verdict(500.2, "satisfied"), verdict(502.2, "violated")]);
        case.clocks(0..=3);
        beat(&case.pipeline, r#"{"t": 0.3}"#);
        case.clocks(4..=20);
        assert_eq!(case.verdicts(), [verdict(0.3, "satisfied")]);
        // A message from before the restart.
        beat(&case.pipeline, r#"{"t": 500.3}"#);
        case.clocks(21..=60);
        let refused = case.pipeline.summary().0.counts.refused;
        let said = case.verdicts();
        // A message that is refused may have been one of now: nothing is certain before its time has passed, too.
        let expected = if refused == 1 { 4.000_000_001 } else { 4.0 };
        assert_eq!(said.last(), Some(&verdict(expected, "violated")), "{said:?}");
        assert_eq!(case.kinds()[0], "simulation_restarted");
        let summary = case.pipeline.summary().0;
        assert_eq!((summary.counts.received, summary.properties[0].violations), (3, 2));
        assert_eq!(summary.topics[0].name, "beat");
    }
}

/// Ends the pipeline and returns its statistics of `/clock`.
fn account(case: &Case) -> ClockAccount {
    assert!(case.pipeline.end(None, Duration::from_secs(5)).is_some());
    case.pipeline.clock_account().unwrap()
}

#[test]
fn summary_reports_a_missing_clock() {
    let case = Case::new(TimeSource::Arrival);
    beat(&case.pipeline, "{}");
    case.pipeline.set_clock(b"no clock");
    let clock = account(&case);
    assert!(clock.stood(), "however short the run was");
    assert_eq!((clock.messages, clock.unread), (0, 1));
    let said = clock.sentences(&mut TimeText::default());
    assert!(said[0].starts_with("no message came on /clock:"), "{said:?}");
    assert!(said[1].starts_with("1 message on /clock could not be read"), "{said:?}");
}

#[test]
fn summary_reports_a_stopped_clock() {
    for (tenths, stood) in [(90, false), (150, true)] {
        let case = Case::new(TimeSource::Arrival);
        case.clocks(1000..=1005);
        beat(&case.pipeline, "{}");
        (0..tenths).for_each(|_| case.pass());
        let clock = account(&case);
        assert_eq!(clock.stood(), stood, "{tenths}");
        let said = clock.sentences(&mut TimeText::default());
        let expected =
            "no message came on /clock in the last 15.0 s: time stood, and nothing was decided by time alone";
        assert_eq!(said.first().is_some_and(|sentence| sentence == expected), stood, "{said:?}");
        assert_eq!(clock.json()["silent"], serde_json::json!(tenths as f64 / 10.0));
    }
}

#[test]
fn restarts_and_leaps_are_counted_and_not_listed() {
    let case = Case::new(TimeSource::Arrival);
    for _ in 0..60 {
        case.clocks(1000..=1010);
    }
    let clock = account(&case);
    assert_eq!((clock.restarts.count, clock.leaps.count, clock.is_contested), (59, 0, true));
    assert_eq!(clock.json()["restarts"], 59);
    let said = clock.sentences(&mut TimeText::default());
    assert_eq!(said.len(), 2, "{said:?}");
    assert_eq!(
        said[0],
        "the time on /clock went back, and checking restarted, 59 times, at first from 101 s to 100 s, at last from \
         101 s to 100 s"
    );
    assert_eq!(said[1], "the time on /clock jumped 59 times: are there two publishers of /clock?");
    let case = Case::new(TimeSource::Arrival);
    case.clocks(0..=3);
    for i in 1..=200 {
        case.clocks(i * 1000..=i * 1000 + 3);
    }
    let clock = account(&case);
    assert_eq!((clock.restarts.count, clock.leaps.count), (0, 200));
    let said = clock.sentences(&mut TimeText::default());
    assert_eq!(
        said[0],
        "the time on /clock leapt 200 times, at first from 0.3 s to 100 s, at last from 19900.3 s to 20000 s"
    );
    // A single restart does not indicate two publishers.
    let case = Case::new(TimeSource::Arrival);
    case.clocks(1000..=1010);
    case.clocks(0..=3);
    let clock = account(&case);
    assert!(!clock.is_contested);
    let said = clock.sentences(&mut TimeText::default());
    assert_eq!(said, ["the time on /clock went back, and checking restarted, 1 time, from 101 s to 0 s"]);
}

#[test]
fn stop_of_the_monitor_is_not_taken_for_silence() {
    let case = Case::new(TimeSource::Arrival);
    case.clocks(98..=100);
    beat(&case.pipeline, "{}");
    case.verdicts();
    // For three seconds the simulation continues; its messages arrive after those on /clock.
    case.machine.set(Timestamp::from_nanos(case.machine.now().as_nanos() + 3_000_000_000));
    case.clocks(131..=135);
    beat(&case.pipeline, "{}");
    case.clocks(136..=155);
    assert!(case.verdicts().iter().all(|(_, verdict)| verdict != "violated"));
    assert!(case.kinds().contains(&"paused".to_owned()));
    beat(&case.pipeline, "{}");
    case.clocks(156..=180);
    assert_eq!(case.verdicts().last(), Some(&verdict(17.5, "violated")));
}
