//! The account of a gate: its state and its counts, as text, as JSON and in diagnostics.

use rondel_event::{Timestamp, Verdict};
use rondel_runtime::ros2::Part;
use rondel_runtime::text::{counted, grouped};
use serde_json::{Value, json};

use super::Gate;
use super::others::Sharing;
use super::switch::State;

/// The messages of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were passed on.
    pub forwarded: u64,
    /// Substitutes that were published.
    pub substituted: u64,
    /// Times that the first substitute after closing was refused, and a later one was accepted.
    pub late: u64,
    /// Messages that were not passed on, and for which nothing was published.
    pub dropped: u64,
    /// Messages that an open gate did not pass on, since they could not be evaluated.
    pub unread: u64,
    /// Messages and substitutes that the network refused, or that no consumer accepted in time.
    pub unpublished: u64,
    /// Messages that were neither passed on nor replaced, since the member of a group was not active, or had just taken
    /// over.
    pub withheld: u64,
    /// Those among them that came about a take-over of this member, or while the network returned none of its signs: no member
    /// may have passed them on.
    pub skipped: u64,
    /// Times that the gate closed, or opened again.
    pub switches: u64,
}

/// The state and the counts of a gate.
#[derive(Clone, Debug)]
pub struct GateFigures {
    /// The name of the topic.
    pub topic: String,
    /// The address that messages are passed on to.
    pub to: String,
    /// The domain of the address, on DDS and ROS 2.
    pub domain: Option<u32>,
    /// The state.
    pub state: State,
    /// Since when it has this state.
    pub since: Timestamp,
    /// The property that closed it, and how, while it is closed.
    pub cause: Option<(String, Verdict)>,
    /// Whether it publishes: in a group only in the active member.
    pub is_active: bool,
    /// Whether it is known to have a subscriber; on MQTT, whether it is connected.
    pub is_subscribed: bool,
    /// Whether no substitute was accepted since it closed, so that it is tried again.
    pub is_owing: bool,
    /// Number of other monitors that have the gate, too, as far as their heartbeats show.
    pub others: u64,
    /// The largest number of them at one time of the run.
    pub most_others: u64,
    /// Its messages.
    pub counts: Counts,
}

impl GateFigures {
    /// The figures of a gate, given the other monitors that have it, too.
    pub(super) fn of(gate: &Gate, is_active: bool, sharing: Sharing) -> GateFigures {
        let Sharing { domain, others, most_others } = sharing;
        let state = gate.switch.state();
        let cause = gate.cause.filter(|_| state == State::Closed);
        let cause = cause.and_then(|(index, verdict)| Some((gate.unless.get(index)?.name.clone(), verdict)));
        GateFigures {
            topic: gate.topic_name.clone(),
            to: gate.to.clone(),
            domain,
            state,
            since: gate.since,
            cause,
            is_active,
            is_subscribed: gate.publisher.as_ref().map_or(gate.was_subscribed, |own| own.is_matched()),
            is_owing: gate.owes,
            others,
            most_others,
            counts: gate.counts,
        }
    }

    /// Whether every message that passed the gate was published.
    pub fn is_complete(&self) -> bool {
        self.counts.unpublished == 0
    }

    /// Whether it passes messages on.
    #[cfg_attr(not(feature = "metrics"), allow(dead_code))]
    pub fn is_open(&self) -> bool {
        self.state == State::Open && self.is_active
    }

    /// One JSON object.
    pub fn json(&self) -> Value {
        let Counts {
            forwarded,
            substituted,
            late,
            dropped,
            unread,
            unpublished,
            withheld,
            skipped,
            switches,
        } = self.counts;
        json!({
            "topic": self.topic,
            "gate": self.to,
            "domain": self.domain,
            "state": self.state.as_str(),
            "since": self.since.as_nanos() as f64 / 1e9,
            "property": self.cause.as_ref().map(|(property, _)| property),
            "verdict": self.cause.as_ref().map(|(_, verdict)| verdict.as_str()),
            "subscribed": self.is_subscribed,
            "forwarded": forwarded,
            "substituted": substituted,
            "late": late,
            "owing": self.is_owing,
            "others": self.others,
            "most_others": self.most_others,
            "dropped": dropped,
            "unread": unread,
            "unpublished": unpublished,
            "active": self.is_active,
            "withheld": withheld,
            "skipped": skipped,
            "switches": switches,
        })
    }

    /// One sentence; `time` writes a time.
    pub fn sentence(&self, time: &mut dyn FnMut(Timestamp) -> String) -> String {
        let Counts {
            forwarded,
            substituted,
            late,
            dropped,
            unread,
            unpublished,
            withheld,
            skipped,
            switches,
        } = self.counts;
        let since = match self.state {
            State::Closed => format!(" since {}", time(self.since)),
            State::Waiting | State::Open => String::new(),
        };
        let mut text = format!(
            "gate {} to {}: {}{since}, {} passed on",
            self.topic,
            self.to,
            self.state_text(),
            counted(forwarded, "message", "messages")
        );
        for (count, what) in [
            (substituted, "substituted"),
            (late, "substituted late"),
            (dropped, "dropped"),
            (unread, "not passed on since they could not be evaluated"),
            (unpublished, "not published"),
            (withheld, "withheld in the group"),
            (skipped, "of these possibly passed on by no member"),
        ] {
            if count > 0 {
                text += &format!(", {} {what}", grouped(count));
            }
        }
        if self.is_owing {
            text += "; no substitute has reached a consumer since it closed";
        }
        if self.others > 0 {
            let monitors = counted(self.others, "other monitor has", "other monitors have");
            text += &format!("; {monitors} the gate, too");
        } else if self.most_others > 0 {
            let monitors = counted(self.most_others, "other monitor", "other monitors");
            text += &format!("; {monitors} had the gate, too");
        }
        if switches > 0 {
            text += &format!("; {}", counted(switches, "switch", "switches"));
        }
        text
    }

    /// The state in words, with its cause.
    fn state_text(&self) -> String {
        match (&self.cause, self.state) {
            (Some((property, verdict)), _) => format!("closed by '{property}' ({})", verdict.as_str()),
            (None, State::Waiting) => "never open".to_owned(),
            (None, state) => state.as_str().to_owned(),
        }
    }

    /// The state in diagnostics: a warning while the gate is closed.
    pub fn part(&self) -> Part {
        let Counts {
            forwarded,
            substituted,
            late,
            dropped,
            unread,
            unpublished,
            withheld,
            skipped,
            switches,
        } = self.counts;
        let since = format!("{:.3}", self.since.as_nanos() as f64 / 1e9);
        let figures = [
            ("forwarded", forwarded),
            ("substituted", substituted),
            ("late", late),
            ("dropped", dropped),
            ("unread", unread),
            ("unpublished", unpublished),
            ("withheld", withheld),
            ("skipped", skipped),
            ("switches", switches),
        ];
        Part {
            name: format!("gate {}", self.to),
            is_failing: self.state == State::Closed || unpublished > 0 || self.others > 0,
            has_lost: false,
            message: self.state_text(),
            values: [("since", since), ("others", self.others.to_string())]
                .into_iter()
                .chain(figures.map(|(name, value)| (name, value.to_string())))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_names_state_and_cause() {
        let mut figures = GateFigures {
            topic: "command".to_owned(),
            to: "zenoh:cmd".to_owned(),
            domain: None,
            state: State::Waiting,
            since: Timestamp::ZERO,
            cause: None,
            is_active: true,
            is_subscribed: true,
            is_owing: false,
            others: 0,
            most_others: 0,
            counts: Counts::default(),
        };
        let mut time = |time: Timestamp| format!("<{time}>");
        assert_eq!(
            figures.sentence(&mut time),
            "gate command to zenoh:cmd: never open, 0 messages passed on"
        );
        figures.state = State::Closed;
        figures.cause = Some(("too_close".to_owned(), Verdict::Violated));
        figures.counts = Counts { forwarded: 1, substituted: 1200, switches: 3, ..Counts::default() };
        assert_eq!(
            figures.sentence(&mut time),
            "gate command to zenoh:cmd: closed by 'too_close' (violated) since <0>, 1 message passed on, 1,200 \
             substituted; 3 switches"
        );
        assert!(figures.is_complete() && figures.part().is_failing);
        assert_eq!(figures.json()["property"], "too_close");
        (figures.others, figures.most_others) = (1, 2);
        assert!(figures.sentence(&mut time).ends_with("; 1 other monitor has the gate, too; 3 switches"));
        figures.others = 0;
        assert!(figures.sentence(&mut time).ends_with("; 2 other monitors had the gate, too; 3 switches"));
        (figures.counts.withheld, figures.counts.skipped) = (1100, 12);
        let sentence = figures.sentence(&mut time);
        assert!(
            sentence.contains(
                ", 1,100 withheld in the group, 12 of these possibly passed on by no member; 2 other"
            ),
            "{sentence}"
        );
        let json = figures.json();
        assert_eq!((&json["withheld"], &json["skipped"]), (&1100.into(), &12.into()));
        figures.state = State::Open;
        assert!(figures.is_open());
        figures.is_active = false;
        assert!(!figures.is_open(), "the gate of a standby passes nothing on");
    }
}
