//! `rondel replay`: a recording that is replayed gives a live run the verdicts of `rondel check` on the same file, and
//! subscribers that are not ours get the payloads as they were recorded, in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod of_bags;
mod of_json;
mod selection;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use support::finish;

const SPECIFICATION: &str = "
topic gear \"t/gear\" { t: time, report: int }
topic speed \"t/speed\" { t: time, v: float }
@time(steps) property limited = speed.v < 9 or once gear.report == 3
property recent = gear.report == 2 -> once[0, 25 s] speed.v > 5
property soon = gear.report == 1 -> eventually[0, 33 s] speed.v < 2
";

/// Prints the payloads of an MCAP file, `TOPIC HEX`.
const PAYLOADS: &str = "
import sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    for _, channel, message in make_reader(file).iter_messages():
        print(channel.topic, message.data.hex())
";

/// Messages whose own times are ten seconds apart.
fn messages(count: usize) -> Vec<(&'static str, String)> {
    let one = |i: usize| match i % 2 {
        0 => ("t/gear", format!("{{\"t\":{}, \"report\":{}}}", 10 * i, i / 2 % 4)),
        _ => ("t/speed", format!("{{\"t\":{}, \"v\":{}}}", 10 * i, (i * 7 % 40) as f64 / 4.0)),
    };
    (0..count).map(one).collect()
}

fn run_python(python: &Path, script: &str, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(python);
    command.args(["-c", script]).args(arguments);
    let run = finish(&mut command, input.as_bytes());
    run.expect_status(0);
    run.stdout
}

/// Payloads that a subscriber printed as `TOPIC HEX …`, by topic.
fn by_topic(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(topic), Some(hex)) = (words.next(), words.next()) else { continue };
        if hex.len() > 3 && hex.len().is_multiple_of(2) && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            all.entry(topic.to_owned()).or_default().push(hex.to_owned());
        }
    }
    all
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
