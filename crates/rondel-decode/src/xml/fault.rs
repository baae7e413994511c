//! Faults of XML messages.

use std::fmt;

/// Fault of an XML message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XmlFault {
    /// The markup is not well formed.
    Markup,
    /// The end tag has another name than the element.
    EndTag,
    /// A name is not one of XML.
    Name,
    /// The attributes are not well formed.
    Attributes,
    /// An element has an attribute twice.
    TwoAttributes,
    /// A document type definition, which could define entities.
    Doctype,
    /// A reference to an entity that XML does not define.
    Entity,
    /// A character that XML does not allow.
    Character,
    /// The message is declared to have another encoding than UTF-8.
    OtherEncoding,
    /// There is no element.
    NoElement,
    /// Text or an element after the outermost element, or text before it.
    Outside,
    /// More than [`MAX_DEPTH`](super::MAX_DEPTH) levels.
    TooDeep,
    /// More than [`MAX_PARTS`](super::MAX_PARTS) elements and attributes.
    TooMany,
}

impl fmt::Display for XmlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            XmlFault::Markup => "the markup is not well formed",
            XmlFault::EndTag => "the end tag does not match the open element",
            XmlFault::Name => "this is no name in XML",
            XmlFault::Attributes => "the attributes are not well formed",
            XmlFault::TwoAttributes => "the element has an attribute twice",
            XmlFault::Doctype => "a document type definition is not read, nor are entities that it defines",
            XmlFault::Entity => {
                "unknown entity; `lt`, `gt`, `amp`, `apos`, `quot` and numbers of characters are read"
            }
            XmlFault::Character => "a character that XML does not allow",
            XmlFault::OtherEncoding => "the message is declared to be in another encoding than UTF-8",
            XmlFault::NoElement => "the message has no element",
            XmlFault::Outside => "this cannot stand outside the outermost element",
            XmlFault::TooDeep => return write!(f, "nested deeper than {} levels", super::MAX_DEPTH),
            XmlFault::TooMany => {
                return write!(f, "more than {} elements and attributes", super::MAX_PARTS);
            }
        };
        f.write_str(text)
    }
}
