//! The state of a gate: when it closes, and when it opens again.

use rondel_runtime::Ticks;

/// Minimum time that the properties have to hold after one was inconclusive while the gate was closed, in nanoseconds:
/// messages that queued in a network meanwhile arrive in that time, and do not pass.
const SETTLE: Ticks = 500_000_000;

/// State of the properties of a gate after an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All hold, and so does the property that it waits for before it opens.
    Clear,
    /// All hold, but not the property that it waits for before it opens.
    Unsafe,
    /// One is inconclusive, which closes the gate.
    Blind,
    /// One is violated.
    Violated,
}

/// State of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was never open: no property had to hold for long enough yet.
    Waiting,
    /// Messages pass.
    Open,
    /// Messages do not pass.
    Closed,
}

impl State {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Open => "open",
            State::Closed => "closed",
        }
    }
}

/// Opens and closes a gate.
#[derive(Clone, Debug)]
pub struct Switch {
    state: State,
    /// Time that the properties have to hold before it opens, in nanoseconds.
    return_after: Ticks,
    /// Since when they have held, while it is not open.
    clear_since: Option<Ticks>,
    /// Whether a property was inconclusive since it closed.
    was_blind: bool,
}

impl Switch {
    /// A gate that was never open.
    pub fn new(return_after: Ticks) -> Switch {
        Switch { state: State::Waiting, return_after, clear_since: None, was_blind: false }
    }

    /// Begins again, as a gate that was never open.
    pub fn restart(&mut self) {
        *self = Switch::new(self.return_after);
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes the state of the properties after an evaluation. Returns whether it closes now. `now` is read only if that
    /// matters.
    pub fn look(&mut self, reading: Reading, now: impl FnOnce() -> Ticks) -> bool {
        match reading {
            Reading::Clear if self.state == State::Open => false,
            Reading::Clear => {
                self.clear_since.get_or_insert_with(now);
                false
            }
            Reading::Unsafe => {
                self.clear_since = None;
                false
            }
            Reading::Blind | Reading::Violated => {
                self.clear_since = None;
                let closes = match self.state {
                    State::Open => true,
                    // A run begins without verdicts.
                    State::Waiting => reading == Reading::Violated,
                    State::Closed => false,
                };
                if closes {
                    self.state = State::Closed;
                }
                self.was_blind |= reading == Reading::Blind && self.state == State::Closed;
                closes
            }
        }
    }

    /// Opens before a message if the properties have held for long enough. Returns whether it opens now.
    pub fn open(&mut self, now: impl FnOnce() -> Ticks) -> bool {
        let Some(since) = self.clear_since else { return false };
        let wait = if self.was_blind { self.return_after.max(SETTLE) } else { self.return_after };
        let opens = now().saturating_sub(since) >= wait;
        if opens {
            (self.state, self.clear_since, self.was_blind) = (State::Open, None, false);
        }
        opens
    }
}

#[cfg(test)]
mod tests {
    use rondel_testkit::Random;

    use super::*;

    /// An event in the life of a gate.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        Evaluated(Reading),
        Message,
    }

    /// Interval between two times of a case.
    const UNIT: Ticks = SETTLE / 5;

    /// Whether a message at the end of `before` passes, from the definition: the latest readings are clear since at least
    /// `return_after`, or since [`SETTLE`] if one was inconclusive while the gate was closed, or nothing closed the gate
    /// since the last message that passed.
    fn passes(before: &[(Ticks, Event)], now: Ticks, return_after: Ticks) -> bool {
        // The last message that passed, after which nothing may have closed the gate.
        let opened = (0..before.len()).rev().find(|&i| {
            matches!(before[i].1, Event::Message) && passes(&before[..i], before[i].0, return_after)
        });
        let since = &before[opened.unwrap_or(0)..];
        let is = |event: &Event, wanted: Reading| matches!(event, Event::Evaluated(own) if *own == wanted);
        // A run begins without verdicts, which is no reason to wait.
        let is_closed =
            |at: usize| opened.is_some() || since[..at].iter().any(|(_, event)| is(event, Reading::Violated));
        let was_blind = (0..since.len()).any(|at| is(&since[at].1, Reading::Blind) && is_closed(at));
        let wait = if was_blind { return_after.max(SETTLE) } else { return_after };
        let readings = before.iter().rev().filter_map(|(at, event)| match event {
            Event::Evaluated(reading) => Some((*at, *reading)),
            Event::Message => None,
        });
        let clear = readings.take_while(|(_, reading)| *reading == Reading::Clear);
        if clear.last().is_some_and(|(since, _)| now - since >= wait) {
            return true;
        }
        opened.is_some()
            && !since.iter().any(|(_, event)| is(event, Reading::Blind) || is(event, Reading::Violated))
    }

    #[test]
    fn messages_pass_by_the_definition() {
        let mut random = Random::new(17);
        for _ in 0..400 {
            let return_after = [0, UNIT, 8 * UNIT][random.below(3) as usize];
            let mut switch = Switch::new(return_after);
            let (mut now, mut before) = (0, Vec::new());
            for _ in 0..12 {
                now += random.below(4) as Ticks * UNIT;
                let event = match random.below(8) {
                    0..=3 => Event::Message,
                    4 | 5 => Event::Evaluated(Reading::Clear),
                    6 => Event::Evaluated([Reading::Unsafe, Reading::Blind][random.below(2) as usize]),
                    _ => Event::Evaluated(Reading::Violated),
                };
                match event {
                    Event::Evaluated(reading) => {
                        let was_open = switch.state() == State::Open;
                        let closes = switch.look(reading, || now);
                        assert!(!was_open || closes == (switch.state() == State::Closed));
                    }
                    Event::Message => {
                        switch.open(|| now);
                        let is_open = switch.state() == State::Open;
                        assert_eq!(is_open, passes(&before, now, return_after), "{before:?} at {now}");
                    }
                }
                before.push((now, event));
            }
        }
    }

    #[test]
    fn it_closes_once_and_opens_after_its_time() {
        let mut switch = Switch::new(10);
        assert!(!switch.look(Reading::Blind, || 0) && switch.state() == State::Waiting);
        assert!(!switch.look(Reading::Clear, || 5) && !switch.open(|| 14) && switch.open(|| 15));
        assert!(!switch.look(Reading::Unsafe, || 16), "it is open already");
        assert!(switch.look(Reading::Violated, || 17) && !switch.look(Reading::Violated, || 18));
        assert!(!switch.look(Reading::Clear, || 20) && !switch.look(Reading::Unsafe, || 25));
        assert!(!switch.look(Reading::Clear, || 30) && !switch.open(|| 39) && switch.open(|| 40));
    }

    #[test]
    fn it_settles_after_it_was_blind() {
        let mut switch = Switch::new(0);
        assert!(
            !switch.look(Reading::Blind, || 0) && !switch.look(Reading::Clear, || 1) && switch.open(|| 1)
        );
        assert!(switch.look(Reading::Blind, || 2) && !switch.look(Reading::Clear, || 3));
        assert!(!switch.open(|| 3) && !switch.open(|| SETTLE + 2) && switch.open(|| SETTLE + 3));
        assert!(switch.look(Reading::Violated, || SETTLE + 4) && !switch.look(Reading::Clear, || SETTLE + 4));
        assert!(switch.open(|| SETTLE + 4), "a violation is no reason to wait");
    }
}
