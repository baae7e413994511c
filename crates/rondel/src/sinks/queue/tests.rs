use std::sync::mpsc;

use super::*;

/// A sink that accepts as many messages as a test lets it.
struct Gate {
    room: Mutex<u64>,
    changed: Condvar,
    accepted: mpsc::SyncSender<u64>,
}

impl Gate {
    fn open(&self, messages: u64) {
        *self.room.lock().unwrap() = messages;
        self.changed.notify_all();
    }
}

impl Publisher for Gate {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.offer(payload, Duration::MAX)
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        let waited = self.changed.wait_timeout_while(self.room.lock().unwrap(), limit, |room| *room == 0);
        let mut room = waited.unwrap().0;
        *room = room.checked_sub(1).ok_or(PublishError::Slow)?;
        let number = u64::from_le_bytes(payload.try_into().unwrap());
        self.accepted.send(number).map_err(|_| PublishError::Closed)
    }
}

/// Creates a sink with a queue. Receiving from the channel lets the sink continue.
fn queued(wait: Duration) -> (Queued, Arc<Gate>, Arc<Queue>, mpsc::Receiver<u64>) {
    let (accepted, reader) = mpsc::sync_channel(100);
    let gate = Arc::new(Gate { room: Mutex::new(0), changed: Condvar::new(), accepted });
    let queue = Queue::new("test:sink".to_owned(), NETWORK, wait, None);
    let publisher = Arc::clone(&gate) as Arc<dyn Publisher>;
    (Queued::new(publisher, Arc::clone(&queue)), gate, queue, reader)
}

fn send(queued: &Queued, number: u64) -> bool {
    queued.publish(&number.to_le_bytes()).is_ok()
}

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn refused_messages_are_published_later_in_order() {
    let (queued, gate, queue, reader) = queued(LIMIT);
    gate.open(3);
    let began = Instant::now();
    assert!((0..50).all(|number| send(&queued, number)));
    assert!(began.elapsed() < LIMIT / 2 && queue.is_used());
    gate.open(u64::MAX);
    assert!(queued.flush(LIMIT));
    assert!(reader.try_iter().eq(0..50));
    assert_eq!((queue.drops().count(), queue.withdrawn()), (0, 0));
}

#[test]
fn expired_messages_are_dropped_and_counted() {
    let (queued, gate, queue, reader) = queued(Duration::from_millis(20));
    assert!((0..5).all(|number| send(&queued, number)));
    let deadline = Instant::now() + LIMIT;
    while queue.drops().count() < 5 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(queue.withdrawn(), 5);
    gate.open(1);
    assert!(send(&queued, 5) && queued.flush(LIMIT));
    assert!(reader.try_iter().eq([5]));
}

#[test]
fn full_queue_of_a_blocked_sink_drops_at_once() {
    let (queued, gate, queue, reader) = queued(LIMIT);
    let room = memory::MESSAGES as u64;
    let began = Instant::now();
    assert!((0..room).all(|number| send(&queued, number)));
    assert!((0..1000).all(|_| !send(&queued, u64::MAX)));
    assert!(began.elapsed() < LIMIT / 2);
    assert_eq!((queue.drops().count(), queue.withdrawn()), (1000, 0));
    let read = std::thread::spawn(move || reader.iter().eq(0..room));
    gate.open(u64::MAX);
    assert!(queued.flush(LIMIT));
    drop((queued, gate));
    assert!(read.join().unwrap());
}

#[test]
fn full_queue_waits_for_a_slow_sink() {
    let (queued, gate, queue, reader) = queued(LIMIT);
    let count = 2 * memory::MESSAGES as u64;
    assert!(send(&queued, 0), "it is in the queue");
    gate.open(u64::MAX);
    let read = std::thread::spawn(move || reader.iter().eq(0..count));
    assert!((1..count).all(|number| send(&queued, number)));
    assert!(queued.flush(LIMIT));
    assert_eq!(queue.drops().count(), 0);
    drop((queued, gate));
    assert!(read.join().unwrap());
}

#[test]
fn remaining_messages_are_dropped_and_counted_at_the_end() {
    let (queued, _gate, queue, _reader) = queued(LIMIT);
    assert!((0..7).all(|number| send(&queued, number)));
    assert!(!queued.flush(Duration::ZERO));
    assert_eq!((queue.drops().count(), queue.withdrawn()), (7, 7));
    assert!(!send(&queued, 7) && queue.drops().count() == 8);
}
