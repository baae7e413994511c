//! The playground of the page, whose checks are processes of their own.

use serde_json::{Value, json};

use crate::support::{Folder, rondel, start_rondel};
use crate::{Answer, SPECIFICATION, TRACE, get, page_address, request, schema};

/// Checks a text in the playground of a page.
fn attempt(address: &str, body: &Value) -> Answer {
    request(address, "POST", "/api/v1/playground", &["Content-Type: application/json"], &body.to_string())
}

/// Saves a text to the file of the playground.
fn save(address: &str, text: &str) -> Answer {
    let body = json!({"specification": text}).to_string();
    request(address, "POST", "/api/v1/playground/file", &["Content-Type: application/json"], &body)
}

#[test]
fn playground_checks_the_recording_and_the_examples() {
    let folder = Folder::new();
    let (topic, properties) = SPECIFICATION.split_once('\n').unwrap();
    folder.file("topics.rondel", topic);
    let own = format!("use \"topics.rondel\"\n{properties}");
    let (spec, trace) = (folder.file("p.rondel", &own), folder.file("t.jsonl", TRACE));
    let target = folder.file("saved.rondel", "before");
    let mut check = start_rondel(["check", "-q", "--page=127.0.0.1:0", "--save-to", &target, &spec, &trace]);
    let address = page_address(&mut check);
    let api = schema::Api::new();
    let playground = get(&address, "/api/v1/playground").json();
    api.check("get", "/api/v1/playground", &playground);
    assert_eq!(playground["recordings"], json!([trace]));
    assert_eq!(get(&address, "/api/v1/state").json()["has_playground"], json!(true));
    let answer = attempt(&address, &json!({"specification": own, "recording": trace}));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let result = answer.json();
    api.check("post", "/api/v1/playground", &result);
    assert_eq!((&result["diagnostics"], &result["error"]), (&json!([]), &Value::Null), "{result}");
    let shut = &result["properties"][0];
    assert_eq!((&shut["name"], &shut["outcome"]), (&json!("shut"), &json!("violated")));
    assert_ne!(shut["timeline"]["times"], json!([]));
    assert_ne!(shut["violations"][0]["evidence"], json!([]));
    assert!(
        result["signals"].as_array().unwrap().iter().any(|signal| signal["kind"] == "boolean"),
        "{result}"
    );
    // Errors have their places; files that the specification does not import are not read.
    let result = attempt(
        &address,
        &json!({"specification": "topic a { x: int }\nproperty p = a.y > 0", "recording": trace}),
    );
    assert_eq!(result.json()["diagnostics"][0]["line"], json!(2), "{}", result.body);
    api.check("post", "/api/v1/playground", &result.json());
    let mut said = Vec::new();
    for file in ["/etc/passwd", "/etc/missing", "t.jsonl"] {
        let text = format!("use \"{file}\"\nproperty p = true");
        let result = attempt(&address, &json!({"specification": text, "recording": trace})).json();
        let message = result["diagnostics"][0]["message"].as_str().unwrap().replace(file, "FILE");
        said.push(message);
    }
    assert!(said.iter().all(|other| *other == said[0]) && said[0].contains("imports already"), "{said:?}");
    for example in playground["examples"].as_array().unwrap() {
        let body = json!({"specification": example["specification"], "messages": example["messages"]});
        let result = attempt(&address, &body).json();
        api.check("post", "/api/v1/playground", &result);
        assert_eq!(result["properties"][0]["outcome"], "violated", "{result}");
    }
    let result = attempt(&address, &json!({"specification": SPECIFICATION, "messages": "no JSON\n"})).json();
    assert!(result["error"].as_str().is_some_and(|error| error.contains(":1:1:")), "{result}");
    let saved = save(&address, "after");
    assert_eq!(saved.status, 200, "{}", saved.body);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "after");
    check.terminate();
    check.finish().expect_status(1);
}

#[test]
fn saved_text_imports_no_further_files() {
    let folder = Folder::new();
    let (topic, properties) = SPECIFICATION.split_once('\n').unwrap();
    let topics = folder.file("topics.rondel", topic);
    folder.file("secret.rondel", "password");
    let own = format!("use \"topics.rondel\"\n{properties}");
    let (spec, trace) = (folder.file("p.rondel", &own), folder.file("t.jsonl", TRACE));
    let other = "use \"secret.rondel\"\nproperty p = true";
    // The specification, and a file that it imports.
    for target in [&spec, &topics] {
        let mut check =
            start_rondel(["check", "-q", "--page=127.0.0.1:0", "--save-to", target, &spec, &trace]);
        let address = page_address(&mut check);
        let before = std::fs::read_to_string(target).unwrap();
        assert_eq!(save(&address, other).status, 200);
        assert_eq!(std::fs::read_to_string(target).unwrap(), other);
        for text in [other, own.as_str()] {
            let result = attempt(&address, &json!({"specification": text, "recording": trace}));
            let (is_refused, body) = (result.body.contains("imports already"), &result.body);
            // Its own imports are read as before.
            assert_eq!(is_refused, text == other || *target == topics, "{target} {text}: {body}");
            assert!(!body.contains("password"), "{target} {text}: {body}");
        }
        assert_eq!(save(&address, &before).status, 200);
        let result = attempt(&address, &json!({"specification": own, "recording": trace})).json();
        assert_eq!(result["diagnostics"], json!([]), "{result}");
        check.terminate();
        check.finish().expect_status(1);
    }
}

#[test]
fn playground_writes_no_snapshot() {
    let folder = Folder::new();
    // The obligation is open at the end of the recording.
    let later = "topic door { id: string, open: bool }\n\
                 property shut = door.open -> eventually[0, 10 s] not door.open\n";
    let opened = "{\"topic\":\"door\",\"time\":0,\"data\":{\"id\":\"a\",\"open\":true}}\n";
    let (spec, trace) = (folder.file("p.rondel", later), folder.file("t.jsonl", opened));
    let snapshot = folder.file("state.bin", "");
    std::fs::remove_file(&snapshot).unwrap();
    let mut check =
        start_rondel(["check", "-q", "--page=127.0.0.1:0", "--snapshot-to", &snapshot, &spec, &trace]);
    let address = page_address(&mut check);
    let own = std::fs::read(&snapshot).unwrap();
    for text in [later, SPECIFICATION] {
        let result = attempt(&address, &json!({"specification": text, "recording": trace}));
        assert_eq!(result.status, 200, "{}", result.body);
        let result = result.json();
        assert_eq!((&result["error"], &result["events"]), (&Value::Null, &json!(1)), "{result}");
        assert_eq!(std::fs::read(&snapshot).unwrap(), own, "{text}");
    }
    std::fs::remove_file(&snapshot).unwrap();
    assert_eq!(attempt(&address, &json!({"specification": later, "recording": trace})).status, 200);
    assert!(!std::path::Path::new(&snapshot).exists());
    check.terminate();
    check.finish().expect_status(4);
}

#[test]
fn playground_cuts_a_check_off() {
    let folder = Folder::new();
    let (spec, trace) = (folder.file("p.rondel", SPECIFICATION), folder.file("t.jsonl", TRACE));
    let store = folder.file("verdicts.db", "");
    std::fs::remove_file(&store).unwrap();
    rondel(["check", "-q", "--store", &store, &spec, &trace]).expect_status(1);
    let mut page = start_rondel(["page", &store, "--listen", "127.0.0.1:0", "--recording", &trace]);
    let address = page_address(&mut page);
    let answer = attempt(&address, &json!({"specification": SPECIFICATION, "recording": trace}));
    assert_eq!(answer.json()["properties"][1]["name"], "mine", "{}", answer.body);
    // All triples of the values so far, at every message.
    let endless = "topic a { x: int }\n@unbounded\n@plan(relations)\nproperty p = exists i. exists j. exists k. \
                   once a{x: i} and once a{x: j} and once a{x: k} and i + j + k < 0\n";
    let messages: String =
        (0..3000).map(|i| format!("{{\"topic\":\"a\",\"time\":{i},\"data\":{{\"x\":{i}}}}}\n")).collect();
    let answer = attempt(&address, &json!({"specification": endless, "messages": messages}));
    assert_eq!(answer.status, 422, "{}", answer.body);
    assert!(answer.body.contains("cut off"), "{}", answer.body);
    assert_eq!(get(&address, "/api/v1/overview").status, 200, "the page goes on");
    assert_eq!(save(&address, "").status, 403);
    page.terminate();
    page.finish().expect_status(0);
    rondel(["page", &store, "--recording", "missing.jsonl"])
        .expect_status(3)
        .expect_stderr(&["missing.jsonl"]);
    rondel(["page", &store, "--save-to", "a.rondel"]).expect_status(2).expect_stderr(&["--recording"]);
    let mut run = start_rondel(["check", "-q", "-f", "door.open", "--page=127.0.0.1:0", &trace]);
    let address = page_address(&mut run);
    assert_eq!(get(&address, "/api/v1/playground").status, 403, "a formula is no text to edit");
    run.terminate();
    let _ = run.finish();
}
