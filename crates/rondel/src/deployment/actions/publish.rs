//! The setting `publish` of an action: address, encoding, type and message.

use rondel_decode::{Encoding as PayloadEncoding, MessageType};
use rondel_runtime::Input;

use super::{Context, message};
use crate::deployment::places::{Place, Role};
use crate::deployment::qos::OfTopic;
use crate::deployment::types::Typing;
use crate::deployment::yaml::{Item, Mistakes, Synonyms};
use crate::deployment::{Address, Encoding};
use crate::schemas::Schemas;
use crate::schemas::written::unwritable;
use crate::sinks::actions::{Act, Form, PublishAct, Template};

/// Names that people write for the settings.
const SYNONYMS: Synonyms = &[
    (&["topic", "address", "key", "sink"], "write `to`"),
    (&["payload", "data", "content", "body", "value"], "write `message`"),
    (&["format"], "write `encoding`"),
    (&["message_type", "msg_type", "schema"], "write `type`"),
    (
        &["retain", "retained"],
        "remove it: on MQTT, messages of actions are retained like verdicts, by `retain_verdicts`",
    ),
];

/// Reads the setting. If the action `is_limited`, its messages may return as messages that the run reads.
pub(super) fn publish<'y>(
    item: Item<'y>,
    context: &Context<'_>,
    is_limited: bool,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Option<Act> {
    let mut members = item.members("publish", mistakes);
    let (to, message_item) = (members.get("to"), members.get("message"));
    let (encoding, of, qos) = (members.get("encoding"), members.get("type"), members.get("qos"));
    let loops = members.get("loop");
    members.finish(SYNONYMS, mistakes);
    let (Some(to), Some(message_item)) = (to, message_item) else {
        mistakes.at(
            item,
            "`publish` needs `to` and `message`, such as `to: zenoh:alarm, message: { stop: true }`",
        );
        return None;
    };
    let template = message::template(message_item, context.known, mistakes);
    let wanted = Wanted { to, encoding, of };
    let (address, form) = wanted.read(context, mistakes)?;
    let address = quality(address, qos, mistakes);
    let loops = loops.and_then(|item| Some((item, item.boolean("loop", mistakes)?)));
    match loops {
        Some((item, true)) if !is_limited => {
            mistakes.at(item, "`loop: true` needs a limit, since a violation may cause the next one: add `limit: { per_minute: N }`");
        }
        Some((_, true)) => {}
        _ => places.push(Place::new(Role::Action, "an action", &address, to)),
    }
    let template = template?;
    match &form {
        Form::Json => {}
        Form::Plain if matches!(template, Template::Fixed(_) | Template::Text(_)) => {}
        Form::Plain => mistakes.at(message_item, "a plain message is one value, no mapping or list"),
        Form::Cdr(schema) => message::check(message_item, &template, schema, context.known, mistakes),
    }
    Some(Act::Publish(Box::new(PublishAct { to: address, form, message: template })))
}

/// Sets the quality of service of a publisher.
fn quality(address: Address, qos: Option<Item<'_>>, mistakes: &mut Mistakes) -> Address {
    if let (Some(item), Address::Mqtt(..)) = (qos, &address) {
        mistakes.at(
            item,
            "on MQTT, messages of actions are published like verdicts: set `verdict_qos` of `mqtt`",
        );
        return address;
    }
    OfTopic::of_publisher(qos).at(address, mistakes)
}

/// Address, encoding and type as they are written.
struct Wanted<'y> {
    to: Item<'y>,
    encoding: Option<Item<'y>>,
    of: Option<Item<'y>>,
}

impl Wanted<'_> {
    fn read(&self, context: &Context<'_>, mistakes: &mut Mistakes) -> Option<(Address, Form)> {
        let text = self.to.text("to", mistakes)?;
        // Of ROS 2 the encoding follows from the type.
        let checked = Address::parse_sink(&text).and_then(|checked| match checked {
            Address::Stdout => {
                Err("an action publishes on a network: write zenoh:KEY, dds:TOPIC, mqtt:TOPIC or ros2:/TOPIC"
                    .to_owned())
            }
            Address::Ros2(..) => Address::parse(&text),
            address => Ok(address),
        });
        let address = checked.map_err(|error| mistakes.at(self.to, error)).ok()?;
        let encoding = match self.encoding {
            None => None,
            Some(item) => {
                let name = item.text("encoding", mistakes)?;
                Some((item, Encoding::parse(&name).map_err(|error| mistakes.at(item, error)).ok()?))
            }
        };
        let of = match self.of {
            None => None,
            Some(item) => Some((item, item.text("type", mistakes)?)),
        };
        let chosen =
            encoding.map_or_else(|| default_encoding(&address, of.is_some()), |(_, encoding)| encoding);
        let place = encoding.map_or(self.to, |(item, _)| item);
        if !is_written(chosen) {
            mistakes.at(place, "the messages of actions are json, plain, cdr or cdr_string");
            return None;
        }
        let address = address.encoded(chosen).map_err(|error| mistakes.at(place, error)).ok()?;
        if chosen == Encoding::CDR && of.is_none() {
            mistakes
                .at(self.to, "messages in cdr have a type: add `type:`, such as `type: std_msgs/msg/Bool`");
            return None;
        }
        let place = of.as_ref().map_or(self.to, |(item, _)| *item);
        let unread = Schemas::default();
        let schemas =
            context.selecting.specification.map_or(&unread, |specification| &*specification.schemas);
        let own = of.as_ref().map(|(_, name)| name.as_str());
        let typing = Typing { topic: None, own, has_encoding: true, schemas };
        let mut input = Input::default();
        let completed = typing.complete(address, &mut input).map_err(|why| mistakes.at(place, why));
        let (address, uncertainty) = completed.ok()?;
        uncertainty.into_iter().for_each(|why| mistakes.uncertain(place, why));
        let form = match chosen {
            Encoding::CDR => Form::Cdr(self.schema(&input, own, place, mistakes)?),
            Encoding::Of(PayloadEncoding::Plain) => Form::Plain,
            _ => Form::Json,
        };
        Some((address, form))
    }

    /// Returns the type of messages in CDR.
    fn schema(
        &self,
        input: &Input,
        name: Option<&str>,
        place: Item<'_>,
        mistakes: &mut Mistakes,
    ) -> Option<rondel_decode::schema::Schema> {
        let Some(MessageType::Cdr(schema)) = input.message_type.as_deref() else {
            let name = name.unwrap_or_default();
            mistakes.at(place, format!("no definition of {name} is known: name its file with `schemas:`"));
            return None;
        };
        if let Some(why) = unwritable(schema) {
            mistakes.at(place, why);
            return None;
        }
        Some(schema.clone())
    }
}

/// Returns the encoding of an address without one: with a type, and on ROS 2, CDR.
fn default_encoding(address: &Address, has_type: bool) -> Encoding {
    match address {
        Address::Ros2(..) => address.encoding(),
        _ if has_type => Encoding::CDR,
        _ => address.encoding(),
    }
}

fn is_written(encoding: Encoding) -> bool {
    use PayloadEncoding::{Cdr, Json, Plain};
    matches!(encoding, Encoding::CdrString | Encoding::Of(Cdr | Json | Plain))
}
