//! Services of ROS 2 whose types need no definition: those of `std_srvs`.

use super::{MessageType, Ros2Error, TopicName};

/// The encoding of requests: little-endian CDR.
const CDR_LE: [u8; 4] = [0, 1, 0, 0];

/// A type of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceType {
    /// `std_srvs/srv/Empty`: neither request nor response have members.
    Empty,
    /// `std_srvs/srv/SetBool`: a boolean in the request, a result in the response.
    SetBool,
    /// `std_srvs/srv/Trigger`: a result in the response.
    Trigger,
}

/// A service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// Fully qualified name.
    pub name: TopicName,
    /// Type.
    pub of: ServiceType,
}

/// The response of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Whether the server reports success. `true` for `std_srvs/srv/Empty`.
    pub success: bool,
    /// Message of the server.
    pub message: String,
}

impl ServiceType {
    /// All of them.
    pub const ALL: [ServiceType; 3] = [ServiceType::Empty, ServiceType::SetBool, ServiceType::Trigger];

    /// Parses `std_srvs/srv/Trigger`, or `std_srvs/Trigger` for short.
    ///
    /// # Errors
    /// [`Ros2Error`] with the types that are known.
    pub fn parse(text: &str) -> Result<ServiceType, Ros2Error> {
        let full = text.split_once('/').map(|(package, name)| {
            let name = name.strip_prefix("srv/").unwrap_or(name);
            format!("{package}/srv/{name}")
        });
        let known = ServiceType::ALL.into_iter().find(|of| full.as_deref() == Some(of.name()));
        known.ok_or_else(|| {
            let names = ServiceType::ALL.map(ServiceType::name);
            let reason = format!("the types are: {}", names.join(", "));
            Ros2Error::new(text, "a type of services that Rondel calls", reason)
                .suggest(super::nearest(text, &names))
        })
    }

    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        match self {
            ServiceType::Empty => "std_srvs/srv/Empty",
            ServiceType::SetBool => "std_srvs/srv/SetBool",
            ServiceType::Trigger => "std_srvs/srv/Trigger",
        }
    }

    /// Returns the name of the type in DDS, with this ending of the type's own name: `std_srvs::srv::dds_::Trigger_`,
    /// `std_srvs::srv::dds_::Trigger_Request_`.
    pub fn dds(self, ending: &str) -> String {
        // The names are valid.
        MessageType::parse(&format!("{}{ending}", self.name())).map_or_else(|_| String::new(), |of| of.dds())
    }

    /// Returns a request in CDR; `data` is the value of `std_srvs/srv/SetBool`. A type without members has one byte.
    pub fn request(self, data: bool) -> Vec<u8> {
        let byte = u8::from(data && self == ServiceType::SetBool);
        [&CDR_LE[..], &[byte]].concat()
    }

    /// Parses a response in CDR.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn response(self, payload: &[u8]) -> Result<Response, &'static str> {
        let (head, body) = payload.split_first_chunk::<4>().ok_or("it is shorter than four bytes")?;
        if self == ServiceType::Empty {
            return Ok(Response { success: true, message: String::new() });
        }
        let number = match head[..2] {
            [0, 0 | 6] => u32::from_be_bytes,
            [0, 1 | 7] => u32::from_le_bytes,
            _ => return Err("its first bytes name no encoding of a plain structure"),
        };
        let success = match body.first() {
            Some(0) => false,
            Some(1) => true,
            Some(_) => return Err("`success` is no boolean"),
            None => return Err("it ends before `success`"),
        };
        // The length is aligned to four bytes.
        let rest = body.get(4..).and_then(|rest| rest.split_first_chunk::<4>());
        let (length, rest) = rest.ok_or("it ends before `message`")?;
        let length = usize::try_from(number(*length)).map_err(|_| "`message` is too long")?;
        let text = rest.get(..length).ok_or("`message` is longer than the response")?;
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        Ok(Response { success, message: String::from_utf8_lossy(text).into_owned() })
    }
}

impl std::fmt::Display for ServiceType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn types_have_their_names() {
        for (text, of) in [
            ("std_srvs/srv/SetBool", ServiceType::SetBool),
            ("std_srvs/Trigger", ServiceType::Trigger),
            ("std_srvs/srv/Empty", ServiceType::Empty),
        ] {
            assert_eq!(ServiceType::parse(text), Ok(of));
        }
        assert_eq!(ServiceType::Trigger.dds(""), "std_srvs::srv::dds_::Trigger_");
        assert_eq!(ServiceType::SetBool.dds("_Request"), "std_srvs::srv::dds_::SetBool_Request_");
        let error = ServiceType::parse("std_srvs/srv/Setbool").unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some("std_srvs/srv/SetBool"));
        for other in ["", "Trigger", "std_srvs/msg/Trigger", "example_interfaces/srv/AddTwoInts"] {
            let error = ServiceType::parse(other).unwrap_err().to_string();
            assert!(error.contains("std_srvs/srv/Trigger"), "{error}");
        }
    }

    #[test]
    fn requests_and_responses_are_cdr() {
        assert_eq!(ServiceType::SetBool.request(true), [0, 1, 0, 0, 1]);
        assert_eq!(ServiceType::SetBool.request(false), [0, 1, 0, 0, 0]);
        assert_eq!(ServiceType::Trigger.request(true), [0, 1, 0, 0, 0]);
        let done = |success, message: &str| Ok(Response { success, message: message.to_owned() });
        let le = [0, 1, 0, 0, 1, 9, 9, 9, 3, 0, 0, 0, b'o', b'k', 0];
        assert_eq!(ServiceType::Trigger.response(&le), done(true, "ok"));
        let be = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, b'n', b'o', 0, 0];
        assert_eq!(ServiceType::SetBool.response(&be), done(false, "no"));
        assert_eq!(ServiceType::Empty.response(&[0, 1, 0, 0, 0]), done(true, ""));
        for length in 0..le.len() {
            assert!(ServiceType::Trigger.response(&le[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for of in ServiceType::ALL {
                _ = of.response(&bytes);
            }
        }
    }
}
