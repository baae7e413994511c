//! Times for people, as in reports.

pub use rondel_report::time_text::{TimeText, is_calendar, offset};

/// The present time of day, to the millisecond, for log lines.
pub fn now() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S%.3f").to_string()
}
