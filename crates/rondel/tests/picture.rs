//! `rondel check --report svg`: the verdicts over time as a picture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use support::{Folder, rondel};

#[test]
fn a_picture_has_a_band_for_each_verdict() {
    let folder = Folder::new();
    let spec =
        folder.file("a.rondel", "topic a { x: int }\nproperty low = a.x < 5\nproperty high = a.x > 0\n");
    let line = |time: u32, x: u32| format!("{{\"topic\": \"a\", \"time\": {time}, \"x\": {x}}}\n");
    let trace = folder.file("a.jsonl", line(0, 1) + &line(5, 9) + &line(10, 2));
    let picture = folder.path("a.svg");
    rondel(["check", &spec, &trace, "--report", &format!("svg={picture}")]).expect_status(1);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for name in ["low", "high", "0 s", "10 s"] {
        assert!(svg.lines().any(|line| line.trim() == name), "{name} is not in\n{svg}");
    }
    // `low` is violated from 5 s to 10 s: the second half of the columns from 190 to 630.
    let violated: Vec<&str> = svg.lines().filter(|line| line.contains("#D64545")).collect();
    assert_eq!(violated.len(), 1, "{svg}");
    assert!(violated[0].contains("x=\"410\"") && violated[0].contains("width=\"220\""), "{violated:?}");
}

#[test]
fn a_vacuous_property_does_not_look_satisfied() {
    let folder = Folder::new();
    let spec =
        folder.file("a.rondel", "topic a { x: int }\ntopic b { x: int }\nproperty p = on(b) -> b.x > 0\n");
    let trace = folder.file(
        "a.jsonl",
        "{\"topic\": \"a\", \"time\": 0, \"x\": 1}\n{\"topic\": \"a\", \"time\": 1, \"x\": 1}\n",
    );
    let picture = folder.path("a.svg");
    rondel(["check", &spec, &trace, "--report", &format!("svg={picture}")]).expect_status(4);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.contains("#C9C3B0") && !svg.contains("#4CAF72"), "{svg}");
}
