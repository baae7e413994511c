//! Answers of the API, held against its description.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod schema;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rondel_page::{Kind, Request};
use rondel_sinks::{Entry, Loss, RunKey, Truth};
use serde_json::{Value, json};

use schema::Api;
use support::{
    Folder, MIDNIGHT, NOW, SECOND, TEXT, ask, begin, described, filled, get, open, page, run_page, verdict,
    write,
};

/// A request for every operation that reads.
const READING: [(&str, &str); 20] = [
    ("/api/v1/overview", "/api/v1/overview?width=50&seconds=60"),
    ("/api/v1/overview", "/api/v1/overview?search=BRAK&sort=name&severity=high"),
    ("/api/v1/properties/{property}", "/api/v1/properties/braking"),
    ("/api/v1/properties/{property}", "/api/v1/properties/inside"),
    ("/api/v1/properties/{property}/instances", "/api/v1/properties/inside/instances?sort=newest&limit=2"),
    ("/api/v1/properties/{property}/instances", "/api/v1/properties/quiet/instances"),
    ("/api/v1/properties/{property}/verdicts", "/api/v1/properties/braking/verdicts?width=100"),
    (
        "/api/v1/properties/{property}/verdicts",
        "/api/v1/properties/inside/verdicts?parameters=%7B%22robot%22%3A2%7D",
    ),
    ("/api/v1/properties/{property}/verdicts", "/api/v1/properties/quiet/verdicts"),
    ("/api/v1/properties/{property}/signals", "/api/v1/properties/braking/signals"),
    ("/api/v1/violations", "/api/v1/violations"),
    ("/api/v1/violations", "/api/v1/violations?property=braking&status=ended"),
    ("/api/v1/violations/{id}", "/api/v1/violations/1"),
    ("/api/v1/incidents", "/api/v1/incidents"),
    ("/api/v1/topics", "/api/v1/topics?search=SPE"),
    ("/api/v1/topics/{topic}", "/api/v1/topics/speed"),
    ("/api/v1/topics/{topic}", "/api/v1/topics/pose"),
    ("/api/v1/losses", "/api/v1/losses?limit=1"),
    ("/api/v1/specification", "/api/v1/specification"),
    ("/api/v1/state", "/api/v1/state"),
];

#[test]
fn answers_are_as_described() {
    let (api, folder) = (Api::new(), Folder::new());
    let _sink = filled(&folder.store());
    let (run, _) = run_page(&folder.store());
    let store = page(&folder.store(), Kind::Store, false);
    for (path, target) in READING {
        api.check("get", path, &get(&run, target));
        if !target.starts_with("/api/v1/topics/") {
            api.check("get", path, &get(&store, target));
        }
    }
    api.check("get", "/api/v1/playground", &get(&store, "/api/v1/playground"));
    let tested: Vec<&str> = READING.iter().map(|(path, _)| *path).collect();
    for (method, path) in api.operations() {
        let is_tested = method == "post" || tested.contains(&path.as_str());
        let others = ["/api/v1/events", "/api/v1/openapi.yaml", "/api/v1/playground"];
        assert!(is_tested || others.contains(&path.as_str()), "{method} {path} is not tested");
    }
}

#[test]
fn playground_checks_recordings_and_messages() {
    let (api, folder) = (Api::new(), Folder::new());
    let _sink = filled(&folder.store());
    let store = page(&folder.store(), Kind::Store, false);
    assert_eq!(get(&store, "/api/v1/state")["has_playground"], json!(true));
    let attempt = |body: Value| ask(&store, Request::post("/api/v1/playground", &body.to_string()));
    for (body, checked) in [
        (json!({"specification": "", "recording": "two.mcap"}), "Recording(1)"),
        (json!({"specification": "", "recording": null, "messages": "{}"}), "Messages(\"{}\")"),
    ] {
        let (status, result) = attempt(body);
        assert_eq!((status, &result["error"]), (200, &json!(checked)));
        api.check("post", "/api/v1/playground", &result);
    }
    for (body, expected) in [
        (json!({"specification": "", "recording": "/etc/passwd"}), 404),
        (json!({"specification": "", "recording": 1}), 404),
        (json!({"specification": ""}), 400),
        (json!({"messages": ""}), 400),
        (json!({"specification": "#".repeat(100_001), "recording": "one.jsonl"}), 413),
        (json!({"specification": "", "messages": " ".repeat((1 << 20) + 1)}), 413),
        (json!({"specification": "endless", "recording": "one.jsonl"}), 422),
    ] {
        let (status, answer) = attempt(body);
        assert_eq!(status, expected, "{answer}");
        api.check_named("Error", &answer);
    }
    let save = |text: &str| {
        let body = json!({"specification": text}).to_string();
        ask(&store, Request::post("/api/v1/playground/file", &body))
    };
    let (status, saved) = save("property p = true");
    assert_eq!((status, &saved), (200, &json!({"file": "a.rondel"})));
    api.check("post", "/api/v1/playground/file", &saved);
    assert_eq!(save("full").0, 500);
    assert_eq!(save(&"#".repeat(100_001)).0, 413);
    // A run has none.
    let (run, _) = run_page(&folder.store());
    for path in ["/api/v1/playground", "/api/v1/playground/file"] {
        let body = json!({"specification": "", "recording": "one.jsonl"}).to_string();
        assert_eq!(ask(&run, Request::post(path, &body)).0, 403, "{path}");
    }
}

#[test]
fn checks_of_the_playground_are_rare() {
    let folder = Folder::new();
    let store = page(&folder.store(), Kind::Store, false);
    let body = json!({"specification": "", "recording": "one.jsonl"}).to_string();
    let request =
        Request { host: Some("localhost".to_owned()), ..Request::post("/api/v1/playground", &body) };
    let statuses: Vec<u16> = (0..12).map(|_| store.answer(&request, NOW).status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10, "{statuses:?}");
    assert_eq!(statuses[11], 429);
    assert_eq!(store.answer(&request, NOW + SECOND).status, 200);
}

#[test]
fn overview_counts_sorts_and_filters() {
    let folder = Folder::new();
    let _sink = filled(&folder.store());
    let (page, _) = run_page(&folder.store());
    let overview = get(&page, "/api/v1/overview?width=60&seconds=60");
    assert_eq!(overview["counts"], json!({"satisfied": 0, "violated": 2, "inconclusive": 0, "none": 1}));
    let names: Vec<&str> = overview["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|property| property["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["braking", "inside", "quiet"], "severity, then the property without a verdict");
    let [braking, inside, quiet] = [0_usize, 1, 2].map(|at| &overview["properties"][at]);
    assert_eq!(braking["verdict"], "violated");
    assert_eq!((braking["violations"].as_u64(), braking["worst"].as_f64()), (Some(2), Some(-27.0)));
    assert_eq!(inside["instances"], json!({"total": 3, "satisfied": 1, "violated": 1, "inconclusive": 1}));
    assert_eq!((&quiet["verdict"], &quiet["since"]), (&Value::Null, &Value::Null));
    assert_eq!(quiet["timeline"]["verdicts"], json!([3]));
    // Reached is 70 s, so that the timeline begins at 10 s.
    assert_eq!(braking["timeline"]["verdicts"], json!([1, 0, 1]));
    assert_eq!(overview["reached"], json!((MIDNIGHT / SECOND + 70) as f64));
    for (filter, expected) in [
        ("verdict=violated", 2),
        ("verdict=none", 1),
        ("requirement=SYS-1", 1),
        ("network=mqtt", 0),
        ("search=in", 2),
        ("properties=%5B%22quiet%22%2C%22inside%22%2C%22removed%22%5D", 2),
        ("properties=%5B%5D", 0),
    ] {
        let found = get(&page, &format!("/api/v1/overview?{filter}"));
        assert_eq!(found["total"], json!(expected), "{filter}");
    }
}

#[test]
fn history_shows_violations_and_what_is_unknown() {
    let folder = Folder::new();
    let _sink = filled(&folder.store());
    let store = page(&folder.store(), Kind::Store, false);
    let begin = MIDNIGHT / SECOND;
    let range = format!("from={begin}&until={}&width=100", begin + 100);
    let history = get(&store, &format!("/api/v1/properties/braking/verdicts?{range}"));
    let times: Vec<f64> = [0, 1, 10, 20, 25, 30, 61].iter().map(|at| (begin + at) as f64).collect();
    assert_eq!(history["timeline"], json!({"times": times, "verdicts": [3, 0, 1, 0, 2, 1, 3]}));
    assert_eq!(history["robustness"]["least"][0], json!(2.0));
    assert_eq!(history["losses"].as_array().map(Vec::len), Some(2));
    assert_eq!(history["losses"][1]["is_blind"], json!(true));
    let one =
        get(&store, &format!("/api/v1/properties/inside/verdicts?{range}&parameters=%7B%22robot%22%3A1%7D"));
    assert_eq!(one["timeline"]["verdicts"], json!([3, 0, 3]));
    let all = get(&store, &format!("/api/v1/properties/inside/verdicts?{range}"));
    assert_eq!(all["timeline"]["verdicts"], json!([3, 0, 1, 3]));
}

#[test]
fn loss_without_a_topic_is_one_of_all_topics() {
    let (api, folder) = (Api::new(), Folder::new());
    let mut sink = filled(&folder.store());
    let (run, from) = (RunKey(1 << 96 | 1), MIDNIGHT + 40 * SECOND);
    let loss = Loss { run, reason: "not_received", subject: "", count: 1, from, until: from + SECOND };
    write(&mut sink, &[Entry::Loss(loss)]);
    for served in [page(&folder.store(), Kind::Store, false), run_page(&folder.store()).0] {
        let losses = get(&served, "/api/v1/losses");
        api.check("get", "/api/v1/losses", &losses);
        let blind: Vec<_> =
            losses["losses"].as_array().unwrap().iter().map(|loss| &loss["is_blind"]).collect();
        assert_eq!(blind, [&json!(true), &json!(false), &json!(true)]);
    }
}

#[test]
fn wrong_requests_are_refused() {
    let (api, folder) = (Api::new(), Folder::new());
    let _sink = filled(&folder.store());
    let (run, _) = run_page(&folder.store());
    for (target, expected) in [
        ("/api/v1/properties/other", 404),
        ("/api/v1/properties/%3Cscript%3E", 404),
        ("/api/v1/properties/..%2F..%2Fetc%2Fpasswd/verdicts", 404),
        ("/api/v1/../../etc/passwd", 404),
        ("/api/v1/properties/%ff", 400),
        ("/api/v1/overview?limit=100000", 400),
        ("/api/v1/overview?sort=best", 400),
        ("/api/v1/overview?properties=braking", 400),
        ("/api/v1/overview?properties=%5B1%5D", 400),
        ("/api/v1/properties/braking/verdicts?from=5&until=5", 400),
        ("/api/v1/properties/inside/verdicts?parameters=7", 400),
        ("/api/v1/violations/0", 400),
        ("/api/v1/violations/77", 404),
        ("/api/v1/topics/other", 404),
        ("/api/v1/playground", 403),
        ("/api/v2/overview", 404),
        ("/%61pi/v1/overview", 404),
        ("/etc/passwd", 404),
    ] {
        let (status, answer) = ask(&run, Request::get(target));
        assert_eq!(status, expected, "{target}: {answer}");
        api.check_named("Error", &answer);
    }
    let (status, _) = ask(&run, Request { method: "DELETE".into(), ..Request::get("/api/v1/overview") });
    assert_eq!(status, 405);
}

#[test]
fn operators_act_if_the_page_permits_it() {
    let (api, folder) = (Api::new(), Folder::new());
    let _sink = filled(&folder.store());
    let (run, _) = run_page(&folder.store());
    let readonly = page(&folder.store(), Kind::Store, false);
    let later = NOW / SECOND + 86_400;
    let open = get(&run, "/api/v1/incidents");
    let id = open["incidents"][0]["id"].as_i64().unwrap();
    let path = format!("/api/v1/violations/{id}/acknowledgement");
    let ack = json!({"operator": "ada", "comment": "on it", "until": later}).to_string();
    assert_eq!(ask(&readonly, Request::post(&path, &ack)).0, 403);
    let (status, action) = ask(&run, Request::post(&path, &ack));
    assert_eq!(status, 200, "{action}");
    api.check("post", "/api/v1/violations/{id}/acknowledgement", &action);
    let other = json!({"operator": "bo"}).to_string();
    assert_eq!(ask(&run, Request::post(&path, &other)).0, 409, "another operator takes care of it");
    for (body, expected) in [
        (json!({}), 400),
        (json!({"operator": " "}), 400),
        (json!({"operator": "a\nb"}), 400),
        (json!({"operator": "ada", "until": NOW / SECOND - 86_400}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(ask(&run, Request::post(&path, &body.to_string())).0, expected, "{body}");
    }
    let form = Request { content_type: Some("text/plain".into()), ..Request::post(&path, &ack) };
    assert_eq!(ask(&run, form).0, 415, "a form of another site cannot act");
    let silence =
        json!({"operator": "ada", "property": "inside", "parameters": {"robot": 2}, "until": later});
    let (status, action) = ask(&run, Request::post("/api/v1/silences", &silence.to_string()));
    assert_eq!(status, 200, "{action}");
    api.check("post", "/api/v1/silences", &action);
    let incidents = get(&run, "/api/v1/incidents");
    api.check("get", "/api/v1/incidents", &incidents);
    assert_eq!(incidents["silences"].as_array().map(Vec::len), Some(1));
    assert_eq!(incidents["actions"].as_array().map(Vec::len), Some(2));
    let silenced =
        incidents["incidents"].as_array().unwrap().iter().find(|one| one["property"] == "inside").unwrap();
    assert_eq!(silenced["silenced_until"], json!(later as f64));
    let silence = incidents["silences"][0]["id"].as_i64().unwrap();
    let path = format!("/api/v1/silences/{silence}/end");
    let (status, action) = ask(&run, Request::post(&path, &json!({"operator": "ada"}).to_string()));
    assert_eq!(status, 200, "{action}");
    api.check("post", "/api/v1/silences/{id}/end", &action);
}

#[test]
fn large_messages_are_cut_and_unreadable_ones_explained() {
    let folder = Folder::new();
    let _sink = filled(&folder.store());
    let (run, live) = run_page(&folder.store());
    let speed = get(&run, "/api/v1/topics/speed");
    assert_eq!(speed["message"]["is_cut"], json!(true));
    assert!(speed.to_string().len() < 3000);
    assert!(live.is_watched.load(Ordering::Relaxed), "requests make the run copy messages");
    let pose = get(&run, "/api/v1/topics/pose");
    assert!(pose["message"]["error"].as_str().unwrap().contains("10000000 bytes"));
    assert_eq!(pose["topic"]["age"], json!(0.0), "a clock that is ahead");
    let property = get(&run, "/api/v1/properties/braking");
    let atom = &property["atoms"][0];
    assert_eq!((&atom["name"], &atom["value"]), (&json!("speed.value"), &json!(12.5)));
    assert!(property["text"].as_str().unwrap().starts_with("@severity"));
    assert_eq!(property["definitions"][0]["name"], "fast");
}

#[test]
fn stalled_run_is_reported() {
    let folder = Folder::new();
    let _sink = filled(&folder.store());
    let (run, live) = run_page(&folder.store());
    live.is_stalled.store(true, Ordering::Relaxed);
    assert_eq!(ask(&run, Request::get("/api/v1/topics")).0, 503);
    let state = get(&run, "/api/v1/state");
    assert_eq!(state["is_ready"], json!(false));
    assert_eq!(state["reasons"], json!(["the evaluating thread does not answer"]));
    let behind = get(&run, "/api/v1/state");
    assert!(behind["behind_since"].is_number(), "verdicts in the store may be old: {behind}");
    assert_eq!(get(&run, "/api/v1/overview")["total"], json!(3), "the store answers");
    live.is_stalled.store(false, Ordering::Relaxed);
    let state = get(&run, "/api/v1/state");
    assert_eq!((&state["is_ready"], &state["behind_since"]), (&json!(true), &Value::Null));
}

#[test]
fn run_is_not_ready_while_its_store_is_behind() {
    let (api, folder) = (Api::new(), Folder::new());
    let _sink = filled(&folder.store());
    let (run, live) = run_page(&folder.store());
    let state = get(&run, "/api/v1/state");
    assert_eq!((&state["is_ready"], &state["behind_since"]), (&json!(true), &Value::Null));
    // Figures are used again for half a second.
    let (run, behind) = run_page(&folder.store());
    assert!(!live.is_behind.load(Ordering::Relaxed));
    behind.is_behind.store(true, Ordering::Relaxed);
    let state = get(&run, "/api/v1/state");
    api.check("get", "/api/v1/state", &state);
    assert_eq!(state["is_ready"], json!(false));
    assert_eq!(state["reasons"], json!(["the store v.db is behind"]));
    assert_eq!(state["behind_since"], json!((NOW / SECOND - 1) as f64));
}

#[test]
fn property_that_a_reload_removes_is_unknown() {
    let folder = Folder::new();
    let _sink = filled(&folder.store());
    let (run, _) = run_page(&folder.store());
    get(&run, "/api/v1/properties/quiet");
    let without = TEXT.lines().filter(|line| !line.contains("quiet")).collect::<Vec<_>>().join("\n");
    run.show(described(&without), None);
    for part in ["", "/instances", "/verdicts", "/signals"] {
        let (status, answer) = ask(&run, Request::get(&format!("/api/v1/properties/quiet{part}")));
        assert_eq!(status, 404, "{part}");
        assert!(answer["error"].as_str().unwrap().contains("a reload may have removed it"), "{answer}");
    }
    assert_eq!(get(&run, "/api/v1/overview")["total"], json!(2));
}

#[test]
fn hostile_names_are_data() {
    let folder = Folder::new();
    let mut sink = open(&folder.store());
    const NAME: &str = "<img src=x onerror=alert(1)>/../'; DROP TABLE verdicts; --";
    write(&mut sink, &[begin(1, &[NAME]), verdict(NAME, r#"{"a":"</script>"}"#, Truth::Violated, 5)]);
    let store = page(&folder.store(), Kind::Store, false);
    let path: String = NAME.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let property = get(&store, &format!("/api/v1/properties/{path}"));
    assert_eq!(property["summary"]["name"], NAME);
    let instances = get(&store, &format!("/api/v1/properties/{path}/instances?search=%25"));
    assert_eq!(instances["total"], json!(0), "a percent sign is no pattern");
    let instances = get(&store, &format!("/api/v1/properties/{path}/instances?search=SCRIPT"));
    assert_eq!(instances["total"], json!(1));
}

#[test]
fn store_is_read_while_it_is_written_replaced_or_missing() {
    let folder = Folder::new();
    let store = page(&folder.store(), Kind::Store, false);
    assert_eq!(ask(&store, Request::get("/api/v1/overview")).0, 503, "there is no file yet");
    let mut sink = open(&folder.store());
    assert_eq!(get(&store, "/api/v1/overview")["total"], json!(0), "a store without a run");
    write(&mut sink, &[begin(1, &["p"])]);
    let is_written = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..500 {
                let truth = if at % 2 == 0 { Truth::Violated } else { Truth::Satisfied };
                write(&mut sink, &[verdict("p", "", truth, at)]);
            }
            is_written.store(true, Ordering::Relaxed);
        });
        while !is_written.load(Ordering::Relaxed) {
            get(&store, "/api/v1/violations?limit=1000");
        }
    });
    assert_eq!(get(&store, "/api/v1/violations")["total"], json!(250));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.0.join(format!("verdicts.db{end}")));
    }
    let _other = filled(&folder.store());
    assert_eq!(get(&store, "/api/v1/violations")["total"], json!(3), "the file that has its path now");
}

/// A run that was killed leaves no end: the store has only the time of its last sign.
#[test]
fn run_that_writes_nothing_any_more_may_have_been_killed() {
    let (api, folder) = (Api::new(), Folder::new());
    let sink = filled(&folder.store());
    let state = |last: &str, kind: Kind| {
        let connection = rusqlite::Connection::open(folder.store()).unwrap();
        connection.execute_batch(&format!("UPDATE runs SET reported = {NOW} - {last}")).unwrap();
        get(&page(&folder.store(), kind, false), "/api/v1/state")
    };
    let late = state("90000000000", Kind::Store);
    api.check("get", "/api/v1/state", &late);
    assert_eq!(late["is_ready"], json!(false));
    assert_eq!(late["behind_since"].as_f64(), Some((NOW / SECOND - 90) as f64));
    assert!(late["reasons"][0].as_str().unwrap().contains("may have been killed"), "{late}");
    for (last, kind) in [("30000000000", Kind::Store), ("90000000000", Kind::Check)] {
        assert_eq!(state(last, kind)["behind_since"], Value::Null, "{last} {kind:?}");
    }
    drop(sink);
}

#[test]
fn store_of_an_earlier_release_is_shown() {
    let (api, folder) = (Api::new(), Folder::new());
    let connection = rusqlite::Connection::open(folder.store()).unwrap();
    connection.execute_batch(include_str!("../../../rondel-sinks/src/sqlite/schema.sql")).unwrap();
    let begin = MIDNIGHT + 10 * SECOND;
    connection
        .execute_batch(&format!(
            "INSERT INTO series (id, name, latest) VALUES (1, 'car', {begin});
             INSERT INTO runs (id, key, series, kind, resumes, begin, specification, specification_hash, configuration,
                 configuration_hash, version, host, latest, reported)
                 VALUES (1, x'00000000000000000000000000000001', 1, 'run', 0, 5, '', '', '', '', '', '', {begin}, {begin});
             INSERT INTO properties (id, series, name) VALUES (1, 1, 'p');
             INSERT INTO states (property, parameters, verdict, since, time) VALUES (1, '{{}}', 1, {begin}, {begin});
             INSERT INTO verdicts (seq, id, run, property, parameters, verdict, time, is_after, reported, lap)
                 VALUES (1, x'00000000000000000000000000000009', 1, 1, '{{}}', 1, {begin}, 0, {begin}, 1);
             INSERT INTO violations (id, property, parameters, run, lap, begin, last, count, since, unknown, verdict, recorded)
                 VALUES (1, 1, '{{}}', 1, 1, {begin}, {begin}, 1, {begin}, 0, 1, {begin});
             PRAGMA user_version = 1; PRAGMA application_id = 1382966380;"
        ))
        .unwrap();
    drop(connection);
    let before = std::fs::read(folder.store()).unwrap();
    let store = page(&folder.store(), Kind::Store, false);
    for (path, target) in [
        ("/api/v1/overview", "/api/v1/overview?width=10"),
        ("/api/v1/properties/{property}/verdicts", "/api/v1/properties/p/verdicts"),
        ("/api/v1/violations", "/api/v1/violations"),
        ("/api/v1/incidents", "/api/v1/incidents"),
        ("/api/v1/losses", "/api/v1/losses"),
        ("/api/v1/state", "/api/v1/state"),
    ] {
        api.check("get", path, &get(&store, target));
    }
    assert_eq!(get(&store, "/api/v1/overview")["properties"][0]["verdict"], "violated");
    assert_eq!(std::fs::read(folder.store()).unwrap(), before, "it is not brought up to date");
}
