//! Predictions of `rondel size` beside a simulated fleet.
//!
//! The prediction is made from a recording of some keys. Then the whole fleet is checked from a file: its memory, its
//! snapshot and the recovery are those of the process.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::child::Child;
use crate::failure::{Failure, Result, io_error};
use crate::file::{self, Measured};
use crate::say;
use crate::table::Table;
use crate::timescales::Random;
use crate::traces::Folder;

/// A window and a bound of four seconds.
const SPECIFICATION: &str = "topic car { vehicle: string, speed: float, brake: bool }
property slow for each v in car.vehicle = mean(car.speed) over 4 s < 90
property brakes for each v in car.vehicle = car.speed > 90 -> once[0, 4 s] car.brake
";
/// Time between two messages of a vehicle, in seconds.
const PERIOD_S: f64 = 2.0;
/// Messages of each vehicle: as long as the window lasts, and one more.
const ROUNDS: u64 = 3;
/// Time limit of the prediction.
const LIMIT: Duration = Duration::from_secs(600);

/// A predicted and a measured figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name.
    pub what: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// The prediction.
    pub predicted: f64,
    /// The figure of the simulated fleet.
    pub measured: f64,
}

/// Writes messages of vehicles as lines.
fn messages(keys: u64, rounds: u64) -> Vec<u8> {
    let (mut text, mut random) = (String::new(), Random::new(5));
    for round in 0..rounds {
        for key in 0..keys {
            let time = (round as f64 + key as f64 / keys as f64) * PERIOD_S;
            let (speed, brake) = (random.within(0, 1000) as f64 / 10.0, random.within(0, 1) == 1);
            // Writing to memory does not fail.
            let _ = writeln!(
                text,
                "{{\"topic\":\"car\",\"time\":{time:.6},\"vehicle\":\"vehicle-{key:07}\",\"speed\":{speed},\"brake\":{brake}}}"
            );
        }
    }
    text.into_bytes()
}

/// Predicts for `keys` vehicles from `sampled` ones, and checks all of them.
///
/// # Errors
/// When `rondel` fails, or has not checked all messages.
pub fn measure(rondel: &Path, keys: u64, sampled: u64) -> Result<Vec<Figure>> {
    let folder = Folder::new("size")?;
    let specification = folder.write("fleet.rondel", SPECIFICATION.as_bytes())?;
    let predicted = predict(rondel, &folder, &specification, keys, sampled)?;
    let trace = folder.write("fleet.jsonl", &messages(keys, ROUNDS))?;
    let last = folder.write(
        "last.jsonl",
        format!(
            "{{\"topic\":\"car\",\"time\":{},\"vehicle\":\"vehicle-0000000\",\"speed\":1,\"brake\":true}}\n",
            ROUNDS as f64 * PERIOD_S
        )
        .as_bytes(),
    )?;
    let snapshot = trace.with_extension("snapshot");
    let arguments = |further: &[String]| {
        let own = ["--emit=violations", "--jobs=1"].map(str::to_owned);
        [&own[..], further, &[specification.display().to_string()]].concat()
    };
    let check = |what: &str, further: &[String], trace: &Path, events: u64| -> Result<Measured> {
        let measured = file::measure(rondel, &arguments(further), trace, events)?;
        say(&format!("{what}: {:.1} s, {} MB", measured.checked.seconds, measured.peak_bytes / 1_000_000));
        Ok(measured)
    };
    let whole = check("check", &[], &trace, keys * ROUNDS)?;
    let to = format!("--snapshot-to={}", snapshot.display());
    let saved = check("check with a snapshot", &[to], &trace, keys * ROUNDS)?;
    let bytes = fs::metadata(&snapshot).map_err(io_error(snapshot.display().to_string()))?.len();
    let empty = check("one message", &[], &last, 1)?;
    let resume = format!("--resume={}", snapshot.display());
    let resumed = check("recovery", &[resume], &last, keys * ROUNDS + 1)?;
    let plan = |name: &str| predicted["plan"][name].as_f64().unwrap_or(f64::NAN);
    let measured = |name: &str| predicted["measured"][name].as_f64().unwrap_or(f64::NAN);
    let figure = |what, unit, predicted, measured| Figure { what, unit, predicted, measured };
    Ok(vec![
        figure(
            "message, decoded and evaluated",
            "ns",
            measured("decode_ns") + measured("evaluate_ns"),
            whole.checked.cpu_ns(),
        ),
        figure(
            "memory without a snapshot",
            "MB",
            (measured("process_bytes") + plan("state_bytes")) / 1e6,
            whole.peak_bytes as f64 / 1e6,
        ),
        figure("memory with a snapshot", "MB", plan("process_bytes") / 1e6, saved.peak_bytes as f64 / 1e6),
        figure("snapshot", "MB", plan("snapshot_bytes") / 1e6, bytes as f64 / 1e6),
        figure("time of a snapshot", "s", plan("snapshot_s"), saved.checked.seconds - whole.checked.seconds),
        figure("recovery", "s", plan("recovery_s"), resumed.checked.seconds - empty.checked.seconds),
    ])
}

/// Runs `rondel size` on a recording of some of the vehicles.
fn predict(rondel: &Path, folder: &Folder, specification: &Path, keys: u64, sampled: u64) -> Result<Value> {
    let recording = folder.write("some.jsonl", &messages(sampled, ROUNDS))?;
    let out = recording.with_extension("json");
    let file = File::create(&out).map_err(io_error(out.display().to_string()))?;
    let arguments = [
        "size".to_owned(),
        specification.display().to_string(),
        recording.display().to_string(),
        format!("--keys={keys}"),
        format!("--rate={}", keys as f64 / PERIOD_S),
        // One process, however large.
        "--memory=1024 GiB".to_owned(),
        "--json".to_owned(),
    ];
    Child::start_into("size", rondel, &arguments, file)?.wait(LIMIT)?.succeeded("size")?;
    let text = fs::read_to_string(&out).map_err(io_error(out.display().to_string()))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Io(out.display().to_string(), std::io::Error::other(error)))
}

/// The figures as a table.
pub fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new(
        "Predictions of `rondel size`",
        &["figure", "predicted", "measured", "measured / predicted"],
    );
    for Figure { what, unit, predicted, measured } in figures {
        table.row(vec![
            (*what).to_owned(),
            format!("{predicted:.1} {unit}"),
            format!("{measured:.1} {unit}"),
            format!("{:.2}", measured / predicted),
        ]);
    }
    table.note("The message is measured as a whole process: with reading the file and the start.");
    table.note("Times of a snapshot and of a recovery are differences of two processes.");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vehicle_sends_every_period() {
        let text = String::from_utf8(messages(4, 2)).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 8);
        assert_eq!((lines[1]["time"].as_f64(), lines[5]["time"].as_f64()), (Some(0.5), Some(2.5)));
        assert_eq!(lines[1]["vehicle"], lines[5]["vehicle"]);
        assert!(rondel_spec::parse(SPECIFICATION).spec.is_some());
    }

    #[test]
    fn ratio_is_in_the_table() {
        let figure = Figure { what: "snapshot", unit: "MB", predicted: 50.0, measured: 40.0 };
        assert!(table(&[figure]).markdown().contains("0.80"));
    }
}
