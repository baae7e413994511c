//! HTML reports.

use serde_json::Value;

use super::support::{Folder, rondel};
use super::{DOOR, Files, SPECIFICATION};

/// The data that stand in an HTML report.
fn embedded(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn html_needs_no_other_file() {
    let files = Files::new();
    let (_, page) = files.report(&["a.jsonl"], "html", &[]);
    for forbidden in ["<link", " src=", "@import", "url(", "https://"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let data = embedded(&page);
    let command = data["command"].as_str().unwrap();
    assert!(command.starts_with("rondel check ") && !command.contains("--report"), "{command}");
    assert_eq!(data["files"][0]["text"].as_str().map(str::trim_end), Some(SPECIFICATION.trim_end()));
    let standstill = &data["recordings"][0]["properties"][0];
    assert_eq!((&standstill["outcome"], &standstill["times"][2]), (&"violated".into(), &4.0.into()));
    let names: Vec<&str> =
        standstill["signals"].as_array().unwrap().iter().filter_map(|own| own["name"].as_str()).collect();
    assert!(names.contains(&"speed.value"), "{names:?}");
    assert!(page.contains("<noscript>") && page.contains("SYS-1"));
    // Equal input is an equal document.
    assert!(files.report(&["a.jsonl"], "html", &[]).1 == page);
}

#[test]
fn several_recordings_are_in_one_document() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    files.0.file("cut.jsonl", format!("{DOOR}{{\"topic\":"));
    let (_, page) = files.report(&["a.jsonl", "b.jsonl", "cut.jsonl", "none.jsonl"], "html", &[]);
    let data = embedded(&page);
    let recordings = data["recordings"].as_array().unwrap();
    let states: Vec<bool> = recordings.iter().map(|own| own["problem"].is_string()).collect();
    assert_eq!(states, [false, false, true, true]);
    assert_eq!((recordings[0]["length"].as_f64(), &recordings[3]["begin"]), (Some(6.5), &Value::Null));
}

/// The numbers of the publisher show that messages are missing.
#[test]
fn reports_show_where_messages_were_missed() {
    let line = |n: u64| {
        let data = serde_json::json!({"v": 1.0, "w": n % 2});
        let origin = serde_json::json!({"publisher": 1, "number": n});
        serde_json::json!({"topic": "t", "time": n, "origin": origin, "data": data}).to_string() + "\n"
    };
    let folder = Folder::new();
    let spec =
        folder.file("s.rondel", "topic t { v: float }\n@time(dense) property p = once[0, 2 s] t.v < 5.0\n");
    let whole = folder.file("whole.jsonl", (0..20).map(line).collect::<String>());
    let gap = folder.file("gap.jsonl", (0..20).filter(|n| !(5..9).contains(n)).map(line).collect::<String>());
    let file = folder.path("report");
    let losses = |recording: &str| {
        rondel(["check", "-q", &format!("--report=json={file}"), &spec, recording]);
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        report["recordings"][0]["losses"].clone()
    };
    assert_eq!(losses(&whole), Value::Null);
    let found = losses(&gap);
    assert_eq!(found[0]["properties"], serde_json::json!(["p"]), "{found}");
    assert_eq!(found[0]["from_ns"], 4_000_000_000_i64, "{found}");
    assert_eq!(found[0]["until_ns"], 9_000_000_000_i64, "{found}");
    rondel(["check", "-q", &format!("--report=html={file}"), &spec, &gap]);
    let data = embedded(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(data["recordings"][0]["losses"][0]["from"], 4.0, "{data}");
}

#[test]
fn the_page_counts_as_the_summary_does() {
    let folder = Folder::new();
    let text =
        "topic odom { x: float }\nproperty slow = odom.x < 10.0\nassert ever slow\nassert always slow\n";
    let spec = folder.file("s.rondel", text);
    let drive = "{\"topic\":\"odom\",\"time\":0,\"x\":5}\n{\"topic\":\"odom\",\"time\":1,\"x\":15}\n\
                 {\"topic\":\"odom\",\"time\":3,\"x\":5}\n";
    let (one, two) = (folder.file("a.jsonl", drive), folder.file("b.jsonl", drive));
    let page = folder.path("r.html");
    let checked =
        rondel(["check", "-e", "violations", "--report", &format!("html={page}"), &spec, &one, &two]);
    checked.expect_status(1);
    assert!(checked.stdout.contains(&format!("{one}: 3 events, 1 violated")), "{}", checked.stdout);
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("</td><td>3</td><td>1</td><td>1</td><td>0</td></tr>").count(), 2, "{page}");
    // Of the property, in two recordings; an assert is violated for no time.
    assert_eq!(
        page.matches("violated for ").count(),
        page.matches("violated for 2 s in all").count(),
        "{page}"
    );
    assert_eq!(page.matches("violated for 2 s in all, for 2 s at most").count(), 2, "{page}");
}
