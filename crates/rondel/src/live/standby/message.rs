//! Messages of a group: signs of life of its members, and requests of operators, as JSON on one topic.

use serde_json::{Value, json};

use super::election::{MemberId, Nanos, Role, Sign};

/// Facts about a member that the election does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The number of its process.
    pub process: u32,
    /// Time of day since which it receives messages, in nanoseconds since 1970.
    pub since: i64,
    /// Time of day of its first message, if it has received any.
    pub first: Option<i64>,
    /// Time of day at which it last ran again after it had stood still, if it has.
    pub stood_still: Option<i64>,
    /// Time for which it has been active, if it is.
    pub active_for: Option<Nanos>,
    /// A hash of its specification.
    pub specification: u64,
    /// Its lease.
    pub lease: Nanos,
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
}

/// Writes a sign of life.
pub fn write_sign(group: &str, sign: &Sign, about: &About) -> Vec<u8> {
    let Sign { from, number, epoch, prefer, role, position, ends, successor } = sign;
    let About { process, since, first, stood_still, active_for, specification, lease } = about;
    let sign = json!({
        "group": group,
        "member": from.to_string(),
        "number": number,
        "epoch": epoch,
        "prefer": prefer,
        "state": role.as_str(),
        "position": position,
        "ends": ends,
        "successor": successor.map(|id| id.to_string()),
        "process": process,
        "since": since,
        "first": first,
        "stood_still": stood_still,
        "active_for": active_for,
        "specification": format!("{specification:016x}"),
        "lease": lease,
    });
    sign.to_string().into_bytes()
}

/// Writes a request to hand over.
pub fn write_promote(group: &str, to: Option<MemberId>, epoch: u64) -> Vec<u8> {
    let to = to.map(|id| id.to_string());
    json!({ "group": group, "promote": to, "epoch": epoch }).to_string().into_bytes()
}

/// Reads a message of this group; `None` for anything else.
pub fn read(group: &str, payload: &[u8]) -> Option<Message> {
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
    let integer = |name: &str| value.get(name)?.as_i64();
    let sign = Sign {
        from: id(text("member")?)?,
        number: number("number")?,
        epoch: number("epoch")?,
        prefer: integer("prefer")?,
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
        since: integer("since")?,
        first: integer("first"),
        stood_still: integer("stood_still"),
        active_for: integer("active_for"),
        specification: u64::from_str_radix(text("specification")?, 16).ok()?,
        lease: integer("lease")?,
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
            role: Role::Active,
            position: Some(1_500_000_000),
            ends: false,
            successor: Some(MemberId(u64::MAX)),
        };
        let about = About {
            process: 12,
            since: 5,
            first: Some(6),
            stood_still: Some(7),
            active_for: Some(8),
            specification: u64::MAX,
            lease: 30_000_000,
        };
        for sign in [sign, Sign { position: None, successor: None, ends: true, ..sign }] {
            let written = write_sign("a", &sign, &about);
            assert_eq!(read("a", &written), Some(Message::Sign(sign, about)));
            assert_eq!(read("b", &written), None, "it belongs to another group");
        }
        for to in [None, Some(MemberId(9))] {
            assert_eq!(read("a", &write_promote("a", to, 7)), Some(Message::Promote { to, epoch: 7 }));
        }
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
