//! Messages as JSON, with what births say.

use rondel_event::{NameId, Timestamp};

use super::reads::Reads;
use super::rewriter::{Named, Rewriter};
use crate::binary::{self, BinaryFormat};
use crate::decoder::DecodeError;
use crate::json::{self, JsonForm};
use crate::message::Text;

const NS_PER_MS: i64 = 1_000_000;

/// Writes the messages of a topic as JSON, as a [`SparkplugDecoder`](super::SparkplugDecoder) reads them: metrics have the
/// names and data types of births, those that end are null, and a death of a node has the time of its arrival.
///
/// Historical metrics stand in `history`, those of commands in `commands`.
#[derive(Clone, Debug)]
pub struct SparkplugWriter {
    rewriter: Rewriter,
    form: JsonForm,
    message: Vec<u8>,
}

impl SparkplugWriter {
    /// A writer that knows of no birth yet.
    pub fn new(form: JsonForm) -> SparkplugWriter {
        SparkplugWriter { rewriter: Rewriter::new(Reads::everything(), true), form, message: Vec::new() }
    }

    /// Writes metrics of commands as those of the node.
    pub fn read_commands(&mut self) {
        self.rewriter.read_commands();
    }

    /// Sets the name of the topic of the messages that follow, as
    /// [`SparkplugDecoder::set_name`](super::SparkplugDecoder::set_name) does.
    pub fn set_name<N: AsRef<str>>(&mut self, id: Option<NameId>, name: impl FnOnce(NameId) -> Option<N>) {
        self.rewriter.set_name(id, name);
    }

    /// Writes a message that came at this time after what is in `out`, in at most `limit` bytes.
    ///
    /// # Errors
    /// The payload is not a message, a metric cannot be resolved, or it is too large; `out` is as it was then.
    pub fn write(
        &mut self,
        payload: &[u8],
        arrival: Timestamp,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        if matches!(self.rewriter.current, Named::Other) && json::check(payload).is_ok() {
            out.extend_from_slice(payload);
            return Ok(());
        }
        let SparkplugWriter { rewriter, form, message } = self;
        message.clear();
        let millis = arrival.as_nanos().div_euclid(NS_PER_MS);
        let arrival = rewriter.is_death_of_node().then_some(millis);
        let written = Text::write(limit, *form, out, |text| {
            rewriter.rewrite(payload, arrival, message)?;
            binary::write_json(BinaryFormat::Cbor, message, text).map_err(|fault| fault.at_start())
        });
        if message.capacity() > binary::KEPT {
            *message = Vec::new();
        }
        written.map_err(DecodeError::Message)
    }
}
