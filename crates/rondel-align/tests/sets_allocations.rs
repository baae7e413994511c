//! Building sets does not allocate once the queues have reached their size.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use rondel_align::{SetPolicy, SetSettings, Sets};
use rondel_event::{Timestamp, TopicId};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: forwards all calls to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_allocations_once_queues_have_reached_their_size() {
    let bounded = SetPolicy::Approximate {
        queue: 4,
        age_penalty: 0.1,
        max_interval: Some(90),
        lower_bounds: vec![70; 9],
    };
    for policy in [
        SetPolicy::Exact { queue: 4 },
        SetPolicy::approximate(4),
        bounded,
        SetPolicy::Epsilon { epsilon: 30, queue: 4 },
        SetPolicy::latest(),
    ] {
        let absent_after = vec![Some(150); 9];
        let mut sets = Sets::new(SetSettings { policy: policy.clone(), topics: 9, absent_after });
        let (mut set, mut count) = (Vec::new(), 0);
        let mut round = |round: i64| {
            for topic in 0..9 {
                // One topic is silent at times, another is twice as fast.
                if topic == 3 && round % 50 > 44 {
                    continue;
                }
                let time = round * 100 + if round % 10 > 6 { i64::from(topic) * 7 } else { 0 };
                for time in [time, time + 40].into_iter().take(1 + usize::from(topic == 5)) {
                    let time = Timestamp::from_nanos(time);
                    sets.push(TopicId(topic), time, time, round);
                    while sets.pop(&mut set).is_some() {
                        count += 1;
                    }
                    sets.notices().for_each(|_| ());
                }
            }
        };
        (0..200).for_each(&mut round);
        let before = ALLOCATIONS.get();
        (200..2000).for_each(&mut round);
        assert_eq!(ALLOCATIONS.get() - before, 0, "{policy:?}");
        assert!(count > 1000, "{policy:?}: {count} sets");
    }
}
