//! The time of a simulation: messages `rosgraph_msgs/msg/Clock` on the topic `/clock`.

use rondel_event::Timestamp;

use super::qos::{Durability, Reliability};
use super::{MessageType, QosOverrides, Ros2Error, Topic};

const TOPIC: &str = "/clock";
/// The type of its messages.
pub const TYPE: &str = "rosgraph_msgs/msg/Clock";

/// Returns the topic as nodes of ROS 2 subscribe to it: best effort, the last message.
///
/// # Errors
/// None: a test reads the names.
pub fn topic() -> Result<Topic, Ros2Error> {
    let qos = QosOverrides {
        reliability: Some(Reliability::BestEffort),
        durability: Some(Durability::Volatile),
        depth: Some(1),
        ..QosOverrides::default()
    };
    Ok(Topic { qos, ..Topic::parse(TOPIC)?.typed(MessageType::parse(TYPE)?, None) })
}

/// Reads a message in CDR: seconds (`int32`) and nanoseconds (`uint32`) after the header. `None` if it is none.
pub fn read(payload: &[u8]) -> Option<Timestamp> {
    let (header, rest) = payload.split_first_chunk::<4>()?;
    let (seconds, rest) = rest.split_first_chunk::<4>()?;
    let nanos = rest.first_chunk::<4>()?;
    let (seconds, nanos) = match header {
        [0, 0, ..] => (i32::from_be_bytes(*seconds), u32::from_be_bytes(*nanos)),
        [0, 1, ..] => (i32::from_le_bytes(*seconds), u32::from_le_bytes(*nanos)),
        _ => return None,
    };
    // Neither product nor sum is beyond 64 bits.
    let time = Timestamp::from_nanos(i64::from(seconds) * 1_000_000_000 + i64::from(nanos));
    (nanos < 1_000_000_000).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_has_a_name_and_a_type() {
        let topic = topic().unwrap();
        assert_eq!(
            (topic.name.dds(), topic.message_type.unwrap().to_string()),
            ("rt/clock".into(), TYPE.into())
        );
    }

    #[test]
    fn messages_are_read_in_both_byte_orders() {
        let little = [0, 1, 0, 0, 10, 0, 0, 0, 0, 0x65, 0xcd, 0x1d];
        assert_eq!(read(&little), Some(Timestamp::from_nanos(10_500_000_000)));
        let big = [0, 0, 0, 0, 0, 0, 0, 10, 0x1d, 0xcd, 0x65, 0];
        assert_eq!(read(&big), read(&little));
        for length in 0..little.len() {
            assert_eq!(read(&little[..length]), None, "{length}");
        }
        assert_eq!(read(&[9; 12]), None, "another encoding");
        let nanos = [0, 1, 0, 0, 10, 0, 0, 0, 0, 0xca, 0x9a, 0x3b];
        assert_eq!(read(&nanos), None, "a whole second of nanoseconds");
        let extreme = [0, 1, 0, 0, 0, 0, 0, 0x80, 0xff, 0xc9, 0x9a, 0x3b];
        assert_eq!(read(&extreme), Some(Timestamp::from_nanos(-2_147_483_647_000_000_001)));
    }
}
