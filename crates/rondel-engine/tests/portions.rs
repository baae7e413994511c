//! A monitor whose sections are evaluated in portions reports the same as one that evaluates them itself.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::sync::Arc;

use rondel_engine::{Monitor, Portion, PortionOutput, Program, SeenAgain, WholeReason, spread};
use rondel_event::{Block, Slot, Timestamp, TopicId};
use rondel_spec::Spec;
use rondel_testkit::Random;

const TOPICS: &str = "
    topic t { b: bool, s: string, x: float, n: int }
    topic u { b: bool, s: string, x: float, n: int }
";

const STEPS: &str = "
    property plain = t.x > 2 -> once[0, 4] u.b
    property begun = once t.b
    property held = t.b since[2, 7] u.b
    property next_one = on(t) -> next t.b
    property soon = on(u) -> eventually[1, 9] t.x > 3
    @robust property levels = once[0, 3] t.x > 2
    property changes = changed(t.s) or t.n == u.n
";

const POINTS: &str = "
    @time(points) property point = t.b since[1 s, 4 s] u.b
    @time(points) property ahead = on(t) -> eventually[0, 2 s] u.b
    @time(points) property mean_of = mean(t.x) over 3 s > 2
";

const DENSE: &str = "
    property a = once[1 s, 3 s] t.x > 2
    property b = t.b since[0, 5 s] u.b
    property c = count(t) over 3 s > 2
    property d = count(t) over 3 s > 1 -> u.b
    property e = on(t) -> eventually[0, 2 s] u.b
    property f = age(u) < 2 s or t.b
    property g = historically[0, 1 s] t.b
";

const ROBUST: &str = "
    @robust property far = once[1 s, 3 s] t.x > 2
    @robust property near = t.x + u.x > 3 and age(t) < 2 s
";

const OTHERS: &str = "
    property exists_one = exists v. once[0, 3 s] t{n: v} and u{n: v}
    property forall_one = forall v. t{n: v} -> v > 1
    machine whole { initial q q -> r when on(t) r -> q when u.b error r for 3 s }
    @linear property line = t.x < u.x + 1
    property of_id for each id in (t.n, u.n) = t.b since[1 s, 5 s] u.b
    property of_steps for each id in (t.n, u.n) = t.b since[2, 7] u.b
    property of_text for each id in (t.s, u.s) = on(u) -> once[3, 90] t.b
    @limit(5) property of_both for each id in (t.n, u.n), s in (t.s, u.s) =
        on(t) -> (prev(t.x) > 1 or count(u) over 4 s > 1 or sum(t.x) over 5 s > 9)
    property of_ahead for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.b
    property of_t for each id in (t.n) = t.b -> once[0, 3 s] u.b
    property until_u for each id in (t.n) until t.b = t.x > 3 or u.b
    machine own for each id in (t.n, u.n) { initial a a -> b when on(t) b -> a when on(u) error b for 2 s }
    @robust property of_levels for each id in (t.n, u.n) = once[1 s, 3 s] t.x > 2
    @robust property of_levels_ahead for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.x > 2
    property of_values for each id in (t.n, u.n) = forall v. u{s: v} -> once[0, 2 s] t{s: v}
    machine ended for each id in (t.n, u.n) until t.b { initial a final b a -> b when on(u) within 2 s }
";

fn parsed(parts: &[&str]) -> Spec {
    let text = [TOPICS].iter().chain(parts).copied().collect::<String>();
    let outcome = rondel_spec::parse(&text);
    outcome.spec.clone().unwrap_or_else(|| panic!("{}", outcome.render("", &text, false)))
}

#[derive(Clone, Copy)]
struct Event {
    time: i64,
    chance: u64,
}

impl Event {
    fn next(random: &mut Random, time: &mut i64) -> Event {
        let chance = random.next();
        *time += [0, 100_000_000, 300_000_000, 1_000_000_000][(chance >> 60) as usize % 4];
        // Some times step back.
        let back = if (chance >> 52).is_multiple_of(64) { 700_000_000 } else { 0 };
        Event { time: *time - back, chance }
    }
}

fn block(program: &Program, events: &[Event]) -> Block {
    let mut block = Block::new(program.layout());
    for event in events {
        let chance = event.chance;
        let topic = TopicId(chance as u32 & 1);
        let row = block.push(topic, Timestamp::from_nanos(event.time));
        for field in &program.projections()[topic.index()].fields {
            // Some values are missing.
            if (chance >> 40 & 31) == 0 {
                continue;
            }
            match field.slot {
                Slot::Bool(column) => block.set_bool(column, row, chance >> 1 & 1 == 1),
                // Some are rare, others frequent.
                Slot::Int(column) => {
                    let number = if chance >> 20 & 3 == 0 { chance >> 24 & 511 } else { chance >> 8 & 15 };
                    block.set_int(column, row, number as i64);
                }
                Slot::Float(column) => block.set_float(column, row, (chance >> 4 & 7) as f64),
                Slot::String(column) => {
                    block.set_string(column, row, ["r", "a rather long name"][(chance >> 16 & 1) as usize])
                }
            }
        }
    }
    block
}

/// Everything that a caller reads after a call.
fn shown(monitor: &Monitor) -> Vec<String> {
    let report = |report: &rondel_engine::Report| {
        let mut plain = *report;
        plain.key = None;
        format!("{plain:?} {:?}", monitor.key(report))
    };
    let ended = monitor.ended().map(|ended| format!("{} {:?} {:?}", ended.property, ended.key, ended.time));
    let facts = format!("{} {:?}", monitor.position(), monitor.time());
    monitor.reports().iter().map(report).chain(ended).chain([facts]).collect()
}

/// Everything that a caller reads at rest.
fn at_rest(monitor: &Monitor) -> String {
    let least: Vec<Option<f64>> =
        (0..monitor.program().properties().len() as u32).map(|of| monitor.least_robustness(of)).collect();
    let mut unexercised: Vec<(u32, u32)> = monitor.unexercised().collect();
    unexercised.sort_unstable();
    let slices: Vec<(u64, u64, u64)> =
        monitor.slices().map(|slice| (slice.instances, slice.refused, slice.unkeyed)).collect();
    format!(
        "{least:?} {unexercised:?} {slices:?} {:?} {:?} {} {} {} {} {} {}",
        monitor.next_deadline(),
        monitor.waiting(),
        monitor.given_up(),
        monitor.dropped_samples(),
        monitor.forgotten(),
        monitor.hurried(),
        monitor.leaps(),
        monitor.counted(),
    )
}

/// A monitor, and its portions.
struct Divided {
    monitor: Monitor,
    portions: Vec<Portion>,
    outputs: Vec<Vec<PortionOutput>>,
}

impl Divided {
    fn new(spec: &Spec, count: usize) -> Divided {
        let mut spec = spec.clone();
        spread(&mut spec, count);
        let monitor = Monitor::new(Arc::new(Program::compile(&spec).unwrap()));
        let portions = monitor.portions(count);
        let outputs = portions.iter().map(|_| Vec::new()).collect();
        Divided { monitor, portions, outputs }
    }

    /// Evaluates events, and returns what each call shows.
    fn steps(&mut self, blocks: &[Vec<Event>]) -> Vec<Vec<String>> {
        let program = Arc::clone(self.monitor.program());
        let blocks: Vec<Block> = blocks.iter().map(|events| block(&program, events)).collect();
        self.blocks(&blocks)
    }

    /// Evaluates blocks, and returns what each call shows.
    fn blocks(&mut self, blocks: &[Block]) -> Vec<Vec<String>> {
        let Divided { monitor, portions, outputs } = self;
        if !monitor.may_lend() {
            let step = |block: &Block| {
                monitor.step(block);
                shown(monitor)
            };
            return blocks.iter().map(step).collect();
        }
        portions.iter_mut().for_each(|portion| monitor.lend(portion));
        for (portion, outputs) in portions.iter_mut().zip(&mut *outputs) {
            outputs.resize_with(blocks.len(), PortionOutput::default);
            blocks.iter().zip(outputs).for_each(|(block, out)| portion.step(block, out));
        }
        let step = |(at, block): (usize, &Block)| {
            monitor.step_with(block, outputs.iter().map(|outputs| &outputs[at]));
            shown(monitor)
        };
        let found = blocks.iter().enumerate().map(step).collect();
        portions.iter_mut().for_each(|portion| monitor.take_back(portion));
        found
    }
}

fn compare(parts: &[&str], rounds: usize) {
    let spec = parsed(parts);
    let whole_program = Arc::new(Program::compile(&spec).unwrap());
    let mut lent = 0;
    for seed in rondel_testkit::seeds("portions", 24) {
        let (mut random, mut time) = (Random::new(seed), 0);
        let mut whole = Monitor::new(Arc::clone(&whole_program));
        let count = [1, 2, 3, 8][random.next() as usize % 4];
        let mut divided = Divided::new(&spec, count);
        let every = random.next().is_multiple_of(3);
        whole.report_every(every);
        divided.monitor.report_every(every);
        for round in 0..rounds {
            let place = || format!("seed {seed}, {count} portions, round {round}");
            let blocks: Vec<Vec<Event>> = (0..1 + random.next() % 5)
                .map(|_| (0..random.next() % 65).map(|_| Event::next(&mut random, &mut time)).collect())
                .collect();
            lent += usize::from(divided.monitor.may_lend());
            let found = divided.steps(&blocks);
            for (events, found) in blocks.iter().zip(found) {
                whole.step(&block(&whole_program, events));
                assert_eq!(found, shown(&whole), "{}", place());
            }
            assert_eq!(at_rest(&divided.monitor), at_rest(&whole), "{}", place());
            match random.next() % 6 {
                0 => {
                    let now = Timestamp::from_nanos(time + (random.next() % 3_000_000_000) as i64);
                    whole.advance(now);
                    divided.monitor.advance(now);
                }
                1 if random.next().is_multiple_of(4) => {
                    let (topic, from) = (TopicId(random.next() as u32 & 1), Timestamp::from_nanos(time));
                    whole.miss(&[topic], from, SeenAgain::At(from));
                    divided.monitor.miss(&[topic], from, SeenAgain::At(from));
                }
                2 => {
                    if divided.monitor.program().fingerprint() == whole_program.fingerprint() {
                        assert!(divided.monitor.snapshot() == whole.snapshot(), "{}", place());
                    }
                    let program = Arc::clone(divided.monitor.program());
                    divided.monitor = Monitor::restore(program, &divided.monitor.snapshot()).unwrap();
                    divided.monitor.report_every(every);
                    whole = Monitor::restore(Arc::clone(&whole_program), &whole.snapshot()).unwrap();
                    whole.report_every(every);
                }
                _ => continue,
            }
            assert_eq!(shown(&divided.monitor), shown(&whole), "{}", place());
        }
        whole.end();
        divided.monitor.end();
        assert_eq!(shown(&divided.monitor), shown(&whole), "seed {seed}, at the end");
    }
    assert!(lent > 0);
}

#[test]
fn steps_alone() {
    compare(&[STEPS], 12);
}

#[test]
fn points_alone() {
    compare(&[POINTS], 12);
}

#[test]
fn dense_alone() {
    compare(&[DENSE], 12);
}

#[test]
fn steps_and_points_together() {
    compare(&[POINTS, STEPS], 12);
}

#[test]
fn all_together() {
    compare(&[STEPS, DENSE, OTHERS], 8);
    compare(&[POINTS, DENSE, OTHERS, ROBUST], 8);
}

#[test]
fn one_for_each_alone() {
    compare(&["property own for each id in (t.n) = t.b since[1 s, 5 s] t.x > 2"], 12);
    compare(&["property own for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.b"], 12);
    compare(&["property own for each id in (t.n, u.n) = t.b -> once[0, 4] u.b"], 12);
    compare(&["property own for each id in (t.n, u.n), s in (t.s, u.s) until u.b = t.x > 1"], 12);
    let machine = "machine own for each id in (t.n, u.n) until t.b { initial a final b a -> b when on(u) }";
    compare(&[machine], 12);
    compare(&[&machine.replacen("machine", "@time(steps) machine", 1)], 12);
}

#[test]
fn steps_and_points_of_one_for_each() {
    let text = "@time(points) property point for each id in (t.n, u.n) = t.b -> once[0, 2 s] u.b
                property step for each id in (t.n, u.n) = t.b -> once[0, 4] u.b";
    compare(&[text], 12);
    compare(&[text, DENSE], 8);
}

/// A new parameter with nearly every event, of which few instances stay.
#[test]
fn instances_are_forgotten_at_the_same_events() {
    let text = "property own for each s in (t.s, u.s) = on(u) -> once[0, 60 s] on(t)";
    let spec = parsed(&[text]);
    let program = Arc::new(Program::compile(&spec).unwrap());
    for seed in rondel_testkit::seeds("forgotten", 6) {
        let (mut random, mut time) = (Random::new(seed), 0);
        let (mut whole, mut divided) = (Monitor::new(Arc::clone(&program)), Divided::new(&spec, 3));
        assert_eq!(divided.portions.len(), 3);
        let (mut most, mut reports) = (0, 0);
        for _ in 0..40 {
            let blocks: Vec<Vec<Event>> =
                (0..8).map(|_| (0..64).map(|_| Event::next(&mut random, &mut time)).collect()).collect();
            let with_names = |events: &Vec<Event>| {
                let mut block = block(&program, events);
                for (row, event) in events.iter().enumerate() {
                    let name = match event.chance >> 30 & 3 {
                        0 => format!("{}", event.chance >> 8 & 7),
                        1 => format!("a name of more than a word, {}", event.chance >> 8 & 31),
                        _ => format!("{}", event.chance >> 8 & 0xfff),
                    };
                    for field in &program.projections()[(event.chance & 1) as usize].fields {
                        if let Slot::String(column) = field.slot {
                            block.set_string(column, row, &name);
                        }
                    }
                }
                block
            };
            let blocks: Vec<Block> = blocks.iter().map(with_names).collect();
            let found = divided.blocks(&blocks);
            for (block, found) in blocks.iter().zip(found) {
                whole.step(block);
                assert_eq!(found, shown(&whole), "seed {seed}");
                reports += whole.reports().len();
            }
            assert_eq!(at_rest(&divided.monitor), at_rest(&whole), "seed {seed}");
            most = whole.slices().map(|slice| slice.instances).max().unwrap_or(0).max(most);
        }
        assert!(most > 100 && most < 3000 && reports > 2000, "{most} instances, {reports} reports");
    }
}

#[test]
fn portions_are_not_empty() {
    let monitor = Monitor::new(Arc::new(Program::compile(&parsed(&[STEPS])).unwrap()));
    assert_eq!(monitor.portions(4).len(), 1, "there is one section");
    assert_eq!(Divided::new(&parsed(&[STEPS]), 3).portions.len(), 3);
    let machine = "machine m { initial q q -> r when on(t) }";
    assert!(Divided::new(&parsed(&[machine]), 3).portions.is_empty());
}

#[test]
fn instances_are_divided_unless_they_depend_on_each_other() {
    let reason = |text: &str| Program::compile(&parsed(&[text])).unwrap().undivided(0);
    let own = "property own for each id in t.n = once t.b";
    assert_eq!(reason(own), None);
    assert_eq!(reason(&format!("@limit(10000000) {own}")), None);
    assert_eq!(reason(&format!("@limit(9999999) {own}")), Some(WholeReason::Limit));
    assert_eq!(reason("property p = once t.b"), None, "it has no instances");
    let both = "@time(points) property p for each id in t.n = t.b property q for each id in t.n = t.b";
    assert_eq!(reason(both), Some(WholeReason::Order));
    let portions = |text: &str| Divided::new(&parsed(&[text]), 3).portions.len();
    assert_eq!((portions(own), portions(&format!("@limit(9) {own}"))), (3, 1));
    let many: String =
        (1..=99).map(|k| format!("@limit({k}0000000) {}\n", own.replace("own", &format!("p{k}")))).collect();
    assert_eq!(portions(&many), 3, "each evaluates some of the sections");
    let monitor = Monitor::new(Arc::new(Program::compile(&parsed(&[own])).unwrap()));
    assert_eq!((monitor.portions(1).len(), monitor.room()), (1, 10_000_000));
    let elements = "topic d { all: [{ name: string, x: int }] }
                    property p for each n in d.all.name = d.all[name == n].x < 2";
    assert_eq!(reason(elements), Some(WholeReason::Elements));
}

#[test]
fn only_divided_instances_are_copied() {
    let own = "property own for each id in t.n = once t.b";
    let several: String =
        (1..=8).map(|k| format!("@limit({k}0000000) {}\n", own.replace("own", &format!("p{k}")))).collect();
    let copied = |text: &str| {
        let mut divided = Divided::new(&parsed(&[text]), 2);
        let (mut random, mut time) = (Random::new(1), 0);
        divided.steps(&[(0..64).map(|_| Event::next(&mut random, &mut time)).collect()]);
        divided.monitor.copied()
    };
    assert!(copied(own) > 0);
    assert_eq!(copied(&several), 0, "each is evaluated by one portion");
}

/// Blocks and the passing of time while the states stay lent, and copies of them in between.
fn compare_lent(parts: &[&str]) {
    let spec = parsed(parts);
    let whole_program = Arc::new(Program::compile(&spec).unwrap());
    for seed in rondel_testkit::seeds("lent", 12) {
        let (mut random, mut time) = (Random::new(seed), 0);
        let mut whole = Monitor::new(Arc::clone(&whole_program));
        let count = [1, 2, 3, 8][random.next() as usize % 4];
        let Divided { mut monitor, mut portions, .. } = Divided::new(&spec, count);
        let program = Arc::clone(monitor.program());
        let mut outputs: Vec<PortionOutput> = portions.iter().map(|_| PortionOutput::default()).collect();
        portions.iter_mut().for_each(|portion| monitor.lend(portion));
        for round in 0..40 {
            let place = format!("seed {seed}, {count} portions, round {round}");
            if random.next().is_multiple_of(3) {
                let now = Timestamp::from_nanos(time + (random.next() % 3_000_000_000) as i64);
                portions.iter_mut().zip(&mut outputs).for_each(|(portion, out)| portion.advance(now, out));
                monitor.advance_with(now, &outputs);
                whole.advance(now);
            } else {
                let events: Vec<Event> =
                    (0..random.next() % 65).map(|_| Event::next(&mut random, &mut time)).collect();
                let events_here = block(&program, &events);
                portions
                    .iter_mut()
                    .zip(&mut outputs)
                    .for_each(|(portion, out)| portion.step(&events_here, out));
                monitor.step_with(&events_here, &outputs);
                whole.step(&block(&whole_program, &events));
            }
            assert_eq!(shown(&monitor), shown(&whole), "{place}");
            let deadlines = portions.iter().map(Portion::next_deadline);
            let due = deadlines.chain([monitor.next_deadline()]).flatten().min();
            assert_eq!(due, whole.next_deadline(), "{place}");
            let (mut copy, mut copies) = (monitor.clone(), portions.clone());
            copies.iter_mut().for_each(|portion| copy.take_back(portion));
            assert_eq!(at_rest(&copy), at_rest(&whole), "{place}");
        }
        portions.iter_mut().for_each(|portion| monitor.take_back(portion));
        monitor.end();
        whole.end();
        assert_eq!(shown(&monitor), shown(&whole), "seed {seed}, at the end");
    }
}

#[test]
fn time_passes_while_states_are_lent() {
    compare_lent(&[STEPS]);
    compare_lent(&[DENSE]);
    compare_lent(&[STEPS, DENSE, OTHERS]);
    compare_lent(&[POINTS, DENSE, OTHERS, ROBUST]);
    compare_lent(&["property own for each id in (t.n) = t.b since[1 s, 5 s] t.x > 2"]);
    compare_lent(&["property own for each id in (t.n, u.n) = on(t) -> eventually[0, 2 s] u.b"]);
}

#[test]
fn instances_with_a_limit_of_memory_are_divided_while_it_is_far() {
    let own = "property own for each id in t.n = once t.b";
    let mut divided = Divided::new(&parsed(&[own]), 3);
    divided.monitor.limit_instances(1 << 20);
    assert_eq!(divided.portions.len(), 3);
    assert!((1000..10_000).contains(&divided.monitor.room()), "{} instances", divided.monitor.room());
    divided.monitor.limit_instances(1);
    assert_eq!(divided.monitor.room(), 0);
}
