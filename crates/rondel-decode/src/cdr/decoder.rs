//! The decoder of one topic.

use std::sync::Arc;

use rondel_event::{Block, Path, Projection, Slot, TimeUnit, Timestamp, TopicId};

use super::compile::{Compiler, Extent};
use super::error::{CdrError, CdrErrorKind, PlanError};
use super::optional::optional_slots;
use super::plan::{Steps, Tables, Version, has_wide};
use super::walk::{BIG, Fault, LITTLE, PACKED, PADDING, Stop, Walk};
use super::wide::{Seen, Wide, WideForm};
use super::write::Writer;
use crate::fields::Fields;
use crate::schema::{Extensibility, Schema};
use crate::sink::Refused;

/// Extent of the checks of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The bytes up to the last field that is read. Later bytes are not accessed; of the earlier ones, all lengths are
    /// checked, and the values of the fields that are read.
    #[default]
    Prefix,
    /// Like [`Check::Prefix`], after some successive messages ended where their type ends; before, lengths are checked
    /// to the end, so that messages of a longer or shorter type are refused and not misread. Types that may be extended
    /// have no end.
    Trusted,
    /// Every byte: all lengths, booleans, enumerations and texts, and that the message ends after its last
    /// field, except for up to three bytes of padding.
    Whole,
}

/// Decodes the CDR payloads of one topic, in every encoding of DDS-XTypes that its type can have.
///
/// NaN is written as invalid, like null in JSON, and so is an unsigned integer beyond the signed 64-bit range, which
/// also counts as [`mistyped`](Refused::mistyped).
#[derive(Clone, Debug)]
pub struct CdrDecoder {
    topic: TopicId,
    plan: Arc<Plan>,
    refused: Refused,
    scratch: String,
    /// Positions of names in arrays, during a message.
    positions: Vec<u32>,
    /// Number of successive messages that ended where their type ends, up to [`TRUST`].
    trust: u8,
    wide: Wide,
}

/// Number of successive messages that are checked to their end.
const TRUST: u8 = 16;

/// Programs of the first version, for a structure and a mutable one; of the second version, for a final, an appendable
/// and a mutable structure. `None` if the type does not have the encoding.
type Programs = [Option<Steps>; 5];

#[derive(Debug)]
struct Plan {
    tables: Tables,
    check: Check,
    programs: Programs,
    /// Programs to the end of the message, if that is checked.
    ends: Programs,
    /// Whether wide strings are read or skipped.
    has_wide: bool,
    /// Programs through all parts of the message without reading it, if the type has wide strings.
    probes: Programs,
    /// Whether a message in another form ends where its type ends: it has no further members, or these are refused.
    must_end: bool,
    /// For each program, the slots that a message may omit.
    optional: [Box<[Slot]>; 5],
}

/// Encoding of a message.
struct Head {
    /// Index of the program.
    program: usize,
    form: u8,
    encapsulation: u16,
    padding: usize,
    /// Number of bytes before the body.
    size: usize,
}

/// Returns the index of the program for an encapsulation.
#[inline(always)]
fn program_of(encapsulation: u16) -> Option<usize> {
    Some(match encapsulation {
        0x0000 | 0x0001 => 0,
        0x0002 | 0x0003 => 1,
        0x0006 | 0x0007 => 2,
        0x0008 | 0x0009 => 3,
        0x000a | 0x000b => 4,
        _ => return None,
    })
}

/// Returns the programs of a type for one extent, if the type has the encoding.
fn programs(
    compiler: &mut Compiler<'_>,
    root: Option<Extensibility>,
    fields: &Fields<'_>,
    is_packed: bool,
) -> Result<Programs, Vec<PlanError>> {
    use Extensibility::{Appendable, Final, Mutable};
    if is_packed {
        let mut programs = [const { None }; 5];
        programs[0] = Some(compiler.program(Version::Packed, Final, fields)?);
        return Ok(programs);
    }
    let mut program = |version, unstated: Extensibility, roots: &[Extensibility]| {
        if !roots.contains(&root.unwrap_or(unstated)) {
            return Ok(None);
        }
        compiler.program(version, unstated, fields).map(Some)
    };
    Ok([
        program(Version::One, Final, &[Final, Appendable])?,
        program(Version::One, Final, &[Mutable])?,
        program(Version::Two, Final, &[Final])?,
        program(Version::Two, Appendable, &[Appendable])?,
        program(Version::Two, Appendable, &[Mutable])?,
    ])
}

impl CdrDecoder {
    /// Creates a decoder for messages of the type `schema` on `topic` that reads the fields of `projection`.
    ///
    /// `time` is the path of the event time; without it the event has the time passed to [`CdrDecoder::decode`]. A time
    /// is a structure of seconds and nanoseconds, or a number in `time_unit`.
    ///
    /// # Errors
    /// All fields that the type does not have, or has with another type.
    pub fn new(
        topic: TopicId,
        schema: &Schema,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
        check: Check,
    ) -> Result<CdrDecoder, Vec<PlanError>> {
        CdrDecoder::of(topic, schema, projection, time, time_unit, check, false)
    }

    /// Like [`CdrDecoder::new`], for messages of ROS 1: little-endian, without an encapsulation, without padding, and
    /// with texts without a terminating zero. Decode them with [`CdrDecoder::decode_packed`].
    ///
    /// # Errors
    /// As [`CdrDecoder::new`].
    pub fn packed(
        topic: TopicId,
        schema: &Schema,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
        check: Check,
    ) -> Result<CdrDecoder, Vec<PlanError>> {
        CdrDecoder::of(topic, schema, projection, time, time_unit, check, true)
    }

    fn of(
        topic: TopicId,
        schema: &Schema,
        projection: &Projection,
        time: Option<&Path>,
        time_unit: TimeUnit,
        check: Check,
        is_packed: bool,
    ) -> Result<CdrDecoder, Vec<PlanError>> {
        let fields = Fields::new(projection, time);
        let unit_ns = 10_i64.pow(time_unit.nanos_exponent().into());
        let extent = if check == Check::Whole { Extent::Whole } else { Extent::Fields };
        let mut compiler = Compiler::new(schema, unit_ns, extent);
        let root = schema.root().extensibility;
        use Extensibility::{Appendable, Final};
        let read = programs(&mut compiler, root, &fields, is_packed)?;
        let mut ends = [const { None }; 5];
        let is_final = root.unwrap_or(Final) == Final;
        if check == Check::Trusted && is_final {
            compiler.extent = Extent::End;
            ends = programs(&mut compiler, root, &fields, is_packed)?;
            ends[3] = None;
        }
        let has_wide = read.iter().chain(&ends).flatten().any(|steps| has_wide(steps));
        let mut probes = [const { None }; 5];
        if has_wide {
            compiler.extent = if check == Check::Whole { Extent::Whole } else { Extent::Lengths };
            probes = programs(&mut compiler, root, &Fields::new(&Projection::default(), None), is_packed)?;
        }
        let must_end = is_final || check == Check::Whole;
        let tables = compiler.tables;
        let one = optional_slots(schema, Version::One, Final, &fields);
        let two = [Final, Appendable].map(|unstated| optional_slots(schema, Version::Two, unstated, &fields));
        let [two_final, two] = two;
        let optional = [one.clone(), one, two_final, two.clone(), two];
        let plan =
            Arc::new(Plan { tables, check, programs: read, ends, has_wide, probes, must_end, optional });
        let positions = vec![u32::MAX; plan.tables.positions];
        Ok(CdrDecoder {
            topic,
            plan,
            refused: Refused::default(),
            scratch: String::new(),
            positions,
            trust: 0,
            wide: Wide::default(),
        })
    }

    /// Adds the event in `payload` to the block, which must not be full. `time` is its time unless the
    /// payload contains one.
    ///
    /// # Errors
    /// [`CdrError`] if the payload is not a message of the type; the block is then unchanged. [`Check`] defines the
    /// extent of the checks.
    pub fn decode(&mut self, payload: &[u8], time: Timestamp, block: &mut Block) -> Result<(), CdrError> {
        let Some((header, bytes)) = payload.split_first_chunk::<4>() else {
            return Err(CdrError { offset: 0, path: "".into(), kind: CdrErrorKind::NoEncapsulation });
        };
        let encapsulation = u16::from_be_bytes([header[0], header[1]]);
        let Some(program) = program_of(encapsulation) else {
            let kind = CdrErrorKind::UnknownEncapsulation(encapsulation);
            return Err(CdrError { offset: 0, path: "".into(), kind });
        };
        let form = if encapsulation & 1 == 1 { LITTLE } else { BIG };
        let head = Head { program, form, encapsulation, padding: usize::from(header[3] & 3), size: 4 };
        self.body(bytes, &head, time, block)
    }

    /// Adds the event in a message of ROS 1 to the block, like [`CdrDecoder::decode`] for a message in CDR.
    ///
    /// # Errors
    /// As [`CdrDecoder::decode`].
    pub fn decode_packed(
        &mut self,
        payload: &[u8],
        time: Timestamp,
        block: &mut Block,
    ) -> Result<(), CdrError> {
        let head = Head { program: 0, form: PACKED, encapsulation: 0, padding: 0, size: 0 };
        self.body(payload, &head, time, block)
    }

    #[inline(always)]
    fn body(
        &mut self,
        bytes: &[u8],
        head: &Head,
        time: Timestamp,
        block: &mut Block,
    ) -> Result<(), CdrError> {
        let Head { program, form, encapsulation, padding, size } = *head;
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
            wide: WideForm::Bytes,
            seen: Seen::default(),
            out: Writer {
                block,
                row,
                tables: &self.plan.tables,
                time: None,
                mistyped: 0,
                not_numbers: 0,
                left_out: 0,
                large: None,
                met: 0,
                unknown: 0,
                seen: None,
                element: f64::NAN,
                part: 0,
                no_number: None,
                scratch: std::mem::take(&mut self.scratch),
            },
        };
        if !walk.positions.is_empty() {
            walk.positions.fill(u32::MAX);
        }
        if self.plan.has_wide {
            let is_little = form != BIG;
            walk.wide = choose(&mut self.wide, &self.plan, program, padding, is_little, &mut walk);
        }
        let walked = match form {
            LITTLE => walk.run::<LITTLE>(steps),
            BIG => walk.run::<BIG>(steps),
            _ => walk.run::<PACKED>(steps),
        };
        let (at, own_time) = (walk.at, walk.out.time);
        let Writer { mistyped, not_numbers, left_out, large, no_number, .. } = walk.out;
        self.scratch = std::mem::take(&mut walk.out.scratch);
        self.positions = std::mem::take(&mut walk.positions);
        let fault = match walked {
            Err(Stop::Fault(fault)) => fault,
            Ok(()) | Err(Stop::Ended)
                if must_end && bytes.len() - at > if form == PACKED { 0 } else { PADDING } =>
            {
                Fault { kind: CdrErrorKind::TrailingBytes, at, place: 0 }
            }
            Ok(()) | Err(Stop::Ended) => {
                // The type of the message is known: `large` names the column.
                let counts = Refused { mistyped, not_numbers, left_out, large, ..Refused::NONE };
                self.refused.add(counts);
                self.refused.add_text(no_number);
                self.accept(program, row, own_time, block);
                return Ok(());
            }
        };
        block.pop();
        if self.trust < TRUST {
            self.trust = 0;
        }
        Err(self.error(&fault, size))
    }

    /// Completes the row of a message that was read.
    #[inline(always)]
    fn accept(&mut self, program: usize, row: usize, time: Option<Timestamp>, block: &mut Block) {
        if self.plan.has_wide {
            self.wide.accept();
        }
        if self.trust < TRUST {
            self.trust += 1;
        }
        if let Some(time) = time {
            block.set_time(row, time);
        }
        for slot in &self.plan.optional[program] {
            // A written value stays valid.
            block.mark_present(*slot, 1 << row);
        }
    }

    /// Returns the number of messages so far whose form of wide strings was a guess, and the last such form.
    pub fn guessed_wide(&self) -> Option<(u64, WideForm)> {
        self.wide.guessed
    }

    /// Returns the form of the wide strings of the last message, if it had non-empty ones that are read or skipped.
    pub fn wide_form(&self) -> Option<WideForm> {
        self.wide.last
    }

    #[cold]
    fn error(&self, fault: &Fault, before: usize) -> CdrError {
        let is_whole = fault.kind == CdrErrorKind::TrailingBytes;
        let path = self.plan.tables.paths.get(fault.place as usize).filter(|_| !is_whole).cloned();
        CdrError { offset: fault.at + before, path: path.unwrap_or_else(|| "".into()), kind: fault.kind }
    }

    /// Returns the counts of the values that could not be written so far.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }
}

/// Chooses the form of wide strings of a message.
#[inline(never)]
fn choose(
    wide: &mut Wide,
    plan: &Plan,
    program: usize,
    padding: usize,
    is_little: bool,
    walk: &mut Walk<'_, '_>,
) -> WideForm {
    let version = if program < 2 { Version::One } else { Version::Two };
    let steps = plan.probes[program].as_deref().unwrap_or_default();
    wide.choose(version, padding, |form| {
        walk.wide = form;
        let walked = if is_little { walk.run::<LITTLE>(steps) } else { walk.run::<BIG>(steps) };
        let rest = walk.bytes.len().saturating_sub(walk.at);
        let seen = Seen { unread: walk.seen.unread + rest, ..walk.seen };
        walk.begin();
        match walked {
            Err(Stop::Fault(_)) => None,
            Ok(()) | Err(Stop::Ended) => (!plan.must_end || rest <= PADDING).then_some(seen),
        }
    })
}
