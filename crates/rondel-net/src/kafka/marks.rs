//! Marks of a snapshot of several networks.

/// Begin of marks that contain those of Kafka: no client id of MQTT, whose length stands in this place, is as long.
const OF_KAFKA: [u8; 4] = [0xff; 4];

/// Joins the marks of Kafka with those of MQTT, which stay as they are without Kafka.
pub fn join(of_kafka: &[u8], of_mqtt: &[u8]) -> Vec<u8> {
    let length = (of_kafka.len() as u32).to_le_bytes();
    [&OF_KAFKA[..], &length, of_kafka, of_mqtt].concat()
}

/// Splits joined marks into those of Kafka and of MQTT.
pub fn split(marks: &[u8]) -> (&[u8], &[u8]) {
    let of_kafka = || {
        let (length, rest) = marks.strip_prefix(&OF_KAFKA)?.split_first_chunk()?;
        rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    };
    of_kafka().unwrap_or((&marks[..0], marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_two_networks_are_joined_and_split() {
        let of_mqtt = [3, 0, 0, 0, b'o', b'n', b'e'];
        for of_kafka in [&b"kafka"[..], b""] {
            let joined = join(of_kafka, &of_mqtt);
            assert_eq!(split(&joined), (of_kafka, &of_mqtt[..]));
            // A damaged length is not a length of Kafka.
            for end in 0..joined.len() - of_mqtt.len() {
                assert_eq!(split(&joined[..end]).1, &joined[..end]);
            }
        }
        assert_eq!(split(&of_mqtt), (&b""[..], &of_mqtt[..]));
        assert_eq!(split(b""), (&b""[..], &b""[..]));
    }
}
