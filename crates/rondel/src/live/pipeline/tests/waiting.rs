//! Waiting messages continue to wait in another run.

use rondel_event::Origin;
use rondel_runtime::alignment::{MaxWait, Policy, TopicAlignment};
use rondel_runtime::{Alignment, StartError, Summary};

use super::*;

const TEXT: &str = "topic a { k: int, x: float, s: string } topic b { k: int, x: float, z: float }
    property steps = once[0, 2] a.x > 1.0
    @time(dense) property ahead = on(a) -> eventually[0, 3 s] on(b)
    @time(dense) property of_a = a.s == 'one' -> mean(a.x) over 4 s > 1.0
    property each for each k in (a.k, b.k) = on(a) -> eventually[0, 3 s] on(b)
    machine m { initial p p -> q when on(a) q -> p when on(b) within 2 s error q for 3 s }
    property never = b.z > 0";

/// Alignment in which the clock releases no message: its pace is that of the test.
fn alignment(policy: Policy) -> Alignment {
    let max_wait = MaxWait::Unlimited;
    let topic = TopicAlignment { max_wait, absent_after: None, in_order: true, lower_bound: 0 };
    Alignment { topics: vec![topic; 2], ahead: None, behind: None, ..Alignment::new(policy) }
}

fn plan(
    specification: &Specification,
    alignment: &Alignment,
    synchronizes: bool,
    clock: &Arc<ManualClock>,
) -> SessionPlan {
    let options = Options {
        inputs: vec![input(), input()],
        alignment: Alignment { notices: true, ..alignment.clone() },
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ..Options::default()
    };
    match synchronizes {
        true => SessionPlan::synchronizer(specification.clone(), options),
        false => SessionPlan::of(specification.clone(), options),
    }
}

/// A pipeline that begins, or continues from a snapshot.
fn pipeline(
    plan: &SessionPlan,
    clock: &Arc<ManualClock>,
    to: &mpsc::Sender<String>,
    notices: &mpsc::Sender<String>,
    resumed: Option<&[u8]>,
) -> Result<Pipeline, StartError> {
    let sink = |to: &mpsc::Sender<String>| Sink::Network(Arc::new(Published(to.clone())));
    let session = match resumed {
        None => plan.start()?,
        Some(bytes) => plan.restore(bytes, "")?,
    };
    let sinks = plan.properties().iter().map(|_| vec![sink(to)]).collect();
    Ok(Pipeline::new(Parts {
        session,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        simulated: None,
        topics: vec!["a".into(), "b".into()],
        sinks: Sinks::new(
            sinks,
            VerdictWriter::new(plan.properties(), Format::Json, false),
            Console::new(Duration::from_secs(3), None),
        ),
        released: vec![sink(to)],
        notices: vec![sink(notices)],
        gates: None,
        recorder: None,
        meter: None,
        tap: None,
        copies: None,
        batching: false,
        stop_after: None,
        stop: mpsc::channel().0,
    }))
}

/// A message of a topic, or a progress marker (2).
type Message = (u32, u64, String);

/// Both topics, each in its order, one behind the other by ever more and less; some numbers are left out, some come
/// twice.
fn messages() -> Vec<Message> {
    let mut all = Vec::new();
    for i in 0..60_u64 {
        let behind = [0, 3, 9, 1][i as usize / 4 % 4];
        all.push((
            i * 10,
            (
                0,
                i - i % 13 / 12,
                format!(r#"{{"t":{i},"k":{},"x":{},"s":"{}"}}"#, i % 3, i % 4, ["one", "né"][i as usize % 2]),
            ),
        ));
        if i % 3 > 0 {
            let time = i as f64 + 0.5 * (i % 2) as f64;
            all.push((
                (i + behind) * 10 + 1,
                (1, i + i / 20, format!(r#"{{"t":{time},"k":{},"x":{}}}"#, i % 3, i % 5)),
            ));
        }
        if i % 7 == 0 {
            let who = ["x", "y"][i as usize / 7 % 2];
            let text = format!(r#"{{"topic":"b","publisher":"{who}","complete":{}}}"#, i as i64 - 12);
            all.push((i * 10 + 2, (2, 0, text)));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    let mut last = [0.0_f64; 2];
    // A message that lags less than its predecessor would step back in time.
    let in_order = |message: &Message| {
        let (topic @ (0 | 1), text) = (message.0, &message.2) else { return true };
        let time: f64 = text[5..].split(',').next().and_then(|time| time.parse().ok()).unwrap();
        let last = &mut last[topic as usize];
        let is = time >= *last;
        *last = last.max(time);
        is
    };
    all.into_iter().map(|(_, message)| message).filter(in_order).collect()
}

/// Returns all verdicts, all reports and the summary of runs that end before the messages at `cuts`.
fn said(
    specification: &Specification,
    alignment: &Alignment,
    synchronizes: bool,
    cuts: &[usize],
) -> (Vec<String>, Vec<String>, String) {
    let ((to, verdicts), (reports, reported)) = (mpsc::channel(), mpsc::channel());
    let messages = messages();
    let clock = Arc::new(ManualClock::default());
    let plan = plan(specification, alignment, synchronizes, &clock);
    let mut resumed: Option<Vec<u8>> = None;
    let mut from = 0;
    for (run, end) in cuts.iter().copied().chain([messages.len()]).enumerate() {
        let goes_on = run < cuts.len();
        let pipeline = pipeline(&plan, &clock, &to, &reports, resumed.as_deref()).unwrap();
        for (i, (topic, number, text)) in messages[from..end].iter().enumerate() {
            let origin = Some(Origin { publisher: 1, number: *number });
            let topic = if *topic == 2 { pipeline.progress() } else { TopicId(*topic) };
            pipeline.receive(topic, &[Sample::new(text.as_bytes(), None, None).with_origin(origin)]);
            // The order of verdicts of several properties about the same messages differs between parts.
            pipeline.idle();
            if i % 10 == 0 {
                // A run can also resume from an intermediate snapshot, and taking one changes nothing.
                assert!(plan.restore(&pipeline.snapshot(Vec::new()), "").is_ok());
            }
        }
        from = end;
        assert!(pipeline.end(goes_on.then_some(true), Duration::from_secs(60)).is_some());
        if !goes_on {
            let Summary { properties, missing, alignment, .. } = pipeline.summary().0;
            let came: Vec<_> =
                properties.iter().map(|p| (p.violations, p.inconclusive, p.last, p.first.clone())).collect();
            let summary = format!("{came:?} {:?} {:?}", missing.fields(), alignment.unwrap().sentences());
            // Losses are summed up for each run, which knows the numbers of its own messages only, and each run
            // looks for shared publishers again.
            let is_kept = |report: &String| {
                !["lost", "shared"].iter().any(|kind| report.contains(&format!("\"report\":\"{kind}\"")))
            };
            let reported = reported.try_iter().filter(is_kept);
            return (verdicts.try_iter().collect(), reported.collect(), summary);
        }
        resumed = Some(pipeline.snapshot(Vec::new()));
    }
    unreachable!()
}

fn specification(synchronizes: bool) -> Specification {
    match synchronizes {
        true => topics(&["a", "b"]),
        false => Specification::new(rondel_spec::parse(TEXT).spec.unwrap()).unwrap(),
    }
}

fn topics(names: &[&str]) -> Specification {
    Specification::of_topics(names.iter().map(|name| (*name).to_owned())).unwrap()
}

const POLICIES: [Policy; 4] = [
    Policy::EventTime,
    Policy::Exact,
    Policy::Approximate { age_penalty: 0.1, max_interval: None },
    Policy::Epsilon(800_000_000),
];

#[test]
fn resumed_runs_report_the_same_as_one_run() {
    let count = messages().len();
    for (policy, synchronizes) in POLICIES.iter().flat_map(|policy| [(*policy, false), (*policy, true)]) {
        let (specification, alignment) = (specification(synchronizes), alignment(policy));
        let whole = said(&specification, &alignment, synchronizes, &[]);
        assert!(whole.0.len() > 15 && whole.1.len() > 2, "{policy:?}: {whole:?}");
        for cut in (0..count).step_by(5) {
            let cuts = [cut, cut + cut * 7 % (count - cut), count];
            let parts = said(&specification, &alignment, synchronizes, &cuts);
            assert_eq!(parts, whole, "{policy:?}, {synchronizes}, {cuts:?}");
        }
    }
}

#[test]
fn snapshot_of_another_specification_is_refused_with_the_reason() {
    let (to, _verdicts) = mpsc::channel();
    let clock = Arc::new(ManualClock::default());
    let (own, both) = (specification(false), specification(true));
    let saved = |specification: &Specification, alignment: &Alignment, synchronizes| {
        let plan = plan(specification, alignment, synchronizes, &clock);
        let pipeline = pipeline(&plan, &clock, &to, &to, None).unwrap();
        messages()[..20].iter().filter(|message| message.0 < 2).for_each(|(topic, _, text)| {
            pipeline.receive(TopicId(*topic), &[Sample::new(text.as_bytes(), None, None)]);
        });
        pipeline.snapshot(Vec::new())
    };
    let refused = |bytes: &[u8], specification: &Specification, alignment: &Alignment, synchronizes| {
        let plan = plan(specification, alignment, synchronizes, &clock);
        pipeline(&plan, &clock, &to, &to, Some(bytes)).map(drop).map_err(|error| error.to_string())
    };
    let why = |bytes: &[u8], specification: &Specification, alignment: &Alignment, synchronizes: bool| {
        refused(bytes, specification, alignment, synchronizes).unwrap_err()
    };
    let ordered = alignment(Policy::EventTime);
    let bytes = saved(&own, &ordered, false);
    assert_eq!(refused(&bytes, &own, &ordered, false), Ok(()));
    let mut longer = ordered.clone();
    longer.topics[1].absent_after = Some(5);
    assert!(why(&bytes, &own, &longer, false).contains("other alignment settings"));
    let other = rondel_spec::parse(&TEXT.replace("[0, 2]", "[0, 3]")).spec.unwrap();
    let other = Specification::new(other).unwrap();
    // Properties that were not edited continue.
    assert_eq!(refused(&bytes, &other, &ordered, false), Ok(()));
    let renamed = TEXT.replace("property ", "property other_").replace("machine m", "machine n");
    let other = rondel_spec::parse(&renamed).spec.unwrap();
    let other = Specification::new(other).unwrap();
    assert!(why(&bytes, &other, &ordered, false).contains("another specification"));
    assert!(why(&bytes, &own, &alignment(Policy::Exact), false).contains("another specification"));
    assert!(why(&bytes, &both, &ordered, true).contains("another specification"));
    let direct = Options { inputs: vec![input(), input()], ..Options::default() };
    let direct = SessionPlan::of(own.clone(), direct).restore(&bytes, "");
    assert!(direct.map(drop).unwrap_err().to_string().contains("wait to be put in order"));
    let sets = saved(&both, &alignment(Policy::Exact), true);
    assert_eq!(refused(&sets, &both, &alignment(Policy::Exact), true), Ok(()));
    assert!(why(&sets, &both, &alignment(Policy::Epsilon(3)), true).contains("other alignment settings"));
    let others = topics(&["a", "c"]);
    assert!(why(&sets, &others, &alignment(Policy::Exact), true).contains("other topics"));
}

/// No content of a file makes restoring panic.
#[test]
fn altered_snapshots_are_refused() {
    let spec = rondel_spec::parse("topic t property p = once on(t)").spec.unwrap();
    let plan = SessionPlan::new(&spec, Options::default()).unwrap();
    let whole = plan.start().unwrap().snapshot("times");
    assert!(plan.restore(&whole, "times").is_ok());
    assert!(
        plan.restore(&whole, "other").map(drop).unwrap_err().to_string().contains("its times were times")
    );
    assert!(plan.restore(&plan.start().unwrap().snapshot(""), "times").is_ok());
    assert!(plan.restore(&whole, "").map(drop).unwrap_err().to_string().contains("its times were times"));
    (0..whole.len()).for_each(|end| assert!(plan.restore(&whole[..end], "times").is_err()));
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        assert!(plan.restore(&altered, "times").is_err(), "byte {at}");
        // Under a right checksum there may be nonsense, but no panic.
        let end = altered.len() - 8;
        for value in [altered[at], 0, 0x7F, 0xFF] {
            altered[at.min(end - 1)] = value;
            let sum = rondel_event::snapshot::sum(&altered[..end]).to_le_bytes();
            altered[end..].copy_from_slice(&sum);
            let _ = plan.restore(&altered, "times");
        }
    }
    let explained = SessionPlan::new(&spec, Options { explain: true, ..Options::default() }).unwrap();
    assert!(explained.restore(&whole, "times").map(drop).unwrap_err().to_string().contains("--explain"));
}

/// Before the first message the length of the gap between two runs is unknown: messages continue to wait, and no
/// topic is absent.
#[test]
fn the_clock_waits_for_a_message() {
    let ((to, verdicts), (reports, reported)) = (mpsc::channel(), mpsc::channel());
    let specification = specification(false);
    let mut alignment = alignment(Policy::EventTime);
    for topic in &mut alignment.topics {
        (topic.max_wait, topic.absent_after) = (MaxWait::Fixed(50_000_000), Some(60_000_000));
    }
    let clock = Arc::new(ManualClock::default());
    let plan = plan(&specification, &alignment, false, &clock);
    let run = |state: Option<&[u8]>| pipeline(&plan, &clock, &to, &reports, state).unwrap();
    let first = run(None);
    first.receive(TopicId(0), &[Sample::new(br#"{"t":5,"k":1,"x":2}"#, None, None)]);
    assert!(first.end(Some(true), Duration::from_secs(60)).is_some());
    let snapshot = first.snapshot(Vec::new());
    let second = run(Some(&snapshot));
    let before: Vec<String> = verdicts.try_iter().chain(reported.try_iter()).collect();
    clock.set(Timestamp::from_nanos(9_000_000_000));
    assert_eq!(second.state().poll(), None);
    assert_eq!((verdicts.try_iter().next(), reported.try_iter().next()), (None, None), "after {before:?}");
    // An hour has passed.
    beat_on(&second, 1, r#"{"t":3605,"k":1,"x":2}"#);
    assert!(verdicts.try_iter().any(|verdict| verdict.contains(r#""verdict":"violated""#)));
    assert_eq!(reported.try_iter().next(), None);
    assert!(second.end(None, Duration::from_secs(60)).is_some());
}

fn beat_on(pipeline: &Pipeline, topic: u32, payload: &str) {
    pipeline.receive(TopicId(topic), &[Sample::new(payload.as_bytes(), None, None)]);
    pipeline.idle();
}
