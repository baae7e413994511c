//! Ids of publishers.

use std::fmt;

/// Id of a publisher of DDS: its GUID. It is shown as in the logs of CycloneDDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherId(pub [u8; 16]);

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = u128::from_be_bytes(self.0);
        let part = |shift: u32| (id >> shift) as u32;
        write!(f, "{:x}:{:x}:{:x}:{:x}", part(96), part(64), part(32), part(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_shown_in_four_parts() {
        let id = [0x11, 0x10, 0xab, 0xcd, 0, 0, 0, 1, 0xff, 0, 0, 2, 0, 0, 0x01, 0xc1];
        assert_eq!(PublisherId(id).to_string(), "1110abcd:1:ff000002:1c1");
        assert_eq!(PublisherId([0; 16]).to_string(), "0:0:0:0");
    }
}
