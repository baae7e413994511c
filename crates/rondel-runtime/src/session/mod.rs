//! The session: messages in, reports out.

mod events;
mod gaps;
mod messages;
pub(crate) mod options;
mod plan;
pub(crate) mod reading;
mod results;
mod route;
mod shared;
pub(crate) mod snapshot;
pub(crate) mod targets;
pub mod testing;
pub(crate) mod time;
pub(crate) mod values;

use rondel_event::{NameId, Origin, Timestamp, TypeIndex};
use rondel_spec::Spec;

use crate::report::{KeptReport, Report};
use crate::statistics::Summary;
use crate::time::clock::Clock;
use events::TopicEvents;
use gaps::blind::Outages;
use gaps::watch::Watch;
use options::Options;
pub use plan::SessionPlan;
use reading::numbers::PayloadNumbers;
use reading::sharing::Sharing;
use reading::types::ResolvedTypes;
use route::Route;
use shared::Shared;
pub use snapshot::edited::Edited;
use snapshot::saved::StartError;
pub use snapshot::succession::Succession;

/// The times and the origin of a message, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// When it was sent.
    pub source: Option<Timestamp>,
    /// When it arrived. Without it, the session reads its clock if it needs the time of arrival.
    pub arrival: Option<Timestamp>,
    /// Its publisher and its sequence number.
    pub origin: Option<Origin>,
    /// The name of its topic, where the address has parameters or the encoding reads it: see [`SessionPlan::names`].
    pub name: Option<NameId>,
    /// The type of the message among those of its topic: see [`SessionPlan::set_types`].
    pub of_type: TypeIndex,
}

impl Stamp {
    /// The stamp of a message that was sent at this time.
    pub fn at(time: Timestamp) -> Stamp {
        Stamp { source: Some(time), ..Stamp::default() }
    }

    #[inline]
    fn arrival(&self, clock: &dyn Clock) -> Timestamp {
        self.arrival.unwrap_or_else(|| clock.now())
    }
}

/// Messages in, reports out: decodes, aligns, evaluates.
///
/// A session is driven by its caller and does no I/O. [`push`](Session::push) takes a message,
/// [`flush`](Session::flush) evaluates all messages so far, [`poll`](Session::poll) and
/// [`advance`](Session::advance) let time pass, [`reports`](Session::reports) returns the verdicts.
pub struct Session {
    route: Route,
    shared: Shared,
    /// Plan of the session, and of further laps.
    plan: SessionPlan,
    watch: Option<Watch>,
    outages: Outages,
    types: ResolvedTypes,
    events: TopicEvents,
    /// Inspection of topics that many publishers may share, during their first messages.
    sharing: Option<Box<Sharing>>,
    /// The sequence numbers that messages have in their payloads.
    numbers: Option<Box<PayloadNumbers>>,
    /// The laps before the current one in numbers.
    before: Option<Box<Summary>>,
    edited: Option<Edited>,
    finished: bool,
}

impl Session {
    /// A session of a specification. Where several sessions share one, start them from a [`SessionPlan`].
    ///
    /// # Errors
    /// [`StartError::Compile`] when a property cannot be monitored.
    pub fn new(spec: &Spec, options: Options) -> Result<Session, StartError> {
        SessionPlan::new(spec, options)?.start()
    }

    /// Whether violations are explained. Of several events at one time, the cut into blocks may decide which ones an
    /// explanation shows, and lines that are decoded ahead are cut at other places.
    pub fn explains(&self) -> bool {
        self.plan.options.explain
    }

    /// Returns the size in bytes above which messages are refused.
    #[inline]
    pub fn largest_message(&self) -> usize {
        self.shared.largest_message
    }

    /// Whether verdicts that depend on missed messages are inconclusive.
    fn withholds(&self) -> bool {
        self.plan.withholds()
    }

    /// Whether there are reports to take.
    #[inline]
    pub fn has_reports(&self) -> bool {
        !self.shared.emitter.reports.is_empty()
    }

    /// Takes the reports since the last call, in order.
    pub fn reports(&mut self) -> impl Iterator<Item = Report<'_>> {
        self.shared.emitter.reports.take(&self.plan.properties)
    }

    /// Takes the reports since the last call, in order, as copies that outlast further calls.
    pub fn kept_reports(&mut self) -> impl Iterator<Item = KeptReport> {
        let properties = &self.plan.properties;
        let taken = self.shared.emitter.reports.take(properties);
        taken.map(move |report| KeptReport::new(&report, properties))
    }

    /// Takes reports of violations that [were muted](Report::because_of), and last, now that the other property is
    /// satisfied again: those that the last call of [`reports`](Session::reports) has found. They are the reports that
    /// were muted, without the name of the other property, for those who notify people; other readers have them already.
    pub fn unmuted(&mut self) -> impl Iterator<Item = Report<'_>> {
        self.shared.emitter.reports.take_unmuted(&self.plan.properties)
    }

    /// Takes the same reports as [`unmuted`](Session::unmuted), as copies that outlast further calls.
    pub fn kept_unmuted(&mut self) -> impl Iterator<Item = KeptReport> {
        let properties = &self.plan.properties;
        let taken = self.shared.emitter.reports.take_unmuted(properties);
        taken.map(move |report| KeptReport::new(&report, properties))
    }

    /// Takes the next message or set that a [synchronizer](SessionPlan::synchronizer) has released, as a JSON
    /// object: the time, and under the names of the topics the messages as received.
    pub fn released(&mut self) -> Option<&[u8]> {
        match &mut self.route {
            Route::Synchronized(synchronized) => synchronized.released(),
            _ => None,
        }
    }
}
