//! The results of cases: kept in a file, and written as Markdown into docs/benchmarks/faults.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::case::{FAULTS, LOADS, NETWORKS, PARTS, SECONDS};

const BEGIN: &str = "<!-- faults: written by make test-faults -->";
const END: &str = "<!-- faults: end -->";

/// The file of results, if one is wanted.
fn file() -> Option<PathBuf> {
    std::env::var_os("RONDEL_FAULTS_RESULTS").map(PathBuf::from)
}

/// Appends a result to the file of results.
pub fn keep(result: &Value) {
    if let Some(path) = file() {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{result}\n").as_bytes()).unwrap();
    }
}

/// The titles of the cases that reached all marks the last time.
pub fn reached() -> Vec<String> {
    let text = file().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let mut last = BTreeMap::new();
    for result in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        last.insert(title(&result), result["missed"] == Value::Array(Vec::new()));
    }
    last.into_iter().filter(|(_, reached)| *reached).map(|(title, _)| title).collect()
}

/// The title of the case of a result, as [`Case::title`](crate::case::Case::title) has it.
fn title(result: &Value) -> String {
    ["network", "participant", "fault", "seconds", "load"]
        .map(|member| result[member].as_str().unwrap())
        .join(" ")
}

/// Shows a result, past the capture of the test's output.
pub fn progress(done: usize, all: usize, result: &Value) {
    let missed: Vec<_> = result["missed"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let line = format!(
        "{done}/{all} {}: {}: {}",
        title(result),
        result["balance"].as_str().unwrap_or("no account"),
        if missed.is_empty() { "ok".to_owned() } else { format!("MISSED {} {result}", missed.join(", ")) }
    );
    rondel_testkit::notice(&line);
}

/// Writes the table of all results that were kept, if it is wanted; fails if a mark was missed now.
pub fn finish(results: &[Value]) {
    let kept = file().map(|path| fs::read_to_string(path).unwrap());
    let kept: Vec<Value> =
        kept.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let table = markdown(if kept.is_empty() { results } else { &kept });
    if std::env::var("RONDEL_DOCS").is_ok_and(|value| value == "write") {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks/faults.md");
        let text = fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the page has the marker");
        let (_, after) = rest.split_once(END).expect("the page has the end marker");
        fs::write(page, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).unwrap();
    } else {
        std::io::stdout().write_all(table.as_bytes()).unwrap();
    }
    let missed = results.iter().filter(|result| result["missed"] != Value::Array(Vec::new())).count();
    assert_eq!(missed, 0, "of {} cases missed a mark", results.len());
}

/// The last result of each case: the worst of each fault, then all.
fn markdown(results: &[Value]) -> String {
    let mut text = format!(
        "{}\n\n| network | participant | fault | messages not checked | held up | goes on | ends | memory | marks |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        origin()
    );
    let mut details = String::new();
    for (_, network) in NETWORKS {
        let mut cases = BTreeMap::new();
        for result in results.iter().filter(|result| result["network"] == network) {
            cases.insert(place(result), result);
        }
        let mut faults: BTreeMap<[usize; 2], Vec<&Value>> = BTreeMap::new();
        for (place, result) in &cases {
            faults.entry([place[0], place[1]]).or_default().push(result);
        }
        faults.values().for_each(|results| text.push_str(&worst(results)));
        if !cases.is_empty() {
            let _ = write!(details, "\n<details><summary>{network}, all cases</summary>\n\n{HEADER}");
            cases.values().for_each(|result| details.push_str(&row(result)));
            details.push_str("\n</details>\n");
        }
    }
    text + &details
}

/// The columns of [`row`].
const HEADER: &str = "| fault | s | messages/s | published | = received | + recovered | + lost | + dropped | + not \
    counted | verdicts missing: consumer, other; reported | held up | goes on | ends | memory |\n\
    |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

/// Where the results come from.
fn origin() -> String {
    let output = |command: &mut Command| {
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    format!(
        "{}, {} cores, {} {}, `make test-faults` with {}.",
        output(Command::new("date").args(["-u", "+%F"])),
        std::thread::available_parallelism().unwrap(),
        std::env::consts::OS,
        std::env::consts::ARCH,
        output(Command::new(crate::network::program()).arg("--version"))
    )
}

/// The worst figures of the cases of one fault.
fn worst(results: &[&Value]) -> String {
    let most = |member: &str| results.iter().filter_map(|result| result[member].as_f64()).fold(0.0, f64::max);
    let member = |name: &str| results[0][name].as_str().unwrap_or_default();
    let is_consumer = member("participant") == "consumer";
    let missed = results.iter().filter(|result| result["missed"] != Value::Array(Vec::new())).count();
    let outcomes = [
        ("wrong", "**wrong**"),
        ("unnoticed", "not counted"),
        ("outage", "an outage is reported"),
        ("counted", "counted"),
    ];
    let outcome = outcomes.iter().find(|(name, _)| results.iter().any(|result| outcome(result) == *name));
    format!(
        "| {} | {} | {} | {} | {} | {} | {:.1} s | {:.0} MiB | {} |\n",
        member("network"),
        member("participant"),
        member("fault"),
        outcome.map_or("none", |(_, text)| text),
        if is_consumer { format!("{:.1} s", most("hold_up")) } else { String::new() },
        if is_consumer { String::new() } else { format!("{:.1} s", most("goes_on")) },
        most("ended"),
        most("memory_mib"),
        match missed {
            0 => format!("{} of {}", results.len(), results.len()),
            _ => format!("**{} of {}**", results.len() - missed, results.len()),
        }
    )
}

/// Outcome of the messages that were not checked.
fn outcome(result: &Value) -> &'static str {
    let count = |member: &str| result[member].as_u64().unwrap_or(0);
    let wrong =
        result["missed"].as_array().unwrap().iter().any(|missed| missed == "account" || missed == "run");
    match (result["seconds"].as_str(), count("rest"), result["reason"].as_str()) {
        _ if wrong => "wrong",
        (Some("end"), ..) => "none",
        (_, 0, _) if count("lost") + count("dropped") == 0 => "none",
        (_, 0, _) => "counted",
        (.., Some("in a reported outage")) => "outage",
        _ => "unnoticed",
    }
}

/// The place of a result in its table.
fn place(result: &Value) -> [usize; 4] {
    let at = |names: Vec<&str>, member: &str| names.iter().position(|name| result[member] == *name).unwrap();
    [
        at(PARTS.iter().map(|(_, name)| *name).collect(), "participant"),
        at(FAULTS.iter().map(|(_, name)| *name).collect(), "fault"),
        at(SECONDS.iter().map(|(_, name)| *name).collect(), "seconds"),
        at(LOADS.iter().map(|(_, name)| *name).collect(), "load"),
    ]
}

fn row(result: &Value) -> String {
    let missed = |what: &str| result["missed"].as_array().unwrap().iter().any(|missed| missed == what);
    let bold = |what: &str, text: String| if missed(what) { format!("**{text}**") } else { text };
    let count = |member: &str| grouped(result[member].as_u64().unwrap_or(0));
    let seconds = |member: &str| result[member].as_f64().map_or("never".to_owned(), |s| format!("{s:.1}"));
    let member = |name: &str| result[name].as_str().unwrap_or_default();
    let lasts = member("seconds") == "end";
    let start = format!(
        "| {} {} | {} | {} |",
        member("participant"),
        member("fault"),
        if lasts { "to the end" } else { member("seconds") },
        count("rate")
    );
    if missed("run") {
        return format!("{start} **failed** | | | | | | | | | | |\n");
    }
    let ended = bold("end", seconds("ended"));
    if lasts {
        return format!("{start} | | | | | | | | | {ended} | {} |\n", bold("memory", count("memory_mib")));
    }
    let rest = match count("rest").as_str() {
        "0" => String::new(),
        rest => format!("{rest}, {}", member("reason")),
    };
    format!(
        "{start} {} | {} | {} | {} | {} | {} | {} | {} | {} | {ended} | {} |\n",
        bold("account", count("published")),
        count("received"),
        count("recovered"),
        count("lost"),
        count("dropped"),
        rest,
        bold(
            "verdicts",
            format!("{}, {}, {}", count("consumer_missing"), count("healthy_missing"), count("undelivered"))
        ),
        if member("participant") == "consumer" { bold("hold-up", seconds("hold_up")) } else { String::new() },
        if member("participant") == "consumer" {
            bold("throughput", format!("{:.0} %", 100.0 * result["throughput"].as_f64().unwrap_or(0.0)))
        } else {
            bold("goes on", seconds("goes_on"))
        },
        bold("memory", count("memory_mib")),
    )
}

/// A number with separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
