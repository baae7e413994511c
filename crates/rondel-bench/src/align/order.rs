//! Messages in the order of their times: events per second on one thread, the best of several rounds, and the memory
//! that waiting events take.

use std::hint::black_box;
use std::time::Instant;

use rondel_align::{LatePolicy, MaxWait, Order, OrderPolicy, OrderSettings, TopicOrder};
use rondel_event::{Timestamp, TopicId};

use crate::failure::{Failure, Result, io_error};

const EVENTS: usize = 1_000_000;
/// Nanoseconds from one event to the next.
const PERIOD: i64 = 1_000;
const MILLISECOND: u64 = 1_000_000;

/// The topic and the time of each event.
type Stream = Vec<(u32, i64)>;

fn round_robin(topics: u32) -> Stream {
    (0..EVENTS).map(|i| (i as u32 % topics, i as i64 * PERIOD)).collect()
}

/// Each topic delivers 32 events at once, one topic after the other.
fn bursts(topics: u32) -> Stream {
    let round = 32 * topics as usize;
    let event = |i: usize| {
        let (start, within) = (i / round * round, i % round);
        ((within / 32) as u32, (start + within % 32 * topics as usize + within / 32) as i64 * PERIOD)
    };
    (0..EVENTS).map(event).collect()
}

/// One topic in ten has events.
fn idle(topics: u32) -> Stream {
    let speaking = (topics / 10).max(1);
    (0..EVENTS).map(|i| (i as u32 % speaking * (topics / speaking), i as i64 * PERIOD)).collect()
}

fn settings(topics: u32, topic: impl Fn(u32) -> TopicOrder) -> OrderSettings {
    OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: (0..topics).map(topic).collect(),
        queue: 0,
        ahead: Some(1_000 * MILLISECOND),
        behind: Some(100_000 * MILLISECOND),
        late: LatePolicy::Late,
    }
}

/// Returns millions of events per second, the number of late events, and the largest number that waited.
fn measure(settings: &OrderSettings, stream: &Stream) -> (f64, u64, usize) {
    let mut best = f64::INFINITY;
    let (mut late, mut most) = (0, 0);
    for _ in 0..3 {
        let mut order = Order::new(settings.clone());
        let start = Instant::now();
        for (i, &(topic, time)) in stream.iter().enumerate() {
            let now = Timestamp::from_nanos(i as i64 * PERIOD + 1_000);
            order.push(TopicId(topic), Timestamp::from_nanos(time.min(now.as_nanos())), None, now, i as u64);
            while let Some(event) = order.pop() {
                black_box(event);
            }
            most = most.max(order.waiting());
        }
        best = best.min(start.elapsed().as_secs_f64());
        late = order.statistics().iter().map(|topic| topic.late).sum();
    }
    (stream.len() as f64 / best / 1e6, late, most)
}

/// Returns the resident memory of this process without that of files, in bytes.
fn resident() -> Result<u64> {
    let path = "/proc/self/status";
    let status = std::fs::read_to_string(path).map_err(io_error(path))?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    value
        .map(|kb: u64| kb * 1024)
        .ok_or_else(|| Failure::Io(path.to_owned(), std::io::Error::other("no RssAnon")))
}

/// Measures the memory of topics and of events that wait.
fn memory() -> Result<()> {
    let topics = 1_000;
    let before = resident()?;
    let mut order = Order::new(settings(topics, |_| TopicOrder::default()));
    let empty = resident()? - before;
    for i in 0..EVENTS as i64 {
        // The last topic has no events.
        let topic = TopicId(i as u32 % (topics - 1));
        order.push(topic, Timestamp::from_nanos(i), None, Timestamp::from_nanos(i), i);
    }
    let each = (resident()? - before - empty) as f64 / order.waiting() as f64;
    println!(
        "{topics:>6}  memory: {:.2} kB a topic, {each:.0} B for an event of 8 B that waits",
        empty as f64 / f64::from(topics) / 1e3
    );
    Ok(())
}

/// Measures and prints.
///
/// # Errors
/// When the system does not say how much memory is in use.
pub fn run() -> Result<()> {
    // First: memory that was freed before would be used again, and not be seen.
    memory()?;
    let fifo = |wait: u64| TopicOrder {
        max_wait: MaxWait::Fixed(wait * MILLISECOND),
        absent_after: Some(1_000 * MILLISECOND),
        ..TopicOrder::default()
    };
    println!("{:>6}  {:<34}{:>12}{:>10}{:>12}", "topics", "", "M events/s", "late", "waiting");
    for topics in [2, 10, 100, 1_000] {
        let equal = settings(topics, |_| fifo(5));
        // A round of bursts takes 32 ms with a thousand topics.
        let patient = settings(topics, |_| fifo(100));
        let different = settings(topics, |topic| fifo(1 + u64::from(topic) % 97));
        let unordered = settings(topics, |_| TopicOrder { fifo: false, ..fifo(1) });
        let estimated = MaxWait::Estimated { quantile: 0.999, at_most: 10 * MILLISECOND };
        let estimated = settings(topics, |_| TopicOrder { max_wait: estimated, ..fifo(0) });
        let runs = [
            ("round robin", &equal, round_robin(topics)),
            ("round robin, different waits", &different, round_robin(topics)),
            ("round robin, not fifo", &unordered, round_robin(topics)),
            ("round robin, estimated", &estimated, round_robin(topics)),
            ("bursts of 32", &patient, bursts(topics)),
            ("90 % idle", &equal, idle(topics)),
            ("90 % idle, different waits", &different, idle(topics)),
            ("90 % idle, estimated", &estimated, idle(topics)),
        ];
        for (name, settings, stream) in runs {
            let (rate, late, most) = measure(settings, &stream);
            println!("{topics:>6}  {name:<34}{rate:>12.2}{late:>10}{most:>12}");
        }
    }
    Ok(())
}
