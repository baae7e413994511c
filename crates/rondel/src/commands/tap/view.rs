//! The formats of printed messages.

use rondel_event::terminal::{self, is_obeyed};
use rondel_event::{Origin, Timestamp};

use super::members::{Members, find};
use rondel_runtime::text::write_seconds;

/// The format of printed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// The payload as it was published
    Raw,
    /// One JSON object per line, which `rondel check` reads: topic, time, arrival, origin, data
    Json,
    /// One line of text per message, coloured on a terminal: time, topic, message
    Text,
}

/// A received message.
pub struct Message<'a> {
    /// The name of its topic.
    pub topic: &'a str,
    /// Its time, if it has one.
    pub time: Option<Timestamp>,
    /// Time of reception.
    pub arrival: Timestamp,
    /// Its publisher and sequence number, if they are known.
    pub origin: Option<Origin>,
    /// The payload, or the message in JSON.
    pub payload: &'a [u8],
    /// Whether this is JSON.
    pub is_json: bool,
}

/// An event of a topic that a network reported.
pub struct ReportedEvent<'a> {
    /// Its name in a recording.
    pub name: &'a str,
    /// The key of its instance as JSON; empty if there is none.
    pub key: &'a [u8],
    /// The publisher of an event that has one.
    pub publisher: Option<&'a str>,
}

/// A field to show.
struct Field {
    /// Its name, as the user wrote it.
    name: String,
    path: Vec<String>,
    /// The number of messages without it.
    missing: u64,
}

/// Writes messages.
pub struct View {
    form: Form,
    colour: bool,
    fields: Vec<Field>,
    /// The width of the longest topic name.
    width: usize,
}

impl View {
    /// A view in this format; with `fields`, it shows only these.
    pub fn new(form: Form, colour: bool, fields: &[String], topics: &[String]) -> View {
        let field = |name: &String| Field {
            name: name.clone(),
            path: name.split('.').map(str::to_owned).collect(),
            missing: 0,
        };
        let width = topics.iter().map(|topic| topic.chars().count()).max().unwrap_or(0);
        View { form, colour, fields: fields.iter().map(field).collect(), width }
    }

    /// Widens the column of topics for one more name.
    pub fn make_room(&mut self, name: &str) {
        self.width = self.width.max(name.chars().count());
    }

    /// Whether payloads are printed as they are, so that they need not be decoded.
    pub fn is_raw(&self) -> bool {
        self.form == Form::Raw
    }

    /// Each field that messages did not carry, with the number of these messages.
    pub fn missing(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fields.iter().filter(|field| field.missing > 0).map(|field| (&*field.name, field.missing))
    }

    /// Appends a message, with its line break.
    pub fn message(&mut self, message: &Message<'_>, out: &mut Vec<u8>) {
        let Message { topic, time, payload, is_json, .. } = *message;
        match self.form {
            Form::Raw => out.extend_from_slice(payload),
            Form::Json => {
                out.extend_from_slice(b"{\"topic\":");
                quote(topic, out);
                out.extend_from_slice(b",\"time\":");
                match time {
                    Some(time) => write_seconds(time, out),
                    None => out.extend_from_slice(b"null"),
                }
                out.extend_from_slice(b",\"arrival\":");
                write_seconds(message.arrival, out);
                if let Some(Origin { publisher, number }) = message.origin {
                    let origin = format!(",\"origin\":{{\"publisher\":{publisher},\"number\":{number}}}");
                    out.extend_from_slice(origin.as_bytes());
                }
                if is_json {
                    out.extend_from_slice(b",\"data\":");
                    self.body(payload, out);
                } else {
                    out.extend_from_slice(b",\"payload\":");
                    quote(&escaped(payload), out);
                }
                out.push(b'}');
            }
            Form::Text => {
                self.time(time, out);
                self.topic(topic, self.width, out);
                out.extend_from_slice(b"  ");
                if is_json {
                    self.body(payload, out);
                } else {
                    out.extend_from_slice(escaped(payload).as_bytes());
                }
            }
        }
        out.push(b'\n');
    }

    /// Appends an event of a topic with the key of its instance, an object or nothing, and its line break; nothing where
    /// payloads are printed as they are.
    pub fn event(
        &mut self,
        topic: &str,
        event: &ReportedEvent<'_>,
        time: Timestamp,
        arrival: Timestamp,
        out: &mut Vec<u8>,
    ) {
        let ReportedEvent { name: event, key, publisher } = event;
        match self.form {
            Form::Raw => return,
            Form::Json => {
                out.extend_from_slice(b"{\"topic\":");
                quote(topic, out);
                for (name, time) in [("time", time), ("arrival", arrival)] {
                    out.extend_from_slice(format!(",\"{name}\":").as_bytes());
                    write_seconds(time, out);
                }
                out.extend_from_slice(format!(",\"event\":\"{event}\"").as_bytes());
                if let Some(publisher) = publisher {
                    out.extend_from_slice(b",\"publisher\":");
                    quote(publisher, out);
                }
                if !key.is_empty() {
                    out.extend_from_slice(b",\"key\":");
                    out.extend_from_slice(key);
                }
                out.push(b'}');
            }
            Form::Text => {
                self.time(Some(time), out);
                self.topic(topic, self.width, out);
                out.extend_from_slice(format!("  {event}").as_bytes());
                if let Some(publisher) = publisher {
                    out.push(b' ');
                    quote(publisher, out);
                }
                if !key.is_empty() {
                    out.push(b' ');
                    one_line(key, out);
                }
            }
        }
        out.push(b'\n');
    }

    /// Appends a message or set that alignment released, with its line break. `object` holds the time and a message
    /// of each topic.
    pub fn released(&mut self, object: &[u8], out: &mut Vec<u8>) {
        if self.form != Form::Text && self.fields.is_empty() {
            one_line(object, out);
            return out.push(b'\n');
        }
        let mut members = Members::of(object).peekable();
        let time = members.next().map_or(&b"-"[..], |(_, time)| time);
        let is_late = members.next_if(|member| *member == (b"late", b"true")).is_some();
        if self.form == Form::Text {
            self.seconds(time, out);
            for (i, (topic, message)) in members.enumerate() {
                out.extend_from_slice(if i > 0 { b"  " } else { b"" });
                self.topic(&String::from_utf8_lossy(topic), 0, out);
                out.push(b' ');
                self.body(message, out);
            }
            if is_late {
                let (on, off) = if self.colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
                out.extend_from_slice(format!("  {on}late{off}").as_bytes());
            }
        } else {
            out.extend_from_slice(b"{\"time\":");
            out.extend_from_slice(time);
            out.extend_from_slice(if is_late { b",\"late\":true" } else { b"" });
            for (topic, message) in members {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(topic);
                out.extend_from_slice(b"\":");
                self.body(message, out);
            }
            out.push(b'}');
        }
        out.push(b'\n');
    }

    /// Appends a JSON message, or the fields to show.
    fn body(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        if self.fields.is_empty() {
            return one_line(payload.trim_ascii(), out);
        }
        let is_text = self.form == Form::Text;
        let mut separator: &[u8] = b"";
        out.extend_from_slice(if is_text { b"" } else { b"{" });
        for field in &mut self.fields {
            let value = find(payload, &field.path);
            field.missing += u64::from(value.is_none());
            if value.is_none() && !is_text {
                continue;
            }
            out.extend_from_slice(separator);
            if is_text {
                out.extend_from_slice(field.name.as_bytes());
                out.push(b'=');
            } else {
                quote(&field.name, out);
                out.push(b':');
            }
            one_line(value.unwrap_or(b"-"), out);
            separator = if is_text { b"  " } else { b"," };
        }
        out.extend_from_slice(if is_text { b"" } else { b"}" });
    }

    fn time(&self, time: Option<Timestamp>, out: &mut Vec<u8>) {
        let mut seconds = Vec::new();
        match time {
            Some(time) => write_seconds(time, &mut seconds),
            None => seconds.push(b'-'),
        }
        self.seconds(&seconds, out);
    }

    fn seconds(&self, seconds: &[u8], out: &mut Vec<u8>) {
        let (on, off) = if self.colour { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        out.extend_from_slice(format!("{on}{:>8} s{off}  ", String::from_utf8_lossy(seconds)).as_bytes());
    }

    fn topic(&self, topic: &str, width: usize, out: &mut Vec<u8>) {
        let (on, off) = if self.colour { ("\x1b[36m", "\x1b[0m") } else { ("", "") };
        let topic = terminal::escaped(topic);
        out.extend_from_slice(format!("{on}{topic:<width$}{off}").as_bytes());
    }
}

/// Appends text as a JSON string.
fn quote(text: &str, out: &mut Vec<u8>) {
    // A string always has a JSON form.
    out.extend_from_slice(&serde_json::to_vec(text).unwrap_or_default());
}

/// Appends JSON on one line. Line breaks can only stand between its tokens, and other characters that a terminal obeys only
/// in texts, where they are escaped.
fn one_line(json: &[u8], out: &mut Vec<u8>) {
    let is_escaped = |c: char| !c.is_ascii() && is_obeyed(c);
    if let Ok(text) = std::str::from_utf8(json)
        && text.contains(is_escaped)
    {
        for c in text.chars() {
            match c {
                '\n' | '\r' => out.push(b' '),
                c if is_escaped(c) => {
                    let units = c
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .map(|unit| format!("\\u{unit:04x}"))
                        .collect::<String>();
                    out.extend_from_slice(units.as_bytes());
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        return;
    }
    out.extend(json.iter().map(|&byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
}

/// A payload that is not JSON, escaped: it cannot control the terminal, and stays unambiguous.
fn escaped(payload: &[u8]) -> String {
    match std::str::from_utf8(payload) {
        Ok(text) => {
            let mut shown = String::with_capacity(text.len());
            for letter in text.chars() {
                if is_obeyed(letter) || letter == '\\' {
                    shown.extend(letter.escape_default());
                } else {
                    shown.push(letter);
                }
            }
            shown
        }
        Err(_) => payload.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_without_obeyed_characters() {
        let mut out = Vec::new();
        one_line("{\n\"a\u{202e}\": \"\u{9b}é\u{e0001}\"}".as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "{ \"a\\u202e\": \"\\u009bé\\udb40\\udc01\"}");
        out.clear();
        one_line(b"{\r\"a\": 1}", &mut out);
        assert_eq!(out, b"{ \"a\": 1}");
    }
}
