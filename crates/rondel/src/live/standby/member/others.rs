//! The other members that a member knows, and a limit of the lines about them.

use std::collections::BTreeMap;

use rondel_runtime::text::counted;

use super::in_ms;
use crate::live::standby::election::{MemberId, Nanos};
use crate::live::standby::message::About;

/// Number of members that are known at a time.
pub(super) const MOST: usize = 32;
/// Time without a sign after which another member may replace one, in nanoseconds. The longest lease is as long.
const FORGOTTEN: Nanos = 60_000_000_000;
/// Interval with a limited number of lines on whether a member stands by, in nanoseconds.
const INTERVAL: Nanos = 10_000_000_000;
/// Number of these lines: a member that comes and goes once is shown at once.
const LINES: u32 = 2;
/// Time by which the clock of another member is ahead when a member warns of it.
const AHEAD: Nanos = 1_000_000_000;

/// Another member.
struct Other {
    about: About,
    /// Time of its last sign.
    received: Nanos,
    /// Whether it stands by.
    is_there: bool,
    /// The same as the last line has it.
    is_shown: bool,
    /// Number of changes since then.
    changes: u64,
    /// Begin of the interval, and the number of lines in it.
    interval: (Nanos, u32),
}

/// The other members.
#[derive(Default)]
pub(super) struct Others {
    known: BTreeMap<MemberId, Other>,
    has_refused: bool,
}

/// The sender of a sign among the known members.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It was known.
    Known,
    /// It is known from now on.
    New,
    /// It is not known, as there are too many others; for the first time.
    Refused,
    /// The same, again.
    RefusedAgain,
}

/// A line on a member that comes or goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Whether the member is gone though its process has not ended in order.
    pub(super) is_warning: bool,
    /// The line.
    pub(super) text: String,
}

impl Others {
    /// Facts about a member.
    pub(super) fn get(&self, id: MemberId) -> Option<About> {
        self.known.get(&id).map(|other| other.about)
    }

    /// The number of the process of a member; 0 if it is not known.
    pub(super) fn process(&self, id: MemberId) -> u32 {
        self.known.get(&id).map_or(0, |other| other.about.process)
    }

    /// Notes a sign of a member.
    pub(super) fn note(&mut self, now: Nanos, id: MemberId, about: About) -> Noted {
        if let Some(other) = self.known.get_mut(&id) {
            (other.about, other.received) = (about, now);
            return Noted::Known;
        }
        if self.known.len() >= MOST {
            self.known.retain(|_, other| now - other.received < FORGOTTEN);
        }
        if self.known.len() >= MOST {
            let again = std::mem::replace(&mut self.has_refused, true);
            return if again { Noted::RefusedAgain } else { Noted::Refused };
        }
        let (is_there, is_shown, changes, interval) = (false, false, 0, (now, 0));
        self.known.insert(id, Other { about, received: now, is_there, is_shown, changes, interval });
        Noted::New
    }

    /// Forgets which members stand by, so that they are shown again.
    pub(super) fn forget_standbys(&mut self) {
        for other in self.known.values_mut() {
            (other.is_there, other.is_shown, other.changes) = (false, false, 0);
        }
    }

    /// Returns lines on the members that came or went, given those that stand by now, and which ones have ended in order.
    /// Lines beyond the limit are left out, and counted in the next one of the member.
    pub(super) fn lines(
        &mut self,
        now: Nanos,
        standbys: &[MemberId],
        has_ended: impl Fn(MemberId) -> bool,
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        for (id, other) in &mut self.known {
            let is_there = standbys.contains(id);
            if is_there != other.is_there {
                other.is_there = is_there;
                other.changes += 1;
            }
            if is_there == other.is_shown {
                continue;
            }
            if now - other.interval.0 >= INTERVAL {
                other.interval = (now, 0);
            }
            if other.interval.1 >= LINES {
                continue;
            }
            other.interval.1 += 1;
            other.is_shown = is_there;
            let left_out = std::mem::take(&mut other.changes).saturating_sub(1);
            let left_out = match left_out {
                0 => String::new(),
                count => format!(" ({} left out)", counted(count, "change", "changes")),
            };
            let ended = !is_there && has_ended(*id);
            let text = match is_there {
                true => format!("member {id} (process {}) stands by{left_out}", other.about.process),
                false if ended => format!("member {id} has ended{left_out}"),
                false => format!("member {id} no longer stands by{left_out}"),
            };
            lines.push(Line { is_warning: !is_there && !ended, text });
        }
        lines
    }
}

/// Returns warnings about settings of a member that are not those of this one, and about its clock, which is `ahead`.
pub(super) fn differences(own: &About, id: MemberId, other: &About, ahead: Nanos) -> Vec<String> {
    let mut warnings = Vec::new();
    if other.specification != own.specification {
        warnings.push(format!(
            "member {id} checks another specification: after a take-over, verdicts differ, also in their ids"
        ));
    }
    if other.lease != own.lease {
        let (of_other, of_own) = (in_ms(other.lease), in_ms(own.lease));
        warnings.push(format!(
            "member {id} has a `lease` of {of_other} and this one of {of_own}: use one for all. Until then the longer one \
             decides when either of them is silent"
        ));
    }
    if ahead >= AHEAD {
        let seconds = ahead as f64 / 1e9;
        warnings.push(format!(
            "the clock of member {id} is {seconds:.1} s ahead of that of this one: synchronize them. Until then, verdicts about \
             times of arrival differ after a take-over, also in their ids"
        ));
    }
    // Earlier releases do not send it.
    if other.gates.is_some() && other.gates != own.gates {
        warnings.push(format!(
            "member {id} has other `gates`: after a take-over, other messages pass, or none; use the same for all"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: About = About {
        process: 7,
        sent: None,
        since: 0,
        first: None,
        stood_still: None,
        active_for: None,
        taken: None,
        specification: 1,
        lease: 30_000_000,
        gates: Some(2),
    };
    const ID: MemberId = MemberId(0x2a);
    const FLAP: Nanos = 35_000_000;

    #[test]
    fn member_that_comes_and_goes_once_is_shown_at_once() {
        let mut others = Others::default();
        assert_eq!(others.note(0, ID, ABOUT), Noted::New);
        assert_eq!(others.note(1, ID, ABOUT), Noted::Known);
        let line = |is_warning, text: &str| Line { is_warning, text: text.to_owned() };
        let came = line(false, "member 000000000000002a (process 7) stands by");
        assert_eq!(others.lines(2, &[ID], |_| false), [came]);
        assert!(others.lines(3, &[ID], |_| false).is_empty());
        let gone = line(true, "member 000000000000002a no longer stands by");
        assert_eq!(others.lines(4, &[], |_| false), [gone]);
        others.forget_standbys();
        assert!(others.lines(5, &[], |_| false).is_empty());
        // One that ends in order is no reason for a warning.
        let mut others = Others::default();
        others.note(0, ID, ABOUT);
        others.lines(2, &[ID], |_| false);
        assert_eq!(others.lines(4, &[], |id| id == ID), [line(false, "member 000000000000002a has ended")]);
    }

    #[test]
    fn lines_on_a_member_that_flaps_are_limited() {
        let mut others = Others::default();
        others.note(0, ID, ABOUT);
        let mut lines = Vec::new();
        for number in 1..=600 {
            let standbys = [ID];
            let standbys = if number % 2 == 1 { &standbys[..] } else { &[] };
            lines.extend(others.lines(number * FLAP, standbys, |_| false));
        }
        assert_eq!(lines.len(), 6, "two in ten seconds: {lines:?}");
        assert!(lines[2].text.contains(" changes left out)"), "{lines:?}");
        // A deferred line follows once the member stays.
        let later = others.lines(700 * FLAP + INTERVAL, &[ID], |_| false);
        assert!(later.len() == 1 && later[0].text.contains(") stands by"), "{later:?}");
    }

    #[test]
    fn number_of_known_members_is_limited() {
        let mut others = Others::default();
        let noted: Vec<Noted> = (0..200).map(|id| others.note(1, MemberId(id), ABOUT)).collect();
        let count = |of: Noted| noted.iter().filter(|noted| **noted == of).count();
        assert_eq!((count(Noted::New), count(Noted::Refused), count(Noted::RefusedAgain)), (MOST, 1, 167));
        assert_eq!((others.process(MemberId(3)), others.process(MemberId(150))), (7, 0));
        assert_eq!(
            others.note(1 + FORGOTTEN, MemberId(150), ABOUT),
            Noted::New,
            "the silent ones are forgotten"
        );
        assert!(others.get(MemberId(150)).is_some() && others.get(MemberId(3)).is_none());
    }

    #[test]
    fn members_with_other_settings_are_found() {
        let of = |other: About| differences(&ABOUT, ID, &other, 0).join("\n");
        assert_eq!(of(About { process: 8, since: 5, ..ABOUT }), "");
        assert_eq!(of(About { gates: None, ..ABOUT }), "", "an earlier release");
        assert!(of(About { gates: Some(0), ..ABOUT }).contains("has other `gates`"));
        assert!(of(About { specification: 2, ..ABOUT }).contains("checks another specification"));
        assert!(
            of(About { lease: 300_000_000, ..ABOUT }).contains("`lease` of 300 ms and this one of 30 ms")
        );
        let clock = |ahead| differences(&ABOUT, ID, &ABOUT, ahead).join("\n");
        assert_eq!(clock(AHEAD - 1), "");
        assert!(clock(5_000_000_000).contains("is 5.0 s ahead of that of this one"));
    }
}
