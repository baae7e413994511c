//! Plan of a decoder: the steps through the bytes of a message.
//!
//! Successive members of fixed size are one [`Run`], with constant offsets; only texts, sequences and optional parts
//! are walked. All positions are within the body, after the four bytes of the encapsulation.

use std::sync::Arc;

use rondel_event::{Quantifier, Slot, Test};

use crate::fields::Alternatives;

/// Index of the path of a field, for errors.
pub(super) type Place = u32;

/// The steps for one encoding of a type.
pub(super) type Steps = Box<[Step]>;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Members of fixed size.
    Run(Run),
    /// Text.
    Text(Text),
    /// An unread member of fixed size at an unknown position, by its reach from each position modulo 8.
    Pass { reach: Box<[u32; 8]>, place: Place },
    /// Elements.
    Sequence(Box<Sequence>),
    /// A length, and a part of this length.
    Delimited { steps: Steps, is_struct: bool, place: Place },
    /// Members with ids.
    Mutable(Box<Mutable>),
    /// An optional member.
    Optional { steps: Steps, id: u32, version: Version, place: Place },
    /// A discriminator and one of several members.
    Union(Box<UnionPlan>),
    /// Text of wide characters.
    Wide(Text),
}

/// Version of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// CDR, the encoding of ROS 2.
    One,
    /// XCDR2, the more compact encoding of newer DDS.
    Two,
    /// The encoding of ROS 1, without padding.
    Packed,
}

impl Version {
    /// Returns the alignment of a number of this size, in bytes.
    pub(super) fn align(self, size: u32) -> u32 {
        match self {
            Version::One => size,
            Version::Two => size.min(4),
            Version::Packed => 1,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// Alignment of the beginning: 1 if it is known to be aligned, otherwise 2, 4 or 8.
    pub(super) align: usize,
    pub(super) size: usize,
    /// Number of bytes that must exist: `size`, or one more to detect a member after it.
    pub(super) check: usize,
    pub(super) loads: Box<[Load]>,
    /// Offset of each member, for errors.
    pub(super) members: Box<[(u32, Place)]>,
}

/// A number to read, and its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) offset: u32,
    pub(super) number: Number,
    pub(super) to: Target,
    pub(super) place: Place,
}

impl Load {
    /// Returns the offset of the end. For the presence of a member, one byte must exist.
    pub(super) fn end(&self) -> usize {
        let size = match self.to {
            Target::Present(_) | Target::Met(_) => 1,
            _ => self.number.size(),
        };
        (self.offset + size) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Number {
    pub(super) fn size(self) -> u32 {
        match self {
            Number::Bool | Number::U8 | Number::I8 => 1,
            Number::U16 | Number::I16 => 2,
            Number::U32 | Number::I32 | Number::F32 => 4,
            Number::U64 | Number::I64 | Number::F64 => 8,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// Columns.
    Bool(u32),
    Int(u32),
    Float(u32),
    /// A column of floats, for integers that are exact there.
    Exact(u32),
    /// A column of text, for a character of one or two bytes.
    Letter(u32),
    /// A column of text, for the name of a constant of this enumeration.
    Label(u32, u32),
    /// A column of booleans, for the presence of the member. Reads nothing.
    Present(u32),
    /// A column of booleans, for whether the number is NaN.
    IsNan(u32),
    /// No column: checks that the boolean, or the constant of this enumeration, is valid.
    CheckBool,
    CheckEnum(u32),
    /// A time in a unit of this number of nanoseconds.
    Scaled(i64, TimeTarget),
    /// A part of a time, kept until the other part is read.
    Seconds,
    Nanos,
    /// The last part of a time.
    SecondsLast(TimeTarget),
    NanosLast(TimeTarget),
    /// A condition on an element, and its test.
    Test(u8, u32),
    /// A condition on an element that is met by its presence.
    Met(u8),
    /// The measured element.
    Element,
}

/// Target of a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimeTarget {
    Event,
    Column(u32),
}

#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) bound: u32,
    /// Whether the text is checked even if it is not read.
    pub(super) is_checked: bool,
    pub(super) targets: Box<[TextTarget]>,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TextTarget {
    Column(u32),
    /// A column of numbers, for the number in the text.
    Decimal(Target),
    /// A column of integers, for the number of characters.
    Length(u32),
    Present(u32),
    Test(u8, u32),
    Met(u8),
}

#[derive(Clone, Debug)]
pub(super) struct Sequence {
    /// Number of elements, unless the message states it.
    pub(super) fixed: Option<u32>,
    /// Size of the first dimension of a multi-dimensional array.
    pub(super) outer: Option<u32>,
    pub(super) bound: u32,
    pub(super) element: Element,
    /// Single elements to read, in order.
    pub(super) picks: Box<[(u32, Steps)]>,
    /// Single elements by their positions from the end, from 1.
    pub(super) ends: Box<[(u32, Steps)]>,
    /// Conditions on all elements.
    pub(super) tests: Box<[ElementTest]>,
    /// Elements identified by a name that they contain.
    pub(super) named: Box<[(ElementTest, FoundElement)]>,
    /// Searches for names of elements of another array: each stores the position of the last match at this index.
    pub(super) finds: Box<[(ElementTest, usize)]>,
    /// Elements at positions found in another array, with the index of each position.
    pub(super) found: Box<[(usize, FoundElement)]>,
    /// Whether something is read after the elements.
    pub(super) goes_on: bool,
    /// Columns for the number of elements.
    pub(super) lengths: Box<[u32]>,
    /// Targets for the presence of the elements as a whole: `Present` and `Met`.
    pub(super) present: Box<[Target]>,
    pub(super) place: Place,
}

impl Sequence {
    /// Whether elements are identified by names.
    #[inline]
    pub(super) fn searches(&self) -> bool {
        !self.named.is_empty() || !self.finds.is_empty() || !self.found.is_empty()
    }
}

#[derive(Clone, Debug)]
pub(super) enum Element {
    /// Numbers: alignment and size.
    Number(usize, usize),
    /// Elements of fixed size: the reach of one from each position modulo 8.
    Fixed(Box<[u32; 8]>),
    /// The steps through an element.
    Variable(Steps),
}

#[derive(Clone, Debug)]
pub(super) struct ElementTest {
    pub(super) quantifier: Quantifier,
    /// Slot of the result; none if elements are only visited.
    pub(super) slot: Option<Slot>,
    pub(super) alternatives: Alternatives,
    /// Paths of the tested values, if the deciding element is read.
    pub(super) names: Box<[Box<str>]>,
    pub(super) steps: Steps,
}

/// Fields of an element identified by its name.
#[derive(Clone, Debug)]
pub(super) struct FoundElement {
    pub(super) steps: Steps,
    /// Slots of its fields, which are unknown if the element lacks them.
    pub(super) slots: Box<[Slot]>,
}

#[derive(Clone, Debug)]
pub(super) struct Mutable {
    pub(super) version: Version,
    /// The members that are read, by id.
    pub(super) members: Box<[(u32, Steps)]>,
    /// The ids of all members of the type.
    pub(super) known: Box<[u32]>,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
pub(super) struct UnionPlan {
    pub(super) discriminator: Number,
    pub(super) align: usize,
    pub(super) loads: Box<[Load]>,
    pub(super) cases: Box<[CasePlan]>,
    /// Index of the case that all other values select.
    pub(super) default: Option<usize>,
    /// Version of the headers before the discriminator and the case, if the union is mutable.
    pub(super) headers: Option<Version>,
    pub(super) place: Place,
}

/// A case of a union.
#[derive(Clone, Debug)]
pub(super) struct CasePlan {
    pub(super) labels: Box<[i64]>,
    pub(super) id: u32,
    pub(super) steps: Steps,
}

impl UnionPlan {
    /// Returns the case that a value of the discriminator selects; `None` is a value beyond the signed range.
    pub(super) fn case(&self, label: Option<i64>) -> Option<&CasePlan> {
        let is_selected = |case: &&CasePlan| label.is_some_and(|label| case.labels.contains(&label));
        self.cases.iter().find(is_selected).or_else(|| self.cases.get(self.default?))
    }
}

/// Tables that the steps of a plan refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) paths: Vec<Arc<str>>,
    pub(super) enumerations: Vec<Enumeration>,
    pub(super) tests: Vec<Test>,
    /// Number of positions remembered during a message.
    pub(super) positions: usize,
}

/// The constants of an enumeration, by value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Enumeration(pub(super) Box<[(i32, Box<str>)]>);

impl Enumeration {
    pub(super) fn label(&self, value: i64) -> Option<&str> {
        let value = i32::try_from(value).ok()?;
        // Most enumerations count from zero.
        let guess = usize::try_from(value).ok().and_then(|value| self.0.get(value));
        let found = match guess {
            Some(guess) if guess.0 == value => guess,
            _ => &self.0[self.0.binary_search_by_key(&value, |(value, _)| *value).ok()?],
        };
        Some(&found.1)
    }
}

/// Removes the trailing steps that read nothing.
pub(super) fn trim(steps: &mut Vec<Step>) {
    while steps.pop_if(|step| !step.reads()).is_some() {}
    match steps.last_mut() {
        Some(Step::Run(run)) => {
            run.size = run.loads.iter().map(Load::end).max().unwrap_or(0);
            run.check = run.size;
        }
        Some(Step::Sequence(sequence)) => sequence.goes_on = false,
        _ => {}
    }
}

impl Step {
    /// Whether the step, or one in it, reads or checks something.
    fn reads(&self) -> bool {
        let any = |steps: &Steps| steps.iter().any(Step::reads);
        match self {
            Step::Run(run) => !run.loads.is_empty(),
            Step::Text(text) | Step::Wide(text) => !text.targets.is_empty() || text.is_checked,
            Step::Pass { .. } => false,
            Step::Sequence(sequence) => {
                !sequence.tests.is_empty()
                    || !sequence.present.is_empty()
                    || !sequence.lengths.is_empty()
                    || !sequence.picks.is_empty()
                    || !sequence.ends.is_empty()
                    || !sequence.named.is_empty()
                    || !sequence.finds.is_empty()
                    || !sequence.found.is_empty()
            }
            Step::Delimited { steps, .. } | Step::Optional { steps, .. } => any(steps),
            Step::Mutable(mutable) => !mutable.members.is_empty(),
            Step::Union(union) => !union.loads.is_empty() || union.cases.iter().any(|case| any(&case.steps)),
        }
    }
}

/// Whether the steps read or skip wide strings.
pub(super) fn has_wide(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Wide(_) => true,
        Step::Run(_) | Step::Text(_) | Step::Pass { .. } => false,
        Step::Sequence(sequence) => {
            let single = sequence.picks.iter().chain(&sequence.ends);
            let parts = single.map(|(_, steps)| steps).chain(sequence.tests.iter().map(|test| &test.steps));
            let passed = match &sequence.element {
                Element::Variable(steps) => Some(steps),
                Element::Number(..) | Element::Fixed(_) => None,
            };
            parts.chain(passed).any(|steps| has_wide(steps))
        }
        Step::Delimited { steps, .. } | Step::Optional { steps, .. } => has_wide(steps),
        Step::Mutable(mutable) => mutable.members.iter().any(|(_, steps)| has_wide(steps)),
        Step::Union(union) => union.cases.iter().any(|case| has_wide(&case.steps)),
    })
}
