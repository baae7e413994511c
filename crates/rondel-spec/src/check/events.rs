//! Events of topics in formulas and tests.

use rondel_event::{Timestamp, TopicEvent, TopicId, ValueType};

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Expr, ExprId, SliceId, TestMessage};
use crate::syntax::ast::{Message, Name};

impl Checker<'_> {
    /// Returns the expression of an event: at its messages the field is carried; whether a publisher is alive holds from
    /// one message to the next.
    pub(super) fn lower_event(&mut self, event: TopicEvent, of: TopicId) -> Expr {
        let (topic, path) = (self.graph.spec_mut().add_events(of), event.path());
        match event {
            TopicEvent::Alive => Expr::Field { topic, path, value_type: ValueType::Bool },
            _ => Expr::Carried { topic, path },
        }
    }

    /// Refuses events that happen to one value of a parameter, where nothing says to which: an event does not carry the
    /// parameter, so that every instance would see it.
    pub(super) fn check_events(&mut self, name: &Name, formula: ExprId, slice: Option<SliceId>) {
        let spec = self.graph.spec();
        let Some(slice) = slice.and_then(|slice| spec.slices.get(slice.0 as usize)) else { return };
        let keyed = |topic: &TopicId| slice.keys.iter().any(|key| key.fields.iter().any(|(t, _)| t == topic));
        let mut roots = vec![formula];
        roots.extend(slice.until);
        let events = roots.into_iter().flat_map(|root| spec.events_read(root));
        let of_one = |(topic, event): &(TopicId, TopicEvent)| *event != TopicEvent::Alive && keyed(topic);
        let Some((topic, event)) = events.into_iter().find(of_one) else { return };
        let (topic, parameter) = (self.topic_name(topic).to_owned(), slice.keys[0].name.clone());
        let event = event.name();
        let message = format!("`{event}({topic})` does not say for which value of '{parameter}' it happened");
        let help = format!(
            "write a property without `for each` for the event, or use `age({topic})`, which each instance has"
        );
        self.diagnostics.push(Diagnostic::new(Code::KeyTopics, name.span, message).help(help));
    }

    /// Returns the message of a test about an event; none if no formula reads events of its topic.
    pub(super) fn lower_test_event(
        &mut self,
        message: &Message,
        (event, holds): (TopicEvent, bool),
        of: TopicId,
    ) -> Option<TestMessage> {
        let Some(topic) = self.graph.spec().events_topic(of) else {
            let text =
                format!("no property reads an event of '{}', so this line has no effect", message.topic.text);
            self.diagnostics.push(Diagnostic::new(Code::UnreadEvent, message.topic.span, text));
            return None;
        };
        let time = Timestamp::from_nanos(message.time);
        Some(TestMessage { time, topic, json: event.message(holds) })
    }
}
