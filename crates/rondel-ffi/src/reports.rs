//! Reports and notices, one after another, with texts that C borrows.

use std::collections::VecDeque;

use rondel_event::{Timestamp, Verdict};
use rondel_runtime::Session;
use rondel_runtime::text::write_value;

use crate::arguments::{Out, reference};
use crate::monitor::Monitor;
use crate::status::{RONDEL_END, RONDEL_OK, Status, guard};
use crate::text::Text;

/// The property is satisfied.
pub const RONDEL_SATISFIED: i32 = 0;
/// The property is violated.
pub const RONDEL_VIOLATED: i32 = 1;
/// The verdict depends on messages that were missed, or that never come.
pub const RONDEL_INCONCLUSIVE: i32 = 2;

/// [`Report::step`] of a verdict that time alone decided.
pub const RONDEL_NO_STEP: u64 = u64::MAX;

/// A verdict. Its texts are valid until the next call with the monitor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// The name of the property.
    pub property: Text,
    /// The value of `@severity`; empty without it.
    pub severity: Text,
    /// The parameters of `for each` as a JSON object; empty without any.
    pub key: Text,
    /// The explanation of a violation as JSON; empty without one.
    pub explanation: Text,
    /// The verdict as networks publish it.
    pub json: Text,
    /// The time in nanoseconds at which it became certain.
    pub time: i64,
    /// The time in nanoseconds that it is about.
    pub about: i64,
    /// The number of the message at which it became certain, from 0; [`RONDEL_NO_STEP`] if time alone decided it.
    pub step: u64,
    /// The robustness; NaN if it is not known or not requested.
    pub robustness: f64,
    /// The position of the property in the specification.
    pub property_index: u32,
    /// One of [`RONDEL_SATISFIED`], [`RONDEL_VIOLATED`], [`RONDEL_INCONCLUSIVE`].
    pub verdict: i32,
    /// 1 if it is about the open interval after `about`.
    pub is_after: u8,
}

/// A notice. Its texts are valid until the next call with the monitor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// The kind in one word, such as `backwards` or `undecodable`.
    pub kind: Text,
    /// The name of the topic; empty if it is about no single one.
    pub topic: Text,
    /// The sentence for people, without the name of the topic.
    pub text: Text,
    /// The notice as networks publish it.
    pub json: Text,
}

/// Reports that were taken from a session and not by C. Once it has grown, it allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    all: Vec<Kept>,
    /// The next one.
    next: usize,
    /// The texts of all, each with a NUL behind it.
    texts: Vec<u8>,
}

/// The bytes of a text, with its NUL.
type Place = (usize, usize);

/// A report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) property: u32,
    pub(crate) verdict: Verdict,
    pub(crate) time: Timestamp,
    pub(crate) about: Option<Timestamp>,
    pub(crate) is_after: bool,
    pub(crate) step: Option<u64>,
    pub(crate) robustness: Option<f64>,
    pub(crate) key: Place,
    pub(crate) explanation: Place,
    json: Place,
}

impl Reports {
    /// Returns the next report, of those of the session if none is kept any more.
    pub(crate) fn next(&mut self, session: &mut Session) -> Option<Kept> {
        if self.next >= self.all.len() && session.has_reports() {
            self.fill(session);
        }
        let next = self.all.get(self.next).copied();
        self.next += usize::from(next.is_some());
        next
    }

    /// Returns the bytes of a text, with its NUL.
    pub(crate) fn bytes(&self, (from, until): Place) -> &[u8] {
        self.texts.get(from..until).unwrap_or_default()
    }

    fn text(&self, place: Place) -> Text {
        Text::before_nul(self.bytes(place))
    }

    /// Takes the reports of a session in place of those that were taken.
    fn fill(&mut self, session: &mut Session) {
        let Reports { all, next, texts } = self;
        *next = 0;
        all.clear();
        texts.clear();
        for report in session.reports() {
            let key = written(texts, |out| write_key(&report, out));
            let explanation = written(texts, |out| {
                if let Some(found) = report.explanation() {
                    found.json(out);
                }
            });
            all.push(Kept {
                property: report.property().position,
                verdict: report.verdict(),
                time: report.time(),
                about: report.about(),
                is_after: report.is_after(),
                step: report.step(),
                robustness: report.robustness(),
                key,
                explanation,
                json: written(texts, |out| report.json(out)),
            });
        }
    }
}

/// Appends a text and a NUL.
fn written(texts: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Place {
    let start = texts.len();
    write(texts);
    texts.push(0);
    (start, texts.len())
}

/// Appends the parameters of a report as an object, if there are any.
fn write_key(report: &rondel_runtime::Report<'_>, out: &mut Vec<u8>) {
    let parameters = report.parameters();
    if parameters.is_empty() {
        return;
    }
    for (i, (name, value)) in report.property().parameters.iter().zip(parameters).enumerate() {
        out.push(if i > 0 { b',' } else { b'{' });
        rondel_columns::json::write_text(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// Notices that were taken from a session and not by C.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    waiting: VecDeque<rondel_runtime::Notice>,
    /// The texts of the last one, each with a NUL behind it.
    texts: Vec<u8>,
}

impl Notices {
    /// Returns the next notice, of those of the session if none is kept any more.
    fn next(&mut self, session: &mut Session) -> Option<Notice> {
        if self.waiting.is_empty() {
            self.waiting.extend(session.losses());
            self.waiting.extend(session.notices());
        }
        let notice = self.waiting.pop_front()?;
        let Notices { texts, .. } = self;
        texts.clear();
        let kind = written(texts, |out| out.extend_from_slice(notice.kind.as_bytes()));
        let topic = written(texts, |out| {
            out.extend_from_slice(notice.topic_name.as_deref().unwrap_or_default().as_bytes());
        });
        let mut seconds = |time: Timestamp| format!("{} s", time.as_nanos() as f64 / 1e9);
        let text = written(texts, |out| out.extend_from_slice(notice.text(&mut seconds).as_bytes()));
        let json = written(texts, |out| out.extend_from_slice(notice.json().to_string().as_bytes()));
        let text_at = |(from, until): Place| Text::before_nul(&texts[from..until]);
        Some(Notice { kind: text_at(kind), topic: text_at(topic), text: text_at(text), json: text_at(json) })
    }
}

/// The constant of a verdict.
pub(crate) fn verdict(verdict: Verdict) -> i32 {
    match verdict {
        Verdict::Satisfied => RONDEL_SATISFIED,
        Verdict::Violated => RONDEL_VIOLATED,
        Verdict::Inconclusive => RONDEL_INCONCLUSIVE,
    }
}

/// Takes the next report; [`RONDEL_END`] if there is none.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_next_report(monitor: *const Monitor, out: *mut Report) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        let mut state = monitor.lock()?;
        let state = &mut *state;
        let Some(kept) = state.reports.next(&mut state.session) else { return Ok(RONDEL_END) };
        let names = monitor.names.get(kept.property as usize);
        out.set(Report {
            property: names.map_or(Text::EMPTY, |(name, _)| Text::before_nul(name)),
            severity: names.map_or(Text::EMPTY, |(_, severity)| Text::before_nul(severity)),
            key: state.reports.text(kept.key),
            explanation: state.reports.text(kept.explanation),
            json: state.reports.text(kept.json),
            time: kept.time.as_nanos(),
            about: kept.about.unwrap_or(kept.time).as_nanos(),
            step: kept.step.unwrap_or(RONDEL_NO_STEP),
            robustness: kept.robustness.unwrap_or(f64::NAN),
            property_index: kept.property,
            verdict: verdict(kept.verdict),
            is_after: u8::from(kept.is_after),
        });
        Ok(RONDEL_OK)
    })
}

/// Takes the next notice: messages whose times step back, that were refused, limits that were reached. [`RONDEL_END`] if
/// there is none.
///
/// # Safety
/// See [pointers](crate#pointers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rondel_monitor_next_notice(monitor: *const Monitor, out: *mut Notice) -> Status {
    guard(|| {
        // SAFETY: the contract of this function.
        let (monitor, out) = unsafe { (reference("monitor", monitor)?, Out::new("out", out)?) };
        let mut state = monitor.lock()?;
        let state = &mut *state;
        let Some(notice) = state.notices.next(&mut state.session) else { return Ok(RONDEL_END) };
        out.set(notice);
        Ok(RONDEL_OK)
    })
}
