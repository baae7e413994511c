//! Messages and values of a session that were not evaluated.

use rondel_decode::{FirstMistyped, TooManyElements};
use rondel_engine::Monitor;
use rondel_event::{Projection, Slot, TopicId};

use crate::report::notice::{INEXACT, field_in, no_number, no_value_of};
use crate::session::reading::decoders::TopicDecoder;
use crate::session::{Route, Session};
use crate::statistics::omission::{FirstOmission, Omissions, Reason};
use crate::text::grouped;
use crate::time::clock::NO_TIME;

/// Messages and values that were not evaluated, except those that decoders, accounts and monitors count.
#[derive(Debug)]
pub(in crate::session) struct Omitted {
    messages: Omissions,
    /// The first value of another type on a topic in lines, whose number the decoder counts.
    first_mistyped: Vec<(TopicId, FirstOmission)>,
    /// Places in their recordings of the first values of another type in messages.
    places: Vec<(TopicId, String)>,
    /// For each topic the elements of arrays in lines that were left out, as they are null.
    left_out: Vec<u64>,
}

impl Omitted {
    pub(in crate::session) fn new(messages: Omissions, topics: usize) -> Omitted {
        Omitted { messages, first_mistyped: Vec::new(), places: Vec::new(), left_out: vec![0; topics] }
    }

    /// Adds `count` messages; `first` describes the first one, and is called only for that.
    pub(in crate::session) fn add(
        &mut self,
        reason: Reason,
        topic: Option<TopicId>,
        count: u64,
        first: impl FnOnce() -> Option<FirstOmission>,
    ) {
        self.messages.add(reason, topic, count, first);
    }

    /// Keeps the description of the first value of another type on a topic.
    pub(in crate::session) fn see_mistyped(&mut self, topic: TopicId, first: FirstOmission) {
        self.first_mistyped.push((topic, first));
    }

    /// Counts elements of arrays that were left out.
    pub(in crate::session) fn leave_out(&mut self, topic: TopicId, count: u64) {
        if let Some(all) = self.left_out.get_mut(topic.index()) {
            *all += count;
        }
    }

    /// For each topic the elements of arrays in lines that were left out, as they are null.
    pub(in crate::session) fn left_out(&self) -> &[u64] {
        &self.left_out
    }

    /// Begins a lap with the counts of a fresh session.
    pub(in crate::session) fn begin_lap(&mut self, fresh: Omitted) {
        self.messages = fresh.messages;
        self.places = fresh.places;
        self.left_out = fresh.left_out;
    }

    /// Takes over the omissions of another session.
    pub(in crate::session) fn inherit(&mut self, messages: Omissions) {
        self.messages = messages;
    }
}

impl Session {
    /// Returns the first value of another type in a message on a topic, where it is known: see
    /// [`Session::place_mistyped`].
    #[inline]
    pub fn first_mistyped(&self, topic: TopicId) -> Option<FirstMistyped> {
        self.route.decoders().get(topic.index())?.first_mistyped()
    }

    /// Keeps the place in a recording of the first value of another type in a message on a topic.
    pub fn place_mistyped(&mut self, topic: TopicId, place: String) {
        self.shared.omitted.places.push((topic, place));
    }

    /// The messages that were not evaluated, also those that other parts count.
    pub(in crate::session) fn omissions(&self) -> Omissions {
        self.omissions_of(self.route.whole().as_deref())
    }

    /// The same, given the [monitor](Route::whole) with all of its state.
    pub(in crate::session) fn omissions_of(&self, whole: Option<&Monitor>) -> Omissions {
        let mut omissions = self.own_omissions_of(whole);
        let accounts = self.shared.accounts.all();
        for (topic, (account, statistics)) in (0..).map(TopicId).zip(accounts.iter().zip(&self.shared.topics))
        {
            let first = account.lost_between.map(|(from, _)| from);
            let first = || Some(FirstOmission { time: first, detail: String::new() });
            omissions.add(Reason::Lost, Some(topic), account.lost + statistics.gaps, first);
        }
        // Events of a topic are counted as its messages.
        omissions.rename(|topic| self.events.declared_of(topic));
        omissions
    }

    /// The omissions without those that the accounts of topics have.
    pub(in crate::session) fn own_omissions(&self) -> Omissions {
        self.own_omissions_of(self.route.whole().as_deref())
    }

    fn own_omissions_of(&self, whole: Option<&Monitor>) -> Omissions {
        let Omitted { messages, first_mistyped, places, .. } = &self.shared.omitted;
        let mut omissions = messages.clone();
        let decoders = (0..).map(TopicId).zip(self.route.decoders()).zip(self.route.projections());
        for ((topic, decoder), projection) in decoders {
            let place = places.iter().find(|(of, _)| *of == topic).map(|(_, place)| &**place);
            add_decoded(&mut omissions, topic, decoder, projection, place);
        }
        match (&self.route, whole) {
            (Route::Direct(direct), Some(whole)) => direct.add_omissions(&mut omissions, whole),
            (Route::Aligned(aligned), _) => aligned.add_omissions(&mut omissions),
            (Route::Direct(_), None) | (Route::Synchronized(_), _) => {}
        }
        for (topic, first) in first_mistyped {
            omissions.describe(Reason::OtherFieldType, *topic, first);
        }
        omissions.rename(|topic| self.events.declared_of(topic));
        omissions
    }
}

/// Adds the values of a topic that its decoder could not read; `place` is that of the first one in a recording.
fn add_decoded(
    omissions: &mut Omissions,
    topic: TopicId,
    decoder: &TopicDecoder,
    projection: &Projection,
    place: Option<&str>,
) {
    let first = || {
        let (slot, detail) = misread_detail(decoder, projection)?;
        let known = decoder.first_mistyped().filter(|first| first.slot == slot);
        let Some(FirstMistyped { time, offset, .. }) = known else {
            return Some(FirstOmission { time: None, detail });
        };
        let detail = match (place, offset) {
            (Some(place), _) => format!("{detail} ({place})"),
            (None, Some(offset)) => format!("{detail} (byte {offset} of the message)"),
            (None, None) => detail,
        };
        Some(FirstOmission { time: Some(time).filter(|time| *time > NO_TIME), detail })
    };
    omissions.add(Reason::OtherFieldType, Some(topic), decoder.mistyped(), first);
    omissions.add(Reason::NotANumber, Some(topic), decoder.not_numbers(), || None);
    if let Some(TooManyElements { slot, messages, first, limit }) = decoder.too_many_elements() {
        omissions.add(Reason::OverLimit, Some(topic), messages, || {
            let path = &field_in(projection, slot, None)?.path;
            let (first, limit) = (grouped(first.into()), grouped(limit.into()));
            let detail = format!("`{path}` has {first} elements, and at most {limit} are read");
            Some(FirstOmission { time: None, detail })
        });
    }
}

/// Slot and description of the first value that a decoder could not read.
fn misread_detail(decoder: &TopicDecoder, projection: &Projection) -> Option<(Slot, String)> {
    let path = |slot| decoder.misread_field(projection, slot);
    Some(match (decoder.too_large(), decoder.other_type()) {
        (None, None) if decoder.no_number().is_none() => {
            let slot = decoder.mistyped_member().map(|(slot, _)| slot);
            let slot = slot.or_else(|| Some(decoder.first_mistyped()?.slot))?;
            (slot, no_value_of(path(slot)?))
        }
        (None, None) if decoder.no_number().is_some() => {
            let text = decoder.no_number()?;
            (text.slot(), format!("`{}` {}", path(text.slot())?.path, no_number(&text)))
        }
        (Some(slot), _) => {
            let field = path(slot)?;
            let why = if field.exact { INEXACT } else { "has an integer beyond 64 bits with a sign" };
            (slot, format!("`{}` {why}", field.path))
        }
        (None, slot) => {
            let slot = slot?;
            (slot, format!("`{}` has another type in messages of one publisher", path(slot)?.path))
        }
    })
}
