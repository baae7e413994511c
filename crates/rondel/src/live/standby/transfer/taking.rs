//! The transfer of a late member.

use super::{
    Answer, Head, LARGEST, LONGEST, MemberId, Nanos, PART, PAUSE, REPEAT, Request, Route, SILENT, WINDOW,
};

/// An action that an answer or the time causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins to note the messages that the state may contain. It is repeated until [`Taking::go_on`], as are the next two.
    Keep,
    /// Begins to keep copies of messages.
    Copy,
    /// Notes that the state must contain the messages so far.
    Mark,
    /// Sends a request.
    Send(Request),
    /// Joins this state.
    Join(Vec<u8>, Head),
    /// Ends without a state, for this reason; `true` if a further attempt may succeed.
    Fail(String, bool),
}

/// The stage of a transfer.
#[derive(Debug)]
enum Stage {
    /// Messages are not noted yet.
    Begin,
    /// The request to note identities was sent.
    Record,
    /// Identities are noted, until copies are made.
    Noted { until: Nanos },
    /// Copies are made, which the state must contain until then.
    Copying { until: Nanos },
    /// Copies are made, until the state is requested.
    Marked { until: Nanos },
    /// The state was requested.
    State,
    /// Parts are requested.
    Parts { head: Head, state: Vec<u8>, is_there: Vec<bool>, requested: Vec<u32> },
    /// The transfer has ended.
    Ended,
}

/// The transfer of a late member.
#[derive(Debug)]
pub struct Taking {
    route: Route,
    stage: Stage,
    began: Nanos,
    /// Time of the last request.
    requested: Nanos,
    /// Time of the last answer.
    answered: Nanos,
    /// The reason why the active member refuses, or this one waits, for the time being.
    waits_for: Option<String>,
}

impl Taking {
    /// Begins a transfer from an active member.
    pub fn new(now: Nanos, transfer: u64, own: MemberId, from: MemberId) -> Taking {
        let route = Route { transfer, from: own, to: from };
        let requested = now - REPEAT;
        Taking { route, stage: Stage::Begin, began: now, requested, answered: now, waits_for: None }
    }

    /// The way of requests.
    pub fn route(&self) -> Route {
        self.route
    }

    /// Whether the state is there or will not come.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// Looks at the clock.
    pub fn look(&mut self, now: Nanos) -> Option<Step> {
        if now - self.began >= LONGEST && !self.has_ended() {
            let why = self.waits_for.take().unwrap_or_else(|| "the transfer lasts too long".to_owned());
            return Some(self.fail(why, false));
        }
        let step = match &self.stage {
            Stage::Ended => return None,
            Stage::Noted { until } | Stage::Copying { until } | Stage::Marked { until } if now < *until => {
                return None;
            }
            Stage::Begin => return Some(Step::Keep),
            Stage::Noted { .. } => return Some(Step::Copy),
            Stage::Copying { .. } => return Some(Step::Mark),
            Stage::Marked { .. } => {
                self.stage = Stage::State;
                self.answered = now;
                Step::Send(Request::State)
            }
            _ if now - self.answered >= SILENT => {
                return Some(self.fail("it does not answer".to_owned(), true));
            }
            _ if now - self.requested < REPEAT => return None,
            Stage::Record => Step::Send(Request::Record),
            Stage::State => Step::Send(Request::State),
            Stage::Parts { .. } => return self.request_parts(now),
        };
        self.requested = now;
        Some(step)
    }

    /// Goes on after a step of this member.
    pub fn go_on(&mut self, now: Nanos) {
        self.waits_for = None;
        match &self.stage {
            Stage::Begin => {
                self.stage = Stage::Record;
                self.answered = now;
            }
            Stage::Noted { .. } => self.stage = Stage::Copying { until: now + PAUSE / 2 },
            Stage::Copying { .. } => self.stage = Stage::Marked { until: now + PAUSE / 2 },
            _ => {}
        }
    }

    /// Notes why a step of this member is not possible for the time being.
    pub fn wait(&mut self, why: &str) {
        self.waits_for = Some(why.to_owned());
    }

    /// Handles an answer; one of another transfer is ignored.
    pub fn receive(&mut self, now: Nanos, route: Route, answer: Answer) -> Option<Step> {
        if route.back() != self.route || self.has_ended() {
            return None;
        }
        self.answered = now;
        match answer {
            Answer::Refused(why, true) => {
                // A later answer may have come first.
                if matches!(self.stage, Stage::Record) {
                    self.waits_for = Some(why);
                }
                None
            }
            Answer::Refused(why, false) => Some(self.fail(why, false)),
            Answer::Ended => Some(self.fail("it has ended the transfer".to_owned(), true)),
            Answer::Recording if matches!(self.stage, Stage::Record) => {
                self.stage = Stage::Noted { until: now + PAUSE };
                self.waits_for = None;
                None
            }
            Answer::State(head) if matches!(self.stage, Stage::State) => self.begin_parts(now, head),
            Answer::Part(part, content) => self.take_part(now, part, &content),
            // Repeated.
            Answer::Recording | Answer::State(_) => None,
        }
    }

    fn begin_parts(&mut self, now: Nanos, head: Head) -> Option<Step> {
        let bytes = usize::try_from(head.bytes).ok().filter(|bytes| (1..=LARGEST).contains(bytes));
        let Some(bytes) = bytes else {
            return Some(self.fail(format!("its state has {} bytes", head.bytes), false));
        };
        let is_there = vec![false; bytes.div_ceil(PART)];
        self.stage = Stage::Parts { head, state: vec![0; bytes], is_there, requested: Vec::new() };
        self.request_parts(now)
    }

    /// Takes a part; one that was received before changes nothing.
    fn take_part(&mut self, now: Nanos, part: u32, content: &[u8]) -> Option<Step> {
        let Stage::Parts { state, is_there, requested, .. } = &mut self.stage else { return None };
        let place = part as usize;
        let is_new = is_there.get(place).is_some_and(|is_there| !is_there);
        let first = place.saturating_mul(PART);
        let room = state.get_mut(first..).filter(|_| is_new)?;
        let size = room.len().min(PART);
        if content.len() != size {
            return None;
        }
        room.get_mut(..size)?.copy_from_slice(content);
        *is_there.get_mut(place)? = true;
        requested.retain(|wanted| *wanted != part);
        if requested.is_empty() { self.request_parts(now) } else { None }
    }

    /// Requests the next parts, or joins the state once all are there.
    fn request_parts(&mut self, now: Nanos) -> Option<Step> {
        self.requested = now;
        let Stage::Parts { head, state, is_there, requested } = &mut self.stage else { return None };
        let missing = (0..).zip(&*is_there).filter(|(_, is_there)| !**is_there);
        *requested = missing.map(|(part, _)| part).take(WINDOW).collect();
        if !requested.is_empty() {
            return Some(Step::Send(Request::Parts(requested.clone())));
        }
        let (head, state) = (*head, std::mem::take(state));
        self.stage = Stage::Ended;
        Some(if Head::of(&state, head.step) == head {
            Step::Join(state, head)
        } else {
            Step::Fail("its state was altered on the way".to_owned(), true)
        })
    }

    fn fail(&mut self, why: String, may_succeed: bool) -> Step {
        self.stage = Stage::Ended;
        Step::Fail(why, may_succeed)
    }
}
