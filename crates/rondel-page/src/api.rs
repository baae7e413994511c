//! From paths to answers: the functions of the API.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::answer::{NONE, Problem, Reply, rank, seconds, verdict_number};
use crate::assets;
use crate::describe::{PropertyText, spans, value_at};
use crate::live::{Figures, TopicFigures, shorten};
use crate::page::{Base, Page, lock};
use crate::request::{Query, Request};
use crate::sampling::StoredSignal;
use crate::store::{HistoryQuery, InstanceQuery, Summary, ViolationQuery, summary_json};

/// The description of the API.
const OPENAPI: &str = include_str!("../openapi.yaml");
/// Severities, the worst first; others follow.
const SEVERITIES: [&str; 12] = [
    "emergency",
    "fatal",
    "critical",
    "high",
    "error",
    "major",
    "warning",
    "medium",
    "minor",
    "low",
    "info",
    "debug",
];
/// Losses shown in a history.
const LOSSES: usize = 1000;

/// The answer of a function: JSON, or an error.
pub(crate) type Answer = Result<Value, Problem>;

impl Page {
    /// Answers a request at a time of day, in nanoseconds; not one for events.
    pub fn answer(&self, request: &Request, now: i64) -> Reply {
        self.guard.admit(request, now).and_then(|()| self.route(request, now)).unwrap_or_else(Reply::from)
    }

    pub(crate) fn route(&self, request: &Request, now: i64) -> Result<Reply, Problem> {
        let is_post = match request.method.as_str() {
            "GET" | "HEAD" => false,
            "POST" => true,
            method => return Err(Problem::new(405, format!("there is no method {method} here"))),
        };
        let segments = request.segments()?;
        if !request.is_api() {
            return match assets::answer(request) {
                Some(reply) if !is_post => Ok(reply),
                _ => Err(Problem::unknown("there is no such page; the first one is /")),
            };
        }
        let parts: Vec<&str> = segments.iter().skip(1).map(String::as_str).collect();
        self.watch(now);
        let query = request.query()?;
        let answer = match (is_post, parts.as_slice()) {
            (false, ["v1", "openapi.yaml"]) => {
                return Ok(Reply::of(200, "application/yaml", OPENAPI.as_bytes()));
            }
            (false, ["v1", "overview"]) => self.overview(&query, now),
            (false, ["v1", "properties", name]) => self.property(name, now),
            (false, ["v1", "properties", name, "instances"]) => self.instances(name, &query, now),
            (false, ["v1", "properties", name, "verdicts"]) => self.verdicts(name, &query, now),
            (false, ["v1", "properties", name, "signals"]) => self.signals(name, &query, now),
            (false, ["v1", "violations"]) => self.violations(&query, now),
            (false, ["v1", "violations", id]) => self.violation(number(id)?, now),
            (false, ["v1", "incidents"]) => self.incidents(&query, now),
            (false, ["v1", "topics"]) => self.topics(&query, now),
            (false, ["v1", "topics", name]) => self.topic(name, now),
            (false, ["v1", "losses"]) => self.losses(&query, now),
            (false, ["v1", "specification"]) => self.base(now).map(|base| base.described.json()),
            (false, ["v1", "state"]) => self.state(now),
            (false, ["v1", "playground"]) => self.playground(),
            (true, ["v1", "playground"]) => self.attempt(&body(request)?, now),
            (true, ["v1", "playground", "file"]) => self.save(&body(request)?, now),
            (true, ["v1", "violations", id, "acknowledgement"]) => {
                self.acknowledge(number(id)?, &body(request)?, now)
            }
            (true, ["v1", "silences"]) => self.silence(&body(request)?, now),
            (true, ["v1", "silences", id, "end"]) => self.end_silence(number(id)?, &body(request)?, now),
            _ => Err(Problem::unknown(
                "there is no such function; /api/v1/openapi.yaml describes those that there are",
            )),
        };
        answer.map(|value| Reply::json(&value))
    }

    fn overview(&self, query: &Query, now: i64) -> Answer {
        let base = self.base(now)?;
        let reached = self.reached(&base, now);
        let (offset, limit) = query.part()?;
        let width = query.integer("width", 0, 4096, 0)?;
        let range = query.integer("seconds", 1, 604_800, 600)? as i64 * 1_000_000_000;
        let mut found = filtered(&base, query)?;
        let sort = query.word("sort", &["worst", "name", "since", "count"])?.unwrap_or("worst");
        match sort {
            "name" => found.sort_by(|one, other| one.name.cmp(&other.name)),
            "since" => found.sort_by_key(|summary| Reverse(summary.since)),
            "count" => found.sort_by_key(|summary| Reverse(summary.violations)),
            _ => found
                .sort_by_key(|summary| (rank(summary.verdict), severity(summary), Reverse(summary.since))),
        }
        let total = found.len();
        let shown: Vec<&Summary> = found.into_iter().skip(offset).take(limit).collect();
        let until = reached.unwrap_or(0);
        let timelines: Vec<Value> = match width {
            0 => vec![Value::Null; shown.len()],
            _ => self.store.read(|view| {
                let timeline = |summary: &&Summary| {
                    let (property, from) = (summary.name.as_str(), until.saturating_sub(range));
                    let range = HistoryQuery {
                        property,
                        instance: None,
                        from,
                        until,
                        width,
                        reached,
                        is_exact: false,
                    };
                    view.timeline(&range).map(|timeline| timeline.json())
                };
                shown.iter().map(timeline).collect()
            })?,
        };
        let properties: Vec<Value> =
            shown.iter().zip(timelines).map(|(summary, timeline)| summary_json(summary, timeline)).collect();
        let count = |verdict: u8| base.summaries.iter().filter(|summary| summary.verdict == verdict).count();
        Ok(json!({
            "now": seconds(now),
            "reached": reached.map(seconds),
            "counts": {"satisfied": count(0), "violated": count(1), "inconclusive": count(2), "none": count(NONE)},
            "severities": base.values(|summary| vec![summary.severity.as_str()]),
            "requirements": base.values(|summary| summary.requirement.split(", ").collect()),
            "networks": base.values(|summary| summary.networks.iter().map(String::as_str).collect()),
            "total": total,
            "offset": offset,
            "properties": properties,
            "event": base.event,
        }))
    }

    fn property(&self, name: &str, now: i64) -> Answer {
        let base = self.base(now)?;
        let (text, summary) = known(&base, name)?;
        let live = self.live();
        let is_live = live.is_some();
        let atoms: Vec<Value> = (text.fields.iter())
            .map(|field| {
                let message = live.as_ref().and_then(|live| live.message(&field.topic));
                let tree = message.as_ref().and_then(|message| message.value.as_ref().ok());
                let mut value =
                    tree.and_then(|tree| value_at(tree, &field.path)).cloned().unwrap_or(Value::Null);
                shorten(&mut value);
                json!({
                    "name": field.name, "spans": spans(&text.text, &field.name), "value": value,
                    "time": message.as_ref().map(|message| seconds(message.received)),
                    "thresholds": field.thresholds,
                })
            })
            .collect();
        let pairs = |pairs: &[(String, String)], second: &str| -> Vec<Value> {
            pairs.iter().map(|(name, value)| json!({"name": name, second: value})).collect()
        };
        Ok(json!({
            "now": seconds(now),
            "reached": self.reached(&base, now).map(seconds),
            "summary": summary_json(summary, Value::Null),
            "text": text.text,
            "line": text.line,
            "attributes": pairs(&text.attributes, "value"),
            "parameters": text.parameters,
            "topics": text.topics,
            "definitions": pairs(&text.definitions, "text"),
            "atoms": atoms,
            "is_live": is_live,
        }))
    }

    fn instances(&self, name: &str, query: &Query, now: i64) -> Answer {
        known(&*self.base(now)?, name)?;
        let (offset, limit) = query.part()?;
        let sort = query.word("sort", &["worst", "newest", "name"])?.unwrap_or("worst");
        let (search, verdict) = (query.text("search"), verdict(query)?.filter(|verdict| *verdict != NONE));
        let query = InstanceQuery { property: name, search, verdict, sort, offset, limit, now };
        let found = self.store.read(|view| view.instances(&query))?;
        Ok(found.unwrap_or_else(|| {
            let counts = json!({"total": 0, "satisfied": 0, "violated": 0, "inconclusive": 0});
            json!({
                "now": seconds(now), "total": 0, "offset": offset, "counts": counts, "instances": [],
                "is_complete": true,
            })
        }))
    }

    fn verdicts(&self, name: &str, query: &Query, now: i64) -> Answer {
        let base = self.base(now)?;
        known(&base, name)?;
        let reached = self.reached(&base, now);
        let (from, until) = query.range(reached)?;
        let width = query.integer("width", 1, 4096, 1000)?;
        let parameters = parameters(query)?;
        let is_topic = self.topics_of(&base, now);
        self.store.read(|view| {
            let instance = parameters.as_ref().map(|value| view.instance(name, value)).transpose()?;
            let instance = instance.as_deref();
            let range =
                HistoryQuery { property: name, instance, from, until, width, reached, is_exact: true };
            let (losses, _) = view.losses(Some((from, until)), (0, LOSSES), &is_topic)?;
            Ok(json!({
                "from": seconds(from),
                "until": seconds(until),
                "reached": reached.map(seconds),
                "timeline": view.timeline(&range)?.json(),
                "robustness": view.robustness(&range)?.map(|band| band.json()),
                "losses": losses,
                "is_complete": view.reaches_back(from)?,
            }))
        })
    }

    fn signals(&self, name: &str, query: &Query, now: i64) -> Answer {
        let base = self.base(now)?;
        let (text, _) = known(&base, name)?;
        let (from, until) = query.range(self.reached(&base, now))?;
        let width = query.integer("width", 1, 4096, 1000)?;
        let is_live = self.live().is_some();
        let signals: Vec<Value> = if is_live {
            let mut samples = lock(&self.samples);
            samples.ask(name, now);
            samples.signals(text, from, until, width)
        } else {
            let is_own = |signal: &&StoredSignal| {
                let field = signal.name.split('[').next().unwrap_or_default();
                text.fields.iter().any(|own| signal.name.starts_with(&own.name)) || text.text.contains(field)
            };
            let own = self.settings.signals.iter().filter(is_own);
            own.map(|signal| signal.json(from, until, width)).collect()
        };
        Ok(json!({"from": seconds(from), "until": seconds(until), "sampled": is_live, "signals": signals}))
    }

    fn violations(&self, query: &Query, now: i64) -> Answer {
        let (offset, limit) = query.part()?;
        let status = query.word("status", &["open", "stale", "ended"])?;
        let (property, parameters) = (query.text("property"), parameters(query)?);
        let (from, until) = (query.time("from")?, query.time("until")?);
        let (violations, total) = self.store.read(|view| {
            let instance = match (property, &parameters) {
                (Some(property), Some(value)) => Some(view.instance(property, value)?),
                (None, Some(value)) => Some(value.to_string()),
                (_, None) => None,
            };
            let instance = instance.as_deref();
            let all = ViolationQuery { now, ..ViolationQuery::default() };
            view.violations(&ViolationQuery { property, instance, status, from, until, offset, limit, ..all })
        })?;
        Ok(json!({"now": seconds(now), "total": total, "offset": offset, "violations": violations}))
    }

    fn violation(&self, id: i64, now: i64) -> Answer {
        let query = ViolationQuery { id: Some(id), limit: 1, now, ..ViolationQuery::default() };
        let (violations, _) = self.store.read(|view| view.violations(&query))?;
        violations.into_iter().next().ok_or_else(|| Problem::unknown(format!("there is no violation {id}")))
    }

    fn incidents(&self, query: &Query, now: i64) -> Answer {
        let ((offset, limit), search) = (query.part()?, query.text("search"));
        let all = ViolationQuery { now, ..ViolationQuery::default() };
        let unended = ViolationQuery { status: Some("unended"), search, offset, limit, ..all };
        self.store.read(|view| {
            let (incidents, total) = view.violations(&unended)?;
            Ok(json!({
                "now": seconds(now),
                "total": total,
                "offset": offset,
                "incidents": incidents,
                "silences": view.silences_json(now)?,
                "actions": view.actions()?,
                "may_act": self.guard.may_act(),
            }))
        })
    }

    fn topics(&self, query: &Query, now: i64) -> Answer {
        let (offset, limit) = query.part()?;
        let figures = self.run_figures(now)?;
        let search = query.text("search").map(str::to_lowercase);
        let is_found = |topic: &&TopicFigures| {
            search.as_deref().is_none_or(|search| {
                topic.name.to_lowercase().contains(search) || topic.address.to_lowercase().contains(search)
            })
        };
        let found: Vec<&TopicFigures> =
            figures.iter().flat_map(|figures| &figures.topics).filter(is_found).collect();
        let total = found.len();
        let topics: Vec<Value> =
            found.into_iter().skip(offset).take(limit).map(|topic| self.topic_json(topic, now)).collect();
        Ok(json!({"now": seconds(now), "total": total, "offset": offset, "topics": topics}))
    }

    fn topic(&self, name: &str, now: i64) -> Answer {
        let figures = self.run_figures(now)?;
        let topic = figures.iter().flat_map(|figures| &figures.topics).find(|topic| topic.name == name);
        let topic = topic.ok_or_else(|| Problem::unknown(format!("the run has no topic `{name}`")))?;
        let message = self.live().and_then(|live| live.message(name)).map(|message| {
            let (mut value, error) = match message.value {
                Ok(value) => (value, None),
                Err(why) => (Value::Null, Some(why)),
            };
            let is_cut = shorten(&mut value);
            json!({
                "received": seconds(message.received), "bytes": message.bytes, "is_cut": is_cut, "value": value,
                "error": error,
            })
        });
        Ok(json!({"now": seconds(now), "topic": self.topic_json(topic, now), "message": message}))
    }

    fn topic_json(&self, topic: &TopicFigures, now: i64) -> Value {
        let rate = lock(&self.rates).of(&topic.name);
        let size = (topic.measured > 0).then(|| topic.bytes as f64 / topic.measured as f64);
        json!({
            "name": topic.name,
            "address": topic.address,
            "network": topic.network(),
            "type": topic.message_type,
            "messages": topic.messages,
            "rate": rate.messages,
            "bytes_per_second": rate.bytes,
            "size": size,
            "age": topic.latest.map(|latest| seconds(now.saturating_sub(latest).max(0))),
            "late": topic.late,
            "lost": topic.lost,
            "undecodable": topic.undecodable,
            "publishers": topic.publishers,
        })
    }

    fn losses(&self, query: &Query, now: i64) -> Answer {
        let (offset, limit) = query.part()?;
        let (from, until) = (query.time("from")?, query.time("until")?);
        let range = Some((from.unwrap_or(i64::MIN), until.unwrap_or(i64::MAX)));
        let base = self.base(now)?;
        let is_topic = self.topics_of(&base, now);
        let (losses, total) = self.store.read(|view| view.losses(range, (offset, limit), &is_topic))?;
        Ok(json!({"now": seconds(now), "total": total, "offset": offset, "losses": losses}))
    }

    /// Returns a function that distinguishes topics from sinks by their names. A loss of all topics has none: the monitor did
    /// not run, or its network was not connected.
    fn topics_of(&self, base: &Base, now: i64) -> impl Fn(&str) -> bool + use<> {
        let sinks: Vec<String> = match self.figures(now) {
            Some(figures) => figures.sinks.iter().map(|sink| sink.name.clone()).collect(),
            None => Vec::new(),
        };
        let described = Arc::clone(&base.described);
        move |name: &str| {
            let is_topic = described.topics.iter().any(|topic| topic.name == name);
            // The store of another program has no list of topics: addresses of sinks have a colon.
            is_topic
                || name.is_empty()
                || described.topics.is_empty()
                    && !name.contains(':')
                    && !sinks.iter().any(|sink| sink == name)
        }
    }

    /// The figures of a run; `None` without a run.
    fn run_figures(&self, now: i64) -> Result<Option<Arc<Figures>>, Problem> {
        match (self.live(), self.figures(now)) {
            (Some(_), None) => Err(Problem::unavailable("the evaluating thread does not answer")),
            (_, figures) => Ok(figures),
        }
    }
}

/// The text and the state of a property.
fn known<'b>(base: &'b Base, name: &str) -> Result<(&'b PropertyText, &'b Summary), Problem> {
    let text = base.described.property(name);
    let summary = base.summaries.iter().find(|summary| summary.name == name);
    text.zip(summary).ok_or_else(|| {
        Problem::unknown(format!("there is no property `{name}`: a reload may have removed it"))
    })
}

/// The properties that the filters of a request select.
fn filtered<'b>(base: &'b Base, query: &Query) -> Result<Vec<&'b Summary>, Problem> {
    let (search, verdict) = (query.text("search").map(str::to_lowercase), verdict(query)?);
    let (severity, requirement) = (query.text("severity"), query.text("requirement"));
    let (network, names) = (query.text("network"), names(query)?);
    let is_found = |summary: &&Summary| {
        search.as_deref().is_none_or(|search| summary.name.to_lowercase().contains(search))
            && verdict.is_none_or(|verdict| summary.verdict == verdict)
            && severity.is_none_or(|severity| summary.severity == severity)
            && requirement.is_none_or(|own| summary.requirement.split(", ").any(|one| one == own))
            && network.is_none_or(|network| summary.networks.iter().any(|own| own == network))
            && names.as_ref().is_none_or(|names| names.contains(&summary.name))
    };
    Ok(base.summaries.iter().filter(is_found).collect())
}

/// The names of the properties that a request selects.
fn names(query: &Query) -> Result<Option<HashSet<String>>, Problem> {
    let Some(text) = query.text("properties") else { return Ok(None) };
    let names = serde_json::from_str(text);
    names.map(Some).map_err(|_| Problem::wrong("`properties` is a JSON array of names such as [\"braking\"]"))
}

/// The verdict that a request names; [`NONE`] for `none`.
fn verdict(query: &Query) -> Result<Option<u8>, Problem> {
    let word = query.word("verdict", &["satisfied", "violated", "inconclusive", "none"])?;
    Ok(word.map(|word| verdict_number(word).unwrap_or(NONE)))
}

/// Position of the severity of a property among all.
fn severity(summary: &Summary) -> usize {
    let own = summary.severity.to_lowercase();
    match SEVERITIES.iter().position(|severity| *severity == own) {
        Some(at) => at,
        None if own.is_empty() => SEVERITIES.len() + 1,
        None => SEVERITIES.len(),
    }
}

/// The parameters of an instance in a request.
fn parameters(query: &Query) -> Result<Option<Value>, Problem> {
    let Some(text) = query.text("parameters") else { return Ok(None) };
    let value = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    value.map(Some).ok_or_else(|| Problem::wrong("`parameters` is a JSON object such as {\"robot\": 7}"))
}

/// A number in a path.
fn number(text: &str) -> Result<i64, Problem> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        Problem::wrong(format!("`{}` is no number", text.chars().take(50).collect::<String>()))
    })
}

/// The body of a request. The type is one that a form of another site cannot send.
fn body(request: &Request) -> Answer {
    let content_type = request.content_type.as_deref().unwrap_or_default();
    if content_type.split(';').next().is_none_or(|own| !own.trim().eq_ignore_ascii_case("application/json")) {
        return Err(Problem::new(415, "send JSON, with the header `Content-Type: application/json`"));
    }
    let value: Value = serde_json::from_slice(&request.body)
        .map_err(|error| Problem::wrong(format!("the body is no JSON: {error}")))?;
    value.is_object().then_some(value).ok_or_else(|| Problem::wrong("the body is a JSON object"))
}

/// A member of a body, which must be a text.
pub(crate) fn member<'b>(body: &'b Value, name: &str) -> Result<&'b str, Problem> {
    let text = body.get(name).and_then(Value::as_str);
    text.ok_or_else(|| Problem::wrong(format!("the body needs the text `{name}`")))
}
