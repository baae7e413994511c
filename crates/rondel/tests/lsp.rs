//! `rondel lsp`, driven by its protocol over standard input and output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use support::{Finished, Folder, rondel_with_input};

const URI: &str = "file:///a.rondel";

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn opened(text: &str) -> String {
    opened_at(URI, text)
}

fn opened_at(uri: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    framed(&format!(
        r#"{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{{"textDocument":{{"uri":"{uri}","text":{text}}}}}}}"#
    ))
}

fn request(id: u32, method: &str) -> String {
    framed(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"textDocument":{{"uri":"{URI}"}}}}}}"#
    ))
}

fn served(input: &str) -> (Finished, Vec<serde_json::Value>) {
    served_with(&[], input)
}

fn served_with(options: &[&str], input: &str) -> (Finished, Vec<serde_json::Value>) {
    let finished = rondel_with_input([&["lsp"], options].concat(), input.as_bytes());
    let mut rest = finished.stdout.as_str();
    let mut messages = Vec::new();
    while let Some(after) = rest.strip_prefix("Content-Length: ") {
        let (length, body) = after.split_once("\r\n\r\n").unwrap();
        let (message, next) = body.split_at(length.parse().unwrap());
        messages.push(serde_json::from_str(message).unwrap());
        rest = next;
    }
    assert_eq!(rest, "");
    (finished, messages)
}

#[test]
fn diagnostics_have_codes_advice_and_places_in_utf_16() {
    let text = "topic a { x: int, t: text }\nproperty p = a.t == \"\u{1f980}\" and a.y > 0\n";
    let (finished, messages) = served(&(request(1, "initialize") + &opened(text)));
    finished.expect_status(0);
    assert_eq!(messages[0]["result"]["capabilities"]["positionEncoding"], "utf-16");
    let shown = messages[1]["params"]["diagnostics"].as_array().unwrap();
    let wrong = shown.iter().find(|d| d["message"].as_str().unwrap().contains("unknown field 'y'")).unwrap();
    assert!(wrong["code"].as_str().unwrap().starts_with('E'), "{wrong}");
    assert_eq!(wrong["range"]["start"]["line"], 1);
    let line = text.lines().nth(1).unwrap();
    let before = line.split("a.y").next().unwrap().encode_utf16().count() as u64;
    let start = wrong["range"]["start"]["character"].as_u64().unwrap();
    assert!((before..=before + 2).contains(&start), "{wrong}");
}

#[test]
fn documents_are_formatted_as_by_fmt() {
    let text = "topic a{x:int}\nproperty p=a.x>0\n";
    let (finished, messages) = served(&(opened(text) + &request(7, "textDocument/formatting")));
    finished.expect_status(0);
    let expected = rondel_with_input(["fmt", "-"], text.as_bytes()).stdout;
    let answer = messages.iter().find(|m| m["id"] == 7).unwrap();
    assert_eq!(answer["result"][0]["newText"], expected.as_str());
    assert_eq!(answer["result"][0]["range"]["end"]["line"], 2);
}

#[test]
fn half_written_texts_are_answered() {
    let text = "topic a \"\u{1f980}\" { x: int, t: text }\nlet l = a.x > 0\nproperty p = once[0 s, 5 s] (l and a.t == \"é\")\n";
    let ends: Vec<usize> = (0..text.len()).filter(|&at| text.is_char_boundary(at)).collect();
    let input: String = ends.iter().map(|&end| opened(&text[..end])).collect();
    let (finished, messages) = served(&input);
    finished.expect_status(0);
    assert_eq!(messages.len(), ends.len());
}

#[test]
fn malformed_input_is_refused() {
    let (finished, messages) = served(&(framed("{") + &request(1, "rondel/unknown")));
    finished.expect_status(0);
    assert_eq!(messages[0]["error"]["code"], -32700);
    assert_eq!(messages[1]["error"]["code"], -32601);
    served("Content-Length: 99999999999\r\n\r\n").0.expect_status(3).expect_stderr(&["99999999999 bytes"]);
    served("hello\r\n\r\n").0.expect_status(3).expect_stderr(&["'hello' is not a header"]);
    let (_, messages) = served(&opened(&" ".repeat((1 << 20) + 1)));
    let shown = &messages[0]["params"]["diagnostics"][0];
    assert!(shown["message"].as_str().unwrap().contains("split this file"), "{shown}");
}

#[test]
fn exit_after_shutdown_is_success() {
    let exit = framed(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    served(&(request(1, "shutdown") + &exit)).0.expect_status(0);
    served(&exit).0.expect_status(1);
}

#[test]
fn imports_are_sought_beside_the_document() {
    let folder = Folder::new();
    folder.file("a b/topics.rondel", "topic a { x: int }\n");
    folder.file("a b/wrong.rondel", "\nlet l = b.x > 0\n");
    let uri = format!("file://{}", folder.path("a b/main.rondel").replace(' ', "%20"));
    let shown = |text: &str| {
        let (finished, messages) = served(&opened_at(&uri, text));
        finished.expect_status(0);
        messages[0]["params"]["diagnostics"].as_array().unwrap().clone()
    };
    assert_eq!(shown("use \"topics.rondel\"\nproperty p = a.x > 0\n"), Vec::<serde_json::Value>::new());
    // Errors in this text are at their place, errors in an imported text at the import.
    let own = shown("use \"topics.rondel\"\nproperty p = a.y > 0\n");
    assert_eq!((own.len(), &own[0]["range"]["start"]["line"]), (1, &serde_json::json!(1)), "{own:?}");
    let other =
        shown("// \u{1f980}\nuse \"topics.rondel\"\nuse \"wrong.rondel\"\nproperty p = l and a.x > 0\n");
    let first = &other[0];
    assert_eq!(first["range"]["start"]["line"], 1, "{other:?}");
    assert!(first["message"].as_str().unwrap().contains("wrong.rondel, line 2, column 9: "), "{other:?}");
    let missing = shown("use \"away.rondel\"\nproperty p = a.x > 0\n");
    assert_eq!((&missing[0]["code"], &missing[0]["range"]["start"]["line"]), (&"E0113".into(), &0.into()));
    // A document that is no file cannot import.
    let (_, messages) = served(&opened_at("untitled:1", "use \"topics.rondel\"\n"));
    assert_eq!(messages[0]["params"]["diagnostics"][0]["code"], "E0113");
}

/// The answer to one request about the text, at the place of the `|` in it.
fn answered(method: &str, text: &str, more: &str) -> serde_json::Value {
    answered_at(URI, method, text, more)
}

fn answered_at(uri: &str, method: &str, text: &str, more: &str) -> serde_json::Value {
    answered_with(&[], uri, method, text, more)
}

fn answered_with(options: &[&str], uri: &str, method: &str, text: &str, more: &str) -> serde_json::Value {
    let at = text.find('|').unwrap();
    let (before, behind) = (&text[..at], &text[at + 1..]);
    let line = before.matches('\n').count();
    let character = before.rsplit('\n').next().unwrap().encode_utf16().count();
    let request = framed(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"textDocument/{method}","params":{{"textDocument":{{"uri":"{uri}"}},"position":{{"line":{line},"character":{character}}}{more}}}}}"#
    ));
    let (finished, messages) =
        served_with(options, &(opened_at(uri, &format!("{before}{behind}")) + &request));
    finished.expect_status(0);
    messages.into_iter().find(|message| message["id"] == 1).unwrap()
}

fn hovered(text: &str) -> String {
    hovered_with(&[], text)
}

fn hovered_with(options: &[&str], text: &str) -> String {
    let answer = answered_with(options, URI, "hover", text, "");
    answer["result"]["contents"]["value"].as_str().unwrap_or("").to_owned()
}

#[test]
fn names_and_words_are_explained() {
    let text = "topic a \"\u{1f980}\" { x: int }\n# Small.\nlet low = a.x < 3\nproperty p = once[0, 2 s] low and sqrt(a.x) < 2\n";
    let at = |word: &str, last: bool| {
        let at = if last { text.rfind(word) } else { text.find(word) }.unwrap();
        hovered(&format!("{}|{}", &text[..at], &text[at..]))
    };
    assert_eq!(at("low and", true), "```rondel\nlet low = a.x < 3\n```\n\nSmall.");
    assert_eq!(at("x) <", true), "```rondel\na.x: int\n```");
    assert!(at("once", false).contains("looking back"), "{}", at("once", false));
    assert_eq!(at("sqrt", false), "`sqrt(x)`: square root");
    assert_eq!(at("3\n", false), "");
}

#[test]
fn declarations_and_uses_are_found_across_files() {
    let folder = Folder::new();
    folder.file("topics.rondel", "# The gear.\ntopic gear { report: int }\nlet moves = gear.report > 1\n");
    let uri = format!("file://{}", folder.path("main.rondel"));
    let text = "use \"topics.rondel\"\nproperty p = mo|ves and gear.report > 1\n";
    let found = answered_at(&uri, "definition", text, "")["result"].clone();
    assert!(found["uri"].as_str().unwrap().ends_with("/topics.rondel"), "{found}");
    assert_eq!(found["range"]["start"], serde_json::json!({ "line": 2, "character": 4 }));
    let found = answered_at(&uri, "hover", text, "")["result"]["contents"]["value"].clone();
    assert!(found.as_str().unwrap().ends_with("topics.rondel, line 3"), "{found}");
    let all =
        answered_at(&uri, "references", &text.replace("mo|ves", "moves").replace("gear.", "ge|ar."), "");
    let lines: Vec<&serde_json::Value> =
        all["result"].as_array().unwrap().iter().map(|place| &place["range"]["start"]["line"]).collect();
    assert_eq!(lines, [1, 2, 1]);
    // A declaration of another file is renamed there.
    let refused = answered_at(&uri, "rename", text, r#","newName":"m""#);
    assert!(refused["error"]["message"].as_str().unwrap().contains("line 3: rename it there"), "{refused}");
}

#[test]
fn imports_with_a_name_are_followed() {
    let folder = Folder::new();
    let imported = "# The gear.\ntopic gear { report: int }\nlet moves = gear.report > 1\nmachine m { initial off off -> on when moves }\n";
    folder.file("limits.rondel", imported);
    let uri = format!("file://{}", folder.path("main.rondel"));
    let text = "use \"limits.rondel\" as limits\nlet low = limits.moves\nproperty p = limits.mo|ves and low and limits.gear.report > 1\n";
    let found = answered_at(&uri, "definition", text, "")["result"].clone();
    assert!(found["uri"].as_str().unwrap().ends_with("/limits.rondel"), "{found}");
    assert_eq!(found["range"]["start"], serde_json::json!({ "line": 2, "character": 4 }));
    let refused = answered_at(&uri, "rename", text, r#","newName":"m""#);
    assert!(refused["error"]["message"].as_str().unwrap().contains("line 3: rename it there"), "{refused}");
    // It gets another name where it is declared, and an import in the file that names it.
    let own = imported.replace("moves =", "mo|ves =");
    let renamed = answered("rename", &own, r#","newName":"drives""#);
    assert_eq!(renamed["result"]["changes"][URI].as_array().unwrap().len(), 2, "{renamed}");
    let alias = text.replace("mo|ves", "moves").replace("as limits", "as li|mits");
    let edits = answered_at(&uri, "rename", &alias, r#","newName":"l""#)["result"]["changes"][&uri].clone();
    let places: Vec<(u64, u64, u64)> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| (&edit["range"]["start"], &edit["range"]["end"]["character"]))
        .map(|(start, end)| {
            (start["line"].as_u64().unwrap(), start["character"].as_u64().unwrap(), end.as_u64().unwrap())
        })
        .collect();
    assert_eq!(places, [(0, 23, 29), (1, 10, 16), (2, 13, 19), (2, 38, 44)]);
    for (name, reason) in [("low", "declared twice"), ("a.b", "cannot be a name")] {
        let answer = answered_at(&uri, "rename", &alias, &format!(r#","newName":"{name}""#));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{name}: {answer}");
    }
    let offered = |tail: &str| -> Vec<String> {
        let text = format!("use \"limits.rondel\" as limits\nproperty p = {tail}\n");
        let answer = answered_at(&uri, "completion", &text, "");
        let items = answer["result"].as_array().unwrap();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(offered("limits.|"), ["gear", "m", "moves"]);
    assert_eq!(offered("limits.gear.|"), ["report"]);
    assert_eq!(offered("in(limits.m, |"), ["off", "on"]);
    let names = offered("l|");
    assert!(names.contains(&"limits".to_owned()) && !names.contains(&"moves".to_owned()), "{names:?}");
}

#[test]
fn renaming_keeps_every_meaning() {
    let text = "topic a \"/a\" { x: int }\nlet low = a.x < 3\nlet high = a.x > 5\nproperty p for each i in a.x = lo|w and i > 1\n";
    let renamed = |text: &str, name: &str| answered("rename", text, &format!(r#","newName":"{name}""#));
    let edits = renamed(text, "small")["result"]["changes"][URI].clone();
    let places: Vec<(u64, u64)> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| &edit["range"]["start"])
        .map(|start| (start["line"].as_u64().unwrap(), start["character"].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [(1, 4), (3, 31)]);
    for (name, reason) in [
        ("high", "declared twice"),
        ("i", "already means something"),
        ("a b", "cannot be a name"),
        ("once", "cannot be a name"),
        ("", "cannot be a name"),
    ] {
        let answer = renamed(text, name);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(reason), "{name}: {answer}");
    }
    let at = |from: &str, to: &str| renamed(&text.replace("lo|w", "low").replacen(from, to, 1), "other");
    assert!(at("x: int", "|x: int")["error"]["message"].as_str().unwrap().contains("messages name"));
    assert!(at("let", "|let")["error"]["message"].as_str().unwrap().contains("no name"));
    assert_eq!(at("topic a", "topic |a")["result"]["changes"][URI].as_array().unwrap().len(), 4);
    // Parameters of definitions, also before arguments.
    let call =
        "topic a \"/a\" { x: int }\nlet near(v: int, d: int) = a.x - v < |d\nproperty p = near(1, d: 2)\n";
    assert_eq!(renamed(call, "far")["result"]["changes"][URI].as_array().unwrap().len(), 3);
    assert!(renamed(call, "v")["error"]["message"].is_string());
    // Its name is where it is sought.
    let bare = text.replace("lo|w", "low").replace("a \"/a\"", "|a");
    let answer = answered("prepareRename", &bare, "");
    assert!(answer["error"]["message"].as_str().unwrap().contains("`topic a \"a\"`"), "{answer}");
}

#[test]
fn recordings_show_the_values_of_topics_and_fields() {
    let folder = Folder::new();
    let line = |robot: &str, x: f64| {
        format!(
            "{{\"topic\":\"/fleet/{robot}/pose\",\"time\":0,\"data\":{{\"x\":{x},\"at\":{{\"mode\":\"dock\"}}}}}}\n"
        )
    };
    let text = [line("r1", 1.5), line("r2", -3.0), line("r2", 2.25)].concat();
    let drive = folder.file("drive.jsonl", text + "{\"topic\":\"/other\",\"time\":1,\"data\":{\"x\":9}}\n");
    let spec = "topic pose \"fleet/{robot}/pose\" { x: float, at: { mode: string, y: float } }\n\
        property p = pose.x < 3 and pose.at.mode == \"a\" and pose.at.y > 0 and pose.robot == \"r1\"\n";
    let with = ["--recording", &drive];
    let at = |from: &str, to: &str| hovered_with(&with, &spec.replacen(from, to, 1));
    for (from, to, expected) in [
        ("topic pose", "topic |pose", "`drive.jsonl`: 3 messages on 2 topics"),
        ("pose.x <", "pose.|x <", "`drive.jsonl`: in 3 messages, from -3 to 2.25, last `2.25`"),
        ("at.mode ==", "at.mo|de ==", "`drive.jsonl`: in 3 messages, last `\"dock\"`"),
        ("at.y >", "at.|y >", "`drive.jsonl`: in none of 3 messages"),
    ] {
        let shown = at(from, to);
        assert!(shown.contains(expected), "{to}: {shown}");
    }
    let part = |level: u32| format!("{{\"level\":{level},\"bits\":[1,{level}]}}");
    let parts = format!("{{\"topic\":\"state\",\"time\":0,\"parts\":[{},{}]}}\n", part(2), part(7));
    let parts = folder.file("parts.jsonl", parts);
    let spec_of_parts = "topic state { parts: [{ level: int, bits: [int] }] }\n\
        property q = any p in state.parts: p.level > 3\n";
    for (from, to, expected) in [
        ("p.level", "p.|level", "in 2 elements, of the first 16 of each array, from 2 to 7, last `7`"),
        ("state.parts", "state.|parts", "in 1 message"),
        ("bits: [int]", "b|its: [int]", "in 2 elements"),
    ] {
        let shown = hovered_with(&["--recording", &parts], &spec_of_parts.replacen(from, to, 1));
        assert!(shown.contains(expected), "{to}: {shown}");
    }
    let other = hovered_with(&with, "topic |lidar { x: float }\nproperty p = lidar.x < 3\n");
    assert!(other.contains("`drive.jsonl`: the topic never came"), "{other}");
    // Without a recording, or with one that cannot be read, the rest is shown.
    assert!(!hovered(&spec.replacen("pose.x <", "pose.|x <", 1)).contains("jsonl"));
    let missing = folder.path("none.mcap");
    let shown = hovered_with(&["--recording", &missing], &spec.replacen("pose.x <", "pose.|x <", 1));
    assert!(shown.contains("pose.x: float") && shown.contains("`none.mcap`: cannot be read"), "{shown}");
    // The field in the name of the topic.
    let shown = at("pose.robot", "pose.|robot");
    assert!(shown.contains("`drive.jsonl`: in the names of topics, `r1`, `r2`"), "{shown}");
}

#[test]
fn properties_show_how_they_are_evaluated() {
    let shown = hovered("topic a { x: int }\nproperty |p = once[0, 60] a.x > 3\n");
    for part in ["looks back    60 steps", "never: every verdict is certain at once", "memory"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A property that is wrong has no plan.
    let shown = hovered("topic a { x: int }\nproperty |p = once[0, 60] a.y > 3\n");
    assert!(shown.contains("property p") && !shown.contains("looks back"), "{shown}");
}

#[test]
fn tests_have_a_lens_with_their_result() {
    let text = "topic a { x: int }\nproperty p = a.x < 3\n\
        test \"good\" { at 0 s a { x: 1 } expect p satisfied }\n\n\
        test \"bad\" { at 0 s a { x: 1 } expect p violated at 0 s expect p violated }\n";
    let lenses = |text: &str| {
        let (finished, messages) = served(&(opened(text) + &request(4, "textDocument/codeLens")));
        finished.expect_status(0);
        messages.iter().find(|message| message["id"] == 4).unwrap()["result"].clone()
    };
    let shown: Vec<(u64, String)> = lenses(text)
        .as_array()
        .unwrap()
        .iter()
        .map(|lens| {
            let title = lens["command"]["title"].as_str().unwrap().to_owned();
            (lens["range"]["start"]["line"].as_u64().unwrap(), title)
        })
        .collect();
    let failed = "failed: expected p violated at 0 s, and 1 more";
    assert_eq!(shown, [(2, "passed".to_owned()), (4, failed.to_owned())]);
    assert_eq!(lenses(&text.replace("a.x < 3", "a.y < 3")), serde_json::json!([]));
}

#[test]
fn completion_offers_members_and_words() {
    let labels = |text: &str| -> Vec<String> {
        let answer = answered("completion", text, "");
        let items = answer["result"].as_array().unwrap();
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    let head = "topic pose { id: int, at: { x: float, y: float } }\nlet near = pose.at.x < 1\nmachine m { initial off off -> on when near }\n";
    let offered = |tail: &str| labels(&format!("{head}{tail}"));
    assert_eq!(offered("property p = pose.|"), ["id", "at"]);
    assert_eq!(offered("property p = near and pose.at.x|"), ["x", "y"]);
    assert_eq!(offered("property p = in(m, |"), ["off", "on"]);
    assert!(offered("@|").contains(&"time".to_owned()));
    let causes = offered("property q = near\n@because_of(|) property r = near\n");
    assert_eq!(causes, ["q", "r", "m"]);
    assert_eq!(labels("use std.|\n"), ["patterns"]);
    assert_eq!(offered("# a comment |"), Vec::<String>::new());
    let local = offered("property p for each robot in pose.id = near and |\nproperty q = near\n");
    assert!(local.contains(&"robot".to_owned()) && !local.contains(&"off".to_owned()), "{local:?}");
    let other = offered("property p for each robot in pose.id = near\nproperty q = near and |\n");
    assert!(!other.contains(&"robot".to_owned()), "{other:?}");
    let names = offered("property p = ne|");
    for name in ["pose", "near", "once", "sqrt", "since", "hysteresis"] {
        assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
    assert!(!names.contains(&"property".to_owned()) && offered("pro|").contains(&"property".to_owned()));
    // The fields of message types that Rondel knows.
    let typed = labels("topic s \"/s\" : sensor_msgs/msg/LaserScan\nproperty p = s.|\n");
    assert!(typed.contains(&"ranges".to_owned()), "{typed:?}");
}

#[test]
fn the_declarations_of_a_document_are_listed() {
    let text = "|topic a { x: int }\n@severity(high)\nproperty p = a.x < 3\nmachine m { initial off off -> on when a.x > 1 }\ntest \"t\" { at 0 s a { x: 1 } expect p satisfied }\n";
    let answer = answered("documentSymbol", text, "");
    let shown: Vec<(String, usize)> = answer["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["name"].as_str().unwrap().to_owned(), node["children"].as_array().unwrap().len()))
        .collect();
    let expected = [("a", 1), ("p", 0), ("m", 2), ("t", 0)];
    assert_eq!(shown, expected.map(|(name, count)| (name.to_owned(), count)));
    assert_eq!(answer["result"][1]["range"]["start"]["line"], 1);
    assert_eq!(answer["result"][1]["selectionRange"]["start"]["line"], 2);
}

#[test]
fn impossible_requests_are_errors() {
    let (_, messages) = served(&request(1, "textDocument/hover"));
    assert!(messages[0]["error"]["message"].as_str().unwrap().contains("is not open"), "{messages:?}");
    assert_eq!(answered_at("file:///a.rye", "hover", "{x |> 1}", "")["result"], serde_json::Value::Null);
    // Any position of any half of a text.
    let text = "topic a { x: int }\nlet f(n: int) = a.x > n\nproperty p = once[0, 5 s] f(2)\n";
    let mut input = String::new();
    for end in (0..=text.len()).step_by(7) {
        input += &opened(&text[..end]);
        for (line, character) in [(0, 6), (1, 20), (2, 28), (9, 9)] {
            for method in ["hover", "completion", "definition", "references", "documentHighlight", "rename"] {
                input += &framed(&format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"textDocument/{method}","params":{{"textDocument":{{"uri":"{URI}"}},"position":{{"line":{line},"character":{character}}},"newName":"z"}}}}"#
                ));
            }
        }
    }
    served(&input).0.expect_status(0);
}
