//! The state of a run, for those who ask and at intervals.

use std::io;
use std::sync::{Arc, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_event::Verdict;
use rondel_net::adapter::{Publisher, now};
use rondel_net::zenoh::{Answering, State};
use rondel_spec::Spec;
use serde_json::{Value, json};

use crate::deployment::Address;
use crate::losses::Undelivered;
use crate::networks::Networks;
use crate::pipeline::Pipeline;
use crate::present::Present;
use crate::sinks::Sink;
use crate::spool::Spools;
use crate::watchdog::Watchdog;

/// How long the thread that evaluates may take to show the state.
const LIMIT: Duration = Duration::from_millis(500);

/// What the state of a run is made of.
pub struct Health {
    /// The pipeline, which may be gone.
    pub pipeline: Weak<Pipeline>,
    /// The specification.
    pub spec: Arc<Spec>,
    /// Its name.
    pub name: String,
    /// What consumers did not accept.
    pub undelivered: Undelivered,
    /// What is kept for them.
    pub spools: Spools,
    /// When the run began.
    pub began: Instant,
}

impl Health {
    /// The state as JSON; without verdicts and counts of messages while the thread that evaluates does not move.
    fn json(&self) -> Value {
        let mut state = json!({
            "time": now().as_nanos() as f64 / 1e9,
            "uptime": (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            "specification": self.name,
            "process": std::process::id(),
            "undelivered": self.undelivered.count(),
            "waiting": self.spools.waiting(),
            "responsive": false,
        });
        let Some((summary, traffic)) =
            self.pipeline.upgrade().and_then(|pipeline| pipeline.summary_within(LIMIT))
        else {
            return state;
        };
        state["responsive"] = true.into();
        state["received"] = traffic.received.into();
        state["checked"] = summary.counts.checked.into();
        state["undecodable"] = summary.counts.undecodable.into();
        state["lost"] = summary.lost().into();
        state["published"] = traffic.published.into();
        let properties = self.spec.properties.iter().zip(&summary.properties);
        let properties = properties.map(|(property, statistics)| {
            json!({
                "property": property.name,
                "verdict": statistics.verdict().map(Verdict::as_str),
                "violations": statistics.violations,
            })
        });
        state["properties"] = properties.collect();
        state
    }
}

/// The state of a run and the present verdicts of a topic.
struct Asked {
    health: Arc<Health>,
    present: Arc<Present>,
}

impl State for Asked {
    fn whole(&self, out: &mut Vec<u8>) {
        let mut state = self.health.json().to_string();
        // The verdicts are members of the same object.
        state.pop();
        out.extend_from_slice(state.as_bytes());
        out.push(b',');
        self.present.write(out);
        out.push(b'}');
    }

    fn parts(&self, visit: &mut dyn FnMut(&[u8])) {
        self.present.visit(visit);
    }
}

/// Those who tell of a run while it lasts.
pub struct Attendants {
    watchdog: Watchdog,
    /// What publishes the state of the run, if it is published.
    heart: Option<Heart>,
    /// Who answers with present verdicts.
    answering: Vec<Answering>,
}

impl Attendants {
    /// Starts to watch a run, to answer for topics with present verdicts, and to publish its state at intervals, if it has
    /// publishers for that. `topics` are the sinks of verdicts by number, `notices` those of reports.
    ///
    /// # Errors
    /// The topic for which nothing can be answered, or the thread that cannot be started, and the reason.
    pub fn start(
        health: Arc<Health>,
        networks: &Networks,
        topics: Vec<(&Address, Option<Arc<Present>>)>,
        (every, publishers): (Option<Duration>, Vec<Arc<dyn Publisher>>),
        notices: Vec<Sink>,
    ) -> Result<Attendants, String> {
        let thread = |error: io::Error| format!("cannot start a thread: {error}");
        let names = topics.iter().map(|(address, _)| address.to_string()).collect();
        let watchdog = Watchdog::start(Weak::clone(&health.pipeline), names, notices).map_err(thread)?;
        let mut answering = Vec::new();
        for (address, present) in topics {
            if let Some(present) = present {
                let asked = Arc::new(Asked { health: Arc::clone(&health), present });
                answering.extend(networks.answer(address, asked)?);
            }
        }
        let every = every.filter(|_| !publishers.is_empty());
        let heart = every.map(|every| Heart::start(health, every, publishers)).transpose().map_err(thread)?;
        Ok(Attendants { watchdog, heart, answering })
    }

    /// Publishes the state a last time, and ends.
    pub fn end(self) {
        self.watchdog.end();
        if let Some(heart) = self.heart {
            heart.end();
        }
        drop(self.answering);
    }
}

/// Publishes the state of a run at intervals.
struct Heart {
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Heart {
    /// Starts to publish.
    ///
    /// # Errors
    /// When the thread cannot be started.
    fn start(health: Arc<Health>, every: Duration, publishers: Vec<Arc<dyn Publisher>>) -> io::Result<Heart> {
        let (end, ended) = mpsc::channel::<()>();
        let beat = move || {
            let mut next = Instant::now();
            for number in 0u64.. {
                let mut state = health.json();
                next += every;
                let is_end = ended.recv_timeout(Duration::ZERO) == Err(mpsc::RecvTimeoutError::Disconnected);
                state["heartbeat"] = number.into();
                state["every"] = every.as_secs_f64().into();
                state["ends"] = is_end.into();
                let text = state.to_string();
                for publisher in &publishers {
                    // A sink that does not accept it counts it.
                    _ = publisher.publish(text.as_bytes());
                    publisher.release();
                }
                if is_end {
                    break;
                }
                // One that was missed is not made up for.
                next = next.max(Instant::now());
                _ = ended.recv_timeout(next.saturating_duration_since(Instant::now()));
            }
            for publisher in &publishers {
                publisher.flush(LIMIT);
            }
        };
        let thread = thread::Builder::new().name("heartbeat".into()).spawn(beat)?;
        Ok(Heart { end, thread })
    }

    /// Publishes the state a last time, and ends the thread.
    fn end(self) {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
    }
}
