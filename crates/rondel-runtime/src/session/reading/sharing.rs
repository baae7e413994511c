//! Topics that many publishers share: properties that compare a message with earlier ones mix them up.
//!
//! The first messages on a topic are inspected, if a property without `for each` remembers earlier messages on it
//! ([`Spec::mixing`](rondel_spec::Spec::mixing)): does a field look like the name of the message's subject? Then its
//! values take turns: at least [`FEWEST`] different ones return [`TIMES`] times after others, and at most messages the
//! value differs from the previous one. A mode that changes now and then, a counter, and the number of an order do not
//! behave so. Integers must also come in rounds, since a noisy measurement takes turns as well: while a value comes
//! twice, all others that are at least as frequent come too, except one time in fifty. Publishers with periods of their
//! own do so; of random values, more are late.
//!
//! After [`MESSAGES`] messages the inspection ends and its memory is freed.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use rondel_decode::MessageWriter;
use rondel_decode::lines::{PublishedLine, find_topic, published};
use rondel_event::{Path, TimeUnit, TopicId};
use rondel_spec::Spec;
use serde_json::Value;

use crate::report::notice::Notice;
use crate::specification::formula::is_word;
use crate::survey;

/// Maximum number of inspected messages of a topic.
const MESSAGES: u32 = 1_000;
/// Maximum number of lines of a recording inspected for them.
const LINES: u32 = 4_000;
/// Maximum size of an inspected message, in bytes.
const LARGEST: usize = 1 << 14;
/// Maximum number and depth of inspected fields of a topic.
const FIELDS: usize = 64;
const DEPTH: usize = 3;
/// Maximum number of different values of a name; a field with more is no name.
const VALUES: usize = 256;
/// Minimum number of values that must return.
const FEWEST: usize = 3;
/// Minimum number of returns of each of them; all together need [`RETURNS`].
const TIMES: u32 = 3;
const RETURNS: u32 = 20;
/// Numbers of messages after which fields are judged; they are also judged at the end.
const LOOKS: [u32; 3] = [64, 256, MESSAGES];

/// Inspection of topics that may be shared, during their first messages.
pub(crate) struct Sharing {
    topics: Vec<Watched>,
    /// The names that lines have for the topics of the specification.
    names: Vec<Vec<String>>,
    /// Number of lines still to be inspected.
    lines: u32,
    hasher: RandomState,
}

/// Topic on which properties remember earlier messages.
struct Watched {
    topic: TopicId,
    /// The name in the specification.
    name: String,
    /// Properties, each with the fields that it compares: these may differ without naming a subject.
    properties: Vec<(String, Vec<Path>)>,
    /// The fields that are parameters of other properties.
    parameters: Vec<Path>,
    /// The names that a parameter cannot have.
    taken: Vec<String>,
    /// Writer for messages that do not describe themselves.
    writer: Option<MessageWriter>,
    fields: Vec<Tracked>,
    seen: u32,
}

/// Field with its values and when they came.
struct Tracked {
    path: Vec<String>,
    is_text: bool,
    /// By the hash of the value.
    values: HashMap<u64, Seen>,
    last: Option<u64>,
    messages: u32,
    /// Number of times that a value returned after others.
    returns: u32,
    /// Numbers of at least as frequent values that did not come while a value came twice, and of all such values.
    late: (u64, u64),
    /// Whether it cannot be a name.
    is_out: bool,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    count: u32,
    returns: u32,
    /// The numbers of the last two messages that had it.
    last: [u32; 2],
}

impl Sharing {
    /// Creates the inspection of a specification; `None` if there is nothing to inspect. `names` are the names that
    /// lines have for all topics, `writer` is the writer for messages of a topic that do not describe themselves.
    pub(crate) fn new(
        spec: &Spec,
        names: Vec<Vec<String>>,
        mut writer: impl FnMut(TopicId) -> Option<MessageWriter>,
    ) -> Option<Box<Sharing>> {
        let mut topics: Vec<Watched> = Vec::new();
        for property in spec.properties.iter().filter(|property| property.criterion.is_none()) {
            for mixing in spec.mixing(property) {
                let declared = &spec.topics[mixing.topic.index()];
                // Patterns are reported before the first message.
                let own = names.get(mixing.topic.index()).into_iter().flatten();
                if own.map(String::as_str).any(rondel_decode::lines::is_pattern) {
                    continue;
                }
                let user = (property.name.clone(), mixing.own);
                match topics.iter_mut().find(|watched| watched.topic == mixing.topic) {
                    Some(watched) => watched.properties.push(user),
                    None => topics.push(Watched {
                        topic: mixing.topic,
                        name: declared.name.clone(),
                        properties: vec![user],
                        parameters: parameters(spec, mixing.topic),
                        taken: spec.topics.iter().map(|topic| topic.name.clone()).collect(),
                        writer: writer(mixing.topic),
                        fields: Vec::new(),
                        seen: 0,
                    }),
                }
            }
        }
        let hasher = RandomState::new();
        (!topics.is_empty()).then(|| Box::new(Sharing { topics, names, lines: LINES, hasher }))
    }

    /// Whether any message is still to be inspected.
    pub(crate) fn is_over(&self) -> bool {
        self.topics.is_empty()
    }

    /// Whether messages of a topic are still to be inspected.
    #[inline]
    pub(crate) fn inspects(&self, topic: TopicId) -> bool {
        self.topics.iter().any(|watched| watched.topic == topic)
    }

    /// Sets the writer for the messages of a topic.
    pub(crate) fn set_writer(&mut self, topic: TopicId, writer: Option<MessageWriter>) {
        if let Some(watched) = self.topics.iter_mut().find(|watched| watched.topic == topic) {
            watched.writer = writer;
        }
    }

    /// Takes a message.
    pub(crate) fn message(&mut self, topic: TopicId, payload: &[u8], notice: impl FnMut(Notice)) {
        let Some(place) = self.topics.iter().position(|watched| watched.topic == topic) else { return };
        let watched = &mut self.topics[place];
        watched.seen += 1;
        if payload.len() <= LARGEST
            && let Some(value) = survey::value_of(payload, watched.writer.as_ref())
        {
            watched.add(&value, &self.hasher);
        }
        if LOOKS.contains(&watched.seen) {
            watched.look().into_iter().for_each(notice);
            if watched.properties.is_empty() || watched.seen >= MESSAGES {
                self.topics.remove(place);
            }
        }
    }

    /// Takes whole lines of a recording.
    pub(crate) fn lines(&mut self, text: &[u8], mut notice: impl FnMut(Notice)) {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if self.is_over() {
                return;
            }
            let Some(left) = self.lines.checked_sub(1) else { return self.end(notice) };
            self.lines = left;
            // The unit matters to times alone.
            let Ok(PublishedLine::Message(message)) = published(line, TimeUnit::Seconds, false) else {
                continue;
            };
            let (Some(topic), Some(payload)) = (message.topic, message.payload) else { continue };
            if let Some(topic) = find_topic(self.names.iter().map(Vec::as_slice), &topic) {
                self.message(TopicId(topic as u32), &payload, &mut notice);
            }
        }
    }

    /// Ends the inspection: no further message counts.
    pub(crate) fn end(&mut self, mut notice: impl FnMut(Notice)) {
        for mut watched in self.topics.drain(..) {
            watched.look().into_iter().for_each(&mut notice);
        }
    }
}

/// The fields of a topic that are parameters of a property.
fn parameters(spec: &Spec, topic: TopicId) -> Vec<Path> {
    let fields = spec.slices.iter().flat_map(|slice| &slice.keys).flat_map(|key| &key.fields);
    fields.filter(|(of, _)| *of == topic).map(|(_, path)| path.clone()).collect()
}

impl Watched {
    fn add(&mut self, message: &Value, hasher: &RandomState) {
        let number = self.seen;
        self.visit(message, &mut Vec::new(), &mut |fields, path, value| {
            let (is_text, hash) = match value {
                Value::String(text) => (true, hasher.hash_one(text)),
                Value::Number(number) if number.is_i64() || number.is_u64() => {
                    (false, hasher.hash_one(number.to_string()))
                }
                _ => return,
            };
            let known = fields.iter().position(|field| field.path.iter().eq(path.iter()));
            let field = match known {
                Some(known) => &mut fields[known],
                None if fields.len() < FIELDS => {
                    let path = path.iter().map(|name| (*name).to_owned()).collect();
                    fields.push(Tracked::new(path, is_text));
                    let last = fields.len() - 1;
                    &mut fields[last]
                }
                None => return,
            };
            field.is_out |= field.is_text != is_text;
            if !field.is_out {
                field.add(hash, number);
            }
        });
    }

    /// Visits the fields of a message that may be names.
    fn visit<'v>(
        &mut self,
        value: &'v Value,
        path: &mut Vec<&'v str>,
        visit: &mut impl FnMut(&mut Vec<Tracked>, &[&'v str], &'v Value),
    ) {
        let Value::Object(members) = value else {
            if !path.is_empty() {
                visit(&mut self.fields, path, value);
            }
            return;
        };
        // A time is no name.
        let is_time = members.len() == 2 && members.contains_key("sec") && members.contains_key("nanosec");
        if is_time || path.len() >= DEPTH {
            return;
        }
        for (name, member) in members.iter().filter(|(name, _)| is_word(name)) {
            path.push(name);
            self.visit(member, path, visit);
            path.pop();
        }
    }

    /// A notice for each field that looks like a name, with the properties that mix its values; they are done then.
    fn look(&mut self) -> Vec<Notice> {
        let mut names: Vec<(Path, usize)> = Vec::new();
        for field in self.fields.iter().filter(|field| field.is_turning(&self.parameters)) {
            names.push((field.full_path(), field.values.len()));
        }
        // Parameters of other properties come first, then fields higher in the message.
        names.sort_by_key(|(path, _)| (!self.parameters.contains(path), path.0.len()));
        let mut found: Vec<(usize, Vec<String>)> = Vec::new();
        self.properties.retain(|(property, own)| {
            let Some(name) = names.iter().position(|(path, _)| !own.contains(path)) else { return true };
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, properties)) => properties.push(property.clone()),
                None => found.push((name, vec![property.clone()])),
            }
            false
        });
        let notice = |(name, properties): (usize, Vec<String>)| {
            let (path, values) = &names[name];
            let field = path.to_string();
            let last = field.rsplit('.').next().unwrap_or(&field);
            let parameter = if self.taken.iter().any(|taken| taken == last) { "key" } else { last };
            let each = format!("for each {parameter} in {}.{field}", self.name);
            Notice::shared(self.topic, &field, *values, &properties, &each)
        };
        found.into_iter().map(notice).collect()
    }
}

impl Tracked {
    fn new(path: Vec<String>, is_text: bool) -> Tracked {
        let (values, last, messages, returns) = (HashMap::new(), None, 0, 0);
        Tracked { path, is_text, values, last, messages, returns, late: (0, 0), is_out: false }
    }

    fn full_path(&self) -> Path {
        Path::keys(self.path.iter().map(String::as_str))
    }

    /// Adds the value of the message with this number.
    fn add(&mut self, value: u64, number: u32) {
        self.messages += 1;
        let has_changed = self.last.replace(value) != Some(value);
        let before = self.values.get(&value).copied();
        self.returns += u32::from(has_changed && before.is_some());
        if let Some(before) = before.filter(|before| before.count > 1) {
            let others = self.values.iter().filter(|(of, _)| **of != value);
            for (_, other) in others.filter(|(_, other)| other.count >= before.count) {
                self.late.0 += u64::from(other.last[0] < before.last[1]);
                self.late.1 += 1;
            }
        }
        if before.is_none() && self.values.len() >= VALUES {
            self.is_out = true;
            self.values = HashMap::new();
            return;
        }
        let seen = self.values.entry(value).or_default();
        seen.count += 1;
        seen.returns += u32::from(has_changed && before.is_some());
        seen.last = [number, seen.last[0]];
    }

    /// Whether its values take turns. A parameter of another property counts as a name without that.
    fn is_turning(&self, parameters: &[Path]) -> bool {
        let many = self.values.values().filter(|seen| seen.returns >= TIMES).count();
        // Fewer returns may be chance.
        let comes_in_rounds = || self.late.1 >= 200 && self.late.0 * 50 <= self.late.1;
        !self.is_out
            && many >= FEWEST
            && self.returns >= RETURNS
            && self.returns * 2 >= self.messages
            && (self.is_text || comes_in_rounds() || parameters.contains(&self.full_path()))
    }
}
