//! Any bytes as packets from a broker, in both versions: no panic, and a message that is written again reads the same.

#![no_main]

#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/rondel-net/src/mqtt/packet.rs"]
mod packet;

use libfuzzer_sys::fuzz_target;
use packet::{Packet, decode, frame, publish, publish_length};

/// As in `rondel-net`, where the rest of the network comes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qos {
    AtMostOnce = 0,
    AtLeastOnce = 1,
    ExactlyOnce = 2,
}

impl Qos {
    fn from_number(number: u8) -> Option<Qos> {
        [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce].get(usize::from(number)).copied()
    }
}

/// Likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V3,
    V5,
}

fuzz_target!(|bytes: &[u8]| {
    for version in [Version::V3, Version::V5] {
        let mut rest = bytes;
        while let Ok(Some((first, start, end))) = frame(rest) {
            assert!(start <= end && end <= rest.len());
            // More bytes never change what the first packet is.
            assert_eq!(frame(&rest[..end]), Ok(Some((first, start, end))));
            assert_eq!(frame(&rest[..end - 1]).map(|found| found.is_some()), Ok(false));
            if let Ok(Packet::Publish(message)) = decode(version, first, &rest[start..end]) {
                let mut written = Vec::new();
                publish(version, &message, &mut written);
                let Ok(Some((first, start, end))) = frame(&written) else {
                    panic!("{message:?} is no packet")
                };
                assert_eq!(end - start, publish_length(version, &message));
                assert_eq!(decode(version, first, &written[start..end]), Ok(Packet::Publish(message)));
            }
            rest = &rest[end..];
        }
    }
});
