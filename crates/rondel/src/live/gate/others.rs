//! Other monitors that have gates of this run, as their heartbeats show: both publish on the address of the gate, and an
//! open gate passes messages on that the other one holds back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample, Subscription};
use serde_json::Value;

use crate::deployment::{Address, Deployment};
use crate::live::networks::Networks;
use crate::live::standby::election::MemberId;
use crate::warn;

/// Number of intervals of its heartbeat after which another monitor counts as gone.
const BEATS: u32 = 3;
/// Longest interval of a heartbeat.
const LONGEST: Duration = Duration::from_secs(3600);
/// Maximum number of other monitors that are remembered.
const MOST: usize = 64;

/// Other monitors that have gates of this run.
#[derive(Debug)]
pub struct Others {
    /// Number of this run, as its heartbeats have it.
    run: String,
    /// The addresses of the gates.
    gates: Vec<String>,
    /// The other monitors by the numbers of their runs.
    known: Mutex<BTreeMap<String, Other>>,
}

/// Another monitor.
#[derive(Debug)]
struct Other {
    /// The positions of the gates that it has, too.
    shared: Vec<usize>,
    /// Time until which it is there, unless a further heartbeat comes.
    until: Instant,
}

impl Others {
    /// None yet, for gates with these addresses.
    pub(super) fn new(run: MemberId, gates: Vec<String>) -> Others {
        Others { run: run.to_string(), gates, known: Mutex::default() }
    }

    /// Number of this run, for its heartbeats.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the number of other monitors that have the gate at this position.
    pub(super) fn count(&self, gate: usize, now: Instant) -> u64 {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().filter(|other| other.until >= now && other.shared.contains(&gate)).count() as u64
    }

    /// Receives a heartbeat. Returns a sentence if another monitor with gates of this run has appeared.
    fn beat(&self, payload: &[u8], now: Instant) -> Option<String> {
        let beat: Value = serde_json::from_slice(payload).ok()?;
        let text = |name: &str| beat.get(name).and_then(Value::as_str);
        let run = text("run").filter(|run| *run != self.run && run.len() == self.run.len())?;
        let every = beat.get("every")?.as_f64().and_then(|every| Duration::try_from_secs_f64(every).ok())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if beat.get("ends").and_then(Value::as_bool) == Some(true) {
            known.remove(run);
            return None;
        }
        let until = now + every.min(LONGEST) * BEATS;
        let Some(gates) = beat.get("gates").and_then(Value::as_array) else {
            // A monitor that does not respond at present leaves them out.
            if let Some(other) = known.get_mut(run) {
                other.until = until;
            }
            return None;
        };
        let has =
            |own: &String| gates.iter().any(|gate| gate.get("gate").and_then(Value::as_str) == Some(own));
        let shared: Vec<usize> =
            (0..).zip(&self.gates).filter(|&(_, own)| has(own)).map(|(at, _)| at).collect();
        known.retain(|_, other| other.until >= now);
        if shared.is_empty() || known.len() >= MOST && !known.contains_key(run) {
            known.remove(run);
            return None;
        }
        let names: Vec<&str> = shared.iter().map(|at| self.gates[*at].as_str()).collect();
        let names = names.join(", ");
        let before = known.insert(run.to_owned(), Other { shared: shared.clone(), until });
        before.is_none_or(|before| before.shared != shared).then(|| {
            let process = beat.get("process").and_then(Value::as_u64).unwrap_or(0);
            let specification = text("specification").unwrap_or_default();
            format!(
                "another monitor (process {process}, {specification}) has the gate to {names}, too: an open gate passes \
                 messages on that the other one holds back; end one of them"
            )
        })
    }
}

impl Receiver for Others {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        for sample in samples {
            if let Some(sentence) = self.beat(sample.payload, Instant::now()) {
                warn(&sentence);
            }
        }
    }
}

/// Subscribes to the heartbeats of other monitors. A subscription that is refused is reported, and ends no run.
pub fn watch(
    deployment: &Deployment,
    networks: &Networks,
    others: &Arc<Others>,
) -> Vec<Box<dyn Subscription>> {
    // A broker would keep heartbeats in a lasting session, and Kafka needs a topic before the first one.
    let lasts = deployment.networks.mqtt.as_ref().is_some_and(|mqtt| !mqtt.settings.clean_start);
    let is_watched = |address: &&Address| match address {
        Address::Mqtt(..) => !lasts,
        Address::Kafka(..) => false,
        _ => true,
    };
    let addresses = deployment.heartbeat.iter().flat_map(|heartbeat| &heartbeat.to).filter(is_watched);
    let subscribed = addresses.filter_map(|address| {
        let subscription = networks.subscribe(address, TopicId(u32::MAX), Arc::clone(others));
        subscription.map_err(|why| warn(&format!("other monitors with one gate are not noticed: {why}"))).ok()
    });
    subscribed.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn beat(run: u64, gates: &str, more: &str) -> String {
        let run = MemberId(run);
        format!("{{\"run\":\"{run}\",\"every\":1.0,\"process\":7,\"specification\":\"p\"{gates}{more}}}")
    }

    #[test]
    fn another_monitor_with_the_gate_is_noticed_until_it_is_gone() {
        let others = Others::new(MemberId(1), vec!["zenoh:a".to_owned(), "zenoh:b".to_owned()]);
        let (begun, seconds) = (Instant::now(), Duration::from_secs);
        let receive = |text: &str, at: u64| others.beat(text.as_bytes(), begun + seconds(at));
        let counts = |at: u64| [0, 1].map(|gate| others.count(gate, begun + seconds(at)));
        let (own, other) = (r#","gates":[{"gate":"zenoh:b"}]"#, r#","gates":[{"gate":"zenoh:c"}]"#);
        assert_eq!(receive(&beat(1, own, ""), 0), None, "its own heartbeat");
        assert_eq!(receive(&beat(2, other, ""), 0), None, "another gate");
        for text in ["", "1", "{}", r#"{"run":"2","every":1}"#, r#"{"run":"0000000000000002","every":-1}"#] {
            assert_eq!(receive(text, 0), None, "{text}");
        }
        assert_eq!(counts(0), [0, 0]);
        let sentence = receive(&beat(2, own, ""), 0).unwrap();
        assert!(
            sentence.contains("the gate to zenoh:b, too") && sentence.contains("process 7"),
            "{sentence}"
        );
        assert_eq!((receive(&beat(2, own, ""), 1), counts(1)), (None, [0, 1]), "it is known");
        assert_eq!((receive(&beat(2, "", ""), 3), counts(6)), (None, [0, 1]), "it does not respond");
        assert_eq!(counts(7), [0, 0], "no heartbeat came for three intervals");
        assert!(receive(&beat(2, own, ""), 8).is_some(), "it is back");
        assert_eq!((receive(&beat(2, own, ",\"ends\":true"), 9), counts(9)), (None, [0, 0]));
    }
}
