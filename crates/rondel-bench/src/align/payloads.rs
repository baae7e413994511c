//! The ways to keep payloads while they wait, as a synchronizer does: allocated for each message and freed when it
//! leaves, or in buffers that are used again. Beside them an order of numbers, which only orders.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rondel_align::{LatePolicy, MaxWait, Order, OrderPolicy, OrderSettings, TopicOrder};
use rondel_event::{Timestamp, TopicId};

const EVENTS: i64 = 1_000_000;
const TOPICS: i64 = 4;

/// Returns an order in which about `waiting` events wait.
fn order<T>(waiting: i64) -> Order<T> {
    let max_wait = MaxWait::Fixed(waiting.unsigned_abs());
    Order::new(OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: vec![TopicOrder { max_wait, fifo: false, ..TopicOrder::default() }; TOPICS as usize],
        queue: 0,
        ahead: None,
        behind: None,
        late: LatePolicy::Late,
    })
}

/// Returns nanoseconds per event, the least of seven runs.
fn measure<T>(waiting: i64, mut keep: impl FnMut(i64) -> T, mut leave: impl FnMut(T)) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..7 {
        let mut order = order(waiting);
        let started = Instant::now();
        for i in 0..EVENTS {
            let now = Timestamp::from_nanos(i);
            order.push(TopicId((i % TOPICS) as u32), now, None, now, keep(i));
            while let Some(released) = order.pop() {
                leave(released.item);
            }
        }
        order.flush();
        while let Some(released) = order.pop() {
            leave(released.item);
        }
        least = least.min(started.elapsed().as_nanos() as f64 / EVENTS as f64);
    }
    least
}

/// Measures and prints.
pub fn run() {
    println!("| bytes | waiting | a number | allocated | used again | copied only |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for bytes in [60, 300, 4_000, 60_000] {
        let payload = vec![b'x'; bytes];
        for waiting in [10, 1_000, 20_000] {
            if bytes * waiting as usize > 200_000_000 {
                continue;
            }
            let number = measure(waiting, |i| i, |i| _ = black_box(i));
            let allocated = measure(
                waiting,
                |_| Arc::<[u8]>::from(black_box(&payload[..])),
                |item| drop(black_box(item)),
            );
            let free = std::cell::RefCell::new(Vec::<Vec<u8>>::new());
            let used_again = measure(
                waiting,
                |_| {
                    let mut buffer = free.borrow_mut().pop().unwrap_or_default();
                    buffer.clear();
                    buffer.extend_from_slice(black_box(&payload));
                    buffer
                },
                |item| free.borrow_mut().push(black_box(item)),
            );
            let mut place = Vec::new();
            let copied = measure(
                waiting,
                |i| {
                    place.clear();
                    place.extend_from_slice(black_box(&payload));
                    black_box(&place);
                    i
                },
                |i| _ = black_box(i),
            );
            println!(
                "| {bytes} | {waiting} | {number:.0} ns | {allocated:.0} ns | {used_again:.0} ns | {copied:.0} ns |"
            );
        }
    }
}
