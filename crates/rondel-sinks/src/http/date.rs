//! Dates of headers.

use rondel_event::calendar::{self, Precision};

/// Returns the seconds since the Unix epoch of a date as HTTP writes it, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn parse_http_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let found = calendar::parse(format!("{year}-{month:02}-{day}T{time}Z").as_bytes())?;
    (found.precision == Precision::Second).then_some(found.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse_http_date("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:00:00 GMT",
            "Sun, 06 X 1994 08:49:37 GMT",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37+01 GMT",
        ] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
    }
}
