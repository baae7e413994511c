//! Programs in C and C++: compiled, linked with the static and the shared library, and run.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test

mod common;

use std::process::Command;

use common::{HERE, library, run, tool};
use rondel_testkit::{Folder, finish};
use serde_json::{Value, json};

/// Returns the lines before the last one, which is JSON.
fn lines_and_summary(output: &str) -> (Vec<&str>, Value) {
    let mut lines: Vec<&str> = output.lines().collect();
    let summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    (lines, summary)
}

#[test]
fn the_example_in_c_runs() {
    let folder = Folder::new();
    for ending in ["a", "so"] {
        let program = folder.path(&format!("tank-{ending}"));
        let finished = run("cc", "-std=c99", &format!("{HERE}/examples/tank.c"), &library(ending), &program);
        assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
        let (lines, summary) = lines_and_summary(&finished.stdout);
        let expected = [
            "1000 ms low satisfied",
            "1000 ms alive satisfied",
            "2000 ms low violated",
            "4000 ms alive violated",
            "7000 ms low satisfied",
            "7000 ms alive satisfied",
            "8000 ms low violated",
            "9000 ms low satisfied",
        ];
        assert_eq!(lines, expected);
        let property = |name: &str, violations: u32, first: f64| {
            json!({
                "name": name,
                "verdict": "violated",
                "violations": violations,
                "first_violation": first,
                "least_robustness": null,
            })
        };
        let expected = json!({
            "checked": 5,
            "out_of_order": 0,
            "is_violated": true,
            "is_inconclusive": false,
            "not_evaluated": [],
            "properties": [property("low", 2, 2.0), property("alive", 1, 4.0)],
        });
        assert_eq!(summary, expected);
    }
}

/// Returns the blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(format!("{HERE}/../../docs/how-to/c.md")).unwrap();
    let start = format!("\n```{language}\n");
    let block = |rest: &str| rest.split_once("\n```").map(|(block, _)| format!("{block}\n"));
    page.split(&start).skip(1).filter_map(block).collect()
}

#[test]
fn the_programs_of_the_page_run() {
    let folder = Folder::new();
    let library = library("so");
    for (compiler, standard, language) in [("cc", "-std=c99", "c"), ("c++", "-std=c++17", "cpp")] {
        let blocks = blocks(language);
        assert_eq!(blocks.len(), 1);
        let source = folder.file(&format!("page.{language}"), &blocks[0]);
        let finished = run(compiler, standard, &source, &library, &folder.path(language));
        assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
        let first = finished.stdout.lines().next().unwrap_or_default().to_owned();
        let expected =
            if language == "c" { self::blocks("text").remove(0) } else { "low violated".to_owned() };
        assert_eq!(first, expected.trim_end());
    }
}

#[test]
fn the_example_in_cpp_runs() {
    let folder = Folder::new();
    let library = library("so");
    let finished =
        run("c++", "-std=c++17", &format!("{HERE}/examples/fleet.cpp"), &library, &folder.path("fleet"));
    assert_eq!((finished.status, finished.stderr.as_str()), (Some(0), ""));
    let (lines, summary) = lines_and_summary(&finished.stdout);
    let expected = [
        "1:50 unknown field 'lvel' in topic 'tank'; did you mean 'level'?",
        "1 s brakes {\"n\":\"r1\"} satisfied",
        "1 s brakes {\"n\":\"r2\"} satisfied",
        "3 s brakes {\"n\":\"r2\"} violated",
        "message refused",
    ];
    assert_eq!(lines, expected);
    assert_eq!((&summary["checked"], &summary["properties"][0]["violations"]), (&json!(4), &json!(1)));
    assert_eq!(summary["not_evaluated"].as_array().unwrap().len(), 1);
}

/// The sanitizers see the heap of the library, too: its allocator is that of C.
#[test]
fn memory_is_used_as_the_header_says() {
    let folder = Folder::new();
    let (include, source) = (format!("-I{HERE}/include"), format!("{HERE}/tests/c/memory.c"));
    let (library, program) = (library("a"), folder.path("memory"));
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"];
    let arguments =
        ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", &include, &source, "-o", &program];
    let libraries = [library.to_str().unwrap(), "-lpthread", "-ldl", "-lm"];
    tool("cc", &[&sanitized[..], &arguments, &libraries].concat());
    let finished = finish(&mut Command::new(&program), b"");
    let lines = (finished.status, finished.stdout.as_str(), finished.stderr.as_str());
    assert_eq!(lines, (Some(0), "7 reports\n", ""));
}
