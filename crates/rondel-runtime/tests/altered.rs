//! Serialised states, altered under valid checksums: they may have nonsensical contents, but cause no panic, neither
//! when read nor later, and no more memory than a file of their size may need.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use rondel_align::{
    LatePolicy, Marker, MaxWait, Order, OrderPolicy, OrderSettings, Origin, SetPolicy, SetSettings, Sets,
    TopicOrder,
};
use rondel_engine::{Program, SnapshotError};
use rondel_event::{Block, Event, Slot, Timestamp, TopicId};
use rondel_runtime::align::{AlignedMonitor, Rule, divide, together};

struct Counting;

thread_local! {
    /// Bytes allocated by this thread, and their maximum.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn held(change: isize) {
    // An ending thread frees its memory after its counter is gone.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        let now = now.wrapping_add_signed(change);
        held.set((now, if change > 0 { most.max(now) } else { most }));
    });
}

// SAFETY: the system's allocator does all the work, and is given what it gave.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        held(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        held(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Memory that reading may use beyond that explained by the size of the file: a stated length of a list is trusted up
/// to here.
const ROOM: usize = 8 << 20;

/// Measures the memory that reading takes.
fn within<T>(bytes: &[u8], read: impl FnOnce() -> T) -> T {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let out = read();
    let most = HELD.get().1 - before;
    assert!(most < ROOM + 64 * bytes.len(), "{most} bytes for {}", bytes.len());
    out
}

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Checksum at the end of the bytes.
fn sum(bytes: &[u8]) -> [u8; 8] {
    rondel_event::snapshot::sum(bytes).to_le_bytes()
}

/// Returns every variant with one byte changed, or many removed, under a valid checksum.
fn forge(bytes: &[u8], mut each: impl FnMut(&[u8])) {
    const HEAD: usize = 28;
    let end = bytes.len() - 8;
    assert_eq!(sum(&bytes[..end]), bytes[end..]);
    for i in HEAD..end {
        for value in [bytes[i] ^ 1, bytes[i].wrapping_add(1), bytes[i] ^ 0x80, 0, 0x7F, 0xFF] {
            let mut forged = bytes.to_vec();
            forged[i] = value;
            let sum = sum(&forged[..end]);
            forged[end..].copy_from_slice(&sum);
            each(&forged);
        }
        // A number without end.
        let mut longer = [&bytes[..i], &[0xFF; 9], &[1], &bytes[i..end]].concat();
        each(&sealed(&mut longer));
        let mut shorter = bytes[..i].to_vec();
        each(&sealed(&mut shorter));
    }
}

/// Bytes with their length and checksum.
fn sealed(bytes: &mut [u8]) -> Vec<u8> {
    let length = (bytes.len() - 28) as u64;
    bytes[20..28].copy_from_slice(&length.to_le_bytes());
    [&bytes[..], &sum(bytes)].concat()
}

/// Every cut or change without a valid checksum is refused.
fn refuses(bytes: &[u8], read: impl Fn(&[u8]) -> Option<SnapshotError>) {
    use SnapshotError::{Altered, Length, NotASnapshot, OtherProgram, OtherSettings, Version};
    for end in 0..bytes.len() {
        let error = within(&bytes[..end], || read(&bytes[..end])).unwrap();
        assert!(matches!(error, NotASnapshot | Length { .. }), "{end}: {error}");
    }
    for i in 0..bytes.len() {
        let mut altered = bytes.to_vec();
        altered[i] ^= 1 << (i % 8);
        let error = within(&altered, || read(&altered)).unwrap();
        let words = matches!(error, NotASnapshot | Length { .. } | Version { .. } | Altered);
        assert!(words || matches!(error, OtherProgram | OtherSettings), "{i}: {error}");
    }
    assert!(matches!(read(&[bytes, &[0]].concat()), Some(Length { .. })));
}

fn settings() -> OrderSettings {
    let topic = |max_wait, fifo| TopicOrder { max_wait, absent_after: Some(80), fifo, in_play: true };
    OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: vec![
            topic(MaxWait::Fixed(40), true),
            topic(MaxWait::Estimated { quantile: 0.9, at_most: 60 }, false),
            topic(MaxWait::None, true),
        ],
        queue: 50,
        ahead: Some(1_000),
        behind: None,
        late: LatePolicy::Late,
    }
}

/// An order with every kind of state.
fn feed_order(order: &mut Order<u64>, from: i64) {
    for i in from..from + 60 {
        let topic = TopicId((i * 7 % 3) as u32);
        let number = (i / 3 - i % 11 / 10 * 2) as u64;
        let origin = (topic.0 < 2).then_some(Origin { publisher: i as u64 % 2, number });
        order.push(topic, at(i * 10 - i * 13 % 50), origin, at(i * 10), i as u64);
        if i % 5 == 0 {
            let marker = Marker { complete: at(i * 10 - 5), after: Some(at(i * 10 - 55)), count: Some(3) };
            order.mark(TopicId(2), &marker, at(i * 10));
        }
        if i % 7 == 0 {
            order.pop();
        }
    }
}

fn write(item: &u64, to: &mut Vec<u8>) {
    to.extend_from_slice(&item.to_le_bytes());
}

fn read(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[test]
fn altered_snapshots_of_an_order_cause_no_panic() {
    let mut order = Order::new(settings());
    feed_order(&mut order, 0);
    let bytes = order.snapshot(write);
    refuses(&bytes, |bytes| Order::restore(settings(), bytes, read).err());
    let mut other = settings();
    other.queue = 51;
    let why = Order::restore(other, &bytes, read).err().unwrap();
    assert_eq!(why, SnapshotError::OtherSettings);
    let mut restored = 0;
    forge(&bytes, |forged| {
        let order = within(forged, || Order::restore(settings(), forged, read));
        let Ok(mut order) = order else { return };
        restored += 1;
        let _ = (order.complete_up_to(), order.complete_at(at(500)), order.deadline(), order.statistics());
        feed_order(&mut order, 60);
        order.advance_after_gap(at(5_000));
        order.flush();
        while order.pop().is_some() {}
        order.notices().for_each(drop);
    });
    assert!(restored > 1_000, "{restored}");
}

fn feed_sets(sets: &mut Sets<u64>, from: i64) {
    for i in from..from + 40 {
        let topic = TopicId((i * 7 % 3) as u32);
        let time = if i % 3 == 0 { i / 3 * 30 } else { i * 10 - i * 13 % 20 };
        sets.push(topic, at(time), at(i * 10), i as u64);
        if i % 11 == 0 {
            sets.pop(&mut Vec::new());
        }
    }
}

#[test]
fn altered_snapshots_of_sets_cause_no_panic() {
    let lower_bounds = vec![1, 2];
    let policies = [
        SetPolicy::Exact { queue: 6 },
        SetPolicy::approximate(5),
        SetPolicy::Approximate { queue: 0, age_penalty: 0.1, max_interval: Some(40), lower_bounds },
        SetPolicy::Epsilon { epsilon: 12, queue: 5 },
        SetPolicy::latest(),
    ];
    for policy in policies {
        let settings = || SetSettings { policy: policy.clone(), topics: 3, absent_after: vec![Some(50); 3] };
        let mut sets = Sets::new(settings());
        feed_sets(&mut sets, 0);
        let bytes = sets.snapshot(write);
        refuses(&bytes, |bytes| Sets::restore(settings(), bytes, read).err());
        let mut restored = 0;
        forge(&bytes, |forged| {
            let sets = within(forged, || Sets::restore(settings(), forged, read));
            let Ok(mut sets) = sets else { return };
            restored += 1;
            let _ = (sets.deadline(), sets.statistics());
            feed_sets(&mut sets, 40);
            sets.advance_after_gap(at(5_000));
            sets.flush();
            while sets.pop(&mut Vec::new()).is_some() {}
            sets.notices().for_each(drop);
        });
        assert!(restored > 100, "{restored}");
    }
}

const TEXT: &str = "topic a { b: bool, k: int, x: float, s: string } topic c { k: int, s: string } topic e
    property of_steps = a.x < 1 or c.s == 'm'
    property ahead = on(a) -> eventually[0, 100 ms] c.s == a.s
    property each for each k in (a.k, c.k) = on(a) and a.b -> once[0, 1 s] on(c)";

fn feed_monitor(monitor: &mut AlignedMonitor, from: i64) {
    let program = monitor.monitor().program().clone();
    let mut block = Block::new(program.layout());
    for i in from..from + 12 {
        let topic = TopicId((i * 7 % 3) as u32);
        block.clear();
        let row = block.push(topic, at(i * 10 - i * 13 % 50));
        for field in &program.projections()[topic.index()].fields {
            match field.slot {
                slot if i % 5 == 0 => block.set_invalid(slot, row),
                Slot::Bool(column) => block.set_bool(column, row, i % 2 == 0),
                Slot::Int(column) => block.set_int(column, row, i % 4),
                Slot::Float(column) => block.set_float(column, row, i as f64),
                Slot::String(column) => block.set_string(column, row, ["m", "né", ""][i as usize % 3]),
            }
        }
        monitor.push(&block, row, topic, None, at(i * 10));
        monitor.run(&mut |_, _| {});
    }
}

/// Number in the encoding of lengths in snapshots.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn altered_snapshots_of_a_monitor_with_waiting_events_cause_no_panic() {
    let spec = rondel_spec::parse(TEXT).spec.unwrap();
    let exact = |topics| SetSettings {
        policy: SetPolicy::Exact { queue: 4 },
        topics,
        absent_after: vec![Some(50); topics],
    };
    for division in divide(&spec).into_iter().chain(together(&spec, true)) {
        let program = Arc::new(Program::compile(&division.spec).unwrap());
        for ordered in [true, false] {
            let rule = || match ordered {
                true => Rule::Order(Order::new(settings())),
                false => {
                    let sets = Sets::new(exact(division.topics.len()));
                    Rule::Sets { sets, topics: division.topics.clone(), joined: !division.keyed }
                }
            };
            let mut monitor = AlignedMonitor::new(program.clone(), rule());
            feed_monitor(&mut monitor, 0);
            let bytes = monitor.snapshot();
            let restore = |bytes: &[u8]| AlignedMonitor::restore(program.clone(), rule(), bytes);
            refuses(&bytes, |bytes| restore(bytes).err());
            // Waiting events alone, forged and put back.
            let event = |event: &Arc<Event>, to: &mut Vec<u8>| event.write(to);
            let waiting = match monitor.rule() {
                Rule::Order(order) => order.snapshot(event),
                Rule::Sets { sets, .. } => sets.snapshot(event),
            };
            let own = monitor.monitor().snapshot();
            let whole = |waiting: &[u8]| {
                let parts = [&bytes[..28], &varint(own.len()), &own, &varint(waiting.len()), waiting];
                sealed(&mut parts.concat())
            };
            assert_eq!(whole(&waiting), bytes);
            let mut restored = 0;
            forge(&waiting, |forged| {
                let forged = whole(forged);
                let Ok(mut monitor) = within(&forged, || restore(&forged)) else { return };
                restored += 1;
                feed_monitor(&mut monitor, 12);
                monitor.unheard_until(at(5_000));
                monitor.end(&mut |_, _| {});
            });
            assert!(restored > 100, "{restored}");
        }
    }
}
