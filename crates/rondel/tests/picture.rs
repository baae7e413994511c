//! `rondel check --report svg` and `rondel plot`: verdicts and fields over time as a picture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

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
    // It is legible on a dark page, too.
    let first = svg.lines().find(|line| line.starts_with("<rect"));
    assert!(first.is_some_and(|rectangle| rectangle.contains("fill=\"#FFFFFF\"")), "{svg}");
    for name in ["low", "high", "0 s", "10 s"] {
        assert!(svg.lines().any(|line| line.trim() == name), "{name} is not in\n{svg}");
    }
    // `low` is violated from 5 s to 10 s: the second half of the columns from 120 to 760.
    let violated: Vec<&str> = svg.lines().filter(|line| line.contains("#D55E00")).collect();
    // One is in the legend.
    assert_eq!(violated.len(), 2, "{svg}");
    assert!(violated[0].contains("x=\"440\"") && violated[0].contains("width=\"320\""), "{violated:?}");
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
    assert!(svg.contains("#56B4E9") && !svg.contains("#009E73"), "{svg}");
}

/// The lines of text in a picture.
fn texts(svg: &str) -> Vec<&str> {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('<');
    svg.lines().map(str::trim).filter(is_text).collect()
}

#[test]
fn fields_and_verdicts_are_drawn() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic gear { report: int }\ntopic pose { id: int, y: float, mode: string }\n\
         property shifts = not changed(gear.report)\n\
         property inside for each i in pose.id = pose.y < 4 or pose.mode == \"test\"\n",
    );
    let mut lines = String::new();
    for i in 0..20_000 {
        let y = if i == 7777 { 99.5 } else { f64::from(i % 3) };
        lines +=
            &format!("{{\"time\":{i},\"topic\":\"pose\",\"id\":{},\"y\":{y},\"mode\":\"run\"}}\n", i % 2);
        if i % 5000 == 0 {
            lines += &format!("{{\"time\":{i},\"topic\":\"gear\",\"report\":{}}}\n", i / 5000);
        }
    }
    let trace = folder.file("a.jsonl", &lines);
    let picture = folder.path("a.svg");
    let said = rondel(["plot", &spec, &trace, "--out", &picture]);
    said.expect_status(0);
    assert!(said.stdout.trim_start().starts_with("20,004 events"), "{}", said.stdout);
    let svg = std::fs::read_to_string(&picture).unwrap();
    let shown = texts(&svg);
    for name in [
        "shifts",
        "inside",
        "gear.report",
        "pose.y[0]",
        "pose.y[1]",
        "pose.mode[0]",
        "&quot;run&quot;",
        "50",
        "4",
        "0 s",
    ] {
        assert!(shown.contains(&name), "{name} is not in {shown:?}");
    }
    // The violations of an instant are seen although a satisfied time follows each.
    let bars: Vec<&str> = svg.lines().filter(|line| line.starts_with("<rect")).collect();
    let first_red = bars.iter().position(|bar| bar.contains("#D55E00")).unwrap();
    assert_eq!(bars.iter().filter(|bar| bar.contains("#D55E00")).count(), 3 + 1 + 1, "{svg}");
    assert!(bars[..first_red].iter().any(|bar| bar.contains("#009E73")), "{svg}");
    // However many values there are.
    assert!(svg.len() < 4_000_000, "{}", svg.len());

    let page = folder.path("a.html");
    rondel(["plot", &spec, &trace, "--quiet", "-o", &page]).expect_status(0);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("\"signals\":[{\"name\":") && html.contains("pose.y[1]"), "{}", html.len());
}

#[test]
fn impossible_pictures_are_refused() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic t { x: int } property p = t.x < 3");
    let trace = folder.file("a.jsonl", "{\"time\":1,\"topic\":\"t\",\"x\":1}\n");
    let out = folder.path("a.svg");
    for (arguments, status, said) in [
        (vec![&spec, &trace, "--out", "a.png"], 2, "the name of the picture ends in .svg or .html"),
        (vec![&spec, &trace, "--out", "/nowhere/a.svg"], 3, "there is no folder /nowhere"),
        (vec![&spec, "none.jsonl", "--out", &out], 3, "none.jsonl"),
        (vec![&spec, "--out", &out], 2, "no recording to check"),
    ] {
        let finished = rondel(["plot"].into_iter().chain(arguments.iter().copied()));
        finished.expect_status(status);
        assert!(finished.stderr.contains(said), "{arguments:?}: {}", finished.stderr);
    }
    // The picture of a damaged recording says that it shows a part.
    let whole = std::fs::read_to_string(&trace).unwrap();
    for (begin, said) in [(whole.as_str(), "a part only, NOT read to its end: "), ("", "NOT read: ")] {
        let damaged = folder.file("damaged.jsonl", format!("{begin}nonsense\n"));
        rondel(["plot", &spec, &damaged, "--quiet", "--out", &out]).expect_status(3);
        let svg = std::fs::read_to_string(&out).unwrap();
        let title = texts(&svg).into_iter().find(|text| text.contains("damaged.jsonl")).unwrap();
        assert!(title.contains(&format!("damaged.jsonl: {said}")), "{title}");
    }
    let empty = folder.file("empty.jsonl", "");
    rondel(["plot", &spec, &empty, "--out", &out]).expect_status(0);
    assert!(std::fs::read_to_string(&out).unwrap().contains("no message"));
}

#[test]
fn thresholds_arrays_times_and_brief_verdicts_are_drawn() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic s { r: [float], at: time, a_field_with_a_name_that_is_long_but_fits: float }\n\
         property clear = all r in s.r: r > 0.25\n\
         property later = s.at > prev(s.at)\n\
         property low = mean(s.a_field_with_a_name_that_is_long_but_fits) over 3 < 7.5\n",
    );
    let mut lines = String::new();
    for i in 0..5_000_u32 {
        let time = 1_795_360_400 + i;
        let at = if i == 2_500 { "null".to_owned() } else { time.to_string() };
        lines += &format!(
            "{{\"time\":{time},\"topic\":\"s\",\"r\":[1.5,{}],\"at\":{at},\
             \"a_field_with_a_name_that_is_long_but_fits\":{}}}\n",
            1 + i % 3,
            i % 9
        );
    }
    let trace = folder.file("a.jsonl", &lines);
    let picture = folder.path("a.svg");
    rondel(["plot", &spec, &trace, "--quiet", "--out", &picture]).expect_status(0);
    let svg = std::fs::read_to_string(&picture).unwrap();
    let shown = texts(&svg);
    for name in [
        "s.r",
        "0.25",
        "s.at",
        "+2000 s",
        "7.5",
        "s.a_field_with_a_name_that_is_long_but_fits",
        "mean(s.a_field_with_a_name_that_is_long_but_fits) over 3",
        "inconclusive",
    ] {
        assert!(shown.contains(&name), "{name} is not in {shown:?}");
    }
    // One message in 5,000 is undecided, and seen; a time is a line and no text for each message.
    let hatched = svg.lines().filter(|line| line.contains("#F0E442")).count();
    assert!(hatched >= 3, "{svg}");
    assert!(svg.len() < 400_000, "{}", svg.len());
}

/// A truth that never changes is drawn at its own height, and both values are named apart.
#[test]
fn a_constant_truth_has_its_place() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic t { on: bool, off: bool } property p = t.on and not t.off");
    let line = |i: u32| format!("{{\"time\":{i},\"topic\":\"t\",\"on\":true,\"off\":false}}\n");
    let trace = folder.file("a.jsonl", (0..10).map(line).collect::<String>());
    let picture = folder.path("a.svg");
    rondel(["plot", &spec, &trace, "--quiet", "--out", &picture]).expect_status(0);
    let svg = std::fs::read_to_string(&picture).unwrap();
    // The heights at which the labels stand: the attribute `y` of the element before each text.
    let mut heights = Vec::new();
    let lines: Vec<&str> = svg.lines().collect();
    for pair in lines.windows(2).filter(|pair| ["true", "false"].contains(&pair[1])) {
        let y = pair[0].split("y=\"").nth(1).unwrap().split('"').next().unwrap();
        heights.push((y.parse::<f64>().unwrap(), pair[1]));
    }
    assert_eq!(heights.len(), 4, "{svg}");
    for pair in heights.chunks(2) {
        assert!((pair[0].0 - pair[1].0).abs() > 10.0, "{heights:?}");
    }
}
