//! Messages of Foxglove's WebSocket protocol, as far as a server of topics in JSON has them.

use std::sync::Arc;

use serde_json::{Value, json};

/// Subprotocols of clients, the preferred one first. The second is that of earlier applications; both have the same
/// messages here.
pub(super) const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
/// First byte of a frame with a message.
const MESSAGE: u8 = 1;
/// Maximum number of characters of a client's text that an answer repeats.
const REPEATED: usize = 100;

/// Type of the messages of a channel: a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The name of the type, such as `foxglove.Log`.
    pub name: Arc<str>,
    /// The schema.
    pub data: Arc<str>,
}

/// Importance of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A client or the run loses messages.
    Warning,
    /// A request cannot be met.
    Error,
}

/// A topic that clients can subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) id: u32,
    pub(super) topic: String,
    pub(super) schema: Schema,
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Subscriptions: the client's number of each, and the channel.
    Subscribe(Vec<(u32, u32)>),
    /// The numbers of subscriptions that end.
    Unsubscribe(Vec<u32>),
}

/// The first message to a client. `session` differs between runs: a client that reconnects to another run forgets
/// what it has received.
pub(super) fn server_info(name: &str, session: &str) -> String {
    json!({
        "op": "serverInfo", "name": name, "capabilities": [], "supportedEncodings": [], "metadata": {},
        "sessionId": session,
    })
    .to_string()
}

/// Announces channels.
pub(super) fn advertise<'c>(channels: impl IntoIterator<Item = &'c Channel>) -> String {
    let channel = |Channel { id, topic, schema }: &Channel| {
        json!({
            "id": id, "topic": topic, "encoding": "json", "schemaName": &*schema.name,
            "schemaEncoding": "jsonschema", "schema": &*schema.data,
        })
    };
    let channels: Vec<Value> = channels.into_iter().map(channel).collect();
    json!({"op": "advertise", "channels": channels}).to_string()
}

/// Withdraws channels.
pub(super) fn unadvertise(ids: &[u32]) -> String {
    json!({"op": "unadvertise", "channelIds": ids}).to_string()
}

/// A sentence that the application lists among its problems. One with an id replaces the one before with this id.
pub(super) fn status(level: Level, message: &str, id: Option<&str>) -> String {
    let level = match level {
        Level::Warning => 1,
        Level::Error => 2,
    };
    let mut status = json!({"op": "status", "level": level, "message": message});
    if let Some(id) = id {
        status["id"] = id.into();
    }
    status.to_string()
}

/// A message on a subscription, with its time in nanoseconds. Earlier times than 1970 have no place in the protocol.
pub(super) fn frame(subscription: u32, time: i64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(13 + payload.len());
    frame.push(MESSAGE);
    frame.extend_from_slice(&subscription.to_le_bytes());
    frame.extend_from_slice(&u64::try_from(time).unwrap_or(0).to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Reads a request.
///
/// # Errors
/// The reason why it cannot be met, for the client.
pub(super) fn request(text: &str) -> Result<Request, String> {
    let message: Value = serde_json::from_str(text).map_err(|error| format!("invalid message: {error}"))?;
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let wrong = |op: &str| format!("invalid message: `{op}` has no list of numbers");
    let list = |name: &str| message[name].as_array().map_or(&[][..], Vec::as_slice);
    match message["op"].as_str() {
        Some("subscribe") => {
            let read = |item: &Value| Some((number(&item["id"])?, number(&item["channelId"])?));
            let all: Option<Vec<(u32, u32)>> = list("subscriptions").iter().map(read).collect();
            all.map(Request::Subscribe).ok_or_else(|| wrong("subscribe"))
        }
        Some("unsubscribe") => {
            let all: Option<Vec<u32>> = list("subscriptionIds").iter().map(number).collect();
            all.map(Request::Unsubscribe).ok_or_else(|| wrong("unsubscribe"))
        }
        Some(op) => {
            let op: String = op.chars().take(REPEATED).collect();
            Err(format!("this server only sends: `{op}` is not supported"))
        }
        None => Err("invalid message: it has no `op`".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_form_of_the_protocol() {
        let schema = Schema { name: "S".into(), data: "{\"type\":\"object\"}".into() };
        let channel = Channel { id: 1, topic: "a \"b\"".to_owned(), schema };
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            read(advertise([&channel])),
            json!({"op": "advertise", "channels": [{
                "id": 1, "topic": "a \"b\"", "encoding": "json", "schemaName": "S",
                "schemaEncoding": "jsonschema", "schema": "{\"type\":\"object\"}",
            }]})
        );
        assert_eq!(read(unadvertise(&[3, 4])), json!({"op": "unadvertise", "channelIds": [3, 4]}));
        assert_eq!(
            read(status(Level::Error, "x", Some("y"))),
            json!({"op": "status", "level": 2, "message": "x", "id": "y"})
        );
        assert_eq!(read(server_info("n", "s"))["sessionId"], "s");
        assert_eq!(
            frame(7, 123_456_789, b"{\"a\":1}"),
            b"\x01\x07\x00\x00\x00\x15\xcd\x5b\x07\x00\x00\x00\x00{\"a\":1}"
        );
        assert_eq!(frame(0, -1, b"")[5..], [0; 8]);
    }

    #[test]
    fn requests_are_read_or_refused() {
        let subscribe = "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":0,\"channelId\":5},{\"id\":1,\"channelId\":6}]}";
        assert_eq!(request(subscribe), Ok(Request::Subscribe(vec![(0, 5), (1, 6)])));
        let unsubscribe = "{\"op\":\"unsubscribe\",\"subscriptionIds\":[0]}";
        assert_eq!(request(unsubscribe), Ok(Request::Unsubscribe(vec![0])));
        assert_eq!(request("{\"op\":\"subscribe\"}"), Ok(Request::Subscribe(Vec::new())));
        for wrong in [
            "",
            "x",
            "[]",
            "{}",
            "{\"op\":1}",
            "{\"op\":\"advertise\",\"channels\":[]}",
            "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":-1,\"channelId\":5}]}",
            "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":4294967296,\"channelId\":5}]}",
            "{\"op\":\"unsubscribe\",\"subscriptionIds\":[\"0\"]}",
        ] {
            assert!(request(wrong).is_err(), "{wrong}");
        }
        let long = format!("{{\"op\":\"{}\"}}", "ä".repeat(10_000));
        assert!(request(&long).unwrap_err().len() < 300, "a client's text is not repeated in full");
    }
}
