//! The route of messages through a session: evaluated on arrival, aligned first, or aligned and handed back.

pub(super) mod aligned;
pub(super) mod direct;
pub(super) mod synchronized;

use std::borrow::Cow;

use rondel_decode::DecoderError;
use rondel_engine::Monitor;
use rondel_event::{Projection, TopicId};

use super::reading::decoders::TopicDecoder;
use crate::specification::input::{PartialDecoder, PublisherType};
use crate::time::clock::Ticks;
use aligned::Aligned;
use direct::Direct;
use synchronized::Synchronized;

/// The route of messages through a session.
pub(super) enum Route {
    /// Messages are evaluated on arrival.
    Direct(Box<Direct>),
    /// Messages are aligned first.
    Aligned(Box<Aligned>),
    /// Messages are aligned and handed back.
    Synchronized(Box<Synchronized>),
}

impl Route {
    /// The monitor with all of its state, a copy while workers have parts of it; `None` where messages are aligned.
    pub(super) fn whole(&self) -> Option<Cow<'_, Monitor>> {
        match self {
            Route::Direct(direct) => Some(direct.whole()),
            Route::Aligned(_) | Route::Synchronized(_) => None,
        }
    }

    /// The decoder of each topic; none where fields are not read.
    pub(super) fn decoders(&self) -> &[TopicDecoder] {
        match self {
            Route::Direct(direct) => direct.decoders(),
            Route::Aligned(aligned) => aligned.decoders(),
            Route::Synchronized(_) => &[],
        }
    }

    /// The fields into whose slots messages are decoded.
    pub(super) fn projections(&self) -> &[Projection] {
        match self {
            Route::Direct(direct) => direct.projections(),
            Route::Aligned(aligned) => aligned.projections(),
            Route::Synchronized(_) => &[],
        }
    }

    /// The decoder of each topic; none where fields are not read.
    pub(super) fn decoders_mut(&mut self) -> Option<&mut [TopicDecoder]> {
        match self {
            Route::Direct(direct) => Some(direct.decoders_mut()),
            Route::Aligned(aligned) => Some(aligned.decoders_mut()),
            Route::Synchronized(_) => None,
        }
    }

    /// Adds a further type of a topic.
    pub(super) fn add_type(
        &mut self,
        topic: TopicId,
        decoder: PartialDecoder,
        of: &PublisherType,
    ) -> Result<(), DecoderError> {
        if let Route::Synchronized(synchronized) = self {
            synchronized.add_writer(topic, of)?;
        }
        let decoders = match self {
            Route::Direct(direct) => direct.decoders_mut(),
            Route::Aligned(aligned) => aligned.decoders_mut(),
            Route::Synchronized(synchronized) => synchronized.decoders_mut(),
        };
        if let Some(of_topic) = decoders.get_mut(topic.index()) {
            of_topic.add(decoder);
        }
        Ok(())
    }

    /// Takes over the state that no snapshot contains. `origins` has for each topic its position in the route before;
    /// `is_same`: the programs are equal.
    pub(super) fn inherit(&mut self, before: &mut Route, origins: &[Option<usize>], is_same: bool) {
        match (self, before) {
            (Route::Direct(own), Route::Direct(before)) => own.inherit(before, origins, is_same),
            (Route::Aligned(own), Route::Aligned(before)) => own.inherit(before, origins, is_same),
            _ => {}
        }
    }

    /// Continues the clock of another route that has received the same messages; it begins at the ticks `now`, if any, if it
    /// has not begun there. An alignment waits for messages, and has the clock of the snapshot.
    pub(super) fn follow_clock(&mut self, before: &Route, now: Option<Ticks>) {
        if let (Route::Direct(own), Route::Direct(before)) = (self, before) {
            own.follow_clock(before, now);
        }
    }

    /// Continues the line counts of another route.
    pub(super) fn continue_lines(&mut self, before: &Route) {
        match (self, before) {
            (Route::Direct(own), Route::Direct(before)) => own.continue_lines(before),
            (Route::Aligned(own), Route::Aligned(before)) => own.continue_lines(before),
            _ => {}
        }
    }

    /// Whether the arrival times of messages matter.
    pub(super) fn measures_time(&self) -> bool {
        match self {
            Route::Direct(direct) => direct.needs_time(),
            Route::Aligned(_) | Route::Synchronized(_) => true,
        }
    }
}
