use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::*;

fn hub() -> Arc<Hub> {
    Arc::new(Hub::new("test", "1", Box::new(|_| {})))
}

fn schema() -> Schema {
    Schema { name: "S".into(), data: "{}".into() }
}

fn channels(topics: &[&str]) -> Vec<(String, Schema)> {
    topics.iter().map(|topic| ((*topic).to_owned(), schema())).collect()
}

fn subscribe(client: &Joined, id: u32, channel: u32) {
    client.receive(&format!(
        "{{\"op\":\"subscribe\",\"subscriptions\":[{{\"id\":{id},\"channelId\":{channel}}}]}}"
    ));
}

/// Everything that waits for a client; frames by their subscription and payload.
fn sent(client: &Joined) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(outgoing) = client.next() {
        all.push(match outgoing {
            Outgoing::Text(text) => serde_json::from_str(&text).unwrap(),
            Outgoing::Frame(frame) => {
                format!("{}: {}", frame[1], String::from_utf8_lossy(&frame[13..])).into()
            }
            Outgoing::Close => {
                all.push("closed".into());
                return all;
            }
        });
    }
    all
}

fn payload(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

#[test]
fn subscribers_receive_the_state_and_what_follows() {
    let hub = hub();
    let ids = hub.show(channels(&["a", "b"]));
    let client = hub.join().unwrap();
    let first = sent(&client);
    assert_eq!((&first[0]["op"], &first[1]["channels"][1]["topic"]), (&"serverInfo".into(), &"b".into()));
    hub.publish(ids[0], 1, &payload("before"));
    subscribe(&client, 7, ids[0]);
    assert!(hub.wait(Duration::ZERO));
    let pending = hub.pending();
    assert_eq!(pending.iter().map(|of| of.channel).collect::<Vec<_>>(), [ids[0]]);
    hub.publish(ids[0], 2, &payload("too early"));
    hub.activate(&pending, |channel| Some((3, payload(&format!("state of {channel}")))));
    hub.activate(&pending, |_| Some((3, payload("twice"))));
    hub.publish(ids[0], 4, &payload("after"));
    hub.publish(ids[1], 4, &payload("other"));
    assert_eq!(sent(&client), [format!("7: state of {}", ids[0]), "7: after".to_owned()]);
    client.receive("{\"op\":\"unsubscribe\",\"subscriptionIds\":[7]}");
    assert!(hub.subscribed().is_empty());
    hub.publish(ids[0], 5, &payload("too late"));
    assert!(sent(&client).is_empty());
}

#[test]
fn wrong_requests_are_answered() {
    let hub = hub();
    let ids = hub.show(channels(&["a", "b"]));
    let client = hub.join().unwrap();
    sent(&client);
    subscribe(&client, 1, 99);
    subscribe(&client, 1, ids[0]);
    subscribe(&client, 2, ids[0]);
    subscribe(&client, 1, ids[1]);
    client.receive("garbage");
    client.refuse_bytes();
    let levels: Vec<Value> = sent(&client).iter().map(|status| status["level"].clone()).collect();
    assert_eq!(levels, [2; 5]);
    assert_eq!(hub.subscribed(), HashSet::from([ids[0]]));
    for _ in 0..=ANSWERS {
        client.receive("garbage");
    }
    assert_eq!(client.next(), Some(Outgoing::Close), "a client that reads no answers is closed");
}

#[test]
fn slow_clients_lose_the_oldest_messages_and_others_none() {
    let lost = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lost);
    let report = move |_: &str| _ = counted.fetch_add(1, Ordering::Relaxed);
    let hub = Arc::new(Hub::new("test", "1", Box::new(report)));
    let ids = hub.show(channels(&["a"]));
    let (slow, fast) = (hub.join().unwrap(), hub.join().unwrap());
    for client in [&slow, &fast] {
        sent(client);
        subscribe(client, 1, ids[0]);
    }
    hub.activate(&hub.pending(), |_| None);
    let large: Arc<[u8]> = vec![b'x'; 1 << 20].into();
    for _ in 0..10 {
        hub.publish(ids[0], 0, &large);
        assert_eq!(sent(&fast).len(), 1);
    }
    let received = sent(&slow);
    assert_eq!(received.len(), 1 + (BYTES >> 20), "a status, and the latest messages");
    assert_eq!(received[0]["message"], "6 messages were dropped: this client reads too slowly");
    for number in 0..MESSAGES + 3 {
        hub.publish(ids[0], 0, &payload(&number.to_string()));
    }
    assert_eq!(
        slow.next().map(|first| matches!(first, Outgoing::Frame(_))),
        Some(true),
        "the losses were reported just now"
    );
    drop(fast);
    drop(slow);
    assert_eq!(lost.load(Ordering::Relaxed), 2, "one report for each client that lost any");
}

#[test]
fn clients_are_bounded_and_leave() {
    let hub = hub();
    let mut clients: Vec<Joined> = (0..MOST_CLIENTS).map(|_| hub.join().unwrap()).collect();
    assert!(hub.join().is_none());
    clients.pop();
    let last = hub.join().unwrap();
    hub.end();
    assert_eq!(last.next(), Some(Outgoing::Close));
    assert!(!hub.wait(Duration::from_secs(60)));
    drop((clients, last));
    assert!(hub.join().is_none(), "nothing is accepted after the end");
}

#[test]
fn channels_that_stay_keep_their_subscribers() {
    let hub = hub();
    let before = hub.show(channels(&["a", "b"]));
    let client = hub.join().unwrap();
    subscribe(&client, 1, before[0]);
    subscribe(&client, 2, before[1]);
    hub.activate(&hub.pending(), |_| None);
    sent(&client);
    let after = hub.show(channels(&["c", "b"]));
    assert_eq!((after[1], after[0] > before[1]), (before[1], true));
    let answers = sent(&client);
    assert_eq!(answers[0]["channelIds"], serde_json::json!([before[0]]));
    assert_eq!(answers[1]["channels"][0]["topic"], "c");
    assert_eq!(hub.pending().iter().map(|of| of.channel).collect::<Vec<_>>(), [before[1]]);
    hub.activate(&hub.pending(), |_| None);
    hub.refresh();
    assert_eq!(hub.pending().len(), 1);
}
