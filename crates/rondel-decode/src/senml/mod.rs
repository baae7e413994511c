//! SenML (RFC 8428): lists of measurements in JSON or CBOR; the first byte selects the format.
//!
//! A message has these members:
//!
//! | member | value |
//! |---|---|
//! | `records` | the resolved records: `n` with the base name, `u` or the base unit, `t` with the base time, `ut`, `s` with the base sum, and `v` with the base value, `vs`, `vb` or `vd` |
//! | `time` | the latest `t` |
//!
//! Records with base fields only are no elements. A time below 2^28 s is relative to the time of the message. Times
//! are read as `time`, or as a number of seconds.
//!
//! The pack becomes CBOR, and a [`BinaryDecoder`] reads that. A pack in which a name comes with several times holds a series:
//! [`split`] makes a pack of the records of each time.

mod fault;
mod record;

use rondel_event::{Block, Path, Projection, Read, Segment, TimeUnit, Timestamp, TopicId, ValueType};

use crate::binary::{self, BinaryDecoder, BinaryFormat, put};
use crate::cdr::PlanError;
use crate::error::{Fault, MessageError, MessageErrorKind, Parsed};
use crate::json::JsonForm;
use crate::message::Text;
use crate::sink::Refused;
pub use fault::PackFault;
use record::{Records, Times, resolve};

/// The members of a message.
const MEMBERS: [&str; 2] = ["records", "time"];

/// Decodes the SenML payloads of one topic.
#[derive(Clone, Debug)]
pub struct SenmlDecoder {
    inner: BinaryDecoder,
    times: Times,
    records: Records,
    scratch: Vec<u8>,
}

impl Times {
    /// Returns the representation of times that the fields of `projection` need.
    fn read(projection: &Projection, time: Option<&Path>) -> Times {
        let is_time =
            |path: &Path| matches!(path.0.last(), Some(Segment::Key(key)) if matches!(&**key, "t" | "time"));
        let reads_times = projection.fields.iter().any(|field| {
            let is_read = matches!(field.read, Read::Value(ValueType::Time | ValueType::Duration));
            is_read && is_time(&field.path)
        });
        if reads_times || time.is_some() { Times::Parts } else { Times::Seconds }
    }
}

impl SenmlDecoder {
    /// Decoder of the fields in `projection` for messages on `topic`.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`SenmlDecoder::decode`].
    ///
    /// # Errors
    /// Fields that no message has, and an array whose elements have more than 64 conditions.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
    ) -> Result<SenmlDecoder, Vec<PlanError>> {
        let fields = projection.fields.iter().map(|field| &field.path);
        binary::check_members(fields.chain(time), &MEMBERS)?;
        Ok(SenmlDecoder {
            inner: BinaryDecoder::new(BinaryFormat::Cbor, topic, projection, time, TimeUnit::Seconds)?,
            times: Times::read(projection, time),
            records: Records::default(),
            scratch: Vec::new(),
        })
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one, and that to which times are relative.
    ///
    /// # Errors
    /// [`MessageError`] when the payload is not a pack, or its time is none, or it holds a
    /// [series](MessageErrorKind::Series); the block is as it was then.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (now, records) = (Some(time.as_nanos()), &mut self.records);
        let resolved = resolve(payload, now, self.times, records, &mut scratch).and_then(|()| {
            let is_series = records.have_series(&scratch);
            if is_series { Err(Fault::new(0, MessageErrorKind::Series)) } else { Ok(()) }
        });
        let result = resolved.map_err(|fault| fault.into_error()).and_then(|()| {
            // Offsets in what was written say nothing about the payload.
            let of_payload = |error| MessageError { offset: 0, ..error };
            self.inner.decode(&scratch, time, block).map_err(of_payload)
        });
        if scratch.capacity() <= binary::KEPT {
            self.scratch = scratch;
        }
        result
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        self.inner.refused()
    }
}

/// Writes packs as JSON, from which the fields of a topic are read as a [`SenmlDecoder`] reads them.
#[derive(Clone, Debug)]
pub struct PackWriter {
    times: Times,
    message: Vec<u8>,
}

impl PackWriter {
    /// A writer of messages of which the fields of `projection` are read, and `time` if it holds the time of the event.
    pub fn new(projection: &Projection, time: Option<&Path>) -> PackWriter {
        PackWriter { times: Times::read(projection, time), message: Vec::new() }
    }

    /// Writes a pack after what is in `out`, in at most `limit` bytes. Relative times are after `now`.
    ///
    /// # Errors
    /// It is no pack, or too large; `out` is as it was then.
    pub fn write(
        &mut self,
        payload: &[u8],
        now: Timestamp,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), MessageError> {
        let PackWriter { times, message } = self;
        message.clear();
        Text::write(limit, JsonForm::EXACT, out, |text| {
            resolve(payload, Some(now.as_nanos()), *times, &mut Records::default(), message)?;
            binary::write_json(BinaryFormat::Cbor, message, text).map_err(|fault| fault.at_start())
        })
    }
}

/// Writes a pack as an object with its resolved records. Relative times are after `now`; without it they stay relative.
pub(crate) fn write_json(payload: &[u8], now: Option<Timestamp>, text: &mut Text<'_>) -> Parsed<()> {
    let mut message = Vec::new();
    let now = now.map(Timestamp::as_nanos);
    resolve(payload, now, Times::Seconds, &mut Records::default(), &mut message)?;
    binary::write_json(BinaryFormat::Cbor, &message, text).map_err(|fault| fault.at_start())
}

/// Returns packs that hold the records of each time, in order, if a name comes with several times; `None` for a pack that is
/// one event, and for what is no pack. Relative times are after `now`, and stay relative.
pub fn split(payload: &[u8], now: Timestamp) -> Option<Vec<Vec<u8>>> {
    let (mut records, mut written) = (Records::default(), Vec::new());
    resolve(payload, Some(now.as_nanos()), Times::Decimal, &mut records, &mut written).ok()?;
    if !records.have_series(&written) {
        return None;
    }
    records.all.sort_by_key(|record| (record.time, record.at.start));
    let packs = records.all.chunk_by(|one, other| one.time == other.time).map(|of_one_time| {
        let mut pack = Vec::new();
        put::open_array(&mut pack);
        of_one_time.iter().for_each(|record| pack.extend_from_slice(&written[record.at.clone()]));
        put::close(&mut pack);
        pack
    });
    Some(packs.collect())
}

/// Whether a payload is a pack with at least one record.
pub fn is_pack(payload: &[u8]) -> bool {
    let mut records = Records::default();
    resolve(payload, None, Times::Seconds, &mut records, &mut Vec::new()).is_ok() && !records.all.is_empty()
}

#[cfg(test)]
mod tests;
