//! Measures throughput and latency of the networks alone.
//!
//! ```text
//! wire zenoh count 1000000 &  wire zenoh publish 1000000 32
//! wire zenoh echo 1000000 &   wire zenoh ping 10000 32 [RATE]
//! ```
//! and the same with `dds`. `raw` after `count` (Zenoh only) uses Zenoh's own callback without this crate. One
//! side listens on port 17447 of loopback, the other connects; DDS uses domain 77. Times are measured from the
//! first message to the last one by the process that prints them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // a measuring tool, not shipped

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Receiver, Sample, Subscription};
use rondel_net::{dds, zenoh};

const LIMIT: Duration = Duration::from_secs(60);
const ENDPOINT: &str = "tcp/127.0.0.1:17447";
const IN: &str = "wire/in";
const OUT: &str = "wire/out";

enum Network {
    Zenoh(zenoh::Session, zenoh::PublisherSettings),
    Dds(dds::Participant, dds::PublisherSettings),
}

impl Network {
    fn open(name: &str, listen: bool) -> Network {
        let flag = |name: &str| std::env::var_os(name).is_some();
        match name {
            "zenoh" => {
                let mut settings = zenoh::Settings::default();
                let endpoint = std::env::var("WIRE_ENDPOINT").unwrap_or_else(|_| ENDPOINT.to_owned());
                if listen { &mut settings.listen } else { &mut settings.connect }.push(endpoint);
                settings.low_latency = flag("WIRE_LOW_LATENCY");
                let publishing =
                    zenoh::PublisherSettings { express: flag("WIRE_EXPRESS"), ..Default::default() };
                Network::Zenoh(zenoh::Session::open(&settings).unwrap(), publishing)
            }
            "dds" => {
                let settings =
                    dds::Settings { domain: 77, interface: Some("lo".to_owned()), ..Default::default() };
                let publishing = dds::PublisherSettings { batching: !flag("WIRE_NO_BATCHING") };
                Network::Dds(dds::Participant::open(&settings).unwrap(), publishing)
            }
            other => panic!("{other}: no such network"),
        }
    }

    fn subscribe<R: Receiver>(&self, name: &str, receiver: Arc<R>) -> Box<dyn Subscription> {
        match self {
            Network::Zenoh(session, _) => Box::new(session.subscribe(name, TopicId(0), receiver).unwrap()),
            Network::Dds(participant, _) => Box::new(
                participant.subscribe(name, &dds::StringType::default(), TopicId(0), receiver).unwrap(),
            ),
        }
    }

    fn publisher(&self, name: &str) -> Arc<dyn Publisher> {
        match self {
            Network::Zenoh(session, settings) => Arc::new(session.publisher(name, settings).unwrap()),
            Network::Dds(participant, settings) => {
                Arc::new(participant.publisher(name, &dds::StringType::default(), *settings).unwrap())
            }
        }
    }

    fn close(&self) {
        match self {
            Network::Zenoh(session, _) => session.close().unwrap(),
            Network::Dds(participant, _) => assert!(participant.close(LIMIT)),
        }
    }
}

/// Receiver that counts messages and records the arrival of the first and the last one.
struct Counter {
    count: AtomicU64,
    expected: u64,
    first: Mutex<Option<Instant>>,
    last: Mutex<Option<Instant>>,
    done: Condvar,
    echo: Option<Arc<dyn Publisher>>,
}

impl Counter {
    fn new(expected: u64, echo: Option<Arc<dyn Publisher>>) -> Arc<Counter> {
        Arc::new(Counter {
            count: AtomicU64::new(0),
            expected,
            first: Mutex::new(None),
            last: Mutex::new(None),
            done: Condvar::new(),
            echo,
        })
    }

    fn add(&self, n: u64) {
        let before = self.count.fetch_add(n, Ordering::Relaxed);
        if before == 0 {
            *self.first.lock().unwrap() = Some(Instant::now());
        }
        if before + n >= self.expected {
            *self.last.lock().unwrap() = Some(Instant::now());
            self.done.notify_all();
        }
    }

    fn report(&self, what: &str) {
        let last = self.last.lock().unwrap();
        let last = self.done.wait_timeout_while(last, LIMIT, |last| last.is_none()).unwrap().0;
        let count = self.count.load(Ordering::Relaxed);
        match (*self.first.lock().unwrap(), *last) {
            (Some(first), Some(last)) => {
                let seconds = (last - first).as_secs_f64();
                println!("{what}: {count} messages in {seconds:.3} s, {:.0} msg/s", count as f64 / seconds);
            }
            _ => println!("{what}: {count} of {} messages", self.expected),
        }
    }
}

impl Receiver for Counter {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        if let Some(publisher) = &self.echo {
            samples.iter().for_each(|s| publisher.publish(s.payload).unwrap());
        }
        self.add(samples.len() as u64);
    }

    fn idle(&self) {
        if let Some(publisher) = &self.echo {
            publisher.release();
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().unwrap();
    match arguments.as_slice() {
        ["zenoh", "count", count, "raw"] => raw_zenoh(number(count)),
        [network, "count", count] => {
            let network = Network::open(network, true);
            let counter = Counter::new(number(count), None);
            let subscription = network.subscribe(IN, Arc::clone(&counter));
            counter.report("count");
            subscription.close(LIMIT);
        }
        [network, "echo", count] => {
            let network = Network::open(network, true);
            let counter = Counter::new(number(count), Some(network.publisher(OUT)));
            let subscription = network.subscribe(IN, Arc::clone(&counter));
            counter.report("echo");
            // The other side sends a few more messages to detect the connection.
            subscription.drain(Duration::from_millis(200), LIMIT);
            subscription.close(LIMIT);
            network.close();
        }
        [network, "publish", count, size] => {
            let network = Network::open(network, false);
            let publisher = network.publisher(IN);
            assert!(publisher.wait_matched(LIMIT));
            let payload = vec![b'x'; number(size) as usize];
            let start = Instant::now();
            for _ in 0..number(count) {
                publisher.publish(&payload).unwrap();
            }
            publisher.release();
            network.close();
            println!("publish: {:.3} s", start.elapsed().as_secs_f64());
        }
        [network, "both", count, size] => both(&Network::open(network, false), number(count), number(size)),
        [network, "ping", count, size] => {
            ping(&Network::open(network, false), number(count), number(size), None)
        }
        [network, "ping", count, size, rate] => {
            ping(&Network::open(network, false), number(count), number(size), Some(number(rate)));
        }
        _ => panic!("unknown arguments: see the documentation at the top of examples/wire.rs"),
    }
}

/// Publishes to an echo and counts the returned messages.
fn both(network: &Network, count: u64, size: u64) {
    let publisher = network.publisher(IN);
    let counter = Counter::new(count, None);
    let _subscription = network.subscribe(OUT, Arc::clone(&counter));
    assert!(publisher.wait_matched(LIMIT));
    wait_for_echo(&*publisher, &counter);
    let payload = vec![b'x'; size as usize];
    for _ in 0..count {
        publisher.publish(&payload).unwrap();
    }
    publisher.release();
    counter.report("both");
}

/// Publishes until a message returns, so that both directions are connected.
fn wait_for_echo(publisher: &dyn Publisher, counter: &Counter) {
    let deadline = Instant::now() + LIMIT;
    let mut sent = 0;
    while counter.count.load(Ordering::Relaxed) == 0 {
        assert!(Instant::now() < deadline);
        publisher.publish(b"?").unwrap();
        publisher.release();
        sent += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(counter.count.swap(0, Ordering::Relaxed) <= sent);
}

/// Sends one message after another, each after the previous one returned and, with a rate, not before its time.
fn ping(network: &Network, count: u64, size: u64, rate: Option<u64>) {
    let publisher = network.publisher(IN);
    let counter = Counter::new(u64::MAX, None);
    let _subscription = network.subscribe(OUT, Arc::clone(&counter));
    assert!(publisher.wait_matched(LIMIT));
    wait_for_echo(&*publisher, &counter);
    let payload = vec![b'x'; size as usize];
    let mut times = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for i in 0..count {
        if let Some(rate) = rate {
            let due = start + Duration::from_secs_f64(i as f64 / rate as f64);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let sent = Instant::now();
        publisher.publish(&payload).unwrap();
        publisher.release();
        while counter.count.load(Ordering::Acquire) <= i {
            std::hint::spin_loop();
            if sent.elapsed() > Duration::from_micros(20) {
                std::thread::yield_now();
            }
            assert!(sent.elapsed() < LIMIT);
        }
        times.push(sent.elapsed());
    }
    times.sort();
    let at = |p: f64| times[((times.len() - 1) as f64 * p) as usize].as_nanos() as f64 / 1000.0;
    println!("ping: round trip p50 {:.1} us, p99 {:.1} us, max {:.1} us", at(0.5), at(0.99), at(1.0));
}

fn raw_zenoh(count: u64) {
    use ::zenoh::Wait;
    let mut config = ::zenoh::Config::default();
    config.insert_json5("listen/endpoints", &format!("[\"{ENDPOINT}\"]")).unwrap();
    config.insert_json5("scouting/multicast/enabled", "false").unwrap();
    let session = ::zenoh::open(config).wait().unwrap();
    let counter = Counter::new(count, None);
    let inner = Arc::clone(&counter);
    let subscriber = session.declare_subscriber(IN).callback(move |_| inner.add(1)).wait().unwrap();
    counter.report("count raw");
    drop(subscriber);
}
