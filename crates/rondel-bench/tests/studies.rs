//! The studies, small: their figures must add up.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // the helper is a test as well

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Runs a study, and returns its single runs.
fn study(name: &str, arguments: &[&str]) -> Vec<Value> {
    // A folder for each test: two of one study run at a time.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("study-{name}{}", arguments.concat()));
    fs::create_dir_all(&folder).unwrap();
    let [out, runs] = ["md", "jsonl"].map(|ending| folder.join(format!("{name}.{ending}")));
    let output = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .arg(name)
        .args(arguments)
        .args([&"--out".into(), &out, &"--runs".into(), &runs])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(fs::read_to_string(out).unwrap().contains("(paper)"));
    let text = fs::read_to_string(runs).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    assert_eq!(head["study"], name);
    assert!(head["machine"]["command"].as_str().unwrap().contains(name), "{head}");
    fill(&folder, name);
    lines.map(|line| line["run"].clone()).collect()
}

/// Runs a program in Python, and returns its standard output.
fn python(arguments: &[&Path]) -> String {
    let output = Command::new("python3").args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fills a copy of the page of the studies with the runs in a folder.
fn fill(folder: &Path, name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = folder.join("studies.md");
    fs::copy(root.join("docs/studies.md"), &page).unwrap();
    python(&[&root.join("bench/studies.py"), folder, &page]);
    let page = fs::read_to_string(page).unwrap();
    let (_, text) = page.split_once(&format!("<!--ours run.{name}-->")).unwrap();
    let (shown, _) = text.split_once("<!--end-->").unwrap();
    assert!(shown.contains(&format!("`rondel-bench {name} ")), "{shown}");
    draw(folder, &root);
}

/// Draws the runs in a folder, if Python has matplotlib: each figure of the page is there, and those of the runs are not
/// empty.
fn draw(folder: &Path, root: &Path) {
    let python = std::env::var_os("RONDEL_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let run = |arguments: &[&std::ffi::OsStr]| {
        Command::new(&python).args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    if !run(&["-c".as_ref(), "import matplotlib".as_ref()]).status.success() {
        eprintln!("skipped: Python has no matplotlib, figures are not drawn");
        return;
    }
    let plots = folder.join("studies");
    let output = run(&[root.join("bench/study_plots.py").as_os_str(), folder.as_os_str(), plots.as_os_str()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(folder.join("studies.md")).unwrap();
    let named = page.split("](studies/").skip(1).filter_map(|rest| rest.split_once(')'));
    for (figure, _) in named {
        let svg = fs::read_to_string(plots.join(figure)).unwrap();
        assert!(svg.contains("<svg"), "{figure}");
    }
    let is_drawn = |entry: fs::DirEntry| {
        fs::read_to_string(entry.path()).is_ok_and(|svg| !svg.contains(">not measured<"))
    };
    assert!(fs::read_dir(&plots).unwrap().any(|entry| is_drawn(entry.unwrap())));
}

/// Whether `rondel` is built: tests of the whole workspace build it; those of this crate alone do not.
fn has_rondel() -> bool {
    let is_built = Path::new(env!("CARGO_BIN_EXE_rondel-bench")).with_file_name("rondel").is_file();
    if !is_built {
        eprintln!("skipped: `rondel` is not built");
    }
    is_built
}

#[test]
fn every_arrangement_reports_the_planted_violations() {
    if !has_rondel() {
        return;
    }
    let arguments = ["--length", "6000", "--copies", "16", "--keys", "5,50", "--repeat", "1"];
    let runs = study("mesa", &arguments);
    assert_eq!(runs.len(), 2 * 5);
    // One planted message, in every copy.
    assert!(runs.iter().all(|run| run["violations"] == 16), "{runs:?}");
    assert!(runs.iter().all(|run| run["peak_bytes"].as_u64() > Some(1_000_000)), "{runs:?}");
}

#[test]
fn an_archive_in_xml_has_the_planted_violations() {
    if !has_rondel() {
        return;
    }
    let arguments = ["--form", "xml", "--length", "6000", "--copies", "16", "--keys", "50", "--repeat", "1"];
    let runs = study("mesa", &arguments);
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| run["violations"] == 16 && run["form"] == "xml"), "{runs:?}");
}

#[test]
fn the_weaker_publisher_takes_over() {
    let arguments = ["--repeat", "2", "--leases", "300ms,600ms"];
    let runs = study("failover", &arguments);
    // A shutdown, and twice a kill and a pause.
    assert_eq!(runs.len(), 2 * 5);
    let ms = |run: &Value, figure: &str| run[figure].as_f64().unwrap();
    assert!(runs.iter().all(|run| ms(run, "take_over_ms") > 0.0 && ms(run, "gap_ms") > 0.0), "{runs:?}");
    let ends: Vec<_> = runs.iter().map(|run| run["end"].as_str().unwrap()).collect();
    assert_eq!(ends[..4], ["shutdown", "shutdown", "kill", "kill"]);
}

#[test]
fn the_standby_takes_over() {
    if !has_rondel() {
        return;
    }
    let arguments = ["--networks", "zenoh", "--repeat", "2", "--leases", "300ms,600ms"];
    let runs = study("standby", &arguments);
    // A shutdown and a handover, and twice a kill and a pause.
    assert_eq!(runs.len(), 2 * 6);
    for run in &runs {
        assert!(run["missing"] == 0 && run["differing"] == 0 && run["messages"].as_u64() > Some(20), "{run}");
        assert!(run["gap_ms"].as_f64() > Some(0.0), "{run}");
        // Signs of life are sent every third of the lease.
        if run["end"] == "kill" && run["lease_ms"] == 600 {
            assert!(run["take_over_ms"].as_f64() > Some(350.0), "{run}");
        }
    }
}

#[test]
fn a_lease_that_no_group_has_is_refused() {
    for lease in ["10ms", "61s", "15500us", "1"] {
        let status = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
            .args(["standby", "--leases", lease])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{lease}");
    }
}

#[test]
fn round_trips_are_measured_beside_datagrams() {
    let arguments = ["--networks", "dds", "--sizes", "0,20000", "--pings", "20", "--repeat", "2"];
    let runs = study("roundtrip", &arguments);
    // Two turns of two sizes, on two ways.
    assert_eq!(runs.len(), 2 * 2 * 2);
    for run in &runs {
        let us = run["us"].as_array().unwrap();
        assert!(us.len() == 20 && us.iter().all(|us| us.as_f64() > Some(0.0)), "{run}");
    }
}

#[test]
fn every_subscriber_of_a_pattern_receives_all() {
    let mut arguments = vec!["--participants", "2,4", "--sizes", "4,64", "--length", "400", "--repeat", "1"];
    arguments.extend(["--aligned", "none"]);
    let runs = study("throughput", &arguments);
    // Three patterns on two networks, with two participants, with four, and with another size.
    assert_eq!(runs.len(), 3 * 2 * 3);
    for run in &runs {
        let all = if run["pattern"] == "S1" && run["participants"] == 4 { 3 * 400 } else { 400 };
        // Three publishers divide the messages.
        let all = if run["pattern"] == "S2" && run["participants"] == 4 { 399 } else { all };
        assert!(run["received"] == all && run["rate"].as_f64() > Some(0.0), "{run}");
    }
}

#[test]
fn a_monitor_receives_all_that_it_aligns() {
    if !has_rondel() {
        return;
    }
    let mut arguments = vec!["--participants", "2", "--sizes", "4", "--length", "600", "--repeat", "1"];
    arguments.extend(["--aligned", "3"]);
    let runs = study("throughput", &arguments);
    let aligned: Vec<&Value> = runs.iter().filter(|run| run["subscriber"].is_string()).collect();
    // Three subscribers on two networks.
    assert_eq!(aligned.len(), 3 * 2);
    assert!(aligned.iter().all(|run| run["received"] == 600 && run["rate"].as_f64() > Some(0.0)), "{runs:?}");
    let late = |run: &Value| run["late"].as_u64().unwrap();
    assert!(aligned.iter().all(|run| run["subscriber"] == "wait" || late(run) == 0), "{runs:?}");
}

#[test]
fn errors_of_clocks_are_simulated_alike() {
    let arguments = ["--errors", "0us,10ms", "--clocks", "3", "--events", "200"];
    let runs = study("clocks", &arguments);
    // One node and two, each with six settings.
    assert_eq!(runs.len(), 2 * 2 * 6);
    let late = |run: &Value| run["late"].as_u64().unwrap();
    assert!(runs.iter().all(|run| run["events"] == 600 && late(run) < 600), "{runs:?}");
    assert!(runs.iter().all(|run| run["setting"] != "markers" || late(run) == 0), "{runs:?}");
    assert_eq!(study("clocks", &arguments), runs);
    let (status, said) = bench(&["clocks", "--errors", "1"], None);
    assert!(status == Some(2) && said.contains("a time such as 10us"), "{said}");
    assert_eq!(bench(&["throughput", "--aligned", "0"], None).0, Some(2));
}

#[test]
fn chains_come_out_with_and_without_a_monitor() {
    if !has_rondel() {
        return;
    }
    let arguments = ["--chains", "1", "--length", "30", "--period", "10ms", "--repeat", "1"];
    let runs = study("chain", &arguments);
    // Two networks.
    assert_eq!(runs.len(), 2 * 2);
    for run in &runs {
        assert_eq!(run["latency_us"].as_array().unwrap().len(), 30, "{run}");
        assert_eq!(run["reaction_us"].as_array().unwrap().len(), 30, "{run}");
        assert_eq!(run["monitor"].is_object(), run["monitored"] == true, "{run}");
    }
    let monitors = runs.iter().filter(|run| run["monitored"] == true);
    let started = monitors.map(|run| run["monitor"]["chains"][0]["started"].as_u64().unwrap());
    assert!(started.min() > Some(29), "{runs:?}");
}

#[test]
fn a_study_without_its_program_fails() {
    let status = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .args(["mesa", "--length", "100", "--keys", "5", "--rondel", "/nonexistent/rondel"])
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
}

/// Runs this crate's program; returns its exit status and its standard error.
fn bench(arguments: &[&str], path: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rondel-bench"));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn containers_need_docker() {
    let arguments = ["chain", "--layouts", "one", "--chains", "1", "--length", "10", "--repeat", "1"];
    let (status, said) = bench(&arguments, Some("/nonexistent"));
    assert!(status == Some(3) && said.contains("error: docker: "), "{said}");
    let (status, said) = bench(&["chain", "--layouts", "two"], None);
    assert!(status == Some(2) && said.contains("bare, one, each"), "{said}");
}

#[test]
fn a_holder_ends_by_itself() {
    assert_eq!(bench(&["peer", "hold", "--seconds", "0"], None), (Some(0), "ready\n".to_owned()));
    assert_eq!(bench(&["peer", "hold"], None).0, Some(2));
}

#[test]
fn half_round_trips_are_those_after_the_first_tenth() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study-half");
    fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("trace.jsonl");
    fs::write(&trace, "{\"time\": 0}\n".repeat(30)).unwrap();
    let trace = trace.to_str().unwrap();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let mut echo = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .args(["peer", "echo", "--topic=zenoh:half/in", "--publish=zenoh:half/out", "--count=20"])
        .args(["--zenoh-mode=router", &format!("--zenoh-listen={endpoint}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let connect = format!("--zenoh-connect={endpoint}");
    let drive = |pings: &str| {
        let mut arguments = vec!["peer", "drive", "--to=zenoh:half/in", "--expect=zenoh:half/out", trace];
        arguments.extend(["--zenoh-mode=client", connect.as_str(), "--pause=1ms", "--pings", pings]);
        bench(&arguments, None)
    };
    // The trace is too short for them.
    let (too_short, reason) = drive("31");
    let (status, said) = drive("20");
    if status != Some(0) {
        echo.kill().unwrap();
    }
    assert!(too_short == Some(1) && reason.contains("messages: 30 instead of 31"), "{reason}");
    let line = said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let counts: Value = serde_json::from_str(line).unwrap();
    assert!(status == Some(0) && counts["sent"] == 20 && counts["received"] == 20, "{said}");
    let us = |figure: &str| counts[figure].as_f64().unwrap();
    assert!(us("half_p50_us") > 0.0 && us("half_p99_us") >= us("half_p50_us"), "{said}");
    // It has as many messages as it expects.
    assert!(echo.wait().unwrap().success());
}

#[test]
fn modes_that_the_kernel_lacks_are_named_in_the_tables() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study-containers");
    fs::create_dir_all(&folder).unwrap();
    let machine = r#"{"study":"containers","machine":{"cpu":"C","cores":2,"kernel":"Linux","load":"0.1","command":"scripts/bench-containers","date":"2026-11-30","commit":"abc"}}"#;
    let run = |run: &str| format!("{{\"study\":\"containers\",\"run\":{{{run}}}}}\n");
    let at = r#""network":"zenoh","mode":"bridge","property":"RecurGLB10""#;
    let counts = r#""sent":10,"received":10,"seconds":0.63"#;
    let text = [
        format!("{machine}\n"),
        run(r#""mode":"ipvlan","available":false"#),
        run(&format!(r#""part":"traces",{at},"participant":"monitor",{counts}"#)),
        run(&format!(
            r#""part":"half",{at},"participant":"echo",{counts},"half_p50_us":20.0,"half_p99_us":30.0"#
        )),
        run(&format!(
            r#""part":"half",{at},"participant":"monitor",{counts},"half_p50_us":21.5,"half_p99_us":30.0"#
        )),
    ];
    let runs = folder.join("containers.jsonl");
    fs::write(&runs, text.concat()).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tables = python(&[&root.join("bench/containers.py"), &runs]);
    let none = "not available on this kernel";
    assert!(tables.contains(&format!("| RecurGLB10 | - | {none} | 0.63 | {none} |")), "{tables}");
    assert!(tables.contains("| Zenoh bridge | 20.0 | - | 3.0 |"), "{tables}");
    let page = folder.join("studies.md");
    fs::copy(root.join("docs/studies.md"), &page).unwrap();
    python(&[&root.join("bench/studies.py"), &folder, &page]);
    let page = fs::read_to_string(page).unwrap();
    for (key, text) in
        [("RecurGLB10.zenoh.bridge", "0.63"), ("zenoh.bridge.adds", "3.0"), ("dds.ipvlan.half", none)]
    {
        assert!(page.contains(&format!("<!--ours containers.{key}-->{text}<!--end-->")), "{key}");
    }
}

#[test]
fn figures_of_alignment_come_from_the_runs() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study-alignment");
    fs::create_dir_all(&folder).unwrap();
    let machine = r#""machine":{"cpu":"C","cores":2,"kernel":"Linux","load":"0.1","command":"rondel-bench order --events 10","date":"2026-11-30","commit":"abc"}"#;
    let of = |setting: &str, count: &str, p50: &str| {
        format!(
            r#"{{"setting":"{setting}","misordered":1,"mixed":{count},"late":{count},"latency_us":[{p50},2e4,3e4]}}"#
        )
    };
    let settings = |p50: &str| {
        [of("arrival", "3", "1"), of("max_wait 5 ms", "4", p50), of("markers", "0", p50)].join(",")
    };
    let cell = |settings: &str| {
        let at = r#""network":"zenoh","period_us":10000.0,"delay_ms":50.0"#;
        format!(r#"{{{at},"events":10,"arrived":10,"instants":10,"settings":[{settings}]}}"#)
    };
    let json = |section: &str, cells: &str| format!(r#"{{{machine},"order":[],"{section}":[{cells}]}}"#);
    fs::write(folder.join("order.json"), json("instants", &cell(&settings("1e3")))).unwrap();
    // Nothing is released with the wait, nor with markers.
    let none = cell(&settings("null")).replace("50.0", "200.0");
    let slow = format!("{},{none}", cell(&settings("5e4")));
    fs::write(folder.join("slow.json"), format!(r#"{{{machine},"order":[{slow}]}}"#)).unwrap();
    let lines = |runs: &[String]| {
        let runs = runs.iter().map(|run| format!("{{\"run\":{{{run}}}}}\n"));
        format!("{{{machine}}}\n{}", runs.collect::<String>())
    };
    let clock = |error: &str, p50: &str| {
        let of =
            r#""publishers":"multi-node","setting":"max_wait 5 ms","events":200,"misordered":1,"late":3"#;
        format!(r#"{of},"error_ms":{error},"delay_ms":[{p50},9.0]"#)
    };
    fs::write(folder.join("clocks.jsonl"), lines(&[clock("0.1", "4.5"), clock("10.0", "null")])).unwrap();
    let aligned = |subscriber: &str, rate: &str, late: &str| {
        let of = r#""network":"dds","publishers":2,"bytes":22,"received":100"#;
        format!(r#"{of},"subscriber":"{subscriber}","rate":{rate},"late":{late}"#)
    };
    let pattern = r#""network":"dds","pattern":"S2","participants":2,"bytes":4,"rate":7.0"#.to_owned();
    let runs =
        [pattern, aligned("plain", "100", "0"), aligned("wait", "40", "1"), aligned("wait", "60", "2")];
    fs::write(folder.join("throughput.jsonl"), lines(&runs)).unwrap();
    fill(&folder, "order");
    let page = fs::read_to_string(folder.join("studies.md")).unwrap();
    for (key, text) in [
        ("instants.zenoh.10000us", "30.00 %"),
        ("instants.zenoh.markers", "0 of 10"),
        ("instants.zenoh.wait", "4 of 10"),
        ("slow.zenoh.50.arrival", "10.0 %"),
        ("slow.zenoh.50.wait", "50.0 %"),
        ("slow.zenoh.50.wait.p50", "50.00"),
        ("slow.zenoh.50.markers", "10.0 %"),
        ("slow.zenoh.50.markers.p99", "20.00"),
        ("slow.zenoh.200.wait.p50", "-"),
        ("clocks.multi-node.0.1.wait5", "0.50 / 1.50 / 4.50 / 9.00"),
        ("clocks.multi-node.10.wait5", "0.50 / 1.50 / - / 9.00"),
        ("throughput.dds.S2.2.4", "7"),
        ("aligned.dds.2.plain", "100"),
        ("aligned.dds.2.wait", "50"),
        ("aligned.dds.2.wait.of-plain", "0.50"),
        ("aligned.dds.2.wait.late", "1.5 %"),
    ] {
        assert!(page.contains(&format!("<!--ours {key}-->{text}<!--end-->")), "{key}");
    }
}

#[test]
fn sections_without_figures_are_listed_with_their_commands() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study-not-run");
    fs::create_dir_all(&folder).unwrap();
    let page = folder.join("studies.md");
    let listed = |contained: &str, aligned: &str| {
        let figure = |key: &str, text: &str| format!("<!--ours {key}-->{text}<!--end-->");
        let text = [
            "Not run: <!--not run-->an earlier list<!--end-->.".to_owned(),
            "## Round trip".to_owned(),
            figure("roundtrip.dds.constant", "3.7"),
            figure("roundtrip.dds.slope", "-"),
            "### In containers".to_owned(),
            figure("run.chain_containers", "not run yet"),
            figure("contained.DDS.1.one.mean", contained),
            "## Fail-over, aligned".to_owned(),
            figure("aligned.dds.2.plain", aligned),
            figure("standby.dds.kill.50.mean", aligned),
        ];
        fs::write(&page, text.join("\n")).unwrap();
        python(&[&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/studies.py"), &folder, &page]);
        let text = fs::read_to_string(&page).unwrap();
        let (_, rest) = text.split_once("Not run: <!--not run-->").unwrap();
        rest.split_once("<!--end-->").unwrap().0.to_owned()
    };
    assert_eq!(listed("7", "8"), "none");
    assert_eq!(listed("-", "8"), "[In containers](#in-containers): `make bench-containers`");
    assert_eq!(
        listed("7", "-"),
        "[Fail-over, aligned](#fail-over-aligned): `scripts/studies throughput`; \
         [Fail-over, aligned](#fail-over-aligned): `scripts/studies standby`"
    );
}
