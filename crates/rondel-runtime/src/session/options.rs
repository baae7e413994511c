//! The options of a session.

use std::sync::Arc;

use crate::ordering::alignment::{Alignment, Policy};
use crate::specification::input::Input;
use crate::time::clock::{Clock, ManualClock, SystemClock};

/// The largest payload of a message by default, in bytes.
pub const LARGEST_MESSAGE: usize = 16 << 20;

/// The limit of instances by default in a deployment, in bytes: half of a container of 256 MiB.
pub const INSTANCE_BYTES: usize = 128 << 20;

/// Options of a session: reading, evaluation and reports.
#[derive(Clone)]
pub struct Options {
    /// Inputs of the topics, in the order of the specification; further topics use [`Input::default`].
    pub inputs: Vec<Input>,
    /// Alignment of messages; by default they are evaluated on arrival.
    pub alignment: Alignment,
    /// The verdicts that are reported.
    pub emit: Emit,
    /// Whether every violation is explained.
    pub explain: bool,
    /// Number of violations of each property whose explanation contains the signals before it; with
    /// [`Options::explain`].
    pub signals: u32,
    /// Whether the values of all fields are kept from the beginning on, for [`Session::courses`]; with
    /// [`Options::explain`].
    ///
    /// [`Session::courses`]: crate::Session::courses
    pub courses: bool,
    /// The name of the recording, which every report carries.
    pub recording: Option<String>,
    /// Time after the start, in nanoseconds of the clock's ticks, at which missing topics and fields are reported once
    /// as [notices](crate::Session::notices). The start is the first [`poll`](crate::Session::poll).
    pub missing_after: Option<i64>,
    /// Clock of the session, read where neither a message nor the caller gives the time.
    pub clock: Arc<dyn Clock>,
    /// The largest payload of a message in bytes; a larger one is refused.
    pub largest_message: usize,
    /// Limit of the instances of each slice, in bytes; messages with new parameters then do not count.
    pub instance_bytes: usize,
    /// Whether every verdict carries an id ([`Report::write_id`](crate::Report::write_id)).
    pub ids: bool,
    /// Whether ids leave the step out where all times are fields: sessions that began with different messages then give
    /// a verdict the same id, and two verdicts on one property with the same time have one id.
    pub ids_by_time: bool,
    /// Whether every message counts exactly once, also across [snapshots](crate::Session::snapshot): these contain
    /// the sequence numbers of publishers, and messages that came before are ignored.
    pub exactly: bool,
    /// Whether messages come live, so that the clock shows the time of day: times too far from it are then
    /// refused on every route ([`Alignment::ahead`], [`Alignment::behind`]).
    pub live: bool,
    /// Whether topics may start without the type that their encoding needs: their messages are undecodable until it is
    /// [resolved](crate::Session::resolve_type). Otherwise a session without such a type does not start.
    pub types_later: bool,
    /// Treatment of verdicts that depend on missed messages.
    pub blind: Blind,
    /// Reaction to times that start over, as in a looped recording.
    pub reset: Reset,
    /// Minimum length, in nanoseconds of the clock's ticks, of a pause of the session, if any property measures time:
    /// [`Session::alive`](crate::Session::alive) must then be called several times as often. Verdicts that depend on a
    /// pause are treated like those that depend on missed messages. Without it, no pause is detected.
    pub paused_after: Option<i64>,
    /// Whether a network drops messages without notice while the session does not run, as a broker does whose queue is
    /// full. Pauses are then detected whatever the properties measure, and reported as possible losses.
    pub drops_when_stopped: bool,
}

impl Options {
    /// Options for messages that the caller pushes with their times, each evaluated at once.
    pub fn immediate() -> Options {
        Options {
            // No message waits until it is certain that the times start over.
            reset: Reset { policy: ResetPolicy::Ignore, after: None },
            // The times of messages are the only ones: the day on which they are checked does not matter.
            clock: Arc::new(ManualClock::default()),
            ..Options::default()
        }
    }
}

/// Reaction to times of all topics that step back together: see [`Notice`](crate::Notice) `reset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// Reaction.
    pub policy: ResetPolicy,
    /// Minimum backward step of times, in nanoseconds. The default is [`Reset::AFTER`], or the maximum wait for
    /// messages if that is longer.
    pub after: Option<i64>,
}

/// Reaction when the times of all topics step back together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetPolicy {
    /// Restart the session, as with another recording. Pending verdicts are inconclusive.
    #[default]
    Restart,
    /// All verdicts are inconclusive from there on.
    Inconclusive,
    /// Messages are evaluated as late ones.
    Ignore,
}

impl Reset {
    /// Default minimum backward step of times, in nanoseconds.
    pub const AFTER: i64 = 1_000_000_000;
}

/// Treatment of verdicts that depend on messages that were lost, late, or sent while a network was disconnected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blind {
    /// They are inconclusive.
    #[default]
    Inconclusive,
    /// They stay as they are; losses are only reported.
    Report,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            inputs: Vec::new(),
            alignment: Alignment::new(Policy::Arrival),
            emit: Emit::Change,
            explain: false,
            signals: 0,
            courses: false,
            recording: None,
            missing_after: None,
            clock: Arc::new(SystemClock),
            largest_message: LARGEST_MESSAGE,
            instance_bytes: usize::MAX,
            ids: false,
            ids_by_time: false,
            exactly: false,
            live: false,
            types_later: false,
            blind: Blind::default(),
            reset: Reset::default(),
            paused_after: None,
            drops_when_stopped: false,
        }
    }
}

/// The verdicts that are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// A verdict that differs from the one before it, and the first.
    #[default]
    Change,
    /// A verdict for every event and property.
    Every,
    /// A verdict that becomes violated.
    Violations,
}

impl Emit {
    /// Whether this report of the engine is emitted.
    #[inline]
    pub(crate) fn wants(self, report: &rondel_engine::Report) -> bool {
        match self {
            Emit::Every => true,
            Emit::Change => report.changed,
            Emit::Violations => report.changed && report.verdict == rondel_event::Verdict::Violated,
        }
    }
}
