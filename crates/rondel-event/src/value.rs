use std::fmt;

/// The type of a value that a field can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// True or false.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// A double-precision number.
    Float,
    /// A point in time, kept as nanoseconds like [`Timestamp`](crate::Timestamp).
    Time,
    /// A span of time, in nanoseconds.
    Duration,
    /// UTF-8 text.
    String,
}

impl ValueType {
    /// Whether values of this type are numbers that arithmetic works on.
    pub fn is_number(self) -> bool {
        matches!(self, ValueType::Int | ValueType::Float)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ValueType::Bool => "bool",
            ValueType::Int => "int",
            ValueType::Float => "float",
            ValueType::Time => "time",
            ValueType::Duration => "duration",
            ValueType::String => "string",
        })
    }
}

/// One value. On the path of a message values live in the typed columns of a
/// [`Block`](crate::Block); this type is for constants, tests and reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// A double-precision number.
    Float(f64),
    /// A point in time, in nanoseconds.
    Time(i64),
    /// A span of time, in nanoseconds.
    Duration(i64),
    /// UTF-8 text.
    String(Box<str>),
}

impl Value {
    /// The type of this value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::Bool(_) => ValueType::Bool,
            Value::Int(_) => ValueType::Int,
            Value::Float(_) => ValueType::Float,
            Value::Time(_) => ValueType::Time,
            Value::Duration(_) => ValueType::Duration,
            Value::String(_) => ValueType::String,
        }
    }
}

/// How two values of one ordered type are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Applies the comparison. A NaN is different from everything and ordered with nothing,
    /// as IEEE 754 says.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}
