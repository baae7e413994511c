//! The message that a closed gate publishes instead of those that it does not pass on.

use rondel_decode::schema::{Extensibility, Schema};
use rondel_decode::{Encoding, MessageType};
use rondel_event::Timestamp;
use rondel_runtime::{Options, Stamp};
use rondel_spec::{Schema as Declared, SchemaType};
use serde_json::Value;

use super::target::received;
use crate::deployment::yaml::{Item, Mistakes, suggest};
use crate::deployment::{Binding, Deployment};
use crate::schemas::written::{Stamped, unwritable, write_partial};

/// The output of a closed gate for each message that it does not pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// This message.
    Message(Message),
    /// The last message that was passed on.
    Hold,
    /// Nothing.
    Drop,
}

/// An encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(Stamped);

impl Message {
    /// A message of any encoding, as it is.
    #[cfg(test)]
    pub fn of(payload: Vec<u8>) -> Message {
        Message(Stamped::from(payload))
    }

    /// The message as it is sent at this time.
    pub fn at(&mut self, time: Timestamp) -> &[u8] {
        self.0.at(time)
    }
}

/// Reads a substitute for the messages of a source, whose topic is declared with these fields.
pub(super) fn substitute(
    item: Item<'_>,
    source: &Binding,
    declared: Option<&Declared>,
    mistakes: &mut Mistakes,
) -> Option<Substitute> {
    let message = item.json("substitute", mistakes)?;
    match message.as_str() {
        Some("hold") => return Some(Substitute::Hold),
        Some("drop") => return Some(Substitute::Drop),
        _ => {}
    }
    let payload = match (received(&source.address), source.input.message_type.as_deref()) {
        (Encoding::Cdr, Some(MessageType::Cdr(schema))) => in_cdr(item, schema, &message, mistakes)?,
        (Encoding::Cdr, _) => {
            mistakes.at(
                item,
                format!(
                    "no definition of the messages on {} is known, so no substitute can be written: name it with \
                     `schemas:`, or write `substitute: hold` or `substitute: drop`",
                    source.address
                ),
            );
            return None;
        }
        (Encoding::Json, _) if message.is_object() => {
            if let Some(declared) = declared {
                warn_of_fields(item, declared, mistakes);
            }
            Stamped::from(message.to_string().into_bytes())
        }
        (Encoding::Json, _) => {
            mistakes.at(item, "`substitute` must be a message such as `{ speed: 0.0 }`, hold or drop");
            return None;
        }
        (Encoding::Plain, _) if !(message.is_object() || message.is_array()) => {
            let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            Stamped::from(text.into_bytes())
        }
        (Encoding::Plain, _) => {
            mistakes.at(item, "`substitute` must be a plain value such as `0.0`, hold or drop");
            return None;
        }
        (other, _) => {
            let name = other.name();
            let way_out = "write `substitute: hold` or `substitute: drop`";
            mistakes.at(item, format!("a substitute cannot be written in {name}: {way_out}"));
            return None;
        }
    };
    Some(Substitute::Message(Message(payload)))
}

/// Warns of fields that a declaration does not have, but one of a similar name: messages may have fields that no property
/// reads.
fn warn_of_fields(item: Item<'_>, declared: &Declared, mistakes: &mut Mistakes) {
    if !item.is_mapping() {
        return;
    }
    let written = item.entries("substitute", &mut Mistakes::default());
    for (name, key, value) in &written {
        match declared.fields.iter().find(|(known, _)| known == name) {
            Some((_, SchemaType::Object(below))) => warn_of_fields(*value, below, mistakes),
            Some(_) => {}
            None => {
                let known = declared.fields.iter().map(|(known, _)| known.as_str());
                let missing = known.filter(|known| written.iter().all(|(name, ..)| name.as_str() != *known));
                if let Some(similar) = suggest(name, missing) {
                    mistakes.warn(
                        *key,
                        format!("the topic declares no field '{name}' of the substitute; did you mean '{similar}'?"),
                    );
                }
            }
        }
    }
}

/// Returns a message of a type in CDR.
fn in_cdr(item: Item<'_>, schema: &Schema, message: &Value, mistakes: &mut Mistakes) -> Option<Stamped> {
    let is_extensible = matches!(schema.root().extensibility, Some(Extensibility::Appendable));
    let extensible = || format!("messages of {} cannot be written: the type is appendable", schema.name());
    if let Some(why) = unwritable(schema).or_else(|| is_extensible.then(extensible)) {
        mistakes.at(item, format!("{why}; write `substitute: hold` or `substitute: drop`"));
        return None;
    }
    let written = write_partial(schema, message).map_err(|unfit| {
        let place = place(item, unfit.path());
        mistakes.at(place, format!("the substitute does not fit its type {}: {unfit}", schema.name()));
    });
    written.ok()
}

/// Returns the item at a path below an item, or the deepest one above it.
fn place<'y, 'p>(item: Item<'y>, path: impl Iterator<Item = &'p str>) -> Item<'y> {
    let mut at = item;
    for part in path {
        let below = match at.is_mapping() {
            true => {
                let entries = at.entries("substitute", &mut Mistakes::default());
                entries.into_iter().find(|(name, ..)| name == part).map(|(_, _, value)| value)
            }
            false => part.parse().ok().and_then(|index: usize| at.items().into_iter().nth(index)),
        };
        match below {
            Some(below) => at = below,
            None => return at,
        }
    }
    at
}

/// Checks that the specification can read the substitutes of a deployment, each with its item, as messages of their topics.
pub(in crate::deployment) fn check_read(
    deployment: &Deployment,
    items: &[Item<'_>],
    mistakes: &mut Mistakes,
) {
    let is_message = |substitute: &Substitute| matches!(substitute, Substitute::Message(_));
    if !deployment.gates.iter().any(|gate| is_message(&gate.substitute)) {
        return;
    }
    // A session that does not start has a reason of its own.
    let Ok(mut session) = deployment.plan(Options::default()).start() else { return };
    let time = Timestamp::from_nanos(1_000_000_000);
    for (gate, item) in deployment.gates.iter().zip(items) {
        let Substitute::Message(message) = &gate.substitute else { continue };
        let before = session.summary().counts.mistyped;
        let read = session.push(gate.topic, Stamp::at(time), message.clone().at(time));
        session.flush();
        let reason = match read {
            Err(error) => Some(error.to_string()),
            Ok(()) if session.summary().counts.mistyped > before => {
                Some("a field has another type than the specification reads".to_owned())
            }
            Ok(()) => None,
        };
        if let Some(reason) = reason {
            mistakes.at(*item, format!("the substitute cannot be read as a message of its topic: {reason}"));
        }
    }
}
