//! Paths of fields in messages.

use std::fmt;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// The member of an object with this name.
    Key(Box<str>),
    /// The element of an array at this position, from 0.
    Index(u32),
    /// The element of an array at this position from its end, from 1 for the last one to [`FROM_END`].
    FromEnd(u32),
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
            }
        }
        Ok(())
    }
}
