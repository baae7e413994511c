//! Events of topics in formulas and tests.

use rondel_event::{Path, Timestamp, TopicEvent, TopicId, Value, ValueType};

use super::Checker;
use super::examples::write_text;
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Expr, ExprId, SliceId, TestMessage};
use crate::syntax::ast::{Content, ContentKind, Message, Name};
use crate::type_names::article;

impl Checker<'_> {
    /// Returns the expression of an event: at its messages the field is carried; whether a publisher is alive, and which one
    /// owns an instance, holds from one message to the next.
    pub(super) fn lower_event(&mut self, event: TopicEvent, of: TopicId) -> Expr {
        let (topic, path) = (self.graph.spec_mut().add_events(of), event.path());
        match event {
            TopicEvent::Alive => Expr::Field { topic, path, value_type: ValueType::Bool },
            TopicEvent::Owner => Expr::Field { topic, path, value_type: ValueType::String },
            _ => Expr::Carried { topic, path },
        }
    }

    /// Notes events of instances in properties with parameters, and refuses events that happen to one value of a parameter
    /// where nothing says to which, so that every instance would see them.
    pub(super) fn check_events(&mut self, name: &Name, formula: ExprId, slice: Option<SliceId>) {
        let spec = self.graph.spec();
        let Some(id) = slice else { return };
        let Some(slice) = spec.slices.get(id.0 as usize) else { return };
        let keyed = |topic: &TopicId| slice.keys.iter().any(|key| key.fields.iter().any(|(t, _)| t == topic));
        let mut roots = vec![formula];
        roots.extend(slice.until);
        let events = roots.into_iter().flat_map(|root| spec.events_read(root));
        let of_one: Vec<_> = events.filter(|(topic, event)| event.has_key() && keyed(topic)).collect();
        // A part of the address is no part of the key.
        let in_address = |topic: &TopicId| {
            let pattern = spec.topics[topic.index()].pattern();
            let parameters: Vec<Path> = pattern
                .iter()
                .flat_map(|pattern| pattern.parameters())
                .map(|name| Path::keys([name]))
                .collect();
            let mut keys = slice.keys.iter().flat_map(|key| &key.fields);
            keys.any(|(of, path)| of == topic && parameters.contains(path))
        };
        let refused = of_one.iter().find(|(topic, _)| in_address(topic)).copied();
        let Some((topic, event)) = refused else {
            for (topic, _) in of_one {
                if !self.keyed_events.contains(&(id, topic)) {
                    self.keyed_events.push((id, topic));
                }
            }
            return;
        };
        let (topic, parameter) = (self.topic_name(topic).to_owned(), slice.keys[0].name.clone());
        let event = event.name();
        let message = format!("`{event}({topic})` does not say for which value of '{parameter}' it happened");
        let help = format!(
            "write a property without `for each` for the event, or use `age({topic})`, which each instance has"
        );
        self.diagnostics.push(Diagnostic::new(Code::KeyTopics, name.span, message).help(help));
    }

    /// Gives events the parameters of the properties that read them: where the key of the instance carries them. At the end,
    /// as declarations with equal parameters share them.
    pub(super) fn lower_keyed_events(&mut self) {
        for (slice, of) in std::mem::take(&mut self.keyed_events) {
            let spec = self.graph.spec_mut();
            let Some(topic) = spec.events_topic(of) else { continue };
            for key in spec.slices.get_mut(slice.0 as usize).into_iter().flat_map(|slice| &mut slice.keys) {
                let path = key.fields.iter().find(|(topic, _)| *topic == of);
                // A message has many elements, and so an event concerns all their instances.
                let path = path.filter(|(_, path)| path.of_each().is_none());
                let path = path.map(|(_, path)| TopicEvent::key_path(path));
                key.fields.extend(path.map(|path| (topic, path)));
            }
        }
    }

    /// Returns the message of a test about an event; none if no formula reads events of its topic.
    pub(super) fn lower_test_event(
        &mut self,
        message: &Message,
        event: TopicEvent,
        holds: bool,
        of: TopicId,
    ) -> Option<TestMessage> {
        let Some(topic) = self.graph.spec().events_topic(of) else {
            let text =
                format!("no property reads an event of '{}', so this line has no effect", message.topic.text);
            self.diagnostics.push(Diagnostic::new(Code::UnreadEvent, message.topic.span, text));
            return None;
        };
        let time = Timestamp::from_nanos(message.time);
        let has_key = !matches!(&message.content.kind, ContentKind::Object(members) if members.is_empty());
        let publisher = match &message.publisher {
            Some(content) => Some(self.lower_publisher(event, message, content)?),
            None => None,
        };
        let is_divided = event.has_key() && self.keyed_events.iter().any(|(_, topic)| *topic == of);
        if has_key {
            let key = self.lower_message(message, of, is_divided)?;
            let json = match publisher {
                Some(publisher) => TopicEvent::owner_message(&publisher, Some(&key)),
                None => event.message_of(&key),
            };
            return Some(TestMessage { time, topic, json });
        }
        if is_divided {
            self.check_keys(message, of);
        }
        let json = match publisher {
            Some(publisher) => TopicEvent::owner_message(&publisher, None),
            None => event.message(holds),
        };
        Some(TestMessage { time, topic, json })
    }

    /// Returns the publisher of an event in a test as JSON.
    fn lower_publisher(&mut self, event: TopicEvent, message: &Message, content: &Content) -> Option<String> {
        let found = match &content.kind {
            ContentKind::Object(_) => "an object",
            ContentKind::Array(_) => "an array",
            ContentKind::Null => "null",
            ContentKind::Value(_) | ContentKind::Name(_) | ContentKind::Constant(..) => {
                match self.content_value(content)? {
                    Value::String(text) => {
                        let mut json = String::new();
                        write_text(&text, &mut json);
                        return Some(json);
                    }
                    value => article(value.value_type()),
                }
            }
        };
        let path = format!("{}({})", event.name(), message.topic.text);
        self.wrong_content(content.span, &path, article(ValueType::String), found);
        None
    }
}
