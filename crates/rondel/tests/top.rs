//! `rondel top` with a run over loopback: the table, and the screen on a pseudo-terminal.

#![cfg(all(feature = "page", feature = "top"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};
use support::network::{arguments, free_endpoint, zenoh};
use support::{Finished, Folder, RONDEL, rondel, start_rondel};

const SPECIFICATION: &str = "topic door { id: string, open: bool }\n\
                             property shut for each id in (door.id) = not door.open\n\
                             @severity(critical)\nproperty mine = door.id == \"a\"\n";

/// A run of doors with a page, and where it is served.
fn run(folder: &Folder, endpoint: &str, page: &str) -> (Process, String) {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ door: zenoh:door }}\nverdicts: {{ to: stdout }}\npage: {page}\n"
        ),
    );
    let mut own = Command::new(RONDEL);
    own.env("XDG_RUNTIME_DIR", folder.as_path());
    own.args(["run", &deployment, "--format", "json", "--explain"]);
    let mut run = Process::start(own);
    let line = run.wait_stderr("listening on page http://");
    let (_, rest) = line.split_once("http://").unwrap();
    let address = rest.split_once('/').unwrap().0.to_owned();
    run.wait_stderr("ready");
    (run, address)
}

/// A publisher of doors; `a` is shut and `b` open.
fn feed(endpoint: &str) -> Process {
    let mut feed = start_rondel(arguments(
        &["publish", "--to", "zenoh:door", "--wait", "60"],
        &zenoh("client", endpoint),
    ));
    feed.write(b"{\"id\":\"a\",\"open\":false}\n{\"id\":\"b\",\"open\":true}\n");
    feed
}

/// Prints the table until it has a text.
#[track_caller]
fn table(arguments: &[&str], part: &str) -> Finished {
    let deadline = Instant::now() + LIMIT;
    loop {
        let finished = rondel(arguments.iter().copied().chain(["--once"]));
        finished.expect_status(0);
        if finished.stdout.contains(part) {
            return finished;
        }
        assert!(Instant::now() < deadline, "no {part:?} in {}", finished.stdout);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The columns of a line, which are at least two blanks apart.
fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn tables_show_properties_and_topics() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let before = table(&["top", &address], "mine");
    assert_eq!(
        before.stdout.lines().filter(|line| line.starts_with("no verdict  ")).count(),
        2,
        "{before:?}"
    );
    let feed = feed(&endpoint);
    let shown = table(&["top", &address], "1/2");
    let lines: Vec<Vec<&str>> = shown.stdout.lines().map(columns).collect();
    assert_eq!(lines[0], ["verdict", "property", "since", "severity", "violations", "instances", "note"]);
    assert_eq!(lines.len(), 3, "{shown:?}");
    assert_eq!(
        (lines[1][0], lines[1][1], lines[1][3]),
        ("violated", "mine", "critical"),
        "the critical one first"
    );
    assert_eq!((lines[2][0], lines[2][1], lines[2][5]), ("violated", "shut", "1/2"));
    for (options, expected) in [
        (&["--search", "MIN"][..], vec!["mine"]),
        (&["--verdict", "satisfied"], vec![]),
        (&["--verdict", "violated", "--sort", "name"], vec!["mine", "shut"]),
    ] {
        let shown = rondel(["top", &address, "--once"].into_iter().chain(options.iter().copied()));
        let names: Vec<&str> = shown.stdout.lines().skip(1).map(|line| columns(line)[1]).collect();
        assert_eq!(names, expected, "{options:?}");
    }
    let url = format!("http://{address}/");
    let topics = table(&["top", &url, "--topics", "--sort", "lost"], "  2  ");
    let lines: Vec<Vec<&str>> = topics.stdout.lines().map(columns).collect();
    assert_eq!((lines[0][0], lines[1][0], lines[1][3]), ("topic", "door", "2"), "{topics:?}");
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn wrong_usage_and_absent_pages_are_refused() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("page.token", "0123456789abcdef\n");
    let wrong = folder.file("wrong.token", "0123456789abcdeX\n");
    let (run, address) = run(&folder, &endpoint, "{ listen: \"127.0.0.1:0\", token_file: page.token }");
    let (right, address) = (folder.path("page.token"), address.as_str());
    rondel(["top", address, "--once", "--token-file", &right]).expect_status(0);
    let missing = folder.path("missing.token");
    for (options, status, said) in [
        (&["--once"][..], 2, "--token-file gives the token"),
        (&["--once", "--token-file", &wrong], 2, "the token is wrong"),
        (&["--once", "--token-file", &missing], 2, "cannot read the token"),
        (&["--once", "--sort", "rate"], 2, "properties are ordered by"),
        (&["--once", "--topics", "--sort", "worst"], 2, "topics are ordered by"),
        (&["--topics", "--verdict", "none", "--once"], 2, "cannot be used with"),
        (&["--token-file", &right], 2, "--once prints a table"),
    ] {
        let finished = rondel(["top", address].into_iter().chain(options.iter().copied()));
        finished.expect_status(status).expect_stderr(&[said]);
    }
    run.terminate();
    run.finish().expect_status(0);
    rondel(["top", address, "--once"]).expect_status(5).expect_stderr(&["nothing listens there"]);
    rondel(["top", "here", "--once"]).expect_status(2).expect_stderr(&["must be a host and a port"]);
    rondel(["top", "127.0.0.1:1", "--once", "--tls-ca", "ca.pem"])
        .expect_status(2)
        .expect_stderr(&["write https://127.0.0.1:1"]);
    rondel(["top", "https://127.0.0.1:1", "--once", "--tls-ca", &missing])
        .expect_status(2)
        .expect_stderr(&["missing.token", "check its path"]);
}

/// The command on a pseudo-terminal of 80 x 24.
struct Terminal {
    child: Child,
    coming: Receiver<Vec<u8>>,
    /// The screen of the terminal: the command writes only the cells that have changed.
    shown: vt100::Parser,
    is_coloured: bool,
}

impl Terminal {
    /// Starts it; `None` without `script`, which makes the terminal.
    fn start(address: &str, folder: &Folder) -> Option<Terminal> {
        let status = folder.path("status");
        let line = format!(
            "stty rows 24 cols 80; {RONDEL} top {address} --search mine; echo status $? >{status}; stty -a | grep icanon"
        );
        let child = Command::new("script")
            .args(["-q", "-c", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.ok()?;
        let mut stdout = child.stdout.take().unwrap();
        let (sender, coming) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (rows, columns) = (NonZero::new(24).unwrap(), NonZero::new(80).unwrap());
        Some(Terminal { child, coming, shown: vt100::Parser::new(rows, columns, 0), is_coloured: false })
    }

    /// Waits until the terminal shows a text.
    #[track_caller]
    fn wait(&mut self, part: &str) {
        self.wait_until(part, |screen| screen.contents().contains(part));
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, is_reached: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !is_reached(self.shown.screen()) {
            match self.coming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.shown.process(&bytes);
                    self.is_coloured |= self.has_colour();
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {what:?} in\n{}", self.shown.screen().contents())
                }
            }
        }
    }

    fn has_colour(&self) -> bool {
        let screen = self.shown.screen();
        let mut cells = (0..24).flat_map(|row| (0..80).filter_map(move |column| screen.cell(row, column)));
        cells.any(|cell| (cell.fgcolor(), cell.bgcolor()) != (vt100::Color::Default, vt100::Color::Default))
    }

    fn write(&mut self, keys: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys).and_then(|()| stdin.flush()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn screen_follows_the_run_and_gives_the_terminal_back() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (monitor, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let Some(mut terminal) = Terminal::start(&address, &folder) else {
        eprintln!("skipped: `script` is not installed");
        return;
    };
    terminal.wait_until("the other screen", vt100::Screen::alternate_screen);
    terminal.wait("[Properties]");
    let feed = feed(&endpoint);
    terminal.wait("violated");
    terminal.write(b"\r");
    terminal.wait("property mine");
    terminal.write(b"\x7f");
    terminal.wait("[Properties]");
    terminal.write(b"2");
    terminal.wait("[Topics]");
    monitor.terminate();
    monitor.finish().expect_status(0);
    terminal.wait("not seen since");
    assert!(!terminal.is_coloured, "no colour with NO_COLOR");
    terminal.write(b"q");
    terminal.wait_until("the first screen", |screen| !screen.alternate_screen());
    // The terminal has lines again.
    terminal.wait(" icanon");
    assert_eq!(std::fs::read_to_string(folder.path("status")).unwrap(), "status 0\n");
    feed.terminate();
}
