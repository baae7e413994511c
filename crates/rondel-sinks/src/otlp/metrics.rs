//! Metrics, encoded and sent.

use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::json::{
    KeyValue, Resource, SCOPE, Scope, attribute, check_resource, double, resource, text, texts,
};
use super::{Decided, Origin, OtlpOptions, post};
use crate::http::Client;
use crate::sink::Failure;

/// A reading of one time series. Readings with the same name stand together.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric<'a> {
    /// Name, such as `rondel_messages`.
    pub name: &'a str,
    /// Description, or empty.
    pub description: &'a str,
    /// Unit by UCUM, such as `s`, `By` or `{message}`, or empty.
    pub unit: &'a str,
    /// Attributes of the time series.
    pub attributes: &'a [(&'a str, &'a str)],
    /// Kind and value.
    pub reading: Reading<'a>,
}

/// Kind and value of a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading<'a> {
    /// A total since the start, which never decreases.
    Sum(f64),
    /// A present value.
    Gauge(f64),
    /// A distribution since the start.
    Histogram {
        /// Upper bounds of the buckets but the last, ascending.
        bounds: &'a [f64],
        /// Numbers of values in the buckets, one more than bounds.
        counts: &'a [u64],
        /// Sum of all values.
        sum: f64,
    },
}

/// Sender of metrics.
pub struct MetricsClient {
    client: Client,
    origin: Origin,
    resource: Vec<(String, String)>,
}

impl MetricsClient {
    /// Creates a sender. Does not connect.
    ///
    /// # Errors
    /// A sentence with the option and the way out.
    pub fn new(options: OtlpOptions, origin: Origin) -> Result<MetricsClient, String> {
        let OtlpOptions { url, headers, resource, tls } = options;
        check_resource(&resource)?;
        let client = Client::new(&url, "/v1/metrics", &headers, tls.as_ref())?;
        Ok(MetricsClient { client, origin, resource })
    }

    /// Sends readings made at `now`, of totals since `start`, both in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`Failure`]. The next readings contain the totals of those that were not received.
    pub fn push(
        &mut self,
        metrics: &[Metric<'_>],
        start: i64,
        now: i64,
        limit: Duration,
    ) -> Result<(), Failure> {
        let body = json(resource(&self.origin, &self.resource), metrics, Times { start, now });
        match post(&mut self.client, &body, limit)? {
            Decided::Accepted => Ok(()),
            Decided::Refused(failure) => Err(failure),
            Decided::Partly { refused, message } => {
                let place = self.client.place();
                Err(Failure::rejected(format!("{place} rejects {refused} points of metrics: {message}")))
            }
        }
    }

    /// Returns a function that ends a running request from another thread.
    pub fn interrupter(&self) -> Box<dyn Fn() + Send + Sync> {
        self.client.interrupter()
    }
}

#[derive(Clone, Copy)]
struct Times {
    start: i64,
    now: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    resource: Resource<'a>,
    scope_metrics: [ScopeMetrics<'a>; 1],
}

#[derive(Serialize)]
struct ScopeMetrics<'a> {
    scope: Scope,
    metrics: Vec<Group<'a>>,
}

/// Readings with one name.
struct Group<'a> {
    readings: &'a [Metric<'a>],
    times: Times,
}

impl Serialize for Group<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(first) = self.readings.first() {
            map.serialize_entry("name", first.name)?;
            if !first.description.is_empty() {
                map.serialize_entry("description", first.description)?;
            }
            map.serialize_entry("unit", first.unit)?;
            let points = self.readings.iter().map(|reading| Point::new(reading, self.times)).collect();
            // 2: totals since the start.
            let (kind, aggregation_temporality, is_monotonic) = match first.reading {
                Reading::Sum(_) => ("sum", Some(2), Some(true)),
                Reading::Gauge(_) => ("gauge", None, None),
                Reading::Histogram { .. } => ("histogram", Some(2), None),
            };
            map.serialize_entry(kind, &Data { data_points: points, aggregation_temporality, is_monotonic })?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    data_points: Vec<Point<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation_temporality: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_monotonic: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Point<'a> {
    attributes: Vec<KeyValue<'a>>,
    #[serde(serialize_with = "text")]
    start_time_unix_nano: u64,
    #[serde(serialize_with = "text")]
    time_unix_nano: u64,
    #[serde(flatten)]
    value: PointValue<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PointValue<'a> {
    #[serde(rename_all = "camelCase")]
    Number {
        #[serde(serialize_with = "double")]
        as_double: f64,
    },
    #[serde(rename_all = "camelCase")]
    Histogram {
        #[serde(serialize_with = "text")]
        count: u64,
        #[serde(serialize_with = "double")]
        sum: f64,
        #[serde(serialize_with = "texts")]
        bucket_counts: &'a [u64],
        explicit_bounds: &'a [f64],
    },
}

impl<'a> Point<'a> {
    fn new(metric: &'a Metric<'_>, times: Times) -> Point<'a> {
        let nanos = |time: i64| u64::try_from(time).unwrap_or(0);
        let is_gauge = matches!(metric.reading, Reading::Gauge(_));
        let value = match metric.reading {
            Reading::Sum(value) | Reading::Gauge(value) => PointValue::Number { as_double: value },
            Reading::Histogram { bounds, counts, sum } => PointValue::Histogram {
                count: counts.iter().fold(0, |total, count| u64::saturating_add(total, *count)),
                sum,
                bucket_counts: counts,
                explicit_bounds: bounds,
            },
        };
        Point {
            attributes: metric.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
            start_time_unix_nano: if is_gauge { 0 } else { nanos(times.start) },
            time_unix_nano: nanos(times.now),
            value,
        }
    }
}

/// Returns the body of a request.
fn json(resource: Resource<'_>, metrics: &[Metric<'_>], times: Times) -> Vec<u8> {
    let is_same = |a: &Metric<'_>, b: &Metric<'_>| {
        a.name == b.name && std::mem::discriminant(&a.reading) == std::mem::discriminant(&b.reading)
    };
    let metrics = metrics.chunk_by(is_same).map(|readings| Group { readings, times }).collect();
    let scope_metrics = [ScopeMetrics { scope: SCOPE, metrics }];
    let request = Request { resource_metrics: [ResourceMetrics { resource, scope_metrics }] };
    // Texts and numbers have an encoding.
    serde_json::to_vec(&request).unwrap_or_default()
}
