//! The decoder of one topic.

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use super::compile::Compiler;
use super::error::{CdrError, CdrErrorKind, PlanError};
use super::optional::optional_slots;
use super::plan::{Steps, Tables, Version};
use super::walk::{Fault, Stop, Walk};
use super::write::Writer;
use crate::fields::Fields;
use crate::schema::{Extensibility, Schema};
use crate::sink::Refused;

/// How much of a message is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The bytes up to the last field that is read. What lies behind is not touched; of what lies before, the
    /// lengths are checked, and of the fields that are read also the values.
    #[default]
    Prefix,
    /// As [`Check::Prefix`], once some messages in a row ended where their type ends; until then the lengths up to the
    /// end, so that messages of a longer or shorter type are refused and not read as this one. Types that may be
    /// extended have no end.
    Trusted,
    /// Every byte: all lengths, booleans, enumerations and texts, and that the message ends after its last
    /// field, except for up to three bytes of padding.
    Whole,
}

/// Decodes the CDR payloads of one topic, in every encoding of DDS-XTypes that its type can have.
///
/// A number that is not a number (NaN) is written as invalid, like null in JSON, and so is an unsigned integer
/// beyond the signed 64-bit range, which also counts as [`mistyped`](CdrDecoder::mistyped).
#[derive(Clone, Debug)]
pub struct CdrDecoder {
    topic: TopicId,
    plan: Arc<Plan>,
    refused: Refused,
    scratch: String,
    /// Positions of names in arrays, while a message is read.
    positions: Vec<u32>,
    /// How many messages in a row ended where their type ends, up to [`TRUST`].
    trust: u8,
}

/// So many messages in a row are looked at up to their end.
const TRUST: u8 = 16;

#[derive(Debug)]
struct Plan {
    tables: Tables,
    check: Check,
    /// The first version, of a structure and of a mutable one; the second version, of a final, an appendable
    /// and a mutable structure. `None` where the type does not have the encoding.
    programs: [Option<Steps>; 5],
    /// The same up to the end of the message, where it is watched.
    ends: [Option<Steps>; 5],
    /// For each program, the slots that a message may leave out.
    optional: [Box<[Slot]>; 5],
}

impl CdrDecoder {
    /// A decoder for messages of the type `schema` on `topic`, of which the fields of `projection` are read.
    ///
    /// `time` names the field that holds the time of the event; without it the time is the one given to
    /// [`CdrDecoder::decode`]. A time is a structure of seconds and nanoseconds, or a number in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or that have another type.
    pub fn new(
        topic: TopicId,
        schema: &Schema,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
        check: Check,
    ) -> Result<CdrDecoder, Vec<PlanError>> {
        let fields = Fields::new(projection, time);
        let unit_ns = 10_i64.pow(time_unit.nanos_exponent().into());
        let mut compiler = Compiler::new(schema, unit_ns, check == Check::Whole);
        let root = schema.root().extensibility;
        let mut program = |version, unstated: Extensibility, roots: &[Extensibility]| {
            if !roots.contains(&root.unwrap_or(unstated)) {
                return Ok(None);
            }
            compiler.program(version, unstated, &fields).map(Some)
        };
        use Extensibility::{Appendable, Final, Mutable};
        let programs = [
            program(Version::One, Final, &[Final, Appendable])?,
            program(Version::One, Final, &[Mutable])?,
            program(Version::Two, Final, &[Final])?,
            program(Version::Two, Appendable, &[Appendable])?,
            program(Version::Two, Appendable, &[Mutable])?,
        ];
        let mut ends = [const { None }; 5];
        if check == Check::Trusted && root.unwrap_or(Final) == Final {
            compiler.to_end = true;
            ends[0] = Some(compiler.program(Version::One, Final, &fields)?);
            ends[2] = Some(compiler.program(Version::Two, Final, &fields)?);
        }
        let tables = compiler.tables;
        let one = optional_slots(schema, Version::One, Final, &fields);
        let two = [Final, Appendable].map(|unstated| optional_slots(schema, Version::Two, unstated, &fields));
        let [two_final, two] = two;
        let optional = [one.clone(), one, two_final, two.clone(), two];
        let plan = Arc::new(Plan { tables, check, programs, ends, optional });
        let positions = vec![u32::MAX; plan.tables.positions];
        let (refused, scratch) = (Refused::default(), String::new());
        Ok(CdrDecoder { topic, plan, refused, scratch, positions, trust: 0 })
    }

    /// Adds the event that `payload` holds to the block, which must not be full. `time` is its time unless the
    /// payload holds one.
    ///
    /// # Errors
    /// [`CdrError`] when the payload is not a message of the type; the block is as it was then. How much of the
    /// payload is looked at is stated by [`Check`].
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), CdrError> {
        let Some((header, bytes)) = payload.split_first_chunk::<4>() else {
            return Err(CdrError { offset: 0, path: "".into(), kind: CdrErrorKind::NoEncapsulation });
        };
        let encapsulation = u16::from_be_bytes([header[0], header[1]]);
        let program = match encapsulation {
            0x0000 | 0x0001 => 0,
            0x0002 | 0x0003 => 1,
            0x0006 | 0x0007 => 2,
            0x0008 | 0x0009 => 3,
            0x000a | 0x000b => 4,
            other => {
                return Err(CdrError {
                    offset: 0,
                    path: "".into(),
                    kind: CdrErrorKind::UnknownEncapsulation(other),
                });
            }
        };
        let end = self.plan.ends[program].as_ref().filter(|_| self.trust < TRUST);
        let must_end = end.is_some() || self.plan.check == Check::Whole;
        let Some(steps) = end.or(self.plan.programs[program].as_ref()) else {
            let kind = CdrErrorKind::WrongEncapsulation(encapsulation);
            return Err(CdrError { offset: 0, path: "".into(), kind });
        };
        let row = block.push(self.topic, time);
        let mut walk = Walk {
            bytes,
            at: 0,
            end: bytes.len(),
            origin: 0,
            may_end: false,
            positions: std::mem::take(&mut self.positions),
            out: Writer {
                block,
                row,
                tables: &self.plan.tables,
                time: None,
                mistyped: 0,
                not_numbers: 0,
                large: None,
                met: 0,
                element: f64::NAN,
                part: 0,
                scratch: std::mem::take(&mut self.scratch),
            },
        };
        walk.positions.fill(u32::MAX);
        let walked = if encapsulation & 1 == 1 { walk.run::<false>(steps) } else { walk.run::<true>(steps) };
        let (at, own_time) = (walk.at, walk.out.time);
        let (mistyped, not_numbers, large) = (walk.out.mistyped, walk.out.not_numbers, walk.out.large);
        self.scratch = std::mem::take(&mut walk.out.scratch);
        self.positions = std::mem::take(&mut walk.positions);
        let fault = match walked {
            Err(Stop::Fault(fault)) => fault,
            Ok(()) | Err(Stop::Ended) if must_end && bytes.len() - at > 3 => {
                Fault { kind: CdrErrorKind::TrailingBytes, at, place: 0 }
            }
            Ok(()) | Err(Stop::Ended) => {
                self.refused.add(mistyped, not_numbers, large);
                if self.trust < TRUST {
                    self.trust += 1;
                }
                if let Some(time) = own_time {
                    block.set_time(row, time);
                }
                for slot in &self.plan.optional[program] {
                    // A value that was written stays valid.
                    block.mark_present(*slot, 1 << row);
                }
                return Ok(());
            }
        };
        block.pop();
        if self.trust < TRUST {
            self.trust = 0;
        }
        Err(self.error(&fault))
    }

    #[cold]
    fn error(&self, fault: &Fault) -> CdrError {
        let is_whole = fault.kind == CdrErrorKind::TrailingBytes;
        let path = self.plan.tables.paths.get(fault.place as usize).filter(|_| !is_whole).cloned();
        CdrError { offset: fault.at + 4, path: path.unwrap_or_else(|| "".into()), kind: fault.kind }
    }

    /// Returns how many values so far were out of the range of their type.
    pub fn mistyped(&self) -> u64 {
        self.refused.count
    }

    /// Returns how many numbers so far were NaN.
    pub fn not_numbers(&self) -> u64 {
        self.refused.not_numbers
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, if one was read so far.
    pub fn too_large(&self) -> Option<Slot> {
        self.refused.too_large()
    }
}
