//! Reports: verdicts with everything that a reader needs, and their JSON form.

use rondel_engine::{Monitor, Report as EngineReport};
use rondel_event::{Timestamp, Value, Verdict};
use rondel_spec::{Property, Spec};

use crate::explanation::Explanation;
use crate::text::{write_integer, write_seconds, write_value};

/// The description of a property: its name, its attributes, its parameters.
#[derive(Clone, Debug)]
pub struct PropertyInfo {
    /// Its position in the specification.
    pub position: u32,
    /// Its name.
    pub name: String,
    /// The value of its attribute `@severity`.
    pub severity: Option<String>,
    /// The values of its attributes `@requirement`, separated by commas.
    pub requirement: Option<String>,
    /// All its attributes, in order: name and value.
    pub attributes: Vec<(String, String)>,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// The names of all topics of a chain; none for other properties.
    chain: Option<Vec<String>>,
    /// The JSON text before the parameters and the time.
    prefix: Vec<u8>,
    /// The JSON text of the attributes, which follows the verdict.
    suffix: Vec<u8>,
    /// The names of the parameters in JSON.
    quoted: Vec<String>,
}

impl PropertyInfo {
    /// The description of the property at this position; `recording` names the recording, if there are
    /// several.
    pub fn new(spec: &Spec, position: u32, property: &Property, recording: Option<&str>) -> PropertyInfo {
        // A string always has a JSON form.
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let mut prefix = b"{".to_vec();
        for (member, value) in [("trace", recording), ("property", Some(property.name.as_str()))] {
            if let Some(value) = value {
                prefix.extend_from_slice(format!("\"{member}\":{},", quoted(value)).as_bytes());
            }
        }
        let values = |name: &str| {
            let own = property.attributes.iter().filter(|(own, value)| own == name && !value.is_empty());
            let values: Vec<&str> = own.map(|(_, value)| value.as_str()).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        let (severity, requirement) = (values("severity"), values("requirement"));
        let mut suffix = Vec::new();
        for (member, value) in [("severity", &severity), ("requirement", &requirement)] {
            if let Some(value) = value {
                suffix.extend_from_slice(format!(",\"{member}\":{}", quoted(value)).as_bytes());
            }
        }
        let slice = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
        let parameters: Vec<String> =
            slice.into_iter().flat_map(|slice| &slice.keys).map(|key| key.name.clone()).collect();
        let is_chain = spec.chains.iter().any(|chain| chain.name == property.name);
        PropertyInfo {
            position,
            name: property.name.clone(),
            severity,
            requirement,
            attributes: property.attributes.clone(),
            quoted: parameters.iter().map(|name| quoted(name)).collect(),
            parameters,
            chain: is_chain.then(|| spec.topics.iter().map(|topic| topic.name.clone()).collect()),
            prefix,
            suffix,
        }
    }

    /// One for each property of a specification.
    pub fn all(spec: &Spec, recording: Option<&str>) -> Vec<PropertyInfo> {
        let properties = (0..).zip(&spec.properties);
        properties.map(|(i, property)| PropertyInfo::new(spec, i, property, recording)).collect()
    }
}

/// A verdict on a property, self-contained.
#[derive(Clone, Copy, Debug)]
pub struct Report<'s> {
    /// The property.
    pub property: &'s PropertyInfo,
    /// The values of the parameters, in the order of their names.
    pub parameters: &'s [Value],
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it differs from the verdict before it, or is the first.
    pub changed: bool,
    /// When it became certain.
    pub time: Timestamp,
    /// The time that it is about, where that is another: of properties with future operators.
    pub about: Option<Timestamp>,
    /// The number of the event at which it became certain, from 0; none if time alone decided it.
    pub step: Option<u64>,
    /// Whether a message of the last push decided it. Otherwise time did.
    pub at_message: bool,
    /// The robustness, where the property asks for it and it is known.
    pub robustness: Option<f64>,
    /// The latency of the stamp that arrived, in nanoseconds; only for chains.
    pub latency: Option<i64>,
    /// The first topic that the stamp did not reach in time; only for chains.
    pub missing: Option<&'s str>,
    /// The explanation, of a violation that is explained.
    pub explanation: Option<&'s Explanation>,
}

impl Report<'_> {
    /// Appends the JSON object, without a line break.
    ///
    /// Always in this order: `{"property":"p","key":{"id":7},"time":1.5,"about":1,"step":3,"verdict":"violated"}`,
    /// `time` and `about` in seconds, `step` from 0. Members that do not apply are left out. A member
    /// `trace` comes first where there are several recordings; after the verdict come `severity`,
    /// `requirement`, `robustness`, `evidence`, `latency` and `missing`.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.property.prefix);
        if !self.parameters.is_empty() {
            out.extend_from_slice(b"\"key\":{");
            for (i, (name, value)) in self.property.quoted.iter().zip(self.parameters).enumerate() {
                out.extend_from_slice(if i > 0 { b"," } else { b"" });
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                write_value(value, out);
            }
            out.extend_from_slice(b"},");
        }
        out.extend_from_slice(b"\"time\":");
        write_seconds(self.time, out);
        if let Some(about) = self.about {
            out.extend_from_slice(b",\"about\":");
            write_seconds(about, out);
        }
        if let Some(step) = self.step {
            out.extend_from_slice(b",\"step\":");
            write_integer(step, out);
        }
        out.extend_from_slice(match self.verdict {
            Verdict::Satisfied => b",\"verdict\":\"satisfied\"",
            Verdict::Violated => b",\"verdict\":\"violated\"",
            Verdict::Inconclusive => b",\"verdict\":\"inconclusive\"",
        });
        out.extend_from_slice(&self.property.suffix);
        if let Some(robustness) = self.robustness {
            out.extend_from_slice(b",\"robustness\":");
            write_value(&Value::Float(robustness), out);
        }
        if let Some(explanation) = self.explanation {
            out.extend_from_slice(b",\"evidence\":");
            explanation.json(out);
        }
        if let Some(latency) = self.latency {
            out.extend_from_slice(b",\"latency\":");
            write_value(&Value::Duration(latency), out);
        }
        if let Some(topic) = self.missing {
            out.extend_from_slice(b",\"missing\":");
            write_value(&Value::String(topic.into()), out);
        }
        out.push(b'}');
    }
}

/// Reports that have not been taken yet. Its vectors are used again, so that a report of a property
/// without parameters allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pending: Vec<Pending>,
    parameters: Vec<Value>,
    explanations: Vec<Explanation>,
    /// Whether the reports were taken, so that the next one clears them.
    taken: bool,
}

/// A report in few bytes, as there may be one for every event.
#[derive(Clone, Copy, Debug)]
struct Pending {
    time: Timestamp,
    /// Where [`ABOUT`] is set, the time that it is about.
    about: Timestamp,
    step: u64,
    /// Where [`ROBUST`] is set.
    robustness: f64,
    property: u32,
    /// Where the parameters end; they begin where those of the report before end.
    parameters_end: u32,
    /// The topic that a stamp did not reach, or [`NONE`].
    missing: u32,
    /// The position of the explanation, or [`NONE`].
    explanation: u32,
    verdict: Verdict,
    flags: u8,
}

const NONE: u32 = u32::MAX;
const CHANGED: u8 = 1;
const AT_EVENT: u8 = 2;
const AT_MESSAGE: u8 = 4;
const ABOUT: u8 = 8;
const ROBUST: u8 = 16;

impl Reports {
    /// Clears the reports if they were taken.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.pending.clear();
            self.parameters.clear();
            self.explanations.clear();
        }
    }

    /// Adds a report of a monitor's last call, on the property at this position.
    #[inline]
    pub(crate) fn add(
        &mut self,
        property: u32,
        report: &EngineReport,
        monitor: &Monitor,
        explanation: Option<Explanation>,
    ) {
        let mut missing = NONE;
        if report.key.is_some() {
            // Of a chain, which has one parameter: the stamp.
            if report.verdict == Verdict::Violated {
                missing = monitor.missing(report).map_or(NONE, |topic| topic.0);
            }
            monitor.write_key(report, &mut self.parameters);
        }
        let explanation = explanation.map_or(NONE, |explanation| {
            self.explanations.push(explanation);
            self.explanations.len() as u32 - 1
        });
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        self.pending.push(Pending {
            time: report.time,
            about: report.about.unwrap_or(report.time),
            step: report.step,
            robustness: report.robustness.unwrap_or(0.0),
            property,
            parameters_end: self.parameters.len() as u32,
            missing,
            explanation,
            verdict: report.verdict,
            flags: flag(report.changed, CHANGED)
                | flag(report.at_event, AT_EVENT)
                | flag(report.row.is_some(), AT_MESSAGE)
                | flag(report.about.is_some(), ABOUT)
                | flag(report.robustness.is_some(), ROBUST),
        });
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken || self.pending.is_empty()
    }

    /// Takes the reports in order; adding the next one clears them.
    pub(crate) fn take<'s>(
        &'s mut self,
        properties: &'s [PropertyInfo],
    ) -> impl Iterator<Item = Report<'s>> + use<'s> {
        self.make_room();
        self.taken = true;
        let (all, parameters, explanations) = (&self.pending, &self.parameters, &self.explanations);
        let mut start = 0;
        all.iter().map(move |pending| {
            let is = |flag: u8| pending.flags & flag != 0;
            let property = &properties[pending.property as usize];
            let about = is(ABOUT).then_some(pending.about);
            // Few properties are chains, and there may be a report for every event.
            let (latency, missing) = match &property.chain {
                None => (None, None),
                Some(chain) => {
                    let came = about.filter(|_| pending.verdict == Verdict::Satisfied);
                    let latency = |about: Timestamp| pending.time.as_nanos().saturating_sub(about.as_nanos());
                    (came.map(latency), chain.get(pending.missing as usize).map(String::as_str))
                }
            };
            let end = pending.parameters_end as usize;
            let parameters = &parameters[std::mem::replace(&mut start, end)..end];
            Report {
                property,
                parameters,
                verdict: pending.verdict,
                changed: is(CHANGED),
                time: pending.time,
                about,
                step: is(AT_EVENT).then_some(pending.step),
                at_message: is(AT_MESSAGE),
                robustness: is(ROBUST).then_some(pending.robustness),
                latency,
                missing,
                explanation: explanations.get(pending.explanation as usize),
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_json_form_is_fixed() {
        let spec = rondel_spec::parse(
            "topic t { id: int, s: string, v: bool }
             @severity(critical) @requirement(\"SYS-1\") @requirement(\"SYS-2\")
             property p for each i in t.id, s in t.s = t.v",
        );
        let spec = spec.spec.unwrap();
        let plain = Property::new("p", spec.properties[0].formula);
        let named = Property { name: "a \"b\"".into(), ..plain.clone() };
        let mut out = Vec::new();
        let mut write = |property: &Property, trace, verdict, (time, about, step), parameters: &[Value]| {
            let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9) as i64);
            let report = Report {
                property: &PropertyInfo::new(&spec, 0, property, trace),
                parameters,
                verdict,
                changed: true,
                time: at(time),
                about: Option::<f64>::map(about, at),
                step,
                at_message: true,
                robustness: None,
                latency: None,
                missing: None,
                explanation: None,
            };
            report.json(&mut out);
        };
        write(&named, Some("x.jsonl"), Verdict::Violated, (-1.5, None, Some(3)), &[]);
        write(&plain, None, Verdict::Satisfied, (12.0, None, Some(0)), &[]);
        write(&plain, None, Verdict::Violated, (2.0, Some(0.0), None), &[]);
        let parameters = [Value::Int(7), Value::String("x\"".into())];
        write(&spec.properties[0], None, Verdict::Violated, (0.0, None, Some(1)), &parameters);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"trace":"x.jsonl","property":"a \"b\"","time":-1.5,"step":3,"verdict":"violated"}"#
                .to_owned()
                + r#"{"property":"p","time":12,"step":0,"verdict":"satisfied"}"#
                + r#"{"property":"p","time":2,"about":0,"verdict":"violated"}"#
                + r#"{"property":"p","key":{"i":7,"s":"x\""},"time":0,"step":1,"verdict":"violated","#
                + r#""severity":"critical","requirement":"SYS-1, SYS-2"}"#
        );
    }
}
