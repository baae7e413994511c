//! Events of topics: what a network says of a topic beside its messages.
//!
//! The events of a declared topic are the messages of a further topic, which has the name of the declared one and no
//! declaration of its own. Such a message has one field: the name of the event, with `true`, for
//! [`TopicEvent::Alive`] whether a publisher is alive, or for [`TopicEvent::Owner`] the id of the owner. An event of one
//! instance also has the key of it, where the network names it: by these fields it belongs to an instance of a property
//! with parameters. So the operators of the language, and the engine, treat an event like any other message, and whether
//! a publisher is alive, or which one owns an instance, like any other field.

use rondel_event::{Path, TopicEvent, TopicId};

use crate::spec::{Expr, ExprId, Spec, TestMessage, Topic};

impl Spec {
    /// Returns the topics that are declared.
    pub fn declared(&self) -> &[Topic] {
        &self.topics[..self.topics.len().saturating_sub(self.events.len() + self.elements.len())]
    }

    /// Returns whether a topic carries the elements of messages of another one.
    pub fn is_of_elements(&self, topic: TopicId) -> bool {
        topic.index() >= self.topics.len().saturating_sub(self.elements.len())
    }

    /// Returns the declared topic whose events a topic carries; none for a declared topic.
    pub fn events_of(&self, topic: TopicId) -> Option<TopicId> {
        self.events.get(topic.index().checked_sub(self.declared().len())?).copied()
    }

    /// Returns the topic that carries the events of a declared topic, if a formula or a test names one of them.
    pub fn events_topic(&self, of: TopicId) -> Option<TopicId> {
        let at = self.events.iter().position(|topic| *topic == of)?;
        Some(TopicId((self.declared().len() + at) as u32))
    }

    /// Returns the same, and adds the topic if there is none.
    pub(crate) fn add_events(&mut self, of: TopicId) -> TopicId {
        self.events_topic(of).unwrap_or_else(|| {
            let topic = Topic { type_name: None, schema: None, ..self.topics[of.index()].clone() };
            self.topics.push(topic);
            self.events.push(of);
            TopicId(self.topics.len() as u32 - 1)
        })
    }

    /// Returns whether an expression reads the owner of a topic.
    pub fn reads_owner(&self) -> bool {
        self.nodes.iter().any(|node| matches!(self.event(node), Some((_, TopicEvent::Owner))))
    }

    /// Returns the events of topics that a node reads, directly or through its operands and machines, each once.
    pub fn events_read(&self, node: ExprId) -> Vec<(TopicId, TopicEvent)> {
        let mut events = Vec::new();
        for (_, node) in self.below_with_machines([node]) {
            let event = self.event(node).filter(|event| !events.contains(event));
            events.extend(event);
        }
        events
    }

    /// Returns the topics of events of which a node reads what concerns a topic as a whole and not one instance, directly or
    /// through its operands and machines.
    pub fn whole_events(&self, node: ExprId) -> Vec<TopicId> {
        let mut topics = Vec::new();
        for (_, node) in self.below_with_machines([node]) {
            let topic = match node {
                Expr::On(topic) => self.events_of(*topic).map(|_| *topic),
                _ => self.event(node).filter(|(_, event)| !event.has_key()).and_then(|_| node.topic()),
            };
            topics.extend(topic.filter(|topic| !topics.contains(topic)));
        }
        topics
    }

    /// Returns the event that a node is, with the declared topic.
    pub fn event(&self, node: &Expr) -> Option<(TopicId, TopicEvent)> {
        let (Expr::Carried { topic, path } | Expr::Field { topic, path, .. }) = node else { return None };
        Some((self.events_of(*topic)?, TopicEvent::named(&path.to_string())?))
    }

    /// Returns the text of a field of a topic of events: `alive(gear)`.
    pub fn event_text(&self, topic: TopicId, path: &Path) -> Option<String> {
        let of = self.events_of(topic)?;
        Some(format!("{path}({})", self.topics[of.index()].name))
    }
}

impl TestMessage {
    /// Returns the message as text: the topic and the content, or an event as it is written.
    pub fn text(&self, spec: &Spec) -> String {
        let topic = &spec.topics[self.topic.index()].name;
        if spec.events_of(self.topic).is_some()
            && let Some((publisher, key)) = TopicEvent::owner_in(&self.json)
        {
            let key = key.map(|key| format!(" {key}")).unwrap_or_default();
            return format!("{}({topic}) == {publisher}{key}", TopicEvent::Owner.name());
        }
        let states = |event: &TopicEvent, holds: bool| self.json == event.message(holds);
        let event = TopicEvent::ALL.into_iter().find(|event| states(event, true) || states(event, false));
        match event.filter(|_| spec.events_of(self.topic).is_some()) {
            Some(event) if states(&event, true) => format!("{}({topic})", event.name()),
            Some(event) => format!("not {}({topic})", event.name()),
            None => {
                match TopicEvent::ALL.into_iter().find_map(|event| Some((event, event.key_in(&self.json)?))) {
                    Some((event, key)) if spec.events_of(self.topic).is_some() => {
                        format!("{}({topic}) {key}", event.name())
                    }
                    _ => format!("{topic} {}", self.json),
                }
            }
        }
    }
}
