//! MQTT: two clients with one client id, and messages that the broker refuses.

#![cfg(feature = "mqtt")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher as _;
use rondel_net::mqtt::{PublisherSettings, Session, Settings, Version};
use rondel_testkit::Broker;

const LIMIT: Duration = Duration::from_secs(60);

/// Starts a broker that accepts a client and reports at once that another one took over its session.
fn jealous_broker() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut request = [0; 1024];
            let Ok(1..) = stream.read(&mut request) else { continue };
            // CONNACK, and DISCONNECT with the reason code 0x8e.
            let _ = stream.write_all(&[0x20, 3, 0, 0, 0, 0xe0, 2, 0x8e, 0]);
        }
    });
    port
}

#[test]
fn a_client_gives_up_a_session_that_is_taken_over_repeatedly() {
    let settings = Settings {
        broker: format!("127.0.0.1:{}", jealous_broker()).parse().unwrap(),
        client_id: Some("monitor".to_owned()),
        ..Settings::default()
    };
    let session = Session::open(&settings).unwrap();
    let deadline = Instant::now() + LIMIT;
    let failure = loop {
        match session.failure() {
            Some(failure) => break failure,
            None => assert!(Instant::now() < deadline, "it does not give up"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(failure.contains("the session 'monitor'") && failure.contains("6 times in a row"), "{failure}");
    assert!(failure.contains("two clients use one client id"), "{failure}");
}

#[test]
fn messages_that_the_broker_refuses_are_counted() {
    let test = "messages_that_the_broker_refuses_are_counted";
    let configure = |port: u16, folder: &rondel_testkit::Folder| {
        let list = folder.file("acl", "topic read #\ntopic write allowed\n");
        format!("listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {list}\n")
    };
    let Some(broker) = Broker::with(test, configure) else { return };
    let settings = Settings {
        broker: format!("127.0.0.1:{}", broker.port).parse().unwrap(),
        version: Version::V5,
        ..Settings::default()
    };
    let session = Session::open(&settings).unwrap();
    let allowed = session.publisher("allowed", &PublisherSettings::default()).unwrap();
    let forbidden = session.publisher("forbidden", &PublisherSettings::default()).unwrap();
    assert_eq!(session.refused(), 0);
    for _ in 0..3 {
        allowed.publish(b"1").unwrap();
        forbidden.publish(b"1").unwrap();
    }
    assert!(!forbidden.flush(LIMIT), "not everything was accepted");
    assert_eq!(session.refused(), 3);
}
