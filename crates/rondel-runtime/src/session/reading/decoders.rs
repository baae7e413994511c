//! The decoders of a topic: one for each type that its publishers have.

use std::sync::Arc;

use rondel_decode::cdr::WideForm;
use rondel_decode::sparkplug::Address;
use rondel_decode::{
    DecodeError, Decoder, DecoderError, Encoding, FirstMistyped, LeftOut, MessageType, NoNumber,
    TooManyElements,
};
use rondel_event::{Block, Field, Projection, Slot, Timestamp, TopicId, TypeIndex};

use super::defaults::{Defaults, LineDefaults};
use crate::report::notice::{Notice, field_in};
use crate::session::{SessionPlan, Stamp};
use crate::specification::input::{Input, PartialDecoder, PublisherType};
use crate::specification::names::TopicNames;
use crate::specification::recorded_names;

/// Maximum number of types of a topic.
pub(in crate::session) const TYPES: usize = 256;

/// The decoders of a topic, by the [`TypeIndex`] of messages.
pub(in crate::session) struct TopicDecoder {
    encoding: Encoding,
    first: TypeDecoder,
    further: Vec<TypeDecoder>,
    /// The names of the topic, where the decoder reads them.
    names: Option<Arc<TopicNames>>,
}

/// Decoder for messages of one type.
pub(in crate::session) struct TypeDecoder {
    decoder: Decoder,
    /// Slots of fields that are unknown, because the type does not have them as the program reads them.
    unknown: Box<[Slot]>,
    /// The slots among them of fields that have another type.
    other_type: Box<[Slot]>,
    /// Number of values of another type in such fields.
    mistyped: u64,
    /// Defaults of fields that a message leaves out.
    defaults: Option<Defaults>,
    /// Whether fields are written that a message does not have.
    completes: bool,
}

impl TypeDecoder {
    fn new(partial: PartialDecoder, defaults: Option<Defaults>) -> TypeDecoder {
        let PartialDecoder { decoder, left_out } = partial;
        let slots = |is_meant: fn(&LeftOut) -> bool| {
            left_out.iter().filter(|field| is_meant(field)).map(|field| field.slot).collect()
        };
        let unknown: Box<[Slot]> = slots(|field| !field.is_presence);
        let completes = !unknown.is_empty() || defaults.is_some();
        let other_type = slots(|field| !field.is_missing);
        TypeDecoder { decoder, unknown, other_type, mistyped: 0, defaults, completes }
    }

    #[inline(always)]
    fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), DecodeError> {
        self.decoder.decode(payload, time, block)?;
        if self.completes {
            self.complete(block);
        }
        Ok(())
    }

    /// Makes the fields unknown that the type of the message in the last row does not have, counts those of another type, and
    /// writes defaults for those that the message leaves out.
    #[cold]
    fn complete(&mut self, block: &mut Block) {
        let row = block.len() - 1;
        self.unknown.iter().for_each(|slot| block.set_invalid(*slot, row));
        self.mistyped += self.other_type.len() as u64;
        if let Some(defaults) = &self.defaults {
            defaults.fill(block, row);
        }
    }

    fn mistyped(&self) -> u64 {
        self.mistyped + self.decoder.mistyped()
    }
}

impl TopicDecoder {
    /// The decoder of a topic with one type.
    pub(in crate::session) fn new(
        encoding: Encoding,
        first: PartialDecoder,
        defaults: Option<Defaults>,
    ) -> TopicDecoder {
        TopicDecoder { encoding, first: TypeDecoder::new(first, defaults), further: Vec::new(), names: None }
    }

    /// Adds a further type; its index is one above the last.
    pub(in crate::session) fn add(&mut self, decoder: PartialDecoder) {
        let defaults = self.first.defaults.clone();
        self.further.push(TypeDecoder::new(decoder, defaults));
    }

    /// Lets the decoder read the names of the topic, which has these addresses.
    fn read_names(&mut self, names: Option<&Arc<TopicNames>>, addresses: &[String]) {
        self.names = names.cloned();
        if let Decoder::Sparkplug(decoder) = &mut self.first.decoder
            && addresses.iter().any(|address| Address::names_commands(address))
        {
            decoder.read_commands();
        }
    }

    /// Records the name of the message with this stamp, which [`TopicDecoder::decode`] takes next. Returns whether its
    /// time depends on that of its arrival even if a field holds it.
    #[inline]
    pub(in crate::session) fn begin(&mut self, stamp: &Stamp) -> bool {
        let Some(names) = &self.names else { return self.encoding.has_relative_times() };
        let decoder = match usize::from(stamp.of_type.0).checked_sub(1) {
            None => Some(&mut self.first),
            Some(further) => self.further.get_mut(further),
        };
        let Some(TypeDecoder { decoder: Decoder::Sparkplug(decoder), .. }) = decoder else { return false };
        decoder.set_name(stamp.name, |id| names.name(id));
        decoder.counts_at_arrival()
    }

    /// Decodes a message with this stamp into the block: see [`Decoder::decode`].
    #[inline]
    pub(in crate::session) fn decode(
        &mut self,
        stamp: &Stamp,
        payload: &[u8],
        time: Timestamp,
        block: &mut Block,
    ) -> Result<(), DecodeError> {
        let decoder = match usize::from(stamp.of_type.0).checked_sub(1) {
            None => &mut self.first,
            Some(further) => self.further.get_mut(further).ok_or(DecodeError::NoType(self.encoding))?,
        };
        decoder.decode(payload, time, block)
    }

    /// Forgets the short names that the publisher of this message has given to its values: one that gave others may have
    /// been lost.
    #[cold]
    pub(in crate::session) fn forget_aliases(&mut self, stamp: &Stamp) {
        if let (Some(names), Decoder::Sparkplug(decoder)) = (&self.names, &mut self.first.decoder) {
            decoder.set_name(stamp.name, |id| names.name(id));
            decoder.forget_aliases();
        }
    }

    /// Sets the first type, if it is not known yet.
    pub(in crate::session) fn resolve_type(
        &mut self,
        message_type: &MessageType,
    ) -> Result<(), DecoderError> {
        self.first.decoder.resolve(message_type)
    }

    /// Whether the decoder needs earlier messages to read later ones: births of Sparkplug.
    pub(in crate::session) fn keeps_births(&self) -> bool {
        matches!(self.first.decoder, Decoder::Sparkplug(_))
    }

    fn all(&self) -> impl Iterator<Item = &TypeDecoder> {
        std::iter::once(&self.first).chain(&self.further)
    }

    /// Returns how many values so far had another type than the program reads, or were out of its range.
    pub(in crate::session) fn mistyped(&self) -> u64 {
        self.all().map(TypeDecoder::mistyped).sum()
    }

    /// Returns how many numbers so far were NaN.
    pub(in crate::session) fn not_numbers(&self) -> u64 {
        self.all().map(|of| of.decoder.not_numbers()).sum()
    }

    /// Returns the number of array elements left out because they are NaN or null.
    pub(in crate::session) fn left_out(&self) -> u64 {
        self.all().map(|of| of.decoder.left_out()).sum()
    }

    /// Returns how many historical values were left out, and the names of the first ones.
    pub(in crate::session) fn historical(&self) -> (u64, Vec<&str>) {
        let mut found = (0, Vec::new());
        for of in self.all() {
            if let Decoder::Sparkplug(decoder) = &of.decoder {
                found.0 += decoder.historical();
                found.1.extend(decoder.historical_names());
            }
        }
        found
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, if there was one.
    pub(in crate::session) fn too_large(&self) -> Option<Slot> {
        self.all().find_map(|of| of.decoder.too_large())
    }

    /// Returns the first text so far that should be a number and is none.
    pub(in crate::session) fn no_number(&self) -> Option<NoNumber> {
        self.all().find_map(|of| of.decoder.no_number())
    }

    /// Returns the first value of another type so far, where it is known.
    pub(in crate::session) fn first_mistyped(&self) -> Option<FirstMistyped> {
        self.all().find_map(|of| of.decoder.first_mistyped())
    }

    /// Returns of the first value of another type in a table the column of that, and the field by its position.
    pub(in crate::session) fn mistyped_member(&self) -> Option<(Slot, u16)> {
        self.all().find_map(|of| of.decoder.mistyped_member())
    }

    /// Returns the field in a slot with a value that could not be read: of a table its own field.
    pub(in crate::session) fn misread_field<'p>(
        &self,
        projection: &'p Projection,
        slot: Slot,
    ) -> Option<&'p Field> {
        let member = self.mistyped_member().filter(|(of, _)| *of == slot);
        field_in(projection, slot, member.map(|(_, member)| member))
    }

    /// Returns the messages so far that have more elements than are read.
    pub(in crate::session) fn too_many_elements(&self) -> Option<TooManyElements> {
        let all = self.all().filter_map(|of| of.decoder.too_many_elements());
        all.reduce(|first, more| TooManyElements { messages: first.messages + more.messages, ..first })
    }

    /// Returns in how many messages so far the form of wide strings was a guess, and a form that was taken.
    pub(in crate::session) fn guessed_wide(&self) -> Option<(u64, WideForm)> {
        let all = self.all().filter_map(|of| of.decoder.guessed_wide());
        all.reduce(|(count, _), (more, form)| (count + more, form))
    }

    /// Returns the slot of a field that has another type in messages so far.
    pub(in crate::session) fn other_type(&self) -> Option<Slot> {
        self.all().find(|of| of.mistyped > 0)?.other_type.first().copied()
    }
}

impl SessionPlan {
    /// Sets the types that publishers of a topic have, for sessions from here on. Returns the index of each one, or why
    /// messages of it cannot be read.
    ///
    /// The first type is one that has all fields that the specification reads. If there is none, every field must be in
    /// one of the types. A field that a type does not have is unknown in its messages; one of another type is counted.
    pub fn set_types(
        &mut self,
        topic: TopicId,
        types: Vec<PublisherType>,
    ) -> Vec<Result<TypeIndex, DecoderError>> {
        let whole: Vec<Result<(), DecoderError>> =
            types.iter().map(|of| self.decoder_of(topic, of).map(drop)).collect();
        let partial: Vec<Result<Vec<LeftOut>, DecoderError>> =
            types.iter().map(|of| self.known_fields_of(topic, of).map(|of| of.left_out)).collect();
        let first = match whole.iter().position(Result::is_ok) {
            Some(first) => Some(first),
            None if is_each_in_one(&partial) => partial.iter().position(Result::is_ok),
            None => None,
        };
        let Some((first, input)) = first.zip(self.options.inputs.get_mut(topic.index())) else {
            return whole.into_iter().map(|of| of.map(|()| TypeIndex::default())).collect();
        };
        input.further.clear();
        let mut indices = Vec::new();
        for (at, (of, partial)) in types.into_iter().zip(partial).enumerate() {
            if at == first {
                (input.encoding, input.message_type) = (of.encoding, of.message_type);
                input.is_partial = whole[first].is_err();
                indices.push(Ok(TypeIndex::default()));
                continue;
            }
            indices.push(partial.and_then(|_| {
                let index = TypeIndex(input.further.len() as u16 + 1);
                if input.further.len() + 1 >= TYPES {
                    return Err(DecoderError::NoType(of.encoding));
                }
                input.further.push(of);
                Ok(index)
            }));
        }
        self.read_names(topic);
        indices
    }

    fn decoder_of(&self, topic: TopicId, of: &PublisherType) -> Result<Decoder, DecoderError> {
        let (input, fields) = self.read_as(topic, of);
        input.decoder(topic, &self.fields_in(topic, &input, &fields))
    }

    fn known_fields_of(&self, topic: TopicId, of: &PublisherType) -> Result<PartialDecoder, DecoderError> {
        let (input, fields) = self.read_as(topic, of);
        input.known_fields(topic, &self.fields_in(topic, &input, &fields))
    }

    /// Input and fields of messages of a type.
    fn read_as(&self, topic: TopicId, of: &PublisherType) -> (Input, Projection) {
        let mut input = self.input(topic).cloned().unwrap_or_default();
        (input.encoding, input.message_type) = (of.encoding, of.message_type.clone());
        let projections = self.specification.program.projections();
        (input, projections.get(topic.index()).cloned().unwrap_or_default())
    }

    /// The defaults of fields that messages of a topic leave out, if they have some.
    fn defaults(&self, topic: TopicId, input: &Input, fields: &Projection) -> Option<Defaults> {
        let names = self.names(topic);
        Defaults::of(input, fields, |path| names.is_some_and(|names| names.has(path)))
    }

    /// Defaults of fields that messages in lines leave out.
    pub(in crate::session) fn line_defaults(&self, projections: &[Projection]) -> LineDefaults {
        let topics = (0..).map(TopicId).zip(&self.options.inputs).zip(projections);
        LineDefaults::new(topics.map(|((topic, input), fields)| (topic, self.defaults(topic, input, fields))))
    }

    /// The decoder of a topic for these fields, with those of all types that are known.
    pub(in crate::session) fn topic_decoder(
        &self,
        topic: TopicId,
        input: &Input,
        fields: &Projection,
    ) -> Result<TopicDecoder, DecoderError> {
        let own = self.fields_in(topic, input, fields);
        let first = match input.is_partial {
            true => input.known_fields(topic, &own)?,
            false if self.options.types_later && input.awaits_type() => {
                let (time, unit) = (input.time.field(), input.time_unit);
                PartialDecoder::whole(Decoder::awaiting(input.encoding, topic, &own, time, unit))
            }
            false => PartialDecoder::whole(input.decoder(topic, &own)?),
        };
        let mut decoder = TopicDecoder::new(input.encoding, first, self.defaults(topic, input, fields));
        if let Some(of) = self.specification.spec.topics.get(topic.index())
            && input.encoding.reads_name()
        {
            decoder.read_names(self.names(topic), &recorded_names(of, input));
        }
        for of in &input.further {
            decoder.add(self.further(topic, input, of, fields)?);
        }
        Ok(decoder)
    }

    /// The decoder for messages of a further type, and the fields that it leaves out.
    pub(in crate::session) fn further(
        &self,
        topic: TopicId,
        input: &Input,
        of: &PublisherType,
        fields: &Projection,
    ) -> Result<PartialDecoder, DecoderError> {
        let PublisherType { encoding, message_type, .. } = of.clone();
        let input = Input { encoding, message_type, ..input.clone() };
        input.known_fields(topic, &self.fields_in(topic, &input, fields))
    }

    /// Notices of the differences between the types of each topic.
    pub(in crate::session) fn type_notices(&self) -> impl Iterator<Item = Notice> {
        (0..).map(TopicId).zip(&self.options.inputs).flat_map(|(topic, input)| {
            input.further.iter().filter_map(move |of| Notice::other_type(topic, input, of))
        })
    }
}

/// Whether each field that some types leave out is read from another one.
fn is_each_in_one(types: &[Result<Vec<LeftOut>, DecoderError>]) -> bool {
    let known = || types.iter().filter_map(|of| of.as_ref().ok());
    let is_left_out = |slot: Slot, of: &Vec<LeftOut>| of.iter().any(|field| field.slot == slot);
    known().count() > 1 && known().flatten().all(|field| known().any(|of| !is_left_out(field.slot, of)))
}
