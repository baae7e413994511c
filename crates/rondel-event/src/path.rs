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
    /// The parameter of a `for each` that is the name, if no constant is: each instance reads its own element. Decoders
    /// read such elements as rows of a [`Table`](crate::Table).
    pub parameter: Option<Box<str>>,
}

impl From<&Named> for Named {
    fn from(named: &Named) -> Named {
        named.clone()
    }
}

impl Named {
    /// The element whose member at the path `key`, or in the parallel array with this path, is `name`.
    pub fn new(key: Path, name: Value, is_parallel: bool) -> Named {
        let condition = Condition { alternative: 0, path: key, test: Test::Equals(name) };
        Named { condition, is_parallel, parameter: None }
    }

    /// The element whose member at the path `key`, or in the parallel array with this path, is the value of a parameter.
    pub fn of_parameter(key: Path, parameter: &str, is_parallel: bool) -> Named {
        let condition = Condition { alternative: 0, path: key, test: Test::Present };
        Named { condition, is_parallel, parameter: Some(parameter.into()) }
    }

    /// The element of the array of names that is the name: what a parallel one looks for.
    pub fn of_names(&self) -> Named {
        let condition = Condition { path: Path::default(), ..self.condition.clone() };
        Named { condition, is_parallel: self.is_parallel, parameter: self.parameter.clone() }
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
            _ => write!(f, "{}]", self.parameter.as_deref().unwrap_or("?")),
        }
    }
}

/// Maximum distance of a named element from the end of an array.
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

    /// Returns the path of the array of which each instance of a `for each` reads its own element, and what lies between
    /// it and the value.
    pub fn of_each(&self) -> Option<(&[Segment], &Named, &[Segment])> {
        self.0.iter().enumerate().find_map(|(at, segment)| match segment {
            Segment::Named(named) if named.parameter.is_some() => {
                Some((&self.0[..at], &**named, &self.0[at + 1..]))
            }
            _ => None,
        })
    }

    /// Returns the path as `for each` names it, if it is that of the names of elements: `status.name` for
    /// `status[name == n].name`; any other as it is.
    pub fn as_listed(&self) -> Path {
        match self.of_each() {
            Some((array, named, rest)) => {
                let key = &named.key().0[..];
                let is_key =
                    if named.is_parallel { rest.is_empty() && array.ends_with(key) } else { rest == key };
                if is_key { Path([array, rest].concat()) } else { self.clone() }
            }
            None => self.clone(),
        }
    }

    /// Returns the path of the same value in the element at a position of this array.
    pub fn at_element(&self, index: u32) -> Path {
        let segment = |segment: &Segment| match segment {
            Segment::Named(named) if named.parameter.is_some() => Segment::Index(index),
            other => other.clone(),
        };
        Path(self.0.iter().map(segment).collect())
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
