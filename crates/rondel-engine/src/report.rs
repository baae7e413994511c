use rondel_event::{Timestamp, Verdict};

/// A verdict that a monitor has given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The property, by its position.
    pub property: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the verdict is another than the one before it of the same property (and the same key). The
    /// first one always counts as changed.
    pub changed: bool,
    /// The row of the event that it was given at, if it was at an event. Otherwise time itself brought it.
    pub row: Option<u8>,
    /// How many events there were before: the number of the event that it was given at; of a verdict that
    /// time brought, the number of the event before it.
    pub step: u64,
    /// When it became certain.
    pub time: Timestamp,
    /// The time that it is about, where that is another: of properties with operators of the future.
    pub about: Option<Timestamp>,
    /// How far from being violated the property is, where that is asked for and known.
    pub robustness: Option<f64>,
    /// Its place among the reports of one call.
    pub(crate) order: u32,
}

impl Report {
    /// A changed verdict of the first property at an event in row 0.
    pub fn at_event(verdict: Verdict, step: u64, time: Timestamp) -> Report {
        Report {
            property: 0,
            verdict,
            changed: true,
            row: Some(0),
            step,
            time,
            about: None,
            robustness: None,
            order: 0,
        }
    }
}
