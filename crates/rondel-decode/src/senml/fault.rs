//! Faults of SenML packs.

use std::fmt;

/// Fault of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackFault {
    /// The payload is no list of records.
    NoPack,
    /// It has neither a name nor a base name.
    NoName,
    /// It has neither a value nor a sum.
    NoValue,
    /// It has several values.
    SeveralValues,
    /// The value of this label has another type.
    OtherType(&'static str),
    /// A label that ends in `_` must be understood, and is not known.
    UnknownLabel,
    /// It needs a later version of SenML.
    LaterVersion,
}

impl fmt::Display for PackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackFault::NoPack => f.write_str(
                "not a pack of SenML, which is an array of records; for other JSON or CBOR write `encoding: json` or `cbor`",
            ),
            PackFault::NoName => f.write_str("the record has no name: it needs `n`, or `bn` in it or before it"),
            PackFault::NoValue => {
                f.write_str("the record has no value: it needs one of `v`, `vs`, `vb`, `vd`, or a sum `s`")
            }
            PackFault::SeveralValues => f.write_str("the record has several of the values `v`, `vs`, `vb`, `vd`; it may have one"),
            PackFault::OtherType(label) => write!(f, "the value of `{label}` has another type than RFC 8428 gives it"),
            PackFault::UnknownLabel => {
                f.write_str("the record has a label that ends in `_`, so that it must be understood, and it is not known")
            }
            PackFault::LaterVersion => {
                f.write_str("the pack needs a later version of SenML (`bver`) than 10, that of RFC 8428")
            }
        }
    }
}
