//! The last verdict that was published on a topic, for each property and each instance of `for each`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;
use rondel_runtime::Report;
use rondel_runtime::text::write_value;

/// Maximum number of kept instances.
const INSTANCES: usize = 10_000;
/// Maximum size of their verdicts in bytes.
const BYTES: usize = 8 << 20;

/// Time limit of an answer for verdicts that are in the queue of the sink.
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
    /// Buffer for the parameters of a verdict.
    key: Vec<u8>,
    /// Verdicts of instances for which there was no room.
    left_out: u64,
}

impl Present {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an empty store of the present verdicts of this publisher.
    pub fn of(publisher: &Arc<dyn Publisher>) -> Present {
        Present { state: Mutex::default(), publisher: Arc::downgrade(publisher) }
    }

    /// Builds an answer of the verdicts, and again until none of them waits in the queue of the sink, up to [`WAIT`]: a
    /// verdict in an answer before its publication would arrive twice, and before others that wait.
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

    /// Records a verdict with its JSON.
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

    /// Forgets all verdicts.
    pub fn forget(&self) {
        *self.state() = State::default();
    }

    /// Keeps the verdicts of properties that stay. `kept` has for each property its position before, if it stays.
    pub fn rearrange(&self, kept: &[Option<u32>]) {
        let state = &mut *self.state();
        let mut before = std::mem::take(&mut state.properties);
        let verdict = |origin: &Option<u32>| {
            let known = origin.and_then(|at| before.get_mut(at as usize));
            known.map(std::mem::take).unwrap_or_default()
        };
        state.properties = kept.iter().map(verdict).collect();
        state.bytes = 0;
        for (key, verdict) in std::mem::take(&mut state.instances) {
            let Some((position, parameters)) = key.split_first_chunk::<4>() else { continue };
            let origin = Some(u32::from_be_bytes(*position));
            if let Some(at) = kept.iter().position(|kept| *kept == origin) {
                state.bytes += verdict.len();
                state.instances.insert([&(at as u32).to_be_bytes()[..], parameters].concat(), verdict);
            }
        }
    }

    /// Appends members of a JSON object: the verdicts, and the number of omitted ones.
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

    /// Records the verdict of the instance that `key` names.
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
        present.forget();
        let mut out = Vec::new();
        present.write(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "\"verdicts\":[],\"left_out\":0");
    }
}
