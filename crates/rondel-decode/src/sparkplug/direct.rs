//! Messages of data of which only the values of metrics by their names are read, as of most topics: these are written
//! to their slots at once.

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Read, Segment, TimeUnit, Timestamp, TopicId};

use super::nodes::{Names, Place};
use super::{SparkplugDecoder, name_of, uuid};
use crate::error::{Fault, MessageError, Parsed};
use crate::fields::Fields;
use crate::protobuf::wire::{LENGTH, Reader, VARINT};
use crate::sink::{Refused, Scalar, Sink, Target};

/// Targets of the values that are read.
#[derive(Clone, Debug)]
pub(super) struct Direct {
    topic: TopicId,
    /// The targets of values, by the numbers of names.
    values: Arc<[Box<[Target]>]>,
    /// Those of the time and the sequence number of a message.
    timestamp: Arc<[Target]>,
    seq: Arc<[Target]>,
    pub(super) refused: Refused,
}

impl Direct {
    /// `None` if more is read than values without parts.
    pub(super) fn new(
        topic: TopicId,
        projection: &Projection,
        time: Option<&Path>,
        names: &Names,
    ) -> Option<Direct> {
        let is_plain = |read: &Read| matches!(read, Read::Value(_) | Read::Number(_) | Read::Presence);
        if names.takes_all() || !projection.fields.iter().all(|field| is_plain(&field.read)) {
            return None;
        }
        let mut values: Vec<Vec<Target>> = Vec::new();
        let (mut timestamp, mut seq) = (Vec::new(), Vec::new());
        // Each field by itself, so that its path is known.
        let fields = projection.fields.iter().map(|field| Projection { fields: vec![field.clone()] });
        let single: Vec<(Projection, Option<&Path>)> = fields
            .map(|field| (field, None))
            .chain(time.map(|time| (Projection::default(), Some(time))))
            .collect();
        for (projection, time) in &single {
            let path = projection.fields.first().map(|field| &field.path).or(*time)?;
            let mut fields = &Fields::new(projection, *time);
            while let Some(below) = only(fields) {
                fields = below;
            }
            let targets = fields.wants.iter().map(Target::new).collect::<Option<Vec<_>>>()?;
            match &path.0[..] {
                [Segment::Key(key)] if **key == *"timestamp" => timestamp.extend(targets),
                [Segment::Key(key)] if **key == *"seq" => seq.extend(targets),
                [_, _, Segment::Key(key)] if **key == *"value" => {
                    let number = names.number(name_of(path)?.as_bytes())? as usize;
                    values.resize(values.len().max(number + 1), Vec::new());
                    values[number].extend(targets);
                }
                _ => return None,
            }
        }
        let values = values.into_iter().map(Into::into).collect();
        Some(Direct {
            topic,
            values,
            timestamp: timestamp.into(),
            seq: seq.into(),
            refused: Refused::default(),
        })
    }
}

/// The one place below this one.
fn only<'f, 'p>(fields: &'f Fields<'p>) -> Option<&'f Fields<'p>> {
    let keys = fields.keys.iter().map(|(_, below)| below);
    keys.chain(fields.named.iter().map(|(_, below)| below)).next()
}

impl SparkplugDecoder {
    /// Adds the event of a message of data.
    #[inline]
    pub(super) fn decode_data(
        &mut self,
        place: Place,
        payload: &[u8],
        time: Timestamp,
        block: &mut Block,
    ) -> Result<(), MessageError> {
        let Some(mut direct) = self.direct.take() else { return Ok(()) };
        let mut sink = Sink::begin(block, direct.topic, time, TimeUnit::Milliseconds);
        let read = self.data(&direct, place, payload, &mut sink);
        let ended = sink.end(read, &mut direct.refused);
        self.direct = Some(direct);
        ended
    }

    fn data(&self, direct: &Direct, place: Place, payload: &[u8], sink: &mut Sink<'_>) -> Parsed<()> {
        let mut reader = Reader { bytes: payload, at: 0 };
        let mut index = 0;
        while !reader.is_at_end() {
            let start = reader.at;
            match reader.tag()? {
                (2, LENGTH) => {
                    let part = reader.part()?;
                    if self.reads.metrics {
                        self.value(direct, place, part, sink)
                            .map_err(|fault| fault.in_element(index).in_member("metrics"))?;
                    }
                    index += 1;
                }
                (1, VARINT) => write(&direct.timestamp, unsigned(reader.varint()?), start, sink)?,
                (3, VARINT) => write(&direct.seq, unsigned(reader.varint()?), start, sink)?,
                (4, LENGTH) => _ = uuid(&mut reader)?,
                (number, wire) => reader.skip(wire, number, start)?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn value(&self, direct: &Direct, place: Place, part: Reader<'_>, sink: &mut Sink<'_>) -> Parsed<()> {
        let Some(resolved) = self.resolve(Some(place), part)? else { return Ok(()) };
        let targets = resolved.number.and_then(|number| direct.values.get(number as usize));
        write(
            targets.map_or(&[], |targets| targets),
            resolved.metric.scalar(resolved.datatype),
            part.at,
            sink,
        )
    }
}

#[inline(always)]
fn write(targets: &[Target], value: Scalar<'_>, at: usize, sink: &mut Sink<'_>) -> Parsed<()> {
    targets.iter().try_for_each(|target| sink.write(target, value)).map_err(|kind| Fault::new(at, kind))
}

fn unsigned(value: u64) -> Scalar<'static> {
    i64::try_from(value).map_or(Scalar::Large(value as f64), Scalar::Int)
}
