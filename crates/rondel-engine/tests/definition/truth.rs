//! Three-valued truths, and truths that are not decided yet.
//!
//! A truth has a lower and an upper bound: whether it is certainly true, and whether it is possibly true.
//! Each is two-valued, and may be undecided as it depends on events after the end of the trace.

use rondel_event::{Value, Verdict};

/// A lower or upper truth; none while undecided.
type Bound = Option<bool>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    certainly: Bound,
    possibly: Bound,
}

/// The result of a node at a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Truth(Truth),
    /// A value that is not boolean.
    Value(Value),
    /// A value that stays unknown.
    Unknown,
    /// An undecided value.
    Pending,
}

/// An operand as a strict operator sees it.
pub enum Seen {
    Value(Value),
    Unknown,
    Pending,
}

fn bound_and(x: Bound, y: Bound) -> Bound {
    match (x, y) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn bound_not(x: Bound) -> Bound {
    x.map(|x| !x)
}

impl Truth {
    pub const TRUE: Truth = Truth { certainly: Some(true), possibly: Some(true) };
    pub const FALSE: Truth = Truth { certainly: Some(false), possibly: Some(false) };
    pub const UNKNOWN: Truth = Truth { certainly: Some(false), possibly: Some(true) };
    pub const PENDING: Truth = Truth { certainly: None, possibly: None };

    pub fn known(x: bool) -> Truth {
        if x { Truth::TRUE } else { Truth::FALSE }
    }

    pub fn not(self) -> Truth {
        Truth { certainly: bound_not(self.possibly), possibly: bound_not(self.certainly) }
    }

    pub fn and(self, other: Truth) -> Truth {
        Truth {
            certainly: bound_and(self.certainly, other.certainly),
            possibly: bound_and(self.possibly, other.possibly),
        }
    }

    pub fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }

    pub fn definitely(self) -> Truth {
        Truth { certainly: self.certainly, possibly: self.certainly }
    }

    /// None while undecided.
    pub fn verdict(self) -> Option<Verdict> {
        match (self.certainly, self.possibly) {
            (Some(true), _) => Some(Verdict::Satisfied),
            (_, Some(false)) => Some(Verdict::Violated),
            (Some(false), Some(true)) => Some(Verdict::Inconclusive),
            _ => None,
        }
    }
}

impl Datum {
    /// A value, or unknown.
    pub fn of(value: Option<Value>) -> Datum {
        match value {
            Some(Value::Bool(x)) => Datum::Truth(Truth::known(x)),
            Some(value) => Datum::Value(value),
            None => Datum::Unknown,
        }
    }

    pub fn truth(&self) -> Truth {
        match self {
            Datum::Truth(truth) => *truth,
            Datum::Unknown => Truth::UNKNOWN,
            Datum::Pending => Truth::PENDING,
            Datum::Value(other) => panic!("{other:?} is no truth"),
        }
    }

    pub fn see(&self) -> Seen {
        match self {
            Datum::Value(value) => Seen::Value(value.clone()),
            Datum::Unknown => Seen::Unknown,
            Datum::Pending => Seen::Pending,
            Datum::Truth(truth) => match truth.verdict() {
                Some(Verdict::Satisfied) => Seen::Value(Value::Bool(true)),
                Some(Verdict::Violated) => Seen::Value(Value::Bool(false)),
                Some(Verdict::Inconclusive) => Seen::Unknown,
                None => Seen::Pending,
            },
        }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<Value> {
        match self.see() {
            Seen::Value(value) => Some(value),
            Seen::Unknown | Seen::Pending => None,
        }
    }
}

/// A function of two operands that needs both.
pub fn strict(x: &Datum, y: &Datum, f: impl FnOnce(Value, Value) -> Option<Value>) -> Datum {
    match (x.see(), y.see()) {
        (Seen::Unknown, _) | (_, Seen::Unknown) => Datum::Unknown,
        (Seen::Pending, _) | (_, Seen::Pending) => Datum::Pending,
        (Seen::Value(x), Seen::Value(y)) => Datum::of(f(x, y)),
    }
}
