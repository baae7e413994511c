//! Metric families: as text for a scrape, or as readings for a push.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::histogram::Histogram;

/// The labels of a sample.
pub type Labels = Vec<(&'static str, String)>;

/// A value of a counter or a gauge.
pub trait Value: EncodeCounterValue + EncodeGaugeValue + Copy {
    /// Returns it as a floating-point number.
    #[cfg_attr(not(feature = "otlp"), allow(dead_code))]
    fn number(self) -> f64;
}

impl Value for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Value for f64 {
    fn number(self) -> f64 {
        self
    }
}

/// Destination of metric families, each with its samples.
pub enum Families<'a> {
    /// The text of a scrape.
    Text(DescriptorEncoder<'a>),
    /// Readings of a push.
    #[cfg(feature = "otlp")]
    Readings(Vec<FamilyReading>),
}

/// A sample of a family, with the family.
#[cfg(feature = "otlp")]
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyReading {
    /// Name of the family with its unit, without the suffix of counters.
    pub name: String,
    /// Help text.
    pub help: String,
    /// Unit by UCUM, or empty.
    pub unit: &'static str,
    /// Labels.
    pub labels: Labels,
    /// Kind and value.
    pub value: ReadingValue,
}

/// Kind and value of a sample.
#[cfg(feature = "otlp")]
#[derive(Clone, Debug, PartialEq)]
pub enum ReadingValue {
    /// A counter.
    Sum(f64),
    /// A gauge.
    Gauge(f64),
    /// A histogram: bounds in seconds, counts, the last of them without a bound, and the sum.
    Histogram(Vec<f64>, Vec<u64>, f64),
}

impl Families<'_> {
    /// Writes a counter, whose name gets the suffix `_total` in text.
    pub fn counter<V: Value>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        match self {
            Families::Text(encoder) => {
                let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
                for (labels, value) in samples {
                    family.encode_family(&labels)?.encode_counter::<NoLabelSet, V, f64>(&value, None)?;
                }
            }
            #[cfg(feature = "otlp")]
            Families::Readings(readings) => {
                let samples = samples.into_iter();
                let samples = samples.map(|(labels, value)| (labels, ReadingValue::Sum(value.number())));
                readings.extend(of_family(name, unit.as_ref(), help, samples));
            }
        }
        Ok(())
    }

    /// Writes a gauge.
    pub fn gauge<V: Value>(
        &mut self,
        name: &str,
        unit: Option<Unit>,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) -> fmt::Result {
        match self {
            Families::Text(encoder) => {
                let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
                for (labels, value) in samples {
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
            }
            #[cfg(feature = "otlp")]
            Families::Readings(readings) => {
                let samples = samples.into_iter();
                let samples = samples.map(|(labels, value)| (labels, ReadingValue::Gauge(value.number())));
                readings.extend(of_family(name, unit.as_ref(), help, samples));
            }
        }
        Ok(())
    }

    /// Writes a histogram of durations, whose name gets the suffix `_seconds`.
    pub fn histogram<'h>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, &'h Histogram)>,
    ) -> fmt::Result {
        let unit = Unit::Seconds;
        match self {
            Families::Text(encoder) => {
                let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Histogram)?;
                for (labels, histogram) in samples {
                    let (sum, count, buckets) = (histogram.seconds(), histogram.count(), histogram.buckets());
                    family
                        .encode_family(&labels)?
                        .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                }
            }
            #[cfg(feature = "otlp")]
            Families::Readings(readings) => {
                let samples = samples.into_iter().map(|(labels, histogram)| {
                    let (mut bounds, counts): (Vec<f64>, Vec<u64>) = histogram.buckets().into_iter().unzip();
                    // The last bucket has no bound.
                    bounds.pop();
                    (labels, ReadingValue::Histogram(bounds, counts, histogram.seconds()))
                });
                readings.extend(of_family(name, Some(&unit), help, samples));
            }
        }
        Ok(())
    }

    /// Writes information as labels, under a name that gets the suffix `_info`.
    pub fn info(&mut self, name: &str, help: &str, labels: &Labels) -> fmt::Result {
        match self {
            Families::Text(encoder) => {
                encoder.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(labels)
            }
            #[cfg(feature = "otlp")]
            Families::Readings(readings) => {
                let samples = [(labels.clone(), ReadingValue::Gauge(1.0))];
                readings.extend(of_family(&format!("{name}_info"), None, help, samples));
                Ok(())
            }
        }
    }
}

/// Returns the readings of a family.
#[cfg(feature = "otlp")]
fn of_family(
    name: &str,
    unit: Option<&Unit>,
    help: &str,
    samples: impl IntoIterator<Item = (Labels, ReadingValue)>,
) -> impl Iterator<Item = FamilyReading> {
    let ucum = match unit {
        Some(Unit::Seconds) => "s",
        Some(Unit::Bytes) => "By",
        _ => "",
    };
    let name = unit.map_or_else(|| name.to_owned(), |unit| format!("{name}_{}", unit.as_str()));
    let help = help.to_owned();
    samples.into_iter().map(move |(labels, value)| FamilyReading {
        name: name.clone(),
        help: help.clone(),
        unit: ucum,
        labels,
        value,
    })
}

/// One sample without labels.
pub fn alone<V>(value: V) -> [(Labels, V); 1] {
    [(Vec::new(), value)]
}

/// A sample of one label.
pub fn labelled<V>(name: &'static str, of: &str, value: V) -> (Labels, V) {
    (vec![(name, of.to_owned())], value)
}
