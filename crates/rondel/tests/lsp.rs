//! `rondel lsp`, driven by its protocol over standard input and output.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

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

fn asked(id: u32, method: &str) -> String {
    framed(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"textDocument":{{"uri":"{URI}"}}}}}}"#
    ))
}

fn served(input: &str) -> (Finished, Vec<serde_json::Value>) {
    let finished = rondel_with_input(["lsp"], input.as_bytes());
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
    let (finished, messages) = served(&(asked(1, "initialize") + &opened(text)));
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
    let (finished, messages) = served(&(opened(text) + &asked(7, "textDocument/formatting")));
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
    let (finished, messages) = served(&(framed("{") + &asked(1, "rondel/unknown")));
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
    served(&(asked(1, "shutdown") + &exit)).0.expect_status(0);
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
    // What is wrong in this text is in its place, what is wrong in an imported one at the import.
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
