//! Reports: verdicts with everything that a reader needs, and their JSON form.

mod identity;
pub(crate) mod muting;
pub(crate) mod notice;
mod pending;
pub mod ros2;
pub(crate) mod severity;

use std::sync::Arc;

use rondel_engine::Monitor;
use rondel_event::{Block, Timestamp, Value, Verdict};
use rondel_spec::{Expr, ExprId, Property, Spec, VariableId};

use crate::explanation::Explanation;
use crate::text::{TextFromEnd, write_value};
use identity::{Facts, Identity};
pub(crate) use pending::Reports;
use pending::{NONE, Pending};

/// Source of a report of the engine: parameters and values are read from it.
#[derive(Clone, Copy)]
pub(crate) struct ReportSource<'a> {
    /// The monitor that has reported.
    pub(crate) monitor: &'a Monitor,
    /// The block that it has evaluated, if the report is about an event.
    pub(crate) block: Option<&'a Block>,
}

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
    /// The name of the property whose violations mute those of this one: the value of its attribute `@because_of`.
    pub because_of: Option<String>,
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
    /// The names of the variables of its quantifiers, plain and in JSON.
    variables: Vec<(VariableId, String, String)>,
    /// Input of the ids of its verdicts, if they have ids.
    identity: Option<Identity>,
}

impl PropertyInfo {
    /// The description of the property at this position; `recording` names the recording, if there are
    /// several.
    fn new(
        spec: &Spec,
        position: u32,
        property: &Property,
        recording: Option<&str>,
        quantifies: bool,
    ) -> PropertyInfo {
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
            because_of: property.because_of().map(str::to_owned),
            attributes: property.attributes.clone(),
            quoted: parameters.iter().map(|name| quoted(name)).collect(),
            variables: quantifies
                .then(|| variables(spec, property.formula))
                .into_iter()
                .flatten()
                .map(|(id, name)| (id, name.clone(), quoted(&name)))
                .collect(),
            parameters,
            chain: is_chain.then(|| spec.topics.iter().map(|topic| topic.name.clone()).collect()),
            prefix,
            suffix,
            identity: None,
        }
    }

    /// Gives the verdicts on this property an id.
    pub(crate) fn identify(&mut self, specification: u64, has_own_times: bool, counts_steps: bool) {
        self.identity = Some(Identity::new(specification, &self.name, has_own_times, counts_steps));
    }

    /// One for each property of a specification.
    pub fn all(spec: &Spec, recording: Option<&str>) -> Vec<PropertyInfo> {
        let properties = (0..).zip(&spec.properties);
        // Most specifications have no quantifiers; checking that for each property would read all nodes as often.
        let quantifies = spec.nodes.iter().any(|node| matches!(node, Expr::Exists(..) | Expr::ForAll(..)));
        let all = properties.map(|(i, property)| PropertyInfo::new(spec, i, property, recording, quantifies));
        all.collect()
    }
}

/// A verdict on a property, self-contained.
///
/// A report borrows from the session and looks the rest up on demand: there may be one for every event.
#[derive(Clone, Copy, Debug)]
pub struct Report<'s> {
    property: &'s PropertyInfo,
    pending: &'s Pending,
    all: &'s Reports,
}

impl<'s> Report<'s> {
    /// The property.
    #[inline]
    pub fn property(&self) -> &'s PropertyInfo {
        self.property
    }

    /// The values of the parameters, in the order of their names.
    #[inline]
    pub fn parameters(&self) -> &'s [Value] {
        let Pending { parameters: (start, end), .. } = *self.pending;
        self.all.parameters.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// The verdict.
    #[inline]
    pub fn verdict(&self) -> Verdict {
        self.pending.report.verdict
    }

    /// Whether it differs from the verdict before it, or is the first.
    #[inline]
    pub fn changed(&self) -> bool {
        self.pending.report.changed
    }

    /// When it became certain.
    #[inline]
    pub fn time(&self) -> Timestamp {
        self.pending.report.time
    }

    /// Time that it is about, where that differs: for properties with future operators.
    #[inline]
    pub fn about(&self) -> Option<Timestamp> {
        self.pending.report.about
    }

    /// Whether it is about the open interval after that time, and not about the time itself: in dense time.
    pub fn is_after(&self) -> bool {
        self.pending.report.after
    }

    /// The number of the message at which it became certain, from 0 among all messages; none if time alone decided it.
    #[inline]
    pub fn step(&self) -> Option<u64> {
        let Pending { report, number, .. } = self.pending;
        report.at_event.then_some(number.unwrap_or(report.step))
    }

    /// Whether a message of the last push decided it. Otherwise time did.
    pub fn at_message(&self) -> bool {
        self.pending.report.row.is_some()
    }

    /// Robustness, where the property requests it and it is known.
    #[inline]
    pub fn robustness(&self) -> Option<f64> {
        self.pending.report.robustness
    }

    /// The latency of the stamp that arrived, in nanoseconds; only for chains.
    #[inline]
    pub fn latency(&self) -> Option<i64> {
        self.property.chain.as_ref()?;
        let about = self.about().filter(|_| self.verdict() == Verdict::Satisfied)?;
        Some(self.time().as_nanos().saturating_sub(about.as_nanos()))
    }

    /// The first topic that the stamp did not reach in time; only for chains.
    #[inline]
    pub fn missing(&self) -> Option<&'s str> {
        let topics = self.property.chain.as_ref()?;
        topics.get(self.pending.missing as usize).map(String::as_str)
    }

    /// The number of the lap, from 1: see [`Reset`](crate::Reset).
    #[inline]
    pub fn lap(&self) -> u32 {
        self.pending.lap
    }

    /// The name of the property that is violated as well, and because of which a violation is *muted*: it is stored and
    /// published, but sends no notification. See [`Session::unmuted`](crate::Session::unmuted).
    #[inline]
    pub fn because_of(&self) -> Option<&'s str> {
        if self.pending.is_muted { self.property.because_of.as_deref() } else { None }
    }

    /// The explanation, of a violation that is explained.
    #[inline]
    pub fn explanation(&self) -> Option<&'s Explanation> {
        self.all.explanations.get(self.pending.explanation as usize)
    }

    /// The values of the quantified variables for which the property turned violated, with their names.
    #[inline]
    pub fn values(&self) -> impl Iterator<Item = (&'s str, &'s Value)> {
        self.named().map(|(name, _, value)| (name, value))
    }

    /// The names of the variables, plain and in JSON, and their values.
    fn named(&self) -> impl Iterator<Item = (&'s str, &'s str, &'s Value)> {
        // In the order of the quantifiers.
        let values = self.all.values.get(self.pending.values as usize);
        let variables = values.map(|values| (&self.property.variables, values));
        variables.into_iter().flat_map(|(variables, values)| {
            variables.iter().filter_map(|(id, name, quoted)| {
                let (_, value) = values.iter().find(|(of, _)| of == id)?;
                Some((name.as_str(), quoted.as_str(), value))
            })
        })
    }

    /// Appends the id in hexadecimal digits, if verdicts have one: equal for equal verdicts on the same messages, also
    /// when these are checked again after a crash.
    pub fn write_id(&self, out: &mut Vec<u8>) {
        let Some(identity) = &self.property.identity else { return };
        let (parameters, verdict) = (self.parameters(), self.verdict());
        let facts = Facts {
            parameters,
            time: self.time(),
            about: self.about(),
            // The number of a message depends on the order of arrival, which another run need not repeat.
            step: self.pending.report.at_event.then_some(self.pending.report.step),
            verdict,
            lap: self.lap(),
        };
        let id = identity.of(&facts, out);
        let digit = |i: u32| b"0123456789abcdef"[(id >> (124 - 4 * i) & 15) as usize];
        out.extend((0..32).map(digit));
    }

    /// Appends the JSON object, without a line break.
    ///
    /// Always in this order: `{"property":"p","key":{"id":7},"time":1.5,"about":1,"step":3,"verdict":"violated"}`,
    /// `time` and `about` in seconds, `step` from 0. Members that do not apply are left out. A member
    /// `trace` comes first where there are several recordings; after the verdict come `values`, `severity`,
    /// `requirement`, `because_of`, `robustness`, `lap` (from the second one on), `evidence`, `latency`, `missing` and `id`.
    pub fn json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.property.prefix);
        let parameters = self.parameters();
        if !parameters.is_empty() {
            out.extend_from_slice(b"\"key\":{");
            for (i, (name, value)) in self.property.quoted.iter().zip(parameters).enumerate() {
                out.extend_from_slice(if i > 0 { b"," } else { b"" });
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                write_value(value, out);
            }
            out.extend_from_slice(b"},");
        }
        let mut facts = TextFromEnd::default();
        match self.verdict() {
            Verdict::Satisfied => facts.text(b",\"verdict\":\"satisfied\""),
            Verdict::Violated => facts.text(b",\"verdict\":\"violated\""),
            Verdict::Inconclusive => facts.text(b",\"verdict\":\"inconclusive\""),
        }
        if let Some(step) = self.step() {
            facts.count(step);
            facts.text(b",\"step\":");
        }
        if let Some(about) = self.about() {
            facts.seconds(about);
            facts.text(b",\"about\":");
        }
        facts.seconds(self.time());
        facts.text(b"\"time\":");
        out.extend_from_slice(facts.as_bytes());
        if self.pending.values != NONE {
            out.extend_from_slice(b",\"values\":{");
            for (i, (_, name, value)) in self.named().enumerate() {
                out.extend_from_slice(if i > 0 { b"," } else { b"" });
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                write_value(value, out);
            }
            out.push(b'}');
        }
        if !self.property.suffix.is_empty() {
            out.extend_from_slice(&self.property.suffix);
        }
        if let Some(other) = self.because_of() {
            out.extend_from_slice(b",\"because_of\":");
            write_value(&Value::String(other.into()), out);
        }
        if let Some(robustness) = self.robustness() {
            out.extend_from_slice(b",\"robustness\":");
            write_value(&Value::Float(robustness), out);
        }
        if self.lap() > 1 {
            out.extend_from_slice(b",\"lap\":");
            write_value(&Value::Int(self.lap().into()), out);
        }
        if let Some(explanation) = self.explanation() {
            out.extend_from_slice(b",\"evidence\":");
            explanation.json(out);
        }
        if let Some(latency) = self.latency() {
            out.extend_from_slice(b",\"latency\":");
            write_value(&Value::Duration(latency), out);
        }
        if let Some(topic) = self.missing() {
            out.extend_from_slice(b",\"missing\":");
            write_value(&Value::String(topic.into()), out);
        }
        if self.property.identity.is_some() {
            out.extend_from_slice(b",\"id\":\"");
            self.write_id(out);
            out.push(b'"');
        }
        out.push(b'}');
    }
}

/// A report that outlasts the others of its session. Its texts are made on demand.
#[derive(Debug)]
pub struct KeptReport {
    properties: Arc<[PropertyInfo]>,
    /// Only this one.
    reports: Reports,
}

impl KeptReport {
    /// Copies a report on one of these properties.
    pub(crate) fn new(report: &Report<'_>, properties: &Arc<[PropertyInfo]>) -> KeptReport {
        let reports = Reports::of_one(report.all.copy(report.pending));
        KeptReport { properties: Arc::clone(properties), reports }
    }

    /// Makes the verdict inconclusive: earlier messages were not received, as the session knows since. Its robustness, its
    /// values and its explanation are those of the verdict before.
    pub fn set_inconclusive(&mut self) {
        let Pending { report, missing, explanation, values, is_muted, .. } = &mut self.reports.pending[0];
        (report.verdict, report.robustness) = (Verdict::Inconclusive, None);
        (*missing, *explanation, *values, *is_muted) = (NONE, NONE, NONE, false);
    }

    /// The report.
    #[inline]
    pub fn report(&self) -> Report<'_> {
        let pending = &self.reports.pending[0];
        Report { property: &self.properties[pending.property as usize], pending, all: &self.reports }
    }
}

/// The variables that the quantifiers of a formula bind, by name.
pub(crate) fn variables(spec: &Spec, formula: ExprId) -> Vec<(VariableId, String)> {
    let mut found = Vec::new();
    for (_, node) in spec.below(formula) {
        if let Expr::Exists(variable, _) | Expr::ForAll(variable, _) = node {
            let name = spec.places.variable(*variable);
            found.push((*variable, name.map_or_else(|| format!("x{}", variable.0), str::to_owned)));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rondel_engine::Report as EngineReport;

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
        let mut write = |property: &Property, trace, verdict, at, parameters: &[Value]| {
            let (time, about, step): (f64, Option<f64>, Option<u64>) = at;
            let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9) as i64);
            let mut report = EngineReport::at_event(verdict, step.unwrap_or(0), at(time));
            (report.about, report.at_event) = (Option::<f64>::map(about, at), step.is_some());
            let (missing, explanation, values) = (NONE, NONE, NONE);
            let range = (0, parameters.len() as u32);
            let order = 0;
            let pending = Pending {
                report,
                number: None,
                property: 0,
                parameters: range,
                missing,
                explanation,
                values,
                order,
                lap: 1,
                change: NONE,
                is_muted: false,
            };
            let mut all = Reports::default();
            all.parameters.extend_from_slice(parameters);
            let property = &PropertyInfo::new(&spec, 0, property, trace, true);
            let report = Report { property, pending: &pending, all: &all };
            let start = out.len();
            report.json(&mut out);
            let kept = KeptReport::new(&report, &Arc::from([property.clone()]));
            let mut again = Vec::new();
            kept.report().json(&mut again);
            assert_eq!(out[start..], again[..]);
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
