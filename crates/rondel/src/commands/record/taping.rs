//! The course of a recording: seals and losses at intervals, and its end.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::now;

use super::summary::Ended;
use super::tape::Tape;
use crate::deployment::{Binding, Deployment};
use crate::live::discover;
use crate::live::listener::{DRAIN, Listener};
use crate::live::losses::{Seen, Undelivered, missed};
use crate::live::networks::Networks;
use crate::live::pipeline::Stop;
use crate::live::reader::{Reader, Subscribed, subscribe};
use crate::recorder::Channel;
use crate::{say, warn};

/// Maximum time that a message waits for its segment to fill.
const SEAL: Duration = Duration::from_millis(100);
/// Number of these intervals between reports of losses: one second.
const LOSSES: u32 = 10;
/// Delay beyond `SEAL` from which the recorder counts as suspended, as in `run`.
const PAUSE: Duration = Duration::from_millis(500);
/// Time after a pause during which delayed messages may still arrive.
const AFTER: Duration = Duration::from_secs(1);
/// Time limit for messages in transit at the end, and for receivers to return from the last one.
const CLOSE: Duration = Duration::from_secs(5);
/// Time limit for leaving the networks.
const LEAVE: Duration = Duration::from_secs(3);

impl Reader for Arc<Tape> {
    fn subscribe(&self, networks: &Networks, topic: TopicId, binding: &Binding) -> Subscribed {
        subscribe(networks, topic, binding, Arc::clone(self))
    }

    fn resolve(&self, topic: TopicId, binding: &Binding) -> Result<(), String> {
        Tape::resolve(self, topic, Channel::of(binding));
        Ok(())
    }
}

/// Records the messages of a deployment until the end is requested; `names` are those of its topics.
///
/// # Errors
/// The topic that cannot be subscribed to, or the thread that cannot be started, and the reason.
pub(super) fn run(
    deployment: &Deployment,
    networks: Networks,
    tape: &Arc<Tape>,
    names: &[String],
    stopped: &mpsc::Receiver<Stop>,
) -> Result<Ended, String> {
    let listener = Listener::start(deployment, Arc::new(networks), Arc::clone(tape))?;
    say(&format!("ready{}", discover::read_now(deployment)));
    let sources = || deployment.sources.iter().map(|binding| &binding.address);
    let mut watch = Watch {
        tape,
        topics: (0..sources().count() as u32).map(TopicId).collect(),
        seen: Seen::new(Undelivered::default(), names.to_vec()),
        looks: 0,
        last: (Instant::now(), now()),
    };
    let why = listener.wait(stopped, SEAL, |networks| watch.look(networks));
    let closed = listener.close(why, DRAIN, CLOSE);
    let outages = closed.networks.outages();
    for outage in &outages {
        let topics = missed(outage, sources());
        if !topics.is_empty() {
            tape.cut_off(&topics, outage.from, outage.until);
        }
    }
    let mut ended = tape.end(&closed, outages);
    closed.leave(LEAVE).add_recovered(&mut ended.accounts, |topic| Some(topic.index()));
    Ok(ended)
}

/// Looks at a recording while it runs.
struct Watch<'t> {
    tape: &'t Tape,
    /// All topics.
    topics: Vec<TopicId>,
    seen: Seen,
    looks: u32,
    /// Time of the last look.
    last: (Instant, Timestamp),
}

impl Watch<'_> {
    /// Seals the segment, notes a pause of the recorder, and warns of losses once a second.
    fn look(&mut self, networks: &Networks) {
        let pause = self.last.0.elapsed();
        if pause >= SEAL + PAUSE {
            // Messages that arrived during the pause get times after it, or were dropped in transit.
            let until = now().as_nanos().saturating_add(AFTER.as_nanos() as i64);
            self.tape.cut_off(&self.topics, self.last.1, Some(Timestamp::from_nanos(until)));
            warn(&format!(
                "the recorder did not run for {:.1} s; the recording notes it",
                pause.as_secs_f64()
            ));
        }
        self.last = (Instant::now(), now());
        self.tape.seal();
        self.looks = (self.looks + 1) % LOSSES;
        if self.looks == 0 {
            self.seen.warn(self.tape.losses(), networks);
        }
    }
}
