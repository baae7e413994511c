//! The time of a simulation: messages `rosgraph_msgs/msg/Clock` on the topic `/clock`.

use rondel_event::Timestamp;

use super::qos::{Durability, Reliability};
use super::{MessageType, QosOverrides, Ros2Error, Topic, TypeHash};
use rondel_decode::schema::Library;

const TOPIC: &str = "/clock";
/// Type of its messages.
pub const TYPE: &str = "rosgraph_msgs/msg/Clock";

/// Returns the topic with the quality of service of a subscription in ROS 2: best effort, the last message.
///
/// # Errors
/// None: a test parses the names.
pub fn topic() -> Result<Topic, Ros2Error> {
    let qos = QosOverrides {
        reliability: Some(Reliability::BestEffort),
        durability: Some(Durability::Volatile),
        depth: Some(1),
        ..QosOverrides::default()
    };
    Ok(Topic { qos, ..Topic::parse(TOPIC)?.typed(MessageType::parse(TYPE)?, None) })
}

/// Returns the topic with the quality of service of Rondel's publisher: reliable, so that every subscription gets it,
/// the last message.
///
/// # Errors
/// None: a test parses the names and the definition.
pub fn published() -> Result<Topic, Ros2Error> {
    let Topic { name, message_type, qos, .. } = topic()?;
    let schema = Library::ros().and_then(|library| library.schema(TYPE));
    let schema = schema.map_err(|error| Ros2Error::new(TYPE, "a known type", error.to_string()))?;
    let hash = schema.rihs01().map(|hash| TypeHash::parse(&hash)).transpose()?;
    let qos = QosOverrides { reliability: Some(Reliability::Reliable), ..qos };
    Ok(Topic { name, message_type, hash, qos, middleware: None })
}

/// Returns the message of a time in CDR. Times before 1901 and after 2038, which it cannot hold, become the nearest
/// possible one.
pub fn write(time: Timestamp) -> [u8; 12] {
    let seconds = time.as_nanos().div_euclid(1_000_000_000);
    let nanos = time.as_nanos().rem_euclid(1_000_000_000) as u32;
    let (seconds, nanos) = match i32::try_from(seconds) {
        Ok(seconds) => (seconds, nanos),
        Err(_) if seconds < 0 => (i32::MIN, 0),
        Err(_) => (i32::MAX, 999_999_999),
    };
    let mut message = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    message[4..8].copy_from_slice(&seconds.to_le_bytes());
    message[8..].copy_from_slice(&nanos.to_le_bytes());
    message
}

/// Parses a message in CDR: seconds (`int32`) and nanoseconds (`uint32`) after the header. `None` for other bytes.
pub fn read(payload: &[u8]) -> Option<Timestamp> {
    let (header, rest) = payload.split_first_chunk::<4>()?;
    let (seconds, rest) = rest.split_first_chunk::<4>()?;
    let nanos = rest.first_chunk::<4>()?;
    let (seconds, nanos) = match header {
        [0, 0, ..] => (i32::from_be_bytes(*seconds), u32::from_be_bytes(*nanos)),
        [0, 1, ..] => (i32::from_le_bytes(*seconds), u32::from_le_bytes(*nanos)),
        _ => return None,
    };
    // Neither the product nor the sum exceeds 64 bits.
    let time = Timestamp::from_nanos(i64::from(seconds) * 1_000_000_000 + i64::from(nanos));
    (nanos < 1_000_000_000).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_has_a_name_and_a_type() {
        let published = published().unwrap();
        assert_eq!((published.name.as_str(), published.hash.is_some()), ("/clock", true));
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

    #[test]
    fn messages_are_written_as_they_are_read() {
        for nanos in
            [0, 1, -1, 1_732_250_000_123_456_789, 2_147_483_647_999_999_999, -2_147_483_648_000_000_000]
        {
            let time = Timestamp::from_nanos(nanos);
            assert_eq!(read(&write(time)), Some(time));
        }
        let nearest = |nanos: i64| read(&write(Timestamp::from_nanos(nanos))).unwrap().as_nanos();
        assert_eq!(nearest(i64::MAX), 2_147_483_647_999_999_999);
        assert_eq!(nearest(i64::MIN), -2_147_483_648_000_000_000);
    }
}
