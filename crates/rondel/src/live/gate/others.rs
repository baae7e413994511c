//! Other monitors that have gates of this run, as their heartbeats show: both publish on the address of the gate, and an
//! open gate passes messages on that the other one holds back.
//!
//! Of a group, only the active member publishes, so that its members are one monitor. Two members of the own group that
//! are active have lost each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample, Subscription};
use rondel_net::networks::NetworkSettings;
use rondel_sinks::RunKey;
use serde_json::Value;

use super::GateGroup;
use crate::deployment::{Address, Deployment};
use crate::live::networks::Networks;
use crate::live::standby::election::Role;
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
    /// The outputs of the gates.
    gates: Vec<Output>,
    /// The group of this run, if it is a member of one.
    group: Option<GateGroup>,
    known: Mutex<Known>,
}

/// The address that a gate passes messages on to.
#[derive(Debug)]
pub(super) struct Output {
    to: String,
    /// The domain on DDS and ROS 2, which have the same names in each of them.
    domain: Option<u32>,
}

impl Output {
    /// An address on the networks with these settings.
    pub(super) fn of(to: &Address, networks: &NetworkSettings) -> Output {
        let domain = match to {
            Address::Dds(..) => networks.dds.as_ref().map(|dds| dds.domain),
            Address::Ros2(..) => {
                networks.ros2.as_ref().and_then(|ros2| ros2.as_ref().ok()).map(|ros2| ros2.domain)
            }
            _ => None,
        };
        Output { to: to.to_string(), domain }
    }

    /// Whether a gate in a heartbeat has this output.
    fn is_of(&self, gate: &Value) -> bool {
        gate.get("gate").and_then(Value::as_str) == Some(self.to.as_str())
            && gate.get("domain").and_then(Value::as_u64) == self.domain.map(u64::from)
    }
}

/// The domain of a gate, and the other monitors that have it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharing {
    pub domain: Option<u32>,
    /// Their number now.
    pub others: u64,
    /// The largest one so far.
    pub most_others: u64,
}

/// Other monitors that heartbeats have shown.
#[derive(Debug, Default)]
struct Known {
    /// The other monitors by the numbers of their runs, and those of a group by its name.
    monitors: BTreeMap<String, Other>,
    /// The largest number of them at one time, by the positions of gates.
    most: BTreeMap<usize, u64>,
}

impl Known {
    fn count(&self, gate: usize, now: Instant) -> u64 {
        let has = |other: &&Other| other.until >= now && other.shared.contains(&gate);
        self.monitors.values().filter(has).count() as u64
    }
}

/// Another monitor.
#[derive(Debug)]
struct Other {
    /// The positions of the gates that it has, too.
    shared: Vec<usize>,
    /// Time until which it is there, unless a further heartbeat comes.
    until: Instant,
}

/// The member of a group that a heartbeat is of.
struct Sender<'b> {
    group: &'b str,
    is_active: bool,
    epoch: u64,
}

impl Sender<'_> {
    /// Reads it from a heartbeat; `None` for a run without a group.
    fn of(beat: &Value) -> Option<Sender<'_>> {
        let standby = beat.get("standby")?;
        Some(Sender {
            group: standby.get("group")?.as_str()?,
            is_active: standby.get("state")?.as_str()? == Role::Active.as_str(),
            epoch: standby.get("epoch")?.as_u64()?,
        })
    }
}

impl Others {
    /// None yet, for gates with these outputs. `group` is that of this run.
    pub(super) fn new(run: RunKey, gates: Vec<Output>, group: Option<GateGroup>) -> Others {
        Others { run: run.to_string(), gates, group, known: Mutex::default() }
    }

    /// Number of this run, for its heartbeats.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The domain and the other monitors of the gate at this position.
    pub(super) fn of(&self, gate: usize, now: Instant) -> Sharing {
        let domain = self.gates.get(gate).and_then(|output| output.domain);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let most_others = known.most.get(&gate).copied().unwrap_or(0);
        Sharing { domain, others: known.count(gate, now), most_others }
    }

    /// Whether a member belongs to the group of this run.
    fn is_own(&self, sender: &Sender<'_>) -> bool {
        self.group.as_ref().is_some_and(|own| own.handle.state().group == sender.group)
    }

    /// Whether a member of a group may publish beside this run: it is active, and this run is not its standby and has not
    /// replaced it.
    fn may_publish(&self, sender: &Sender<'_>) -> bool {
        let Some(GateGroup { permit, handle, .. }) = &self.group else { return sender.is_active };
        let own = handle.state();
        // After a pause this run still counts as active until its next look.
        let is_active = own.role == Role::Active && permit.allows(permit.now());
        sender.is_active && (own.group != sender.group || is_active && sender.epoch >= own.epoch)
    }

    /// Receives a heartbeat. Returns a sentence if another monitor with gates of this run has appeared.
    fn beat(&self, payload: &[u8], now: Instant) -> Option<String> {
        let beat: Value = serde_json::from_slice(payload).ok()?;
        let text = |name: &str| beat.get(name).and_then(Value::as_str);
        let run = text("run").filter(|run| *run != self.run && run.len() == self.run.len())?;
        let every = beat.get("every")?.as_f64().and_then(|every| Duration::try_from_secs_f64(every).ok())?;
        let sender = Sender::of(&beat);
        if sender.as_ref().is_some_and(|sender| !self.may_publish(sender)) {
            return None;
        }
        // Members of a group follow each other.
        let run = sender.as_ref().map_or_else(|| run.to_owned(), |sender| format!("group {}", sender.group));
        let run = run.as_str();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if beat.get("ends").and_then(Value::as_bool) == Some(true) {
            known.monitors.remove(run);
            return None;
        }
        let until = now + every.min(LONGEST) * BEATS;
        let Some(gates) = beat.get("gates").and_then(Value::as_array) else {
            // A monitor that does not respond at present leaves them out.
            if let Some(other) = known.monitors.get_mut(run) {
                other.until = until;
            }
            return None;
        };
        let has = |own: &Output| gates.iter().any(|gate| own.is_of(gate));
        let shared: Vec<usize> =
            (0..).zip(&self.gates).filter(|&(_, own)| has(own)).map(|(at, _)| at).collect();
        known.monitors.retain(|_, other| other.until >= now);
        if shared.is_empty() || known.monitors.len() >= MOST && !known.monitors.contains_key(run) {
            known.monitors.remove(run);
            return None;
        }
        let names: Vec<&str> = shared.iter().map(|at| self.gates[*at].to.as_str()).collect();
        let names = names.join(", ");
        let before = known.monitors.insert(run.to_owned(), Other { shared: shared.clone(), until });
        for gate in &shared {
            let count = known.count(*gate, now);
            let most = known.most.entry(*gate).or_default();
            *most = count.max(*most);
        }
        before.is_none_or(|before| before.shared != shared).then(|| {
            let process = beat.get("process").and_then(Value::as_u64).unwrap_or(0);
            if let Some(sender) = sender.filter(|sender| self.is_own(sender)) {
                let (group, epoch) = (sender.group, sender.epoch);
                return format!(
                    "another member of the group '{group}' (process {process}) is active, too, in epoch {epoch}, and has the \
                     gate to {names}: the members do not receive each other's signs of life, and both pass messages on"
                );
            }
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
        subscription
            .map_err(|why| warn(&format!("cannot detect other monitors with the same gate: {why}")))
            .ok()
    });
    subscribed.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::live::standby::election::MemberId;
    use crate::live::standby::state::{GroupHandle, GroupState};
    use crate::sinks::withheld::Permit;

    fn beat(run: u128, gates: &str, more: &str) -> String {
        let run = RunKey(run);
        format!("{{\"run\":\"{run}\",\"every\":1.0,\"process\":7,\"specification\":\"p\"{gates}{more}}}")
    }

    #[test]
    fn another_monitor_with_the_gate_is_noticed_until_it_is_gone() {
        let output = |to: &str| Output { to: to.to_owned(), domain: None };
        let others = Others::new(RunKey(1), vec![output("zenoh:a"), output("zenoh:b")], None);
        let (begun, seconds) = (Instant::now(), Duration::from_secs);
        let receive = |text: &str, at: u64| others.beat(text.as_bytes(), begun + seconds(at));
        let counts = |at: u64| [0, 1].map(|gate| others.of(gate, begun + seconds(at)).others);
        let most = || [0, 1].map(|gate| others.of(gate, begun).most_others);
        let (own, other) = (r#","gates":[{"gate":"zenoh:b"}]"#, r#","gates":[{"gate":"zenoh:c"}]"#);
        assert_eq!(receive(&beat(1, own, ""), 0), None, "its own heartbeat");
        assert_eq!(receive(&beat(2, other, ""), 0), None, "another gate");
        for text in [
            "",
            "1",
            "{}",
            r#"{"run":"2","every":1}"#,
            r#"{"run":"00000000000000000000000000000002","every":-1}"#,
        ] {
            assert_eq!(receive(text, 0), None, "{text}");
        }
        assert_eq!((counts(0), most()), ([0, 0], [0, 0]));
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
        assert_eq!(most(), [0, 1], "there was one");
    }

    #[test]
    fn gates_in_other_domains_are_others() {
        let settings = NetworkSettings {
            dds: Some(rondel_net::dds::Settings { domain: 85, ..Default::default() }),
            ..NetworkSettings::default()
        };
        let outputs = ["dds:cmd", "mqtt:cmd"].map(|to| Output::of(&Address::parse(to).unwrap(), &settings));
        let others = Others::new(RunKey(1), outputs.into(), None);
        let gate = |to: &str, domain: &str| format!(",\"gates\":[{{\"gate\":\"{to}\",\"domain\":{domain}}}]");
        let now = Instant::now();
        for (run, to, domain, expected) in [
            (2, "dds:cmd", "86", [0, 0]),
            (3, "dds:cmd", "null", [0, 0]),
            (4, "dds:cmd", "85", [1, 0]),
            (5, "mqtt:cmd", "null", [1, 1]),
        ] {
            others.beat(beat(run, &gate(to, domain), "").as_bytes(), now);
            let counts = [0, 1].map(|gate| others.of(gate, now).others);
            assert_eq!(counts, expected, "{to} in {domain}");
        }
    }

    /// A heartbeat of a member of a group with the gate to `zenoh:a`.
    fn member(run: u128, group: &str, state: &str, epoch: u64) -> String {
        let standby = format!(r#","standby":{{"group":"{group}","state":"{state}","epoch":{epoch}}}"#);
        beat(run, r#","gates":[{"gate":"zenoh:a"}]"#, &standby)
    }

    fn output() -> Vec<Output> {
        vec![Output { to: "zenoh:a".to_owned(), domain: None }]
    }

    #[test]
    fn group_is_one_other_monitor() {
        let others = Others::new(RunKey(1), output(), None);
        let now = Instant::now();
        assert_eq!(others.beat(member(2, "g", "standby", 1).as_bytes(), now), None, "it publishes nothing");
        assert_eq!(others.of(0, now).others, 0);
        assert!(others.beat(member(3, "g", "active", 1).as_bytes(), now).is_some());
        assert_eq!(others.beat(member(2, "g", "active", 2).as_bytes(), now), None, "it has taken over");
        let sharing = others.of(0, now);
        assert_eq!((sharing.others, sharing.most_others), (1, 1));
        assert!(others.beat(member(4, "h", "active", 1).as_bytes(), now).is_some(), "another group");
        assert_eq!(others.of(0, now).others, 2);
    }

    #[test]
    fn members_of_the_own_group_are_others_only_if_both_are_active() {
        let handle = GroupHandle::new(GroupState::new("g".to_owned(), MemberId(1), 0));
        let permit = Arc::new(Permit::simulated(0));
        let group = GateGroup { permit: Arc::clone(&permit), lease: 90, handle: handle.clone() };
        let others = Others::new(RunKey(1), output(), Some(group));
        let now = Instant::now();
        let receive = |state: &str, epoch: u64| others.beat(member(2, "g", state, epoch).as_bytes(), now);
        assert_eq!(receive("active", 3), None, "this run stands by");
        handle.change(|state| (state.role, state.epoch) = (Role::Active, 4));
        assert_eq!(receive("active", 5), None, "its permission has ended, as after a pause");
        permit.extend(1);
        assert_eq!(receive("standby", 4), None);
        assert_eq!(receive("active", 3), None, "it was replaced");
        assert_eq!(others.of(0, now).others, 0);
        let sentence = receive("active", 4).unwrap();
        assert!(
            sentence.contains("another member of the group 'g' (process 7) is active, too, in epoch 4"),
            "{sentence}"
        );
        assert_eq!(others.of(0, now).others, 1);
    }
}
