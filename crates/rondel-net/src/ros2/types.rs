//! Names and hashes of types.

use std::fmt::Write as _;

use super::Ros2Error;

const TYPE: &str = "a ROS 2 type";
const HASH: &str = "a type hash of ROS 2";
const HASH_PREFIX: &str = "RIHS01_";
/// Replaces the hash of publishers and subscriptions without one, those of ROS 2 Humble.
const NO_HASH: &str = "TypeHashNotSupported";
/// Kinds of interfaces, between package and type.
const KINDS: [&str; 3] = ["msg", "srv", "action"];

/// The name of a type, such as `std_msgs/msg/String`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageType {
    package: String,
    kind: &'static str,
    name: String,
}

impl MessageType {
    /// Parses `package/msg/Type`, or `package/Type` for short.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake and, if one is obvious, the intended type.
    pub fn parse(text: &str) -> Result<MessageType, Ros2Error> {
        let parts: Vec<&str> = text.splitn(4, '/').collect();
        let (package, kind, name) = match parts[..] {
            [package, name] => (package, "msg", name),
            [package, kind, name] => (package, kind, name),
            _ => {
                let reason = "it is not written package/msg/Type";
                return Err(Ros2Error::new(text, TYPE, reason).suggest(repaired(text)));
            }
        };
        let known = KINDS.into_iter().find(|known| *known == kind);
        let reason = match known {
            None => format!("'{}' is none of {}", kind.escape_debug(), KINDS.join(", ")),
            Some(_) if !is_package(package) => {
                format!("the package '{}' is not lower-case letters, digits and _", package.escape_debug())
            }
            Some(_) if !is_name(name) => {
                format!(
                    "the type '{}' is not letters and digits after an upper-case letter",
                    name.escape_debug()
                )
            }
            Some(kind) => {
                return Ok(MessageType { package: package.to_owned(), kind, name: name.to_owned() });
            }
        };
        Err(Ros2Error::new(text, TYPE, reason).suggest(repaired(text)))
    }

    /// Returns the name of the type in DDS: `std_msgs::msg::dds_::String_`.
    pub fn dds(&self) -> String {
        format!("{}::{}::dds_::{}_", self.package, self.kind, self.name)
    }

    /// Returns the type of a name in DDS; `None` if it is not one of a ROS 2 type.
    pub fn from_dds(name: &str) -> Option<MessageType> {
        let (package, rest) = name.split_once("::")?;
        let (kind, rest) = rest.split_once("::")?;
        let name = rest.strip_prefix("dds_::")?.strip_suffix('_')?;
        let kind = KINDS.into_iter().find(|known| *known == kind)?;
        (is_package(package) && is_name(name)).then(|| MessageType {
            package: package.to_owned(),
            kind,
            name: name.to_owned(),
        })
    }
}

impl std::fmt::Display for MessageType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.package, self.kind, self.name)
    }
}

fn is_package(text: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(good)
}

fn is_name(text: &str) -> bool {
    // The underscore is in the messages of services: AddTwoInts_Request.
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(good)
}

/// Returns the intended type of a name written as in C++, Python or DDS, or in lower case.
fn repaired(text: &str) -> Option<String> {
    let parts = text.split(['/', ':', '.']).map(str::trim).filter(|part| !part.is_empty() && *part != "dds_");
    let parts: Vec<&str> = parts.take(4).collect();
    let (package, kind, name) = match parts[..] {
        [package, name] => (package, "msg", name),
        [package, kind, name] => (package, kind, name),
        _ => return None,
    };
    // The underscore at the end belongs to the name in DDS.
    let name = if text.contains("::dds_::") { name.strip_suffix('_').unwrap_or(name) } else { name };
    let mut chars = name.chars();
    let first = chars.next()?.to_ascii_uppercase();
    let repaired = format!("{}/{kind}/{first}{}", package.to_ascii_lowercase(), chars.as_str());
    (repaired != text && MessageType::parse(&repaired).is_ok()).then_some(repaired)
}

/// The hash of a type: RIHS01, a SHA-256 of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHash([u8; 32]);

impl TypeHash {
    /// Parses `RIHS01_` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`Ros2Error`] with the mistake.
    pub fn parse(text: &str) -> Result<TypeHash, Ros2Error> {
        let wrong = |reason: &str| Err(Ros2Error::new(text, HASH, reason));
        let Some(digits) = text.strip_prefix(HASH_PREFIX) else {
            return wrong("it does not begin with RIHS01_");
        };
        let digits = digits.as_bytes();
        if digits.len() != 64 {
            return wrong("it does not have 64 hexadecimal digits after RIHS01_");
        }
        let digit = |c: u8| char::from(c).to_digit(16);
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return wrong("it has a digit that is not hexadecimal");
            };
            *byte = (high << 4 | low) as u8;
        }
        Ok(TypeHash(hash))
    }

    /// Parses a hash in a key or token of rmw_zenoh, which may be missing.
    pub(super) fn of_key(text: &str) -> Option<TypeHash> {
        TypeHash::parse(text).ok()
    }

    /// Returns a hash in the form of keys and tokens of rmw_zenoh.
    pub(super) fn in_key(hash: Option<&TypeHash>) -> String {
        hash.map_or_else(|| NO_HASH.to_owned(), TypeHash::to_string)
    }
}

impl std::fmt::Display for TypeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(71);
        text.push_str(HASH_PREFIX);
        // Writing to a string cannot fail.
        self.0.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn types_have_a_name_in_dds() {
        let string = MessageType::parse("std_msgs/msg/String").unwrap();
        assert_eq!(string.dds(), "std_msgs::msg::dds_::String_");
        assert_eq!(MessageType::from_dds("std_msgs::msg::dds_::String_").unwrap(), string);
        assert_eq!(MessageType::parse("std_msgs/String").unwrap(), string);
        let service = MessageType::from_dds("example_interfaces::srv::dds_::AddTwoInts_Request_").unwrap();
        assert_eq!(service.to_string(), "example_interfaces/srv/AddTwoInts_Request");
        for other in
            ["String", "std_msgs::msg::String", "std_msgs::msg::dds_::String", "::msg::dds_::A_", "a::b::c"]
        {
            assert_eq!(MessageType::from_dds(other), None, "{other}");
        }
    }

    #[test]
    fn mistakes_come_with_the_intended_type() {
        for (text, expected) in [
            (
                "std_msgs::msg::String",
                "it is not written package/msg/Type; did you mean 'std_msgs/msg/String'?",
            ),
            (
                "std_msgs::msg::dds_::String_",
                "it is not written package/msg/Type; did you mean 'std_msgs/msg/String'?",
            ),
            (
                "std_msgs.msg.String",
                "it is not written package/msg/Type; did you mean 'std_msgs/msg/String'?",
            ),
            (
                "std_msgs/msg/string",
                "the type 'string' is not letters and digits after an upper-case letter; did you mean 'std_msgs/msg/String'?",
            ),
            (
                "Std_msgs/msg/String",
                "the package 'Std_msgs' is not lower-case letters, digits and _; did you mean 'std_msgs/msg/String'?",
            ),
            ("std_msgs/message/String", "'message' is none of msg, srv, action"),
            ("String", "it is not written package/msg/Type"),
            ("a/b/c/d", "it is not written package/msg/Type"),
        ] {
            let error = MessageType::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("'{text}' is not a ROS 2 type: {expected}"));
        }
    }

    #[test]
    fn hashes_are_read_and_written() {
        let text = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";
        assert_eq!(TypeHash::parse(text).unwrap().to_string(), text);
        for (text, expected) in [
            ("df66", "it does not begin with RIHS01_"),
            ("RIHS01_df66", "it does not have 64 hexadecimal digits after RIHS01_"),
            (&text.replace('d', "g"), "it has a digit that is not hexadecimal"),
            (
                "RIHS01_äääääääääääääääääääääääääääääääää",
                "it does not have 64 hexadecimal digits after RIHS01_",
            ),
        ] {
            assert_eq!(TypeHash::parse(text).unwrap_err().reason, expected);
        }
        assert_eq!(TypeHash::of_key("TypeHashNotSupported"), None);
        assert_eq!(TypeHash::in_key(None), "TypeHashNotSupported");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_suggestions_are_right(text in any::<String>(), likely in "[a-zA-Z_:./]{0,30}") {
            for text in [text, likely] {
                if let Err(Ros2Error { suggestion: Some(suggestion), .. }) = MessageType::parse(&text) {
                    prop_assert!(MessageType::parse(&suggestion).is_ok());
                }
                _ = MessageType::from_dds(&text);
                _ = TypeHash::parse(&text);
                _ = TypeHash::parse(&format!("RIHS01_{text}"));
            }
        }

        #[test]
        fn types_are_found_again(package in "[a-z][a-z0-9_]{0,9}", name in "[A-Z][A-Za-z0-9_]{0,9}", bytes in any::<[u8; 32]>()) {
            for kind in KINDS {
                let message_type = MessageType::parse(&format!("{package}/{kind}/{name}")).unwrap();
                prop_assert_eq!(MessageType::from_dds(&message_type.dds()).unwrap(), message_type.clone());
                prop_assert_eq!(MessageType::parse(&message_type.to_string()).unwrap(), message_type);
            }
            let hash = TypeHash(bytes);
            prop_assert_eq!(TypeHash::parse(&hash.to_string()).unwrap(), hash);
        }
    }
}
