//! The statistics of chains.

use rondel_engine::{ChainFigures, Distribution, Monitor};
use rondel_event::Value;
use rondel_spec::Spec;
use serde_json::json;

use crate::text::{counted, write_value};

/// The figures of a distribution, in the order of display.
const COLUMNS: [&str; 6] = ["count", "min", "mean", "p50", "p99", "max"];

/// The statistics of a chain, of one recording or of several.
#[derive(Clone, Debug)]
pub struct ChainStatistics {
    name: String,
    /// The names of its topics.
    topics: Vec<String>,
    figures: ChainFigures,
    under_way: u64,
}

impl ChainStatistics {
    /// Current statistics of the chains of these properties in a monitor.
    pub(crate) fn all(monitor: &Monitor, spec: &Spec, properties: &[u32]) -> Vec<ChainStatistics> {
        let is_own = |name: &str| {
            properties
                .iter()
                .filter_map(|&property| spec.properties.get(property as usize))
                .any(|p| p.name == name)
        };
        let name =
            |topic: &rondel_event::TopicId| spec.topics.get(topic.index()).map(|topic| topic.name.clone());
        let chains = monitor.chains().filter(|chain| is_own(chain.name)).map(|chain| ChainStatistics {
            name: chain.name.to_owned(),
            topics: chain.topics.iter().filter_map(name).collect(),
            figures: chain.figures.clone(),
            under_way: chain.under_way,
        });
        chains.collect()
    }

    /// Adds the statistics of a further recording.
    pub(crate) fn merge(all: &mut Vec<ChainStatistics>, more: Vec<ChainStatistics>) {
        if all.is_empty() {
            *all = more;
            return;
        }
        for (own, other) in all.iter_mut().zip(more) {
            own.figures.merge(&other.figures);
            own.under_way += other.under_way;
        }
    }

    /// The statistics as JSON, with durations in seconds.
    pub fn json(&self) -> serde_json::Value {
        let ChainFigures { latency, reaction, age, started, in_time, late, strays, unstamped, .. } =
            &self.figures;
        let lost: serde_json::Map<String, serde_json::Value> =
            self.lost().map(|(topic, count)| (topic.to_owned(), count.into())).collect();
        json!({
            "chain": self.name,
            "started": started,
            "in_time": in_time,
            "late": late,
            "under_way": self.under_way,
            "lost": lost,
            "strays": strays,
            "unstamped": unstamped,
            "latency": distribution(latency),
            "reaction": distribution(reaction),
            "age": distribution(age),
        })
    }

    /// The statistics as text: lines indented by two, without a final line break.
    pub fn text(&self) -> String {
        let ChainFigures { started, in_time, late, crowded_out, strays, unstamped, .. } = self.figures;
        let mut text = format!(
            "  {}: {}, {in_time} came out in time, {late} later",
            self.name,
            counted(started, "stamp", "stamps")
        );
        for (topic, count) in self.lost() {
            text += &format!(", {count} lost before {topic}");
        }
        if crowded_out > 0 {
            text += &format!(" ({crowded_out} because there were too many)");
        }
        if self.under_way > 0 {
            text += &format!(", {} under way", self.under_way);
        }
        if strays > 0 {
            text += &format!("; {} out of order", counted(strays, "message", "messages"));
        }
        if unstamped > 0 {
            text += &format!("; {} without stamp", counted(unstamped, "message", "messages"));
        }
        let rows = [
            ("latency", &self.figures.latency),
            ("reaction", &self.figures.reaction),
            ("age", &self.figures.age),
        ];
        let cells = rows.map(|(name, distribution)| {
            let cell = |column| match column_of(distribution, column) {
                Some(nanos) if column != "count" => format!("{:.3} ms", nanos as f64 / 1e6),
                Some(count) => count.to_string(),
                None => "-".to_owned(),
            };
            (name, COLUMNS.map(cell))
        });
        let widths: Vec<usize> = COLUMNS
            .iter()
            .enumerate()
            .map(|(i, column)| cells.iter().map(|(_, cells)| cells[i].len()).fold(column.len(), usize::max))
            .collect();
        let mut line = |name: &str, cells: &[String]| {
            text += &format!("\n    {name:<8}");
            for (cell, width) in cells.iter().zip(&widths) {
                text += &format!("  {cell:>width$}");
            }
        };
        line("", &COLUMNS.map(str::to_owned));
        for (name, cells) in &cells {
            line(name, cells);
        }
        text
    }

    /// The topics before which stamps were lost.
    fn lost(&self) -> impl Iterator<Item = (&str, u64)> {
        let topics = self.topics.iter().zip(&self.figures.lost);
        topics.filter(|(_, count)| **count > 0).map(|(topic, count)| (topic.as_str(), *count))
    }
}

fn column_of(of: &Distribution, column: &str) -> Option<u64> {
    match column {
        "count" => Some(of.count()),
        "min" => of.min(),
        "mean" => of.mean(),
        "p50" => of.quantile(500),
        "p99" => of.quantile(990),
        _ => of.max(),
    }
}

fn distribution(of: &Distribution) -> serde_json::Value {
    let seconds = |column: &str, value: Option<u64>| match value {
        Some(nanos) if column != "count" => {
            let mut text = Vec::new();
            write_value(&Value::Duration(i64::try_from(nanos).unwrap_or(i64::MAX)), &mut text);
            // It has just been written as a number.
            serde_json::from_slice(&text).unwrap_or_default()
        }
        value => json!(value),
    };
    let members = COLUMNS.map(|column| (column.to_owned(), seconds(column, column_of(of, column))));
    serde_json::Value::Object(members.into_iter().collect())
}
