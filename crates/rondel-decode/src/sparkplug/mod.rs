//! Sparkplug B (Eclipse Sparkplug 3.0): metrics of nodes and devices, in Protobuf messages on MQTT.
//!
//! A message is read as one with these members, whose names are those of the Protobuf definition:
//!
//! | member | value |
//! |---|---|
//! | `timestamp`, `seq`, `uuid`, `body` | of the payload |
//! | `metrics` | an array of objects: `name`, `alias`, `timestamp`, `datatype` (its name), `is_historical`, `is_transient`, `is_null`, `metadata`, `properties` (an object of their values), `value` |
//! | `value` | a number, text or boolean; a list where the data type is an array; `{columns, types, rows}` of a DataSet; `{metrics, parameters, version, template_ref, is_definition}` of a Template |
//!
//! Births name the metrics, and say their aliases and data types. A [`SparkplugDecoder`] keeps those of the last birth of
//! every node and device, and gives the name to a metric that comes with an alias alone, and the sign to an integer. A
//! metric that it cannot resolve refuses its message. A death makes the metrics of its node or device unknown. Historical
//! metrics are left out, and counted. [`SparkplugWriter`] writes the same as JSON.
//!
//! Times are in milliseconds, whatever the unit of the topic. The payload becomes CBOR, of the metrics that are read, and
//! a [`BinaryDecoder`] reads that; messages of data of which only values are read are read at once.

mod address;
mod cbor;
mod direct;
mod history;
mod metric;
mod nodes;
mod payload;
mod reads;
mod rewriter;
mod writer;

pub use address::{Address, Kind, Unmatched};
pub use payload::sequence;
pub(crate) use payload::write_json;
pub use writer::SparkplugWriter;

use rondel_event::{Block, NameId, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use crate::binary::{self, BinaryDecoder, BinaryFormat};
use crate::cdr::PlanError;
use crate::error::MessageError;
use crate::sink::Refused;
use direct::Direct;
use reads::Reads;
use rewriter::{Ended, Rewriter};

/// The full name of the type of payloads.
pub const TYPE: &str = "org.eclipse.tahu.protobuf.Payload";

/// The members of a message.
const MEMBERS: [&str; 5] = ["timestamp", "metrics", "seq", "uuid", "body"];

/// Decodes the Sparkplug payloads of one topic.
#[derive(Clone, Debug)]
pub struct SparkplugDecoder {
    inner: BinaryDecoder,
    rewriter: Rewriter,
    /// Fast decoder of data messages that need no rewriting; `None` if the fields do not allow it.
    direct: Option<Direct>,
    scratch: Vec<u8>,
}

impl SparkplugDecoder {
    /// Decoder of the fields in `projection` for messages on `topic`.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`SparkplugDecoder::decode`].
    ///
    /// # Errors
    /// Fields that no message has, and an array whose elements have more than 64 conditions.
    pub fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
    ) -> Result<SparkplugDecoder, Vec<PlanError>> {
        let fields = projection.fields.iter().map(|field| &field.path);
        binary::check_members(fields.chain(time), &MEMBERS)?;
        let unit = TimeUnit::Milliseconds;
        let reads = Reads::new(projection, time);
        Ok(SparkplugDecoder {
            inner: BinaryDecoder::new(BinaryFormat::Cbor, topic, projection, time, unit)?,
            direct: Direct::new(topic, projection, time, &reads.names),
            rewriter: Rewriter::new(reads, false),
            scratch: Vec::new(),
        })
    }

    /// Reads metrics of commands as well. Otherwise these messages have none, as their values are not those of the node.
    pub fn read_commands(&mut self) {
        self.rewriter.read_commands();
    }

    /// Sets the name of the topic of the messages that follow. `name` returns the name of a number that is new.
    #[inline]
    pub fn set_name<N: AsRef<str>>(&mut self, id: Option<NameId>, name: impl FnOnce(NameId) -> Option<N>) {
        self.rewriter.set_name(id, name);
    }

    /// Whether messages with the name that was set last count at the time that is given to [`SparkplugDecoder::decode`],
    /// whatever they state: deaths of nodes, which were written as wills when the node connected.
    #[inline]
    pub fn counts_at_arrival(&self) -> bool {
        self.rewriter.is_death_of_node()
    }

    /// Forgets the aliases of the node whose name was set last, and of its devices, until their next births: one may have
    /// been missed that gave them to other metrics.
    pub fn forget_aliases(&mut self) {
        self.rewriter.forget_aliases();
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`MessageError`] when the payload is not a message, a metric cannot be resolved, or the time is none; the block is
    /// as it was then.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), MessageError> {
        if let (Some(direct), Some(place)) = (&mut self.direct, self.rewriter.place_of_data()) {
            let refused = self.inner.refused_mut();
            return direct.decode(&mut self.rewriter, place, payload, time, block, refused);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let ended = self.rewriter.rewrite(payload, None, &mut scratch).map_err(|fault| fault.into_error());
        let result = ended.and_then(|ended| {
            // Offsets in what was written say nothing about the payload.
            let of_payload = |error| MessageError { offset: 0, ..error };
            self.inner.decode(&scratch, time, block).map_err(of_payload)?;
            self.mark(&ended, block);
            if self.counts_at_arrival() {
                block.set_time(block.len() - 1, time);
            }
            Ok(())
        });
        if scratch.capacity() <= binary::KEPT {
            self.scratch = scratch;
        }
        result
    }

    /// Makes metrics unknown in the last row that it does not write.
    #[inline]
    fn mark(&self, ended: &Ended, block: &mut Block) {
        let (row, reads) = (block.len() - 1, &self.rewriter.reads);
        let mut mark = |slots: &[Slot]| slots.iter().for_each(|slot| block.mark_present(*slot, 1 << row));
        match ended {
            Ended::None => {}
            Ended::Names(names) if !reads.names.takes_all() => {
                let slots = names.iter().filter_map(|name| reads.slots.get(*name as usize));
                slots.for_each(|slots| mark(slots));
            }
            Ended::All | Ended::Names(_) => mark(&reads.all),
        }
    }

    /// Returns how many historical metrics so far were left out, that would be read were they present ones.
    pub fn historical(&self) -> u64 {
        self.rewriter.history.count
    }

    /// Returns the names of the first of them, in alphabetical order.
    pub fn historical_names(&self) -> impl Iterator<Item = &str> {
        self.rewriter.history.names()
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        self.inner.refused()
    }
}

#[cfg(test)]
mod tests;
