//! A Zenoh neighbour that was cut off and returns: the receiver is informed before it gets the first message.

#![cfg(feature = "zenoh")]
#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Publisher as _, Receiver, Sample};
use rondel_net::zenoh::{Mode, PublisherSettings, Session, Settings};

const LIMIT: Duration = Duration::from_secs(30);

/// Forwards connections to a port of loopback; returns its own port and the streams.
fn relay(target: u16) -> (u16, Arc<Mutex<Vec<TcpStream>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
    let kept = Arc::clone(&streams);
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let Ok(near) = near else { break };
            let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
            for (mut from, mut to) in [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))]
                .map(|(from, to)| (from.unwrap(), to.unwrap()))
            {
                from.set_nodelay(true).unwrap();
                kept.lock().unwrap().push(from.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    (port, streams)
}

#[derive(Debug, PartialEq)]
enum Event {
    Message,
    Missed,
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>, Condvar);

impl Recorder {
    fn add(&self, event: Event) {
        self.0.lock().unwrap().push(event);
        self.1.notify_all();
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Waits for `count` messages.
    fn wait(&self, count: usize) {
        let messages = |all: &Vec<Event>| all.iter().filter(|one| **one == Event::Message).count();
        let all = self.0.lock().unwrap();
        let waited = self.1.wait_timeout_while(all, LIMIT, |all| messages(all) < count).unwrap();
        assert!(messages(&waited.0) >= count, "{:?}", waited.0);
    }
}

impl Receiver for Recorder {
    fn receive(&self, _topic: TopicId, _samples: &[Sample<'_>]) {
        self.add(Event::Message);
    }

    fn missed(&self, _topic: TopicId, from: Timestamp, until: Option<Timestamp>) {
        assert!(until.is_some_and(|until| from <= until));
        self.add(Event::Missed);
    }
}

/// Returns the events of a receiver whose publisher is cut off between its messages.
fn cut_between_messages(numbered: bool) -> Vec<Event> {
    let port = rondel_testkit::free_port();
    let settings = |mode| Settings { mode: Some(mode), ..Settings::default() };
    let listen = vec![format!("tcp/127.0.0.1:{port}")];
    let monitor = Session::open(&Settings { listen, ..settings(Mode::Router) }).unwrap();
    let recorder = Arc::new(Recorder::default());
    let _subscription = monitor.subscribe("test/missed", TopicId(0), Arc::clone(&recorder)).unwrap();
    let (port, streams) = relay(port);
    let connect = vec![format!("tcp/127.0.0.1:{port}")];
    let session = Session::open(&Settings { connect, ..settings(Mode::Peer) }).unwrap();
    let own = PublisherSettings { numbered, ..PublisherSettings::default() };
    let publisher = session.publisher("test/missed", &own).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    publisher.publish(b"1").unwrap();
    recorder.wait(1);
    streams.lock().unwrap().drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    let deadline = std::time::Instant::now() + LIMIT;
    while session.outages().iter().all(|outage| outage.until.is_none()) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(publisher.wait_matched(LIMIT));
    publisher.publish(b"2").unwrap();
    recorder.wait(2);
    recorder.take()
}

#[test]
fn an_outage_is_reported_before_the_first_message_after_it() {
    // Zenoh may lose the new connection again before it stays, which is reported again.
    let mut events = cut_between_messages(false);
    events.dedup();
    assert_eq!(events, [Event::Message, Event::Missed, Event::Message]);
    // With numbers, missing messages need no report.
    assert_eq!(cut_between_messages(true), [Event::Message, Event::Message]);
}
