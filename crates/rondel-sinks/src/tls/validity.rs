//! Time in which a certificate is valid (RFC 5280, section 4.1.2.5).

use rondel_event::{Timestamp, calendar};

/// Returns the first and the last time at which a certificate in DER is valid; `None` if it cannot be read.
pub(super) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // The version may be absent.
    if let (VERSION, _, rest) = element(fields)? {
        fields = rest;
    }
    // Serial number, algorithm and issuer.
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (_, validity, _) = element(fields)?;
    let (first_tag, first, rest) = element(validity)?;
    let (last_tag, last, _) = element(rest)?;
    Some((time(first_tag, first)?, time(last_tag, last)?))
}

/// Tag of the version.
const VERSION: u8 = 0xa0;
/// Tag of a time with a year of two digits.
const UTC_TIME: u8 = 0x17;
/// Tag of a time with a year of four digits.
const GENERALIZED_TIME: u8 = 0x18;

/// Splits the first element off: its tag, its content, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        _ => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            if bytes.len() > 4 {
                return None;
            }
            (bytes.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A time, such as `261130201500Z` of the tag for years of two digits.
fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (century, text) = match tag {
        UTC_TIME if text < "50" => ("20", text),
        UTC_TIME => ("19", text),
        GENERALIZED_TIME => ("", text),
        _ => return None,
    };
    let text = format!("{century}{text}");
    let part = |from: usize, to: usize| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let time = calendar::parse(format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").as_bytes())?;
    // Certificates without an end name the year 9999.
    Some(time.timestamp().unwrap_or(Timestamp::from_nanos(i64::MAX)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        calendar::parse(text.as_bytes()).unwrap().timestamp().unwrap()
    }

    #[test]
    fn times_of_certificates_are_read() {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2026, 2, 3);
        parameters.not_after = rcgen::date_time_ymd(2060, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let found = validity(certificate.der()).unwrap();
        assert_eq!(found, (at("2026-02-03T00:00:00Z"), at("2060-12-31T00:00:00Z")));
        for length in 0..certificate.der().len() {
            assert_eq!(validity(&certificate.der()[..length]), None, "it is cut off");
        }
    }

    #[test]
    fn years_of_two_digits_are_from_1950_on() {
        assert_eq!(time(UTC_TIME, b"491231235959Z"), Some(at("2049-12-31T23:59:59Z")));
        assert_eq!(time(UTC_TIME, b"991231235959Z"), Some(at("1999-12-31T23:59:59Z")));
        assert_eq!(time(GENERALIZED_TIME, b"99991231235959Z"), Some(Timestamp::from_nanos(i64::MAX)));
        assert_eq!(time(UTC_TIME, b"4912312359"), None);
        assert_eq!(time(2, b"491231235959Z"), None);
    }
}
