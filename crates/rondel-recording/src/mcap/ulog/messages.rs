//! Messages of a section, converted to messages of ROS 1.

use super::super::load::{Entry, UNKNOWN, UNREAD, Wanted};
use super::{HEAD, Subscriptions, nanos, u16_at, u64_at};

impl Wanted {
    /// Lists the messages to read of a section that begins at this time, and appends the converted ones to the records;
    /// returns the fault of the rest.
    pub(in crate::mcap) fn list_ulog(
        &self,
        records: &mut Vec<u8>,
        start: u64,
        subscriptions: &Subscriptions,
        entries: &mut Vec<Entry>,
    ) -> Option<String> {
        let source = std::mem::take(records);
        let (mut at, mut latest) = (0, start);
        let (mut unknown, mut first) = (0_u64, 0);
        while let Some(head) = source.get(at..at + HEAD) {
            let length = u16_at(head, 0).map_or(0, usize::from);
            let Some(body) = source.get(at + HEAD..at + HEAD + length) else { break };
            at += HEAD + length;
            let (number, own) = match head[2] {
                b'D' => {
                    let Some(id) = u16_at(body, 0) else { continue };
                    let Some((number, conversion)) = subscriptions.of_id.get(&id) else {
                        (unknown, first) = (unknown + 1, id);
                        continue;
                    };
                    let conversion = &subscriptions.conversions[*conversion];
                    let Some(time) = u64_at(body, 2 + conversion.time) else { continue };
                    latest = nanos(time);
                    (Some(*number), Some(conversion))
                }
                b'L' | b'C' => (subscriptions.texts, None),
                b'P' => (subscriptions.parameters, None),
                _ => continue,
            };
            let topic = number.and_then(|number| self.channels.get(usize::from(number)).copied());
            let topic = topic.unwrap_or(UNKNOWN);
            if topic == UNREAD || topic == UNKNOWN {
                continue;
            }
            let begin = records.len();
            let log_time = match (head[2], own) {
                (b'D', Some(conversion)) => {
                    conversion.write(&body[2..], records);
                    latest
                }
                (b'P', _) => {
                    let Some((name, value)) = parameter(body) else { continue };
                    records.extend_from_slice(&(name.len() as u32).to_le_bytes());
                    records.extend_from_slice(name.as_bytes());
                    records.extend_from_slice(&value.to_le_bytes());
                    latest
                }
                (kind, _) => match text(kind, body, records) {
                    Some(time) => time,
                    None => continue,
                },
            };
            if log_time >= self.from && log_time <= self.until {
                entries.push(Entry { log_time, start: begin, end: records.len(), topic });
            } else {
                records.truncate(begin);
            }
        }
        (unknown > 0)
            .then(|| format!("{unknown} messages have no subscription, such as those of the id {first}"))
    }
}

/// Writes a logged text as a message of ROS 1; returns its time.
fn text(kind: u8, body: &[u8], out: &mut Vec<u8>) -> Option<u64> {
    let (tag, at) = if kind == b'L' { (0, 1) } else { (u16_at(body, 1)?, 3) };
    let (level, time) = (*body.first()?, u64_at(body, at)?);
    let text = String::from_utf8_lossy(body.get(at + 8..)?);
    out.extend_from_slice(&time.to_le_bytes());
    // The levels are those of Linux, as digits.
    out.push(if level.is_ascii_digit() { level - b'0' } else { level });
    out.extend_from_slice(&tag.to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Some(nanos(time))
}

/// Returns the name and the value of a parameter.
pub(super) fn parameter(body: &[u8]) -> Option<(&str, f64)> {
    let length = usize::from(*body.first()?);
    let key = std::str::from_utf8(body.get(1..=length)?).ok()?;
    let (kind, name) = key.split_once(' ')?;
    let value = *body.get(length + 1..)?.first_chunk::<4>()?;
    match kind {
        "int32_t" => Some((name, i32::from_le_bytes(value).into())),
        "float" => Some((name, f32::from_le_bytes(value).into())),
        _ => None,
    }
}
