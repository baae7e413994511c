//! Times that jump forward by years: messages from before a clock was set, such as those recorded before the first
//! message on `/clock`.

use rondel_event::{Block, Timestamp, TopicId};

use crate::report::notice::{Notice, SkipBy};
use crate::specification::input::{Input, TimeSource};
use crate::time::clock::NO_TIME;

/// The shortest jump, in nanoseconds: a year.
const YEAR: i64 = 365 * 86_400_000_000_000;

/// Looks for the first jump in the times of messages.
#[derive(Debug)]
pub(in crate::session) struct Jumps {
    /// The time of the last message.
    last: Option<Timestamp>,
    is_reported: bool,
    is_live: bool,
    /// Whether messages come in lines.
    pub(in crate::session) reads_lines: bool,
}

impl Jumps {
    pub(in crate::session) fn new(is_live: bool) -> Jumps {
        Jumps { last: None, is_reported: false, is_live, reads_lines: false }
    }

    /// Continues after another session.
    pub(in crate::session) fn inherit(&mut self, before: &Jumps) {
        (self.last, self.is_reported) = (before.last, before.is_reported);
    }

    /// Looks at the messages of a block. Returns a notice of the first jump.
    #[inline]
    pub(in crate::session) fn look(&mut self, block: &Block, inputs: &[Input]) -> Option<Notice> {
        let rows = block.len();
        if rows == 0 || self.is_reported {
            return None;
        }
        let (first, last) = (block.time(0), block.time(rows - 1));
        let before = self.last.replace(last).unwrap_or(first);
        if last.as_nanos().saturating_sub(before.as_nanos()) < YEAR {
            return None;
        }
        self.notice(block, before, inputs)
    }

    #[cold]
    fn notice(&mut self, block: &Block, mut before: Timestamp, inputs: &[Input]) -> Option<Notice> {
        for row in 0..block.len() {
            let time = block.time(row);
            if before != NO_TIME && time.as_nanos().saturating_sub(before.as_nanos()) >= YEAR {
                self.is_reported = true;
                let topic = block.topic(row)?;
                return Some(Notice::jump(topic, before, time, self.skip_by(topic, inputs)));
            }
            before = time;
        }
        None
    }

    /// The option that leaves out the messages before the jump.
    fn skip_by(&self, topic: TopicId, inputs: &[Input]) -> SkipBy {
        let source = inputs.get(topic.index()).map(|input| &input.time);
        match source {
            Some(TimeSource::Arrival) => SkipBy::OneClock,
            _ if self.is_live => SkipBy::Arrival,
            _ if self.reads_lines => SkipBy::Lines,
            Some(TimeSource::Field(_)) => SkipBy::FromRecorded,
            _ => SkipBy::From,
        }
    }
}
