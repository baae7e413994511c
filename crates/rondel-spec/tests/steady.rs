//! Attributes that steady verdicts, and windows that must be full, are the formulas that the reference says they are.

#![allow(clippy::unwrap_used)]

use rondel_spec::{format, parse};

/// The formulas of the properties of a specification, printed, each with its model of time.
fn printed(text: &str) -> Vec<String> {
    let outcome = parse(text);
    assert!(outcome.diagnostics.iter().all(|d| !d.is_error()), "{:?} of {text}", outcome.diagnostics);
    let spec = outcome.spec.unwrap();
    let print = |p: &rondel_spec::Property| format!("{:?} {}", p.time, spec.print(p.formula));
    spec.properties.iter().map(print).collect()
}

const TOPICS: &str = "topic a { on: bool, x: float, id: string }\nconst span = 2 s\n";

#[test]
fn an_attribute_is_its_formula() {
    for (attributes, formula) in [
        ("@warmup(5 s)", "once[5 s,] true -> (p)"),
        ("@warmup(span)", "once[2 s,] true -> (p)"),
        ("@time(steps) @warmup(5)", "once[5,] true -> (p)"),
        ("@while(a.on or a.x > 3)", "(a.on or a.x > 3) -> (p)"),
        ("@while(exists y. a{x: y})", "(exists y. a{x: y}) -> (p)"),
        ("@while(a.on) @warmup(5 s)", "once[5 s,] true and a.on -> (p)"),
        ("@hold(2 s)", "historically[0, 2 s] (p)"),
        ("@time(steps) @hold(2)", "historically[0, 2] (p)"),
        ("@latch", "historically (p)"),
        ("@latch @warmup(5 s) @while(a.on)", "historically (once[5 s,] true and a.on -> (p))"),
        ("@hold(2 s) @while(a.on)", "historically[0, 2 s] (a.on -> (p))"),
    ] {
        for p in ["a.x > 1", "a.on -> a.x > 1", "a.x > 1 since on(a)"] {
            let model = if attributes.contains("@time(steps)") { "@time(steps)" } else { "" };
            let with = printed(&format!("{TOPICS}{attributes}\nproperty q = {p}\n"));
            let written = printed(&format!(
                "{TOPICS}{model} property q = {}\n",
                formula.replace("(p)", &format!("({p})"))
            ));
            assert_eq!(with, written, "{attributes} of {p}");
        }
    }
    let each = printed(&format!("{TOPICS}@while(id != \"x\") property q for each id in a.id = a.x > 1\n"));
    let written = printed(&format!("{TOPICS}property q for each id in a.id = id != \"x\" -> a.x > 1\n"));
    assert_eq!(each, written);
}

#[test]
fn a_full_window_is_unknown_before() {
    for (model, full, since) in
        [("", "over full 2 s", "once[2 s,]"), ("@time(steps)", "over full 3", "once[2,]")]
    {
        let found = printed(&format!("{TOPICS}{model} property q = mean(a.x) {full} > 1\n")).concat();
        let once = printed(&format!("{TOPICS}{model} property q = {since} on(a)\n")).concat();
        let once = once.split_once(' ').unwrap().1;
        assert!(found.contains(once), "{found} has no {once}");
    }
    // A constant may be called so.
    let named = printed(&format!("{TOPICS}const full = 2 s\nproperty q = count(a) over full > 1 and a.on\n"));
    assert_eq!(named, printed(&format!("{TOPICS}property q = count(a) over 2 s > 1 and a.on\n")));
    let both = printed(&format!("{TOPICS}const full = 2 s\nproperty q = count(a) over full full > 1\n"));
    assert_eq!(both, printed(&format!("{TOPICS}property q = count(a) over full 2 s > 1\n")));
}

#[test]
fn the_formatter_keeps_them() {
    let text = "topic a { on: bool, x: float }\n\n@warmup(5 s) @while(a.on and a.x>2) @latch property p = percentile(a.x,95) over full 2 s>1\n";
    let expected = "topic a { on: bool, x: float }\n\n@warmup(5 s) @while(a.on and a.x > 2) @latch\nproperty p = percentile(a.x, 95) over full 2 s > 1\n";
    let formatted = format(text).unwrap();
    assert_eq!(formatted, expected);
    assert_eq!(format(&formatted).unwrap(), expected);
    assert_eq!(printed(text), printed(&formatted));
}
