//! Types of messages that are resolved, or added, during the session.

use std::sync::Arc;

use rondel_decode::json::JsonForm;
use rondel_decode::{DecoderError, MessageType, MessageWriter};
use rondel_event::{Projection, TopicId, TypeIndex};

use super::decoders::{TYPES, TopicDecoder};
use crate::report::notice::{Misread, Notice};
use crate::session::{Route, Session};
use crate::specification::input::PublisherType;

/// Writer of the parameters of instances in messages of a type.
pub(in crate::session) fn key_writer(message_type: &Arc<MessageType>) -> Option<MessageWriter> {
    let of = Some(Arc::clone(message_type));
    MessageWriter::new(message_type.encoding(), of, JsonForm::EXACT).ok()
}

/// Writer of messages of a type as JSON, for inspection.
pub(in crate::session) fn value_writer(message_type: &Arc<MessageType>) -> Option<MessageWriter> {
    let form = JsonForm { names: false, infinite: false };
    MessageWriter::new(message_type.encoding(), Some(Arc::clone(message_type)), form).ok()
}

/// Types resolved during the session, and the topics about whose types a notice was emitted.
#[derive(Default)]
pub(in crate::session) struct ResolvedTypes {
    resolved: Vec<(TopicId, Arc<MessageType>)>,
    /// Whether values of another type were reported, for each topic.
    mistyped: Vec<bool>,
    /// Whether guesses of the form of wide strings were reported, for each topic.
    guessed: Vec<bool>,
}

impl ResolvedTypes {
    /// Takes over the types that another session has resolved. `origins` has for each topic its position there.
    pub(in crate::session) fn inherit(&mut self, before: &ResolvedTypes, origins: &[Option<usize>]) {
        let here = |topic: TopicId| {
            let at = origins.iter().position(|origin| *origin == Some(topic.index()))?;
            Some(TopicId(at as u32))
        };
        let resolved = before.resolved.iter();
        self.resolved = resolved.filter_map(|(topic, of)| Some((here(*topic)?, Arc::clone(of)))).collect();
        let flags = |known: &[bool]| {
            let flag = |origin: &Option<usize>| origin.and_then(|at| known.get(at).copied()).unwrap_or(false);
            origins.iter().map(flag).collect::<Vec<bool>>()
        };
        (self.mistyped, self.guessed) = (flags(&before.mistyped), flags(&before.guessed));
    }

    /// The type of a topic that was resolved last.
    pub(in crate::session) fn of(&self, topic: TopicId) -> Option<&Arc<MessageType>> {
        self.resolved.iter().rev().find(|(resolved, _)| *resolved == topic).map(|(_, of)| of)
    }

    /// Begins a lap, whose decoders resolve the types again.
    pub(in crate::session) fn begin_lap(&mut self, route: &mut Route) {
        for (topic, of) in &self.resolved {
            let decoders = route.decoders_mut();
            if let Some(decoder) = decoders.and_then(|all| all.get_mut(topic.index())) {
                // The lap before could read it.
                let _ = decoder.resolve_type(of);
            }
        }
        self.mistyped.clear();
    }

    /// Notices of topics with values of another type than the specification reads, once for each topic.
    pub(in crate::session) fn mistyped_notices(&mut self, route: &Route) -> Vec<Notice> {
        let mut notices = Vec::new();
        let decoders = route.decoders();
        self.mistyped.resize(decoders.len(), false);
        for ((topic, decoder), is_reported) in (0..).map(TopicId).zip(decoders).zip(&mut self.mistyped) {
            let count = decoder.mistyped();
            if count > 0 && !std::mem::replace(is_reported, true) {
                let projection = route.projections().get(topic.index());
                notices.push(Notice::mistyped(topic, count, first_misread(decoder, projection)));
            }
        }
        notices
    }
}

/// The first value that a decoder could not read as what the specification reads, if its field is known.
fn first_misread<'p>(decoder: &TopicDecoder, projection: Option<&'p Projection>) -> Option<Misread<'p>> {
    let field_of = |slot| decoder.misread_field(projection?, slot);
    let large = decoder.too_large().and_then(field_of).map(|field| match field.exact {
        true => Misread::Inexact(&field.path),
        false => Misread::TooLarge(&field.path),
    });
    let text = || {
        let text = decoder.no_number()?;
        Some(Misread::Text(&field_of(text.slot())?.path, text))
    };
    let element = || Some(Misread::Element(field_of(decoder.mistyped_member()?.0)?));
    let field = || Some(Misread::Field(field_of(decoder.first_mistyped()?.slot)?));
    large.or_else(text).or_else(element).or_else(field)
}

impl Session {
    /// Sets the type of the messages of a topic that was unknown when the session began (see [`Options::types_later`](crate::Options::types_later)):
    /// they are read from then on.
    ///
    /// # Errors
    /// A type of another encoding, and the fields that the type does not have. The topic then stays unread.
    pub fn resolve_type(
        &mut self,
        topic: TopicId,
        message_type: &Arc<MessageType>,
    ) -> Result<(), DecoderError> {
        let decoders = match &mut self.route {
            Route::Direct(direct) => direct.decoders_mut(),
            Route::Aligned(aligned) => aligned.decoders_mut(),
            Route::Synchronized(synchronized) => return synchronized.resolve_type(topic, message_type),
        };
        if let Some(decoder) = decoders.get_mut(topic.index()) {
            decoder.resolve_type(message_type)?;
        }
        self.types.resolved.push((topic, Arc::clone(message_type)));
        if let Some(sharing) = &mut self.sharing {
            sharing.set_writer(topic, value_writer(message_type));
        }
        self.events.set_type(topic, message_type);
        Ok(())
    }

    /// Adds a further type that publishers of a topic have, beside the one known at the start or
    /// [resolved](Session::resolve_type) later. Messages of it are pushed with the returned index; a type that was
    /// added before keeps its own.
    ///
    /// # Errors
    /// As [`SessionPlan::set_types`](crate::SessionPlan::set_types); messages of the type are then to be counted with
    /// [`push_undecodable`](Session::push_undecodable).
    pub fn add_type(&mut self, topic: TopicId, of: PublisherType) -> Result<TypeIndex, DecoderError> {
        let mut input = self.plan.input(topic).cloned().unwrap_or_default();
        if let Some((_, first)) = self.types.resolved.iter().find(|(resolved, _)| *resolved == topic) {
            input.message_type = Some(Arc::clone(first));
        }
        let is_same = |known: &PublisherType| {
            known
                .message_type
                .as_ref()
                .zip(of.message_type.as_ref())
                .is_some_and(|(known, of)| known.is_same(of))
        };
        if let Some(known) = input.further.iter().position(is_same) {
            return Ok(TypeIndex(known as u16 + 1));
        }
        let index = input.further.len() + 1;
        if index >= TYPES || input.awaits_type() {
            return Err(DecoderError::NoType(of.encoding));
        }
        let fields = self.route.projections().get(topic.index()).cloned().unwrap_or_default();
        let decoder = self.plan.further(topic, &input, &of, &fields)?;
        self.route.add_type(topic, decoder, &of)?;
        if let Some(notice) = Notice::other_type(topic, &input, &of) {
            self.shared.notice(notice);
        }
        if let Some(input) = self.plan.options.inputs.get_mut(topic.index()) {
            input.further.push(of);
        }
        Ok(TypeIndex(index as u16))
    }

    /// Emits notices of the topics whose form of wide strings was guessed, each once.
    pub(in crate::session) fn note_guesses(&mut self) {
        let decoders = self.route.decoders();
        let guessed = &mut self.types.guessed;
        guessed.resize(decoders.len(), false);
        for ((topic, decoder), is_reported) in (0..).map(TopicId).zip(decoders).zip(guessed) {
            if let Some((count, form)) = decoder.guessed_wide()
                && !std::mem::replace(is_reported, true)
            {
                self.shared.notice(Notice::guessed_wide(topic, count, form));
            }
        }
    }
}
