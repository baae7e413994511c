//! Messages of a group: signs of life of its members, requests of operators, and the transfer of a state, as JSON on one
//! topic.

use serde_json::{Value, json};

use super::election::{MemberId, Nanos, Role, Sign};
use super::state::Reason;
use super::transfer::{Answer, Head, PART, Request, Route, WINDOW};
use crate::deployment::LEASES;

/// The longest message in bytes: a part of a state has two digits for each byte.
const LONGEST: usize = 4 * PART;
/// Length of a reason in characters, of which the rest is left out.
const LONGEST_REASON: usize = 500;

/// Facts about a member that the election does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The number of its process.
    pub process: u32,
    /// Time of day at which the sign was sent; a member of an earlier release does not send it.
    pub sent: Option<i64>,
    /// Time of day since which it receives messages, in nanoseconds since 1970.
    pub since: i64,
    /// Time of day of its first message, if it has received any.
    pub first: Option<i64>,
    /// Time of day at which it last ran again after it had stood still, if it has taken no state since.
    pub stood_still: Option<i64>,
    /// Time for which it has been active, if it is.
    pub active_for: Option<Nanos>,
    /// The member whose state it has taken, and the number of events that this one had checked.
    pub taken: Option<(MemberId, u64)>,
    /// A hash of its specification.
    pub specification: u64,
    /// Its lease.
    pub lease: Nanos,
    /// A hash of the settings of its gates; a member of an earlier release does not send it.
    pub gates: Option<u64>,
}

impl About {
    /// Facts in a sign that is received at a time of day: the time of the first message by the clock of the receiver, if the
    /// one of the sender is ahead. A sign from the past may have waited, so that nothing is known about the clocks.
    pub fn received(self, at: i64) -> About {
        About { first: self.first.map(|first| first.saturating_sub(self.ahead(at))), ..self }
    }

    /// Time by which the clock of the sender is ahead, at least, of a member that receives the sign at a time of day.
    pub fn ahead(&self, at: i64) -> Nanos {
        self.sent.map_or(0, |sent| sent.saturating_sub(at).max(0))
    }
}

/// A message of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sign of life of a member.
    Sign(Sign, About),
    /// A request to the member that is active in an epoch: to hand over to another one, or to the best standby.
    Promote {
        /// The member that takes over, if a certain one does.
        to: Option<MemberId>,
        /// The epoch: a request that comes after a take-over is outdated.
        epoch: u64,
    },
    /// A request for the state of an active member.
    Request(Route, Request),
    /// An answer to it.
    Answer(Route, Answer),
}

/// Writes a sign of life.
pub fn write_sign(group: &str, sign: &Sign, about: &About) -> Vec<u8> {
    let Sign { from, number, epoch, prefer, is_late, role, position, ends, successor } = sign;
    let About { process, sent, since, first, stood_still, active_for, taken, specification, lease, gates } =
        about;
    let sign = json!({
        "group": group,
        "member": from.to_string(),
        "number": number,
        "epoch": epoch,
        "prefer": prefer,
        "late": is_late,
        "state": role.as_str(),
        "position": position,
        "ends": ends,
        "successor": successor.map(|id| id.to_string()),
        "process": process,
        "sent": sent,
        "since": since,
        "first": first,
        "stood_still": stood_still,
        "active_for": active_for,
        "taken": taken.map(|(from, step)| json!({ "from": from.to_string(), "step": step })),
        "specification": format!("{specification:016x}"),
        "lease": lease,
        "gates": gates.map(|gates| format!("{gates:016x}")),
    });
    sign.to_string().into_bytes()
}

/// Writes a request to hand over.
pub fn write_promote(group: &str, to: Option<MemberId>, epoch: u64) -> Vec<u8> {
    let to = to.map(|id| id.to_string());
    json!({ "group": group, "promote": to, "epoch": epoch }).to_string().into_bytes()
}

fn write_transfer(group: &str, route: Route, content: Value) -> Vec<u8> {
    let Route { transfer, from, to } = route;
    let mut message = json!({
        "group": group,
        "transfer": format!("{transfer:016x}"),
        "from": from.to_string(),
        "to": to.to_string(),
    });
    if let (Some(message), Value::Object(content)) = (message.as_object_mut(), content) {
        message.extend(content);
    }
    message.to_string().into_bytes()
}

/// Writes a request for the state of an active member.
pub fn write_request(group: &str, route: Route, request: &Request) -> Vec<u8> {
    let content = match request {
        Request::Record => json!({ "request": "record" }),
        Request::State => json!({ "request": "state" }),
        Request::Parts(parts) => json!({ "request": "parts", "parts": parts }),
        Request::End => json!({ "request": "end" }),
    };
    write_transfer(group, route, content)
}

/// Writes an answer to it.
pub fn write_answer(group: &str, route: Route, answer: &Answer) -> Vec<u8> {
    let content = match answer {
        Answer::Recording => json!({ "answer": "recording" }),
        Answer::State(Head { bytes, sum, step }) => {
            json!({ "answer": "state", "bytes": bytes, "sum": sum, "step": step })
        }
        Answer::Part(part, content) => json!({ "answer": "part", "part": part, "content": hex(content) }),
        Answer::Ended => json!({ "answer": "ended" }),
        Answer::Refused(why, later) => json!({ "answer": "refused", "why": why, "later": later }),
    };
    write_transfer(group, route, content)
}

/// Bytes in hexadecimal digits: DDS carries texts only.
fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Reads up to [`PART`] bytes in hexadecimal digits.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > PART {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect()
}

/// Reads a message of the transfer of a state.
fn read_transfer(transfer: &str, value: &Value) -> Option<Message> {
    let text = |name: &str| value.get(name)?.as_str();
    let number = |name: &str| value.get(name)?.as_u64();
    let part = |value: &Value| u32::try_from(value.as_u64()?).ok();
    let route = Route { transfer: id(transfer)?.0, from: id(text("from")?)?, to: id(text("to")?)? };
    if let Some(request) = text("request") {
        let request = match request {
            "record" => Request::Record,
            "state" => Request::State,
            "parts" => {
                let parts = value.get("parts")?.as_array()?;
                Request::Parts(parts.iter().take(WINDOW).map(part).collect::<Option<_>>()?)
            }
            "end" => Request::End,
            _ => return None,
        };
        return Some(Message::Request(route, request));
    }
    let answer = match text("answer")? {
        "recording" => Answer::Recording,
        "state" => Answer::State(Head {
            bytes: number("bytes")?,
            sum: u32::try_from(number("sum")?).ok()?,
            step: number("step")?,
        }),
        "part" => Answer::Part(part(value.get("part")?)?, from_hex(text("content")?)?),
        "refused" => {
            let why = text("why")?.chars().take(LONGEST_REASON).collect();
            Answer::Refused(why, value.get("later")?.as_bool()?)
        }
        "ended" => Answer::Ended,
        _ => return None,
    };
    Some(Message::Answer(route, answer))
}

fn read_taken(taken: &Value) -> Option<(MemberId, u64)> {
    Some((id(taken.get("from")?.as_str()?)?, taken.get("step")?.as_u64()?))
}

/// Receives a message on the topic of a group.
///
/// # Errors
/// The reason why it is ignored.
pub fn receive(group: &str, payload: &[u8]) -> Result<Message, Reason> {
    let message = if payload.len() <= LONGEST { read(group, payload) } else { None };
    match message.ok_or(Reason::Unreadable)? {
        Message::Sign(_, about) if !has_lease(&about) => Err(Reason::Lease),
        message => Ok(message),
    }
}

/// Whether the lease of a member is one that a deployment can have.
fn has_lease(about: &About) -> bool {
    let (shortest, longest) = LEASES;
    let lease = u128::try_from(about.lease).unwrap_or(0);
    (shortest.as_nanos()..=longest.as_nanos()).contains(&lease)
}

/// Reads a message of this group; `None` for anything else.
fn read(group: &str, payload: &[u8]) -> Option<Message> {
    let value: Value = serde_json::from_slice(payload).ok()?;
    if value.get("group")?.as_str()? != group {
        return None;
    }
    let text = |name: &str| value.get(name)?.as_str();
    let number = |name: &str| value.get(name)?.as_u64();
    if let Some(to) = value.get("promote") {
        let to = if to.is_null() { None } else { Some(id(to.as_str()?)?) };
        return Some(Message::Promote { to, epoch: number("epoch")? });
    }
    if let Some(transfer) = text("transfer") {
        return read_transfer(transfer, &value);
    }
    let integer = |name: &str| value.get(name)?.as_i64();
    let sign = Sign {
        from: id(text("member")?)?,
        number: number("number")?,
        epoch: number("epoch")?,
        prefer: integer("prefer")?,
        // One of an earlier release does not say it.
        is_late: value.get("late").is_some_and(|late| *late == Value::Bool(true)),
        role: Role::parse(text("state")?)?,
        position: integer("position"),
        ends: value.get("ends")?.as_bool()?,
        successor: match text("successor") {
            Some(text) => Some(id(text)?),
            None => None,
        },
    };
    let about = About {
        process: u32::try_from(number("process")?).ok()?,
        sent: integer("sent"),
        since: integer("since")?,
        first: integer("first"),
        stood_still: integer("stood_still"),
        active_for: integer("active_for"),
        taken: value.get("taken").and_then(read_taken),
        specification: u64::from_str_radix(text("specification")?, 16).ok()?,
        lease: integer("lease")?,
        gates: text("gates").and_then(|gates| u64::from_str_radix(gates, 16).ok()),
    };
    Some(Message::Sign(sign, about))
}

/// Reads the number of a member.
pub fn id(text: &str) -> Option<MemberId> {
    let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { u64::from_str_radix(text, 16).ok().map(MemberId) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let sign = Sign {
            from: MemberId(0x3f),
            number: 7,
            epoch: 3,
            prefer: -2,
            is_late: false,
            role: Role::Active,
            position: Some(1_500_000_000),
            ends: false,
            successor: Some(MemberId(u64::MAX)),
        };
        let about = About {
            process: 12,
            sent: Some(4),
            since: 5,
            first: Some(6),
            stood_still: Some(7),
            active_for: Some(8),
            taken: Some((MemberId(4), 9)),
            specification: u64::MAX,
            lease: 30_000_000,
            gates: Some(9),
        };
        for sign in [sign, Sign { position: None, successor: None, ends: true, is_late: true, ..sign }] {
            let written = write_sign("a", &sign, &about);
            assert_eq!(read("a", &written), Some(Message::Sign(sign, about)));
            assert_eq!(read("b", &written), None, "it belongs to another group");
        }
        let about = About { gates: None, sent: None, ..about };
        assert_eq!(read("a", &write_sign("a", &sign, &about)), Some(Message::Sign(sign, about)));
        for to in [None, Some(MemberId(9))] {
            assert_eq!(read("a", &write_promote("a", to, 7)), Some(Message::Promote { to, epoch: 7 }));
        }
    }

    #[test]
    fn messages_that_no_member_sends_are_ignored_for_a_reason() {
        let sign = r#"{"group":"a","member":"000000000000003f","number":1,"epoch":1,"prefer":0,"state":"standby","ends":false,"#;
        let sign =
            |lease: &str| format!(r#"{sign}"process":1,"since":0,"specification":"0","lease":{lease}}}"#);
        for lease in ["15000000", "60000000000"] {
            assert!(receive("a", sign(lease).as_bytes()).is_ok(), "{lease}");
        }
        for lease in ["14999999", "60000000001", "0", "-1", "9223372036854775807"] {
            assert_eq!(receive("a", sign(lease).as_bytes()), Err(Reason::Lease), "{lease}");
        }
        let long = sign(&format!("{}15000000", " ".repeat(LONGEST)));
        for text in ["", "{", "null", r#"{"group":"a"}"#, &sign("1.5"), &sign(r#""15""#), &long] {
            assert_eq!(receive("a", text.as_bytes()), Err(Reason::Unreadable), "{text:.80}");
        }
        assert_eq!(receive("b", sign("15000000").as_bytes()), Err(Reason::Unreadable), "of another group");
        assert_eq!(receive("a", &[0xff, 0xfe]), Err(Reason::Unreadable), "no text");
        let part = Answer::Part(u32::MAX, vec![1; PART]);
        let route = Route { transfer: u64::MAX, from: MemberId(1), to: MemberId(2) };
        assert!(receive("a", &write_answer("a", route, &part)).is_ok());
    }

    #[test]
    fn member_of_an_earlier_release_is_not_late() {
        let sign = r#"{"group":"a","member":"000000000000003f","number":1,"epoch":1,"prefer":0,"state":"standby",
            "ends":false,"process":1,"since":0,"specification":"0","lease":1}"#;
        let read = read("a", sign.as_bytes());
        assert!(matches!(read, Some(Message::Sign(Sign { is_late: false, .. }, _))), "{read:?}");
    }

    #[test]
    fn messages_of_transfers_are_read_as_written() {
        let route = Route { transfer: u64::MAX, from: MemberId(1), to: MemberId(2) };
        for request in [Request::Record, Request::State, Request::Parts(vec![0, 7]), Request::End] {
            let written = write_request("a", route, &request);
            assert_eq!(read("a", &written), Some(Message::Request(route, request)));
            assert_eq!(read("b", &written), None, "it belongs to another group");
        }
        let head = Head { bytes: 1 << 40, sum: u32::MAX, step: 12 };
        let refused = Answer::Refused("it is not \"active\"".to_owned(), false);
        let part = Answer::Part(3, vec![0, 0x3f, 0xff]);
        for answer in [Answer::Recording, Answer::State(head), part, refused, Answer::Ended] {
            let written = write_answer("a", route, &answer);
            assert_eq!(read("a", &written), Some(Message::Answer(route, answer)));
        }
        let verbose = write_answer("a", route, &Answer::Refused("é".repeat(LONGEST_REASON + 1), true));
        let shortened = Answer::Refused("é".repeat(LONGEST_REASON), true);
        assert_eq!(read("a", &verbose), Some(Message::Answer(route, shortened)));
        let longest = write_answer("a", route, &Answer::Part(0, vec![1; PART]));
        assert!(read("a", &longest).is_some());
        let longer = write_answer("a", route, &Answer::Part(0, vec![1; PART + 1]));
        assert_eq!(read("a", &longer), None);
    }

    #[test]
    fn other_messages_of_transfers_are_ignored() {
        let start =
            r#"{"group":"a","transfer":"000000000000000c","from":"0000000000000001","to":"0000000000000002""#;
        for rest in [
            "}",
            r#","request":"x"}"#,
            r#","request":"parts"}"#,
            r#","request":"parts","parts":[-1]}"#,
            r#","answer":"state","bytes":1,"sum":-1,"step":2}"#,
            r#","answer":"part","part":0,"content":"0"}"#,
            r#","answer":"part","part":0,"content":"0g"}"#,
            r#","answer":"part","part":4294967296,"content":"00"}"#,
            r#","answer":"refused","why":"x"}"#,
        ] {
            assert_eq!(read("a", format!("{start}{rest}").as_bytes()), None, "{rest}");
        }
        let end = read("a", format!(r#"{start},"request":"end"}}"#).as_bytes());
        assert!(matches!(end, Some(Message::Request(_, Request::End))));
    }

    #[test]
    fn other_messages_are_ignored() {
        for text in ["", "1", "{}", r#"{"group":"a"}"#, r#"{"group":"a","promote":1,"epoch":1}"#] {
            assert_eq!(read("a", text.as_bytes()), None, "{text}");
        }
        let promote = br#"{"group":"a","promote":"12","epoch":1}"#;
        assert_eq!(read("a", promote), None, "no number of a member");
        assert_eq!(read("a", br#"{"group":"a","promote":null}"#), None, "no epoch");
        assert_eq!(id("+00000000000003f"), None);
    }
}
