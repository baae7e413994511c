//! Names of metrics in the reference, the dashboard and the alert rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{get, monitor, parse};
use crate::support::Folder;
use crate::support::network::free_endpoint;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all series that a run exposes, in the text format of Prometheus; and its families.
fn exposed() -> (BTreeSet<String>, BTreeMap<String, String>) {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = monitor(&folder, &endpoint, "metrics: 127.0.0.1:0\n");
    let families = parse(&get(&address, "/metrics", "*/*").body, false).families;
    run.terminate();
    run.finish().expect_status(0);
    let series = families.iter().flat_map(|(name, kind)| {
        let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
    });
    (series.collect(), families)
}

/// The names of Rondel's and of process metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| ["rondel_", "process_"].iter().any(|of| word.starts_with(of)))
        .map(str::to_owned)
        .collect()
}

/// The expressions of a dashboard: every member `expr`, at any depth.
fn expressions(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| ["expr", "definition"].contains(&name.as_str())) {
                    Some(text) => found.push(text.to_owned()),
                    None => expressions(member, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

#[test]
fn dashboard_alerts_and_reference_name_what_a_run_exposes() {
    let (series, families) = exposed();
    let folder = root().join("deploy/prometheus");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let mut queries = Vec::new();
    expressions(&dashboard, &mut queries);
    assert!(queries.len() >= 15, "{queries:#?}");
    for query in &queries {
        let names = named(query);
        assert!(!names.is_empty(), "no metric in {query}");
        assert!(names.is_subset(&series), "{query} names what no run exposes");
    }
    let rules = read("rules.yaml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let exprs = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect::<Vec<_>>();
    assert_eq!(alerts.len(), exprs.len(), "every expression is on one line");
    for expr in exprs {
        let names = named(expr);
        assert!(names.is_subset(&series) && (!names.is_empty() || expr.contains("up{")), "{expr}");
    }
    let tests = read("rules_test.yaml");
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "no test of {alert}");
    }
    assert!(named(&tests).is_subset(&series));

    let reference = std::fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeMap<String, String> = rows
        .filter_map(|row| {
            let (name, rest) = row.split_once("` | ")?;
            let is_metric = name.starts_with("rondel_") || name.starts_with("process_");
            is_metric.then(|| (name.to_owned(), rest.split(" |").next().unwrap_or_default().to_owned()))
        })
        .collect();
    // The information about the build is a gauge in the format of Prometheus.
    assert_eq!(documented, families);
}
