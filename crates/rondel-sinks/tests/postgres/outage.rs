//! A server that stops and starts again under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_runtime::SystemClock;
use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::{Condition, Driver, Entry, Handle, Options};
use rondel_testkit::wait_until;

use crate::server::Server;
use crate::support::{begin, verdict};

/// Offers verdicts, and returns the number of the next.
fn offer(handle: &Handle, from: i64, count: i64) -> i64 {
    let mut bytes = Vec::new();
    for i in from..from + count {
        bytes.clear();
        Entry::Verdict(verdict(1, "p", if i % 2 == 0 { Violated } else { Satisfied }, i)).encode(&mut bytes);
        handle.offer(&bytes, Duration::ZERO).unwrap();
    }
    from + count
}

/// `RONDEL_TEST_OUTAGE` sets the seconds of each outage.
#[test]
fn nothing_is_lost_while_the_server_is_gone() {
    let outage = std::env::var("RONDEL_TEST_OUTAGE").map_or(1.0, |seconds| seconds.parse().unwrap());
    let outage = Duration::from_secs_f64(outage);
    let mut server = Server::start();
    let driver =
        Driver::start("postgres", Box::new(server.sink()), Options::default(), Arc::new(SystemClock))
            .unwrap();
    let handle = driver.handle();
    let mut bytes = Vec::new();
    Entry::Begin(Box::new(begin(1, "car"))).encode(&mut bytes);
    handle.offer(&bytes, Duration::ZERO).unwrap();
    let mut next = 0;
    for mode in ["fast", "immediate"] {
        let before = handle.status().acknowledged;
        wait_until("verdicts are stored", || {
            next = offer(&handle, next, 100);
            handle.status().acknowledged > before + 500
        });
        server.stop(mode);
        let begun = Instant::now();
        wait_until("the failure is noticed", || {
            next = offer(&handle, next, 10);
            matches!(handle.status().condition, Condition::Failing { .. })
        });
        while begun.elapsed() < outage {
            next = offer(&handle, next, 10);
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = handle.status();
        println!("{mode}: {} queued, {} failures, {:?}", status.queued, status.failures, status.last_error);
        assert!(status.lost() == 0 && status.queued > 0, "{status:?}");
        server.resume();
        wait_until("the queue is empty", || handle.flush(Duration::from_millis(100)));
        assert_eq!(handle.status().condition, Condition::Connected);
    }
    assert_eq!(driver.close(Duration::from_secs(10)).unwritten, 0);
    let found = server.query("SELECT count(*), count(DISTINCT id), max(step) + 1 FROM verdicts");
    assert_eq!(found, [format!("{next},{next},{next}")]);
    let violations = (next + 1) / 2;
    assert_eq!(
        server.query("SELECT count(*), sum(count) FROM violations"),
        [format!("{violations},{violations}")]
    );
}
