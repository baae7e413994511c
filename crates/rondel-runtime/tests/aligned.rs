//! A monitor behind an alignment: messages arrive in any order, verdicts follow the order of their times.

#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::sync::Arc;

use rondel_align::{
    LatePolicy, MaxWait, Order, OrderPolicy, OrderSettings, SetPolicy, SetSettings, Sets, TopicOrder,
};
use rondel_engine::{Monitor, Program};
use rondel_event::{Block, Timestamp, TopicId};
use rondel_runtime::align::{AlignedMonitor, Division, Rule, divide, together};

const MS: i64 = 1_000_000;

/// A message: topic, time in milliseconds, when it comes, the value of its one field.
type Message = (u32, i64, i64, i64);

struct Bench {
    monitor: AlignedMonitor,
    block: Block,
    names: Vec<String>,
    emitted: Vec<String>,
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_nanos(ms * MS)
}

impl Bench {
    fn new(division: &Division, rule: Rule) -> Bench {
        let program = Arc::new(Program::compile(&division.spec).unwrap());
        Bench {
            block: Block::new(program.layout()),
            names: program.properties().to_vec(),
            monitor: AlignedMonitor::new(program, rule),
            emitted: Vec::new(),
        }
    }

    fn note(names: &[String], monitor: &Monitor, emitted: &mut Vec<String>) {
        for report in monitor.reports() {
            let time = report.time.as_nanos() as f64 / MS as f64;
            emitted.push(format!("{} {} {time}", names[report.property as usize], report.verdict.as_str()));
        }
    }

    fn push(&mut self, (topic, time, now, value): Message) {
        let row = self.block.push(TopicId(topic), at(time));
        let slot =
            self.monitor.monitor().program().projections()[topic as usize].fields.first().map(|f| f.slot);
        if let Some(rondel_event::Slot::Int(column)) = slot {
            self.block.set_int(column, row, value);
        }
        self.monitor.push(&self.block, row, TopicId(topic), None, at(now));
        self.block.clear();
        self.run();
    }

    fn advance(&mut self, now: i64) {
        self.monitor.advance(at(now));
        self.run();
    }

    fn run(&mut self) {
        let Bench { monitor, names, emitted, .. } = self;
        monitor.run(&mut |_, monitor| Bench::note(names, monitor, emitted));
    }

    fn end(&mut self) {
        let Bench { monitor, names, emitted, .. } = self;
        monitor.end(&mut |_, monitor| Bench::note(names, monitor, emitted));
    }

    fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.emitted)
    }
}

fn order(topics: usize, max_wait: i64, late: LatePolicy) -> Rule {
    let topic = TopicOrder { max_wait: MaxWait::Fixed((max_wait * MS) as u64), ..TopicOrder::default() };
    Rule::Order(Order::new(OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: vec![topic; topics],
        queue: 100,
        ahead: None,
        behind: None,
        late,
    }))
}

fn spec(text: &str) -> Vec<Division> {
    let outcome = rondel_spec::parse(text);
    divide(&outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics)))
}

#[test]
fn events_are_checked_in_event_time_order() {
    let text = "topic gear { report: int } topic speed { v: int }
        @time(dense) property standing = changed(gear.report) -> speed.v == 0";
    let mut bench = Bench::new(&spec(text)[0], order(2, 20, LatePolicy::Late));
    // The gear changes at 30, after the vehicle has come to rest at 20; but the speed comes later.
    for message in [(0, 0, 1, 1), (1, 0, 1, 9), (0, 30, 31, 2), (1, 20, 33, 0), (1, 40, 41, 5)] {
        bench.push(message);
    }
    assert_eq!(bench.take(), ["standing inconclusive 0", "standing satisfied 0"]);
    // In the order of arrival, it would have been a violation.
    let mut direct = Bench::new(&spec(text)[0], order(2, 0, LatePolicy::Late));
    for message in [(0, 0, 1, 1), (1, 0, 1, 9), (0, 30, 31, 2), (1, 20, 33, 0), (1, 40, 41, 5)] {
        direct.push(message);
    }
    assert!(direct.take().contains(&"standing violated 30".to_owned()));
}

#[test]
fn time_brings_verdicts_once_nothing_earlier_can_come() {
    let text = "topic emergency { e: int } topic hazard { h: int }
        property follows = on(emergency) -> eventually[0, 100 ms] on(hazard)";
    let mut bench = Bench::new(&spec(text)[0], order(2, 20, LatePolicy::Late));
    bench.push((0, 0, 5, 1));
    assert_eq!(bench.monitor.deadline(), Some(at(20)));
    bench.advance(20);
    let due = bench.monitor.deadline().unwrap();
    assert!(due >= at(120) && due < at(121), "100 ms of the property and 20 of waiting: {due:?}");
    bench.advance(119);
    assert!(bench.take().iter().all(|said| !said.contains("violated")));
    // Sent in time, and within the maximum wait.
    bench.push((1, 99, 119, 1));
    bench.advance(300);
    assert!(bench.take().iter().all(|said| !said.contains("violated")));
    bench.push((0, 400, 401, 1));
    bench.advance(521);
    assert!(bench.take().contains(&"follows violated 500".to_owned()), "{:?}", bench.emitted);
}

#[test]
fn late_events_are_dropped_or_late_or_unknown() {
    let text = "topic a { x: int } topic b { y: int } @time(dense) property p = a.x + b.y < 10";
    let said = |late| {
        let mut bench = Bench::new(&spec(text)[0], order(2, 10, late));
        for message in [(0, 0, 0, 1), (1, 0, 0, 1), (0, 50, 50, 2)] {
            bench.push(message);
        }
        bench.advance(60);
        // 10 ms too late.
        bench.push((1, 40, 70, 9));
        bench.push((1, 80, 80, 1));
        bench.end();
        let said = bench.take();
        assert_eq!(said[0], "p inconclusive 0", "b has not come yet");
        said[1..].to_vec()
    };
    // The dropped message was missed: `b` is unknown from the last verdict on, until its next message.
    let withheld = ["p satisfied 0", "p inconclusive 50.000001", "p satisfied 80"];
    assert_eq!(said(LatePolicy::Drop), withheld);
    assert_eq!(said(LatePolicy::Late), ["p satisfied 0", "p violated 50", "p satisfied 80"]);
    assert_eq!(said(LatePolicy::Inconclusive), withheld);
}

/// A window over the true time of a late message is inconclusive until that time has left it.
#[test]
fn a_window_over_the_time_of_a_late_message_is_inconclusive() {
    let text = "topic a { x: int } topic b { y: int }
        property p = once[220 ms, 230 ms] a.x + b.y > 6";
    for late in [LatePolicy::Drop, LatePolicy::Inconclusive] {
        let mut bench = Bench::new(&spec(text)[0], order(2, 10, late));
        for message in [(0, 0, 0, 1), (1, 0, 0, 1), (0, 100, 100, 1), (1, 100, 100, 1)] {
            bench.push(message);
        }
        bench.advance(150);
        bench.push((0, 50, 160, 9));
        // In the sorted recording it is satisfied from 270 to 400.
        for time in [170, 300, 500] {
            bench.push((0, time, time, 1));
            bench.push((1, time, time, 1));
        }
        bench.end();
        let said = bench.take();
        let [.., uncertain, last] = &said[..] else { panic!("{said:?}") };
        // Time alone makes it certain, once the window has passed.
        assert!(uncertain.starts_with("p inconclusive") && last == "p violated 400.000001", "{said:?}");
    }
}

#[test]
fn a_set_is_one_event_or_one_for_each_message() {
    let text = "topic a { k: int } topic b { k: int }
        property together = on(a) and on(b)
        property each for each k in (a.k, b.k) = on(b) -> previously on(a)";
    let outcome = rondel_spec::parse(text);
    let divisions = together(&outcome.spec.unwrap(), true);
    let mut said = Vec::new();
    for division in &divisions {
        let policy = SetPolicy::Exact { queue: 10 };
        let sets = Sets::new(SetSettings { policy, topics: 2, absent_after: Vec::new() });
        let rule = Rule::Sets { sets, topics: division.topics.clone(), joined: !division.keyed };
        let mut bench = Bench::new(division, rule);
        for i in 0..40 {
            bench.push((1, i, i, 7));
            bench.push((0, i, i, if i == 39 { 8 } else { 7 }));
        }
        bench.end();
        said.extend(bench.take());
    }
    assert_eq!(said[0], "together satisfied 0");
    assert_eq!(said.iter().filter(|s| s.starts_with("together")).count(), 1);
    assert!(said.contains(&"each violated 39".to_owned()), "{said:?}");
}

#[test]
fn sets_of_more_topics_than_a_block_has_rows() {
    let topics: String = (0..100).map(|i| format!("topic t{i} {{ k: int }} ")).collect();
    let keys: Vec<String> = (0..100).map(|i| format!("t{i}.k")).collect();
    let text = format!("{topics} property p for each k in ({}) = not on(t99)", keys.join(", "));
    let division = together(&rondel_spec::parse(&text).spec.unwrap(), true).remove(0);
    let policy = SetPolicy::Exact { queue: 10 };
    let sets = Sets::new(SetSettings { policy, topics: 100, absent_after: Vec::new() });
    let mut bench =
        Bench::new(&division, Rule::Sets { sets, topics: division.topics.clone(), joined: false });
    (0..100).for_each(|i| bench.push((i, 3, 3, 1)));
    assert_eq!(bench.take().last().unwrap(), "p violated 3");
}
