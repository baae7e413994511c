//! The message of the chain: `geometry_msgs/msg/PointStamped` in CDR, with the number of the message as `x`.

/// The type.
pub const TYPE: &str = "geometry_msgs/msg/PointStamped";

/// Returns a message with this number and stamp, in nanoseconds since the Unix epoch.
pub fn write(number: u64, stamp_ns: i64) -> Vec<u8> {
    let mut cdr = vec![0, 1, 0, 0];
    cdr.extend(((stamp_ns / 1_000_000_000) as i32).to_le_bytes());
    cdr.extend(((stamp_ns % 1_000_000_000) as u32).to_le_bytes());
    cdr.extend(4_u32.to_le_bytes());
    cdr.extend(b"map\0");
    for value in [number as f64, 0.0, 0.0] {
        cdr.extend(value.to_le_bytes());
    }
    cdr
}

/// Returns number and stamp of a message; `None` if it is not one of the chain.
pub fn read(cdr: &[u8]) -> Option<(u64, i64)> {
    let seconds = i32::from_le_bytes(cdr.get(4..8)?.try_into().ok()?);
    let nanoseconds = u32::from_le_bytes(cdr.get(8..12)?.try_into().ok()?);
    let number = f64::from_le_bytes(cdr.get(20..28)?.try_into().ok()?);
    (number >= 0.0).then(|| (number as u64, i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let cdr = write(7, 1_700_000_000_123_456_789);
        // Header of the encoding, stamp, text, three numbers.
        assert_eq!(cdr.len(), 4 + 8 + 8 + 24);
        assert_eq!(read(&cdr), Some((7, 1_700_000_000_123_456_789)));
        assert_eq!(read(&cdr[..27]), None);
    }
}
