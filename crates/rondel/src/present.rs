//! The last verdict that was published on a topic, for each property and each instance of `for each`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;
use rondel_runtime::Report;
use rondel_runtime::text::write_value;

/// The largest number of instances that are kept.
const INSTANCES: usize = 10_000;
/// The largest number of bytes of their verdicts.
const BYTES: usize = 8 << 20;

/// How long an answer waits for verdicts that are in the queue of the sink.
const WAIT: Duration = Duration::from_secs(1);
/// Interval of looking at the queue.
const LOOK: Duration = Duration::from_millis(1);

/// The present verdicts of a topic.
pub struct Present {
    state: Mutex<State>,
    /// Publishes them.
    publisher: Weak<dyn Publisher>,
}

#[derive(Debug, Default)]
struct State {
    /// The verdict of each property without parameters, by its position; empty where there was none.
    properties: Vec<Vec<u8>>,
    /// The verdict of each instance, by the position of its property and its parameters.
    instances: HashMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
    /// The place of the parameters of a verdict, used again.
    key: Vec<u8>,
    /// Verdicts of instances for which there was no room.
    left_out: u64,
}

impl Present {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present verdicts that this publisher publishes; none yet.
    pub fn of(publisher: &Arc<dyn Publisher>) -> Present {
        Present { state: Mutex::default(), publisher: Arc::downgrade(publisher) }
    }

    /// Makes an answer of the verdicts, again until none of them waits in the queue of the sink, for a limited time: one
    /// that is answered before it is published would come twice, and before others that wait.
    fn published<T>(&self, answer: impl Fn(&State) -> T) -> T {
        let deadline = Instant::now() + WAIT;
        loop {
            let answered = answer(&self.state());
            let is_behind = self.publisher.upgrade().is_some_and(|publisher| publisher.is_behind());
            if !is_behind || Instant::now() >= deadline {
                return answered;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Notes a verdict and its JSON.
    pub fn note(&self, report: &Report<'_>, json: &[u8]) {
        let (position, parameters) = (report.property().position, report.parameters());
        let state = &mut *self.state();
        if parameters.is_empty() {
            let position = position as usize;
            if state.properties.len() <= position {
                state.properties.resize_with(position + 1, Vec::new);
            }
            state.properties[position].clear();
            state.properties[position].extend_from_slice(json);
            return;
        }
        state.key.clear();
        state.key.extend_from_slice(&position.to_be_bytes());
        for value in parameters {
            write_value(value, &mut state.key);
            state.key.push(b',');
        }
        state.note(json);
    }

    /// Appends members of a JSON object: the verdicts, and how many were left out.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (verdicts, left_out) = self.published(|state| (state.verdicts(), state.left_out));
        out.extend_from_slice(b"\"verdicts\":[");
        out.extend_from_slice(&verdicts.join(&b','));
        out.extend_from_slice(format!("],\"left_out\":{left_out}").as_bytes());
    }

    /// Calls a function with every verdict, by property and parameters.
    pub fn visit(&self, visit: &mut dyn FnMut(&[u8])) {
        self.published(State::verdicts).iter().for_each(|verdict| visit(verdict));
    }
}

impl State {
    /// All verdicts, by property and parameters.
    fn verdicts(&self) -> Vec<Vec<u8>> {
        let properties = self.properties.iter().filter(|verdict| !verdict.is_empty());
        let mut instances: Vec<_> = self.instances.iter().collect();
        instances.sort();
        properties.chain(instances.into_iter().map(|(_, verdict)| verdict)).cloned().collect()
    }

    /// Notes the verdict of the instance that `key` names.
    fn note(&mut self, json: &[u8]) {
        if let Some(known) = self.instances.get_mut(&self.key) {
            self.bytes = self.bytes - known.len() + json.len();
            known.clear();
            known.extend_from_slice(json);
        } else if self.instances.len() < INSTANCES && self.bytes + json.len() <= BYTES {
            self.bytes += json.len();
            self.instances.insert(self.key.clone(), json.to_vec());
        } else {
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rondel_net::adapter::PublishError;

    use super::*;

    /// A publisher that is gone.
    struct Nothing;

    impl Publisher for Nothing {
        fn publish(&self, _: &[u8]) -> Result<(), PublishError> {
            Ok(())
        }
    }

    #[test]
    fn instances_are_bounded_and_counted() {
        let present = Present::of(&(Arc::new(Nothing) as Arc<dyn Publisher>));
        for i in 0..INSTANCES as u32 + 7 {
            let state = &mut *present.state();
            state.key = i.to_be_bytes().to_vec();
            state.note(i.to_string().as_bytes());
        }
        present.state().key = 3u32.to_be_bytes().to_vec();
        present.state().note(b"\"new\"");
        let mut out = Vec::new();
        present.write(&mut out);
        let out = String::from_utf8_lossy(&out);
        assert!(out.starts_with("\"verdicts\":[0,1,2,\"new\",4,"), "{}", &out[..60]);
        assert!(out.ends_with(",9999],\"left_out\":7"), "{}", &out[out.len() - 60..]);
    }
}
