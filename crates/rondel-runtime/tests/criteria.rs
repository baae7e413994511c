//! Asserts against their definition: the truth at every instant and between, or at every event, is computed from the
//! recording alone, and the demanded measure is the computed one, one more, or one less.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-runtime --test suite criteria` runs one seed alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::sync::Arc;

use rondel_event::{Origin, Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Blind, ManualClock, Options, Session, Stamp};
use rondel_testkit::Random;

const SECOND: i64 = 1_000_000_000;

/// A message: its time in seconds, its topic (0: `t`, 1: `m`), and its value, if it is not null.
#[derive(Clone, Copy, Debug)]
struct Message {
    time: i64,
    topic: u32,
    value: Option<i64>,
}

/// A formula of which the truth is known by definition.
#[derive(Clone, Copy, Debug)]
enum Formula {
    Above(i64),
    Arrives,
    OnceAbove(i64, i64),
}

impl Formula {
    fn text(self, dense: bool) -> String {
        let unit = if dense { " s" } else { "" };
        match self {
            Formula::Above(limit) => format!("t.x > {limit}"),
            Formula::Arrives => "on(t)".to_owned(),
            Formula::OnceAbove(back, limit) => format!("once[0, {back}{unit}] t.x > {limit}"),
        }
    }
}

/// The truths at all positions: at every event; or, in dense time, at `2t - 2 * first` for an instant and one more for
/// what follows it, up to the last message.
fn truths(messages: &[Message], formula: Formula, dense: bool) -> Vec<Option<bool>> {
    let first = messages[0].time;
    let value = |topic: u32, position: i64| -> Option<i64> {
        let is_before = |(i, message): &(usize, &Message)| match dense {
            true => 2 * (message.time - first) <= position,
            false => *i as i64 <= position,
        };
        let last = messages.iter().enumerate().filter(is_before).rfind(|(_, m)| m.topic == topic);
        last.and_then(|(_, message)| message.value)
    };
    let count = match dense {
        true => 2 * (messages[messages.len() - 1].time - first) + 1,
        false => messages.len() as i64,
    };
    let above = |limit: i64, position: i64| value(0, position).map(|value| value > limit);
    let at = |position: i64| match formula {
        Formula::Above(limit) => above(limit, position),
        Formula::Arrives if dense => {
            Some(messages.iter().any(|m| m.topic == 0 && 2 * (m.time - first) == position))
        }
        Formula::Arrives => Some(messages[position as usize].topic == 0),
        Formula::OnceAbove(back, limit) => {
            let back = if dense { 2 * back } else { back };
            let seen = (position - back..=position).filter(|position| *position >= 0);
            // From between two instants, a window reaches into all that it touches.
            let seen: Vec<Option<bool>> = seen.map(|position| above(limit, position)).collect();
            match (seen.contains(&Some(true)), seen.contains(&None)) {
                (true, _) => Some(true),
                (false, true) => None,
                (false, false) => Some(false),
            }
        }
    };
    (0..count).map(at).collect()
}

/// Measures by definition: total measure of the true and the false positions, the longest true stretch, the number of
/// times that the formula becomes true, and false, within the span of the assert, and whether a position in it is true,
/// and false.
#[derive(Debug, Default)]
struct Measures {
    satisfied: u64,
    violated: u64,
    longest: u64,
    rises: u64,
    falls: u64,
    is_ever: bool,
    is_never: bool,
}

/// Measures of a formula with these truths; `part` gives the positions within the span of the assert.
fn measured(truths: &[Option<bool>], part: &[bool], dense: bool) -> Measures {
    let measure = |position: usize| u64::from(!dense || position % 2 == 1);
    let mut all = Measures::default();
    let mut run = 0;
    for (i, truth) in truths.iter().enumerate().filter(|(i, _)| part[*i]) {
        let begins = i == 0 || truths[i - 1] != *truth;
        run = if i == 0 || truths[i - 1] != Some(true) || !part[i - 1] { 0 } else { run };
        match truth {
            Some(true) => {
                all.satisfied += measure(i);
                all.is_ever = true;
                all.rises += u64::from(begins);
                run += measure(i);
                all.longest = all.longest.max(run);
            }
            Some(false) => {
                all.violated += measure(i);
                all.is_never = true;
                all.falls += u64::from(begins);
            }
            None => {}
        }
    }
    all
}

/// Random messages; in dense time no two at once, because a time has one truth here.
fn messages(numbers: &mut Random, dense: bool) -> Vec<Message> {
    let mut time = numbers.below(5) as i64;
    let count = 1 + numbers.below(14);
    let message = |_| {
        time += numbers.below(4) as i64 + i64::from(dense);
        let topic = u32::from(numbers.below(3) == 0);
        let value = (numbers.below(6) > 0).then(|| numbers.below(if topic == 0 { 4 } else { 2 }) as i64);
        Message { time, topic, value }
    };
    (0..count).map(message).collect()
}

/// A formula and the clauses of asserts on it.
#[derive(Clone, Copy, Debug)]
struct Case {
    dense: bool,
    formula: Formula,
    is_negated: bool,
    span: Option<(usize, usize)>,
    has_mode: bool,
    /// Whether the asserts name a property.
    is_named: bool,
}

/// Limits that the asserts compare with.
#[derive(Clone, Copy, Debug)]
struct Limits {
    near: u64,
    count: u64,
    share: f64,
}

impl Case {
    fn new(numbers: &mut Random) -> Case {
        let dense = numbers.below(2) == 0;
        let formula = match numbers.below(4) {
            0 => Formula::Arrives,
            1 => Formula::OnceAbove(1 + numbers.below(4) as i64, numbers.below(3) as i64),
            _ => Formula::Above(numbers.below(3) as i64),
        };
        let is_negated = numbers.below(2) == 0;
        let begin = numbers.below(12) as usize;
        let span = (numbers.below(3) == 0).then(|| (begin, begin + numbers.below(12) as usize));
        let (has_mode, is_named) = (numbers.below(3) == 0, numbers.below(2) == 0);
        Case { dense, formula, is_negated, span, has_mode, is_named }
    }

    fn measured(&self, messages: &[Message]) -> Measures {
        let mut truths = truths(messages, self.formula, self.dense);
        if self.is_negated {
            truths.iter_mut().for_each(|truth| *truth = truth.map(|truth| !truth));
        }
        let first = messages[0].time;
        let is_on = |position: usize| {
            let is_before = |(i, m): &(usize, &Message)| match self.dense {
                true => 2 * (m.time - first) <= position as i64,
                false => *i <= position,
            };
            let last = messages.iter().enumerate().filter(is_before).rfind(|(_, m)| m.topic == 1);
            // Only where the mode is certainly on.
            last.and_then(|(_, message)| message.value) == Some(1)
        };
        let scale = if self.dense { 2 } else { 1 };
        let counts = |position: usize| {
            let is_inside =
                |(from, until): (usize, usize)| (scale * from..=scale * until).contains(&position);
            self.span.is_none_or(is_inside) && (!self.has_mode || is_on(position))
        };
        let part: Vec<bool> = (0..truths.len()).map(counts).collect();
        measured(&truths, &part, self.dense)
    }

    /// Limits equal to the measure, or different by one.
    fn limits(&self, measures: &Measures, numbers: &mut Random) -> Limits {
        let near =
            |own: u64, numbers: &mut Random| [own, own + 1, own.saturating_sub(1)][numbers.below(3) as usize];
        let whole = measures.satisfied + measures.violated;
        let share = near(measures.satisfied, numbers).min(whole) as f64 / whole.max(1) as f64;
        Limits { near: near(measures.longest, numbers), count: near(measures.rises, numbers), share }
    }

    fn text(&self, limits: Limits) -> String {
        let Limits { near, count, share } = limits;
        let unit = if self.dense { " s" } else { "" };
        let formula = self.formula.text(self.dense);
        let operand = if self.is_named { "p".to_owned() } else { format!("({formula})") };
        let p = format!("{}{operand}", if self.is_negated { "not " } else { "" });
        let mut c = self.span.map_or(String::new(), |(a, b)| format!(" between {a}{unit} and {b}{unit}"));
        c += if self.has_mode { " while m.x" } else { "" };
        let time = if self.dense { "@time(dense)" } else { "@time(steps)" };
        let own = if self.is_named { "" } else { time };
        format!(
            "topic t {{ x: int }} topic m {{ x: bool }}\n{time} property p = {formula}\n\
             {own} assert always {p}{c}\n{own} assert ever {p}{c}\n\
             {own} assert share({p}) >= {share:?}{c}\n{own} assert longest({p}) <= {near}{unit}{c}\n\
             {own} assert count({p}) == {count}{c}\n{own} assert count({p}) >= {count}{c}\n\
             {own} assert count(violated {p}) >= 1{c}\n"
        )
    }

    fn expected(&self, measures: &Measures, limits: Limits) -> [Verdict; 7] {
        let Measures { satisfied, violated, longest, rises, falls, is_ever, is_never } = *measures;
        let of = |holds: bool| match (is_ever || is_never, holds) {
            (false, _) => Verdict::Inconclusive,
            (_, true) => Verdict::Satisfied,
            (_, false) => Verdict::Violated,
        };
        let whole = satisfied + violated;
        let share = match whole {
            0 => Verdict::Inconclusive,
            _ => of(satisfied as f64 / whole as f64 >= limits.share),
        };
        [
            of(!is_never),
            of(is_ever),
            share,
            of(longest <= limits.near),
            of(rises == limits.count),
            of(rises >= limits.count),
            of(falls >= 1),
        ]
    }
}

/// Judgements on all asserts, in order. Before some of the messages, as many of their publisher's messages are missing.
fn judged(text: &str, messages: &[(Message, u64)]) -> Vec<Verdict> {
    let outcome = rondel_spec::parse(text);
    let spec = outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("spec", text, false)));
    let options =
        Options { clock: Arc::new(ManualClock::default()), blind: Blind::Inconclusive, ..Options::default() };
    let mut session = Session::new(&spec, options).unwrap();
    let mut numbers = [0, 0];
    for (message, missing) in messages {
        let value = message.value.map_or("null".to_owned(), |value| match message.topic {
            0 => value.to_string(),
            _ => (value == 1).to_string(),
        });
        let json = format!("{{\"x\": {value}}}");
        let number = &mut numbers[message.topic as usize];
        *number += 1 + missing;
        let origin = Some(Origin { publisher: u64::from(message.topic), number: *number });
        let time = Timestamp::from_nanos(message.time * SECOND);
        let stamp = Stamp { origin, ..Stamp::at(time) };
        session.push(TopicId(message.topic), stamp, json.as_bytes()).unwrap();
    }
    session.finish();
    let summary = session.summary();
    summary.properties.iter().filter_map(|p| Some(p.judgement()?.verdict)).collect()
}

#[test]
fn asserts_are_judged_by_their_definition() {
    let (mut compared, mut undecided, mut violated, mut with_mode, mut with_span, mut older) =
        (0, 0, 0, 0, 0, 0);
    for seed in rondel_testkit::seeds("criteria", 1_500) {
        let numbers = &mut Random::new(seed);
        let case = Case::new(numbers);
        let messages = messages(numbers, case.dense);
        let measures = case.measured(&messages);
        let limits = case.limits(&measures, numbers);
        let text = case.text(limits);
        let all: Vec<(Message, u64)> = messages.iter().map(|message| (*message, 0)).collect();
        let found = judged(&text, &all);
        let expected = case.expected(&measures, limits);
        assert_eq!(found, expected, "seed {seed}: {text}\n{messages:#?}\n{measures:?}");
        compared += found.len();
        undecided += found.iter().filter(|verdict| **verdict == Verdict::Inconclusive).count();
        violated += found.iter().filter(|verdict| **verdict == Verdict::Violated).count();
        with_mode += u32::from(case.has_mode);
        with_span += u32::from(case.span.is_some());
        // A stretch that began before the span of the assert.
        older += u32::from(measures.is_ever && measures.rises == 0);
    }
    println!("{compared} judgements, {violated} violated, {undecided} inconclusive; {older} older stretches");
    if !rondel_testkit::is_replay() {
        assert!(compared >= 10_000 && violated > 2_000 && undecided < compared / 2, "too few were compared");
        assert!(with_mode > 400 && with_span > 400 && older > 50, "too few with clauses");
    }
}

/// Missed messages before each of some messages, of the same topic, in one of many variants.
fn unseen(numbers: &mut Random, seen: &[(Message, u64)]) -> Vec<Message> {
    let mut all = Vec::new();
    for (message, missing) in seen {
        for i in (1..=*missing as i64).rev() {
            let value =
                (numbers.below(6) > 0).then(|| numbers.below(if message.topic == 0 { 4 } else { 2 }) as i64);
            all.push(Message { time: message.time - i, value, ..*message });
        }
        all.push(*message);
    }
    all
}

#[test]
fn certain_judgements_hold_for_every_completion() {
    const WAYS: usize = 12;
    let (mut certain, mut violated, mut open, mut needless) = (0, 0, 0, 0);
    for seed in rondel_testkit::seeds("criteria-completions", 1_500) {
        let numbers = &mut Random::new(seed);
        let case = Case::new(numbers);
        let mut time = 0;
        let seen = messages(numbers, case.dense).into_iter().enumerate().map(|(i, message)| {
            let missing = if i > 0 && numbers.below(5) == 0 { 1 + numbers.below(2) } else { 0 };
            time += 1 + missing as i64;
            (Message { time, ..message }, missing)
        });
        let mut seen: Vec<(Message, u64)> = seen.collect();
        let mut known = [false; 2];
        for (message, missing) in &mut seen {
            // The numbers missing before the first one of a publisher are unknown.
            if !std::mem::replace(&mut known[message.topic as usize], true) {
                *missing = 0;
            }
        }
        if seen.iter().all(|(_, missing)| *missing == 0) {
            continue;
        }
        let ways: Vec<Vec<Message>> = (0..WAYS).map(|_| unseen(numbers, &seen)).collect();
        let limits = case.limits(&case.measured(&ways[0]), numbers);
        let text = case.text(limits);
        let found = judged(&text, &seen);
        let expected: Vec<_> = ways.iter().map(|way| case.expected(&case.measured(way), limits)).collect();
        for (i, verdict) in found.iter().enumerate() {
            if *verdict == Verdict::Inconclusive {
                open += 1;
                let first = expected[0][i];
                needless +=
                    u32::from(first != Verdict::Inconclusive && expected.iter().all(|e| e[i] == first));
                continue;
            }
            certain += 1;
            violated += u32::from(*verdict == Verdict::Violated);
            for (way, expected) in ways.iter().zip(&expected) {
                assert_eq!(*verdict, expected[i], "seed {seed}: assert {i} of {text}\n{seen:?}\n{way:?}");
            }
        }
    }
    println!(
        "{certain} certain, {violated} of them violated; {open} open, {needless} of them the same in all ways"
    );
    if !rondel_testkit::is_replay() {
        assert!(certain > 1_000 && violated > 300 && open > 1_000, "too few were compared");
    }
}

#[test]
fn a_live_run_is_judged_up_to_its_end() {
    let text = "topic t { x: int }\nassert longest(age(t) > 1 s) <= 1 s\n\
                @time(dense) assert share(t.x > 0) >= 0.5\nassert always t.x > 0 between 0 s and 60 s\n";
    let spec = rondel_spec::parse(text).spec.expect("a specification");
    for policy in [Policy::Arrival, Policy::EventTime] {
        let clock = Arc::new(ManualClock::default());
        let alignment = Alignment::new(policy);
        let options = Options { clock: clock.clone(), alignment, live: true, ..Options::default() };
        let start = Timestamp::from_nanos(1_000 * SECOND);
        clock.set(start);
        let mut session = Session::new(&spec, options).unwrap();
        for i in 0..3 {
            let now = Timestamp::from_nanos((1_000 + i) * SECOND);
            clock.set(now);
            session.push(TopicId(0), Stamp::at(now), br#"{"x": 1}"#).unwrap();
            session.flush();
        }
        clock.set(Timestamp::from_nanos(1_007 * SECOND));
        session.poll();
        session.finish();
        let summary = session.summary();
        let judged: Vec<_> = summary.properties.iter().filter_map(|p| p.judgement().cloned()).collect();
        assert_eq!(judged[0].verdict, Verdict::Violated, "{policy:?} {judged:?}");
        assert_eq!(judged[0].text, "longest 4 s");
        assert_eq!(judged[1].text, "share 1, 7 s of 7 s");
    }
}

#[test]
fn rest_of_a_broken_off_recording_is_unknown() {
    let text = "topic t { x: int }\nassert ever t.x > 5\nassert ever t.x > 0\nassert always t.x > 0\n\
                @time(steps) assert always t.x > 0 between 0 and 0\n";
    let spec = rondel_spec::parse(text).spec.expect("a specification");
    let mut session = Session::new(&spec, Options::default()).unwrap();
    for time in 0..2 {
        session.push(TopicId(0), Stamp::at(Timestamp::from_nanos(time)), br#"{"x": 1}"#).unwrap();
    }
    session.broke_off();
    session.finish();
    let summary = session.summary();
    let judged: Vec<_> = summary.properties.iter().filter_map(|p| Some(p.judgement()?.verdict)).collect();
    let [open, satisfied] = [Verdict::Inconclusive, Verdict::Satisfied];
    assert_eq!(judged, [open, satisfied, open, satisfied]);
}

#[test]
fn unexercised_premise_counts_where_it_is_requested() {
    let text = "topic t { x: int }\nproperty p = t.x > 5 -> t.x > 1\nassert always p\n";
    let spec = rondel_spec::parse(text).spec.expect("a specification");
    let mut session = Session::new(&spec, Options::default()).unwrap();
    session.push(TopicId(0), Stamp::at(Timestamp::ZERO), br#"{"x": 1}"#).unwrap();
    session.finish();
    let summary = session.summary();
    assert!(summary.is_inconclusive(true) && !summary.is_inconclusive(false));
}
