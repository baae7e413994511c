//! Publishers and the routes of their messages.

use rondel_align::{Marker, Origin};
use rondel_event::Timestamp;

use rondel_testkit::Random;

pub(crate) const MS: i64 = 1_000_000;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) topic: usize,
    pub(crate) stamp: i64,
    pub(crate) publisher: u64,
    pub(crate) number: u64,
    /// Its fields: `x` may be of another type, `ok` and `k` may be missing.
    pub(crate) x: Option<f64>,
    pub(crate) ok: Option<bool>,
    pub(crate) k: Option<i64>,
}

/// Route from a publisher to the monitor. Durations are in nanoseconds; chances are one in N (0: never).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    delay: i64,
    jitter: i64,
    /// Whether messages stay in order.
    pub(crate) fifo: bool,
    pub(crate) loss: i64,
    pub(crate) duplicates: i64,
    /// Outage: beginning, end, and whether messages sent meanwhile are held back rather than lost.
    pub(crate) partition: Option<(i64, i64, bool)>,
}

/// Publishers of one topic, and the routes of their messages.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    period: i64,
    jitter: i64,
    /// One in so many times many messages are sent at once.
    bursts: i64,
    begins: i64,
    ends: i64,
    /// For each publisher: offset of its clock, and its drift per million nanoseconds.
    clocks: Vec<(i64, i64)>,
    /// Time and size of a backward step of the clocks.
    step: Option<(i64, i64)>,
    /// Maximum age of a stamp when its message is sent.
    age: i64,
    /// Stamps are multiples of this.
    grid: i64,
    /// Whether publishers keep the promises of their markers.
    pub(crate) honest: bool,
    /// Period of markers, and whether they contain counts.
    pub(crate) markers: Option<(i64, bool)>,
    pub(crate) link: Link,
    /// Route of the markers.
    pub(crate) aside: Link,
    /// Whether the network names the publisher of a message.
    pub(crate) origins: bool,
    /// Whether the stamps never step back as they are sent.
    rises: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// The message at this place.
    Message(usize),
    /// A marker of a topic.
    Marker(usize, Marker),
}

/// Sent messages, and their arrivals.
pub(crate) struct Traffic {
    pub(crate) lines: Vec<Line>,
    pub(crate) messages: Vec<Message>,
    /// In no order.
    pub(crate) arrivals: Vec<(i64, What)>,
    /// Number of lost messages and markers.
    pub(crate) lost: usize,
}

impl Message {
    pub(crate) fn origin(&self) -> Origin {
        Origin { publisher: self.publisher, number: self.number }
    }
}

/// Faults of a network.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rough {
    /// Everything may happen.
    Any,
    /// Nothing is lost, and nothing comes twice without that being known.
    Lossless,
    /// The same with counted markers whose promises are kept.
    Counted,
}

impl Link {
    fn random(numbers: &mut Random, rough: Rough) -> Link {
        let lossy = rough == Rough::Any && numbers.one_in(3);
        let partition = numbers.one_in(5).then(|| {
            let from = numbers.int(200 * MS);
            let holds = rough != Rough::Any || numbers.one_in(2);
            (from, from + numbers.int(100 * MS), holds)
        });
        Link {
            delay: numbers.pick(&[0, 1, 5, 20, 70]) * MS / numbers.pick(&[1, 1, 3]),
            jitter: numbers.pick(&[0, 0, 1, 8, 30]) * MS,
            fifo: numbers.one_in(2),
            loss: if lossy { numbers.pick(&[3, 10, 30]) } else { 0 },
            duplicates: if numbers.one_in(4) { numbers.pick(&[2, 8]) } else { 0 },
            partition,
        }
    }

    fn way(&self, numbers: &mut Random, sent: i64) -> Option<i64> {
        let happens = |numbers: &mut Random, chance: i64| chance > 0 && numbers.one_in(chance as u64);
        if happens(numbers, self.loss) {
            return None;
        }
        let taken = self.delay + numbers.int(self.jitter + 1);
        match self.partition.filter(|(from, to, _)| (*from..*to).contains(&sent)) {
            Some((.., false)) => None,
            Some((_, to, true)) => Some(to + taken),
            None => Some(sent + taken),
        }
    }

    /// Arrival times of messages sent at these times, with their positions among these.
    fn carry(&self, numbers: &mut Random, sent: &[i64]) -> Vec<(i64, usize)> {
        let (mut all, mut last) = (Vec::new(), i64::MIN);
        for (i, &sent) in sent.iter().enumerate() {
            for copy in 0..2 {
                if copy == 1 && !(self.duplicates > 0 && numbers.one_in(self.duplicates as u64)) {
                    continue;
                }
                let Some(mut comes) = self.way(numbers, sent) else { continue };
                if self.fifo {
                    comes = comes.max(last);
                    last = comes;
                }
                all.push((comes, i));
            }
        }
        all
    }
}

impl Line {
    fn random(numbers: &mut Random, rough: Rough, grid: i64, apart: i64) -> Line {
        let period = numbers.pick(&[2, 5, 10, 10, 30]) * MS;
        let begins = if numbers.one_in(4) { numbers.int(150 * MS) } else { numbers.int(period) };
        let clock = |numbers: &mut Random| {
            (numbers.int(2 * apart + 1) - apart, numbers.pick(&[0, 0, -1_000, 500, 30_000]))
        };
        let clocks = (0..if numbers.one_in(6) { 2 } else { 1 }).map(|_| clock(numbers)).collect();
        let counted = rough == Rough::Counted;
        let markers = (counted || numbers.one_in(3))
            .then(|| (numbers.pick(&[3, 10, 40]) * MS, counted || numbers.one_in(2)));
        let mut link = Link::random(numbers, rough);
        let origins = numbers.one_in(2);
        if !origins && rough != Rough::Any {
            link.duplicates = 0;
        }
        Line {
            period,
            jitter: numbers.pick(&[0, 0, 1, 2]) * period / 2,
            bursts: numbers.pick(&[0, 0, 5, 20]),
            begins,
            ends: numbers.pick(&[20, 150, 300, 300]) * MS,
            clocks,
            step: numbers.one_in(8).then(|| (numbers.int(200 * MS), numbers.int(40 * MS))),
            age: numbers.pick(&[0, 0, 0, 3, 20]) * MS,
            grid,
            honest: counted || !numbers.one_in(4),
            markers,
            link,
            // Markers are no use if they overtake one another.
            aside: Link { fifo: counted || !numbers.one_in(5), ..Link::random(numbers, rough) },
            origins,
            rises: true,
        }
    }

    /// Whether a message rules out earlier ones.
    pub(crate) fn in_order(&self) -> bool {
        self.link.fifo && self.rises && self.clocks.len() == 1
    }

    fn stamp(&self, numbers: &mut Random, publisher: usize, now: i64) -> i64 {
        let (skew, drift) = self.clocks[publisher];
        let stepped = self.step.map_or(0, |(when, by)| if now >= when { by } else { 0 });
        let stamp = now + skew + now / MS * drift - stepped - numbers.int(self.age + 1);
        stamp.div_euclid(self.grid) * self.grid
    }
}

/// Messages sent by the publishers of one topic.
struct Sending<'a> {
    topic: usize,
    line: &'a mut Line,
    messages: Vec<(i64, Message)>,
    markers: Vec<(i64, Marker)>,
    announced: Option<i64>,
}

impl Sending<'_> {
    fn message(&mut self, numbers: &mut Random, now: i64) {
        let publisher = numbers.int(self.line.clocks.len() as i64) as usize;
        let mut stamp = self.line.stamp(numbers, publisher, now);
        if self.line.honest {
            stamp = stamp.max(self.announced.map_or(i64::MIN, |announced| announced + 1));
        }
        self.line.rises &= self.messages.last().is_none_or(|(_, last)| last.stamp <= stamp);
        let number = self.messages.iter().filter(|(_, m)| m.publisher == publisher as u64).count() as u64;
        let message = Message {
            topic: self.topic,
            stamp,
            publisher: publisher as u64,
            number,
            x: (!numbers.one_in(25)).then(|| numbers.int(9) as f64 / 2.0),
            ok: (!numbers.one_in(20)).then(|| numbers.one_in(2)),
            k: (!numbers.one_in(25)).then(|| numbers.int(3)),
        };
        self.messages.push((now, message));
    }

    fn marker(&mut self, now: i64, complete: i64, counts: bool) {
        let after = self.announced;
        if after.is_some_and(|after| complete <= after) {
            return;
        }
        let spoken = |m: &Message| m.stamp <= complete && after.is_none_or(|after| m.stamp > after);
        let count = self.messages.iter().filter(|(_, m)| spoken(m)).count() as u64;
        let at = Timestamp::from_nanos;
        let marker = Marker { complete: at(complete), after: after.map(at), count: counts.then_some(count) };
        self.announced = Some(complete);
        self.markers.push((now, marker));
    }
}

/// Random network of `topics` topics, and everything that arrives through it.
pub(crate) fn traffic(numbers: &mut Random, topics: usize, rough: Rough) -> Traffic {
    let grid = numbers.pick(&[1, MS / 4, MS, MS, 5 * MS]);
    // Maximum difference of the clocks.
    let apart = numbers.pick(&[0, 0, MS, 15 * MS]);
    let mut lines: Vec<Line> = (0..topics).map(|_| Line::random(numbers, rough, grid, apart)).collect();
    let mut sendings: Vec<Sending<'_>> = Vec::new();
    for (topic, line) in lines.iter_mut().enumerate() {
        let (mut next, every) = (line.begins, line.markers);
        let mut sending = Sending { topic, line, messages: Vec::new(), markers: Vec::new(), announced: None };
        let mut next_marker = every.map_or(i64::MAX, |(every, _)| every);
        while next < sending.line.ends && sending.messages.len() < 30 {
            if let Some((every, counts)) = every.filter(|_| next_marker < next) {
                let complete = sending.line.stamp(numbers, 0, next_marker) - numbers.int(2 * MS);
                sending.marker(next_marker, complete, counts);
                next_marker += every;
                continue;
            }
            sending.message(numbers, next);
            let bursts = sending.line.bursts;
            let in_burst = bursts > 0 && !sending.messages.len().is_multiple_of(bursts as usize);
            let period = if in_burst { sending.line.period / 10 } else { sending.line.period };
            next += period + numbers.int(sending.line.jitter + 1);
        }
        sendings.push(sending);
    }
    // A last marker of every publisher: no further message comes.
    let last = sendings.iter().flat_map(|s| &s.messages).map(|(_, m)| m.stamp).max().unwrap_or(0);
    let mut traffic = Traffic { lines: Vec::new(), messages: Vec::new(), arrivals: Vec::new(), lost: 0 };
    for mut sending in sendings {
        if let Some((_, counts)) = sending.line.markers {
            let said = sending.announced.map_or(last, |announced| announced + 1);
            sending.marker(sending.line.ends.max(300 * MS), said.max(last), counts);
        }
        let first = traffic.messages.len();
        let sent: Vec<i64> = sending.messages.iter().map(|(sent, _)| *sent).collect();
        let come = sending.line.link.carry(numbers, &sent);
        traffic.lost += (0..sent.len()).filter(|i| come.iter().all(|(_, other)| other != i)).count();
        traffic.arrivals.extend(come.iter().map(|(comes, i)| (*comes, What::Message(first + i))));
        traffic.messages.extend(sending.messages.iter().map(|(_, message)| *message));
        let sent: Vec<i64> = sending.markers.iter().map(|(sent, _)| *sent).collect();
        let come = sending.line.aside.carry(numbers, &sent);
        let marker = |(comes, i): &(i64, usize)| (*comes, What::Marker(sending.topic, sending.markers[*i].1));
        traffic.arrivals.extend(come.iter().map(marker));
    }
    traffic.lines = lines;
    traffic
}
