//! Reordering events does not allocate once the queues have reached their size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use rondel_align::{LatePolicy, Marker, MaxWait, Order, OrderPolicy, OrderSettings, Origin, TopicOrder};
use rondel_event::{Timestamp, TopicId};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards all calls to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Plays twenty topics with all settings, one delayed event every 1,000 ns.
fn play(order: &mut Order<[u64; 4]>, from: i64, to: i64) -> u64 {
    let mut left = 0;
    for i in from..to {
        let topic = i % 20;
        let now = Timestamp::from_nanos(i * 1_000);
        let delay = i * 7_919 % 50_000;
        let time = Timestamp::from_nanos(i * 1_000 - if topic % 2 == 0 { 500 } else { delay });
        let origin = (topic % 3 == 0).then_some(Origin { publisher: 1, number: i as u64 / 20 });
        order.push(TopicId(topic as u32), time, origin, now, [i as u64; 4]);
        if topic == 4 {
            let complete = Timestamp::from_nanos(i * 1_000 - 500);
            let after = Some(Timestamp::from_nanos((i - 20) * 1_000 - 500));
            order.mark(TopicId(4), &Marker { complete, after, count: Some(1) }, now);
        }
        while let Some(event) = order.pop() {
            left += u64::from(event.lateness.is_none());
        }
        order.notices().for_each(drop);
        order.deadline();
        order.complete_up_to();
    }
    left
}

#[test]
fn no_allocations_once_queues_have_reached_their_size() {
    let topic = |i: usize| TopicOrder {
        max_wait: match i % 4 {
            0 => MaxWait::Fixed(100_000),
            1 => MaxWait::Fixed(60_000),
            2 => MaxWait::None,
            _ => MaxWait::Estimated { quantile: 0.99, at_most: 80_000 },
        },
        absent_after: Some(1_000_000),
        fifo: i.is_multiple_of(2),
        in_play: true,
    };
    let mut order = Order::new(OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: (0..20).map(topic).collect(),
        queue: 10_000,
        ahead: Some(1_000_000),
        behind: Some(1_000_000),
        late: LatePolicy::Late,
    });
    assert!(play(&mut order, 1_000, 101_000) > 99_000);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let left = play(&mut order, 101_000, 301_000);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    assert!(left > 199_000, "{left}");
}
