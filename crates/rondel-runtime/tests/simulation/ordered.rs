//! Messages in order: the verdicts are those of the sorted recording.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rondel_align::{
    LatePolicy, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, Released, TopicOrder,
};
use rondel_engine::{Program, SeenAgain};
use rondel_event::{Block, Timestamp, TopicId};
use rondel_runtime::align::{AlignedMonitor, Division, Rule};

use crate::network::{MS, Message, Rough, Traffic, What, traffic};
use crate::recording::{All, Missed, Row, difference, note, replay, write};
use crate::specs::{WATCHED, Watched};
use rondel_testkit::Random;

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Outcome of a message at its arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrival {
    Accepted,
    Late,
    Refused,
    Duplicate,
}

/// A monitor behind its alignment, beside a separate order with the same input, whose releases can be inspected.
struct Bench<'a> {
    division: &'a Division,
    program: &'a Arc<Program>,
    traffic: &'a Traffic,
    monitor: AlignedMonitor,
    order: Order<usize>,
    block: Block,
    found: All,
    /// Events that the monitor evaluated.
    seen: Vec<(TopicId, Timestamp)>,
    /// Events released by the separate order.
    released: Vec<Released<usize>>,
    /// Before which of these messages are known to have been missed.
    missed: Vec<(usize, Missed)>,
    /// Nothing leaves before all of its time have come.
    patient: bool,
    /// Time up to which the monitor was informed that no earlier message comes.
    closed: Option<i64>,
    /// Chance of a snapshot and restoration, one in N (0: never).
    cut: i64,
    /// Messages with their outcomes, in the order of arrival.
    come: Vec<(usize, Arrival)>,
    settings: OrderSettings,
    every: bool,
}

impl Bench<'_> {
    fn new<'a>(
        (division, program): &'a (Division, Arc<Program>),
        traffic: &'a Traffic,
        settings: &OrderSettings,
        every: bool,
    ) -> Bench<'a> {
        let rule = Rule::Order(Order::new(settings.clone()));
        let mut monitor = AlignedMonitor::new(program.clone(), rule);
        monitor.monitor_mut().report_every(every);
        Bench {
            division,
            program,
            traffic,
            monitor,
            order: Order::new(settings.clone()),
            block: Block::new(program.layout()),
            found: All::new(),
            seen: Vec::new(),
            released: Vec::new(),
            missed: Vec::new(),
            patient: false,
            closed: None,
            cut: 0,
            settings: settings.clone(),
            every,
            come: Vec::new(),
        }
    }

    fn push(&mut self, i: usize, now: i64) {
        let message = &self.traffic.messages[i];
        let topic = TopicId(message.topic as u32);
        let origin = self.traffic.lines[message.topic].origins.then(|| message.origin());
        self.block.clear();
        let row = self.block.push(topic, at(message.stamp));
        write(&mut self.block, row, self.program, message, false);
        self.monitor.push(&self.block, row, topic, origin, at(now));
        self.order.notices().for_each(drop);
        self.order.push(topic, at(message.stamp), origin, at(now), i);
        let arrival = |notice| match notice {
            Notice::Late { .. } => Some(Arrival::Late),
            Notice::Refused { .. } => Some(Arrival::Refused),
            Notice::Duplicate { .. } => Some(Arrival::Duplicate),
            _ => None,
        };
        let arrival = self.order.notices().find_map(arrival).unwrap_or(Arrival::Accepted);
        self.come.push((i, arrival));
    }

    fn mark(&mut self, topic: usize, marker: &Marker, now: i64) {
        self.monitor.mark(TopicId(topic as u32), marker, at(now));
        self.order.mark(TopicId(topic as u32), marker, at(now));
    }

    fn advance(&mut self, now: i64) {
        self.monitor.advance(at(now));
        self.order.advance(at(now));
    }

    fn run(&mut self, ends: bool) {
        let Bench { division, monitor, found, seen, order, .. } = self;
        let mut closed = None;
        let mut emitted = |block: Option<(&Block, u64)>, monitor: &rondel_engine::Monitor| {
            note(&division.spec, monitor, found);
            match block {
                Some((block, _)) => {
                    seen.extend((0..block.len()).map(|row| (block.topic(row).unwrap(), block.time(row))));
                }
                // Time advances no further than to the deadlines of the monitor.
                None => closed = Some(monitor.time().as_nanos() - 1),
            }
        };
        if ends {
            monitor.end(&mut emitted);
            order.flush();
        } else {
            monitor.run(&mut emitted);
        }
        loop {
            let at = self.released.len();
            while let Some((topic, time, reached)) = self.order.pop_dropped() {
                self.missed.push((at, (topic, time, SeenAgain::Now(time), reached)));
            }
            let Some(released) = self.order.pop() else { break };
            if let Some(late) = released.lateness.filter(|late| late.inconclusive) {
                let missed = (released.topic, late.stamp, SeenAgain::After(released.time), released.time);
                self.missed.push((at, missed));
            }
            self.released.push(released);
        }
        if let Some(closed) = closed.filter(|_| !ends) {
            self.closed = Some(closed);
            self.order.close(at(closed));
        }
    }

    /// Restores the serialised state.
    fn cut(&mut self) {
        let rule = Rule::Order(Order::new(self.settings.clone()));
        let deadline = self.monitor.deadline();
        let bytes = self.monitor.snapshot();
        self.monitor = AlignedMonitor::restore(self.program.clone(), rule, &bytes).unwrap();
        self.monitor.monitor_mut().report_every(self.every);
        assert_eq!(self.monitor.deadline(), deadline);
    }

    fn deadline(&self) -> Option<i64> {
        self.monitor.deadline().map(Timestamp::as_nanos)
    }
}

/// Timing of the driver.
#[derive(Clone, Copy, Debug)]
struct Driver {
    /// At one in so many deadlines it does not look up (0: never late).
    late: i64,
    /// It evaluates at one in so many calls.
    lazy: i64,
    /// One in so many times the clock that it reads steps back.
    steps_back: i64,
}

/// Runs the simulation.
fn drive(bench: &mut Bench<'_>, driver: Driver, numbers: &mut Random) -> Result<(), String> {
    let arrivals = &bench.traffic.arrivals;
    // Simultaneous arrivals may come in any order, except those sent on one route.
    let mut heap: BinaryHeap<_> =
        arrivals.iter().enumerate().map(|(i, (comes, _))| Reverse((*comes, i))).collect();
    let ticks = numbers.int(12);
    heap.extend((0..ticks).map(|i| Reverse((numbers.int(400 * MS), arrivals.len() + i as usize))));
    let mut now = i64::MIN;
    let run = |bench: &mut Bench<'_>, numbers: &mut Random| {
        let runs = driver.lazy == 0 || !numbers.one_in(driver.lazy as u64);
        if runs {
            bench.run(false);
        }
        runs
    };
    let mut overslept = None;
    loop {
        let next = heap.peek().map(|Reverse((comes, _))| *comes);
        let due = bench.deadline().filter(|due| Some(*due) != overslept);
        // After the last, a while longer.
        if let Some(due) = due.filter(|due| next.map_or(*due < 2_000 * MS, |next| *due <= next)) {
            if driver.late > 0 && numbers.one_in(driver.late as u64) {
                overslept = Some(due);
                continue;
            }
            bench.advance(due);
            now = now.max(due);
            bench.run(false);
            if let Some(again) = bench.deadline().filter(|again| *again <= now) {
                return Err(format!("at {now} there is still a deadline at {again}"));
            }
            continue;
        }
        let Some(Reverse((comes, i))) = heap.pop() else { break };
        let back = driver.steps_back > 0 && numbers.one_in(driver.steps_back as u64);
        let shown = if back { comes - numbers.int(30 * MS) } else { comes };
        now = now.max(shown);
        match arrivals.get(i) {
            Some((_, What::Message(i))) => bench.push(*i, shown),
            Some((_, What::Marker(topic, marker))) => bench.mark(*topic, marker, shown),
            None => bench.advance(shown),
        }
        if bench.cut > 0 && numbers.one_in(bench.cut as u64) {
            bench.cut();
        }
        if run(bench, numbers)
            && let Some(again) = bench.deadline().filter(|again| *again <= now)
        {
            return Err(format!("after {now} there is a deadline at {again}"));
        }
    }
    bench.run(false);
    Ok(())
}

/// Where a message belongs: by time, topic, and on a topic by the numbers of the publishers, or else as it came.
type Tag = (i64, usize, u64, u64);

fn tag(traffic: &Traffic, i: usize, came: usize) -> Tag {
    let m: &Message = &traffic.messages[i];
    let place = if traffic.lines[m.topic].origins { (m.number, m.publisher) } else { (came as u64, 0) };
    (m.stamp, m.topic, place.0, place.1)
}

/// Checks the released events against the definition. Returns the recording, and whether it equals the sorted one.
fn recording<'a>(bench: &Bench<'a>, policy: OrderPolicy) -> Result<(Vec<Row<'a>>, bool), String> {
    let traffic = bench.traffic;
    let row = |i: usize, time: i64, forgotten| Row { time, messages: vec![&traffic.messages[i]], forgotten };
    let leaving: Vec<_> = bench.released.iter().map(|r| (r.topic, r.time)).collect();
    if bench.seen != leaving {
        return Err(format!("the monitor saw {:?}, what leaves is {leaving:?}", bench.seen));
    }
    let released = bench
        .released
        .iter()
        .map(|r| row(r.item, r.time.as_nanos(), r.lateness.is_some_and(|late| late.inconclusive)));
    if policy == OrderPolicy::Arrival {
        return Ok((released.collect(), false));
    }
    let mut sorted: Vec<(Tag, usize)> = Vec::new();
    for (came, (i, arrival)) in bench.come.iter().enumerate() {
        if *arrival == Arrival::Accepted {
            sorted.push((tag(traffic, *i, came), *i));
        }
    }
    sorted.sort_unstable();
    let mut in_time: Vec<usize> =
        bench.released.iter().filter(|r| r.lateness.is_none()).map(|r| r.item).collect();
    let sorted: Vec<usize> = if bench.patient {
        sorted.iter().map(|(_, i)| *i).collect()
    } else {
        // A released event is not taken back for a message of its time and topic.
        let place = |i: &usize| (traffic.messages[*i].stamp, traffic.messages[*i].topic);
        let left = in_time.clone();
        if !left.is_sorted_by_key(place) {
            return Err(format!("not in the order of their times: {left:?}"));
        }
        in_time.sort_unstable();
        sorted.sort_unstable_by_key(|(_, i)| *i);
        if !in_time.iter().eq(sorted.iter().map(|(_, i)| i)) {
            return Err(format!("{in_time:?} leave, but {sorted:?} came"));
        }
        in_time.clone_from(&left);
        left
    };
    if sorted != in_time {
        return Err(format!("not in the order of their tags: {in_time:?}, but {sorted:?}"));
    }
    let mut last = i64::MIN;
    for r in &bench.released {
        let stamp = traffic.messages[r.item].stamp;
        let excess = r.lateness.map_or(0, |late| late.excess);
        if r.time.as_nanos() < last || r.time.as_nanos() - stamp != excess as i64 {
            return Err(format!("{r:?} of {stamp} leaves after {last}"));
        }
        last = r.time.as_nanos();
    }
    if bench.released.iter().any(|r| r.lateness.is_some()) {
        return Ok((released.collect(), false));
    }
    Ok((sorted.iter().map(|&i| row(i, traffic.messages[i].stamp, false)).collect(), true))
}

/// Checks that every arrival is counted.
fn adds_up(bench: &Bench<'_>, settings: &OrderSettings) -> Result<(), String> {
    let Rule::Order(order) = bench.monitor.rule() else { return Err("no order".to_owned()) };
    for (topic, counts) in order.statistics().iter().enumerate() {
        let arrivals = |arrival| {
            let here =
                |(i, f): &&(usize, Arrival)| bench.traffic.messages[*i].topic == topic && *f == arrival;
            bench.come.iter().filter(here).count() as u64
        };
        let came = [Arrival::Accepted, Arrival::Late, Arrival::Refused, Arrival::Duplicate].map(arrivals);
        let late = if settings.policy == OrderPolicy::Arrival { 0 } else { counts.late };
        let said = [
            counts.received - late - counts.refused - counts.duplicates,
            late,
            counts.refused,
            counts.duplicates,
        ];
        let gone = counts.released + counts.dropped + counts.refused + counts.duplicates;
        let dropped = if settings.late == LatePolicy::Drop { late } else { 0 };
        if came != said || gone != counts.received || counts.waiting != 0 || counts.dropped != dropped {
            return Err(format!("topic {topic} does not add up: {came:?}, {counts:?}"));
        }
        // Of all copies of a message that has a number, one is taken.
        let mut taken: Vec<usize> = bench
            .come
            .iter()
            .filter(|(i, arrival)| {
                bench.traffic.messages[*i].topic == topic && *arrival != Arrival::Duplicate
            })
            .map(|(i, _)| *i)
            .collect();
        taken.sort_unstable();
        if bench.traffic.lines[topic].origins && taken.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("topic {topic}: one message counts twice"));
        }
    }
    Ok(())
}

fn description(bench: &Bench<'_>, settings: &OrderSettings, driver: Driver) -> String {
    let topics = bench.traffic.lines.iter().zip(&settings.topics).enumerate();
    let topics: String =
        topics.map(|(i, (line, order))| format!("\n  topic {i}: {order:?}\n    {line:?}")).collect();
    format!(
        "\nproperties {:?}, {:?}, queue {}, ahead {:?}, behind {:?}, {:?}, {driver:?}\n{} came, {} lost{topics}",
        bench.program.properties(),
        settings.policy,
        settings.queue,
        settings.ahead,
        settings.behind,
        settings.late,
        bench.come.len(),
        bench.traffic.lost,
    )
}

fn watched(numbers: &mut Random) -> (&'static Watched, &'static (Division, Arc<Program>)) {
    let watched = &WATCHED[numbers.int(WATCHED.len() as i64) as usize];
    (watched, &watched.divided[numbers.int(watched.divided.len() as i64) as usize])
}

/// Only the messages that the division needs are passed to it.
fn relevant(mut traffic: Traffic, division: &Division) -> Traffic {
    let messages = &traffic.messages;
    traffic.arrivals.retain(|(_, what)| {
        let topic = match what {
            What::Message(i) => messages[*i].topic,
            What::Marker(topic, _) => *topic,
        };
        division.topics.contains(&TopicId(topic as u32))
    });
    traffic
}

/// Ends the run and compares. Returns whether the result equals the sorted recording.
fn compare(bench: &mut Bench<'_>, settings: &OrderSettings, every: bool) -> Result<bool, String> {
    bench.run(true);
    adds_up(bench, settings)?;
    let (rows, sorted) = recording(bench, settings.policy)?;
    if settings.policy == OrderPolicy::Arrival {
        return Ok(false);
    }
    let expected = replay(&bench.division.spec, bench.program, &rows, &bench.missed, bench.closed, every);
    match difference(bench.program, &bench.found, &expected) {
        None => Ok(sorted && !rows.is_empty()),
        Some(difference) => Err(format!("{difference}\nsorted: {sorted}, complete up to {:?}", bench.closed)),
    }
}

fn driver(numbers: &mut Random) -> Driver {
    Driver {
        late: numbers.pick(&[0, 0, 0, 2, 1]),
        lazy: numbers.pick(&[0, 0, 3]),
        steps_back: numbers.pick(&[0, 0, 0, 10]),
    }
}

/// Any network, any settings.
pub(crate) fn anything(numbers: &mut Random) -> Result<bool, String> {
    let (watched, part) = watched(numbers);
    let division = &part.0;
    let rough = numbers.pick(&[Rough::Any, Rough::Any, Rough::Lossless]);
    let traffic = relevant(traffic(numbers, watched.topics, rough), division);
    let waits = numbers.pick(&[&[0, 1, 5, 20][..], &[20, 50, 100, 200]]);
    let topics = traffic.lines.iter().enumerate().map(|(i, line)| TopicOrder {
        max_wait: match numbers.int(6) {
            0 => MaxWait::None,
            1 => MaxWait::Estimated {
                quantile: numbers.pick(&[0.5, 0.99]),
                at_most: (numbers.pick(waits) * MS) as u64,
            },
            _ => MaxWait::Fixed((numbers.pick(waits) * MS) as u64),
        },
        absent_after: numbers.one_in(3).then(|| (numbers.pick(&[30, 100]) * MS) as u64),
        fifo: if numbers.one_in(3) { numbers.one_in(2) } else { line.in_order() },
        in_play: division.topics.contains(&TopicId(i as u32)),
    });
    let settings = OrderSettings {
        topics: topics.collect(),
        policy: if numbers.one_in(15) { OrderPolicy::Arrival } else { OrderPolicy::EventTime },
        queue: numbers.pick(&[0, 0, 1_000, 5]),
        ahead: numbers.one_in(6).then_some((5 * MS) as u64),
        behind: numbers.one_in(6).then_some((80 * MS) as u64),
        late: numbers.pick(&[LatePolicy::Drop, LatePolicy::Late, LatePolicy::Inconclusive]),
    };
    let (driver, every) = (driver(numbers), numbers.one_in(2));
    let mut bench = Bench::new(part, &traffic, &settings, every);
    bench.cut = numbers.pick(&[0, 0, 5, 40]);
    drive(&mut bench, driver, numbers)
        .and_then(|()| compare(&mut bench, &settings, every))
        .map_err(|why| why + &description(&bench, &settings, driver))
}

/// With counted markers on every topic and without losses, no event is ever late whatever the delays, and nothing waits
/// at the end.
pub(crate) fn counted(numbers: &mut Random) -> Result<bool, String> {
    let (watched, part) = watched(numbers);
    let division = &part.0;
    let traffic = relevant(traffic(numbers, watched.topics, Rough::Counted), division);
    let topics = traffic.lines.iter().enumerate().map(|(i, line)| TopicOrder {
        max_wait: MaxWait::None,
        absent_after: None,
        fifo: line.in_order() && numbers.one_in(2),
        in_play: division.topics.contains(&TopicId(i as u32)),
    });
    let settings = OrderSettings {
        topics: topics.collect(),
        policy: OrderPolicy::EventTime,
        queue: 0,
        ahead: None,
        behind: None,
        late: numbers.pick(&[LatePolicy::Drop, LatePolicy::Late, LatePolicy::Inconclusive]),
    };
    let (driver, every) = (driver(numbers), numbers.one_in(2));
    let mut bench = Bench::new(part, &traffic, &settings, every);
    bench.cut = numbers.pick(&[0, 0, 5, 40]);
    bench.patient = true;
    let mut run = |bench: &mut Bench<'_>| {
        drive(bench, driver, numbers)?;
        let Rule::Order(order) = bench.monitor.rule() else { return Err("no order".to_owned()) };
        let unwell = |c: &&rondel_align::OrderStatistics| c.late + c.broken + c.guessed > 0;
        if let Some(counts) = order.statistics().iter().find(unwell) {
            return Err(format!("with markers: {counts:?}"));
        }
        match order.waiting() {
            0 => compare(bench, &settings, every),
            waiting => Err(format!("{waiting} wait for ever")),
        }
    };
    run(&mut bench).map_err(|why| why + &description(&bench, &settings, driver))
}
