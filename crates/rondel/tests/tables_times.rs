//! Tables as instruments, spreadsheets and databases write them: times in other columns and other forms, no header, names
//! that are no words, and tables of InfluxDB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::Write as _;

use rondel_recording::TableOptions;
use rondel_runtime::Emit;
use support::{Finished, Folder, letters, library, rondel};

/// Checks `x < 5` in a table, and returns every verdict in JSON.
fn check(folder: &Folder, table: &str, more: &[&str]) -> Finished {
    let table = folder.file("table.csv", table);
    rondel(["check", "-q", "--format", "json", "-e", "every", "-f", "x < 5", &table].iter().chain(more))
}

#[test]
fn a_chosen_column_of_times_follows_the_rules_of_one_named_time() {
    let folder = Folder::new();
    for times in [
        ["0.5", "1.5"],
        ["1700000000", "1700000001"],
        ["1700000000000", "1700000000100"],
        ["1700000000000000", "1700000000100000"],
        ["1700000000000000000", "1700000000100000001"],
        ["2023-11-14T22:13:20Z", "2023-11-14 22:13:21"],
        ["2023-11-14", "2023-11-15"],
        ["18:16:04", "18:16:05.25"],
    ] {
        let rows = format!(",x\n{},1\n{},9\n", times[0], times[1]);
        let expected = check(&folder, &format!("time{rows}"), &[]);
        expected.expect_status(1);
        let chosen = check(&folder, &format!("rx{rows}"), &["--time-field", "rx"]);
        assert_eq!(chosen.stdout, expected.stdout, "{times:?}: {}", chosen.stderr);
        let unit = check(&folder, &format!("rx [s]{rows}"), &["--time-field", "rx [s]"]);
        if times[0].len() < 11 {
            assert_eq!(unit.stdout, expected.stdout, "{times:?}: {}", unit.stderr);
        }
    }
    // The unit in the name and in the option.
    let expected = check(&folder, "time_ms,x\n500,1\n1500,9\n", &[]);
    let named = check(&folder, "rx_ms,x\n500,1\n1500,9\n", &["--time-field", "rx_ms"]);
    assert_eq!(named.stdout, expected.stdout, "{}", named.stderr);
    let given = check(&folder, "rx,x\n500,1\n1500,9\n", &["--time-field", "rx", "--time-unit", "ms"]);
    assert_eq!(given.stdout, expected.stdout, "{}", given.stderr);
    // A time that is none, and one that is missing, are treated alike too.
    let wrong = check(&folder, "rx,x\n1,1\nsoon,9\n", &["--time-field", "rx"]);
    wrong.expect_status(3).expect_stderr(&["table.csv:3: \"soon\" in column `rx` is no time"]);
    let expected = check(&folder, "time,x\n1,1\n,9\n", &[]);
    assert_eq!(check(&folder, "rx,x\n1,1\n,9\n", &["--time-field", "rx"]).stdout, expected.stdout);
    // The column stays a field; several topics.
    let table =
        folder.file("rx.csv", "rx,topic,x\n1700000000000,a,1\n1700000000100,b,2\n1700000000200,a,3\n");
    let spec = folder.file("rx.rondel", "topic a\ntopic b\nproperty p = a.rx < 1700000000200 and b.x < 5\n");
    let said =
        rondel(["check", "-q", "--format", "json", "-e", "every", "--time-field", "rx", &spec, &table]);
    assert_eq!(letters(&said.stdout), "?TF", "{} {}", said.stdout, said.stderr);
    assert!(said.stdout.contains("1700000000.2"), "{}", said.stdout);
}

#[test]
fn dates_and_times_of_day() {
    let folder = Folder::new();
    let expected = check(&folder, "time,x\n2026-11-22T18:16:04.5Z,1\n2026-11-22T18:16:05Z,9\n", &[]);
    expected.expect_status(1);
    let same = |table: &str, more: &[&str]| {
        let checked = check(&folder, table, more);
        assert_eq!(checked.stdout, expected.stdout, "{table} {}", checked.stderr);
    };
    let rows = "\n2026-11-22,18:16:04.5,1\n2026-11-22,18:16:05,9\n";
    same(&format!("Date,Time,x{rows}"), &[]);
    same(&format!("day,at,x{rows}"), &["--time-field", "day,at"]);
    same("x;time;date\n1;18:16:04,5;2026/11/22\n9;18:16:05;2026/11/22\n", &[]);
    // A time that has its date needs no other.
    same("date,time,x\nSunday,2026-11-22 18:16:04.5,1\nSunday,2026-11-22 18:16:05,9\n", &[]);
    let german = "time,x\n22.11.2026 18:16:04.5,1\n22.11.2026 18:16:05,9\n";
    same(german, &["--time-format", "%d.%m.%Y %H:%M:%S%.f"]);
    check(&folder, german, &[]).expect_status(3).expect_stderr(&[
        "table.csv:2: \"22.11.2026 18:16:04.5\" in column `time` is no time",
        "--time-format",
    ]);
    check(&folder, german, &["--time-format", "%m/%d/%Y"])
        .expect_status(3)
        .expect_stderr(&["it is not written as --time-format \"%m/%d/%Y\" says"]);
    check(&folder, german, &["--time-format", "%Q%"]).expect_status(2).expect_stderr(&["--time-format"]);
    check(&folder, german, &["--time-format", "now"]).expect_status(2).expect_stderr(&["no field of a time"]);
    let days = check(&folder, "date,x\n2026-11-22,1\n2026-11-23,9\n", &[]);
    assert!(days.stdout.contains("1795392000"), "{} {}", days.stdout, days.stderr);
}

#[test]
fn tables_without_names() {
    let folder = Folder::new();
    let rows = "0.5,7,1\n1.5,7,9\n";
    let expected = check(&folder, &format!("time,y,x\n{rows}"), &[]);
    expected.expect_status(1);
    let refused = check(&folder, rows, &[]);
    refused.expect_status(3).expect_stderr(&[
        "does not name the columns",
        "its 3 columns",
        "--columns time,x",
    ]);
    for columns in ["time,y,x", "time,,x", "time, y, x"] {
        let checked = check(&folder, rows, &["--columns", columns]);
        assert_eq!(checked.stdout, expected.stdout, "{columns}: {}", checked.stderr);
    }
    let named = check(&folder, rows, &["--columns", "rx,y,x", "--time-field", "rx"]);
    assert_eq!(named.stdout, expected.stdout, "{}", named.stderr);
    let long = check(&folder, "0.5,y,7\n0.5,x,1\n1.5,y,7\n1.5,x,9\n", &["--columns", "time,field,value"]);
    assert_eq!(long.stdout, expected.stdout, "{}", long.stderr);
    // Columns behind those that have names, and between them.
    let table = folder.file("unnamed.csv", ",time,,x\n8,0.5,2,1\n9,1.5,3,9\n");
    let said =
        rondel(["check", "-q", "--format", "json", "-e", "every", "-f", "column_1 + column_3 < 12", &table]);
    assert_eq!(letters(&said.stdout), "TF", "{} {}", said.stdout, said.stderr);
    let table = folder.file("rest.csv", rows);
    let formula = ["-q", "--format", "json", "-e", "every", "-f", "column_3 < 5", "--columns", "time"];
    let said = rondel(["check"].iter().chain(&formula).chain(&[table.as_str()]));
    assert_eq!(letters(&said.stdout), "TF", "{} {}", said.stdout, said.stderr);
    // Other commands read it too.
    let topics = rondel(["topics", "--columns", "time,y,x", &table]);
    topics.expect_status(0);
    assert!(topics.stdout.contains("rest"), "{}", topics.stdout);
    rondel(["topics", &table]).expect_status(3).expect_stderr(&["--columns"]);
    let drafted = folder.path("drafted");
    let written = rondel(["init", "--columns", "time,y,x", &table, "--folder", &drafted]);
    written.expect_status(0);
    // The next command has the same options.
    let next = written.stderr.lines().find_map(|line| line.strip_prefix("next: rondel ")).unwrap();
    rondel(next.split(' ')).expect_status(0);
    let picture = folder.path("table.svg");
    rondel(["plot", "-o", &picture, "--columns", "time,y,x", "-f", "x < 5", &table]).expect_status(0);
    if cfg!(feature = "parquet") {
        let parquet =
            format!("{}/../rondel-recording/tests/parquet/zstd.parquet", env!("CARGO_MANIFEST_DIR"));
        rondel(["check", "-f", "x < 5", "--columns", "time,x", &parquet])
            .expect_status(3)
            .expect_stderr(&["leave out --columns"]);
    }
}

#[test]
fn any_name_of_a_column_can_be_written() {
    let folder = Folder::new();
    let names =
        ["speed (m/s)", "Unnamed: 0", "1st", "until", "time-to-go", "größe", "a \"\"b\"\"", "$x", "x'y"];
    let header: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    for (place, name) in names.iter().enumerate() {
        let mut cells = ["0"; 9];
        cells[place] = "9";
        let rows = format!("time,{}\n0,1,1,1,1,1,1,1,1,1\n1,{}\n", header.join(","), cells.join(","));
        let table = folder.file("names.csv", rows);
        let own = name.replace("\"\"", "\\\"");
        let formula = format!(".\"{own}\" < 5");
        let said =
            rondel(["check", "-q", "--explain", "--format", "json", "-e", "every", "-f", &formula, &table]);
        assert_eq!(letters(&said.stdout), "TF", "{formula} {} {}", said.stdout, said.stderr);
    }
    let table = folder.file("names.csv", "time,speed (m/s)\n0,1\n");
    let said = rondel(["check", "-q", "-f", "\"speed (m/s)\" < 5", &table]);
    said.expect_status(2).expect_stderr(&["write a point before the name", "`.\"speed (m/s)\"`"]);
}

/// A query's result: two fields of one series, a second series, and a text in a table with other columns.
const INFLUX: &str = "#group,false,false,true,true,false,false,true,true,true\r
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string\r
#default,_result,,,,,,,,\r
,result,table,_start,_stop,_time,_value,_field,_measurement,host\r
,,0,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:00Z,1.5,usage,cpu,a\r
,,0,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:10Z,2.5,usage,cpu,a\r
,,1,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:00Z,41.5,temp,cpu,a\r
,,1,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:10Z,99.5,temp,cpu,a\r
,,2,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:00Z,3.5,usage,cpu,b\r
\r
#group,false,false,true,true,false,false,true,true\r
#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,string,string,string\r
#default,_result,,,,,,,\r
,result,table,_start,_stop,_time,_value,_field,_measurement\r
,,3,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:05Z,12,state,door\r
,,3,2026-11-22T00:00:00Z,2026-11-23T00:00:00Z,2026-11-22T18:00:15Z,,state,door\r
\r
";

const INFLUX_SPECIFICATION: &str = "topic cpu { usage: float, temp: float, host: string }
topic door { state: string }
property cool = cpu.temp < 50
property idle = cpu.usage < 2 or cpu.host == \"b\"
property closed = door.state == \"12\"
property own = cpu.temp > 50 -> cpu.host == \"a\" and cpu.usage > 2
";

#[test]
fn tables_of_influxdb_are_merged() {
    let folder = Folder::new();
    let spec = folder.file("influx.rondel", INFLUX_SPECIFICATION);
    let lines = r#"{"topic":"cpu","time":"2026-11-22T18:00:00Z","data":{"usage":1.5,"temp":41.5,"host":"a"}}
{"topic":"cpu","time":"2026-11-22T18:00:00Z","data":{"usage":3.5,"host":"b"}}
{"topic":"door","time":"2026-11-22T18:00:05Z","data":{"state":"12"}}
{"topic":"cpu","time":"2026-11-22T18:00:10Z","data":{"usage":2.5,"temp":99.5,"host":"a"}}
{"topic":"door","time":"2026-11-22T18:00:15Z","data":{}}
"#;
    let checked = |file: &str| rondel(["check", "-q", "--format", "json", "-e", "every", &spec, file]);
    let expected = checked(&folder.file("lines.jsonl", lines));
    let table = folder.file("influx.csv", INFLUX);
    let said = checked(&table);
    assert_eq!(said.stdout, expected.stdout, "{}", said.stderr);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(INFLUX.as_bytes()).unwrap();
    let packed = folder.file("packed.csv.gz", packed.finish().unwrap());
    assert_eq!(checked(&packed).stdout, expected.stdout);
    // Without annotations, with a header in the place of each, as the command of InfluxDB prints it.
    let plain: String =
        INFLUX.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(checked(&folder.file("plain.csv", plain)).stdout, expected.stdout);
    let listed = rondel(["topics", &table]);
    assert!(listed.stdout.contains("cpu ") && listed.stdout.contains("door "), "{}", listed.stdout);
    // A span of times, and one topic for all rows.
    let from = rondel(["check", "-q", "--from", "+10", "--format", "json", "-e", "every", &spec, &table]);
    assert_eq!(letters(&from.stdout).len() % 4, 0, "{}", from.stdout);
    let formula = ["-q", "--format", "json", "-e", "every", "-f", "usage < 3", "--topic", "x"];
    let all = rondel(["check"].iter().chain(&formula).chain(&[table.as_str()]));
    assert!(letters(&all.stdout).starts_with("TF"), "{}", all.stdout);
    assert_eq!(all.stdout.lines().count(), 5, "{}", all.stdout);
}

#[test]
fn other_tables_of_influxdb() {
    let folder = Folder::new();
    let verdicts = |table: &str, formula: &str| {
        let table = folder.file("other.csv", table);
        let said = rondel(["check", "-q", "--format", "json", "-e", "every", "-f", formula, &table]);
        (letters(&said.stdout), said)
    };
    // A pivoted table has its fields in columns.
    let pivoted = "#datatype,string,long,dateTime:RFC3339,string,double,double\n#group,false,false,false,true,false,false\n\
                   #default,_result,,,,,\n,result,table,_time,host,temp,usage\n\
                   ,,0,2026-11-22T18:00:00Z,a,40,1\n,,0,2026-11-22T18:00:10Z,a,60,1\n\
                   ,,1,2026-11-22T18:00:05Z,b,,3\n";
    assert_eq!(verdicts(pivoted, "temp < 50 and host == \"a\"").0, "TFF");
    // As it is written to a database.
    let written = "#constant measurement,cpu\n#datatype tag,double,dateTime:RFC3339\nhost,temp,at\n\
                   a,40,2026-11-22T18:00:00Z\nb,60,2026-11-22T18:00:10Z\n";
    let (letters, said) = verdicts(written, "temp < 50");
    assert_eq!(letters, "TF", "{}", said.stderr);
    // Times that go back, and rows that cannot be used.
    let rows = ",result,table,_time,_value,_field\n,,0,3,9,x\n,,0,2,1,x\n,,0,1,1,x\n,,0,soon,1,x\n,,0,4\n,,0,5,1,x\n";
    let table = folder.file("back.csv", rows);
    let skipped = rondel(["check", "--on-error", "skip", "--summary", "json", "-f", "x < 5", &table]);
    skipped.expect_status(1).expect_stderr(&["\"skipped\":2", "\"events\":4"]);
    let stopped = rondel(["check", "-q", "-f", "x < 5", &table]);
    stopped.expect_status(3).expect_stderr(&["back.csv:5: \"soon\" in column `_time` is no time"]);
    // A table without times, as an error of a query is.
    let failed = folder.file(
        "failed.csv",
        "#datatype,string,string\n#group,true,true\n#default,,\n,error,reference\n,no,1\n",
    );
    rondel(["check", "-f", "x < 5", &failed])
        .expect_status(3)
        .expect_stderr(&["no column `_time`", "\"error\""]);
    let twice = folder.file("twice.csv", ",result,table,_time,_value,_field,x\n,,0,1,9,x,a\n");
    rondel(["check", "-f", "x < 5", &twice])
        .expect_status(3)
        .expect_stderr(&["a tag and a field have the name `x`", "rename("]);
    let back: String = (0..17_000).rev().map(|i| format!(",,0,{i},1,x\n")).collect();
    let back = folder.file("back.csv", format!(",result,table,_time,_value,_field\n{back}"));
    rondel(["check", "-f", "x < 5", &back]).expect_status(3).expect_stderr(&["sort(columns: [\"_time\"])"]);
    // Cut anywhere it is no reason to break down; the library reads every cut, the command some of them.
    let plan = library::plan(INFLUX_SPECIFICATION, Emit::Every, false).unwrap();
    for (i, cut) in (0..INFLUX.len()).step_by(9).enumerate() {
        let cut = folder.file("cut.csv", &INFLUX[..cut]);
        library::read(&plan, &cut, &TableOptions::default());
        if i % 16 > 0 {
            continue;
        }
        let said = rondel(["check", "-q", "--on-error", "skip", "-f", "temp < 50", "--topics", "cpu", &cut]);
        assert!(matches!(said.status, Some(0..=4)), "{}", said.stderr);
    }
}

/// Rows without a time count as lines of JSON do.
#[test]
fn rows_without_a_time_count_as_lines_do() {
    let folder = Folder::new();
    let check = |spec: &str, more: &[&str]| {
        rondel([&["check", "-q", "--format", "json", "-e", "every", spec], more].concat())
    };
    let spec = folder.file(
        "t.rondel",
        "topic t { x: int }\ntopic u { x: int }\nproperty fresh = once on(t) -> age(t) < 5 s\nproperty small = t.x < 9\n",
    );
    let steps = folder.file("s.rondel", "topic t { x: int }\nproperty small = t.x < 9\n");
    for (times, status) in
        [(&["", "", ""][..], 4), (&["", "1", ""], 0), (&["1", "", "2"], 0), (&["1", "2", "3"], 0)]
    {
        let (mut table, mut lines) = ("time,topic,x\n".to_owned(), String::new());
        for time in times {
            table += &format!("{time},t,1\n");
            let time = if time.is_empty() { String::new() } else { format!("\"time\":{time},") };
            lines += &format!("{{{time}\"topic\":\"t\",\"x\":1}}\n");
        }
        let (table, lines) = (folder.file("a.csv", table), folder.file("a.jsonl", lines));
        for spec in [&spec, &steps] {
            let (rows, expected) = (check(spec, &[&table]), check(spec, &[&lines]));
            assert_eq!(rows.stdout, expected.stdout, "{times:?}");
            assert_eq!(rows.stderr.replace(".csv", ".jsonl"), expected.stderr, "{times:?}");
            rows.expect_status(if *spec == steps { 0 } else { status });
        }
    }
    // One topic of two never has its time.
    let table = folder.file("b.csv", "time,topic,x\n1,u,1\n,t,1\n2,u,1\n");
    check(&spec, &[&table]).expect_status(4).expect_stderr(&["every message on t (1) came without a time"]);
    // A date without a time of day, and the other way round.
    for (row, lacking, there) in [(",11:00,2", "date", "time"), ("2026-11-22,,2", "time", "date")] {
        let table = folder.file("t.csv", format!("date,time,x\n2026-11-22,10:00,1\n{row}\n,,3\n"));
        let said =
            format!("t.csv:3: the cell in column `{lacking}` is empty, and that in column `{there}` is not");
        check(&steps, &[&table]).expect_status(3).expect_stderr(&[&said]);
        let skipped = rondel(["check", "--on-error", "skip", "--summary", "json", &steps, &table]);
        skipped.expect_stderr(&["\"skipped\":1", "\"events\":2"]);
    }
}

/// Options that no recording heeds are wrong usage.
#[test]
fn options_of_tables_need_one() {
    let folder = Folder::new();
    let lines = folder.file("a.jsonl", "{\"time\":1,\"topic\":\"t\",\"x\":1}\n");
    let table = folder.file("t.csv", "time,x\n0,1\n1,2\n");
    let check = |more: &[&str]| rondel([&["check", "-q", "-f", "x < 5"], more].concat());
    for option in [["--columns", "time,x"], ["--time-format", "%H:%M"], ["--topic", "t"]] {
        let said = format!("{} is for tables (.csv, .tsv, .parquet)", option[0]);
        check(&[&option[..], &[&lines]].concat()).expect_status(2).expect_stderr(&[&said]);
        if option[0] != "--topic" {
            for command in ["topics", "init", "replay"] {
                rondel([&[command, &lines], &option[..]].concat()).expect_status(2).expect_stderr(&[&said]);
            }
            rondel([&["topics", "zenoh:x"], &option[..]].concat()).expect_status(2).expect_stderr(&[&said]);
        }
    }
    // The other one needs it.
    check(&["--topic", "t", &lines, &table]).expect_status(0);
    let said = "no column has the name \"nope\" that --time-field says; there are \"time\", \"x\"";
    for (command, field) in [("topics", "nope"), ("replay", "time,nope"), ("init", "nope")] {
        rondel([command, &table, "--time-field", field]).expect_status(2).expect_stderr(&[said]);
    }
    check(&["--time-field", "nope", &table]).expect_status(2).expect_stderr(&[said]);
    let other = folder.file("o.csv", "nope,x\n0,1\n1,2\n");
    check(&["--time-field", "nope", &table, &other]).expect_status(3).expect_stderr(&[said]);
}

/// Errors in a table are reported with the way out.
#[test]
fn mistakes_name_the_way_out() {
    let folder = Folder::new();
    let influx = "_time,_measurement,_field,_value\n2026-01-01T00:00:00Z,,x,1\n2026-01-01T00:00:01Z,m,x,1\n";
    let topic = |column: &str| {
        format!(
            "table.csv:2: the cell in column `{column}`, which names the topic, is empty; --topic names that"
        )
    };
    for (table, options, said) in [
        ("time,x\n1700000000000,1\n", &["--time-unit", "s"][..], "say --time-unit ms, or end".to_owned()),
        ("time_ms,x\n1700000000000000,1\n", &[], "end the name of the column in `_us`".to_owned()),
        ("time;x\n1700000000000000000,5;1\n", &["--time-unit", "us"], "say --time-unit ns".to_owned()),
        (
            "time,x\n1e99,1\n",
            &["--time-unit", "s"],
            "table.csv:2: \"1e99\" in column `time` is no time".to_owned(),
        ),
        ("time,topic,x\n0,,1\n1,m,1\n", &[], topic("topic")),
        (influx, &[], topic("_measurement")),
    ] {
        check(&folder, table, options).expect_status(3).expect_stderr(&[&said]);
    }
    check(&folder, influx, &["--topic", "m"]).expect_status(0);
    for format in ["%Y", "%d.%m.", "%M:%S"] {
        let said = check(&folder, "time,x\n2026,1\n", &["--time-format", format]);
        said.expect_status(2).expect_stderr(&["--time-format", "it gives no time: that is a date"]);
    }
    // A decimal comma stands for the point of a format.
    let expected = check(&folder, "time,x\n2026-11-22T18:16:04.5Z,1\n2026-11-22T18:16:05Z,9\n", &[]);
    for separator in [";", "\t"] {
        let rows =
            format!("time{separator}x\n22.11.2026 18:16:04,5{separator}1\n22.11.2026 18:16:05{separator}9\n");
        let said = check(&folder, &rows, &["--time-format", "%d.%m.%Y %H:%M:%S%.f"]);
        assert_eq!(said.stdout, expected.stdout, "{}", said.stderr);
    }
    // Of columns that exclude each other the one is read that is named.
    let table = folder.file("clash.csv", "time,p,p.x\n0,9,1\n1,1,9\n");
    for (formula, verdicts) in [("p < 5", "FT"), ("p.x < 5", "TF")] {
        let said = rondel(["check", "-q", "--format", "json", "-e", "every", "-f", formula, &table]);
        assert_eq!(letters(&said.stdout), verdicts, "{formula} {}", said.stderr);
    }
}
