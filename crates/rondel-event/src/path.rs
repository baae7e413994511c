//! Paths of fields in messages.

use std::cmp::Ordering;
use std::fmt;

use crate::{Condition, Test, Value};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// The member of an object with this name.
    Key(Box<str>),
    /// The element of an array at this position, from 0.
    Index(u32),
    /// The element of an array at this position from its end, from 1 for the last one to [`FROM_END`].
    FromEnd(u32),
    /// The element of an array with a name.
    Named(Box<Named>),
}

/// The element of an array that has a name: the last one, if several have it. A message without such an element does
/// not carry the field.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Named {
    /// Where the name stands, and what it is: a text, an integer or a boolean.
    pub condition: Condition,
    /// Whether the names stand in another array, which is a member of the same object: the name at a position is that of
    /// the element at this position. Otherwise each element is an object with its name in it.
    pub is_parallel: bool,
}

impl Named {
    /// The element whose member at the path `key`, or in the parallel array with this path, is `name`.
    pub fn new(key: Path, name: Value, is_parallel: bool) -> Named {
        let condition = Condition { alternative: 0, path: key, test: Test::Equals(name) };
        Named { condition, is_parallel }
    }

    /// The element of the array of names that is the name: what a parallel one looks for.
    pub fn of_names(&self) -> Named {
        let condition = Condition { path: Path::default(), ..self.condition.clone() };
        Named { condition, ..*self }
    }

    /// Where the name stands.
    pub fn key(&self) -> &Path {
        &self.condition.path
    }

    /// The name.
    pub fn name(&self) -> Option<&Value> {
        match &self.condition.test {
            Test::Equals(name) => Some(name),
            _ => None,
        }
    }
}

/// No name is a number with a fraction.
impl Eq for Named {}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Named) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By their texts.
impl Ord for Named {
    fn cmp(&self, other: &Named) -> Ordering {
        (self.is_parallel, self.to_string()).cmp(&(other.is_parallel, other.to_string()))
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} == ", self.key())?;
        match self.name() {
            Some(Value::String(text)) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    match c {
                        '"' | '\\' => write!(f, "\\{c}")?,
                        c => write!(f, "{c}")?,
                    }
                }
                f.write_str("\"]")
            }
            Some(Value::Int(number)) => write!(f, "{number}]"),
            Some(Value::Bool(truth)) => write!(f, "{truth}]"),
            _ => f.write_str("?]"),
        }
    }
}

/// How far from the end of an array elements may be named.
pub const FROM_END: u32 = 16;

/// Path from the root of a message to a field; empty for the message itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// Creates a path of object keys.
    ///
    /// ```
    /// use rondel_event::Path;
    /// assert_eq!(Path::keys(["pose", "x"]).to_string(), "pose.x");
    /// ```
    pub fn keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Path {
        Path(keys.into_iter().map(|k| Segment::Key(k.into())).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if i == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::FromEnd(index) => write!(f, "[-{index}]")?,
                Segment::Named(named) => write!(f, "{named}")?,
            }
        }
        Ok(())
    }
}
