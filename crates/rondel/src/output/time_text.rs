//! Times for people, as in reports.

pub use rondel_report::time_text::{TimeText, is_calendar, offset};

/// The present date and local time, to the millisecond, for log lines.
pub fn now() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}
