use rondel_event::Slot;
use rondel_spec::{BinaryOp, FunctionId, UnaryOp};

use crate::ir::node::ChainColumn;
use crate::ir::wire::Wire;

/// An instruction of a program. The `i`-th instruction computes the `i`-th word. Those with `out` also write
/// the column of that number, and their word marks the rows with a value.
///
/// `a`, `b` and `x` are columns unless they are [`Wire`]s; `column` is a column of the block; `state` is an
/// index among the states of the instruction's kind. The semantics is that of the
/// [nodes](crate::ir::node::Node).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    False,
    On {
        topic: u32,
    },
    Carried {
        slot: Slot,
    },
    HeldBool {
        column: u32,
        value: bool,
        state: u32,
    },
    Line {
        line: u32,
        sign: u8,
        half: u8,
        state: u32,
    },
    And {
        a: Wire,
        b: Wire,
    },
    Since {
        p: Wire,
        q: Wire,
        state: u32,
    },
    Shift {
        x: Wire,
        by: u8,
        state: u32,
    },
    Recently {
        x: Wire,
        state: u32,
    },
    Delay {
        x: Wire,
        forget: Wire,
        state: u32,
    },

    SameTime,
    TimedRecently {
        q: Wire,
        q_after: Wire,
        state: u32,
        /// Register of the half after each row.
        second: u32,
    },
    TimedSince {
        /// Index in the section's table of operands.
        operands: u32,
        state: u32,
        second: u32,
    },
    /// Evaluates a timed operator over the events of a block, into ranges.
    LookAhead {
        operands: u32,
        state: u32,
    },
    /// Reads the truth of an operator that was evaluated ahead.
    LookedAhead {
        state: u32,
        second: u32,
    },
    After {
        second: u32,
    },
    /// `state` is also the index in the section's table of operands.
    Lasting {
        x: u32,
        state: u32,
        second: u32,
    },
    Chain {
        chain: u32,
        column: ChainColumn,
        state: u32,
        out: u32,
    },

    IntEqual {
        a: u32,
        b: u32,
    },
    IntLess {
        a: u32,
        b: u32,
    },
    FloatEqual {
        a: u32,
        b: u32,
    },
    FloatLess {
        a: u32,
        b: u32,
    },
    FloatLessOrEqual {
        a: u32,
        b: u32,
    },
    TextEqual {
        a: u32,
        b: u32,
    },
    TextStartsWith {
        a: u32,
        b: u32,
    },
    CallNumber {
        function: FunctionId,
        x: u32,
        out: u32,
    },
    CallNumbers {
        function: FunctionId,
        a: u32,
        b: u32,
        out: u32,
    },
    CallTest {
        function: FunctionId,
        a: u32,
        b: u32,
    },
    /// Match of the section's regular expression with this number.
    Matches {
        x: u32,
        pattern: u32,
    },
    CallSize {
        function: FunctionId,
        x: u32,
        out: u32,
    },
    /// A computed text. Each row has a buffer of its own, from `buffer` on.
    CallText {
        function: FunctionId,
        x: u32,
        buffer: u32,
        out: u32,
    },

    Time {
        out: u32,
    },
    Machine {
        machine: u32,
        out: u32,
    },
    MachineAfter {
        machine: u32,
        out: u32,
    },
    MachineInt {
        machine: u32,
        variable: u32,
        half: u8,
        out: u32,
    },
    MachineFloat {
        machine: u32,
        variable: u32,
        half: u8,
        out: u32,
    },
    MachineText {
        machine: u32,
        variable: u32,
        half: u8,
        buffer: u32,
        out: u32,
    },
    MachineTruth {
        machine: u32,
        variable: u32,
        half: u8,
        value: bool,
    },
    Latency {
        out: u32,
    },
    KeyBool {
        key: u32,
        value: bool,
    },
    KeyInt {
        key: u32,
        out: u32,
    },
    KeyText {
        key: u32,
        out: u32,
    },
    ConstantInt {
        constant: u32,
        out: u32,
    },
    ConstantFloat {
        constant: u32,
        out: u32,
    },
    ConstantText {
        buffer: u32,
        out: u32,
    },
    ToFloat {
        x: u32,
        out: u32,
    },
    UnaryInt {
        op: UnaryOp,
        x: u32,
        out: u32,
    },
    UnaryFloat {
        op: UnaryOp,
        x: u32,
        out: u32,
    },
    BinaryInt {
        op: BinaryOp,
        a: u32,
        b: u32,
        out: u32,
    },
    BinaryFloat {
        op: BinaryOp,
        a: u32,
        b: u32,
        out: u32,
    },

    /// A quantified formula, by number.
    Quantified {
        relation: u32,
        second: u32,
    },
    /// A quantified formula that is evaluated by value, by number.
    ByValue {
        number: u32,
        second: u32,
    },
    /// An input of an inner instance.
    Outer {
        input: u32,
    },

    HeldInt {
        column: u32,
        state: u32,
        out: u32,
    },
    HeldFloat {
        column: u32,
        state: u32,
        out: u32,
    },
    HeldText {
        column: u32,
        state: u32,
        buffer: u32,
        out: u32,
    },
    SelectInt {
        condition: Wire,
        a: u32,
        b: u32,
        out: u32,
    },
    SelectFloat {
        condition: Wire,
        a: u32,
        b: u32,
        out: u32,
    },
    SelectText {
        condition: Wire,
        a: u32,
        b: u32,
        out: u32,
    },
    LatchInt {
        x: u32,
        clock: Wire,
        state: u32,
        out: u32,
    },
    LatchFloat {
        x: u32,
        clock: Wire,
        state: u32,
        out: u32,
    },
    /// Keeps two texts: the current output in `buffer`, the output after the next tick in the buffer after
    /// it.
    LatchText {
        x: u32,
        clock: Wire,
        buffer: u32,
        out: u32,
    },
    SampledInt {
        x: u32,
        clock: Wire,
        state: u32,
        out: u32,
    },
    /// `window` is also the index in the section's table of operands.
    Window {
        window: u32,
        out: u32,
    },
    MarginInt {
        a: u32,
        b: u32,
        out: u32,
    },
    MarginFloat {
        a: u32,
        b: u32,
        out: u32,
    },
    RobustOnce {
        x: u32,
        timed: bool,
        state: u32,
        out: u32,
    },
    RobustSince {
        p: u32,
        q: u32,
        timed: bool,
        state: u32,
        out: u32,
    },
    RobustDense {
        /// Index in the section's table of operands.
        operands: u32,
        state: u32,
        /// Column of the half after each row.
        second: u32,
        out: u32,
    },
    AfterFloat {
        second: u32,
        out: u32,
    },
}

// The loop reads every instruction for every block, so that their size determines its speed.
const _: () = assert!(size_of::<Instruction>() <= 20);
