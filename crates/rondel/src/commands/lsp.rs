//! `rondel lsp`: a language server for specifications, over standard input and output.
//!
//! Requests are answered one after the other, so a request is always answered before its cancellation is read.

mod completion;
mod lenses;
mod protocol;
mod recordings;
mod view;

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::path::PathBuf;

use clap::Args;
use rondel_spec::{Diagnostic, ParseOptions, Severity, Sources, Span};
use serde_json::{Value, json};

use self::protocol::{Lines, MAX_MESSAGE, Received, read, write};
use self::recordings::Recordings;
use self::view::View;
use crate::schemas::Schemas;
use crate::specification::files;
use crate::{complain, exit};

/// Serve editors by the Language Server Protocol: diagnostics, completion, renaming and more
///
/// The editor starts the command and talks to it over standard input and output. The server ends when standard
/// input closes.
#[derive(Debug, Args)]
pub struct Lsp {
    /// Definitions of message types: files, or folders of them
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
    /// A recording whose values are shown beside topics and fields: it is read again when it changes (may be repeated)
    #[arg(long, value_name = "TRACE")]
    recording: Vec<PathBuf>,
}

/// The longest specification that is parsed, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The largest number of open documents.
const MAX_DOCUMENTS: usize = 256;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const REQUEST_FAILED: i64 = -32803;

impl Lsp {
    /// Serves until standard input closes or the editor says `exit`, and returns the exit status.
    pub fn run(self) -> u8 {
        // Recordings add their own.
        let (schemas, recorded) = match (Schemas::read(&self.schemas), Schemas::read(&self.schemas)) {
            (Ok(schemas), Ok(recorded)) => (schemas, recorded),
            (Err(error), _) | (_, Err(error)) => {
                complain(&error);
                return exit::USAGE;
            }
        };
        let recordings = Recordings::open(&self.recording, recorded);
        let mut server = Server { documents: HashMap::new(), schemas, recordings, shut_down: false };
        let mut input = BufReader::new(io::stdin().lock());
        let mut output = io::stdout().lock();
        loop {
            let answers = match read(&mut input) {
                Ok(Received::End) => return exit::SATISFIED,
                Ok(Received::Message(message)) => match server.take(&message) {
                    Some(answers) => answers,
                    None => return if server.shut_down { exit::SATISFIED } else { exit::VIOLATED },
                },
                Ok(Received::Malformed(reason)) => vec![failure(Value::Null, PARSE_ERROR, &reason)],
                Err(error) => {
                    complain(&format!("cannot read messages of the editor: {error}"));
                    return exit::TRACE;
                }
            };
            for answer in answers {
                if let Err(error) = write(&mut output, &answer) {
                    complain(&format!("cannot write to the editor: {error}"));
                    return exit::TRACE;
                }
            }
        }
    }
}

/// The open documents, by URI.
struct Server {
    documents: HashMap<String, String>,
    schemas: Schemas,
    recordings: Recordings,
    shut_down: bool,
}

impl Server {
    /// Handles one message and returns the messages that answer it; `None` after `exit`.
    fn take(&mut self, message: &Value) -> Option<Vec<Value>> {
        let method = message["method"].as_str().unwrap_or("");
        let params = &message["params"];
        let Some(id) = message.get("id") else { return self.notified(method, params) };
        if method.is_empty() {
            // The answer to a request: this server sends none.
            return Some(Vec::new());
        }
        Some(vec![match self.requested(method, params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, reason)) => failure(id.clone(), code, &reason),
        }])
    }

    fn requested(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        if self.shut_down {
            return Err((INVALID_REQUEST, "the server is shut down".into()));
        }
        match method {
            "initialize" => Ok(json!({
                "capabilities": {
                    "positionEncoding": "utf-16",
                    "textDocumentSync": { "openClose": true, "change": 1 },
                    "documentFormattingProvider": true,
                    "hoverProvider": true,
                    "definitionProvider": true,
                    "referencesProvider": true,
                    "documentHighlightProvider": true,
                    "documentSymbolProvider": true,
                    "codeLensProvider": { "resolveProvider": false },
                    "renameProvider": { "prepareProvider": true },
                    "completionProvider": { "triggerCharacters": [".", "@"] },
                },
                "serverInfo": { "name": "rondel", "version": env!("CARGO_PKG_VERSION") },
            })),
            "shutdown" => {
                self.shut_down = true;
                Ok(Value::Null)
            }
            "textDocument/formatting" => self.document(params).map(|(_, text)| formatted(text)),
            "textDocument/hover" => {
                self.recordings.look();
                self.with_view(params, |view| Ok(view.hover(params, &self.recordings)))
            }
            "textDocument/codeLens" => self.with_view(params, |view| Ok(view.lenses())),
            "textDocument/definition" => self.with_view(params, |view| Ok(view.definition(params))),
            "textDocument/references" => self.with_view(params, |view| Ok(view.references(params))),
            "textDocument/documentHighlight" => self.with_view(params, |view| Ok(view.highlights(params))),
            "textDocument/documentSymbol" => self.with_view(params, |view| Ok(view.symbols())),
            "textDocument/completion" => self.with_view(params, |view| Ok(view.completions(params))),
            "textDocument/prepareRename" => self.with_view(params, |view| view.prepare_rename(params)),
            "textDocument/rename" => self.with_view(params, |view| view.rename(params)),
            _ => Err((METHOD_NOT_FOUND, format!("unknown method '{method}'"))),
        }
    }

    /// The URI and the text of an open document.
    fn document<'d>(&'d self, params: &'d Value) -> Result<(&'d str, &'d str), (i64, String)> {
        let uri = uri_of(params);
        let text = self.documents.get(uri).map(String::as_str);
        let text = text.ok_or_else(|| (REQUEST_FAILED, format!("{uri} is not open: open it first")))?;
        Ok((uri, text))
    }

    /// Answers a request about the names of a document; a formula in Reelay's format has none.
    fn with_view(
        &self,
        params: &Value,
        answer: impl FnOnce(&View<'_>) -> Result<Value, String>,
    ) -> Result<Value, (i64, String)> {
        let (uri, text) = self.document(params)?;
        if is_rye(uri) {
            return Ok(Value::Null);
        }
        let sources = loaded(uri, text);
        let view = View::new(uri, text, &sources, &self.schemas);
        answer(&view).map_err(|reason| (REQUEST_FAILED, reason))
    }

    /// Handles a notification; `None` after `exit`.
    fn notified(&mut self, method: &str, params: &Value) -> Option<Vec<Value>> {
        let uri = uri_of(params);
        match method {
            "exit" => return None,
            "textDocument/didOpen" => return Some(self.keep(uri, &params["textDocument"]["text"])),
            "textDocument/didChange" => {
                // Every change is the whole text; the last one holds.
                let last = params["contentChanges"].as_array().and_then(|changes| changes.last());
                return Some(last.map_or_else(Vec::new, |change| self.keep(uri, &change["text"])));
            }
            "textDocument/didClose" => {
                self.documents.remove(uri);
                return Some(vec![published(uri, Vec::new())]);
            }
            _ => {}
        }
        Some(Vec::new())
    }

    /// Keeps the text of a document, and returns its diagnostics.
    fn keep(&mut self, uri: &str, text: &Value) -> Vec<Value> {
        let Some(text) = text.as_str() else { return Vec::new() };
        if text.len() > MAX_TEXT {
            // It has no names; a request about it is no error.
            self.documents.insert(uri.to_owned(), String::new());
            let reason = format!("specifications beyond {MAX_TEXT} bytes are not checked: split this file");
            return vec![published(uri, vec![refused(&reason)])];
        }
        if self.documents.len() >= MAX_DOCUMENTS && !self.documents.contains_key(uri) {
            let reason = format!("more than {MAX_DOCUMENTS} documents are open: close one to check this one");
            return vec![published(uri, vec![refused(&reason)])];
        }
        self.documents.insert(uri.to_owned(), text.to_owned());
        let options = &ParseOptions::default();
        let sources = loaded(uri, text);
        let outcome = match is_rye(uri) {
            true => rondel_spec::parse_rye(text, None, "formula"),
            false => rondel_spec::parse_sources(&sources, options, Some(&self.schemas)),
        };
        let start = if is_rye(uri) { 0 } else { sources.main_start() };
        let document = Document { uri, sources: &sources, start, lines: Lines::new(text) };
        vec![published(uri, outcome.diagnostics.iter().map(|found| document.described(found)).collect())]
    }
}

fn is_rye(uri: &str) -> bool {
    uri.ends_with(".rye")
}

/// Sources of a document and its imports.
fn loaded(uri: &str, text: &str) -> Sources {
    match path_of(uri) {
        Some(path) => files::load(&path, &path.display().to_string(), text.to_owned()),
        // A document that is no file has no folder to import from.
        None => Sources::alone(uri, text),
    }
}

/// The path of a document that is a file.
fn path_of(uri: &str) -> Option<PathBuf> {
    let encoded = uri.strip_prefix("file://")?;
    let encoded = encoded.strip_prefix("localhost").unwrap_or(encoded).as_bytes();
    let (mut path, mut at) = (Vec::with_capacity(encoded.len()), 0);
    while let Some(byte) = encoded.get(at) {
        let digits = encoded.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *byte == b'%') {
            Some(decoded) => {
                path.push(decoded);
                at += 3;
            }
            None => {
                path.push(*byte);
                at += 1;
            }
        }
    }
    let path = PathBuf::from(String::from_utf8(path).ok()?);
    path.is_absolute().then_some(path)
}

fn uri_of(params: &Value) -> &str {
    params["textDocument"]["uri"].as_str().unwrap_or("")
}

fn failure(id: Value, code: i64, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": reason } })
}

fn published(uri: &str, diagnostics: Vec<Value>) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "textDocument/publishDiagnostics",
        "params": { "uri": uri, "diagnostics": diagnostics },
    })
}

/// A warning at the start of a document that is not checked.
fn refused(reason: &str) -> Value {
    let start = json!({ "line": 0, "character": 0 });
    json!({ "range": { "start": start, "end": start }, "severity": 2, "source": "rondel", "message": reason })
}

/// An open document, and the text of its imports before its own.
struct Document<'d> {
    uri: &'d str,
    sources: &'d Sources,
    /// Offset of its own text in `sources`, in bytes.
    start: usize,
    lines: Lines<'d>,
}

impl Document<'_> {
    /// A diagnostic with its code, its advice and its related places.
    fn described(&self, diagnostic: &Diagnostic) -> Value {
        let mut message = diagnostic.message.clone();
        if let Some(help) = &diagnostic.help {
            message += &format!("\nhelp: {help}");
        }
        let range = self.range(diagnostic.span).unwrap_or_else(|| {
            message = format!("{}: {message}", self.elsewhere(diagnostic.span));
            self.imports()
        });
        let severity = match diagnostic.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
        };
        let related = diagnostic.labels.iter().map(|label| {
            let (range, text) = match self.range(label.span) {
                Some(range) => (range, label.text.clone()),
                None => (self.imports(), format!("{}: {}", self.elsewhere(label.span), label.text)),
            };
            json!({ "location": { "uri": self.uri, "range": range }, "message": text })
        });
        json!({
            "range": range,
            "severity": severity,
            "code": diagnostic.code.as_str(),
            "source": "rondel",
            "message": message,
            "relatedInformation": related.collect::<Vec<_>>(),
        })
    }

    /// The range of a span in this document; `None` of one in an imported file.
    fn range(&self, span: Span) -> Option<Value> {
        let start = span.start.checked_sub(self.start)?;
        Some(self.lines.range(Span::new(start, span.end.saturating_sub(self.start).max(start))))
    }

    /// The place of a span in an imported file, for people.
    fn elsewhere(&self, span: Span) -> String {
        let place = self.sources.place(span.start);
        format!("{}, line {}, column {}", place.file, place.line, place.column)
    }

    /// The range of the first import.
    fn imports(&self) -> Value {
        let text = &self.sources.text()[self.start..];
        let mut start = 0;
        let line = text.split_inclusive('\n').find(|line| {
            let found = line.trim_start().starts_with("use ");
            start += if found { 0 } else { line.len() };
            found
        });
        let length = line.map_or(0, |line| line.trim_end().len());
        self.lines.range(Span::new(start.min(text.len()), start + length))
    }
}

/// The edits that format a text: none if it is formatted, or has errors that keep it from being formatted.
fn formatted(text: &str) -> Value {
    match rondel_spec::format(text) {
        Ok(layout) if layout != text => {
            let all = rondel_spec::Span::new(0, text.len());
            json!([{ "range": Lines::new(text).range(all), "newText": layout }])
        }
        _ => json!([]),
    }
}

const _: () = assert!(MAX_TEXT < MAX_MESSAGE, "a message carries a whole text");
